"""The number on its way to the HPA, and the replicas that follow it."""

from rig.scenario import scenario

from .common import is_close, trigger


@scenario("a ScaledObject becomes Ready and its HPA reads our value")
def hpa_reads_our_value(context):
    agent = context.agent([50, 50, 50, 50])
    workload = context.workload(replicas=1)
    workload.scale(trigger(agent))
    context.until("Ready=True", lambda v: v.ready == "True")
    context.until("the HPA to show 200 against 80", lambda v: is_close(v.value, 200) and v.target == 80)
    context.until("ceil(200 / 80) replicas", lambda v: v.replicas == 3 and v.scaling_active == "ValidMetricFound")
    context.expect(workload.external_value() == 200, "the external metrics API gives exactly 200")
    names = workload.scaled_object()["status"]["externalMetricNames"]
    context.expect(len(names) == 1 and names[0].startswith("s0-"), f"one metric, named s0-..., got {names}")
    context.until("the condition Active=True", lambda v: v.active == "True")


@scenario("replicas follow a rising and falling sum, down to zero and up again")
def replicas_follow_the_sum(context):
    boards = 8
    agent = context.agent([10] * boards)
    workload = context.workload(replicas=1)
    workload.scale(trigger(agent), minimum=0)
    for load, replicas in ((10, 1), (40, 4), (100, 10), (20, 2)):
        context.note(f"{boards} boards at {load} %")
        agent.gpus.set([load] * boards)
        context.until(f"{replicas} replicas at a sum of {load * boards}",
                      lambda v, n=replicas, total=load * boards: v.replicas == n and is_close(v.value, total))
        context.holds(f"{replicas} replicas at a constant load", lambda v, n=replicas: v.replicas == n, 3)
    context.note("idle")
    agent.gpus.set([0] * boards)
    context.until("no replica after the cooldown", lambda v: v.replicas == 0)
    context.note(f"{boards} boards at 40 %")
    agent.gpus.set([40] * boards)
    context.until("4 replicas again, woken by the poll", lambda v: v.replicas == 4)
