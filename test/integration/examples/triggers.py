"""The program's word on the examples' triggers: a hub (an agent where the example is for one) takes the metadata, and what
its lint says of the ScaledObject is what the head says."""
import http.client
import json
import os
import re
import subprocess
import tempfile
import threading

import agent
from agent import PROGRAM, SANITIZERS, TestFailure, check, free_port, wait_until
from examples import ALL, external, target_of, targets
from fake_kube import FakeKube
from suite import add, test

AN_AGENT = "an agent"
OBJECTS = ("Deployment", "StatefulSet", "ScaledObject")


def environment():
    mine = {k: v for k, v in os.environ.items() if not k.startswith("KEDA_GPU_SCALER_")}
    return {**mine, **SANITIZERS}


def scaled_objects():
    """(example, ScaledObject), those that ask us."""
    return [(e, s) for e in ALL for s in e.of_kind("ScaledObject") if external(s)]


class Hub:
    """A hub whose Service is in `service`, that follows an API server of ours with every example's target and
    ScaledObject; no agent, no pods."""

    def __init__(self, service):
        self._folder = tempfile.TemporaryDirectory(prefix="kgs-examples-")
        self.kube = FakeKube(token="secret").start()
        for example, scaled in scaled_objects():
            self._put(example, scaled)
        path = self._folder.name
        self.kube.write_kubeconfig(f"{path}/kubeconfig")
        port, self._pages, self._probe = free_port(), free_port(), free_port()
        self.address, self._log = f"127.0.0.1:{port}", f"{path}/log"
        with open(self._log, "wb") as log:
            self._process = agent.spawn([
                PROGRAM, "hub", f"--listen={self.address}", f"--metrics-listen=127.0.0.1:{self._pages}",
                f"--probe-listen=127.0.0.1:{self._probe}", f"--service-namespace={service}", f"--kubeconfig={path}/kubeconfig"],
                env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._is_ready, "the hub to have read the API")

    def _put(self, example, scaled):
        """Each ScaledObject in a namespace of its own, with its target, so that none is another's second scaler."""
        target = targets().get(target_of(scaled)) or {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": target_of(scaled)[2]},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}, "spec": {
                "containers": [{"name": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}}}
        for thing in (target, scaled):
            meta = {k: v for k, v in thing["metadata"].items() if k != "namespace"}
            self.kube.put({**thing, "metadata": {**meta, "namespace": namespace_of(example)}})

    def get(self, path, port=None):
        """(status, body); (0, ...) while nobody listens."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self._pages, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()

    def _is_ready(self):
        check(self._process.poll() is None, f"the hub ended: {open(self._log).read()[-2000:]}")
        return self.get("/readyz", self._probe)[0] == 200

    def workload(self, example, scaled):
        """What the hub's API says of one, once it knows it."""
        path = f"/api/v1/workloads/{namespace_of(example)}/{scaled['metadata']['name']}"

        def look():
            status, body = self.get(path)
            if status != 200:
                return None
            return json.loads(body)
        try:
            return wait_until(look, f"{path} to be there")
        except TestFailure as failure:
            raise TestFailure(f"{failure}; {self.get(path)}") from None

    def stop(self):
        self._process.terminate()
        status = self._process.wait(20)
        said = open(self._log).read()
        self.kube.stop()
        self._folder.cleanup()
        found = agent.SANITIZER.search(said)
        check(status == 0 and not found, f"the hub ended with {status}: {said[-3000:]}")


def namespace_of(example):
    return re.sub(r"[^a-z0-9]+", "-", example.name.removesuffix(".yaml"))


_lock, _hubs, _failed = threading.Lock(), {}, []


def hub(service="gpu-scaler"):
    with _lock:
        check(not _failed, "the hub did not come up: see the first test that asked for it")
        if service not in _hubs:
            _failed.append(True)
            _hubs[service] = Hub(service)
            _failed.clear()
        return _hubs[service]


def hub_of(metadata):
    """The one that the trigger's address names, as the chart names the Service."""
    name = re.fullmatch(r"keda-gpu-scaler\.([a-z-]+)\.svc\.cluster\.local:(?:6000|9090)", metadata["scalerAddress"])
    check(name, f"{metadata['scalerAddress']} is no address of the chart's Service")
    return hub(name[1])


def stop():
    for one in _hubs.values():
        one.stop()


def call(question, address, metadata):
    words = [w for key, value in metadata.items() for w in ("-m", f"{key}={value}")]
    return subprocess.run([PROGRAM, "call", question, address, *words, "--output=json"], capture_output=True, text=True,
                          check=False, env=environment(), timeout=60)


def accepted(example, scaled):
    """GetMetricSpec answers by the metadata alone."""
    for metadata in external(scaled):
        done = call("spec", hub_of(metadata).address, metadata)
        check(done.returncode == 0, f"{metadata}: status {done.returncode}: {done.stderr}")
        if "targetValue" in metadata:
            target = "100" if "," in metadata["targetValue"] else metadata["targetValue"]  # of several: % of their targets
            check(re.search(rf'[": ]{re.escape(target)}\b', done.stdout), f"{metadata}: {done.stdout}")


def linted(example, scaled):
    """The ids behind "Lint:" in the head are those that the hub finds; so nothing stands there that is not so, and
    nothing is left out."""
    said = example.says("Lint") or "nothing"
    if said == AN_AGENT:
        return
    answer = hub_of(external(scaled)[0]).workload(example, scaled)
    found = sorted({row["id"] for one in triggers_of(answer) for row in one["lint"]})
    wanted = [] if said == "nothing" else sorted(re.split(r", *", said))
    check(found == wanted, f"the head says {wanted}, the hub {found}: {json.dumps(answer)[:3000]}")


def triggers_of(answer):
    rows = answer.get("triggers", [])
    check(rows, f"no trigger of ours in {json.dumps(answer)[:2000]}")
    check(not answer.get("refused"), f"refused: {answer.get('refused')}")
    return [row.get("explanation", row) for row in rows]


for one, thing in scaled_objects():
    add(f"{one.name}: the program takes the trigger of {thing['metadata']['name']}", accepted, one, thing)
    add(f"{one.name}: lint says of {thing['metadata']['name']} what the head says", linted, one, thing)


REFUSED = [  # metadata, what the answer says; GetMetricSpec refuses it with INVALID_ARGUMENT
    ({"metricName": "gpu_memory_free", "targetValue": "20"}, "memory_used"),
    ({"metricType": "gpu_utilisation"}, "gpu_utilization"),
    ({"metricType": "gpu_utilization", "targetvalue": "80"}, "targetValue"),
]


def refused(metadata, word):
    done = call("spec", hub().address, metadata)
    check(done.returncode == 67 and word in done.stderr, f"status {done.returncode}: {done.stdout}{done.stderr}")


for row, text in REFUSED:
    add(f"refused, with {text} in the answer: {row}", refused, row, text)


ENGINES = ("vllm-inference", "vllm-queue-depth", "triton-queue-wait", "triton-request-rate")


@test("the profiles of engines' pages are in examples, and so are the keys of pages")
def engines():
    used = [metadata for example, scaled in scaled_objects() if not example.is_document for metadata in external(scaled)]
    lacking = set(ENGINES) - {metadata.get("profile") for metadata in used}
    check(not lacking, f"no example of {lacking}")
    keys = {"enginePort", "enginePath", "engineScheme", "engineMetric", "wakeEndpoint", "wakeMetric"}
    lacking = keys - {key for metadata in used for key in metadata}
    check(not lacking, f"no example of {lacking}")


@test("one-node.yaml is for an agent, and a hub says that it is not for it")
def one_node():
    [scaled] = [s for e, s in scaled_objects() if e.name == "one-node.yaml"]
    [metadata] = external(scaled)
    with agent.Agent('{"gpus": [{"board": "H100", "utilization": 90}, {"board": "H100", "utilization": 60}]}') as node:
        def value():
            done = call("metrics", node.address, {**metadata, "window": "0"})
            return done.returncode == 0 and re.search(r"\b150\b", done.stdout)
        wait_until(value, "the sum of both GPUs")
        done = call("explain", node.address, metadata)
        check(done.returncode == 0 and "never past" not in done.stdout, done.stdout + done.stderr)
        done = call("explain", node.address, {**metadata, "aggregation": "max"})
        check("never past 2 replicas" in done.stdout, done.stdout + done.stderr)
        done = call("metrics", node.address, {**metadata, "scope": "workload"})
        check(done.returncode == 73, f"scope workload at an agent: {done.returncode} {done.stdout}{done.stderr}")
    done = call("metrics", hub().address, metadata)
    check(done.returncode == 73 and "agent" in done.stderr, f"at a hub: {done.returncode} {done.stdout}{done.stderr}")
