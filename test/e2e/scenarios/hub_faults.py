"""What goes wrong between hub, agents and the API server: what is not known must not scale down."""

import statistics

from rig.scenario import scenario

from .common import NO_STABILIZATION, workload_trigger


def _steady(context, workload, hub, replicas, keys=None, **spec):
    """Brings a workload to `replicas` pods at 48 % each, the target being 50; returns its demand."""
    demand = context.demand(workload, 48 * replicas)
    context.until_served(workload, replicas)
    workload.scale(workload_trigger(hub, **(keys or {})), **spec)
    context.wait_for(f"the hub to measure {replicas} pods",
                     lambda: _measured(hub, workload) == replicas)
    context.until("the HPA to agree", lambda v: v.replicas == replicas and v.scaling_active == "ValidMetricFound",
                  of=workload)
    return demand


def _measured(hub, workload):
    return hub.explain(workload.namespace, workload.name).count(": measured,")


@scenario("an agent dies at peak: no scale-down, growth goes on with what is known, and all is well when it is back")
def agent_dies_at_peak(context):
    nodes = context.nodes(3, gpus=6)
    hub = context.hub()
    workload = context.workload(replicas=6, gpus=1)
    demand = _steady(context, workload, hub, 6, **NO_STABILIZATION)
    context.note("the agent of one node is killed")
    nodes[1].agent.kill()
    nodes[1].is_open = False
    context.holds("6 replicas without the readings of two", lambda v: v.replicas == 6, 15)
    context.note("full load")
    demand.total = 580
    context.until("more replicas by the four that are known", lambda v: v.replicas >= 8)
    context.note("the agent is back")
    nodes[1].start()
    context.until("11, where each is at 53 %, within the tolerance, or 12", lambda v: v.replicas in (11, 12))
    replicas = workload.view().replicas
    context.until_served(workload, replicas)
    context.holds("the same replicas", lambda v: v.replicas == replicas, 6)


@scenario("all agents die: GetMetrics fails, the spec is answered in 100 ms, the fallback acts; then recovery")
def all_agents_die(context):
    nodes = context.nodes(2, gpus=6)
    hub = context.hub()
    guarded, plain = context.workload(replicas=3, gpus=1, name="guarded"), context.workload(replicas=3, gpus=1, name="plain")
    _steady(context, guarded, hub, 3, fallback={"failureThreshold": 3, "replicas": 5})
    _steady(context, plain, hub, 3)
    context.note("all agents are killed")
    for node in nodes:
        node.agent.kill()
    context.until("the fallback's 5 replicas", lambda v: v.replicas == 5 and v.fallback == "True", of=guarded)
    context.until("the HPA to say that it has no metric", lambda v: v.scaling_active == "FailedGetExternalMetric", of=plain)
    questions = context.questions(hub.address, plain, workload_trigger(hub))
    value, error = questions.value()
    context.note(f"GetMetrics: {error}")
    context.expect(value is None and error.startswith("UNAVAILABLE"), f"UNAVAILABLE, got {value} {error}")
    took = sorted(questions.spec()[1] for _ in range(50))
    context.note(f"GetMetricSpec: median {statistics.median(took) * 1e3:.1f} ms, slowest {took[-1] * 1e3:.1f} ms")
    context.expect(took[-1] < 0.1, f"each spec within 100 ms, got {took[-1]:.3f} s")
    context.holds("no scaling without a reading", lambda v: v.replicas == 3, 8, of=plain)
    context.note("all are back")
    for node in nodes:
        node.start()
    for workload in (guarded, plain):
        context.until("3 replicas by measurement", lambda v: v.replicas == 3 and v.fallback != "True"
                      and v.scaling_active == "ValidMetricFound", of=workload)


@scenario("an agent hangs: its pods count as full, nothing scales down until it is back")
def agent_hangs(context):
    nodes = context.nodes(2, gpus=4)
    hub = context.hub()
    workload = context.workload(replicas=4, gpus=1)
    demand = _steady(context, workload, hub, 4, **NO_STABILIZATION)
    context.note("one agent hangs")
    nodes[0].agent.freeze()
    context.holds("4 replicas", lambda v: v.replicas == 4, 12)
    context.note("idle, as far as can be seen")
    demand.total = 12
    context.holds("4 replicas: two pods may be busy", lambda v: v.replicas == 4, 15)
    context.note("it goes on")
    nodes[0].agent.thaw()
    context.until("the scale-down that is due now", lambda v: v.replicas == 1)


@scenario("stale readings: a hung driver on one node and a lost GPU on another hold the replicas")
def readings_go_stale(context):
    nodes = context.nodes(3, gpus=3)
    hub = context.hub()
    workload = context.workload(replicas=6, gpus=1)
    demand = _steady(context, workload, hub, 6)
    context.note("the driver of one node hangs, a board of another falls off the bus")
    nodes[0].strike("hung")
    nodes[1].lose(next(iter(sorted({gpu for pod in context.pods.of() if pod.node is nodes[1] for gpu in pod.gpus}))))
    demand.total = 60
    context.holds("6 replicas: three pods may be busy", lambda v: v.replicas == 6, 20)
    context.expect(_measured(hub, workload) == 3, f"3 pods to be measured, got {_measured(hub, workload)}")
    context.note("both are back")
    nodes[0].strike(None)
    nodes[1].lose()
    context.until("the scale-down that is due now", lambda v: v.replicas == 2)


@scenario("the API server is away from the hub: the count is held, in the end by an error; then it follows again")
def api_server_away(context):
    context.nodes(2, gpus=4)
    way = context.forwarder(context.cluster.api_port)
    hub = context.hub(server=f"https://{way.address}")
    workload = context.workload(replicas=4, gpus=1)
    demand = _steady(context, workload, hub, 4, **NO_STABILIZATION)
    context.note("the hub no longer reaches the API server")
    way.block()
    context.holds("4 replicas by a value", lambda v: v.replicas == 4 and v.scaling_active == "ValidMetricFound", 20)
    took = context.until("the HPA to say that it has no metric", lambda v: v.scaling_active == "FailedGetExternalMetric")
    context.note(f"given up {took + 20:.0f} s after the cut")
    context.holds("4 replicas without a value", lambda v: v.replicas == 4, 6)
    demand.total = 290
    context.note("the API server is back; demand for 6")
    way.unblock()
    context.until("6 replicas", lambda v: v.replicas == 6)


@scenario("the API server is away from the hub while the demand rises: up by what is known, and never down again")
def api_server_away_at_a_rise(context):
    context.nodes(2, gpus=6)
    way = context.forwarder(context.cluster.api_port)
    hub = context.hub(server=f"https://{way.address}")
    workload = context.workload(replicas=4, gpus=1)
    # With the bench's window of 5 s: a count that an answer changes stands for 5 s, in which an HPA asks once, not five
    # times as here.
    demand = _steady(context, workload, hub, 4)
    context.note("the hub no longer reaches the API server; demand for 8")
    way.block()
    demand.total = 400
    context.until("more replicas, by the four pods that are known", lambda v: v.replicas >= 6)
    highest = [6]

    def keeps(view):
        highest[0] = max(highest[0], view.replicas)
        context.expect(view.replicas == highest[0], f"no fewer than {highest[0]} replicas, got {view.replicas}")
        return True
    context.holds("no pod taken away: the new ones are not known, and their load is not seen", keeps, 20)
    context.note("the API server is back")
    way.unblock()
    context.until("8 replicas", lambda v: keeps(v) and v.replicas == 8)
    context.holds("8 replicas", lambda v: v.replicas == 8, 8)
