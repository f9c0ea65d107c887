"""One value for a workload whose pods are on several nodes: the hub's, whoever else uses those nodes."""

from rig.scenario import scenario

from .common import workload_trigger


@scenario("one pod per GPU, rise and fall: demand for 7 ends at 7, other tenants' load changes nothing")
def hub_follows_demand(context):
    nodes = context.nodes(3, gpus=5)
    for place, node in enumerate(nodes):
        node.tenant(4, 90, name=f"train-{place}")
    hub = context.hub()
    workload = context.workload(gpus=1)
    demand = context.demand(workload, 30)
    workload.scale(workload_trigger(hub))
    context.until("Ready=True with 1 replica at 30 %", lambda v: v.ready == "True" and v.replicas == 1)
    context.note("demand for 7")
    demand.total = 345
    context.until("7 replicas", lambda v: v.replicas == 7)
    context.until_served(workload, 7)
    for load in (0, 100):
        context.note(f"other tenants at {load} %")
        for place, node in enumerate(nodes):
            node.tenant(4, load, name=f"train-{place}")
        context.holds("7 replicas", lambda v: v.replicas == 7, 8)
    context.note("demand for 2")
    demand.total = 100
    context.until("2 replicas", lambda v: v.replicas == 2)
    context.until_served(workload, 2)
    context.holds("2 replicas", lambda v: v.replicas == 2, 5)


@scenario("10 replicas at full load do not collapse; a fall takes them down to what is needed")
def full_load_does_not_collapse(context):
    context.nodes(3, gpus=5)
    hub = context.hub()
    workload = context.workload(replicas=10, gpus=1)
    demand = context.demand(workload, 5000)
    context.until_served(workload, 10)
    workload.scale(workload_trigger(hub, targetValue="80"), maximum=12)
    context.holds("never below 10 replicas at full load", lambda v: v.replicas >= 10, 12)
    context.until("ceil(10 x 100 / 80), which the maximum allows no more than 12", lambda v: v.replicas == 12)
    context.holds("12 replicas at full load", lambda v: v.replicas == 12, 10)
    context.note("demand for 4 of 80 %")
    demand.total = 310
    context.until("4 replicas", lambda v: v.replicas == 4)
    context.holds("4 replicas", lambda v: v.replicas == 4, 8)


@scenario("max follows the busiest pod without running away, p95 the tail")
def max_and_p95(context):
    context.nodes(3, gpus=5)
    hub = context.hub()
    busiest, tail = context.workload(gpus=1, name="busiest"), context.workload(gpus=1, name="tail")
    hot = context.demand(busiest, 300, hot=1.5)
    even = context.demand(tail, 170)
    busiest.scale(workload_trigger(hub, targetValue="60", aggregation="max"))
    tail.scale(workload_trigger(hub, targetValue="60", aggregation="p95"))
    context.until("3 replicas, where each is at 57 %", lambda v: v.replicas == 3, of=tail)
    context.until("7 replicas, where the hot one is at 60 %", lambda v: v.replicas == 7, of=busiest)
    context.until_served(busiest, 7)
    context.holds("7 replicas", lambda v: v.replicas == 7, 10, of=busiest)
    context.expect(tail.view().replicas == 3, "still 3 replicas by p95")
    context.note("demand for 3 and 1")
    hot.total, even.total = 120, 50
    context.until("3 replicas by max", lambda v: v.replicas == 3, of=busiest)
    context.until("1 replica by p95", lambda v: v.replicas == 1, of=tail)
    context.holds("3 replicas by max", lambda v: v.replicas == 3, 5, of=busiest)


@scenario("metricType Value: the same counts as with AverageValue")
def metric_type_value(context):
    context.nodes(2, gpus=4)
    hub = context.hub()
    workload = context.workload(gpus=1)
    demand = context.demand(workload, 240)
    workload.scale(workload_trigger(hub), metric_type="Value")
    context.until("5 replicas, where each is at 48 %", lambda v: v.replicas == 5)
    context.until_served(workload, 5)
    context.holds("5 replicas", lambda v: v.replicas == 5, 8)
    context.note("demand for 2")
    demand.total = 98
    context.until("2 replicas", lambda v: v.replicas == 2)
    context.until_served(workload, 2)
    context.holds("2 replicas", lambda v: v.replicas == 2, 6)


@scenario("pods with 2 and with 8 GPUs: the target means one pod, whatever it holds")
def pods_with_several_gpus(context):
    context.nodes(2, gpus=16)
    hub = context.hub()
    pair, octet = context.workload(gpus=2, name="pair"), context.workload(gpus=8, name="octet")
    context.demand(pair, 290)
    context.demand(octet, 780)
    for workload in (pair, octet):
        workload.scale(workload_trigger(hub))
    context.until("3 pods of 2 GPUs at 48 %", lambda v: v.replicas == 3, of=pair)
    context.until("2 pods of 8 GPUs at 49 %", lambda v: v.replicas == 2, of=octet)
    context.until_served(pair, 3)
    context.until_served(octet, 2)
    context.holds("3 pods", lambda v: v.replicas == 3, 8, of=pair)
    context.holds("2 pods", lambda v: v.replicas == 2, 2, of=octet)


@scenario("two workloads on one node: each follows its own load")
def two_workloads_on_one_node(context):
    context.nodes(1, gpus=12)
    hub = context.hub()
    first, second = context.workload(gpus=1, name="first"), context.workload(gpus=1, name="second")
    one, two = context.demand(first, 290), context.demand(second, 20)
    for workload in (first, second):
        workload.scale(workload_trigger(hub))
    context.until("6 replicas of the first", lambda v: v.replicas == 6 and second.view().replicas == 1, of=first)
    context.until_served(first, 6)
    context.holds("1 replica of the second", lambda v: v.replicas == 1, 6, of=second)
    context.note("the other way round")
    one.total, two.total = 20, 190
    context.until("4 replicas of the second", lambda v: v.replicas == 4, of=second)
    context.until("1 replica of the first", lambda v: v.replicas == 1, of=first)
    context.holds("4 replicas of the second", lambda v: v.replicas == 4, 6, of=second)


@scenario("GPUs shared in time: pods are told apart by their processes")
def time_sliced_pods(context):
    context.nodes(1, gpus=3, shares=2)
    hub = context.hub()
    heavy, light = context.workload(gpus=1, name="heavy"), context.workload(gpus=1, name="light")
    context.demand(heavy, 88)
    context.demand(light, 10)
    for workload in (heavy, light):
        workload.scale(workload_trigger(hub))
    context.until("2 replicas of the heavy one", lambda v: v.replicas == 2, of=heavy)
    context.until_served(heavy, 2)
    context.holds("2 replicas of the heavy one", lambda v: v.replicas == 2, 8, of=heavy)
    context.holds("1 replica of the light one", lambda v: v.replicas == 1, 6, of=light)
    context.expect({slot.gpu for slot in context.pods.of("light")[0].slots} & context.pods.of("heavy")[0].gpus,
                   "the two workloads to share a GPU")


@scenario("a trigger of three keys, all else by default: up with the demand, and down")
def shortest_trigger(context):
    context.nodes(2, gpus=5)
    hub = context.hub()
    workload = context.workload(replicas=3, gpus=1)
    demand = context.demand(workload, 390)
    workload.scale({"scalerAddress": hub.address, "metricType": "gpu_utilization", "targetValue": "70"})
    context.until("6 replicas, where each is at 65 %", lambda v: v.replicas == 6)
    context.until_served(workload, 6)
    context.holds("6 replicas", lambda v: v.replicas == 6, 20)
    context.note("demand for 2")
    demand.total = 135
    context.until("2 replicas", lambda v: v.replicas == 2)
    context.holds("2 replicas", lambda v: v.replicas == 2, 10)


@scenario("idle means zero, but not while a pod loads; from zero the answer is 0 and no error")
def idle_and_loading(context):
    context.nodes(1, gpus=4)
    context.pods.ready_s = 14
    hub = context.hub()
    workload = context.workload(replicas=2, gpus=1)
    demand = context.demand(workload, 45)
    workload.scale(workload_trigger(hub), minimum=0)
    context.holds("2 replicas while they load, longer than the cooldown", lambda v: v.replicas == 2, 13)
    context.until("both to serve", lambda v: len(context.pods.serving()) == 2 and v.active == "True")
    context.until("1 replica at 45 %", lambda v: v.replicas == 1 and len(context.pods.of()) == 1)
    context.note("idle")
    demand.total = 0
    context.until("no replica", lambda v: v.replicas == 0)
    context.until("no pod", lambda v: not context.pods.of())
    value, error = context.questions(hub.address, workload, workload_trigger(hub)).value()
    context.expect(value == 0 and not error, f"0 and no error at zero replicas, got {value} {error}")
    context.expect(workload.view().ready == "True", "the ScaledObject to stay Ready")


@scenario("memory of a server that takes all of it at its start does not run to the maximum")
def preallocated_memory(context):
    for node in context.nodes(2, gpus=4):
        node.preallocates = 90
    hub = context.hub()
    workload = context.workload(replicas=2, gpus=1)
    demand = context.demand(workload, 140)
    context.until_served(workload, 2)
    workload.scale(workload_trigger(hub, metricType="memory_used", targetValue="80"))
    context.until("the HPA to read a value", lambda v: v.replicas == 2 and v.scaling_active == "ValidMetricFound")
    context.holds("2 replicas with 90 % of the memory in use and 70 % load", lambda v: v.replicas == 2, 20)
    context.note("little to do")
    demand.total = 20
    context.until("1 replica: what it does is what counts", lambda v: v.replicas == 1)
