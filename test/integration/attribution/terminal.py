"""Pods in `top`: of this machine by its kubelet, and of an agent that tells processes apart by a /proc of ours."""
import json
import os
import pathlib
import subprocess
import tempfile

from agent import NVMLSIM, PROGRAM, Agent, check, wait_until
from kubelet import Kubelet, container, pod
from suite import test

SHARED = """gpus:
  - board: H100
    utilization: 60
    memory_used_mib: 40000
    processes: [{pid: 101, memory_mib: 20000, sm: 40}, {pid: 102, memory_mib: 16000, sm: 20}]
  - {board: H100, utilization: 30}
"""
UIDS = {101: "11111111-2222-3333-4444-555555555551", 102: "11111111-2222-3333-4444-555555555552"}
STAT = "{pid} (serve) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n"


def top(*arguments, scenario=None):
    env = {k: v for k, v in os.environ.items() if k != "NODE_NAME"}
    if scenario:
        env["NVMLSIM_SCENARIO"] = str(scenario)
    out = subprocess.run([PROGRAM, "top", *map(str, arguments)], env=env, check=True, text=True, timeout=60,
                         stdout=subprocess.PIPE).stdout
    return out


def rows(document):
    """{pod: (sharing, utilisation, memory)} of each device."""
    return [{p["name"]: (p["sharing"], p["utilization_percent"], p["memory_used_bytes"]) for p in device["pods"] or []}
            for device in json.loads(document)["devices"]]


def procfs(folder):
    """A host's /proc with the two processes, in containers of two pods."""
    root = pathlib.Path(folder)
    (root / "self/ns").mkdir(parents=True)
    (root / "self/ns/pid").symlink_to("pid:[4026531836]")
    for name, pid in (("self", 1), *((str(pid), pid) for pid in UIDS)):
        (root / name).mkdir(exist_ok=True)
        (root / name / "stat").write_text(STAT.format(pid=pid, start=1000 + pid))
        unit = "/system.slice/agent.service" if pid == 1 else (
            f"/kubepods.slice/kubepods-pod{UIDS[pid].replace('-', '_')}.slice/cri-containerd-{pid:064x}.scope")
        (root / name / "cgroup").write_text(f"0::{unit}\n")
    logs = root / "logs"
    for pid, uid in UIDS.items():
        (logs / f"ml_serve-{pid}_{uid}").mkdir(parents=True)
    return root


@test("top of this machine shows the pods that the kubelet lists, and measures nothing of them")
def machine():
    with tempfile.TemporaryDirectory(prefix="terminal-") as folder, Kubelet() as kubelet:
        scenario = pathlib.Path(folder) / "scenario.yaml"
        scenario.write_text(SHARED)
        local = ("-o", "json", "--nvml-library", NVMLSIM)
        first, second = (d["uuid"] for d in json.loads(top(*local, "--pod-resources=", scenario=scenario))["devices"])
        kubelet.pods = [pod("ml", "a", container("main", f"{first}::0")), pod("ml", "b", container("main", f"{first}::1")),
                        pod("ml", "c", container("main", second))]
        got = rows(top(*local, "--pod-resources", kubelet.path, scenario=scenario))
        check(got == [{"a": ("shared", None, None), "b": ("shared", None, None)}, {"c": ("exclusive", None, None)}], str(got))
        page = json.loads(top(*local, "--pod-resources=", scenario=scenario))
        check([d["pods"] for d in page["devices"]] == [None, None], "pods of a kubelet that was not asked")
        kubelet.pods = []
        page = json.loads(top(*local, "--pod-resources", kubelet.path, scenario=scenario))
        check([d["pods"] for d in page["devices"]] == [[], []], "a kubelet without pods")
        page = json.loads(top(*local, "--pod-resources", "/nonexistent.sock", scenario=scenario))
        check([d["pods"] for d in page["devices"]] == [None, None], "no kubelet")


@test("top of an agent: each pod's own share of a shared GPU, as the simulated driver has it")
def shared():
    with tempfile.TemporaryDirectory(prefix="terminal-") as folder, Kubelet() as kubelet:
        root = procfs(folder)
        with Agent(SHARED, f"--pod-resources={kubelet.path}", f"--procfs={root}", f"--pod-logs={root}/logs") as agent:
            address = f"127.0.0.1:{agent.metrics_port}"
            uuid = json.loads(top(address, "-o", "json"))["devices"][0]["uuid"]
            kubelet.pods = [pod("ml", "serve-101", container("main", f"{uuid}::0")),
                            pod("ml", "serve-102", container("main", f"{uuid}::1")),
                            pod("ml", "idle", container("main", f"{uuid}::2"))]
            want = {"serve-101": ("shared", 40, 20000 << 20), "serve-102": ("shared", 20, 16000 << 20)}
            got = wait_until(lambda: all(rows(top(address, "-o", "json"))[0].get(k) == v for k, v in want.items()) and
                             rows(top(address, "-o", "json")), f"{want}")
            check(set(got[0]) == {*want, "idle"} and got[1] == {}, str(got))
            lines = top(address).splitlines()
            check([line.split()[:2] for line in lines[2:5]] == [["pod", f"ml/{name}"] for name in sorted(got[0])], str(lines))
            uids = {p["name"]: p["uid"] for p in json.loads(top(address, "-o", "json"))["devices"][0]["pods"]}
            check(uids["serve-101"] == UIDS[101] and uids["serve-102"] == UIDS[102], str(uids))
