"""The chart, installed by Helm: releases, and what is in them by the labels and kinds that Helm gave it.

How the chart calls its objects, and what it allows them, is known nowhere here: it is read from the API server.
"""

import base64
import threading

from . import access, settings

CHART = "deploy/helm/keda-gpu-scaler"
NAMESPACE, NAME = "gpu-scaler", "gpu-scaler"  # of the README's command
_INSTANCE, _COMPONENT = "app.kubernetes.io/instance", "app.kubernetes.io/component"
_KINDS = {"agent": "daemonsets", "hub": "deployments"}


class Release:
    """name: no other release in the cluster has it."""

    def __init__(self, plane, helm, namespace, name):
        self.plane, self.namespace, self.name = plane, namespace, name
        self._api, self._helm, self._is_installed = plane.api, helm, False

    # What people do with it.
    def install(self, *values):
        """The README's command; values: `NAME=VALUE` each."""
        self._is_installed = True
        return self._helm("install", self.name, CHART, "--namespace", self.namespace, "--create-namespace", *_sets(values))

    def upgrade(self, *values):
        """With these values beside those of before."""
        return self._helm("upgrade", self.name, CHART, "--namespace", self.namespace, "--reuse-values", *_sets(values))

    def rollback(self, revision):
        return self._helm("rollback", self.name, str(revision), "--namespace", self.namespace)

    def uninstall(self):
        self._is_installed = False
        return self._helm("uninstall", self.name, "--namespace", self.namespace)

    def remove(self):
        """Whatever became of it."""
        if self._is_installed:
            self.uninstall()

    # What is in it.
    def pods(self):
        return self._api.get(f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={_INSTANCE}%3D{self.name}")["items"]

    def workload(self, component):
        """The DaemonSet of the agents, or the Deployment of the hubs."""
        [found] = self._api.get(f"/apis/apps/v1/namespaces/{self.namespace}/{_KINDS[component]}?labelSelector="
                                f"{_INSTANCE}%3D{self.name},{_COMPONENT}%3D{component}")["items"]
        return found

    def pod_spec(self, component):
        return self.workload(component)["spec"]["template"]["spec"]

    def service(self, component, headless=False):
        """The Service that selects this component's pods, as KEDA asks it or (headless) as a hub looks for agents."""
        items = self._api.get(f"/api/v1/namespaces/{self.namespace}/services?labelSelector={_INSTANCE}%3D{self.name}")["items"]
        [found] = [i for i in items if i["spec"]["selector"].get(_COMPONENT) == component
                   and (i["spec"].get("clusterIP") == "None") == headless]
        return found

    def access(self, account):
        return access.Access(self.plane, self.namespace, account)

    def files(self, volume):
        """What a volume of a ConfigMap or a Secret has in it, by file name."""
        if "configMap" in volume:
            source, name, kind = volume["configMap"], volume["configMap"]["name"], "configmaps"
        else:
            source, name, kind = volume["secret"], volume["secret"]["secretName"], "secrets"
        found = self._api.find(f"/api/v1/namespaces/{self.namespace}/{kind}/{name}")
        data = (found or {}).get("data", {})  # Secrets of certificates may be the scenario's own files
        if kind == "secrets":
            data = {key: base64.b64decode(text).decode() for key, text in data.items()}
        items = source.get("items")
        return {i["path"]: data[i["key"]] for i in items} if items else data

    def left(self):
        """Paths of everything in the cluster that bears the release's label."""
        found = []
        groups = [group["preferredVersion"]["groupVersion"] for group in self._api.get("/apis")["groups"]]
        for base in ["/api/v1", *(f"/apis/{group}" for group in groups)]:
            for kind in self._api.get(base)["resources"]:
                if "list" in kind["verbs"] and "metrics" not in base:
                    path = f"{base}/{kind['name']}"
                    items = self._api.get(f"{path}?labelSelector={_INSTANCE}%3D{self.name}")["items"]
                    found += [f"{path}/{i['metadata'].get('namespace', '')}/{i['metadata']['name']}" for i in items]
        return found


def _sets(values):
    return [word for value in values for word in ("--set", value)]


class Releases:
    """Releases that scenarios share: the README's, and others by their values, installed when the first scenario asks."""

    def __init__(self, plane, helm):
        self._plane, self._helm, self._made, self._lock = plane, helm, {}, threading.Lock()

    def new(self, namespace, name):
        """Not installed yet."""
        return Release(self._plane, self._helm, namespace, name)

    def get(self, *values):
        with self._lock:
            if values not in self._made:
                name = f"{NAME}-{len(self._made)}" if values else NAME
                made = self.new(f"{NAMESPACE}-{len(self._made)}" if values else NAMESPACE, name)
                made.install(*settings.CHART_VALUES, *values)
                self._made[values] = made
            return self._made[values]
