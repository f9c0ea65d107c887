"""Pods in `top`: of this machine by its kubelet and a /proc of ours, and of an agent that looks at the same."""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

from agent import NVMLSIM, PROGRAM, Agent, check, wait_until
from kubelet import Kubelet, container, pod
from node import OWN, Node, identity
from suite import Skip, test

SHARED = """gpus:
  - board: H100
    utilization: 70
    memory_used_mib: 40000
    processes:
      - {pid: 101, memory_mib: 20000, sm: 30}
      - {pid: 103, memory_mib: 2000, sm: 10}
      - {pid: 102, memory_mib: 16000, sm: 20}
      - {pid: 700, memory_mib: 1000, sm: 10}
  - {board: H100, utilization: 30, memory_used_mib: 3000}
"""
MIB = 1 << 20


def run(*arguments, scenario=None):
    env = {k: v for k, v in os.environ.items() if k != "NODE_NAME"}
    if scenario:
        env["NVMLSIM_SCENARIO"] = str(scenario)
    return subprocess.run([PROGRAM, "top", *map(str, arguments)], env=env, check=False, text=True, timeout=60, capture_output=True)


def top(*arguments, scenario=None):
    """stdout of a run that ends well and has nothing to say."""
    out = run(*arguments, scenario=scenario)
    check(out.returncode == 0 and not out.stderr, f"{out}")
    return out.stdout


def rows(document):
    """{pod: (sharing, utilisation, memory)} of each device."""
    return [{p["name"]: (p["sharing"], p["utilization_percent"], p["memory_used_bytes"]) for p in device["pods"] or []}
            for device in json.loads(document)["devices"]]


@contextlib.contextmanager
def machine(text=SHARED, pid_namespace="pid:[4026531836]"):
    """(scenario, kubelet, node, UUIDs): pods a (two processes) and b on one GPU, and a process of the host."""
    with tempfile.TemporaryDirectory(prefix="terminal-") as folder, Kubelet() as kubelet, Node(pid_namespace) as node:
        scenario = pathlib.Path(folder) / "scenario.yaml"
        scenario.write_text(text)
        for pid, number in ((101, 1), (103, 1), (102, 2)):
            node.in_pod(pid, number)
        node.process(700, "0::/system.slice/sshd.service")
        node.name(1, "ml", "a")
        node.name(2, "ml", "b")
        page = top("-o", "json", "--nvml-library", NVMLSIM, "--pod-resources=", "--procfs=", scenario=scenario)
        yield scenario, kubelet, node, [d["uuid"] for d in json.loads(page)["devices"]]


def shares(uuid, *names):
    return [pod("ml", name, container("main", f"{uuid}::{i}")) for i, name in enumerate(names)]


LOCAL = ("-o", "json", "--nvml-library", NVMLSIM)
MEASURED = {"a": ("shared", 40, 22000 * MIB), "b": ("shared", 20, 16000 * MIB), "idle": ("shared", 0, 0),
            None: (None, 10, 1000 * MIB)}


@test("top of this machine without a /proc: pods that the kubelet lists, and what one does that has a device alone")
def listed():
    with machine() as (scenario, kubelet, _, (first, second)):
        local = (*LOCAL, "--procfs=")
        kubelet.pods = [*shares(first, "a", "b"), pod("ml", "c", container("main", second))]
        got = rows(top(*local, "--pod-resources", kubelet.path, scenario=scenario))
        check(got == [{"a": ("shared", None, None), "b": ("shared", None, None)}, {"c": ("exclusive", 30, 3000 * MIB)}], str(got))
        page = json.loads(top(*local, "--pod-resources=", scenario=scenario))
        check([d["pods"] for d in page["devices"]] == [None, None], "pods of a kubelet that was not asked")
        kubelet.pods = []
        page = json.loads(top(*local, "--pod-resources", kubelet.path, scenario=scenario))
        check([d["pods"] for d in page["devices"]] == [[], []], "a kubelet without pods")
        page = json.loads(top(*local, "--pod-resources", "/nonexistent.sock", scenario=scenario))
        check([d["pods"] for d in page["devices"]] == [None, None], "no kubelet")


@test("top of this machine with a /proc: each pod's own share of a shared GPU, at the first sample")
def measured():
    with machine() as (scenario, kubelet, node, (first, _)):
        kubelet.pods = shares(first, "a", "b", "idle")
        page = top(*LOCAL, "--pod-resources", kubelet.path, *node.flags(), scenario=scenario)
        check(rows(page) == [MEASURED, {}], f"{rows(page)}")
        uids = {p["name"]: p["uid"] for p in json.loads(page)["devices"][0]["pods"]}
        check(uids["a"] == identity(1)[0] and uids["b"] == identity(2)[0] and uids[None] is None, f"{uids}")
        table = top("--nvml-library", NVMLSIM, "--pod-resources", kubelet.path, *node.flags(), scenario=scenario).splitlines()
        want = [["ml/a", "40%", "-", "21.5GiB"], ["ml/b", "20%", "-", "15.6GiB"], ["ml/idle", "0%", "-", "0B"]]
        check([line.split()[1:5] for line in table[2:5]] == want and "(no pod)" in table[5], f"{table}")


@test("top of this machine knows whose a device is that the driver shows after the kubelet has answered, or while it watches")
def late_driver():
    slow = SHARED + "faults: [{fault: init_hang, until: 2}]\n"
    later = SHARED + "events: [{at: 0, count: 1}, {at: 3, count: 2}]\n"
    for text, count, delay_s in ((slow, 1, 0.8), (later, 20, 0)):
        with machine() as (scenario, kubelet, _, (first, _)):  # a number means nothing before its device is there
            kubelet.pods = [*shares(first, "a"), pod("ml", "c", container("main", "nvidia1"))]
            kubelet.delay_s = delay_s
            scenario.write_text(text)
            out = top("-o", "jsonl", "--nvml-library", NVMLSIM, f"--count={count}", "--interval=300ms", "--procfs=", "--pod-resources",
                      kubelet.path, scenario=scenario)
            got = rows(out.splitlines()[-1])
            check(got == [{"a": ("shared", None, None)}, {"c": ("exclusive", 30, 3000 * MIB)}], f"{kubelet.calls} {got}")
            check(count == 1 or len(rows(out.splitlines()[0])) == 1, out.splitlines()[0])


@test("top of this machine with a /proc and no kubelet: pods are known by their processes alone")
def by_processes():
    with machine() as (scenario, _, node, _):
        want = {name: (None, *values[1:]) for name, values in MEASURED.items() if name != "idle"}
        got = rows(top(*LOCAL, "--pod-resources=", *node.flags(), scenario=scenario))
        check(got == [want, {}], f"{got}")


@test("top --watch of this machine: a pod that ends leaves, one that comes is there; what each uses is of the time")
def watched():
    with machine() as (scenario, kubelet, node, (first, _)):
        kubelet.pods = shares(first, "a", "b")
        command = [PROGRAM, "top", "-w", "-o", "jsonl", "--interval", "200ms", "--nvml-library", NVMLSIM, "--pod-resources",
                   kubelet.path, *node.flags()]
        with subprocess.Popen(list(map(str, command)), env={**os.environ, "NVMLSIM_SCENARIO": str(scenario)}, text=True,
                              stdout=subprocess.PIPE) as process:
            def until(want, patience_s=60):
                end = time.monotonic() + patience_s
                while (got := rows(process.stdout.readline())[0]) != want:
                    check(time.monotonic() < end, f"{got}, want {want}")
            until({name: values for name, values in MEASURED.items() if name != "idle"})
            draft = scenario.with_suffix(".new")
            draft.write_text(SHARED.replace("{pid: 102, memory_mib: 16000, sm: 20}", "{pid: 104, memory_mib: 7000, sm: 15}"))
            node.in_pod(104, 4)
            node.name(4, "web", "late")
            draft.rename(scenario)
            node.end(102)
            kubelet.pods = shares(first, "a")
            until({"a": MEASURED["a"], "late": (None, 15, 7000 * MIB), None: MEASURED[None]})
            process.terminate()
            check(process.wait(20) == 0, f"status {process.returncode}")


@test("top of this machine says what of a /proc is of no use, once, and measures nothing by it")
def no_sight():
    for namespace, flags, words in ((OWN, (), "agent.hostPID=true"), (OWN, ("--procfs=/nonexistent",), "cannot read /nonexistent")):
        with machine(pid_namespace=namespace) as (scenario, kubelet, node, (first, _)):
            for pid in (101, 102, 103):
                node.end(pid)
            kubelet.pods = shares(first, "a")
            out = run("-o", "jsonl", "--nvml-library", NVMLSIM, "--count=3", "--interval=200ms", "--pod-resources", kubelet.path,
                      *node.flags(), *flags, scenario=scenario)
            check(out.returncode == 0 and out.stderr.count("not measured") == 1 and words in out.stderr, f"{out}")
            check(rows(out.stdout.splitlines()[-1])[0] == {"a": ("shared", None, None)}, f"{out}")
    out = run("--nvml-library", NVMLSIM, "--procfs=proc", scenario="/nonexistent")
    check(out.returncode == 2 and not out.stdout and "must be an absolute path" in out.stderr, f"{out}")


@test("top of this machine says that the kubelet failed, or does not answer within 2 s, and shows the devices")
def kubelet_fails():
    with machine() as (scenario, kubelet, _, _):
        kubelet.stop()
        kubelet.path.write_text("no socket")
        out = run(*LOCAL, "--procfs=", "--pod-resources", kubelet.path, scenario=scenario)
        check(out.returncode == 0 and "pods are not known" in out.stderr and rows(out.stdout) == [{}, {}], f"{out}")
        kubelet.path.unlink()
        kubelet.start()
        kubelet.gate.clear()
        began = time.monotonic()
        out = run("-o", "jsonl", "--nvml-library", NVMLSIM, "--count=3", "--interval=200ms", "--procfs=", "--pod-resources",
                  kubelet.path, scenario=scenario)
        check(out.returncode == 0 and out.stderr.count("does not answer") == 1 and time.monotonic() - began < 15, f"{out}")
        check(rows(out.stdout.splitlines()[-1]) == [{}, {}], f"{out}")


@test("top of this machine looks at /proc by itself where it is the host's and there is a kubelet, and not else")
def automatic():
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]" or os.path.exists("/var/log/pods"):
        raise Skip("in a pid namespace of its own, or on a node")
    text = f"gpus: [{{board: H100, utilization: 40, processes: [{{pid: {os.getpid()}, memory_mib: 4000, sm: 40}}]}}]\n"
    with machine(text) as (scenario, kubelet, _, _):
        got = json.loads(top(*LOCAL, "--pod-resources", kubelet.path, scenario=scenario))["devices"][0]["pods"]
        check(len(got) == 1 and got[0]["memory_used_bytes"] == 4000 * MIB and got[0]["utilization_percent"] == 40, f"{got}")
        got = json.loads(top(*LOCAL, "--pod-resources=", scenario=scenario))["devices"][0]["pods"]
        check(got is None, f"{got}")


@test("top of an agent says of pods what top of the machine says")
def agent():
    with machine() as (scenario, kubelet, node, (first, _)):
        kubelet.pods = shares(first, "a", "b", "idle")
        flags = [f"--pod-resources={kubelet.path}", *node.flags()]
        with Agent(SHARED, *flags) as running:
            address = f"127.0.0.1:{running.metrics_port}"
            wait_until(lambda: rows(top(address, "-o", "json")) == [MEASURED, {}], f"{MEASURED}")
            pods = [[d["pods"] for d in json.loads(top(*a, scenario=scenario))["devices"]]
                    for a in ((address, "-o", "json"), (*LOCAL, *flags))]
            check(pods[0] == pods[1], f"{pods}")
            lines = [[line for line in top(*a, scenario=scenario).splitlines() if line.startswith(" pod")]
                     for a in ((address,), ("--nvml-library", NVMLSIM, *flags))]
            check(lines[0] == lines[1] and len(lines[0]) == 4, f"{lines}")
