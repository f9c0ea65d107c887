"""The whole product in a cluster's daily life: neighbours, slices, slow loads, zero and back, edits and restarts."""

from rig import mig
from rig.scenario import scenario

from .common import NO_STABILIZATION, workload_trigger
from .hub_faults import _measured, _steady


@scenario("another tenant trains beside an idle workload: on whole GPUs and on shared ones it stays idle, and goes to zero")
def training_beside_idle(context):
    node = context.nodes(1, gpus=4)[0]
    context.nodes(1, gpus=1, shares=4)
    for gpu in (2, 3):
        node.tenant(gpu, 98, name=f"train-{gpu}")
    node.is_open = False
    trainer, shared = context.workload(gpus=1, name="trainer"), context.workload(gpus=1, name="shared", replicas=2)
    context.demand(trainer, 98)
    demand = context.demand(shared, 2)
    context.until_served(trainer, 1)
    context.until_served(shared, 2)
    node.is_open = True
    whole = context.workload(gpus=1, name="whole", replicas=2)
    context.until_served(whole, 2)
    context.expect(all(pod.node is node for pod in context.pods.of("whole")), "whole GPUs for one, shares for the other")
    hub = context.hub()
    for workload, least in ((shared, 1), (whole, 0)):
        workload.scale(workload_trigger(hub), minimum=least)
    context.until("one pod of 2 % beside 98 % of training", lambda v: v.replicas == 1, of=shared)
    context.until("none without any load", lambda v: v.replicas == 0, of=whole)
    context.holds("1 replica", lambda v: v.replicas == 1 and whole.view().replicas == 0, 6, of=shared)
    context.note("demand for more than the training leaves")
    demand.total = 60
    context.until("more pods", lambda v: v.replicas > 1, of=shared)
    context.expect(whole.view().replicas == 0, "the other one to stay at zero")


@scenario("MIG slices, one a pod: each follows its own slice, whatever the others of the board do")
def mig_slices(context):
    context.nodes(2, gpus=7, kind=mig.Node)
    hub = context.hub()
    workload, neighbour = context.workload(gpus=1), context.workload(gpus=1, replicas=3, name="neighbour")
    demand, other = context.demand(workload, 30), context.demand(neighbour, 300)
    context.until_served(workload, 1)
    context.until_served(neighbour, 3)
    workload.scale(workload_trigger(hub, metricType="sm_activity"))
    context.until("Ready=True with 1 replica at 30 %", lambda v: v.ready == "True" and v.value is not None and v.replicas == 1)
    context.note("demand for 6, beside 3 slices at full load")
    demand.total = 290
    context.until("6 replicas", lambda v: v.replicas == 6)
    context.until_served(workload, 6)
    context.wait_for("6 slices to be measured", lambda: _measured(hub, workload) == 6)
    context.note("the neighbours are idle")
    other.total = 0
    context.holds("6 replicas", lambda v: v.replicas == 6, 8)
    context.note("demand for 2")
    demand.total = 98
    context.until("2 replicas", lambda v: v.replicas == 2)
    context.holds("2 replicas", lambda v: v.replicas == 2, 6)


@scenario("a hub that cannot be reached when its ScaledObject is created: no HPA; then Ready, an HPA and the right count")
def hub_comes_late(context):
    context.nodes(2, gpus=4)
    hub = context.hub(start=False)
    workload = context.workload(replicas=3, gpus=1)
    demand = context.demand(workload, 288)
    context.until_served(workload, 3)
    workload.scale(workload_trigger(hub))
    context.until("Ready=False", lambda v: v.ready == "False")
    context.holds("no HPA, no scaling", lambda v: not v.hpa and v.replicas == 3, 4)
    context.note("the hub starts")
    hub.start()
    context.until("Ready, an HPA with our metric, and 6 replicas",
                  lambda v: v.ready == "True" and v.hpa and v.target == 50 and v.replicas == 6)
    context.until_served(workload, 6)
    context.holds("6 replicas", lambda v: v.replicas == 6, 6)
    context.note("demand for 2")
    demand.total = 98
    context.until("2 replicas", lambda v: v.replicas == 2)


@scenario("models that load for 35 s: the count is reached at once, neither exceeded nor taken back while they load")
def slow_model_load(context):
    context.nodes(2, gpus=6)
    hub = context.hub()
    workload = context.workload(replicas=2, gpus=1)
    demand = _steady(context, workload, hub, 2, **NO_STABILIZATION)
    context.wait_for("both to be measured", lambda: _measured(hub, workload) == 2)
    context.pods.ready_s = 35
    context.note("demand for 4; pods take 35 s from now on")
    demand.total = 190
    context.until("4 replicas", lambda v: v.replicas == 4)
    context.wait_for("4 pods", lambda: len(context.pods.of(workload.name)) == 4)
    pods = {pod.uid for pod in context.pods.of(workload.name)}
    context.expect(len(context.pods.serving(workload.name)) == 2, "two of them to load")
    context.until("the new ones to serve; 4 replicas throughout", lambda v: _keeps(context, v, 4, 4)
                  and len(context.pods.serving(workload.name)) == 4)
    context.holds("4 replicas", lambda v: v.replicas == 4, 8)
    context.expect({pod.uid for pod in context.pods.of(workload.name)} == pods, "the same pods from first to last")


def _keeps(context, view, least, most):
    context.expect(least <= view.replicas <= most, f"{least} to {most} replicas throughout, got {view.replicas}")
    return True


@scenario("to zero when idle, back by a second trigger that sees demand without pods, and on by GPU load")
def zero_and_back(context):
    context.nodes(2, gpus=4)
    hub = context.hub()
    workload = context.workload(gpus=1)
    queue = context.workload(replicas=0, name="queue")
    demand = context.demand(workload, 0)
    waiting = {"type": "kubernetes-workload", "metadata": {"podSelector": "app=queue", "value": "1"}}
    workload.scale({}, minimum=0, triggers=[{"type": "external", "metadata": workload_trigger(hub)}, waiting])
    context.until("no replica", lambda v: v.replicas == 0 and not context.pods.of(workload.name))
    context.holds("no replica", lambda v: v.replicas == 0 and v.ready == "True", 6)
    context.note("something waits; the GPUs know nothing of it")
    queue.resize(1)
    demand.total = 145
    context.until("3 replicas by GPU load, where each is at 48 %", lambda v: v.replicas == 3)
    context.note("nothing waits any more; the load stays")
    queue.resize(0)
    context.until_served(workload, 3)
    context.holds("3 replicas, longer than the cooldown", lambda v: v.replicas == 3, 10)
    context.note("idle")
    demand.total = 0
    context.until("no replica", lambda v: v.replicas == 0)


@scenario("the target edited under load: HPA, hub and count follow, both ways")
def target_edited(context):
    context.nodes(2, gpus=5)
    hub = context.hub()
    workload = context.workload(replicas=4, gpus=1)
    _steady(context, workload, hub, 4)
    for target, replicas, each in ((80, 3, 64), (25, 8, 24), (50, 4, 48)):
        context.note(f"targetValue {target}")
        workload.scale(workload_trigger(hub, targetValue=str(target)))
        context.until(f"target {target} in the HPA and {replicas} replicas, each at {each} %",
                      lambda v, target=target, replicas=replicas: v.target == target and v.replicas == replicas)
        context.until_served(workload, replicas)
        context.wait_for("the hub to have that target", lambda target=target: _target_line(hub, workload, target))
        context.holds(f"{replicas} replicas", lambda v, replicas=replicas: v.replicas == replicas, 6)


def _target_line(hub, workload, target):
    text = hub.explain(workload.namespace, workload.name)
    return f"target {target} %" in text and f"target {target}," in text


@scenario("an upgrade of all our programs at peak, agents one after the other, then both hubs: no dip, no climb")
def upgrade_at_peak(context):
    nodes = context.nodes(3, gpus=3)
    # By this name the hubs know the ScaledObject before they are asked.
    hubs = [context.hub(flags=["--service-name=localhost"]) for _ in range(2)]
    front = context.forwarder(*[hub.port for hub in hubs])
    workload = context.workload(replicas=6, gpus=1)
    keys = {"scalerAddress": f"localhost:{front.port}"}
    demand = _steady(context, workload, hubs[0], 6, keys, **NO_STABILIZATION)
    context.wait_for("the HPA to read what is measured", lambda: workload.external_value() == 288)
    for program in [*[node.agent for node in nodes], *hubs]:
        context.note(f"{program.name} is replaced")
        seconds, status = program.stop()
        context.expect(status == 0, f"{program.name} to end well, got {status} after {seconds:.1f} s")
        context.holds("6 replicas without it", lambda v: v.replicas == 6, 3)
        program.start()
        context.holds("6 replicas", lambda v: v.replicas == 6, 3)
    context.wait_for("both hubs to measure all", lambda: all(_measured(hub, workload) == 6 for hub in hubs))
    context.note("demand for 8")
    demand.total = 390
    context.until("8 replicas", lambda v: v.replicas == 8)


@scenario("people at work: scaled by hand, paused and resumed, deleted and made anew with another target")
def people_at_work(context):
    context.nodes(2, gpus=5)
    hub = context.hub()
    workload = context.workload(replicas=4, gpus=1)
    _steady(context, workload, hub, 4)
    for replicas in (8, 1):
        context.note(f"scaled to {replicas} by hand")
        workload.resize(replicas)
        context.until("4 replicas again", lambda v: v.replicas == 4)
        context.until_served(workload, 4)
        context.holds("4 replicas", lambda v: v.replicas == 4, 6)
    context.note("paused at 2")
    workload.pause(2)
    context.until("2 replicas and no HPA", lambda v: v.replicas == 2 and not v.hpa)
    context.until_served(workload, 2)
    context.holds("2 replicas at 96 %", lambda v: v.replicas == 2, 5)
    context.note("resumed")
    workload.pause(None)
    context.until("4 replicas again", lambda v: v.replicas == 4 and v.hpa)
    context.note("the ScaledObject is deleted, and made anew with a target of 32")
    workload.forget()
    context.wait_for("KEDA to let go of it", workload.is_gone)
    workload.scale(workload_trigger(hub, targetValue="32"))
    context.until("6 replicas, where each is at 32 %", lambda v: v.replicas == 6 and v.target == 32)
    context.until_served(workload, 6)
    context.holds("6 replicas", lambda v: v.replicas == 6, 6)


@scenario("KEDA's operator killed at peak and started again: no dip, and it follows again", alone=True)
def keda_restarts(context):
    context.nodes(2, gpus=4)
    hub = context.hub()
    workload = context.workload(replicas=5, gpus=1)
    demand = _steady(context, workload, hub, 5, kind="external-push", **NO_STABILIZATION)
    context.note("the operator is killed")
    context.cluster.keda.kill_operator()
    context.holds("5 replicas while the HPA's questions wait", lambda v: v.replicas == 5, 12)
    context.note("demand for 7; a new operator starts")
    demand.total = 345
    context.cluster.keda.start_operator()
    context.until("7 replicas, and never fewer than 5", lambda v: _keeps(context, v, 5, 7) and v.replicas == 7)
    context.until_served(workload, 7)
    context.holds("7 replicas", lambda v: v.replicas == 7 and v.ready == "True", 6)
    context.note("demand for 2")
    demand.total = 98
    context.until("2 replicas", lambda v: v.replicas == 2)
