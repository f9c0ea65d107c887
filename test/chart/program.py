"""The program and the chart fit: what the chart renders, the program takes. Files that a pod would mount lie in a folder
of the test instead."""
import contextlib
import os
import pathlib
import re
import subprocess
import tempfile
import time

import agent
import chart
from agent import check
from chart import equal, template, with_set
from suite import add, test

ETC = "/etc/keda-gpu-scaler"


class Mounted:
    """The folder that stands for ETC, with what the pods of a rendering find there."""

    def __init__(self, rendered):
        self._folder = tempfile.TemporaryDirectory(prefix="kgs-chart-")
        self.path = pathlib.Path(self._folder.name)
        self.put("config", rendered.get("ConfigMap", "keda-gpu-scaler")["data"])
        scenario = rendered.find("ConfigMap", "keda-gpu-scaler-scenario")
        if scenario:
            self.put("scenario", scenario["data"])
        if rendered.find("Job"):
            self._make_certificates(rendered.args("Job"))

    def put(self, name, files):
        """Files of a ConfigMap or a Secret."""
        (self.path / name).mkdir()
        for key, text in files.items():
            (self.path / name / key).write_text(text)

    def _make_certificates(self, words):
        """What the Job does, into files."""
        mine = [w for w in words if not w.startswith(("--namespace=", "--secret=", "--ca-secret="))]
        done = subprocess.run([agent.PROGRAM, *mine, f"--out-dir={self.path / 'tls'}"], capture_output=True, text=True,
                              check=False, env=environment(), timeout=60)
        equal([done.returncode, done.stderr], [0, ""], "the Job's command")

    def here(self, words):
        return [word.replace(ETC, str(self.path)) for word in words]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()


def environment(**more):
    mine = {k: v for k, v in os.environ.items() if not k.startswith("KEDA_GPU_SCALER_")}
    return {**mine, **agent.SANITIZERS, **more}


def accepts(values):
    """Flags and configuration files are those of the program: it prints what it makes of them."""
    rendered = template(*(["-f", values] if values else []))
    kinds = ["DaemonSet"] + (["Deployment"] if rendered.find("Deployment") else [])
    with Mounted(rendered) as mounted:
        for kind in kinds:
            command = [agent.PROGRAM, *mounted.here(rendered.args(kind)), "--print-config"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(), timeout=60)
            equal([done.returncode, done.stderr], [0, ""], f"{kind}: status and complaint")
            for entry in rendered.config()["metrics"]:
                check(entry["name"] in done.stdout, f"{kind}: {entry['name']} is not in force:\n{done.stdout}")


add("the program takes its flags and file: default values", accepts, None)
for path in chart.CI_VALUES:
    add(f"the program takes its flags and file: {path.name}", accepts, path)


@test("the program takes the durations that the schema takes")
def durations_agree():
    rendered = with_set("agent.sampleInterval=1500ms", "hub.shutdownDelay=1m30s")
    with Mounted(rendered) as mounted:
        for kind in ("DaemonSet", "Deployment"):
            done = subprocess.run([agent.PROGRAM, *mounted.here(rendered.args(kind)), "--print-config"], capture_output=True,
                                  text=True, check=False, env=environment(), timeout=60)
            equal([done.returncode, done.stderr], [0, ""], kind)


FLAG_OF_PORT = re.compile(r"^--(port|metrics-port|probe-port)=(.*)")


@contextlib.contextmanager
def running(rendered, mounted, kind="DaemonSet", flags=(), keep_ports=False, node="n"):
    """A workload's container as a process, on ports of its own unless keep_ports: yields them by flag."""
    words, ports = [], {}
    for word in mounted.here(rendered.args(kind)):
        port = FLAG_OF_PORT.match(word)
        if port:
            ports[port[1]] = int(port[2]) if keep_ports else agent.free_port()
            word = f"--{port[1]}={ports[port[1]]}"
        words.append(f"--nvml-library={agent.NVMLSIM}" if word.startswith("--nvml-library") else word)
    env = {k: mounted.here([v])[0] for k, v in rendered.env(kind).items() if v}
    with open(mounted.path / f"{kind}.log", "wb") as log:
        process = agent.spawn([agent.PROGRAM, *words, *flags], env=environment(NODE_NAME=node, POD_NAME=kind.lower(), **env),
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield ports
    finally:
        process.terminate()
        process.wait(20)


def probe(*words):
    return subprocess.run([agent.PROGRAM, "probe", *words], capture_output=True, text=True, check=False, env=environment(),
                          timeout=60)


def await_probe(*words):
    deadline = time.monotonic() + agent.PATIENCE_S
    while True:
        done = probe(*words)
        if done.returncode == 0 or time.monotonic() > deadline:
            equal(done.returncode, 0, f"probe {' '.join(words)}: {done.stderr}")
            return
        time.sleep(0.1)


@test("mockMode: an agent as the chart starts it shows the scenario's GPUs on /metrics")
def mock_metrics():
    import urllib.request

    rendered = with_set("mockMode.enabled=true")
    with Mounted(rendered) as mounted, running(rendered, mounted) as ports:
        await_probe(f"127.0.0.1:{ports['port']}")

        def gpus():
            page = urllib.request.urlopen(f"http://127.0.0.1:{ports['metrics-port']}/metrics", timeout=10).read().decode()
            return len(re.findall(r"^keda_gpu_scaler_gpu_up\{.*\} 1$", page, re.MULTILINE)) == 8 and page
        page = agent.wait_until(gpus, "8 GPUs on /metrics")
        for family in ("gpu_memory_used", "gpu_utilization"):
            check(re.search(rf"^{family}[{{ ]", page, re.MULTILINE), f"{family}: not on /metrics")
        for path in ("/livez", "/readyz"):
            await_probe(f"127.0.0.1:{ports['probe-port']}", f"--http={path}")


@test("tls.mode selfSigned: an agent as the chart starts it passes the chart's own test")
def tls_passes_helm_test():
    rendered = with_set("tls.mode=selfSigned", "mockMode.enabled=true")
    words = rendered.get("Pod")["spec"]["containers"][0]["args"]
    host = words[1].rpartition(":")[0]
    with Mounted(rendered) as mounted, running(rendered, mounted) as ports:
        address = f"127.0.0.1:{ports['port']}"
        await_probe(address, *mounted.here(words[2:]), f"--tls-server-name={host}")
        [name] = [a.partition("=")[2] for a in rendered.args("Deployment") if a.startswith("--agents-tls-server-name")]
        await_probe(address, *mounted.here(words[2:]), f"--tls-server-name={name}")
        equal(probe(address, *mounted.here(words[2:]), "--tls-server-name=other.gpu.svc").returncode, 2, "another name")
        equal(probe(address).returncode, 2, "without TLS")
        await_probe(f"127.0.0.1:{ports['probe-port']}")


@test("tls.clientCA: agents take the hub's certificate, and nobody without one")
def agents_take_hubs():
    rendered = with_set("tls.mode=selfSigned", "tls.clientCA.secretName=keda", "mockMode.enabled=true")
    flags = dict(a.lstrip("-").partition("=")[::2] for a in rendered.args("Deployment") if a.startswith("--agents-tls-"))
    with Mounted(rendered) as mounted, running(rendered, mounted) as ports:
        words = mounted.here(f"--{name.removeprefix('agents-')}={value}" for name, value in flags.items())
        await_probe(f"127.0.0.1:{ports['port']}", *words)
        without = [w for w in words if not w.startswith(("--tls-cert", "--tls-key"))]
        check(probe(f"127.0.0.1:{ports['port']}", *without).returncode != 0, "asked without a certificate")


@test("helm test asks the Service's own address, and the metrics port where gRPC wants a certificate that it has not")
def helm_test_address():
    def words(*pairs):
        return with_set(*pairs).get("Pod")["spec"]["containers"][0]["args"]
    equal(words(), ["probe", "keda-gpu-scaler.gpu.svc:6000"], "default")
    client = ["tls.mode=selfSigned", "tls.clientCA.secretName=keda"]
    equal(words(*client), ["probe", "keda-gpu-scaler.gpu.svc:9090", "--http=/livez"], "client certificates")
    check(with_set(*client, "tls.metrics=true").find("Pod") is None, "there is nothing left to ask, and yet a test")
