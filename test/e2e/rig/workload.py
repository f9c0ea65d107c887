"""One Deployment with its ScaledObject in a namespace of its own, and what the cluster says about them.

View is one moment as the API server tells it; deciding what is right is the scenarios' business.
"""

import base64
import dataclasses
import urllib.parse

from . import settings

_SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/namespaces/{}/scaledobjects"
_HPAS = "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers"


def quantity(text):
    """A Kubernetes quantity as a number; None stays None."""
    if text is None:
        return None
    text = str(text)
    scales = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
    return float(text[:-1]) * scales[text[-1]] if text[-1] in scales else float(text)


def _condition(conditions, name):
    for condition in conditions or []:
        if condition.get("type") == name:
            return condition
    return {}


@dataclasses.dataclass(frozen=True)
class View:
    replicas: int            # spec.replicas of the Deployment
    hpa: bool                # there is an HPA
    value: float | None      # what the HPA read, in all: its average times the replicas that it divided by
    target: float | None     # what the HPA compares with, per replica
    scaling_active: str      # the HPA's condition ScalingActive: its reason, "" before the first
    ready: str               # the ScaledObject's condition Ready: True, False, Unknown or ""
    ready_reason: str
    message: str             # of the condition Ready
    active: str
    fallback: str

    def columns(self):
        number = lambda n: "-" if n is None else f"{n:g}"  # noqa: E731
        return (str(self.replicas), number(self.value), number(self.target),
                f"Ready={self.ready or '-'} Active={self.active or '-'} Fallback={self.fallback or '-'} "
                f"HPA={self.scaling_active or '-' if self.hpa else 'none'}")


class Workload:
    def __init__(self, api, namespace, name="model"):
        self.api, self.namespace, self.name = api, namespace, name
        self._object = _SCALED_OBJECTS.format(namespace) + "/" + name
        self._deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"

    def create(self, replicas, gpus=0, surge=None, recreate=False):
        """gpus: that each pod asks for. surge: how many pods more than the replicas a rollout may have. recreate: a
        rollout ends all pods first."""
        self.api.apply(f"/api/v1/namespaces/{self.namespace}", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        labels = {"app": self.name}
        container = {"name": "model", "image": "example.invalid/model:1"}
        if gpus:
            container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
        strategy = {} if surge is None else {"strategy": {
            "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}}}
        if recreate:
            strategy = {"strategy": {"type": "Recreate"}}
        self.api.create(self._deployment.rsplit("/", 1)[0], {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": self.name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, **strategy, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [container]}}}})

    def roll_out(self, version):
        """A new pod template: the deployment controller replaces all pods."""
        self.api.merge(self._deployment, {"spec": {"template": {"metadata": {"annotations": {"version": version}}}}})

    def resize(self, replicas):
        """As a person does, or another controller."""
        self.api.merge(self._deployment, {"spec": {"replicas": replicas}})

    def scale(self, metadata, kind="external", minimum=1, maximum=20, authentication=None, metric_type=None, **spec):
        """Creates or changes the ScaledObject; metadata holds the trigger's keys, scalerAddress included."""
        trigger = {"type": kind, "metadata": metadata}
        if metric_type:
            trigger["metricType"] = metric_type
        if authentication:
            trigger["authenticationRef"] = {"name": authentication}
        self.api.apply(self._object, {
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"scaleTargetRef": {"name": self.name}, "minReplicaCount": minimum, "maxReplicaCount": maximum,
                     "pollingInterval": settings.KEDA_POLL_S, "cooldownPeriod": settings.KEDA_COOLDOWN_S,
                     "triggers": [trigger], **spec}})

    def pause(self, replicas):
        """Tells KEDA to keep so many replicas until told otherwise; None: to scale again."""
        annotations = {"autoscaling.keda.sh/paused-replicas": None if replicas is None else str(replicas)}
        self.api.merge(self._object, {"metadata": {"annotations": annotations}})

    def forget(self):
        """Deletes the ScaledObject; the Deployment stays."""
        self.api.delete(self._object)

    def authenticate(self, name, **secrets):
        """A Secret and the TriggerAuthentication that hands its keys to the trigger, by the same names."""
        self.api.apply(f"/api/v1/namespaces/{self.namespace}/secrets/{name}", {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in secrets.items()}})
        self.api.apply(f"/apis/keda.sh/v1alpha1/namespaces/{self.namespace}/triggerauthentications/{name}", {
            "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": name},
            "spec": {"secretTargetRef": [{"parameter": key, "name": name, "key": key} for key in secrets]}})

    def delete(self):
        """Without its ScaledObject KEDA closes the streams and asks no more."""
        self.api.delete(self._object)
        self.api.delete(self._deployment)

    def is_gone(self):
        return self.api.find(self._object) is None

    def scaled_object(self):
        return self.api.get(self._object)

    def hpa(self):
        return self.api.find(_HPAS.format(self.namespace) + f"/keda-hpa-{self.name}")

    def events(self):
        """Reasons and messages of the events about the ScaledObject."""
        items = self.api.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]
        return [f"{i['reason']}: {i.get('message', '')}" for i in items if i["involvedObject"].get("name") == self.name]

    def external_value(self):
        """The number as the external metrics API gives it, the same way as the HPA asks. It makes KEDA ask us."""
        metric = self.scaled_object()["status"]["externalMetricNames"][0]
        selector = urllib.parse.quote(f"scaledobject.keda.sh/name={self.name}")
        items = self.api.get(f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{self.namespace}/"
                             f"{urllib.parse.quote(metric)}?labelSelector={selector}")["items"]
        return sum(quantity(item["value"]) for item in items)

    def view(self):
        deployment, hpa = self.api.get(self._deployment), self.hpa()
        scaled = self.api.find(self._object) or {}
        conditions = scaled.get("status", {}).get("conditions")
        ready = _condition(conditions, "Ready")
        value, target = self._reading(hpa)
        return View(
            replicas=deployment["spec"]["replicas"], hpa=hpa is not None, value=value, target=target,
            scaling_active=_condition((hpa or {}).get("status", {}).get("conditions"), "ScalingActive").get("reason", ""),
            ready=ready.get("status", ""), ready_reason=ready.get("reason", ""), message=ready.get("message", ""),
            active=_condition(conditions, "Active").get("status", ""),
            fallback=_condition(conditions, "Fallback").get("status", ""))

    @staticmethod
    def _reading(hpa):
        """(value, target) of the HPA's first external metric; the HPA shows value / status.replicas."""
        if not hpa:
            return None, None
        specs = [m for m in hpa["spec"].get("metrics", []) if m["type"] == "External"]
        if not specs:
            return None, None
        wanted = specs[0]["external"]["target"]
        target = quantity(wanted.get("averageValue", wanted.get("value")))
        status = hpa.get("status", {})
        now = next((m["external"]["current"] for m in status.get("currentMetrics") or [] if m.get("type") == "External"), {})
        if "averageValue" in now:
            return round(quantity(now["averageValue"]) * status.get("currentReplicas", 0), 1), target
        return quantity(now.get("value")), target
