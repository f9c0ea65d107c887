"""A cluster in small: simulated nodes with an agent and a kubelet each, an API server of ours, and hubs that answer for
them. What a test puts into it is plain: workloads with pods on GPUs of nodes."""
import contextlib
import datetime
import json
import os
import subprocess
import tempfile
import pathlib
import time

from agent import NVMLSIM, PATIENCE_S, PROGRAM, SANITIZERS, Agent, TestFailure, check, free_port, spawn, wait_until
from fake_kube import FakeKube
from kubelet import Kubelet, container, pod
from scaler import Scaler, grpc, pb, refused

SERVICE, SERVICE_NS = "keda-gpu-scaler", "gpu-scaler"
ADDRESS = f"{SERVICE}.{SERVICE_NS}.svc:6000"
LOAD = {"scalerAddress": ADDRESS, "metricType": "gpu_utilization", "metricName": "load", "targetValue": "50", "window": "0",
        "activationWindow": "0"}


def load(**more):
    """Metadata of a trigger on utilisation that looks at the newest readings, with other keys."""
    return {**LOAD, **{key: str(value) for key, value in more.items()}}


def ago(seconds=0.0):
    """A time of the API."""
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


def uuid_of(node, index):
    return f"GPU-{node:08d}-0000-4000-8000-{index:012d}"


def scenario(node, *gpus, **more):
    """One H100 for each: its utilisation, or a dict of keys."""
    lines = []
    for index, gpu in enumerate(gpus):
        keys = gpu if isinstance(gpu, dict) else {"utilization": gpu}
        lines.append({"board": "H100", "uuid": uuid_of(node, index), **keys})
    return json.dumps({"gpus": lines, **more})


# ---- objects ----

def make_pod(ns, name, node, app, gpus=1, ready_s=500.0, created_s=900.0, **status):
    """A pod that has been Ready for so long; None: not Ready yet. More keys of its status as they are."""
    conditions = [] if ready_s is None else \
        [{"type": "Ready", "status": "True", "lastTransitionTime": ago(ready_s)}]
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": ns, "name": name, "labels": {"app": app}, "creationTimestamp": ago(created_s)},
            "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"limits": limits}}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions,
                       "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": ago(created_s - 10)}}}],
                       **status}}


def make_hpa(ns, name, metric="load", target=50, kind="AverageValue", **spec):
    key = "value" if kind == "Value" else "averageValue"
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"namespace": ns, "name": f"keda-hpa-{name}"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                     "minReplicas": 1, "maxReplicas": 50,
                     "metrics": [{"type": "External", "external": {
                         "metric": {"name": f"s0-{metric}"}, "target": {"type": kind, key: str(target)}}}], **spec},
            "status": {"desiredReplicas": 1}}


def make_scaled_object(ns, name, metadata, kind="external", **spec):
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"namespace": ns, "name": name},
            "spec": {"scaleTargetRef": {"name": name}, "triggers": [{"type": kind, "metadata": metadata}], **spec},
            "status": {"hpaName": f"keda-hpa-{name}"}}


def make_deployment(ns, name, replicas):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": ns, "name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}, "status": {"replicas": replicas}}


# ---- programs ----

class Hub(Agent):
    """A running hub: everything that an agent under test can be asked, and KEDA's calls."""

    def __init__(self, *flags, env=None):  # pylint: disable=super-init-not-called
        self.folder = tempfile.TemporaryDirectory(prefix="kgs-")
        self.path = pathlib.Path(self.folder.name)
        self.port, self.metrics_port, self.probe_port = free_port(), free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDA_GPU_SCALER_")}
        environment.update(SANITIZERS)
        environment.update(env or {})
        self.log_file = open(self.path / "log", "wb")
        self.process = spawn([PROGRAM, "hub", f"--listen={self.address}", f"--metrics-listen=127.0.0.1:{self.metrics_port}",
                              f"--probe-listen=127.0.0.1:{self.probe_port}", f"--service-namespace={SERVICE_NS}", *flags],
                             env=environment, stdin=subprocess.DEVNULL, stdout=self.log_file, stderr=subprocess.STDOUT)
        self._scalers = {}
        try:
            wait_until(self._is_up, "the hub to listen")
        except TestFailure as failure:
            text = self.log()[-2000:]
            self.kill()
            raise TestFailure(f"{failure}\n{text}") from None

    def kill(self):
        for scaler in self._scalers.values():
            scaler.channel.close()
        self._scalers = {}
        super().kill()

    def ask(self, ns, name):
        """KEDA's calls about one ScaledObject."""
        if (ns, name) not in self._scalers:
            self._scalers[ns, name] = Asker(self.address, ns, name)
        return self._scalers[ns, name]

    def api(self, path):
        """A page of the API as JSON."""
        status, headers, body = self.get(f"/api/v1/{path}")
        check(status == 200 and headers["content-type"] == "application/json", f"{path}: {status} {headers} {body[:300]}")
        return json.loads(body)

    def text(self, path):
        status, headers, body = self.get(f"/api/v1/{path}?output=text")
        check(status == 200 and headers["content-type"].startswith("text/plain"), f"{path}: {status} {headers}")
        return body.decode()

    def is_ready(self):
        return self.get("/readyz", port=self.probe_port)[0] == 200

    def wait_ready(self):
        wait_until(self.is_ready, "the hub to be ready")

    def states(self):
        """{address of an agent: its state}."""
        return {node["address"]: node["state"] for node in self.api("nodes")["nodes"]}


class Asker(Scaler):
    """Scaler for one ScaledObject, with answers that cannot be errors in between."""

    def __init__(self, address, ns, name):
        super().__init__(address)
        self.ns, self.name = ns, name

    def ref(self, metadata, name=""):  # pylint: disable=arguments-differ
        return pb.ScaledObjectRef(name=self.name, namespace=self.ns, scalerMetadata=metadata or {})

    def answer(self, metadata=LOAD):
        """The value, or the name of the error's code."""
        try:
            return round(self.value(metadata), 3)
        except grpc.RpcError as error:
            return error.code().name

    def until(self, want, metadata=LOAD, patience_s=PATIENCE_S):
        """Wait until this is the answer (for a value: within 0.5)."""
        def look():
            self.last = self.answer(metadata)
            if isinstance(want, str) or isinstance(self.last, str):
                return self.last == want
            return abs(self.last - want) <= 0.5
        try:
            wait_until(look, f"{want}", patience_s)
        except TestFailure as failure:
            raise TestFailure(f"{failure}; the last answer is {self.last}; {self.why(metadata)}") from None

    def stays(self, want, seconds, metadata=LOAD):
        """Nothing else is answered for so long. want: a value, the name of a code, or a condition."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            got = self.answer(metadata)
            good = want(got) if callable(want) else got == want if isinstance(want, str) or isinstance(got, str) else \
                abs(got - want) <= 0.5
            if not good:
                raise TestFailure(f"want {want}, got {got}; {self.why(metadata)}")
            time.sleep(0.1)

    def why(self, metadata=LOAD):
        """The explanation, or why there is none."""
        try:
            return self.explain(metadata)
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"


class Node:
    """One node: a simulated driver, a kubelet, an agent. The number is in its name and in the UUIDs of its GPUs."""

    def __init__(self, number, gpus, flags=(), has_kubelet=True):
        self.number, self.name = number, f"node-{number}"
        self.kubelet = Kubelet() if has_kubelet else None
        self.gpus, self.flags, self.agent = list(gpus), list(flags), None

    def start(self):
        where = self.kubelet.path if self.kubelet else "/nowhere/kubelet.sock"
        self.agent = Agent(scenario(self.number, *self.gpus), f"--node-name={self.name}", f"--pod-resources={where}",
                           *self.flags)

    def play(self, *gpus):
        """Other loads from now on."""
        self.gpus = list(gpus)
        self.agent.play(scenario(self.number, *gpus))

    def holds(self, ns, name, *indices, shares=False):
        """The kubelet lists these GPUs (or device ids) as the pod's."""
        ids = [uuid_of(self.number, i) if isinstance(i, int) else i for i in indices]
        if shares:
            ids = [f"{one}::{len(self.kubelet.pods)}" for one in ids]
        self.kubelet.pods = self.kubelet.pods + [pod(ns, name, container("main", *ids))]

    def releases(self, name):
        self.kubelet.pods = [p for p in self.kubelet.pods if p.name != name]

    def stop(self):
        if self.agent:
            self.agent.kill()
        if self.kubelet:
            self.kubelet.__exit__()


class Cluster:
    """As a context: everything in it ends with the test, and no sanitizer may have said a word."""

    def __init__(self, *nodes, has_kubelet=True, flags=()):
        self.kube = FakeKube(token="secret", bookmark_s=5.0)
        self.nodes = [Node(i, gpus, flags, has_kubelet) for i, gpus in enumerate(nodes)]
        self.folder = tempfile.TemporaryDirectory(prefix="kgs-")
        self.kubeconfig = f"{self.folder.name}/kubeconfig"
        self._stack = contextlib.ExitStack()
        self._agents = []

    def __enter__(self):
        self.kube.start()
        self.kube.write_kubeconfig(self.kubeconfig)
        return self

    def __exit__(self, kind, error, trace):
        try:
            self._stack.__exit__(kind, error, trace)
            for agent in self._agents:
                agent.check_sanitizers()
        except TestFailure:
            if not kind:
                raise
        finally:
            for node in self.nodes:
                node.stop()
            self.kube.stop()
            self.folder.cleanup()

    def start_agents(self):
        for node in self.nodes:
            node.start()
            self._agents.append(node.agent)

    def hub(self, *flags, agents=None, env=None, wait=True):
        """Another hub, of all agents unless some are named."""
        where = [node.agent.address for node in self.nodes] if agents is None else agents
        hub = self._stack.enter_context(Hub(f"--kubeconfig={self.kubeconfig}", *(f"--agents={a}" for a in where), *flags,
                                            env=env))
        if wait:
            hub.wait_ready()
        return hub

    def workload(self, name, pods, ns="ml", metadata=LOAD, hpa=(), replicas=None, gpus=None, **spec):
        """Deployment, HPA, ScaledObject and pods. pods: {name: (node, index of a GPU, ...)}; the kubelets list them."""
        self.kube.put(make_deployment(ns, name, len(pods) if replicas is None else replicas))
        self.kube.put(make_hpa(ns, name, **dict(hpa)))
        for one, (node, *indices) in pods.items():
            self.pod(ns, one, node, name, *indices, gpus=gpus)
        self.kube.put(make_scaled_object(ns, name, metadata, **spec))

    def pod(self, ns, name, node, app, *indices, gpus=None, **more):
        self.kube.put(make_pod(ns, name, f"node-{node}", app, gpus=len(indices) if gpus is None else gpus, **more))
        if indices:
            self.nodes[node].holds(ns, name, *indices)


@contextlib.contextmanager
def web(*loads, busy=99, **spec):
    """ml/web with a pod on GPU 0 of each node at these loads; GPU 1 of each is another tenant's. Agents run."""
    with Cluster(*([one, busy] for one in loads)) as cluster:
        cluster.workload("web", {f"web-{i}": (i, 0) for i in range(len(loads))}, **spec)
        for node in cluster.nodes:
            node.holds("other", f"train-{node.number}", 1)
        cluster.start_agents()
        yield cluster


__all__ = ["ADDRESS", "Agent", "Asker", "Cluster", "Hub", "LOAD", "NVMLSIM", "Node", "PROGRAM", "SERVICE_NS", "TestFailure",
           "ago", "check", "free_port", "grpc", "load", "make_deployment", "make_hpa", "make_pod", "make_scaled_object",
           "refused", "scenario", "uuid_of", "wait_until", "web"]
