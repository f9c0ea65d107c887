"""The scale subresource: discovery, its cache, and each way to fail."""
from client import Client, FakeKube, check
from agent import wait_until
from suite import test


def deployment(name, replicas=3):
    """With 2 of its replicas."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "a", "name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}, "status": {"replicas": 2}}


@test("a scale is read; discovery is asked once for many")
def _():
    with FakeKube() as kube, Client(kube) as client:
        for i in range(40):
            kube.put(deployment(f"d{i}", i))
        client.say(*(f"scale apps/v1 Deployment a d{i}" for i in range(40)))
        client.until("^scale ", 40)
        check(sorted(client.seen("^scale ")) == sorted(f"scale {i} 2 app=d{i}" for i in range(40)), "wrong scales")
        check(kube.count("discovery") == 1, f"{kube.count('discovery')} discoveries")
        client.say("skip 599", "scale apps/v1 Deployment a d1")
        client.until("^scale ", 41)
        check(kube.count("discovery") == 1, "discovery was asked again within ten minutes")
        client.say("skip 2", "scale apps/v1 Deployment a d1")
        client.until("^scale ", 42)
        check(kube.count("discovery") == 2, "discovery was not asked again after ten minutes")


@test("at most sixteen reads run at once, and the others come after")
def _():
    with FakeKube() as kube, Client(kube) as client:
        for i in range(40):
            kube.put(deployment(f"d{i}", i))
        kube.fault(path="/scale$", hang=True)
        client.say(*(f"scale apps/v1 Deployment a d{i}" for i in range(40)))
        wait_until(lambda: kube.count("get") >= 16, "sixteen reads")
        for _ in range(10):
            client.ask("end", '^what is "end"')
        check(kube.count("get") == 16, f"{kube.count('get')} at once")
        kube.clear_faults()
        client.until("^scale ", 40)


@test("any kind with a scale has one; a selector comes as it is")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.set_scale("rollouts", "a", "r", 5, 4, "app in (x,y),!canary")
        kube.set_scale("leaderworkersets", "a", "l", 1, 1, "")
        client.say("scale argoproj.io/v1alpha1 Rollout a r", "scale leaderworkerset.x-k8s.io/v1 LeaderWorkerSet a l")
        client.until("^scale 5 4 app in [(]x,y[)],!canary$")
        client.until("^scale 1 1 $")


@test("what has no scale is told apart from what is not there")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.put(deployment("d"))
        client.say("scale apps/v1 DaemonSet a d")
        client.until("^noscale UNIMPLEMENTED scale of DaemonSet a/d: the kind has no scale subresource in apps/v1$")
        client.say("scale apps/v1 Deployment a gone")
        client.until('^noscale NOT_FOUND scale of Deployment a/gone: GET .*: 404: deployments "gone" not found$')
        client.say("scale apps/v1 Gadget a d")
        client.until("^noscale NOT_FOUND scale of Gadget a/d: the Kubernetes API has no such kind in apps/v1$")
        client.say("scale example.org/v1 Gadget a d")
        client.until("^noscale NOT_FOUND scale of Gadget a/d: GET /apis/example.org/v1: 404: ")
        kube.fault(path="/scale$", status=403, message="no", times=1)
        client.say("scale apps/v1 Deployment a d")
        client.until("^noscale PERMISSION_DENIED ")
        client.say("scale apps/v1 Deployment a d")
        client.until("^scale 3 2 app=d")


@test("a kind that comes later is found")
def _():
    with FakeKube() as kube, Client(kube) as client:
        client.say("scale apps/v1 Gadget a g")
        client.until("^noscale NOT_FOUND")
        kube.add_kind("apps/v1", "Gadget", "gadgets", True)
        kube.set_scale("gadgets", "a", "g", 1, 1, "x=y")
        client.say("scale apps/v1 Gadget a g")
        client.until("^noscale NOT_FOUND", 2)
        client.say("skip 11", "scale apps/v1 Gadget a g")
        client.until("^scale 1 1 x=y")


@test("a discovery that fails or hangs delays nobody else")
def _():
    with FakeKube() as kube, Client(kube, timeout_s=10) as client:
        kube.put(deployment("d"))
        kube.fault(verb="discovery", path="argoproj", hang=True)
        client.say(*["scale argoproj.io/v1alpha1 Rollout a r"] * 20, "scale apps/v1 Deployment a d")
        client.until("^scale 3 2 app=d")
        client.say("skip 11")
        client.until("^noscale DEADLINE_EXCEEDED", 20)
        kube.clear_faults()
        kube.fault(verb="discovery", path="argoproj", status=503, times=1)
        client.say("skip 2", "scale argoproj.io/v1alpha1 Rollout a r")
        client.until("^noscale UNAVAILABLE scale of Rollout a/r: GET /apis/argoproj.io/v1alpha1: 503: told to fail$")


@test("names are escaped")
def _():
    with FakeKube() as kube, Client(kube) as client:
        client.say("scale apps/v1 Deployment a/b ../x?y")
        client.until("^noscale NOT_FOUND")
        check(kube.count("get", "^/apis/apps/v1/namespaces/a%2Fb/deployments/..%2Fx%3Fy/scale$") == 1, f"{kube.requests}")
