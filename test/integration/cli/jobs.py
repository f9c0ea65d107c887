"""`gpu-metrics` by its own name: its flags and forms, jobs of Slurm and Flux, and `top --job` beside it."""
import csv
import fcntl
import io
import json
import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import termios

from agent import NVMLSIM, PROGRAM, check, wait_until
from program import Result, environment, run
from suite import add, test
from tops import SCENARIO, near, settings, top

FOLDER = tempfile.TemporaryDirectory(prefix="kgs-job-")
LINK = pathlib.Path(FOLDER.name) / "gpu-metrics"
LINK.symlink_to(PROGRAM)
SLURM = {"SLURM_JOB_ID": "42", "SLURM_PROCID": "3", "SLURM_JOB_PARTITION": "gpu", "SLURMD_NODENAME": "n7"}
FLUX = {"FLUX_JOB_ID": "f9", "FLUX_TASK_RANK": "0", "FLUX_URI": "local:///run/flux/local", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
KEYS = ["Index", "UUID", "Name", "GPUUtilization", "MemoryUtilization", "MemoryUsedMiB", "MemoryTotalMiB",
        "TemperatureCelsius", "PowerDrawWatts", "PowerLimitWatts", "PCIeTxKBps", "PCIeRxKBps", "NVLinkTxMBps",
        "NVLinkRxMBps", "IsMIGInstance", "ParentIndex", "MigProfile"]
FOUR = "gpus: [{board: H100, utilization: 10, count: 4}]\n"


def variables(extra, scenario):
    """The test's environment, without the machine's own scheduler."""
    clean = {name: value for name, value in environment(settings(scenario)).items()
             if not name.startswith(("SLURM", "FLUX_", "CUDA_", "KUBERNETES_")) and name != "GPU_DEVICE_ORDINAL"}
    return {**clean, "NVML_LIB": str(NVMLSIM), **(extra or {})}


def gpu_metrics(*arguments, env=None, scenario=SCENARIO):
    done = subprocess.run([LINK, *arguments], env=variables(env, scenario), stdin=subprocess.DEVNULL, text=True, check=False,
                          timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return Result(arguments, done.returncode, done.stdout, done.stderr)


def document(*arguments, status=0, **options):
    result = gpu_metrics("--format", "json", *arguments, **options)
    check(result.status == status, str(result))
    return json.loads(result.out)


@test("gpu-metrics as JSON: the keys that parsers know, whole numbers, null for unknown; MIG devices for their GPU")
def as_json():
    page = document()
    check(list(page) == ["environment", "driver_version", "collected_at", "devices"], str(page))
    check(page["environment"]["orchestrator"] == "standalone" and page["environment"]["task_rank"] is None, str(page))
    gpu, mig, small = page["devices"]
    check(all(list(device) == KEYS for device in page["devices"]), str(page))
    check(all(value is None or isinstance(value, (int, str)) for value in gpu.values()), str(gpu))
    check([gpu[key] for key in ("Index", "GPUUtilization", "MemoryUtilization", "MemoryUsedMiB", "TemperatureCelsius",
                                "PowerDrawWatts", "PowerLimitWatts")] == [0, 40, 10, 20480, 61, 350, 700], str(gpu))
    near(gpu["PCIeTxKBps"], 1000000, "PCIe")
    check(gpu["IsMIGInstance"] is False and gpu["ParentIndex"] is None and gpu["MigProfile"] is None, str(gpu))
    check(mig["IsMIGInstance"] and [mig[key] for key in ("Index", "ParentIndex", "MigProfile", "GPUUtilization",
                                                         "MemoryUsedMiB")] == [0, 1, "3g.40gb", 70, 1024], str(mig))
    check(mig["MemoryUtilization"] is None and mig["TemperatureCelsius"] is not None and small["Index"] == 1, str(mig))


@test("gpu-metrics --interval: one object a line, one CSV header, tables apart")
def again():
    for form in ("json", "csv", "table"):
        with subprocess.Popen([LINK, f"-format={form}", "-interval", "200ms"], env=variables(None, SCENARIO), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            lines = [process.stdout.readline() for _ in range(12)]
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()
            check(process.wait(20) == 0 and not process.stderr.read(), f"{form}: status {process.returncode}")
        check(rest == "" or rest.endswith("\n"), f"{form}: a line is cut: {rest!r}")
        if form == "json":
            check(all(json.loads(line)["devices"] for line in lines), str(lines))
        elif form == "csv":
            rows = list(csv.DictReader(io.StringIO("".join(lines))))
            check(len(rows) == 11 and {row["index"] for row in rows} == {"0", "1"}, str(lines))
        else:
            check(lines[0].startswith("Environment : standalone  |  Node: node-1  |  Driver: 570.172.08"), str(lines))


@test("gpu-metrics: SIGTERM while nobody reads ends it all the same")
def stuck_reader():
    with subprocess.Popen([LINK, "-format=json", "-interval", "100ms"], env=variables(None, "gpus: [{board: H100, count: 40}]\n"),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        seen = []

        def is_full():  # the pipe's pages are: what is in them grows no more, and a line does not end there
            seen.append(struct.unpack("i", fcntl.ioctl(process.stdout, termios.FIONREAD, b"\0" * 4))[0])
            return seen[-1] > 32768 and len(seen) > 20 and len(set(seen[-20:])) == 1
        wait_until(is_full, "a full pipe")
        process.send_signal(signal.SIGTERM)
        check(process.wait(20) == 0, f"status {process.returncode}")


@test("gpu-metrics as a table: as wide as its names, aligned")
def table():
    lines = gpu_metrics().out.splitlines()
    check(lines[2].split()[:3] == ["GPU", "NAME", "UTIL"] and len(lines[2].split()) == 13, str(lines))
    check(len({len(line) for line in lines[2:]}) == 1 and "NVIDIA H100 80GB HBM3" in lines[3], str(lines))


# ---- whose GPUs ----

def chosen(env, want, scenario=FOUR, status=0):
    result = gpu_metrics("-format", "json", env=env, scenario=scenario)
    check(result.status == status, str(result))
    check([device["Index"] for device in json.loads(result.out)["devices"]] == want, str(result))
    return result


for name, row in {
        "Slurm's step before its job": ({**SLURM, "SLURM_STEP_GPUS": "1,3", "SLURM_JOB_GPUS": "0-3"}, [1, 3]),
        "a range of Slurm": ({**SLURM, "SLURM_JOB_GPUS": "1-2"}, [1, 2]),
        "Slurm without a GPU": ({**SLURM, "CUDA_VISIBLE_DEVICES": "NoDevFiles"}, []),
        "Flux": ({**FLUX, "CUDA_VISIBLE_DEVICES": "2,0"}, [0, 2]),
        "Flux, an empty list": ({**FLUX, "CUDA_VISIBLE_DEVICES": ""}, []),
        "Flux, -1": ({**FLUX, "CUDA_VISIBLE_DEVICES": "-1"}, []),
        "no scheduler": ({"CUDA_VISIBLE_DEVICES": "1"}, [0, 1, 2, 3]),
}.items():
    add(f"gpu-metrics shows the job's GPUs: {name}", chosen, *row)


@test("gpu-metrics: UUIDs choose, and those of MIG devices beat Slurm's indices")
def by_name():
    uuids = [device["UUID"] for device in document()["devices"]]
    for words, want in ((uuids[0][:12], uuids[:1]), (",".join(uuids[1:]), uuids[1:]), (uuids[2], uuids[2:])):
        page = document(env={**SLURM, "SLURM_STEP_GPUS": "0", "CUDA_VISIBLE_DEVICES": words})
        check([device["UUID"] for device in page["devices"]] == want, f"{words}: {page}")
    rows = json.loads(top("-o", "json").out)["devices"]
    mig = next(row for row in rows if row["uuid"] == uuids[2])
    old = f"MIG-{mig['parent_uuid']}/{mig['gpu_instance']}/{mig['compute_instance']}"
    page = document(env={**SLURM, "SLURM_STEP_GPUS": "0", "CUDA_VISIBLE_DEVICES": old})
    check([device["UUID"] for device in page["devices"]] == uuids[2:], f"{old}: {page}")


@test("gpu-metrics: a GPU of the job that is not there: the others, a message, status 3; --quiet without the message")
def partial():
    result = chosen({**SLURM, "SLURM_JOB_GPUS": "1,9"}, [1], status=3)
    check("not here: 9 (SLURM_JOB_GPUS)" in result.err and "hint" not in result.err, result.err)
    result = gpu_metrics("--quiet", "--device", "7", scenario=FOUR)
    check(result.status == 3 and not result.err, str(result))


@test("gpu-metrics in a cgroup that shows the job's GPUs alone: Slurm's indices are those of the node")
def cgroup():
    chosen({**SLURM, "SLURM_JOB_GPUS": "5,7"}, [0, 1], scenario="gpus: [{board: T4, count: 2}]\n")


@test("gpu-metrics says where CUDA's order of the GPUs is not known")
def order():
    two = "gpus: [{board: H100}, {board: T4}]\n"
    flux = {name: value for name, value in FLUX.items() if name != "CUDA_DEVICE_ORDER"}
    result = chosen({**flux, "CUDA_VISIBLE_DEVICES": "1"}, [1], scenario=two)
    check("CUDA_DEVICE_ORDER=PCI_BUS_ID makes it certain" in result.err, result.err)
    check(not chosen({**FLUX, "CUDA_VISIBLE_DEVICES": "1"}, [1], scenario=two).err, "said without a reason")


@test("gpu-metrics: the context of each environment")
def contexts():
    rows = [(SLURM, {"orchestrator": "slurm", "node": "n7", "job_id": "42", "task_rank": 3, "partition": "gpu"}),
            (FLUX, {"orchestrator": "flux", "job_id": "f9", "task_rank": 0, "flux_uri": "local:///run/flux/local"}),
            ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAME": "p", "POD_NAMESPACE": "ml"},
             {"orchestrator": "k8s", "node": "node-1", "pod_name": "p", "namespace": "ml"})]
    for env, want in rows:
        got = document(env=env, scenario=FOUR)["environment"]
        check(got | want == got, f"{got}, want {want}")


@test("gpu-metrics --dry-run says the plan without a GPU")
def dry_run():
    uuid = "MIG-58f4ac36-fdc7-520a-bb76-e1cb0a42bff9"
    result = gpu_metrics("--dry-run", "--interval=5s", "-format", "csv",
                         env={**SLURM, "CUDA_VISIBLE_DEVICES": uuid, "NVML_LIB": "/nonexistent"})
    check(result.status == 0 and not result.err, str(result))
    plan = dict(re.split(r"\s*: ", line, maxsplit=1) for line in result.out.splitlines())
    check(plan == {"Environment": "slurm", "Node": "n7", "Job / Rank": "42 / 3", "Pod": "-", "Namespace": "-",
                   "Partition": "gpu", "Output format": "csv", "Device filter": f"{uuid} (CUDA_VISIBLE_DEVICES)",
                   "Interval": "5s"}, str(plan))


@test("gpu-metrics: wrong usage is status 2, no driver 1, the version 0")
def usage():
    for arguments, text in ((("--format", "xml"), "is not one of table"), (("--env", "pbs"), "is not one of auto"),
                            (("--interval", "5"), "is not a duration"), (("--interval", "1ms"), "at least 100ms"),
                            (("--no-such",), "unknown flag"), (("operand",), "takes no operand")):
        result = gpu_metrics(*arguments)
        check(result.status == 2 and not result.out and text in result.err, str(result))
    result = gpu_metrics(env={"NVML_LIB": "/nonexistent"})
    check(result.status == 1 and not result.out and "not found" in result.err, str(result))
    for word in ("version", "--version", "-version"):
        check(gpu_metrics(word).out == run("version").out, word)


@test("gpu-metrics is a command of the program, too, and top --job chooses the same devices")
def under_other_names():
    env = {**variables({**SLURM, "SLURM_STEP_GPUS": "1"}, SCENARIO)}
    rows = json.loads(run("gpu-metrics", "-format", "json", env=env).out)["devices"]
    page = json.loads(run("top", "-o", "json", "--job", env=env).out)
    check([row["UUID"] for row in rows] == [row["uuid"] for row in page["devices"] if row["kind"] == "mig"], str(page))
    check(page["environment"]["job_id"] == "42" and len(page["devices"]) == 3, str(page))
    page = json.loads(run("top", "-o", "json", "--env", "standalone", env=env).out)
    check(page["environment"]["orchestrator"] == "standalone" and len(page["devices"]) == 4, str(page))
    check(json.loads(run("top", "-o", "json", env=env).out)["environment"] is None, "top without --job knows no job")
    check(run("top", "--job", "-o", "prom", env=env).status == 2, "a page of a job")
