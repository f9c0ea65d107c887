"""`call` and `probe` against a live agent on simulated GPUs, with and without TLS."""
import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import time

from agent import PROGRAM, Agent, check, free_port, wait_until
from program import environment, fails, run, succeeds
from suite import add, test

SCENARIO = "gpus: [{board: H100, utilization: 40, count: 2}, {board: A10, utilization: 70}]\n"

_lock = threading.Lock()
_shared = []


def shared():
    """One agent for the tests that only ask."""
    with _lock:
        if not _shared:
            _shared.append(Agent(SCENARIO))
        return _shared[0]


def stop_shared():
    for agent in _shared:
        with agent:
            pass


# ---- the questions ----

@test("call asks all that KEDA asks on a poll")
def call_all():
    out = succeeds("call", shared().address, "-m", "aggregation=sum", "-m", "window=0")
    check(out == "target   keda_gpu_metric = 80\nvalue    keda_gpu_metric = 150\nactive   true\n", out)


@test("call as JSON: one object a line, numbers as numbers, activity as a boolean")
def call_json():
    out = [json.loads(line) for line in succeeds("call", shared().address, "-o", "json", "-m", "window=0").splitlines()]
    check(out == [{"metric": "keda_gpu_metric", "target": 80}, {"metric": "keda_gpu_metric", "value": 70}, {"active": True}],
          str(out))


TEXTS = [
    (("spec",), r"^target   keda_gpu_metric = 80\n$"),
    (("spec", "-m", "profile=training"), r"^target   keda_gpu_training = 90\n$"),
    (("metrics", "-m", "window=0"), r"^value     = 70\n$|^value    keda_gpu_metric = 70\n$"),
    (("metrics", "--metric-name", "mine", "-m", "window=0"), r"^value    mine = 70\n$"),
    (("metrics", "-m", "metricType=power_draw", "-m", "aggregation=avg"), r"^value    keda_gpu_metric = \d+(\.\d{1,3})?\n$"),
    (("active", "-m", "activationThreshold=71"), r"^active   false\n$"),
    (("active", "-m", "activationThreshold=69", "-o", "json"), r'^{"active":true}\n$'),
    (("health",), r"^health   SERVING\n$"),
    (("health", "--service", "nvml"), r"^health   SERVING\n$"),
    (("health", "-o", "json"), r'^{"health":"SERVING"}\n$'),
    (("explain",), r"^trigger  keda_gpu_metric: max of gpu_utilization in scope node.*\nvalue    .*\nactive   yes"),
    (("--explain", "-m", "window=0"), r"^target .*\nvalue .*\nactive .*\ntrigger .*\n(.*\n)*input .*\n"),
    (("spec", "--namespace", "ns", "--name", "so"), r"^target "),
]


def says(arguments, pattern):
    out = succeeds("call", *arguments, shared().address)
    check(re.search(pattern, out), f"{pattern!r} does not match\n{out}")


for row in TEXTS:
    add(f"call {' '.join(row[0])}", says, *row)


@test("call takes the address first as well")
def address_first():
    check(succeeds("call", shared().address, "spec") == succeeds("call", "spec", shared().address), "differs")


@test("call explain as JSON has every documented field")
def explain_json():
    out = json.loads(succeeds("call", "explain", shared().address, "-o", "json", "-m", "profile=triton-inference"))
    check(out["profile"] == "triton-inference" and out["target"] == 75 and len(out["inputs"]) == 3, str(out))
    check(all(i["state"] == "measured" and i["ageSeconds"] < 5 for i in out["inputs"]), str(out["inputs"]))


@test("call stream-active says when, and ends after --for")
def stream_active():
    start = time.monotonic()
    out = succeeds("call", "stream-active", shared().address, "--for", "500ms")
    check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z active   true\n", out), repr(out))
    check(0.4 < time.monotonic() - start < 20, "--for did not end it")
    line = json.loads(succeeds("call", "stream-active", shared().address, "--for", "300ms", "-o", "json"))
    check(line["active"] is True and re.match(r"\d{4}-", line["time"]), str(line))


@test("call stream-spec shows the spec and what a reload makes of it")
def stream_spec():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("metrics: [{name: mine, targetValue: 11}]\n")
        file.flush()
        with Agent(SCENARIO, "--config", file.name) as agent:
            with subprocess.Popen([PROGRAM, "call", "stream-spec", agent.address, "-m", "metricName=mine", "-o", "json"],
                                  env=environment(), stdout=subprocess.PIPE, text=True) as process:
                check(json.loads(process.stdout.readline())["target"] == 11, "first spec")
                pathlib.Path(file.name).write_text("metrics: [{name: mine, targetValue: 12}]\n")
                agent.signal(1)
                check(json.loads(process.stdout.readline())["target"] == 12, "spec after the reload")
                process.terminate()


@test("a stream whose reader goes away ends at the next message")
def stream_reader_gone():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        with Agent(SCENARIO, "--config", file.name) as agent:
            with subprocess.Popen([PROGRAM, "call", "stream-spec", agent.address, "-m", "metricName=mine"], env=environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                process.stdout.readline()
                process.stdout.close()
                try:
                    for target in range(12, 42):  # a process that another test starts may hold the pipe for a moment
                        pathlib.Path(file.name).write_text(f"metrics: [{{name: mine, targetValue: {target}}}]\n")
                        agent.signal(1)
                        with contextlib.suppress(subprocess.TimeoutExpired):
                            process.wait(1)
                            break
                    check(process.poll() == 1 and not process.stderr.read(), f"status {process.returncode}")
                finally:
                    process.kill()


@test("call over a Unix socket")
def unix_socket():
    with tempfile.TemporaryDirectory() as folder:
        with Agent(SCENARIO, listen=(f"unix:{folder}/a.sock",)):
            check("target" in succeeds("call", "spec", f"unix:{folder}/a.sock"), "no answer")
            check(succeeds("probe", f"unix:{folder}/a.sock") == "SERVING\n", "not serving")


# ---- exit status: 64 + the gRPC code ----

def call_fails(status, pattern, *arguments):
    fails(status, pattern, arguments=("call", *arguments))


@test("call: a refused trigger ends with 67 and the server's sentence")
def refused():
    call_fails(67, 'INVALID_ARGUMENT: metadata key "profil" is not known; did you mean "profile"', shared().address, "-m",
               "profil=x")


@test("call: another service's health ends with 69, a precondition with 73")
def other_codes():
    call_fails(69, "NOT_FOUND: ", "health", shared().address, "--service", "nope")
    call_fails(73, "FAILED_PRECONDITION: no GPU matches gpuIndex 99", "metrics", shared().address, "-m", "gpuIndex=99")


@test("call: the answers before a failure are printed")
def partly():
    result = run("call", shared().address, "-m", "gpuIndex=99")
    check(result.status == 73 and result.out == "target   keda_gpu_metric = 80\n", str(result))


@test("call --explain: where there is no value, the explanation says why")
def explained_failure():
    result = run("call", shared().address, "-m", "gpuIndex=99", "--explain")
    check(result.status == 73 and "\nvalue    none: FAILED_PRECONDITION: no GPU matches gpuIndex 99" in result.out, str(result))
    check(len(result.err.splitlines()) == 1, result.err)
    result = run("call", "metrics", f"127.0.0.1:{free_port()}", "--explain")
    check(result.status == 78 and not result.out and len(result.err.splitlines()) == 1, str(result))


@test("call: nobody listens: 78")
def nobody():
    port = free_port()
    call_fails(78, f"127.0.0.1:{port}: UNAVAILABLE: cannot connect to 127.0.0.1:{port}: Connection refused",
               f"127.0.0.1:{port}")
    call_fails(78, "UNAVAILABLE: cannot connect to nosuchhost.invalid:1: ", "nosuchhost.invalid:1")


@test("call: nothing that answers within --timeout: 68")
def silent_server():
    import socket
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
        server.listen()
        start = time.monotonic()
        call_fails(68, "DEADLINE_EXCEEDED", f"127.0.0.1:{server.getsockname()[1]}", "--timeout", "300ms")
        check(time.monotonic() - start < 20, "took too long")


@test("call: not a gRPC server")
def not_grpc():
    import socket
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
        server.listen()

        def answer():
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                peer.recv(1000)
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        result = run("call", f"127.0.0.1:{server.getsockname()[1]}", "--timeout", "5s")
        check(result.status in (66, 77, 78) and not result.out and len(result.err.splitlines()) == 1, str(result))


# ---- no driver ----

@test("without a driver: spec answers, metrics say UNAVAILABLE, the process is healthy, nvml is not")
def no_driver():
    with Agent(None, library="/nonexistent/libnvidia-ml.so.1") as agent:
        agent.wait_driver(is_there=False)
        check("= 80" in succeeds("call", "spec", agent.address), "no spec")
        call_fails(78, "UNAVAILABLE: no GPU to read: driver no_library", "metrics", agent.address)
        check(succeeds("probe", agent.address) == "SERVING\n", "process")
        result = run("probe", agent.address, "--service", "nvml")
        check(result.status == 4 and result.out == "NOT_SERVING\n", str(result))


# ---- probe ----

PROBES = [
    ("serving", ("ADDRESS",), 0, r"^SERVING\n$"),
    ("the driver", ("ADDRESS", "--service", "nvml"), 0, r"^SERVING\n$"),
    ("an unknown service", ("ADDRESS", "--service", "nope"), 3, "^$"),
    ("a page", ("PROBE", "--http", "/readyz"), 0, r"^200 ok\n$"),
    ("a page with its query", ("PROBE", "--http", "/readyz?verbose"), 0,
     r"^200 \[\+\]loop ok\n\[\+\]serving ok\n\[\+\]nvml ok \(information only\)\n\[\+\]engine pages: 0 read, .*\nreadyz check passed\n$"),
    ("a page that is not there", ("PROBE", "--http", "/nope"), 4, r"^404 "),
    ("a page on the gRPC port", ("ADDRESS", "--http", "/livez"), 0, r"^200 ok\n$"),
    ("a path without its slash", ("PROBE", "--http", "readyz"), 2, "^$"),
    ("nobody", ("NOBODY",), 2, "^$"),
    ("nobody, a page", ("NOBODY", "--http", "/readyz"), 2, "^$"),
]


def probe(arguments, status, pattern):
    agent = shared()
    places = {"ADDRESS": agent.address, "PROBE": f"127.0.0.1:{agent.probe_port}", "NOBODY": f"127.0.0.1:{free_port()}"}
    result = run("probe", *(places.get(word, word) for word in arguments))
    check(result.status == status and re.search(pattern, result.out), str(result))
    check(bool(result.out) != bool(result.err), f"want stdout or stderr: {result}")


for row in PROBES:
    add(f"probe: {row[0]}", probe, *row[1:])


# ---- TLS ----

CERTIFICATES = tempfile.TemporaryDirectory(prefix="kgs-cli-tls-")


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], cwd=CERTIFICATES.name, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def certificates():
    """ca.pem, server.pem for localhost and 127.0.0.1, client.pem, other.pem (another CA), each with its key."""
    folder = pathlib.Path(CERTIFICATES.name)
    with _lock:
        if (folder / "client.pem").exists():
            return folder
        for name in ("ca", "other"):
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
        for name in ("server", "client"):
            (folder / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
            openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                    "-keyout", f"{name}.key", "-out", f"{name}.csr")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                    "-extfile", "ext", "-out", f"{name}.pem")
        return folder


@test("call and probe over TLS: trusted, not trusted, another name, not verified, plaintext")
def tls():
    folder = certificates()
    with Agent(SCENARIO, "--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server.key")) as agent:
        spec = "target   keda_gpu_metric = 80\n"
        check(succeeds("call", "spec", agent.address, "--tls-ca", folder / "ca.pem") == spec, "trusted")
        check(succeeds("call", "spec", agent.address, "--insecure") == spec, "not verified")
        check(succeeds("probe", agent.address, "--tls-ca", folder / "ca.pem") == "SERVING\n", "probe")
        call_fails(78, "certificate", "spec", agent.address, "--tls")
        call_fails(78, "certificate", "spec", agent.address, "--tls-ca", folder / "other.pem")
        call_fails(78, "(?i)host ?name|ip address|match", "spec", agent.address, "--tls-ca", folder / "ca.pem",
                   "--tls-server-name", "example.org")
        call_fails(78, "UNAVAILABLE", "spec", agent.address)


@test("call with a client certificate")
def mutual_tls():
    folder = certificates()
    with Agent(SCENARIO, "--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server.key"),
               "--tls-client-ca", str(folder / "ca.pem")) as agent:
        trust = ("--tls-ca", folder / "ca.pem")
        own = ("--tls-cert", folder / "client.pem", "--tls-key", folder / "client.key")
        check("= 80" in succeeds("call", "spec", agent.address, *trust, *own), "with a certificate")
        call_fails(78, "UNAVAILABLE", "spec", agent.address, *trust)


@test("wrong TLS files are named")
def tls_files():
    folder = certificates()
    address = f"127.0.0.1:{free_port()}"
    call_fails(1, "cannot read CA certificates /nonexistent: No such file", address, "--tls-ca", "/nonexistent")
    result = run("call", address, "--tls-cert", folder / "client.pem")
    check(result.status in (1, 2) and "tls-key" in result.err or "key" in result.err, str(result))
    result = run("call", address, "--tls-cert", folder / "client.pem", "--tls-key", folder / "server.key")
    check(result.status in (1, 2) and result.err, str(result))
    fails(1, "cannot start.*cannot read certificate /nonexistent", arguments=(
        "agent", "--listen", address, "--metrics-port", "0", "--probe-port", "0", "--tls-cert", "/nonexistent", "--tls-key",
        "/nonexistent"))


@test("an address in use is named")
def in_use():
    agent = shared()
    fails(1, f"cannot start.*{agent.port}.*(?i:in use)", arguments=("agent", "--listen", agent.address, "--metrics-port", "0",
                                                                    "--probe-port", "0"))


@test("--port 0 takes a free port and the log says which")
def port_zero():
    with Agent(SCENARIO, listen=("127.0.0.1:0",)) as agent:
        ports = re.findall(r"msg=listening address=127\.0\.0\.1:(\d+)", agent.log())
        check("0" not in ports and len(ports) == 4, str(ports))
        wait_until(lambda: run("probe", f"127.0.0.1:{ports[1]}").status == 0, "an answer on the free port")
