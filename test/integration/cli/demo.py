"""`demo`: the verdict when piped, on a terminal, and when something is missing."""
import os
import pty
import re
import select
import signal
import struct
import subprocess
import fcntl
import tempfile
import termios
import time

from agent import NVMLSIM, PROGRAM, check
from program import environment, run
from suite import add, test

FAST = ("demo", "--step", "200ms")


@test("demo, piped: plain lines, a verdict of OK, status 0, nothing left behind")
def piped():
    with tempfile.TemporaryDirectory() as folder:
        result = run(*FAST, env={"TMPDIR": folder})
        check(not os.listdir(folder), f"left {os.listdir(folder)}")
    check(result.status == 0 and not result.err, str(result))
    lines = result.out.splitlines()
    check(re.match(r"OK: replicas went 1 -> [56] -> 1 while the load went 40 -> 390 -> 50 %; 0 of 46 steps", lines[-1]),
          lines[-1])
    check(sum(bool(re.match(r" +\d+s +\d+% +[\d.]+ +80 +yes", line)) for line in lines) == 46, result.out)
    check("\033" not in result.out and max(map(len, lines)) < 200, "not plain")


def with_engine(name):
    with tempfile.TemporaryDirectory() as folder:
        result = run(*FAST, "--engine", name, env={"TMPDIR": folder})
        check(not os.listdir(folder), f"left {os.listdir(folder)}")
    check(result.status == 0 and not result.err, str(result))
    lines = result.out.splitlines()
    check(re.match(r"OK: replicas went 1 -> [5678] -> [56] -> 1 while demand went 7.5 -> 75 -> 7.5 requests/s; 0 of 46 steps",
                   lines[-1]), lines[-1])
    rows = [re.match(r" +\d+s +[\d.]+/s +(\d+) +(\d+) +(\d+)% +([\d.]+) +6 ", line) for line in lines]
    rows = [[float(word) for word in row.groups()] for row in rows if row]
    check(len(rows) == 46, result.out)
    check(max(row[0] for row in rows) > 0, "nothing ever waited")
    # What was asked for is the page's sum, a moment after what is shown beside it.
    check(all(abs(row[0] + row[1] - row[3]) <= 15 for row in rows), result.out)


for name in ("vllm", "sglang", "tgi", "triton"):
    add(f"demo --engine {name}: replicas follow requests waiting and running", with_engine, name)


@test("demo --engine with metadata of the user's: the page is added to it")
def engine_metadata():
    result = run(*FAST, "--engine", "vllm", "-m", "metricType=requests_running", "-m", "targetValue=4")
    check(result.status == 0 and "46 steps, 0 of them without a value" in result.out, str(result))


@test("demo --engine: refused with --real; an engine that is none is named with those that are")
def engine_usage():
    result = run("demo", "--engine", "vllm", "--real")
    check(result.status == 2 and "exclude each other" in result.err, str(result))
    result = run("demo", "--engine", "vlm")
    check(result.status == 2 and "vllm" in result.err, str(result))


@test("demo --step 1s: the window of two steps is as good")
def a_second_a_step():
    result = run("demo", patience_s=120)
    check(result.status == 0 and "\nOK: replicas went 1 -> 5 -> 1" in result.out, str(result))


def terminal(rows, columns, seconds, *arguments, env=None, interrupt_s=None):
    """(what the demo wrote to a terminal of that size, its exit status)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = environment({"TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "", **(env or {})})
    with subprocess.Popen([PROGRAM, *FAST, *arguments], env=variables, stdin=slave, stdout=slave,
                          stderr=slave) as process:
        os.close(slave)
        text, start = b"", time.monotonic()
        while time.monotonic() - start < seconds:
            if interrupt_s and time.monotonic() - start > interrupt_s:
                process.send_signal(signal.SIGINT)
                interrupt_s = None
            if select.select([master], [], [], 0.1)[0]:
                try:
                    text += os.read(master, 65536)
                except OSError:
                    break
        status = process.wait(30)
    os.close(master)
    return text.decode(errors="replace"), status


def rows_of(text):
    """The lines as a terminal sees them, without colours."""
    return [re.sub(r"\x1b\[[0-9;]*[mKJA]", "", line) for line in text.replace("\r", "").split("\n")]


@test("demo on a terminal: bars, colours, no line longer than the screen, the verdict")
def live():
    text, status = terminal(24, 80, 60)
    check(status == 0 and "OK: replicas went" in text, text[-600:])
    check("█" in text and "\033[3" in text and "\033[23A" in text, "no live view")
    view = [line for line in rows_of(text) if re.match(r" +\d+s |  GPU ", line)]
    check(view and max(map(len, view)) < 80, f"a row of {max(map(len, view))}")


@test("demo --engine on a terminal: a bar for each pod's batch, nothing but the verdict longer than the screen")
def live_engine():
    text, status = terminal(24, 80, 60, "--engine", "vllm")
    check(status == 0 and "OK: replicas went" in text, text[-600:])
    check("  pod 4 " in text and "█" in text, "no live view")
    rows = [line for line in rows_of(text) if not line.startswith(("OK: ", "keda-gpu-scaler "))]
    check(max(map(len, rows)) < 80, f"a row of {max(map(len, rows))}")


@test("demo on a small terminal, without colour, without UTF-8")
def small():
    text, status = terminal(15, 50, 60, env={"NO_COLOR": "1", "LC_ALL": "C"})
    check(status == 0 and "\033[3" not in text and "█" not in text and "####" in text, text[-600:])
    view = [line for line in rows_of(text) if re.match(r" +\d+s |  GPU ", line)]
    check(max(map(len, view)) < 50, f"a row of {max(map(len, view))}")


@test("demo on a dumb terminal: plain lines")
def dumb():
    text, status = terminal(24, 80, 60, env={"TERM": "dumb"})
    check(status == 0 and "\033" not in text and "OK: replicas went" in text, text[-600:])


@test("demo interrupted: a count, status 130; with --forever status 0")
def interrupted():
    text, status = terminal(24, 80, 30, interrupt_s=2)
    check(status == 130 and re.search(r"Interrupted: \d+ steps, 0 of them", text), f"{status} {text[-300:]}")
    text, status = terminal(24, 80, 30, "--forever", interrupt_s=2)
    check(status == 0 and re.search(r"\n\d+ steps, 0 of them", text.replace("\r", "")), f"{status} {text[-300:]}")


@test("demo with a library that is not there, or is none, says so and ends soon")
def broken_library():
    result = run(*FAST, "--nvml-library", "/nonexistent.so")
    check(result.status == 1 and not result.out and "--nvml-library /nonexistent.so: No such file" in result.err, str(result))
    start = time.monotonic()
    result = run(*FAST, "--nvml-library", "/etc/hostname")
    check(result.status == 1 and "FAILED: no value in 5 steps: UNAVAILABLE" in result.out, str(result))
    check("/etc/hostname" in result.out and time.monotonic() - start < 20, str(result))


@test("demo with metadata that is refused says why and ends at once")
def refused_metadata():
    result = run(*FAST, "-m", "profil=x")
    check(result.status == 1 and 'FAILED: no value in 1 step: INVALID_ARGUMENT: metadata key "profil"' in result.out,
          str(result))


@test("demo with other metadata counts only")
def own_metadata():
    result = run(*FAST, "-m", "metricType=power_draw", "-m", "targetValue=900", "-m", "aggregation=sum", "-m", "window=0")
    check(result.status == 0 and re.search(r"\n46 steps, 0 of them without a value", result.out), str(result))


@test("demo --real watches the machine's driver, here the simulated one's")
def real():
    result = run(*FAST, "--real", "--nvml-library", NVMLSIM)
    check(result.status == 0 and "this machine's GPUs, watched only" in result.out, str(result))
    check(re.search(r"\n15 steps, 0 of them without a value", result.out), result.out)
