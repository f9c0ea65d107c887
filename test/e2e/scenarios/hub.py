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
