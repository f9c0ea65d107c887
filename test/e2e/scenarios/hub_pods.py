"""Pods come, go and change under the hub's eyes: only the demand may move the count."""

from rig.scenario import scenario

from .common import NO_STABILIZATION, agents_service, announce, own_address
from .hub_faults import _measured, _steady


@scenario("pods moved to other nodes at peak: the count stays")
def pods_rescheduled(context):
    nodes = context.nodes(3, gpus=6)
    hub = context.hub()
    workload = context.workload(replicas=6, gpus=1)
    _steady(context, workload, hub, 6, **NO_STABILIZATION)
    for node in nodes[:2]:
        context.note(f"{node.name} is drained")
        node.is_open = False
        context.pods.evict(node)
        context.holds("6 replicas", lambda v: v.replicas == 6, 16)
        context.until_served(workload, 6)
        node.is_open = True
    context.wait_for("all 6 to be measured", lambda: _measured(hub, workload) == 6)
    context.holds("6 replicas", lambda v: v.replicas == 6, 3)


@scenario("pods that end slowly at full load do not count: no scale-up by what is going away")
def slow_termination(context):
    context.nodes(2, gpus=4)
    context.pods.grace_s = 20
    hub = context.hub()
    workload = context.workload(replicas=6, gpus=1)
    demand = _steady(context, workload, hub, 6)
    context.note("demand for 2; what is deleted drains at 100 % for 20 s")
    demand.draining, demand.total = 100, 98
    context.until("2 replicas", lambda v: v.replicas == 2)
    context.holds("2 replicas while 4 pods end", lambda v: v.replicas == 2, 15)


@scenario("overload takes pods out of readiness: they count, and the count grows")
def unready_under_overload(context):
    context.nodes(3, gpus=5)
    hub = context.hub()
    workload = context.workload(replicas=4, gpus=1)
    demand = _steady(context, workload, hub, 4)
    context.holds("4 replicas", lambda v: v.replicas == 4, 8)
    context.note("two pods are swamped and fail their readiness probes at 100 %")
    swamped = context.pods.serving(workload.name)[:2]
    for pod in swamped:
        pod.stuck_load, pod.is_failing = 100, True
    context.until("8 replicas: 2 at 100 and 2 at 96", lambda v: v.replicas == 8)
    context.note("they recover")
    for pod in swamped:
        pod.stuck_load, pod.is_failing = None, False
    demand.total = 190
    context.until("4 replicas", lambda v: v.replicas == 4)
    context.holds("4 replicas", lambda v: v.replicas == 4, 8)


@scenario("rollouts with surge at 104 % of the target: no ratchet")
def rollout_with_surge(context):
    context.nodes(3, gpus=3)
    context.pods.ready_s = 2
    hub = context.hub()
    workload = context.workload(replicas=4, gpus=1, surge=1)
    demand = _steady(context, workload, hub, 4, **NO_STABILIZATION)
    demand.total = 208
    context.holds("4 replicas at 52 %", lambda v: v.replicas == 4, 6)
    for version in ("2", "3"):
        _roll_out(context, version, {workload: 4})


@scenario("rollouts by Recreate, with a surge of half, and under metricType Value: no ratchet, no dip")
def rollouts_of_all_kinds(context):
    context.nodes(3, gpus=7)
    context.pods.ready_s = 3
    hub = context.hub()
    kinds = {"recreated": ({"recreate": True}, {}), "surging": ({"surge": 3}, {}),
             "by-value": ({"surge": 1}, {"metric_type": "Value"})}
    counts = {}
    for name, (deployment, spec) in kinds.items():
        workload = context.workload(replicas=4, gpus=1, name=name, **deployment)
        _steady(context, workload, hub, 4, **spec, **NO_STABILIZATION).total = 208
        counts[workload] = 4
    context.holds("4 replicas at 52 %", lambda v: _keep(context, counts), 6)
    for version in ("2", "3"):
        _roll_out(context, version, counts)


def _roll_out(context, version, counts):
    """Rolls out workloads that must keep their counts from the first pod to some seconds after the last."""
    context.note(f"rollout of version {version}")
    old = {pod.uid for pod in context.pods.of()}
    for workload in counts:
        workload.roll_out(version)

    def is_new(_):
        _keep(context, counts)
        pods = context.pods.of()
        return len(pods) == len(context.pods.serving()) == sum(counts.values()) and not old & {pod.uid for pod in pods}
    context.until("new pods only", is_new)
    context.holds("the same counts", lambda _: _keep(context, counts), 8)


def _keep(context, counts):
    for workload, count in counts.items():
        replicas = workload.view().replicas
        context.expect(replicas == count, f"{count} replicas of {workload.name} throughout, got {replicas}")
    return True


@scenario("no free GPUs: pending pods are no load, and the count goes on when a node comes")
def no_free_gpus(context):
    host, hub = own_address(), context.hub(agents=[f"service:{agents_service(context)}"])
    announce(context, context.nodes(1, gpus=4, host=host)[0])
    workload = context.workload(replicas=4, gpus=1)
    demand = _steady(context, workload, hub, 4)
    context.note("demand for 12, and no GPU left")
    demand.total = 580
    context.until("8 replicas by 4 pods at 100 %", lambda v: v.replicas == 8)
    context.holds("8 replicas, 4 of them pending", lambda v: v.replicas == 8, 12)
    context.note("two nodes come")
    for node in context.nodes(2, gpus=6, host=host)[1:]:
        announce(context, node)
    context.until("11 or 12 replicas, where each is at 53 or 48 %", lambda v: v.replicas in (11, 12))
    replicas = workload.view().replicas
    context.until_served(workload, replicas)
    context.holds("the same replicas", lambda v: v.replicas == replicas, 6)


@scenario("a node dies with agent and pods: the count stays, the others' load is no reason to grow")
def node_dies(context):
    nodes = context.nodes(3, gpus=6)
    hub = context.hub()
    workload = context.workload(replicas=6, gpus=1)
    _steady(context, workload, hub, 6, **NO_STABILIZATION)
    context.note("one node is gone; its pods are marked as not Ready")
    lost = [pod for pod in context.pods.of() if pod.node is nodes[0]]
    nodes[0].agent.kill()
    nodes[0].is_open = False
    for pod in lost:
        pod.is_failing = True
    context.holds("6 replicas", lambda v: v.replicas == 6, 12)
    context.note("its pods are deleted, and made anew elsewhere")
    context.pods.evict(nodes[0])
    context.holds("6 replicas", lambda v: v.replicas == 6, 12)
    context.until_served(workload, 6)
    context.wait_for("all 6 to be measured", lambda: _measured(hub, workload) == 6)
    context.holds("6 replicas", lambda v: v.replicas == 6, 3)
