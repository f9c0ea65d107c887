"""Triggers of type external-push: the stream wakes a workload, and outlives the agent's restart."""

import time

from rig.scenario import scenario

from .common import is_close, trigger

# Longer than the test: whatever happens sooner came by a stream.
_POLL_NEVER = {"pollingInterval": 600}


@scenario("external-push wakes from zero, long before the poll")
def push_wakes_from_zero(context):
    agent = context.agent([0, 0, 0, 0])
    workload = context.workload(replicas=1)
    workload.scale(trigger(agent, pollIntervalSeconds="1"), kind="external-push", minimum=0, **_POLL_NEVER)
    context.until("zero replicas at zero load", lambda v: v.replicas == 0 and v.ready == "True")
    context.holds("asleep at zero load", lambda v: v.replicas == 0, 4)
    context.note("4 boards at 75 %")
    agent.gpus.set([75] * 4)
    took = context.until("the push to wake it", lambda v: v.replicas >= 1, timeout_s=8)
    context.note(f"woken {took:.1f} s after the load rose")
    context.until("the HPA to take over", lambda v: v.replicas == 4 and is_close(v.value, 300))
    context.note("idle: nothing to see for the stream, and the poll is minutes away")
    agent.gpus.set([0] * 4)
    context.until("the HPA's minimum", lambda v: v.replicas == 1)


@scenario("an agent restarted under open streams: they come back, nothing scales down, it ends in time")
def restart_under_streams(context):
    agent = context.agent([100, 100, 100, 0])
    steady, sleeper = context.workload(replicas=1, name="steady"), context.workload(replicas=1, name="sleeper")
    steady.scale(trigger(agent), kind="external-push", **_POLL_NEVER)
    sleeper.scale(trigger(agent, gpuIndex="3"), kind="external-push", minimum=0, **_POLL_NEVER)
    context.until("4 replicas at a sum of 300", lambda v: v.replicas == 4 and is_close(v.value, 300), of=steady)
    context.until("the other one asleep", lambda v: v.replicas == 0 and v.ready == "True", of=sleeper)
    context.wait_for("both streams to be open", lambda: agent.open_streams("StreamIsActive") == 2)

    seconds, status = agent.stop()
    context.note(f"SIGTERM: the agent ended after {seconds:.2f} s with status {status}")
    context.expect(status == 0 and seconds < 5, f"status 0 in under 5 s, got {status} after {seconds:.2f} s")
    agent.start()
    context.note("started again on the same port")
    began = time.monotonic()
    context.wait_for("both streams to be open again", lambda: agent.open_streams("StreamIsActive") == 2, 30)
    context.note(f"streams are back {time.monotonic() - began:.1f} s after the start")
    context.holds("no scale-down", lambda v: v.replicas == 4, 10, of=steady)
    context.until("the HPA to read again", lambda v: v.scaling_active == "ValidMetricFound" and is_close(v.value, 300),
                  of=steady)
    context.note("board 3 at 90 %")
    agent.gpus.set([100, 100, 100, 90])
    took = context.until("the new stream to wake the sleeper", lambda v: v.replicas >= 1, timeout_s=20, of=sleeper)
    context.note(f"woken {took:.1f} s after the load rose")
    sleeper.delete()
    context.forget(sleeper)
    context.wait_for("the stream of a deleted ScaledObject to be closed", lambda: agent.open_streams("StreamIsActive") == 1)
