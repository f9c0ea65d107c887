"""One agent under test, on a scenario of the simulated NVML: start, wait, look at its pages, stop. Every process that is
started here ends with the test, whatever happens to it."""
import atexit
import contextlib
import functools
import http.client
import os
import pathlib
import queue
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from cache import ROOT

BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
PROGRAM = pathlib.Path(os.environ.get("PROGRAM", ROOT / BUILD / "keda-gpu-scaler"))
NVMLSIM = pathlib.Path(os.environ.get("NVMLSIM", ROOT / BUILD / "nvmlsim" / "libnvidia-ml.so.1"))
PORTS = range(int(os.environ.get("KGS_TEST_PORT_BASE", "24000")), int(os.environ.get("KGS_TEST_PORT_BASE", "24000")) + 990)
PATIENCE_S = float(os.environ.get("KGS_TEST_PATIENCE", "30"))
SANITIZER = re.compile(r"(ERROR: \w+Sanitizer|runtime error:|SUMMARY: \w+Sanitizer).*")
SANITIZERS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


class TestFailure(AssertionError):
    """What a test says when it does not see what it must."""


def check(is_right, message):
    if not is_right:
        raise TestFailure(message)


def wait_until(look, what, patience_s=PATIENCE_S):
    """The first true answer of look(); fails with `what` and the last answer after patience_s."""
    deadline = time.monotonic() + patience_s
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            raise TestFailure(f"waited {patience_s:g} s for {what}; last seen: {seen!r}")
        time.sleep(0.05)


@functools.cache
def is_sanitized():
    """Is the program one with ASan, which is slower and takes more memory?"""
    return "libasan" in subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=False).stdout


# ---- processes ----

_children = set()
_orders = queue.Queue()


def _spawner():
    """Starts processes on a thread that lives as long as this program: the kernel ends them when it dies."""
    while True:
        command, options, answer = _orders.get()
        try:
            answer.put(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)], **options))
        except OSError as error:
            answer.put(error)


threading.Thread(target=_spawner, daemon=True).start()


def spawn(command, **options):
    """subprocess.Popen whose process does not outlive this one."""
    answer = queue.Queue()
    _orders.put((command, options, answer))
    process = answer.get()
    if isinstance(process, OSError):
        raise process
    _children.add(process)
    return process


@atexit.register
def _kill_children():
    for process in _children:
        if process.poll() is None:
            process.kill()
            process.wait()


_ports = list(PORTS)
random.shuffle(_ports)
_port_lock = threading.Lock()


def free_port():
    """A port of ours that nobody listens on, each once a run while they last."""
    with _port_lock:
        for _ in range(len(_ports)):
            port = _ports.pop()
            _ports.insert(0, port)
            with contextlib.suppress(OSError), socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
                return port
    raise TestFailure("no port is free")


# ---- the agent ----

class Agent:
    """A running agent. scenario: YAML text, or None for one without a driver (library: what it loads instead). program:
    the words that start it, where they are not PROGRAM."""

    def __init__(self, scenario, *flags, library=None, listen=(), env=None, interval="200ms", wait=True, program=(PROGRAM,)):
        self.folder = tempfile.TemporaryDirectory(prefix="kgs-")
        self.path = pathlib.Path(self.folder.name)
        self.port, self.metrics_port, self.probe_port = free_port(), free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.tls_context = None
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDA_GPU_SCALER_")}
        for name, value in SANITIZERS.items():
            environment.setdefault(name, value)
        if scenario is not None:
            self.play(scenario)
            environment["NVMLSIM_SCENARIO"] = str(self.path / "scenario.yaml")
            library = library or NVMLSIM
        environment.update(env or {})
        command = [*program, "agent", *(f"--listen={a}" for a in (self.address, *listen)),
                   f"--metrics-listen=127.0.0.1:{self.metrics_port}", f"--probe-listen=127.0.0.1:{self.probe_port}",
                   "--node-name=testnode", f"--sample-interval={interval}", "--slow-interval=1s"]
        command += [f"--nvml-library={library}"] if library else []
        self.log_file = open(self.path / "log", "wb")
        self.started = time.monotonic()
        self.process = spawn([*command, *flags], env=environment, stdin=subprocess.DEVNULL, stdout=self.log_file,
                             stderr=subprocess.STDOUT)
        try:
            wait_until(self._is_up, "the agent to listen")
            if scenario is not None and wait:
                self.wait_driver()
        except TestFailure as failure:
            text = self.log()[-2000:]
            self.kill()
            raise TestFailure(f"{failure}\n{text}") from None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        try:
            if self.process.poll() is None:
                self.stop()
            self.check_sanitizers()
        except TestFailure:
            if not kind:  # the first failure is the one to show
                raise
        finally:
            self.kill()

    def _is_up(self):
        check(self.process.poll() is None, f"the agent ended with {self.process.poll()}")
        try:
            return self.get("/livez", port=self.probe_port)[0] == 200
        except OSError:
            return False

    def play(self, scenario):
        """Write the scenario in one step, so that no half-written file is ever played."""
        temporary = self.path / "scenario.new"
        temporary.write_text(scenario)
        temporary.rename(self.path / "scenario.yaml")

    def wait_driver(self, is_there=True):
        sign = "[+]nvml" if is_there else "[-]nvml"
        wait_until(lambda: sign in self.get("/readyz?verbose", port=self.probe_port)[2].decode(), f"{sign} in /readyz")

    def get(self, path, port=None, method="GET", headers=None, patience_s=PATIENCE_S):
        """(status, headers in lower case, body) of an HTTP/1.1 request to the metrics port, or another one."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.metrics_port, timeout=patience_s)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()

    def page(self):
        """/metrics as {name: {label text: value}}."""
        families = {}
        for line in self.get("/metrics")[2].decode().splitlines():
            match = re.match(r'([a-zA-Z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (\S+)$', line)
            if match:
                families.setdefault(match[1], {})[match[2] or ""] = float(match[3])
        return families

    def metric(self, name, *labels):
        """Sum of the series of one name that have all these labels (`limit="connections"`); 0 if there are none."""
        return sum(v for text, v in self.page().get(name, {}).items() if all(label in text for label in labels))

    def limit_hits(self, limit):
        return self.metric("keda_gpu_scaler_limit_hits_total", f'limit="{limit}"')

    def rss_kb(self):
        """Resident memory that is not files."""
        return int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1])

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log(self):
        return (self.path / "log").read_text(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def wait_exit(self, patience_s=PATIENCE_S):
        """The exit status once the process has ended."""
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise TestFailure(f"the agent did not end within {patience_s:g} s\n{self.log()[-1500:]}") from None

    def stop(self):
        """SIGTERM; fails unless it ends with 0."""
        self.signal(signal.SIGTERM)
        status = self.wait_exit()
        self.check_sanitizers()
        check(status == 0, f"the agent ended with {status}\n{self.log()[-3000:]}")

    def check_sanitizers(self):
        text = self.log()
        found = SANITIZER.search(text)
        check(not found, found and text[max(0, found.start() - 500):found.start() + 8000])

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log_file.close()
        self.folder.cleanup()
