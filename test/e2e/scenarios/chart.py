"""A release of the chart from its installation to its end, with certificates, and a workload that KEDA scales all along."""

import base64

from rig import certs
from rig.scenario import scenario

from .common import NO_STABILIZATION, is_close, own_address

_PORT = 6000


def _load(percent):
    """Of the chart's simulated GPUs; the target below is 50. Helm lays lists over those of before as a whole."""
    return ",".join(f"mockMode.scenario.gpus[0].{key}={value}" for key, value in
                    (("board", "T4"), ("count", 4), ("utilization", percent)))


_VALUES = ("mockMode.enabled=true", "tls.mode=selfSigned", "tls.clientCA.secretName=keda-client-ca", "hub.replicas=2",
           "hub.shutdownDelay=2s", "agent.sampleInterval=500ms", _load(90))


def _secret(context, namespace, name):
    data = context.cluster.api.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")["data"]
    return {key: base64.b64decode(text).decode() for key, text in data.items()}


def _client(context, namespace):
    """KEDA's own certificate, and the Secret by which hubs know its authority; returns the files of the pair."""
    authority = certs.Authority(context.cluster.work / f"{context.name}-certs", "keda-ca")
    api = context.cluster.api
    api.apply(f"/api/v1/namespaces/{namespace}", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    api.apply(f"/api/v1/namespaces/{namespace}/secrets/keda-client-ca", {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keda-client-ca"},
        "stringData": {"ca.crt": authority.certificate.read_text()}})
    return authority.issue("keda", "/CN=keda-operator")


def _certificates(release):
    """The name of the Secret that the hubs serve TLS with."""
    return next(v["secret"]["secretName"] for v in release.pod_spec("hub")["volumes"] if v["name"] == "tls")


def _has_rolled_out(release, fleet, *words):
    """All pods are those of now and ready, by programs that were started with these arguments."""
    for component in ("hub", "agent"):
        workload = release.workload(component)
        wanted = workload["spec"].get("replicas", 2)
        status, programs = workload["status"], fleet.ready(component)
        is_seen = status.get("observedGeneration") == workload["metadata"]["generation"]
        updated = status.get("updatedReplicas", status.get("updatedNumberScheduled", 0))
        ready = status.get("readyReplicas", status.get("numberReady", 0))
        if not is_seen or not updated == ready == wanted == len(programs) == len(fleet.of(component)):
            return False
        if any(word not in program.command() for program in programs for word in words):
            return False
    return True


def _roll(context, release, fleet, what, *words):
    """Waits for the end of a rollout during which the workload must keep its 4 replicas."""
    def is_over(view):
        context.expect(view.replicas == 4, f"4 replicas throughout, got {view.replicas}")
        return _has_rolled_out(release, fleet, *words)
    took = context.until(f"the rollout of {what}", is_over, 120)
    context.note(f"{what}: all programs replaced after {took:.0f} s, with {' '.join(words)}")
    context.holds("4 replicas by a value", lambda v: v.replicas == 4, 8)
    context.until("the HPA to read a value", lambda v: v.replicas == 4 and v.scaling_active == "ValidMetricFound")


@scenario("the chart's life under a scaled workload: install with its Job's certificates, upgrade, rollback, uninstall",
          alone=True)
def release_lives(context):
    namespace = f"{context.name}-system"
    certificate, key = _client(context, namespace)
    release = context.release(namespace, f"{context.name}-two")
    fleet = context.fleet(release, own_address(), [f"{context.name}-{number}" for number in range(2)])
    release.install(*_VALUES)
    context.note(f"helm install; its Job said: {fleet.said[0].partition(';')[0]}")
    address = context.serve(f"{release.service('hub')['metadata']['name']}.{namespace}.svc.cluster.local:{_PORT}", fleet)
    workload = context.workload(replicas=2, gpus=1)
    context.wait_for("two hubs and two agents to be ready", lambda: _has_rolled_out(release, fleet, "--log-level=info"))
    context.until_served(workload, 2)
    secret = _certificates(release)
    own = _secret(context, namespace, secret)
    workload.authenticate("hub", caCert=own["ca.crt"], tlsClientCert=certificate.read_text(), tlsClientKey=key.read_text())
    workload.scale({"scalerAddress": address, "metricType": "gpu_utilization", "targetValue": "50", "window": "4",
                    "activationWindow": "5"}, maximum=4, authentication="hub", **NO_STABILIZATION)
    context.until("4 replicas by 90 % on each simulated GPU", lambda v: v.ready == "True" and v.replicas == 4)
    context.until_served(workload, 4)
    context.until("360 in all", lambda v: is_close(v.value, 360) and v.replicas == 4)

    context.note("helm upgrade: simulated GPUs at the target, from where each fall of the value would show")
    release.upgrade(_load(50))
    context.until("200 in all, by the file that the running agents have mounted", lambda v: is_close(v.value, 200))
    context.note("helm upgrade: other arguments")
    release.upgrade("logLevel=debug", "grpc.reflection=false", "hub.replicas=3")
    _roll(context, release, fleet, "second upgrade", "--log-level=debug", "--grpc-reflection=false")
    context.expect(_secret(context, namespace, secret) == own, f"the certificates to be kept; the Job said: {fleet.said}")
    context.note("helm rollback")
    release.rollback(2)
    _roll(context, release, fleet, "rollback", "--log-level=info")
    context.expect(is_close(context.look().value, 200), "200 in all as before")

    has = release.left()
    context.expect(len(has) >= 20, f"objects of the release to be found by its label: {has}")
    context.note(f"helm uninstall; {len(has)} objects")
    release.uninstall()
    context.until("the ScaledObject and the HPA to report the loss",
                  lambda v: v.ready == "False" and v.scaling_active == "FailedGetExternalMetric")
    context.note(f"condition: {workload.view().ready_reason}: {workload.view().message}")
    context.wait_for("nothing of the release to be left", lambda: not release.left() and not fleet.of("hub"))
    kept = sorted(item["metadata"]["name"] for item in
                  context.cluster.api.get(f"/api/v1/namespaces/{namespace}/secrets")["items"])
    wanted = sorted(["keda-client-ca", secret, f"{secret}-ca"])
    context.expect(kept == wanted, f"the Secrets by which KEDA trusts the next release, and no more: {kept}")
    context.holds("4 replicas without a value", lambda v: v.replicas == 4, 8)
