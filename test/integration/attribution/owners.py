"""Owners on /metrics, for each form of id and each state of the kubelet."""
import json
import re

import grpc
from agent import Agent, check, wait_until
from kubelet import Kubelet, container, pod
from suite import add, test

TWO = "gpus: [{board: H100, utilization: 40}, {board: H100, utilization: 70}]\n"
MIG = "gpus: [{board: H100, mig: [{profile: 3g.40gb}, {profile: 1g.10gb}]}]\n"
OWNER = "keda_gpu_scaler_gpu_owner_info"
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def labels_of(agent, family):
    """The label sets of a family's series."""
    return [{k: json.loads(f'"{v}"') for k, v in LABEL.findall(text)} for text in agent.page().get(family, {})]


def holders(agent):
    """{uuid: ["namespace/pod/container", ...]}."""
    found = {}
    for owner in labels_of(agent, OWNER):
        found.setdefault(owner["uuid"], []).append(
            f"{owner['pod_namespace']}/{owner['pod_name']}/{owner['container_name']}")
    return {uuid: sorted(names) for uuid, names in found.items()}


def devices(agent, kind):
    """[(uuid, minor)] in the order of the page; the simulation's minor numbers are its indices."""
    return [(d["uuid"], int(d["gpu"])) for d in labels_of(agent, "keda_gpu_scaler_gpu_info") if d["kind"] == kind]


def state(agent):
    states = agent.page().get("keda_gpu_scaler_owners_state", {})
    return next((re.search('"(.*)"', text)[1] for text, value in states.items() if value == 1), None)


def watched(kubelet, scenario=TWO):
    return Agent(scenario, f"--pod-resources={kubelet.path}")


# ---- forms of ids ----

def shows(scenario, kind, form, sharing):
    """A container that holds the first device of a kind under an id is shown as its holder."""
    with Kubelet() as kubelet:
        with Agent(scenario, "--pod-resources=") as probe:
            uuid, minor = devices(probe, kind)[0]
            gi = [d.get("gpu_instance", "") for d in labels_of(probe, "keda_gpu_scaler_gpu_info") if d["uuid"] == uuid][0]
            gpu = labels_of(probe, "keda_gpu_scaler_gpu_info")[0]["uuid"]
        ids = [i.format(uuid=uuid, minor=minor, gi=gi, gpu=gpu) for i in form.split()]
        kubelet.pods = [pod("kube-system", "proxy", container("proxy")), pod("ml", "trainer-0", container("main", *ids))]
        with watched(kubelet, scenario) as agent:
            wait_until(lambda: holders(agent) == {uuid: ["ml/trainer-0/main"]}, f"{uuid} held by trainer-0")
            check(labels_of(agent, OWNER)[0]["sharing"] == sharing, f"{labels_of(agent, OWNER)}")
            wait_until(lambda: agent.metric("keda_gpu_scaler_owners_device_ids", 'match="matched"') > 0, "a match")
            check(agent.metric("keda_gpu_scaler_owners_device_ids", 'match="unmatched"') == 0, "an id is unmatched")


for what, arguments in {
        "a UUID": (TWO, "gpu", "{uuid}", "exclusive"),
        "a UUID for each of two NUMA nodes": (TWO, "gpu", "{uuid} {uuid}", "exclusive"),
        "a replica": (TWO, "gpu", "{uuid}::3", "shared"),
        "two replicas": (TWO, "gpu", "{uuid}::3 {uuid}::0", "shared"),
        "a split of HAMi": (TWO, "gpu", "{uuid}-2", "shared"),
        "a device file of GKE": (TWO, "gpu", "nvidia{minor}", "exclusive"),
        "a share of a device file of GKE": (TWO, "gpu", "nvidia{minor}/vgpu1", "shared"),
        "a UUID of MIG": (MIG, "mig", "{uuid}", "exclusive"),
        "a replica of MIG": (MIG, "mig", "{uuid}::7", "shared"),
        "instance ids of MIG before R470": (MIG, "mig", "MIG-{gpu}/{gi}/0", "exclusive"),
        "a GPU instance of GKE": (MIG, "mig", "nvidia{minor}/gi{gi}", "exclusive"),
}.items():
    add(f"{what} finds its device", shows, *arguments)


@test("claims of DRA find GPUs and MIG devices; two pods on one claim share it")
def dra():
    with Kubelet(pod("ml", "a", container("main", claims=[("ml", "part", "gpu-0-mig-1g10gb-19-4")])),
                 pod("ml", "b", container("main", claims=[("ml", "part", "gpu-0-mig-1g10gb-19-4")])),
                 pod("net", "c", container("main", claims=[("net", "big", "gpu-0-mig-3g40gb-9-0")]))) as kubelet:
        with watched(kubelet, MIG) as agent:
            wait_until(lambda: len(holders(agent)) == 2, "two devices with holders")
            owners = {(o["pod_name"], o["mig_profile"], o["sharing"], o["claim_name"], o["resource"])
                      for o in labels_of(agent, OWNER)}
            check(owners == {("a", "1g.10gb", "shared", "part", "gpu.nvidia.com"),
                             ("b", "1g.10gb", "shared", "part", "gpu.nvidia.com"),
                             ("c", "3g.40gb", "exclusive", "big", "gpu.nvidia.com")}, f"{owners}")


@test("claims of DRA tell MIG devices of one profile apart by placement, by the names of both generations")
def placements():
    scenario = "gpus: [{board: H100, mig: [{profile: 1g.10gb, count: 3}]}]\n"
    with Kubelet(pod("ml", "new", container("main", claims=[("ml", "a", "gpu-0-mig-1g10gb-19-1")])),
                 pod("ml", "old", container("main", claims=[("ml", "b", "gpu-0-mig-19-2-1")]))) as kubelet:
        with watched(kubelet, scenario) as agent:
            wait_until(lambda: len(holders(agent)) == 2, "two devices with holders")
            check(agent.metric("keda_gpu_scaler_owners_device_ids", 'match="unmatched"') == 0, "unmatched")


@test("of two pods that list one GPU the later holds it; a sidecar holds it with its pod; the rest is counted")
def turnover():
    with Kubelet() as kubelet, watched(kubelet) as agent:
        (first, _), (second, _) = devices(agent, "gpu")
        kubelet.pods = [pod("ml", "ended", container("main", first)), pod("ml", "runs", container("main", first)),
                        pod("ml", "two", container("proxy", second), container("main", second)),
                        pod("ml", "lost", container("main", "GPU-99999999-2222-3333-4444-555555555555")),
                        pod("ml", "nic", container("main", "0000:5e:00.1", resource="rdma/hca"))]
        wait_until(lambda: holders(agent) == {first: ["ml/runs/main"], second: ["ml/two/main", "ml/two/proxy"]}, "the holders")
        ids = {match: agent.metric("keda_gpu_scaler_owners_device_ids", f'match="{match}"')
               for match in ("matched", "unmatched", "superseded", "dropped")}
        check(ids == {"matched": 4, "unmatched": 1, "superseded": 1, "dropped": 0}, f"{ids}")
        kubelet.pods = []
        wait_until(lambda: not holders(agent), "pods that are gone to leave the page")


@test("names with quotes, backslashes and the longest names come through escaped and whole")
def names():
    longest = ("n" * 63, "p" * 253, "c" * 63)
    with Kubelet() as kubelet, watched(kubelet) as agent:
        (first, _), (second, _) = devices(agent, "gpu")
        kubelet.pods = [pod("a\"b", "c\\d\ne", container("\u00e4", first)),
                        pod(longest[0], longest[1], container(longest[2], second))]
        want = {first: ["a\"b/c\\d\ne/\u00e4"], second: ["/".join(longest)]}
        wait_until(lambda: holders(agent) == want, "both")


# ---- the kubelet ----

@test("an answer of nearly 16 MiB is taken")
def large():
    with Kubelet() as kubelet, watched(kubelet) as agent:
        uuid, _ = devices(agent, "gpu")[0]
        kubelet.pods = [pod("ml", f"cpu-{i}", container("main", cpu_ids=[1] * 1000000)) for i in range(16)]
        kubelet.pods.append(pod("ml", "trainer", container("main", uuid)))
        wait_until(lambda: holders(agent) == {uuid: ["ml/trainer/main"]}, "the holder")
        check(agent.get("/livez")[0] == 200, "not alive")


@test("without a socket the agent runs, says so once, and finds one that comes")
def late_socket():
    with Kubelet(pod("ml", "a", container("main", "nvidia0")), start=False) as kubelet, watched(kubelet) as agent:
        wait_until(lambda: state(agent) == "no_socket", "no_socket")
        check(agent.metric("keda_gpu_scaler_gpu_up") == 2, "the GPUs are gone")
        kubelet.start()
        wait_until(lambda: state(agent) == "ok" and holders(agent), "the holder")
        check(agent.log().count("pods are not known") == 1, agent.log()[-1500:])


@test("a kubelet that restarts with a new socket is found again; the last answer stands meanwhile")
def restart():
    with Kubelet(pod("ml", "a", container("main", "nvidia0"))) as kubelet, watched(kubelet) as agent:
        wait_until(lambda: holders(agent), "the holder")
        before = kubelet.calls
        kubelet.stop()
        wait_until(lambda: state(agent) == "no_socket", "no_socket")
        check(holders(agent), "the holder was dropped at once")
        check(agent.metric("keda_gpu_scaler_owners_age_seconds") > 0, "no age")
        kubelet.start()
        wait_until(lambda: state(agent) == "ok" and kubelet.calls > before, "ok")


@test("an answer that limits the rate is counted, and a later read gets through")
def rate_limit():
    with Kubelet(pod("ml", "a", container("main", "nvidia0"))) as kubelet:
        kubelet.error = (grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        with watched(kubelet) as agent:
            wait_until(lambda: agent.metric("keda_gpu_scaler_pod_resources_errors_total", 'reason="rate_limited"') >= 1,
                       "the error")
            check(state(agent) == "failed", f"{state(agent)}")
            kubelet.error = None
            wait_until(lambda: holders(agent), "the holder", patience_s=60)


@test("a kubelet that does not answer holds nothing up and is given up after 10 s")
def slow():
    with Kubelet(pod("ml", "a", container("main", "nvidia0"))) as kubelet:
        kubelet.gate.clear()
        with watched(kubelet) as agent:
            wait_until(lambda: kubelet.calls, "the call")
            check(state(agent) == "starting" and agent.metric("keda_gpu_scaler_gpu_up") == 2, "not served")
            wait_until(lambda: agent.metric("keda_gpu_scaler_pod_resources_errors_total", 'reason="deadline"') == 1, "the end")
            kubelet.gate.set()
            wait_until(lambda: holders(agent), "the holder")


@test("an old kubelet without the API is a state with a reason")
def unimplemented():
    with Kubelet() as kubelet:
        kubelet.error = (grpc.StatusCode.UNIMPLEMENTED, "unknown service v1.PodResourcesLister")
        with watched(kubelet) as agent:
            wait_until(lambda: state(agent) == "failed", "failed")
            check("pod-resources API v1" in agent.log(), agent.log()[-1500:])


@test("devices that come are matched at once")
def new_device():
    with Kubelet(pod("ml", "a", container("main", "nvidia1"))) as kubelet:
        with watched(kubelet, "gpus: [{board: H100}]\n") as agent:
            wait_until(lambda: agent.metric("keda_gpu_scaler_owners_device_ids", 'match="unmatched"') == 1, "unmatched")
            agent.play("gpus: [{board: H100}, {board: H100}]\n")
            wait_until(lambda: holders(agent), "the holder")


@test("with --pod-resources= nothing is asked and nothing shown")
def off():
    with Agent(TWO, "--pod-resources=") as agent:
        names_shown = [name for name in agent.page() if "owner" in name or "pod_resources" in name]
        check(not names_shown, f"{names_shown}")
