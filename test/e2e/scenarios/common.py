"""What the scenarios share: trigger metadata, and how agents are announced."""

import socket


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


def own_address():
    """Of this machine, not loopback: the API server takes no loopback in EndpointSlices. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]


def agents_service(context):
    """The headless Service of the scenario's agents; its EndpointSlices are written by announce()."""
    return f"{context.name}-agents"


def announce(context, node):
    """The EndpointSlice of one agent, as a headless Service's controller writes them; returns its path."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/gpu-scaler/endpointslices/{node.name}"
    context.cluster.api.apply(path, {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": node.name, "labels": {"kubernetes.io/service-name": agents_service(context)}},
        "ports": [{"name": "metrics", "port": 9, "protocol": "TCP"},
                  {"name": "grpc", "port": node.agent.port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [node.agent.host], "nodeName": node.name, "conditions": {"ready": True}}]})
    return path
