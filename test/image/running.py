"""The programs in the images, run: as user 65532 without capabilities on a read-only root, or by qemu where the architecture
is another one."""
import datetime
import json
import tempfile
import time

from agent import TestFailure, check, wait_until
from fake_kube import FakeKube
from image import NATIVE, NVMLSIM, TRIPLETS, UID, VERSION, Daemon, image
from suite import add, test

SCENARIO = json.dumps({"gpus": [{"board": "H100", "utilization": 40}, {"board": "H100", "utilization": 60}]})
LOAD = {"scalerAddress": "keda-gpu-scaler.gpu-scaler.svc:6000", "metricType": "gpu_utilization", "metricName": "load",
        "targetValue": "50", "window": "0", "activationWindow": "0"}
QUESTION = [word for key, value in LOAD.items() for word in ("-m", f"{key}={value}")]


def agent(one, *flags):
    return Daemon(one, "agent", f"--nvml-library={NVMLSIM}", "--node-name=node-0", "--sample-interval=200ms",
                  "--pod-resources=/nowhere/kubelet.sock", *flags, files={"scenario.yaml": SCENARIO},
                  variables=["NVMLSIM_SCENARIO={path}/scenario.yaml"])


def ask(one, daemon, *words):
    """KEDA's questions by the program's own `call`, from the same image: (exit status, {"target": , "value": , "active": })
    or, where that is not 0, (exit status, text)."""
    status, output = one.run("call", daemon.address, *QUESTION, "--output=json", *words)
    if status != 0:
        return status, output
    return status, {key: value for line in output.splitlines() for key, value in json.loads(line).items()}


def wait_value(one, daemon, *wanted, words=()):
    """Wait until the value is one of these; the target is the trigger's, and it is active."""
    def look():
        nonlocal seen
        seen = ask(one, daemon, *words)
        return seen[0] == 0 and seen[1]["value"] in wanted
    seen = None
    try:
        wait_until(look, f"a value of {wanted}")
    except TestFailure as failure:
        raise TestFailure(f"{failure}; {seen}") from None
    check(seen[1]["target"] == 50 and seen[1]["active"] is True, f"{seen}")


def runs(arch):
    one = image(arch)
    status, output = one.run("version")
    check(status == 0 and output.startswith(f"keda-gpu-scaler {VERSION} "), f"{status} {output}")
    status, output = one.run("/usr/bin/gpu-metrics", "--help", entrypoint=False)
    check(status == 0 and "gpu-metrics" in output, f"{status} {output}")


def answers(arch):
    """KEDA's questions to an agent on simulated GPUs, a probe, its metrics, an orderly end."""
    one = image(arch)
    with agent(one) as daemon:
        daemon.wait_driver()
        wait_value(one, daemon, 60, words=("-m", "aggregation=max"))
        status, output = one.run("probe", daemon.address)
        check(status == 0, f"probe: {status} {output}")
        status, output = one.run("probe", f"127.0.0.1:{daemon.probe_port}", "--http=/readyz")
        check(status == 0, f"probe of /readyz: {status} {output}")
        check(daemon.metric("keda_gpu_scaler_build_info") >= 1, "no build information among the metrics")


for architecture in TRIPLETS:
    add(f"{architecture}: the program and its other name run", runs, architecture)
    add(f"{architecture}: an agent on simulated GPUs answers, is probed and ends", answers, architecture)


@test("an agent needs no privilege: user 65532, no capability, none to be had, a root that it cannot write")
def unprivileged():
    with agent(image(NATIVE)) as daemon:
        daemon.wait_driver()
        check(daemon.status_field("Uid") == [str(UID)] * 4 and daemon.status_field("Gid") == [str(UID)] * 4, "user or group")
        check(daemon.status_field("Groups") == [] and daemon.status_field("NoNewPrivs") == ["1"], "groups or privileges")
        check(int(daemon.status_field("CapEff")[0], 16) == int(daemon.status_field("CapPrm")[0], 16) == 0, "capabilities")
        mounts = open(f"/proc/{daemon.process.pid}/mountinfo", encoding="utf-8").read().splitlines()
        check(any(line.split()[4] == "/" and "ro" in line.split()[5].split(",") for line in mounts), "\n".join(mounts))


@test("an agent without a driver says so, lives on and gives no value")
def no_driver():
    one = image(NATIVE)
    with Daemon(one, "agent", "--node-name=node-0", "--pod-resources=/nowhere/kubelet.sock") as daemon:
        wait_until(lambda: "no_library" in daemon.log(), "the log to say that there is no library")
        check(daemon.get("/livez", port=daemon.probe_port)[0] == 200, "it is not alive")
        status, output = ask(one, daemon)
        check(status == 78, f"{status} {output}")


def cluster(kube):
    """ml/web with one pod on the agent's node."""
    then = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=900)).strftime("%Y-%m-%dT%H:%M:%SZ")
    named = lambda name, **more: {"namespace": "ml", "name": name, **more}  # noqa: E731
    kube.put({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named("web"),
              "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}}, "status": {"replicas": 1}})
    kube.put({"apiVersion": "v1", "kind": "Pod", "metadata": named("web-0", labels={"app": "web"}, creationTimestamp=then),
              "spec": {"nodeName": "node-0", "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
              "status": {"phase": "Running", "podIP": "10.0.0.1",
                         "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": then}],
                         "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": then}}}]}})
    kube.put({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": named("keda-hpa-web"),
              "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 1,
                       "maxReplicas": 9, "metrics": [{"type": "External", "external": {
                           "metric": {"name": "s0-load"}, "target": {"type": "AverageValue", "averageValue": "50"}}}]},
              "status": {"desiredReplicas": 1}})
    kube.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": named("web"),
              "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "external", "metadata": LOAD}]},
              "status": {"hpaName": "keda-hpa-web"}})


@test("a hub needs no driver: it reads the API, hears the agent and answers for the workload")
def hub():
    one = image(NATIVE)
    with FakeKube(token="secret", bookmark_s=5.0) as kube, agent(one) as node:
        cluster(kube)
        with Daemon(one, "hub", "--kubeconfig={path}/kubeconfig", f"--agents={node.address}", "--service-namespace=gpu-scaler",
                    files={"kubeconfig": kube.kubeconfig()}) as daemon:
            wait_until(lambda: daemon.get("/readyz", port=daemon.probe_port)[0] == 200, "the hub to be ready")
            wait_value(one, daemon, 40, 60, words=("--namespace=ml", "--name=web"))
            status, output = one.run("probe", daemon.address)
            check(status == 0, f"probe: {status} {output}")
            check("libnvidia-ml" not in daemon.log(), daemon.log())


@test("the Job of the chart's certificates: with what a pod is given, and nothing that it may write, it makes the Secrets")
def certificates():
    one = image(NATIVE)
    with tempfile.TemporaryDirectory() as folder, FakeKube(token="secret", tls_dir=folder + "/tls") as kube:
        variables = kube.write_service_account(folder + "/account", ns="gpu")
        options = {"show": [f"{folder}/account:/run/secrets/kubernetes.io/serviceaccount"],
                   "variables": [f"{name}={value}" for name, value in variables.items()]}
        words = ("cert", "--secret=tls", "--name=keda-gpu-scaler.gpu.svc")
        status, output = one.run(*words, **options)
        check(status == 0 and output.startswith("made: "), f"{status} {output}")
        check(kube.find("secrets", "gpu", "tls") and kube.find("secrets", "gpu", "tls-ca"), "no Secrets in the pod's namespace")
        status, output = one.run(*words, **options)
        check(status == 0 and output.startswith("kept: "), f"{status} {output}")


@test("nothing of it is slow: a probe of a container starts, asks and ends within a second", alone=True)
def probe_is_quick():
    one = image(NATIVE)
    with agent(one) as daemon:
        start = time.monotonic()
        status, output = one.run("probe", daemon.address)
        took = time.monotonic() - start
        check(status == 0 and took < 1, f"{status} {output} in {took:.2f} s")
