"""Start, signals, configuration, logs and exit codes."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

from agent import PROGRAM, SANITIZERS, Agent, check, free_port, spawn, wait_until
from scaler import Scaler
from suite import add, test

SCENARIO = "gpus: [{board: A100-40, utilization: 60}]\n"


def run(*words, env=None, patience_s=30):
    """(exit status, output) of the program run to its end."""
    result = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=patience_s, check=False,
                            env={**os.environ, **SANITIZERS, **(env or {})})
    return result.returncode, result.stdout + result.stderr


# ---- SIGTERM and SIGINT ----


def drains(number):
    with Agent(SCENARIO) as agent, Scaler(agent.address) as scaler:
        streams = [scaler.stream_active({}) for _ in range(50)] + [scaler.watch() for _ in range(50)]
        for stream in streams:
            next(stream)
        silent = [socket.create_connection(("127.0.0.1", agent.port)) for _ in range(20)]
        start = time.monotonic()
        agent.signal(number)
        check(agent.wait_exit() == 0, "not 0")
        check(time.monotonic() - start < 5, f"took {time.monotonic() - start:.1f} s")
        for connection in silent:
            connection.close()


for number in (signal.SIGTERM, signal.SIGINT):
    add(f"{number.name} drains 100 open streams and 20 silent connections and exits 0 within 5 s", drains, number)


@test("a second SIGTERM ends at once")
def second_signal():
    with Agent(SCENARIO, "--shutdown-delay=60s", "--drain-timeout=90s") as agent:
        agent.signal(signal.SIGTERM)
        wait_until(lambda: "draining" in agent.log(), "the drain")
        start = time.monotonic()
        agent.signal(signal.SIGTERM)
        check(agent.wait_exit() == 0, "not 0")
        check(time.monotonic() - start < 2, f"took {time.monotonic() - start:.1f} s")


@test("a peer that never reads does not hold up the end")
def deaf_peer():
    with Agent(SCENARIO, "--drain-timeout=2s") as agent:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", agent.metrics_port))
        deaf.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        time.sleep(0.5)
        start = time.monotonic()
        agent.signal(signal.SIGTERM)
        check(agent.wait_exit() == 0, "not 0")
        check(time.monotonic() - start < 5, f"took {time.monotonic() - start:.1f} s")
        deaf.close()


# ---- reload ----


@test("SIGHUP: a good file is taken, a bad one refused with its place, and the old one stays")
def reload():
    with Agent(SCENARIO, "--config", "/dev/null") as agent:
        agent.signal(signal.SIGHUP)
        wait_until(lambda: "msg=reloaded" in agent.log(), "the reload")
    for bad, place in (("metric: []\n", ":1:1"), ("metrics: [{name: a, targetValue: x}]\n", ":1:"),
                       ("log-level: loud\n", ":1:"), ("a: &x 1\nb: *x\n", ":"), ("metrics:\n  - {target: a}\n", ":2:")):
        refuses_file(bad, place)


def refuses_file(bad, place):
    with Agent(SCENARIO, env=None) as outer:
        file = outer.path / "config.yaml"
        file.write_text("log-level: info\nmetrics: [{name: a, targetValue: 30}]\n")
        with Agent(SCENARIO, f"--config={file}") as agent, Scaler(agent.address) as scaler:
            check(scaler.spec({"metricName": "a"}) == ("a", 30), "not the configured target")
            file.with_suffix(".new").write_text(bad)
            file.with_suffix(".new").rename(file)
            agent.signal(signal.SIGHUP)
            wait_until(lambda: "reload failed" in agent.log(), f"the refusal of {bad!r}")
            check(f"config.yaml{place}" in agent.log(), agent.log())
            check(scaler.spec({"metricName": "a"}) == ("a", 30), "the old file is gone")
            file.with_suffix(".new").write_text("log-level: debug\nmetrics: [{name: a, targetValue: 31}]\n")
            file.with_suffix(".new").rename(file)
            agent.signal(signal.SIGHUP)
            wait_until(lambda: scaler.spec({"metricName": "a"}) == ("a", 31), "the new target")
            scaler.value({})
            wait_until(lambda: "level=debug" in agent.log(), "debug lines")


# ---- start ----


@test("the first GetMetricSpec is answered soon after the start, whatever NVML does")
def listens_first():
    scenario = SCENARIO + "faults: [{fault: init_hang}]\n"
    with Agent(scenario, wait=False) as agent, Scaler(agent.address) as scaler:
        check(scaler.spec({}) == ("keda_gpu_metric", 80), "no spec")
        check(time.monotonic() - agent.started < 10, "took 10 s")


@test("flags of the existing scaler without a subcommand")
def old_flags():
    ports = [free_port() for _ in range(3)]
    for dashes in ("-", "--"):
        process = spawn([PROGRAM, f"{dashes}port={ports[0]}", f"{dashes}metrics-port", str(ports[1]),
                         f"{dashes}probe-port={ports[2]}", f"{dashes}health-check-interval", "30s",
                         f"{dashes}log-level=debug", f"--nvml-library={os.devnull}"], stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL)
        for port, path in ((ports[0], "/livez"), (ports[1], "/metrics"), (ports[2], "/healthz"), (ports[2], "/readyz")):
            wait_until(lambda port=port, path=path: _status(port, path) == 200, f"{path} on its port")
        process.terminate()
        check(process.wait(30) == 0, "not 0")


def _status(port, path):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None


@test("flags win over the environment, that over the file; --print-config says where each value is from")
def precedence():
    with Agent(SCENARIO) as outer:
        file = outer.path / "config.yaml"
        file.write_text("log-level: warn\nlog-format: json\nsample-interval: 3s\nmetrics: [{name: a, targetValue: 30}]\n")
        status, text = run("agent", f"--config={file}", "--log-level=error", "--print-config",
                           env={"KEDA_GPU_SCALER_LOG_LEVEL": "debug", "KEDA_GPU_SCALER_LOG_FORMAT": "text"})
    check(status == 0, text)
    for name, value, origin in (("log-level", "error", "flag"), ("log-format", "text", "environment"),
                                ("sample-interval", "3s", "file"), ("drain-timeout", "4s", "default")):
        line = next((line for line in text.splitlines() if re.match(rf"{name}:", line)), "")
        check(value in line and origin in line, f"{name}: want {value} ({origin}): {line!r}\n{text}")
    check("targetValue: 30" in text, text)


def ends(words, status, *texts, env=None):
    got, output = run(*words, env=env)
    check(got == status and all(t in output for t in texts), f"want {status} and {texts}: {got}\n{output}")


OFF = ["--listen=127.0.0.1:0", "--metrics-port=0", "--probe-port=0"]
for name, words, status, texts in (
        ("an unknown flag", ["agent", "--nope"], 2, ["--nope"]),
        ("a mistyped flag", ["agent", "--metric-port=1"], 2, ["metrics-port"]),
        ("an unknown command", ["serve"], 2, ["serve"]),
        ("a port that is none", ["agent", "--port=70000"], 2, ["70000"]),
        ("a duration that is none", ["agent", "--sample-interval=soon"], 2, ["sample-interval", "soon"]),
        ("an unknown limit", ["agent", *OFF, "--limit=streems=1"], 2, ["streams"]),
        ("a limit that is no number", ["agent", *OFF, "--limit=streams=many"], 2, ["many"]),
        ("an unknown log level", ["agent", *OFF, "--log-level=loud"], 2, ["loud", "warn"]),
        ("a configuration file that is not there", ["agent", *OFF, "--config=/nonexistent.yaml"], 1,
         ["/nonexistent.yaml"]),
        ("an address that is none", ["agent", "--listen=nonsense"], 2, ["nonsense"])):
    add(f"{name} is refused with status {status} and says what was wrong", ends, words, status, *texts)

@test("a variable that is nonsense is refused with its name")
def bad_variable():
    ends(["agent", *OFF], 2, "loud", env={"KEDA_GPU_SCALER_LOG_LEVEL": "loud"})


@test("the variables that Kubernetes makes of a Service called keda-gpu-scaler do no harm")
def service_variables():
    ends(["agent", "--print-config"], 0, "6000", env={"KEDA_GPU_SCALER_PORT": "tcp://10.0.0.1:6000"})


@test("a port in use: status 1, and the log names it")
def port_in_use():
    with Agent(SCENARIO) as agent:
        for flag in ("--listen", "--metrics-listen", "--probe-listen"):
            words = [word for word in OFF if not word.startswith(flag[:8])]
            ends(["agent", *words, f"{flag}={agent.address}"], 1, str(agent.port), "in use")


# ---- logs ----


@test("logs in JSON: every line one object with ts, level, component and msg")
def json_logs():
    with Agent(SCENARIO, "--log-format=json", "--log-level=debug") as agent, Scaler(agent.address) as scaler:
        scaler.value({"metricName": "q"})
        wait_until(lambda: "evaluated" in agent.log(), "an evaluation in the log")
        lines = agent.log().splitlines()
    for line in lines:
        entry = json.loads(line)
        check(all(key in entry for key in ("ts", "level", "component", "msg")), line)


@test("log text of peers cannot forge lines")
def no_forged_lines():
    with Agent(SCENARIO, "--log-level=debug") as agent, Scaler(agent.address) as scaler:
        ref = scaler.ref({}, name='x\nts=0 level=error component=agent msg="forged" \x1b[31m')
        scaler.stub.IsActive(ref, timeout=30)
        wait_until(lambda: "evaluated" in agent.log(), "an evaluation in the log")
        check(not re.search(r"^ts=0", agent.log(), re.MULTILINE) and "\x1b" not in agent.log(), agent.log())
