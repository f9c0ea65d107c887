"""What people write: metadata with a typo, and the agent's configuration file changed under a running ScaledObject.

KEDA 2.21 drops the text of a GetMetricSpec error: the ScaledObject's condition says no more than "no metric specs returned
from scalers". What we answered stands in the operator's log, by namespace and name, and in our own.
"""

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
    context.note(f"condition: {view.ready_reason}: {view.message}")
    said = context.wait_for("KEDA's log to quote our answer", lambda: context.cluster.keda.scaler_errors(context.name))
    context.note(f"KEDA's log: {said[0]}")
    context.expect("InvalidArgument" in said[0] and '"agregation"' in said[0], "INVALID_ARGUMENT that names the key")
    context.expect("aggregation" in said[0].replace('"agregation"', ""), "the message names the nearest known key")
    context.expect("agregation" in agent.log_text(), "the agent's own log names it too")
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
    agent.reload()  # twice: nothing may pile up, nothing changes
    context.until("4 replicas at 160 against 40", lambda v: v.replicas == 4)
    context.expect(workload.scaled_object()["metadata"]["generation"] == before, "nobody touched the ScaledObject")
