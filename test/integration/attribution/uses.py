"""What pods do on devices, on /metrics: processes of the simulated driver, a /proc and names of pods made for the test."""
import re

import cache
from agent import Agent, check, wait_until
from kubelet import Kubelet, container, pod
from node import OWN, Node, identity
from owners import MIG, devices, holders, labels_of
from suite import test

LOAD, MEMORY = "keda_gpu_scaler_pod_gpu_utilization_ratio", "keda_gpu_scaler_pod_gpu_memory_used_bytes"
MIB = 1 << 20
SHARED = """gpus:
  - board: H100
    utilization: 70
    processes:
      - {pid: 501, memory_mib: 20000, sm: 30}
      - {pid: 502, memory_mib: 5000, sm: 10}
      - {pid: 601, memory_mib: 16000, sm: 20}
      - {pid: 700, memory_mib: 1000, sm: 10}
"""
ONE = "gpus: [{board: H100, utilization: 40, processes: [{pid: 501, memory_mib: 4000, sm: 40}]}]\n"


def shares(agent, family):
    """{(namespace, pod): value} of a family of pods, over all devices."""
    found = {}
    for text, value in agent.page().get(family, {}).items():
        labels = dict(re.findall(r'(\w+)="([^"]*)"', text))
        key = labels.get("pod_namespace", ""), labels.get("pod_name", "")
        found[key] = found.get(key, 0) + value
    return found


def near(got, want, tolerance):
    return got.keys() == want.keys() and all(abs(got[key] - want[key]) <= tolerance for key in want)


def sight(agent):
    states = agent.page().get("keda_gpu_scaler_process_sight", {})
    return next((re.search('"(.*)"', text)[1] for text, value in states.items() if value == 1), None)


def shared_node():
    """Pods a (two processes) and b on one GPU, and a process of the host."""
    node = Node()
    for pid in (501, 502):
        node.in_pod(pid, 1)
    node.in_pod(601, 2)
    node.process(700, "0::/system.slice/sshd.service")
    node.name(1, "ml", "a")
    node.name(2, "ml", "b")
    return node


def two_on_one(uuid):
    return [pod("ml", name, container("main", f"{uuid}::{i}")) for i, name in enumerate("ab")]


@test("pods on a shared GPU have what their own processes use, and all of it is the device's")
def shared():
    with shared_node() as node, Kubelet() as kubelet:
        with Agent(SHARED, f"--pod-resources={kubelet.path}", *node.flags()) as agent:
            uuid, _ = devices(agent, "gpu")[0]
            kubelet.pods = two_on_one(uuid)
            want = {("ml", "a"): 0.4, ("ml", "b"): 0.2, ("", ""): 0.1}
            wait_until(lambda: near(shares(agent, LOAD), want, 0.011), f"{want}")
            want = {("ml", "a"): 25000 * MIB, ("ml", "b"): 16000 * MIB, ("", ""): 1000 * MIB}
            wait_until(lambda: near(shares(agent, MEMORY), want, MIB), f"{want}")
            for family, rest, device in ((LOAD, "utilization_ratio", "utilization_ratio"), (MEMORY, "memory_bytes", "memory_used_bytes")):
                def adds_up(family=family, rest=rest, device=device):
                    page = agent.page()
                    total = sum(page[family].values()) + sum(page[f"keda_gpu_scaler_gpu_unattributed_{rest}"].values())
                    return abs(total - sum(page[f"keda_gpu_scaler_gpu_{device}"].values())) <= 1e-9 * total
                wait_until(adds_up, f"the sum of {family} and the rest")
            check(sight(agent) == "ok" and agent.metric("keda_gpu_scaler_processes_unattributed") == 0, "not all are told")
            uids = {labels["pod_name"]: labels["pod_uid"] for labels in labels_of(agent, MEMORY) if "pod_name" in labels}
            check(uids == {"a": identity(1)[0], "b": identity(2)[0]}, f"{uids}")
            check(agent.log().count("told apart") == 1, agent.log()[-1500:])


@test("a pod that holds a share and does nothing has 0; a pod that ends has nothing")
def idle():
    with shared_node() as node, Kubelet() as kubelet:
        with Agent(SHARED, f"--pod-resources={kubelet.path}", *node.flags()) as agent:
            uuid, _ = devices(agent, "gpu")[0]
            kubelet.pods = [*two_on_one(uuid), pod("ml", "idle", container("main", f"{uuid}::2"))]
            wait_until(lambda: shares(agent, LOAD).get(("ml", "idle")) == 0 and shares(agent, MEMORY).get(("ml", "idle")) == 0, "0")
            kubelet.pods = two_on_one(uuid)[:1]
            agent.play(SHARED.replace("      - {pid: 601, memory_mib: 16000, sm: 20}\n", ""))
            node.end(601)
            wait_until(lambda: shares(agent, LOAD).keys() == {("ml", "a"), ("", "")}, "b and idle to leave", patience_s=60)


@test("without a kubelet's socket pods are known by their processes alone")
def no_kubelet():
    with shared_node() as node, Agent(SHARED, "--pod-resources=", *node.flags()) as agent:
        want = {("ml", "a"): 0.4, ("ml", "b"): 0.2, ("", ""): 0.1}
        wait_until(lambda: near(shares(agent, LOAD), want, 0.011), f"{want}")
        check(not agent.page().get("keda_gpu_scaler_owners_state"), "owners are shown")


@test("a pid that is used again is of its new pod")
def reuse():
    with shared_node() as node, Agent(ONE, "--pod-resources=", *node.flags()) as agent:
        wait_until(lambda: shares(agent, LOAD).keys() == {("ml", "a")}, "a")
        node.end(501)
        node.in_pod(501, 2, start=7777)
        wait_until(lambda: shares(agent, LOAD).keys() == {("ml", "b")}, "b")


@test("links of logs name pods where a cgroup namespace hides their UIDs")
def links():
    with Node() as node:
        node.process(501, f"0::/../cri-containerd-{identity(3)[1]}.scope")
        with Agent(ONE, "--pod-resources=", *node.flags()) as agent:
            wait_until(lambda: agent.metric("keda_gpu_scaler_processes_unattributed") == 1, "an untold process")
            node.link(3, "ml", "hidden")
            wait_until(lambda: shares(agent, LOAD).keys() == {("ml", "hidden")}, "the name")
            check(agent.metric("keda_gpu_scaler_processes_unattributed") == 0, "still untold")


@test("of a MIG device a pod has memory and no utilization")
def mig():
    with Node() as node, Kubelet() as kubelet:
        with Agent(MIG, "--pod-resources=") as probe:
            uuid, _ = devices(probe, "mig")[1]
            gi = next(d["gpu_instance"] for d in labels_of(probe, "keda_gpu_scaler_gpu_info") if d["uuid"] == uuid)
        kubelet.pods = [pod("ml", "slice", container("main", uuid))]
        node.in_pod(501, 1)
        node.name(1, "ml", "slice")
        scenario = MIG.replace("{board: H100,", f"{{board: H100, processes: [{{pid: 501, memory_mib: 3000, gpu_instance: {gi}}}],")
        with Agent(scenario, f"--pod-resources={kubelet.path}", *node.flags()) as agent:
            wait_until(lambda: shares(agent, MEMORY).get(("ml", "slice")) == 3000 * MIB, "the memory")
            check(("ml", "slice") not in shares(agent, LOAD), "a utilization of a MIG device")
            check([d["uuid"] for d in labels_of(agent, MEMORY)] == [uuid], "not on the MIG device")


@test("of two pods that list one GPU the one with a process holds it, and the other where that has ended")
def alive():
    with Node() as node, Kubelet() as kubelet:
        node.in_pod(501, 1)
        node.name(1, "ml", "first")
        with Agent(ONE, f"--pod-resources={kubelet.path}", *node.flags()) as agent:
            uuid, _ = devices(agent, "gpu")[0]
            kubelet.pods = [pod("ml", "first", container("main", uuid)), pod("ml", "second", container("main", uuid))]
            wait_until(lambda: holders(agent) == {uuid: ["ml/first/main"]}, "the first", patience_s=60)
            agent.play("gpus: [{board: H100, utilization: 40}]\n")
            node.end(501)
            wait_until(lambda: holders(agent) == {uuid: ["ml/second/main"]}, "the second", patience_s=60)


@test("in a pid namespace of its own the agent says so once, with what to do, and shows nobody's use")
def own_namespace():
    with Node(OWN) as node, Kubelet() as kubelet, Agent(ONE, f"--pod-resources={kubelet.path}", *node.flags()) as agent:
        uuid, _ = devices(agent, "gpu")[0]
        kubelet.pods = two_on_one(uuid)
        wait_until(lambda: sight(agent) == "no_host_pids" and holders(agent), "no_host_pids and holders")
        check(not shares(agent, LOAD) and not shares(agent, MEMORY), f"{shares(agent, LOAD)}")
        check(agent.log().count("agent.hostPID=true") == 1, agent.log()[-1500:])
        node.in_pod(501, 1)
        node.name(1, "ml", "a")
        wait_until(lambda: sight(agent) == "ok" and ("ml", "a") in shares(agent, LOAD), "pids that match pods of a nested node")


@test("a procfs that is not there is said")
def no_procfs():
    with Agent(ONE, "--pod-resources=", "--procfs=/nonexistent") as agent:
        wait_until(lambda: sight(agent) == "no_procfs", "no_procfs")
        check("mount the host's /proc" in agent.log(), agent.log()[-1500:])
        check(agent.metric("keda_gpu_scaler_gpu_up") == 1, "the GPU is gone")


@test("without --procfs the driver's processes are not read, and holders are those of the kubelet")
def off():
    with Kubelet(pod("ml", "a", container("main", "nvidia0"))) as kubelet:
        with Agent(SHARED, f"--pod-resources={kubelet.path}") as agent:
            wait_until(lambda: holders(agent), "the holder")
            check(sight(agent) == "off", f"{sight(agent)}")
            check(not agent.page().get("keda_gpu_scaler_process_looks_total"), "it looks")


@test("with the machine's own /proc the agent starts, whatever it can see there")
def own_proc():
    with Agent(ONE, "--pod-resources=", "--procfs=/proc") as agent:
        wait_until(lambda: sight(agent) in ("ok", "no_host_pids"), "a state")


def sums(page, pods, rest, device):
    """[(sum of the pods, rest, device)] by GPU; rest None where it is not told."""
    def by_gpu(family):
        found = {}
        for text, value in page.get(family, {}).items():
            gpu = re.search(r'gpu="(\d+)"', text)[1]
            found[gpu] = found.get(gpu, 0) + value
        return found
    parts, rests, wholes = by_gpu(pods), by_gpu(rest), by_gpu(device)
    return [(parts.get(gpu, 0), rests.get(gpu), wholes[gpu]) for gpu in sorted(wholes)]


@test("while loads move, pods and rest are the device in each of many scrapes, and what all processes do leaves no rest")
def moving():
    scenario = (cache.ROOT / "nvmlsim/scenarios/shared.yaml").read_text()
    utilization = (LOAD, "keda_gpu_scaler_gpu_unattributed_utilization_ratio", "keda_gpu_scaler_gpu_utilization_ratio")
    memory = (MEMORY, "keda_gpu_scaler_gpu_unattributed_memory_bytes", "keda_gpu_scaler_gpu_memory_used_bytes")
    with Node() as node:
        for pid, number in ((43001, 1), (43002, 2), (43003, 3), (43011, 1), (43012, 2)):
            node.in_pod(pid, number)
        node.process(43010, "0::/system.slice/nvidia-mps.service")
        for number, name in ((1, "a"), (2, "b"), (3, "c")):
            node.name(number, "ml", name)
        with Agent(scenario, "--pod-resources=", *node.flags()) as agent:
            def is_told():
                page = agent.page()
                shown = sums(page, *utilization) if len(page.get(MEMORY, {})) == len(page.get(LOAD, {})) == 5 else []
                return shown and all(pods > 0 for pods, _, _ in shown)  # there are no samples of before the driver's start
            wait_until(is_told, "what all processes do")
            seen = set()
            while len(seen) < 8:  # other loads each time: the second GPU's rise by one in a second
                page = agent.page()
                for families, slack in ((utilization, 0.04), (memory, MIB)):
                    for gpu, (pods, rest, device) in enumerate(sums(page, *families)):
                        where = f"{families[0]} of GPU {gpu}: pods {pods}, rest {rest}, device {device}"
                        check(rest is not None and (rest == 0 or abs(pods + rest - device) <= 1e-6), where)
                        # The first GPU leaps when its third process comes: readings are not of one moment.
                        check(gpu == 0 or (rest <= slack and abs(pods - device) <= slack), where)
                seen.add(sums(page, *utilization)[1][2])
