"""Flags, environment, file: which wins, what --print-config says of it, and refusals with their place."""
import pathlib
import re
import tempfile

from agent import Agent, check, wait_until
from program import fails, succeeds
from suite import add, test

FOLDER = tempfile.TemporaryDirectory(prefix="kgs-cli-")
SCENARIO = "gpus: [{board: H100, utilization: 40}]\n"


def write(name, text):
    path = pathlib.Path(FOLDER.name) / name
    path.write_text(text)
    return path


def printed(*arguments, env=None):
    """--print-config as {name: (value as YAML, origin)}, limits as {"limit NAME": (value, "")}."""
    found = {}
    for line in succeeds("agent", "--print-config", *arguments, env=env).splitlines():
        match = re.match(r"(?:# )?([\w-]+): (.*) # (default|file|environment|flag)$", line)
        limit = re.match(r"#   (\w+)=(\d+)$", line)
        if match:
            found[match[1]] = (match[2], match[3])
        elif limit:
            found["limit " + limit[1]] = (limit[2], "")
    return found


@test("flags beat the environment, the environment beats the file, the file beats the default")
def precedence():
    path = write("precedence.yaml", "port: 1001\nlog-level: debug\nlog-format: json\nsample-interval: 2s\n")
    got = printed("--config", path, "--port", "1003",
                  env={"KEDA_GPU_SCALER_PORT": "1002", "KEDA_GPU_SCALER_LOG_LEVEL": "warn", "KEDA_GPU_SCALER_NODE_NAME": ""})
    check(got["port"] == ('"1003"', "flag"), str(got["port"]))
    check(got["log-level"] == ('"warn"', "environment"), str(got["log-level"]))
    check(got["log-format"] == ('"json"', "file"), str(got["log-format"]))
    check(got["slow-interval"] == ('"10s"', "default"), str(got["slow-interval"]))
    check(got["node-name"] == ('""', "default"), "an empty variable counts")


@test("a list of a stronger place replaces the weaker one's as a whole")
def lists():
    path = write("lists.yaml", 'listen: ["127.0.0.1:1", "127.0.0.1:2"]\nlimit: streams=3\n')
    got = printed("--config", path)
    check(got["listen"] == ('["127.0.0.1:1", "127.0.0.1:2"]', "file") and got["limit streams"][0] == "3", str(got))
    got = printed("--config", path, env={"KEDA_GPU_SCALER_LISTEN": "127.0.0.1:3, 127.0.0.1:4"})
    check(got["listen"] == ('["127.0.0.1:3", "127.0.0.1:4"]', "environment"), str(got["listen"]))
    got = printed("--config", path, "--listen", "127.0.0.1:5", env={"KEDA_GPU_SCALER_LISTEN": "127.0.0.1:3"})
    check(got["listen"] == ('["127.0.0.1:5"]', "flag"), str(got["listen"]))


@test("ranges of endpoints: several, in every place; one that is none is refused by name, and so is half a pair")
def endpoint_ranges():
    path = write("ranges.yaml", 'endpoint-deny: ["10.96.0.0/12", "fd00::/8"]\n')
    got = printed("--config", path, env={"KEDA_GPU_SCALER_ENDPOINT_ALLOW": "10.0.0.0/8, 127.0.0.1"})
    check(got["endpoint-allow"] == ('["10.0.0.0/8", "127.0.0.1"]', "environment"), str(got["endpoint-allow"]))
    check(got["endpoint-deny"] == ('["10.96.0.0/12", "fd00::/8"]', "file"), str(got["endpoint-deny"]))
    for flags, words in ((("--endpoint-allow", "10.0.0.0/33"), ("--endpoint-allow", "10.0.0.0/33")),
                         (("--endpoint-allow=10.0.0.0/8", "--endpoint-deny=kube-system"), ("--endpoint-deny", "kube-system")),
                         (("--endpoint-deny", "10.0.0.1/8"), ("--endpoint-deny", "10.0.0.1/8")),
                         (("--engine-timeout", "1m"), ("--engine-timeout", "100ms to 3s")),
                         (("--engine-ca-file", "x.pem", "--engine-insecure"), ("--engine-ca-file", "--engine-insecure"))):
        for command in ("agent", "hub"):
            fails(2, *words, arguments=(command, *flags))
    fails(2, "--engine-cert-file", "--engine-key-file", arguments=("hub", "--engine-cert-file", "x.pem"))
    fails(2, "--engine-token-plain", "--engine-token-file", arguments=("hub", "--engine-token-plain"))


@test("the file can come from the environment")
def file_from_environment():
    path = write("from-environment.yaml", "port: 1009\n")
    check(printed(env={"KEDA_GPU_SCALER_CONFIG": str(path)})["port"] == ('"1009"', "file"), "not read")


@test("variables that Kubernetes sets for a Service of our name are passed over")
def service_links():
    got = printed(env={"KEDA_GPU_SCALER_PORT": "tcp://10.96.0.7:6000", "KEDA_GPU_SCALER_SERVICE_HOST": "10.96.0.7",
                       "KEDA_GPU_SCALER_SERVICE_PORT": "6000", "KEDA_GPU_SCALER_PORT_6000_TCP": "tcp://10.96.0.7:6000",
                       "KEDA_GPU_SCALER_METRICS_PORT": "tcp://10.96.0.8:9090"})
    check(got["port"] == ('"6000"', "default") and got["metrics-port"] == ('"9090"', "default"), str(got))


@test("a wrong variable is named with its value")
def wrong_variable():
    fails(2, 'environment variable KEDA_GPU_SCALER_LOG_LEVEL "loud": is not one of debug', arguments=("agent",),
          env={"KEDA_GPU_SCALER_LOG_LEVEL": "loud"})


@test("what --print-config prints is a file that says the same")
def round_trip():
    arguments = ("--limit", "streams=7", "--limit", "connection_age_ms=0", "--listen", "127.0.0.1:1", "--listen",
                 'unix:/tmp/a "b" \\c', "--node-name", "a: b # c", "--metrics-tls=false", "--log-level", "debug")
    metrics = write("metrics.yaml", "metrics:\n  - {name: One, targetValue: 0.25, aggregation: p95, gpuIndex: 3}\n"
                    "  - name: two\n")
    first = succeeds("agent", "--print-config", "--config", metrics, *arguments)
    check("metrics:\n  - {name: \"one\", targetValue: 0.25, aggregation: p95, gpuIndex: 3}\n  - {name: \"two\"}\n" in first,
          first)
    second = succeeds("agent", "--print-config", "--config", write("again.yaml", first))

    def plain(text):
        return [re.sub(r" # (default|file|flag)$", "", line) for line in text.splitlines() if not line.startswith("# config")]
    check(plain(first) == plain(second), f"{first}\n---\n{second}")


WRONG_FILES = [
    ("log-level: warn\nlog-lvel: x\n", r"WRONG:2:1: unknown key log-lvel \(did you mean log-level\?\)"),
    ("log-level: [\n", "WRONG:2:1: not valid YAML"),
    ("\tport: 1\n", "WRONG:1:1: not valid YAML"),
    ("port: many\n", 'WRONG:1:7: port "many": is not a whole number'),
    ("port: [1, 2]\n", "WRONG:1:7: must be one plain value"),
    ("port: 1\nport: 2\n", "WRONG:2:1: this key is already set above"),
    ("a: &x 1\nport: *x\n", r"WRONG:2:7: aliases \(\*name\) are not allowed"),
    ("config: other.yaml\n", "WRONG:1:1: --config has no meaning in a file"),
    ("print-config: true\n", "WRONG:1:1: --print-config has no meaning in a file"),
    ("- port\n", "WRONG:1:1: must be a mapping"),
    ("metrics: 1\n", "WRONG:1:10: metrics must be a list"),
    ("metrics:\n  - nam: x\n", 'WRONG:2:.*unknown key "nam"; a metrics entry has name'),
    ("metrics:\n  - targetValue: 1\n", "WRONG:2:5: a metrics entry needs a `name`"),
    ("metrics:\n  - {name: a, targetValue: 0}\n", 'WRONG:2:.*targetValue "0" is not a number from 0.001 to 1e9'),
    ("metrics:\n  - {name: a, aggregation: p50}\n", 'WRONG:2:.*aggregation "p50" is not one of'),
    ("metrics:\n  - name: a\n  - name: A\n", "WRONG:3:5: this name is already in the list"),
    ("limit: [streams=0]\n", 'limit "streams=0"'),
    ("x" * (1 << 20) + ": 1\n", "WRONG is larger than the limit of 1048576 bytes"),
]


def is_refused(index, text, pattern):
    path = write(f"wrong{index}.yaml", text)
    fails(2, pattern.replace("WRONG", re.escape(str(path))), arguments=("agent", "--config", path))


for number, row in enumerate(WRONG_FILES):
    add(f"a wrong file is refused with its place: {row[0][:40]!r}", is_refused, number, *row)


@test("a file that is not there")
def no_file():
    fails(1, "--config: cannot open /nonexistent.yaml: No such file or directory",
          arguments=("agent", "--config", "/nonexistent.yaml"))


@test("SIGHUP takes up the log level, and keeps the old configuration when the new one is wrong")
def reload_level():
    path = write("reload.yaml", "log-level: error\n")
    with Agent(SCENARIO, "--config", str(path)) as agent:
        check("listening" not in agent.log(), "logs more than errors")
        path.write_text("log-level: info\n")
        agent.signal(1)
        wait_until(lambda: "msg=reloaded" in agent.log(), "the reload in the log")
        path.write_text("log-level: nonsense\n")
        agent.signal(1)
        wait_until(lambda: "the old configuration stays" in agent.log() and "is not one of" in agent.log(), "the refusal")
