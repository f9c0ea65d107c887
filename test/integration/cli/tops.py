"""`top` on simulated GPUs: the scenario's values in every form, from NVML and from an agent, and what goes wrong."""
import csv
import io
import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from agent import NVMLSIM, PROGRAM, Agent, check, free_port, wait_until
from program import environment, run
from suite import add, test

SCENARIO = """gpus:
  - {board: H100, utilization: 40, memory_utilization: 10, memory_used_mib: 20480, temperature: 61, power_w: 350,
     pcie_tx_kbps: 1000000, pcie_rx_kbps: 2000000, nvlink_tx_kibps: 1000}
  - {board: H100, mig: [{profile: 3g.40gb, utilization: 70, memory_used_mib: 1024}, 1g.10gb]}
"""
FOLDER = tempfile.TemporaryDirectory(prefix="kgs-top-")


def settings(scenario=SCENARIO):
    path = pathlib.Path(FOLDER.name) / f"{abs(hash(scenario))}.yaml"
    if not path.exists():  # tests run side by side: nobody may meet half a file
        draft = path.with_suffix(f".{threading.get_ident()}")
        draft.write_text(scenario)
        draft.replace(path)
    return {"NVMLSIM_SCENARIO": str(path), "NODE_NAME": "node-1"}


def top(*arguments, scenario=SCENARIO, library=NVMLSIM, **options):
    return run("top", "--nvml-library", library, *arguments, env=settings(scenario), **options)


def devices(*arguments, scenario=SCENARIO, status=0):
    result = top("-o", "json", *arguments, scenario=scenario)
    check(result.status == status, str(result))
    return json.loads(result.out)["devices"]


def near(got, want, what):
    check(isinstance(got, (int, float)) and abs(got - want) <= abs(want) * 0.02, f"{what}: {got}, want {want}")


@test("top as JSON has the scenario's values in base units, and null for what a device does not give")
def values():
    document = json.loads(top("-o", "json").out)
    check(document["schema_version"] == 1 and document["node"] == "node-1" and document["driver_version"] == "570.172.08"
          and document["driver_state"] == "ok", str(document))
    check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", document["collected_at"]), document["collected_at"])
    gpu, parent, mig, small = document["devices"]
    wanted = {"utilization_percent": 40, "memory_utilization_percent": 10, "memory_used_bytes": 20480 << 20,
              "temperature_celsius": 61, "power_watts": 350, "power_limit_watts": 700, "pcie_tx_bytes_per_second": 1e9,
              "pcie_rx_bytes_per_second": 2e9, "nvlink_tx_bytes_per_second": 1000 << 10, "sm_activity_percent": 34}
    for key, want in wanted.items():
        near(gpu[key], want, key)
    check(gpu["kind"] == "gpu" and gpu["parent_uuid"] is None and gpu["mig_profile"] is None and gpu["gpu_instance"] is None
          and gpu["status"] == "ok" and gpu["uuid"].startswith("GPU-") and gpu["name"] == "NVIDIA H100 80GB HBM3", str(gpu))
    check(parent["kind"] == "mig_parent" and parent["utilization_percent"] is None, str(parent))
    check(mig["kind"] == "mig" and mig["parent_uuid"] == parent["uuid"] and mig["mig_profile"] == "3g.40gb" and
          mig["index"] == 1 and mig["gpu_instance"] == 1 and mig["compute_instance"] == 0, str(mig))
    near(mig["memory_used_bytes"], 1024 << 20, "memory of the MIG device")
    near(mig["graphics_activity_percent"], 70, "activity of the MIG device")
    check(mig["temperature_celsius"] is None and mig["utilization_percent"] is None, str(mig))
    check(small["memory_used_bytes"] == 0 and small["graphics_activity_percent"] == 0, str(small))


@test("top of an agent says what top of the machine says")
def agent():
    def identity(rows):
        return [{k: v for k, v in row.items() if k not in ("age_seconds", "energy_joules") and "per_second" not in k}
                for row in rows]
    local = devices()
    with Agent(SCENARIO) as a:
        wait_until(lambda: devices(f"127.0.0.1:{a.metrics_port}")[0]["nvlink_tx_bytes_per_second"] is not None, "rates")
        document = json.loads(run("top", f"127.0.0.1:{a.metrics_port}", "-o", "json").out)
        check(document["node"] == "testnode", str(document))
        check(identity(document["devices"]) == identity(local), f"{identity(document['devices'])}\n{identity(local)}")
        near(document["devices"][0]["nvlink_tx_bytes_per_second"], 1000 << 10, "rate")
        check(run("top", a.address, "-o", "csv").status == 0, "the gRPC port serves the page, too")


@test("top as a table: one line a device, numbers for people, no colour when piped")
def table():
    lines = top().out.splitlines()
    check([line.split()[0] for line in lines] == ["GPU", "0", "1", "1.1.0", "1.11.0"], str(lines))
    check(re.fullmatch(r"0 +NVIDIA H100 80GB HBM3 +40% +40% +20\.0GiB +79\.6GiB +61C +350W +700W +ok", lines[1]), lines[1])
    check("MIG 3g.40gb" in lines[3] and " - " in lines[3], lines[3])
    wide = top("-o", "wide").out
    check("GPU-" in wide and "MIG-" in wide and "PCIE-TX" in wide and "\033" not in wide, wide)


@test("top as CSV: one header, however many samples; empty for unknown")
def as_csv():
    result = top("-o", "csv", "--count", "3", "--interval", "100ms")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    check(len(rows) == 12 and result.out.count("collected_at") == 1 and None not in rows[0], str(result))
    check(rows[0]["utilization_percent"] == "40" and rows[2]["temperature_celsius"] == "", str(rows[0]))


@test("top as JSON Lines: one object a line, each with the time of its reading")
def as_jsonl():
    for form in ("jsonl", "json"):
        result = top("-o", form, "--count", "3", "--interval", "300ms")
        check(result.status == 0, f"{form}: {result}")
        lines = [json.loads(line) for line in result.out.splitlines()]
        times = [line["collected_at"] for line in lines]  # on a busy machine a reading may be shown twice
        check(len(lines) == 3 and times == sorted(times) and times[0] < times[2], str(lines))


@test("top as Prometheus text: devices and driver alone, and once")
def as_prom():
    result = top("-o", "prom")
    check(re.search(r'^keda_gpu_scaler_gpu_utilization_ratio{gpu="0",uuid="GPU-[^"]+"} 0\.4$', result.out, re.MULTILINE),
          result.out)
    check("process_" not in result.out and "samples_total" not in result.out, result.out)
    result = top("-o", "prom", "--watch")
    check(result.status == 2 and not result.out and "cannot be watched" in result.err, str(result))


# ---- what goes wrong ----

@test("top shows a GPU that is lost while it watches, without values, and ends with 3")
def lost():
    scenario = SCENARIO + "faults: [{fault: lost, gpu: 0, from: 0.7}]\n"
    result = top("-o", "jsonl", "--count", "8", "--interval", "300ms", scenario=scenario)
    first, last = (json.loads(result.out.splitlines()[i])["devices"] for i in (0, -1))
    check(result.status == 3, str(result))
    check(first[0]["status"] == "ok" and first[0]["utilization_percent"] == 40, str(first[0]))
    check(last[0]["status"] == "lost" and last[0]["utilization_percent"] is None, str(last[0]))
    check(last[2]["status"] == "ok" and last[2]["memory_used_bytes"] == 1024 << 20, str(last[2]))


@test("top: a GPU that was lost before: the others, a message, status 3")
def lost_before():
    result = top("-o", "json", scenario=SCENARIO + "faults: [{fault: lost, gpu: 0}]\n")
    check(result.status == 3 and len(json.loads(result.out)["devices"]) == 3, str(result))
    check("cannot be opened" in result.err, result.err)


@test("top without GPUs: an empty list, a message, status 0")
def none():
    result = top("-o", "json", scenario="gpus: []\n")
    check(result.status == 0 and json.loads(result.out)["devices"] == [] and "no GPU" in result.err, str(result))


NOTHING = [
    ("no library", {"library": "/nonexistent"}, r"libnvidia-ml\.so\.1 is not found\nhint: keda-gpu-scaler check"),
    ("no driver", {"scenario": "gpus: []\nfaults: [{fault: driver_not_loaded}]\n"}, "driver is not loaded"),
    ("versions differ", {"scenario": "gpus: []\nfaults: [{fault: lib_rm_version_mismatch}]\n"}, "version"),
]


def nothing(options, pattern):
    result = top("-o", "json", **options)
    check(result.status == 1 and not result.out and re.search(pattern, result.err), str(result))


for row in NOTHING:
    add(f"top: {row[0]}: status 1 and nothing on stdout", nothing, *row[1:])


def hangs(fault):
    start = time.monotonic()
    result = top("--timeout", "500ms", scenario=SCENARIO + f"faults: [{{fault: {fault}}}]\n")
    check(time.monotonic() - start < 20, "took too long")
    check(result.status == 124 and not result.out and "the driver does not answer: nvml" in result.err, str(result))


for name in ("hung", "init_hang"):
    add(f"top ends within --timeout though the driver hangs ({name})", hangs, name)


@test("top --watch goes on while the driver hangs: readings go, the age and a message say it, status 124")
def hangs_later():
    result = top("-o", "jsonl", "--count", "3", "--interval", "4s", scenario=SCENARIO + "faults: [{fault: hung, from: 2}]\n")
    first, last = (json.loads(result.out.splitlines()[i])["devices"][0] for i in (0, -1))
    check(result.status == 124 and len(re.findall("readings age: nvml", result.err)) <= 1 and "readings age" in result.err,
          str(result))
    check(first["utilization_percent"] == 40 and last["utilization_percent"] is None and last["age_seconds"] > 5, str(last))


@test("top of an agent that is not there, is none, or does not answer")
def no_agent():
    result = run("top", f"127.0.0.1:{free_port()}")
    check(result.status == 1 and not result.out and "refused" in result.err, str(result))
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
        server.listen()
        result = run("top", f"127.0.0.1:{server.getsockname()[1]}", "--timeout", "300ms")
        check(result.status == 124 and not result.out, str(result))


# ---- live ----

def interrupted(number, scenario):
    with subprocess.Popen([PROGRAM, "top", "-w", "-o", "jsonl", "--interval", "100ms", "--timeout", "1h", "--nvml-library",
                           NVMLSIM], env=environment(settings(scenario)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        if "faults" not in scenario:
            process.stdout.readline()
        else:
            wait_until(lambda: "nvml" in threads(process.pid), "the sampler")
        process.send_signal(number)
        check(process.wait(20) == 0 and not process.stderr.read(), f"status {process.returncode}")


def threads(pid):
    return {(task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}


for number, name in ((signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")):
    add(f"top --watch ends with 0 at {name}", interrupted, number, SCENARIO)
    add(f"top --watch ends with 0 at {name} though the driver hangs", interrupted, number,
        SCENARIO + "faults: [{fault: init_hang}]\n")


@test("top --watch ends without a word when its reader goes away")
def reader_gone():
    with subprocess.Popen([PROGRAM, "top", "-w", "-o", "jsonl", "--interval", "100ms", "--nvml-library", NVMLSIM],
                          env=environment(settings()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        process.wait(20)
        check(not process.stderr.read(), "said something")


def on_terminal(*arguments, **env):
    leader, follower = pty.openpty()
    with subprocess.Popen([PROGRAM, "top", "--nvml-library", NVMLSIM, *arguments],
                          env=environment({**settings(SCENARIO + "faults: [{fault: lost, gpu: 0, from: 0.7}]\n"),
                                           "TERM": "xterm", **env}), stdout=follower, stderr=subprocess.DEVNULL) as process:
        os.close(follower)
        text = b""
        try:
            while chunk := os.read(leader, 65536):
                text += chunk
        except OSError:
            pass
        process.wait(20)
    os.close(leader)
    return text.decode()


@test("top --watch draws over itself on a terminal, lost devices in red unless NO_COLOR")
def live():
    text = on_terminal("--count", "8", "--interval", "300ms")
    check(text.startswith("\033[H\033[2J") and text.count("\033[2J") == 1 and text.count("\033[H") == 8, repr(text[:400]))
    check("node-1   driver 570.172.08   20" in text and "\033[31m0 " in text, repr(text))
    text = on_terminal("--count", "8", "--interval", "300ms", NO_COLOR="1")
    check("\033[31m" not in text and "lost" in text, repr(text))
