"""Servers under measurement: start, wait, read what the kernel counts of them, stop. Whatever is started here ends with
the run."""
import atexit
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
PROGRAM = pathlib.Path(os.environ.get("PROGRAM", ROOT / BUILD / "keda-gpu-scaler")).resolve()
NVMLSIM = pathlib.Path(os.environ.get("NVMLSIM", ROOT / BUILD / "nvmlsim" / "libnvidia-ml.so.1")).resolve()
PORT_BASE = int(os.environ.get("KGS_BENCH_PORT_BASE", "25200"))
HOST = "127.0.0.1"

class Failure(Exception):
    """A figure that cannot be measured: counted as failed, the others go on."""


_children = []
_next_port = [PORT_BASE]
folder = pathlib.Path(tempfile.mkdtemp(prefix="kgs-bench-"))


@atexit.register
def _clean_up():
    for child in _children:
        if child.poll() is None:
            child.kill()
            child.wait()
    shutil.rmtree(folder, ignore_errors=True)


def free_port():
    while True:
        _next_port[0] += 1
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, _next_port[0]))
            return _next_port[0]


def wait_for_port(port, child, patience_s=20):
    deadline = time.monotonic() + patience_s
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection((HOST, port), 1).close()
            return
        if child.poll() is not None or time.monotonic() > deadline:
            raise Failure(f"{child.args[0]} does not listen on port {port}")
        time.sleep(0.02)


class Server:
    """A process that listens on `port`."""

    def __init__(self, command, port, **environment):
        self.port, self.address = port, (HOST, port)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEDA_GPU_SCALER_", "NVMLSIM_"))}
        self.log = open(folder / f"{port}.log", "wb")
        self.child = subprocess.Popen([str(word) for word in command], env={**clean, **environment},
                                      stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        _children.append(self.child)
        self.started = time.monotonic()
        self.pid = self.child.pid

    def __enter__(self):
        wait_for_port(self.port, self.child)
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.child.kill()
        self.child.wait()
        self.log.close()

    def cpu_s(self):
        """User and system time of the process, all threads."""
        try:
            tasks = pathlib.Path(f"/proc/{self.pid}/task").iterdir()
            return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
        except FileNotFoundError:  # a kernel without schedstat: ticks
            words = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def private_dirty_mb(self):
        text = pathlib.Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Private_Dirty:\s+(\d+) kB", text, re.M)[1]) / 1024


def agent(scenario=None, *flags, library=NVMLSIM):
    """An agent on a scenario (YAML text), or without any NVML library."""
    port, environment = free_port(), {}
    if scenario:
        path = folder / f"{port}.yaml"
        path.write_text(scenario)
        environment["NVMLSIM_SCENARIO"] = str(path)
    return Server([PROGRAM, "agent", "--listen", f"{HOST}:{port}", "--metrics-port", "0", "--probe-port", "0",
                   "--log-level", "error", "--nvml-library", library if scenario else folder / "no-such-library",
                   *flags], port, **environment)


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: bench
contexts: [{{name: bench, context: {{cluster: bench, user: bench, namespace: gpu-scaler}}}}]
clusters: [{{name: bench, cluster: {{server: "http://{}:{}"}}}}]
users: [{{name: bench, user: {{token: secret}}}}]
"""


def kube(workloads, agents, agent_port, pods=16):
    """The API server of bench_kube.py."""
    port, program = free_port(), ROOT / "test" / "bench" / "bench_kube.py"
    return Server([sys.executable, program, port, workloads, agents, agent_port, pods], port)


def hub(api, *flags):
    """A hub of that API server's cluster."""
    port = free_port()
    kubeconfig = folder / f"{port}.kubeconfig"
    kubeconfig.write_text(KUBECONFIG.format(HOST, api.port))
    return Server([PROGRAM, "hub", "--listen", f"{HOST}:{port}", "--metrics-port", "0", "--probe-port", "0", "--log-level",
                   "error", "--kubeconfig", kubeconfig, *flags], port)


def prefer(pid=0):
    """What is measured comes before what others do on this machine, where that is allowed."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))


def page(server, path="/metrics"):
    with urllib.request.urlopen(f"http://{HOST}:{server.port}{path}", timeout=10) as answer:
        return answer.read().decode()


def metric(server, name):
    """Sum of a family's samples on /metrics."""
    return sum(float(m[1]) for m in re.finditer(rf"^{name}(?:{{[^\n]*}})? (\S+)", page(server), re.M))


def wait_until(look, what, patience_s=30):
    deadline = time.monotonic() + patience_s
    while not look():
        if time.monotonic() > deadline:
            raise Failure(f"waited {patience_s} s for {what}")
        time.sleep(0.1)


def h2load(server, path, body, *flags, clients=10, streams=10, n=100_000):
    """A run of h2load; all n requests must have been answered. Returns its output."""
    command = ["h2load", f"-c{clients}", f"-m{streams}", f"-n{n}", "-d", str(body), *flags,
               "-H", "content-type: application/grpc", "-H", "te: trailers", f"http://{HOST}:{server.port}{path}"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if f" {n} succeeded" not in output:
        raise Failure(f"not every request was answered\n{output}")
    return output
