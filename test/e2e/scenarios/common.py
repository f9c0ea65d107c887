"""Trigger metadata that the scenarios share."""


def trigger(agent, **keys):
    """Utilisation summed over the node's boards, 80 per replica, newest readings: no window blurs a step."""
    return {"scalerAddress": agent.address, "metricType": "gpu_utilization", "aggregation": "sum", "targetValue": "80",
            "activationThreshold": "5", "window": "0", "activationWindow": "5", **keys}


def is_close(number, wanted):
    """The HPA shows an average rounded to milli; times the replicas that is off by less than this."""
    return number is not None and abs(number - wanted) < 0.5


def workload_trigger(hub, **keys):
    """Utilisation of the workload's own GPUs, 50 per replica, over a window that is short beside the scenarios' waits."""
    return {"scalerAddress": hub.address, "metricType": "gpu_utilization", "targetValue": "50", "window": "4",
            "activationThreshold": "5", "activationWindow": "5", **keys}


# For what must not dip at all: the HPA follows each fall at once.
NO_STABILIZATION = {"advanced": {"horizontalPodAutoscalerConfig": {"behavior": {
    "scaleDown": {"stabilizationWindowSeconds": 0}}}}}
