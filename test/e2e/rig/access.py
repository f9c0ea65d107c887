"""What a hub may do in the cluster: a ServiceAccount with the rights that the chart gives, and its token for a process."""

import threading

from . import kubeconfig, settings

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
NAMESPACE, ACCOUNT = "gpu-scaler", "keda-gpu-scaler-hub"
_CHART = settings.ROOT / "deploy/helm/keda-gpu-scaler/templates/rbac.yaml"


def _rules(kind):
    """The text of the rules of the chart's ClusterRole or Role; they are the same with any values."""
    document = next(text for text in _CHART.read_text().split("\n---\n") if f"\nkind: {kind}\n" in f"\n{text}\n")
    return "rules:\n" + document.split("\nrules:\n", 1)[1]


class Access:
    """Made once a run, when the first hub asks."""

    def __init__(self, plane):
        self._plane, self._token, self._lock = plane, None, threading.Lock()

    def kubeconfig(self, path, server=None):
        """A file for one hub; server: another way to the API server."""
        with self._lock:
            self._token = self._token or self._make()
        return kubeconfig.write_token(path, server or self._plane.server, self._plane.authority.certificate, self._token,
                                      NAMESPACE)

    def _make(self):
        api = self._plane.api
        api.apply(f"/api/v1/namespaces/{NAMESPACE}", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        api.apply(f"{accounts}/{ACCOUNT}", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})
        self._bind("ClusterRole", f"{_RBAC}/clusterroles", f"{_RBAC}/clusterrolebindings")
        self._bind("Role", f"{_RBAC}/namespaces/{NAMESPACE}/roles", f"{_RBAC}/namespaces/{NAMESPACE}/rolebindings")
        answer = api.create(f"{accounts}/{ACCOUNT}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}})
        path = self._plane.work / "hub.token"
        path.write_text(answer["status"]["token"])
        return path

    def _bind(self, kind, roles, bindings):
        head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": ACCOUNT}}
        text = f"apiVersion: {head['apiVersion']}\nkind: {kind}\nmetadata: {{name: {ACCOUNT}}}\n{_rules(kind)}\n"
        self._plane.api.apply(f"{roles}/{ACCOUNT}", text.encode())
        self._plane.api.apply(f"{bindings}/{ACCOUNT}", {
            **head, "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}]})

    def may(self, verb, resource, group="", namespace=""):
        """What the API server says of the hub's rights; resource may be with a subresource."""
        resource, _, subresource = resource.partition("/")
        review = self._plane.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
                     "resourceAttributes": {"verb": verb, "resource": resource, "subresource": subresource, "group": group,
                                            "namespace": namespace}}})
        return review["status"]["allowed"]
