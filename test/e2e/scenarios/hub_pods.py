"""Pods come, go and change under the hub's eyes: only the demand may move the count."""

from rig.scenario import scenario

from .common import NO_STABILIZATION
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
        context.note(f"rollout of version {version}")
        old = {pod.uid for pod in context.pods.of()}
        workload.roll_out(version)
        context.until("new pods only, always 4 replicas wanted", lambda v: _keeps(context, v, 4)
                      and len(context.pods.serving()) == 4 and not old & {pod.uid for pod in context.pods.of()})
        context.holds("4 replicas", lambda v: v.replicas == 4, 8)


def _keeps(context, view, replicas):
    context.expect(view.replicas == replicas, f"{replicas} replicas throughout, got {view.replicas}")
    return True
