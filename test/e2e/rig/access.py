"""What a ServiceAccount of the cluster may do, and a token of it for a process. Who it is and what it is allowed, the chart
says."""

from . import kubeconfig


class Access:
    def __init__(self, plane, namespace, account):
        self._plane, self._namespace, self._account = plane, namespace, account

    def kubeconfig(self, path, server=None):
        """A file for one process; server: another way to the API server."""
        token = path.with_suffix(".token")
        answer = self._plane.api.create(f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{self._account}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}})
        token.write_text(answer["status"]["token"])
        return kubeconfig.write_token(path, server or self._plane.server, self._plane.authority.certificate, token,
                                      self._namespace)

    def may(self, verb, resource, group="", namespace=""):
        """What the API server says of its rights; resource may be with a subresource."""
        resource, _, subresource = resource.partition("/")
        review = self._plane.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": f"system:serviceaccount:{self._namespace}:{self._account}",
                     "resourceAttributes": {"verb": verb, "resource": resource, "subresource": subresource, "group": group,
                                            "namespace": namespace}}})
        return review["status"]["allowed"]
