"""Fleet/Watch of an agent on simulated GPUs: what a hub knows at once, later, and when something breaks."""
import signal
import time

from agent import Agent, check, wait_until
from kubelet import Kubelet, container, pod
from node import Node
from scaler import SERVING, Scaler, grpc
from suite import test
from watcher import MISSING, NOT_YET, OK, UNSUPPORTED, Hub, pb

TWO = "gpus: [{board: H100, utilization: 40, memory_used_mib: 1000}, {board: H100, utilization: 70}]\n"
UTILIZATION = ("utilization", 15, 60)
ALL = ("utilization", 15, 60), ("memory_used", 0, 0), ("temperature", 300, 300)


def agent(scenario=TWO, *flags, pods="", **options):
    return Agent(scenario, f"--pod-resources={pods}", *flags, **options)


@test("a hub knows node, devices and readings at once, and hears each second")
def steady():
    with agent(interval="1s") as one:
        time.sleep(1.5)  # a past to have means of
        with Hub(one.address, *ALL) as hub:
            hub.wait(lambda h: h.mean() == 40, "the reading of GPU 0", 2)
            node = hub.node
            check(node.name == "testnode" and node.version and node.instance, f"{node}")
            check(node.is_simulated and node.driver == "ok" and node.driver_version, f"{node}")
            check(node.period_ms == 1000 and list(node.age_limits_ms) == [5000, 5000, 5000], f"{node}")
            check(node.owners == "" and node.sight == "off", f"{node}")
            check([d.index for d in hub.devices.values()] == [0, 1], f"{hub.devices}")
            check(all("H100" in d.product and d.uuid.startswith("GPU-") for d in hub.devices.values()), f"{hub.devices}")
            check(all(d.memory_total > 80e9 and d.gpu_instance == -1 for d in hub.devices.values()), f"{hub.devices}")
            check(hub.mean(1) == 70 and hub.mean(0, 1) == 1000 << 20, f"{hub.readings}")
            before = hub.of_device()["valid_s"]
            hub.wait_update(6)
            gaps = [b - a for a, b in zip(hub.heard, hub.heard[1:])]
            check(max(gaps) < 2 and sum(gaps) / len(gaps) > 0.5, f"{gaps}")
            after = hub.of_device()
            check(4 < after["valid_s"] - before < 8, f"{before} {after}")
            check(abs(after["integral"] - 40 * after["valid_s"]) < 1, f"{after}")


@test("a change is heard within 1.5 s at a period of 1 s")
def change():
    with agent(interval="1s") as one, Hub(one.address, ("utilization", 0, 0)) as hub:
        hub.wait(lambda h: h.mean() == 40, "40")
        one.play(TWO.replace("utilization: 40", "utilization: 90"))
        start = time.monotonic()
        hub.wait(lambda h: h.mean() == 90, "90", 3)
        check(time.monotonic() - start < 1.6, f"after {time.monotonic() - start:.2f} s")


@test("what hubs ask for differs; a hub that has just come knows what one has that heard all")
def two_hubs():
    wave = "gpus: [{board: H100, utilization: {step: [[0, 20], [2, 80], [3, 50], [4, 50]], loop: true}}]\n"
    with agent(wave) as one, Hub(one.address, UTILIZATION, name="a") as a:
        a.wait_update(30)
        with Hub(one.address, ("power", 0, 0), UTILIZATION, ("sm_activity", 0, 0), name="b") as b:
            b.wait(lambda h: h.of_device(0, 1) is not None, "its first update")
            check(b.of_device(0, 0)["status"] == OK and b.of_device(0, 2)["status"] == OK, f"{b.readings}")

            def agree():
                with a.lock, b.lock:
                    if abs(a.taken_s - b.taken_s) > 0.01:
                        return False
                    x, y = a.of_device(), b.of_device(0, 1)
                    close = abs(x["valid_s"] - y["valid_s"]) < 0.1 and abs(x["integral"] - y["integral"]) < 10
                    check(x["mean"] == y["mean"] and x["peak"] == y["peak"] and close, f"{x} {y}")
                    return True
            wait_until(agree, "both to hear of one snapshot")
        wait_until(lambda: one.metric("keda_gpu_scaler_open_streams", 'method="Fleet.Watch"') == 1, "b to be gone")
        check('"hub":"a"' in one.log() or "hub=a" in one.log(), one.log()[-1000:])


@test("fields that nobody knows are missing, those that the board lacks unsupported, places say nothing")
def fields():
    with agent("gpus: [{board: T4, utilization: 10}]\n") as one:
        with Hub(one.address, ("no_such", 0, 0), ("", 0, 0), ("sm_activity", 15, 60), UTILIZATION) as hub:
            hub.wait(lambda h: h.mean(0, 3) == 10, "10")
            check(hub.of_device(0, 0)["status"] == MISSING, f"{hub.readings}")
            check(hub.of_device(0, 1) is None, f"{hub.readings}")
            check(hub.of_device(0, 2)["status"] == UNSUPPORTED, f"{hub.readings}")


@test("a field that costs is read while a hub asks for it")
def on_request():
    with agent("gpus: [{board: T4}]\n") as one:
        with Hub(one.address, ("pcie_tx", 0, 0)) as hub:
            hub.wait(lambda h: (h.of_device() or {}).get("status") == OK, "PCIe throughput")
            seen = [r.readings[0].status for u in hub.updates for r in u.device_readings]
            check(set(seen) <= {NOT_YET, OK}, f"{seen}")


@test("wants that cannot be are refused")
def refusals():
    with agent() as one:
        for wants, word in (([("utilization", 301, 0)], "300000"), ([("utilization", i, 0) for i in range(65)], "64")):
            with Hub(one.address, *wants) as hub:
                hub.wait(lambda h: h.code, "the refusal")
                check(hub.code == grpc.StatusCode.INVALID_ARGUMENT and word in hub.call.details(), hub.call.details())


@test("MIG devices come with their parent")
def mig():
    with agent("gpus: [{board: H100, mig: [{profile: 3g.40gb, memory_used_mib: 900}, {profile: 1g.10gb}]}]\n") as one:
        with Hub(one.address, ("memory_used", 0, 0), ("utilization", 0, 0)) as hub:
            hub.wait(lambda h: len(h.devices) == 3, "three devices")
            parent, first, second = hub.devices.values()
            check(parent.kind == pb.MIG_PARENT and first.kind == second.kind == pb.MIG, f"{hub.devices}")
            check(first.parent_uuid == second.parent_uuid == parent.uuid, f"{hub.devices}")
            check({first.mig_profile, second.mig_profile} == {"3g.40gb", "1g.10gb"}, f"{hub.devices}")
            check(hub.readings[parent.id][1]["status"] == UNSUPPORTED, f"{hub.readings}")
            check(hub.readings[first.id][0]["status"] == OK, f"{hub.readings}")


# ---- pods ----


@test("a pod that has just come has what its GPU did since; later its GPU's readings are its own")
def exclusive():
    with Kubelet() as kubelet, agent(TWO, pods=kubelet.path) as one, Hub(one.address, ("utilization", 3, 8)) as hub:
        hub.wait(lambda h: h.node and h.node.owners == "ok", "the kubelet")
        uuid = [d.uuid for d in hub.devices.values() if d.index == 1][0]
        kubelet.pods = [pod("ml", "llm-0", container("main", uuid))]
        hub.wait(lambda h: h.holder("llm-0"), "the pod")
        holder = hub.holder("llm-0")
        check(holder.namespace == "ml" and holder.is_listed and not holder.is_shared and not holder.is_measured, f"{holder}")
        hub.wait(lambda h: (h.of_pod("llm-0") or {}).get("mean") == 70, "its reading")
        hub.wait(lambda h: h.of_pod("llm-0") is None and h.holder("llm-0"), "its device's to be its own")
        kubelet.pods = []
        hub.wait(lambda h: not h.holders, "the pod to leave")


@test("pods on a shared GPU have what their own processes do")
def shared():
    scenario = ("gpus: [{board: H100, utilization: 60, processes: [{pid: 501, memory_mib: 20000, sm: 40}, "
                "{pid: 601, memory_mib: 10000, sm: 20}]}]\n")
    with Node() as files, Kubelet() as kubelet:
        for number, (pid, name) in enumerate(((501, "a"), (601, "b")), 1):
            files.in_pod(pid, number)
            files.name(number, "ml", name)
        with agent(scenario, *files.flags(), pods=kubelet.path) as one:
            with Hub(one.address, ("utilization", 0, 0), ("memory_used", 0, 0), ("temperature", 0, 0)) as hub:
                hub.wait(lambda h: h.devices, "the GPU")
                uuid = list(hub.devices.values())[0].uuid
                kubelet.pods = [pod("ml", name, container("main", f"{uuid}::{i}")) for i, name in enumerate("ab")]
                hub.wait(lambda h: h.holder("a") and h.holder("a").is_shared and h.holder("b"), "both pods")
                hub.wait(lambda h: (h.of_pod("a", 0) or {}).get("mean") == 40, "the load of a")
                hub.wait(lambda h: (h.of_pod("b", 0) or {}).get("mean") == 20, "the load of b")
                hub.wait(lambda h: (h.of_pod("a", 1) or {}).get("mean") == 20000 << 20, "the memory of a")
                check(hub.of_pod("a", 2)["status"] == UNSUPPORTED, f"{hub.own}")
                check(hub.holder("a").is_measured and hub.holder("a").processes == 1, f"{hub.holders}")
                check(hub.node.sight == "ok", f"{hub.node}")
                hub.wait(lambda h: len(h.holder("a").memory_low) > 0, "memory by minutes")


# ---- what breaks ----


@test("a hung driver: updates go on, the snapshot's age grows, readings stand as they were")
def hung():
    with agent(interval="1s") as one, Hub(one.address, UTILIZATION) as hub:
        hub.wait(lambda h: h.mean() == 40, "40")
        one.play(TWO + "faults: [{fault: hung}]\n")
        hub.wait(lambda h: h.age_s > 7, "the age to grow")
        check(max(b - a for a, b in zip(hub.heard, hub.heard[1:])) < 2.5, f"{hub.heard}")
        reading = hub.of_device()
        check(reading["status"] == OK and abs(reading["taken_s"] - hub.taken_s) < 0.5, f"{reading} {hub.taken_s}")
        check(hub.node.driver == "ok", "nobody knows better")
        one.play(TWO)
        hub.wait(lambda h: h.age_s < 1 and h.mean() == 40, "readings again")


@test("a driver that is not there is said at once, with the reason")
def no_driver():
    with Agent(None, "--pod-resources=", library="/nonexistent/libnvidia-ml.so.1") as one:
        with Hub(one.address, UTILIZATION) as hub:
            hub.wait_update()
            check(hub.node.driver == "no_library" and "/nonexistent" in hub.node.driver_text, f"{hub.node}")
            check(not hub.node.is_simulated and not hub.devices, f"{hub.node}")


@test("a driver that is still being loaded is not said to have no GPUs")
def late_driver():
    with agent(TWO + "faults: [{fault: init_hang, until: 3}]\n", wait=False) as one, Hub(one.address, UTILIZATION) as hub:
        hub.wait_update()
        check(len(hub.devices) == 2, f"{hub.updates[0]}")


@test("a kubelet that is not there is said; the devices are known")
def no_kubelet():
    with agent(TWO, pods="/nonexistent/kubelet.sock") as one, Hub(one.address, UTILIZATION) as hub:
        hub.wait(lambda h: h.node and h.node.owners == "no_socket" and h.node.owners_text, "the kubelet's state")
        check(len(hub.devices) == 2 and not hub.holders, f"{hub.devices}")


@test("a GPU that is lost says so and its readings are missing")
def lost():
    with agent() as one, Hub(one.address, UTILIZATION) as hub:
        hub.wait(lambda h: h.mean() == 40, "40")
        one.play(TWO + "faults: [{fault: lost, gpu: 0}]\n")
        hub.wait(lambda h: any(d.lost_reason for d in h.devices.values()), "the loss")
        hub.wait(lambda h: h.of_device()["status"] == MISSING and h.mean(1) == 70, "a missing reading")


@test("SIGTERM ends the stream with OK; the agent that comes after is another instance")
def restart():
    with agent() as one, Hub(one.address, UTILIZATION) as hub:
        hub.wait_update()
        one.signal(signal.SIGTERM)
        check(one.wait_exit() == 0, "the agent did not end with 0")
        hub.wait(lambda h: h.code, "the end")
        check(hub.code == grpc.StatusCode.OK, f"{hub.code}")
    with agent() as two, Hub(two.address, UTILIZATION) as other:
        other.wait_update()
        check(other.node.instance != hub.node.instance, "the same instance")


@test("Fleet is among the names of health")
def health():
    with agent() as one, Scaler(one.address) as scaler:
        check(scaler.serving("kedagpuscaler.fleet.v1.Fleet") == SERVING, "not serving")
