"""What goes wrong on the node: lost boards, no readings at all, an agent that is not there."""

from rig.scenario import scenario

from .common import is_close, trigger


@scenario("a lost GPU does not scale down")
def lost_gpu_does_not_scale_down(context):
    agent = context.agent([80, 80, 80, 80])
    workload = context.workload(replicas=1)
    workload.scale(trigger(agent))
    context.until("4 replicas at a sum of 320", lambda v: v.replicas == 4 and is_close(v.value, 320))
    context.note("board 2 falls off the bus")
    agent.gpus.set([80, 80, None, 80])
    context.holds("4 replicas with a board lost, longer than the scale-down window", lambda v: v.replicas == 4, 15)
    context.expect(workload.external_value() >= 320, "the lost board counts with its last good value")
    context.note("two more fall off the bus")
    agent.gpus.set([80, None, None, None])
    context.holds("4 replicas with three boards lost", lambda v: v.replicas == 4, 12)
    context.note("all are back, at 10 %")
    agent.gpus.set([10] * 4)
    context.until("the scale-down that is due now", lambda v: v.replicas == 1)


@scenario("all readings gone: the fallback acts; without one the replicas are held")
def fallback_acts(context):
    agent = context.agent([60, 60, 60, 60])
    guarded, plain = context.workload(replicas=1, name="guarded"), context.workload(replicas=1, name="plain")
    guarded.scale(trigger(agent), fallback={"failureThreshold": 3, "replicas": 6})
    plain.scale(trigger(agent))
    for workload in (guarded, plain):
        context.until("3 replicas at a sum of 240", lambda v: v.replicas == 3 and is_close(v.value, 240), of=workload)
    context.note("all boards fall off the bus")
    agent.gpus.set([None] * 4)
    context.until("the fallback's 6 replicas", lambda v: v.replicas == 6 and v.fallback == "True", of=guarded)
    context.until("the HPA to say that it has no metric", lambda v: v.scaling_active == "FailedGetExternalMetric",
                  of=plain)
    context.holds("no scaling without a reading", lambda v: v.replicas == 3, 8, of=plain)
    failures = [text for text in plain.events() if "Failed" in text]
    context.note(f"KEDA's event: {failures[-1] if failures else 'none'}")
    context.expect(any("Unavailable" in text for text in failures), f"an event quotes our UNAVAILABLE, got {failures}")
    context.note("all are back")
    agent.gpus.set([60] * 4)
    for workload in (guarded, plain):
        context.until("3 replicas by measurement", lambda v: v.replicas == 3 and v.fallback != "True"
                      and v.scaling_active == "ValidMetricFound", of=workload)


@scenario("an agent that is down when its ScaledObject is created: no HPA, then recovery")
def agent_comes_late(context):
    agent = context.agent([80, 80], start=False)
    workload = context.workload(replicas=5)
    workload.scale(trigger(agent))
    context.until("Ready=False", lambda v: v.ready == "False")
    context.holds("no HPA, no scaling", lambda v: not v.hpa and v.replicas == 5, 3)
    context.note("the agent starts")
    agent.start()
    context.until("Ready=True and 2 replicas", lambda v: v.ready == "True" and v.replicas == 2)


@scenario("a hung driver: answers go on and fail in time, nothing scales, other workloads follow their load")
def hung_driver(context):
    agent, other = context.agent([80, 80, 80]), context.agent([40, 40])
    workload, bystander = context.workload(replicas=1), context.workload(replicas=1, name="bystander")
    workload.scale(trigger(agent))
    bystander.scale(trigger(other))
    context.until("3 replicas at a sum of 240", lambda v: v.replicas == 3 and is_close(v.value, 240))
    context.note("every call into the driver hangs")
    agent.gpus.set([80, 80, 80], fault="hung")
    took = context.until("the HPA to say that it has no metric", lambda v: v.scaling_active == "FailedGetExternalMetric")
    context.note(f"stale after {took:.1f} s: old readings are no value")
    context.expect(took < 15, "readings are given up within 15 s")
    other.gpus.set([100, 100])
    context.until("the other workload to follow its load", lambda v: v.replicas == 3, 10, of=bystander)
    context.holds("no scaling on old readings", lambda v: v.replicas == 3, 8)
    seconds, status = agent.stop()
    context.note(f"SIGTERM with the driver hung: ended after {seconds:.2f} s with status {status}")
    context.expect(status == 0 and seconds < 5, f"status 0 in under 5 s, got {status} after {seconds:.2f} s")
