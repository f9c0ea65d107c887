"""Help at all levels, goldens, version, wrong usage, and what happens to output that nobody takes."""
import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import time

from agent import PROGRAM, check
from cache import ROOT
from program import NAME, environment, fails, run, succeeds
from suite import add, test

_loader = importlib.machinery.SourceFileLoader("make_goldens", str(ROOT / "tools/make-goldens"))
_spec = importlib.util.spec_from_loader("make_goldens", _loader)
make_goldens = importlib.util.module_from_spec(_spec)
_loader.exec_module(make_goldens)

COMMANDS = make_goldens.COMMANDS


# ---- help ----

def same_help(command):
    texts = {how: succeeds(*how) for how in (("help", command), (command, "--help"), (command, "-h"),
                                             (command, "--help", "--no-such-flag"))}
    check(len(set(texts.values())) == 1, f"help differs: {texts}")


for name in COMMANDS:
    add(f"help of {name} is the same whichever way it is asked for", same_help, name)


@test("help without a command lists all commands, on stdout, with status 0")
def program_help():
    check(succeeds("--help") == succeeds("help") == succeeds("-h"), "help differs")
    for command in COMMANDS:
        check(f"\n  {command} " in succeeds("help"), f"{command} is not listed")


@test("goldens: help and completions are as stored (tools/make-goldens writes them anew)")
def goldens():
    for name, text in make_goldens.texts(PROGRAM).items():
        path = ROOT / name
        check(path.exists() and path.read_text() == text, f"{name} differs from the program's output")


@test("without arguments: help on stderr, status 2")
def no_arguments():
    result = fails(2, "Usage: keda-gpu-scaler COMMAND", arguments=())
    check(result.err == succeeds("help"), "not the help")


# ---- version ----

VERSION = (ROOT / "VERSION").read_text().strip()


@test("version: one line, in all spellings")
def version_text():
    for arguments in (("version",), ("--version",), ("-V",), ("-version",), ("version", "-otext")):
        out = succeeds(*arguments)
        check(out.startswith(f"keda-gpu-scaler {VERSION} (") and out.count("\n") == 1, f"{arguments}: {out!r}")


@test("version as JSON")
def version_json():
    for arguments in (("version", "-o", "json"), ("version", "-ojson"), ("version", "--output=json")):
        out = json.loads(succeeds(*arguments))
        check(out["program"] == "keda-gpu-scaler" and out["version"] == VERSION and out["compiler"], str(out))


# ---- wrong usage ----

WRONG = [
    (("agnt",), 'unknown command "agnt"; did you mean `agent`\\?', "^hint: "),
    (("zzzzzz",), 'unknown command "zzzzzz"$',),
    (("help", "nope"), 'unknown command "nope"',),
    (("agent", "--prot", "1"), r"unknown flag --prot \(did you mean --port\?\)",),
    (("--prot", "1"), r"unknown flag --prot \(did you mean --port\?\)",),
    (("agent", "-x"), "unknown flag -x; --help lists the flags",),
    (("agent", "--port"), r"--port needs a value \(PORT\)",),
    (("agent", "--port", "70000"), '--port "70000": must be from 0 to 65535',),
    (("agent", "--port", "x"), '--port "x": is not a whole number',),
    (("agent", "--sample-interval", "1ms"), '--sample-interval "1ms": must be from 50ms to 1m',),
    (("agent", "--drain-timeout", "4"), '--drain-timeout "4": is not a duration such as 300ms',),
    (("agent", "--log-level", "loud"), r'--log-level "loud": is not one of debug\|info\|warn\|error',),
    (("agent", "--grpc-reflection=maybe"), '"maybe": is neither true nor false',),
    (("agent", "--listen="), '--listen "": is empty',),
    (("agent", "extra"), 'agent takes no operand, but was given "extra"', "^hint: keda-gpu-scaler agent --help"),
    (("agent", "--limit", "strems=3"), r'there is no limit "strems" \(did you mean streams\?\)',),
    (("agent", "--limit", "streams=0"), "must be NAME=N with N from 1 to",),
    (("agent", "--limit", "streams"), "must be NAME=N",),
    (("agent", "--limit", "streams=99999999999999999999"), "must be NAME=N",),
    (("agent", "--tls-cert", "x"), "TLS needs both --tls-cert and --tls-key",),
    (("agent", "--tls-client-ca", "x"), "--tls-client-ca and --metrics-tls only work with them",),
    (("agent", "--metrics-tls"), "--tls-client-ca and --metrics-tls only work with them",),
    (("agent", "--listen", "nonsense"), 'address .*nonsense.* is not understood: write host:port',),
    (("version", "a"), 'version takes no operand, but was given "a"',),
    (("demo", "a"), 'demo takes no operand, but was given "a"',),
    (("demo", "--step", "1ms"), '--step "1ms": must be from 200ms to 1m',),
    (("probe", "a:1", "b:2"), r'probe takes \[ADDRESS\] \[flags\], but was also given "b:2"',),
    (("probe", "nonsense"), 'address "nonsense" is not understood',),
    (("call",), "call needs the ADDRESS to ask", "^hint: keda-gpu-scaler call"),
    (("call", "a", "b", "c"), 'but was also given "c"',),
    (("call", "spce", "127.0.0.1:1"), r'unknown question "spce" \(did you mean spec\?\)',),
    (("call", "127.0.0.1"), 'address "127.0.0.1" is not understood: write host:port',),
    (("call", "127.0.0.1:1", "-m", "foo"), '--metadata "foo" is not KEY=VALUE',),
    (("call", "127.0.0.1:1", "--for", "-1s"), "--for",),
    (("completion",), "completion takes one shell: bash, zsh or fish",),
    (("completion", "tcsh"), "completion takes one shell: bash, zsh or fish",),
]


def is_wrong(arguments, *patterns):
    fails(2, *patterns, arguments=arguments)


for row in WRONG:
    add(f"wrong usage ends with 2 and says why: {' '.join(row[0])}", is_wrong, *row)


@test("after -- a flag is an operand")
def double_dash():
    fails(2, 'version takes no operand, but was given "--output"', arguments=("version", "--", "--output"))


@test("a leading flag means agent, in the spelling of Go flags too")
def leading_flag():
    out = succeeds("-port=7001", "-metrics-port", "7002", "--probe-port", "0", "--health-check-interval=5s",
                   "--log-level=warn", "--print-config")
    for line in ('port: "7001" # flag', 'metrics-port: "7002" # flag', 'health-check-interval: "5s" # flag'):
        check(line in out, f"no {line} in\n{out}")


# ---- output that nobody takes ----

@test("a reader that goes away ends a command without a word")
def closed_pipe():
    for arguments in (("help", "agent"), ("completion", "bash"), ("demo", "--step", "200ms")):
        start = time.monotonic()
        reader, writer = os.pipe()
        os.close(reader)  # before the program writes a byte
        with subprocess.Popen([PROGRAM, *arguments], env=environment(), stdout=writer, stderr=subprocess.PIPE) as process:
            os.close(writer)
            err = process.stderr.read().decode()
            status = process.wait(30)
        check(not err, f"{arguments}: {err}")
        check(status in (1, -signal.SIGPIPE), f"{arguments}: status {status}")
        check(time.monotonic() - start < 8, f"{arguments}: went on for nobody")


@test("a full disk is an error")
def full_disk():
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = run("help", stdout=full)
    check(result.status == 1 and result.err == f"{NAME}cannot write the output: No space left on device\n", str(result))
