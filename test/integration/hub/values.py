"""What a hub answers about workloads that stand still: whose load counts, and how."""
from cluster import LOAD, Cluster, check, load, make_hpa, make_pod, make_scaled_object, refused, uuid_of, wait_until, web
from node import Node, identity
from suite import test


@test("the value is of the workload's own pods on all nodes; what other tenants do changes nothing")
def own_load():
    with web(40, 60, 80) as cluster:
        hub = cluster.hub()
        ask = hub.ask("ml", "web")
        ask.until(180)  # 3 pods at 60 on average: more than 3 x 50
        check(ask.spec(LOAD) == ("load", 50), f"{ask.spec(LOAD)}")
        check(ask.active(LOAD), "not active at 80 %")
        for node in cluster.nodes:
            node.play(node.gpus[0], 0)
        wait_until(lambda: all(gpu["utilizationPercent"] == 0 for gpu in hub.api("gpus")["gpus"] if gpu["index"] == 1),
                   "the hub to see the other tenants idle")
        ask.stays(180, 1)
        for node in cluster.nodes:
            node.play(10, 99)
        ask.until(30)


@test("max is of the busiest pod, min of the idlest, p95 by nearest rank")
def aggregations():
    with web(40, 60, 80) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(240, load(aggregation="max"))
        ask.until(240, load(aggregation="p95"))
        ask.until(120, load(aggregation="min"))


@test("a pod with two GPUs counts with their mean, two workloads on a node each with their own")
def several():
    with Cluster([30, 50, 90], [10, 70, 90]) as cluster:
        cluster.workload("pair", {"pair-0": (0, 0, 1), "pair-1": (1, 0, 1)})
        cluster.workload("solo", {"solo-0": (0, 2), "solo-1": (1, 2)})
        cluster.start_agents()
        hub = cluster.hub()
        hub.ask("ml", "pair").until(80)
        hub.ask("ml", "solo").until(180)
        names = {(w["namespace"], w["name"]) for w in hub.api("workloads")["workloads"]}
        check(names == {("ml", "pair"), ("ml", "solo")}, f"{names}")


@test("gpuIndex is of each pod's GPUs; gpuUUID and gpuProduct choose devices; a choice that fits none is refused")
def choices():
    with Cluster([30, 50], [10, {"board": "A10", "utilization": 90}]) as cluster:
        cluster.workload("pair", {"pair-0": (0, 0, 1), "pair-1": (1, 0, 1)})
        cluster.start_agents()
        ask = cluster.hub().ask("ml", "pair")
        ask.until(140, load(gpuIndex=1))
        ask.until(40, load(gpuIndex=0))
        ask.until(50, load(gpuProduct="H100"))  # pair-0: 30 and 50; pair-1: 10
        ask.until("FAILED_PRECONDITION", load(gpuProduct="B200"))
        ask.until("FAILED_PRECONDITION", load(gpuIndex=7))
        with refused("FAILED_PRECONDITION", "gpuProduct", "pair-1"):
            ask.value(load(gpuProduct="B200"))
        one = ask.answer(load(gpuUUID=uuid_of(0, 1)))
        check(one in (50, 100), f"of one pod's GPU alone: {one}: {ask.why(load(gpuUUID=uuid_of(0, 1)))}")


@test("a MIG device is a device of its own")
def mig():
    parts = {"mig": [{"profile": "3g.40gb", "sm_activity": 70}, {"profile": "1g.10gb", "sm_activity": 10}]}
    activity = load(metricType="sm_activity")
    with Cluster([parts], [parts]) as cluster:
        cluster.start_agents()
        for node in cluster.nodes:
            slices = {d["mig"]: d["uuid"] for d in mig_devices(node.agent)}
            node.holds("ml", f"web-{node.number}", slices["3g.40gb"])
            node.holds("other", f"small-{node.number}", slices["1g.10gb"])
        cluster.workload("web", {"web-0": (0,), "web-1": (1,)}, metadata=activity, gpus=1)
        cluster.hub().ask("ml", "web").until(140, activity)


def mig_devices(agent):
    import re  # pylint: disable=import-outside-toplevel
    rows = {}
    for text in agent.page().get("keda_gpu_scaler_gpu_info", {}):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', text))
        if labels.get("mig_profile"):
            rows[labels["uuid"]] = {"mig": labels["mig_profile"], "uuid": labels["uuid"]}
    return rows.values()


@test("pods of a LeaderWorkerSet's group are one replica, whose value is their mean")
def groups():
    with Cluster([20, 60], [100, 80]) as cluster:
        cluster.start_agents()
        cluster.kube.put({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
                          "metadata": {"namespace": "ml", "name": "llm"}, "spec": {"replicas": 2}, "status": {"replicas": 2}})
        cluster.kube.set_scale("leaderworkersets", "ml", "llm", 2, 2, "app=llm")
        for node in (0, 1):
            for index in (0, 1):
                pod = make_pod("ml", f"llm-{node}-{index}", f"node-{node}", "llm")
                pod["metadata"]["labels"]["leaderworkerset.sh/group-index"] = str(node)
                cluster.kube.put(pod)
                cluster.nodes[node].holds("ml", f"llm-{node}-{index}", index)
        cluster.kube.put(make_hpa("ml", "llm"))
        cluster.kube.put(make_scaled_object("ml", "llm", LOAD, scaleTargetRef={
            "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llm"}))
        ask = cluster.hub().ask("ml", "llm")
        ask.until(130)  # 40 and 90
        ask.until(180, load(aggregation="max"))


@test("pods that share a GPU count with their own processes' share of what is theirs to have")
def shared():
    gpu = {"utilization": 90, "processes": [{"pid": 501, "memory_mib": 4000, "sm": 60}, {"pid": 601, "memory_mib": 4000, "sm": 30}]}
    with Node() as files, Cluster([gpu], flags=files.flags()) as cluster:
        files.in_pod(501, 1)
        files.in_pod(601, 2)
        files.name(1, "ml", "web-0")
        files.name(2, "other", "train-0")
        for number, (ns, name) in enumerate((("ml", "web-0"), ("other", "train-0"))):
            cluster.nodes[0].holds(ns, name, f"{uuid_of(0, 0)}::{number}")
        cluster.workload("web", {"web-0": (0,)}, gpus=1)
        pod = cluster.kube.get(("v1", "pods"), "ml", "web-0", None)
        cluster.kube.put({**pod, "metadata": {**pod["metadata"], "uid": identity(1)[0]}})
        cluster.start_agents()
        ask = cluster.hub().ask("ml", "web")
        ask.until(100 * 60 / (60 + 100 - 90))  # 85.7: own share of own share and what is free
        why = ask.why()
        check("share" in why, why)


@test("scope cluster is of all GPUs; scope node is refused; what is no ScaledObject has scope cluster only")
def scopes():
    with web(40, 60, 80) as cluster:
        hub = cluster.hub()
        ask, nobody = hub.ask("ml", "web"), hub.ask("ml", "nobody")
        ask.until(99, load(scope="cluster", aggregation="max"))
        ask.until(477, load(scope="cluster", aggregation="sum"))
        nobody.until(477, load(scope="cluster", aggregation="sum"))
        with refused("FAILED_PRECONDITION", "agent"):
            ask.value(load(scope="node"))
        with refused("FAILED_PRECONDITION", "ScaledObject", "scope: cluster"):
            nobody.value(LOAD)
        with refused("FAILED_PRECONDITION", "ScaledObject"):
            nobody.active(LOAD)


@test("a ScaledJob is refused with the reason; so is a ScaledObject whose pods have no GPU")
def refusals():
    with web(40, 60, 80) as cluster:
        cluster.kube.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": {"namespace": "ml", "name": "batch"},
                          "spec": {"triggers": [{"type": "external", "metadata": LOAD}]}})
        cluster.workload("plain", {"plain-0": (0,)}, gpus=0)
        hub = cluster.hub()
        hub.ask("ml", "batch").until("FAILED_PRECONDITION")
        with refused("FAILED_PRECONDITION", "ScaledJob"):
            hub.ask("ml", "batch").value(LOAD)
        hub.ask("ml", "plain").until("FAILED_PRECONDITION")
        with refused("FAILED_PRECONDITION", "requests no GPU"):
            hub.ask("ml", "plain").value(LOAD)


@test("under an HPA of type Value the answer is what that HPA makes the same count of")
def value_type():
    with web(90, 90, 90, hpa={"kind": "Value"}) as cluster:
        ask = cluster.hub().ask("ml", "web")
        ask.until(90)  # 3 x 90 asks for 6 of 50; Value multiplies by the 3 Ready pods itself
        why = ask.why()
        check("hpa      Value, target 50" in why and "it answers 6" in why, why)


@test("without permission for HPAs AverageValue is assumed, without one for ScaledObjects podSelector stands in")
def permissions():
    with web(40, 60, 80) as cluster:
        cluster.kube.fault(path="horizontalpodautoscalers", status=403)
        cluster.kube.fault(path="scaledobjects", status=403)
        hub = cluster.hub()
        ask = hub.ask("ml", "web")
        ask.until("UNAVAILABLE")
        check("podSelector" in ask.why(), ask.why())
        ask.until(180, load(podSelector="app=web"))
        check("may not be read" in ask.why(load(podSelector="app=web")), ask.why(load(podSelector="app=web")))
        page = hub.get("/readyz?verbose", port=hub.probe_port)[2].decode()
        check("scaledobjects may not be read" in page and "[+]scaledobjects" in page, page)


@test("nodes without a kubelet that simulate give each pod a simulated GPU, marked everywhere")
def simulated():
    with Cluster([70, 20], [50, 20], has_kubelet=False) as cluster:
        cluster.workload("web", {"web-0": (0,), "web-1": (1,)}, gpus=1)
        cluster.start_agents()
        hub = cluster.hub()
        ask = hub.ask("ml", "web")
        ask.until(120)
        check("simulated" in ask.why(), ask.why())
        check("simulated" in hub.text("nodes"), hub.text("nodes"))
        page = hub.api("workloads/ml/web")["triggers"][0]
        check(all(d["isSimulated"] and d["isGiven"] for pod in page["pods"] for d in pod["devices"]), f"{page['pods']}")
        check(any(note["id"] == "simulated" for note in page["notes"]), f"{page['notes']}")
        two = cluster.hub("--simulated-gpus=2").ask("ml", "web")
        two.until(80)  # 45 and 35
        cluster.hub("--simulated-gpus=0").ask("ml", "web").until("UNAVAILABLE")


@test("KEDA's push is served: true once when the workload's own pods become active")
def push():
    with web(0, 0, 0) as cluster:
        hub = cluster.hub()
        ask = hub.ask("ml", "web")
        ask.until(0)
        stream = ask.stream_active(load(activationThreshold=5), timeout=30)
        cluster.nodes[1].play(60, 99)
        check(next(iter(stream)).result, "not true")
        stream.cancel()


@test("a ScaledObject without replicas is 0 and not active; one without an HPA of ours is answered all the same")
def edges():
    with web(40, 60, 80) as cluster:
        cluster.workload("none", {}, replicas=0)
        cluster.kube.put(make_hpa("ml", "web", metric="something-else"))
        hub = cluster.hub()
        none = hub.ask("ml", "none")
        none.until(0)
        check(not none.active(LOAD), "active without replicas")
        web_ = hub.ask("ml", "web")
        web_.until(180)
        cluster.kube.delete("scaledobjects", "ml", "web")
        web_.until("UNAVAILABLE")
        cluster.kube.put(make_scaled_object("ml", "web", LOAD))
        web_.until(180)
