"""What a hub answers when agents, the API or pods are not as they should be: never a lower value for want of a reading,
never an old one for a new one."""
import contextlib
import signal
import socket
import time

from cluster import Agent, LOAD, TestFailure, ago, check, grpc, load, make_deployment, make_pod, scenario, wait_until, web
from suite import test


def answers_spec_at_once(ask):
    """GetMetricSpec within 100 ms: the best of some calls, since the machine has other things to do too."""
    best = 1.0
    for _ in range(20):
        start = time.monotonic()
        check(ask.spec(LOAD) == ("load", 50), "not the spec")
        best = min(best, time.monotonic() - start)
    check(best < 0.1, f"the spec took {best:.3f} s at best")


def not_yet(ask):
    """Both questions are errors that say so: neither a number nor idle."""
    for call in (ask.value, ask.active):
        try:
            raise TestFailure(f"answered {call(LOAD)} before it could know")
        except grpc.RpcError as error:
            check(error.code().name == "UNAVAILABLE", f"{error.code()}: {error.details()}")


@test("a hub that has not read the API yet says so, and knows the spec all the while")
def slow_start():
    with web(60, 60, 60) as cluster:
        cluster.kube.fault(verb="list", path="scaledobjects", hang=True)
        hub = cluster.hub(wait=False)
        ask = hub.ask("ml", "web")
        not_yet(ask)
        check("API" in hub.get("/readyz", port=hub.probe_port)[2].decode(), "another reason")
        answers_spec_at_once(ask)
        not_yet(ask)
        check(not hub.is_ready(), "ready without the API")
        cluster.kube.clear_faults()
        ask.until(180)
        check(hub.is_ready(), "not ready with everything heard")


@test("a hub that hears nothing of one agent waits ten seconds for it, then answers without")
def silent_agent():
    with web(60, 60, 60) as cluster, contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:
        where = [node.agent.address for node in cluster.nodes] + [f"127.0.0.1:{silent.getsockname()[1]}"]
        hub = cluster.hub(agents=where, wait=False)
        start = time.monotonic()
        ask = hub.ask("ml", "web")
        wait_until(lambda: list(hub.states().values()).count("up") == 3, "three agents to be up")
        not_yet(ask)
        answers_spec_at_once(ask)
        check("agents" in hub.get("/readyz", port=hub.probe_port)[2].decode(), "another reason")
        ask.until(180)
        check(time.monotonic() - start > 8, "did not wait")
        check(hub.is_ready(), "not ready")


@test("an agent that dies at the peak scales nothing down; when it is back the value is whole again")
def agent_dies():
    with web(60, 60, 60) as cluster:
        hub = cluster.hub()
        ask = hub.ask("ml", "web")
        ask.until(180)
        cluster.nodes[1].agent.process.kill()
        deadline = time.monotonic() + 30
        while (got := ask.answer()) != 150:  # held at 3 x 50, once its readings are old
            check(got in (180, 150) and time.monotonic() < deadline, f"got {got}: {ask.why()}")
            time.sleep(0.1)
        ask.stays(150, 1)
        check(ask.active(LOAD), "not active: unknown is not idle")
        why = ask.why()
        check("web-1 on node-1: missing" in why, why)
        check(hub.is_ready(), "a hub is not unready for want of an agent")
        old = cluster.nodes[1].agent.address
        with Agent(scenario(1, 60, 99), "--node-name=node-1", f"--pod-resources={cluster.nodes[1].kubelet.path}", listen=[old]):
            ask.until(180)


@test("what is known of two nodes may ask for more while the third is silent, never for less")
def knows_enough():
    with web(95, 95, 20) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(210)
        cluster.nodes[2].agent.process.kill()
        ask.until(190)  # two at 95 ask for 4 of 3 by themselves
        ask.stays(190, 1)


@test("when all agents are gone the value is an error, the spec still comes at once, and the hub stays ready")
def all_die():
    with web(60, 60, 60) as cluster:
        hub = cluster.hub()
        ask = hub.ask("ml", "web")
        ask.until(180)
        for node in cluster.nodes:
            node.agent.process.kill()
        seen = set()
        while (got := ask.answer()) != "UNAVAILABLE":
            seen.add(got)
            time.sleep(0.1)
        check(seen <= {180, 150}, f"{seen} on the way")
        ask.stays("UNAVAILABLE", 1)
        answers_spec_at_once(ask)
        check(ask.active(LOAD), "not active: unknown is not idle")
        check(hub.is_ready() and hub.ask("ml", "web").serving() == 1, "not ready")


@test("an agent that hangs is stale and missing, and is taken up again when it goes on")
def agent_hangs():
    with web(60, 60, 60) as cluster:
        hub = cluster.hub()
        ask = hub.ask("ml", "web")
        ask.until(180)
        agent = cluster.nodes[0].agent
        agent.signal(signal.SIGSTOP)
        try:
            ask.until(150)
            wait_until(lambda: hub.states()[agent.address] in ("stale", "connecting"), "the agent to be stale")
            ask.stays(150, 1)
        finally:
            agent.signal(signal.SIGCONT)
        ask.until(180)


@test("a driver that hangs on one node is missing there only")
def driver_hangs():
    with web(60, 60, 60) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(180)
        cluster.nodes[2].agent.play(scenario(2, 60, 99, faults=[{"fault": "hung", "from": 0}]))
        ask.until(150)
        check("node-2: missing" in ask.why(), ask.why())


def scale_up(cluster):
    """A fourth pod on node 0's other GPU, which idles."""
    cluster.nodes[0].play(60, 60)
    cluster.nodes[0].releases("train-0")
    cluster.pod("ml", "web-3", 0, "web", 1)
    cluster.kube.put(make_deployment("ml", "web", 4))


def misbehaves(**fault):
    """Such faults neither change the value nor keep the hub from hearing of what changes afterwards."""
    times = fault.pop("times", None)
    with web(60, 60, 60) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(180)
        if fault:
            cluster.kube.fault(times=times, **fault)
        cluster.kube.cut_connections()
        ask.stays(180, 3)
        scale_up(cluster)
        if times is None and "delay_s" not in fault:
            cluster.kube.clear_faults()
        ask.until(240)


for what, rule in {
        "cut connections": {},
        "answers 500": {"status": 500},
        "is overloaded": {"status": 429, "headers": {"Retry-After": "1"}},
        "is slow": {"delay_s": 1.5},
        "cuts answers off": {"cut_after_bytes": 300, "times": 6},
        "answers what is no JSON": {"body": "<html>", "times": 6},
        "hangs": {"hang": True},
}.items():
    test(f"an API server that {what} changes nothing, and what it says later is heard")(lambda rule=rule: misbehaves(**rule))


@test("places of watches that have expired (410) are read anew; pods that went meanwhile are gone")
def expired():
    with web(60, 60, 60) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(180)
        cluster.kube.expire_watches()
        ask.stays(180, 1)
        cluster.kube.fault(verb="watch", path="pods", status=500)
        cluster.kube.cut_connections()
        cluster.kube.delete("pods", "ml", "web-2")
        cluster.kube.put(make_deployment("ml", "web", 2))
        cluster.kube.expire()
        cluster.kube.clear_faults()
        ask.until(120)


def goes_away(cluster, ask):
    """The API, from now on; the time of it."""
    wait_until(lambda: cluster.kube.count("get", "/scale") >= 2, "a read since it was asked")
    ask.stays(lambda got: not isinstance(got, str), 1)
    cluster.kube.fault(status=503)
    cluster.kube.cut_connections()
    return time.monotonic()


def stands_for(ask, want, at_least_s, at_most_s, away):
    """The value, and then UNAVAILABLE."""
    while (got := ask.answer()) != "UNAVAILABLE":
        check(got == want and time.monotonic() < away + at_most_s, f"got {got} after {time.monotonic() - away:.0f} s")
        time.sleep(0.2)
    check(time.monotonic() - away > at_least_s, f"gave up after {time.monotonic() - away:.0f} s")


@test("with the API away for a minute the count stands for its time, then the value is an error until it is back")
def api_away():
    with web(50, 50, 50) as cluster:
        hub = cluster.hub()
        ask = hub.ask("ml", "web")
        ask.until(150)
        away = goes_away(cluster, ask)
        stands_for(ask, 150, 28, 60, away)
        answers_spec_at_once(ask)
        check(hub.is_ready(), "a hub is not unready for want of the API")
        cluster.kube.clear_faults()
        ask.until(150, patience_s=60)


@test("with the API away a value that changes the count is sent for a few seconds only: it would not see what it did")
def api_away_at_change():
    with web(60, 60, 60) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(180)
        away = goes_away(cluster, ask)
        stands_for(ask, 180, 3, 15, away)
        cluster.kube.clear_faults()
        ask.until(180, patience_s=60)


@test("ages are taken by the API server's clock, however wrong this machine's is")
def skew():
    with web(60, 60, 60) as cluster:
        cluster.kube.skew_s = -3600.0
        cluster.kube.put(make_deployment("ml", "web", 4))
        cluster.kube.put(make_pod("ml", "web-3", "node-0", "web", ready_s=None, created_s=3610))
        ask = cluster.hub().ask("ml", "web")
        ask.until(200)  # web-3 has been loading for 10 s, not for an hour, so the present count stays
        why = ask.why()
        check("web-3 on node-0: loading" in why, why)


@test("when the API server's clock steps by an hour, forth or back, the value never falls below the present count")
def clock_steps():
    with web(60, 60, 60) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(180)
        target, present = float(LOAD["targetValue"]), 3
        for step_s in (3600.0, -3600.0, 0.0):
            before = cluster.kube.count("get", "/scale")
            cluster.kube.skew_s = step_s
            cluster.kube.put(make_deployment("ml", "web", present))  # something to tell, so that the clock is read
            cluster.kube.put(make_pod("ml", f"web-{present}", "node-0", "web", created_s=700, ready_s=600))
            cluster.kube.delete("pods", "ml", f"web-{present}")
            wait_until(lambda seen=before: cluster.kube.count("get", "/scale") > seen, "another read of /scale")
            ask.stays(lambda got: not isinstance(got, str) and got >= target * present - 0.5, 3)
        ask.until(180)


@test("pods that end are not counted, their places are loading until the new ones are")
def rescheduled():
    with web(40, 60, 80) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(180)
        pod = cluster.kube.get(("v1", "pods"), "ml", "web-2", None)
        cluster.kube.put({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": ago(0)}})
        ask.until(150)
        check("place    1 without a pod: loading" in ask.why(), ask.why())
        cluster.nodes[0].play(40, 20)
        cluster.nodes[0].releases("train-0")
        cluster.pod("ml", "web-3", 0, "web", 1, ready_s=30)
        cluster.kube.delete("pods", "ml", "web-2")
        ask.until(120)


@test("a pod that was Ready and is not any more may be overloaded: it never counts for less than the target")
def unready():
    with web(10, 10, 10) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(30)
        pod = cluster.kube.get(("v1", "pods"), "ml", "web-1", None)
        conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": ago(20)}]
        cluster.kube.put({**pod, "status": {**pod["status"], "conditions": conditions}})
        ask.until(70)
        check("web-1 on node-1: unready" in ask.why(), ask.why())


@test("new replicas that load hold the present count; they are active")
def loading():
    with web(60, 60, 60) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(180)
        for i in (3, 4):
            cluster.kube.put(make_pod("ml", f"web-{i}", f"node-{i - 3}", "web", ready_s=None, created_s=5))
        cluster.kube.put(make_pod("ml", "web-5", "", "web", ready_s=None, created_s=5, phase="Pending"))
        cluster.kube.put(make_deployment("ml", "web", 6))
        ask.until(300)
        ask.stays(300, 1)
        for node in cluster.nodes:
            node.play(0, 0)
        wait_until(lambda: "value 0," in ask.why(), "the GPUs to be idle")
        check(ask.active(LOAD), "not active while replicas load")


@test("a pod on a node without an agent is missing, not idle")
def no_agent():
    with web(60, 60, 60) as cluster:
        hub = cluster.hub(agents=[node.agent.address for node in cluster.nodes[:2]])
        ask = hub.ask("ml", "web")
        ask.until(150)
        check("node node-2 has no agent" in ask.why(), ask.why())


@test("two hubs give the same answer; one started at the peak gives it as soon as it gives any")
def two_hubs():
    keys = load(window=15, activationWindow=60, activationThreshold=30)
    with web(20, 20, 20, metadata=keys) as cluster:
        first = cluster.hub().ask("ml", "web")
        first.until(60, keys)
        for node in cluster.nodes:
            node.play(90, 99)
        wait_until(lambda: first.answer(keys) > 120, "the window to be under way")
        other = cluster.hub(wait=False).ask("ml", "web")
        while (got := other.answer(keys)) == "UNAVAILABLE":
            pass
        want = first.answer(keys)
        check(abs(got - want) < 20, f"{got} of a new hub, {want} of the old one")
        check(other.active(keys) and first.active(keys), "not active on both")
        for node in cluster.nodes:
            node.play(0, 99)
        wait_until(lambda: first.answer(keys) < 60, "the window to be past the peak")
        check(abs(other.answer(keys) - first.answer(keys)) < 5, "they differ")
        check(other.active(keys) and first.active(keys), "the burst of the last minute is forgotten")
