"""How a hub is set up: its rights, where it finds agents, two of them behind one address, simulated clusters."""

from rig.scenario import scenario

from .common import NO_STABILIZATION, agents_service, announce, is_close, own_address, workload_trigger
from .hub_faults import _measured, _steady


@scenario("the least rights suffice, and agents are found by EndpointSlices as they come and go")
def least_rights_and_endpoint_slices(context):
    host = own_address()
    hub = context.hub(agents=[f"service:{agents_service(context)}"])
    release = context.cluster.releases.get()
    may = release.access(release.pod_spec("hub")["serviceAccountName"]).may
    for verb, resource, group in (("get", "deployments/scale", "apps"), ("watch", "pods", ""), ("list", "scaledobjects", "keda.sh")):
        context.expect(may(verb, resource, group, context.name), f"the hub may {verb} {resource}")
    for verb, resource, group in (("get", "secrets", ""), ("get", "deployments", "apps"), ("delete", "pods", ""),
                                  ("update", "deployments/scale", "apps"), ("list", "endpointslices", "discovery.k8s.io")):
        context.expect(not may(verb, resource, group, context.name), f"the hub may not {verb} {resource}")
    nodes = context.nodes(2, gpus=3, host=host)
    for node in nodes:
        announce(context, node)
    workload = context.workload(replicas=4, gpus=1)
    demand = _steady(context, workload, hub, 4)
    context.note("a third node comes, and the demand for 7")
    newest = context.nodes(1, gpus=3, host=host)[-1]
    slice_path = announce(context, newest)
    demand.total = 345
    context.until("7 replicas", lambda v: v.replicas == 7)
    context.wait_for("all 7 to be measured", lambda: _measured(hub, workload) == 7)
    context.note("its EndpointSlice goes, the pods stay: unknown, not idle")
    context.cluster.api.delete(slice_path)
    demand.total = 240
    context.holds("7 replicas", lambda v: v.replicas == 7, 12)
    announce(context, newest)
    context.until("5 replicas with all readings back", lambda v: v.replicas == 5)


@scenario("two hubs behind one address agree; either may go at peak without a dip")
def two_hubs(context):
    context.nodes(2, gpus=4)
    # The Service's name is the host of scalerAddress: by it a hub knows its ScaledObjects before they ask.
    hubs = [context.hub(flags=["--service-name=localhost"]) for _ in range(2)]
    front = context.forwarder(*[hub.port for hub in hubs])
    workload = context.workload(replicas=5, gpus=1)
    address = f"localhost:{front.port}"
    _steady(context, workload, hubs[0], 5, {"scalerAddress": address}, **NO_STABILIZATION)
    metadata = workload_trigger(front, scalerAddress=address)
    answers = [context.questions(hub.address, workload, metadata) for hub in hubs]
    context.wait_for("both hubs to give one answer", lambda: answers[0].value() == answers[1].value() == (240, ""))
    for place, hub in enumerate(hubs):
        context.note(f"hub {place} is killed; both gave 240")
        hub.kill()
        context.holds("5 replicas", lambda v: v.replicas == 5, 8)
        context.until("the HPA to read the other one", lambda v: v.scaling_active == "ValidMetricFound")
        context.expect(workload.external_value() == 240, "the other hub gives the same value")
        hub.start()
        value, error = context.questions(hub.address, workload, metadata).value()
        context.note(f"hub {place} is back; its first answer as ready: {error or value}")
        context.expect(value is not None and value >= 240, f"a hub that is ready knows the value, got {value} {error}")


@scenario("the only hub restarted at peak: no dip, by a stop and by a crash")
def hub_restarts_at_peak(context):
    context.nodes(2, gpus=4)
    hub = context.hub()
    workload = context.workload(replicas=5, gpus=1)
    demand = _steady(context, workload, hub, 5, kind="external-push", **NO_STABILIZATION)
    for how, end in (("stopped", hub.stop), ("killed", hub.kill)):
        context.note(f"the hub is {how}")
        end()
        context.holds("5 replicas", lambda v: v.replicas == 5, 7)
        hub.start(is_ready=False)
        context.note("the hub starts")
        context.until("the HPA to read again", lambda v: v.replicas == 5 and v.scaling_active == "ValidMetricFound")
        context.holds("5 replicas by the first answers of a new hub", lambda v: v.replicas == 5, 7)
    context.note("demand for 7")
    demand.total = 345
    context.until("7 replicas", lambda v: v.replicas == 7)


@scenario("a simulated cluster without a device plugin: pods get simulated GPUs; scope cluster sums all")
def simulated_cluster(context):
    nodes = context.nodes(2, gpus=3, listed=False)
    for node in nodes:
        for gpu in range(3):
            node.tenant(gpu, 40)
    hub = context.hub(simulates=True)
    workload, whole = context.workload(replicas=2, gpus=1), context.workload(replicas=1, name="whole")
    whole.scale(workload_trigger(hub, scope="cluster", aggregation="sum", window="0", targetValue="80"))
    workload.scale(workload_trigger(hub))
    context.until("3 replicas by the sum of all boards", lambda v: v.replicas == 3 and is_close(v.value, 240), of=whole)
