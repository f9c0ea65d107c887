"""What people write: metadata with a typo, and the agent's configuration file changed under a running ScaledObject."""

from rig.scenario import scenario

from .common import is_close, trigger


@scenario("a typo in the metadata: Ready=False with our message; corrected: Ready=True")
def typo_is_reported(context):
    agent = context.agent([50, 50])
    workload = context.workload(replicas=5)
    wrong = trigger(agent, agregation="sum")
    del wrong["aggregation"]
    workload.scale(wrong)
    context.until("Ready=False", lambda v: v.ready == "False")
    view = workload.view()
    said = [view.message, *workload.events()]
    context.note(f"condition: {view.ready_reason}: {view.message}")
    context.expect(any("agregation" in text for text in said), f"the message names the key, got {said}")
    context.expect(any("aggregation" in text for text in said), f"the message names the nearest key, got {said}")
    context.holds("no HPA, no scaling on a guess", lambda v: not v.hpa and v.replicas == 5, 3)
    context.note("corrected")
    workload.scale(trigger(agent))
    context.until("Ready=True and ceil(100 / 80) replicas", lambda v: v.ready == "True" and v.replicas == 2)


@scenario("a target changed by a reload reaches the HPA, the ScaledObject untouched")
def reload_reaches_hpa(context):
    def entries(target):
        return [{"name": "gpu_utilization", "type": "Utilization", "targetValue": target, "aggregation": "sum"}]

    agent = context.agent([80, 80], metrics=entries(80))
    workload = context.workload(replicas=1)
    workload.scale({"scalerAddress": agent.address, "metricName": "gpu_utilization", "window": "0"}, kind="external-push")
    context.until("2 replicas at 160 against 80",
                  lambda v: v.replicas == 2 and is_close(v.value, 160) and v.target == 80)
    before = workload.scaled_object()["metadata"]["generation"]
    context.note("metrics: targetValue 40, SIGHUP")
    agent.write_metrics(entries(40))
    agent.reload()
    took = context.until("the HPA's target to be 40", lambda v: v.target == 40)
    context.note(f"the target arrived after {took:.1f} s")
    context.until("4 replicas at 160 against 40", lambda v: v.replicas == 4)
    context.expect(workload.scaled_object()["metadata"]["generation"] == before, "nobody touched the ScaledObject")
