"""KEDA's operator and metrics adapter outside a cluster, wired to the API server. It knows nothing of our agent."""

import json
import re
import shutil
import signal

from . import settings, wait

_EXTERNAL_METRICS = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"


class Keda:
    def __init__(self, plane, keda_bin):
        self.plane, self._bin = plane, keda_bin

    def start(self, services):
        """services: the proxy that knows the Services of the cluster; what is on loopback is reached without it."""
        self._services = services
        self._install_definitions()
        self.plane.api.apply("/api/v1/namespaces/keda", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keda"}})
        metrics_service = self.plane.ports.take()
        self._start_operator(metrics_service)
        self._start_adapter(metrics_service)
        wait.until("KEDA's metrics adapter to be available behind the API server", self._is_available,
                   settings.PATIENCE_S, alive=self.plane.children.require_running)

    def scaler_errors(self, namespace):
        """What scalers answered to calls for ScaledObjects of this namespace, by the operator's log."""
        found = []
        for line in self.operator.log_text().splitlines():
            if '"external_scaler"' not in line or f'"namespace":"{namespace}"' not in line:
                continue
            entry = json.loads(line)
            if entry.get("level") == "error":
                found.append(entry["error"])
        return found

    def _install_definitions(self):
        """Server-side apply: the ScaledJob definition is too large for a client-side one."""
        base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        names = []
        for path in sorted((self._bin / "crds").glob("*.keda.sh_*.yaml")) + sorted(
                (self._bin / "crds").glob("keda.sh_*.yaml")):
            text = path.read_bytes()
            name = re.search(rb"^  name: (\S+)$", text, re.MULTILINE).group(1).decode()
            self.plane.api.apply(f"{base}/{name}", text)
            names.append(name)
        wait.until("KEDA's definitions to be served", lambda: all(
            any(c["type"] == "Established" and c["status"] == "True"
                for c in self.plane.api.get(f"{base}/{name}").get("status", {}).get("conditions", []))
            for name in names), settings.PATIENCE_S)

    def _certificates(self):
        folder = self.plane.work / "keda-certs"
        folder.mkdir()
        certificate, key = self.plane.authority.issue("keda", "/CN=keda")
        shutil.copy(self.plane.authority.certificate, folder / "ca.crt")
        shutil.copy(certificate, folder / "tls.crt")
        shutil.copy(key, folder / "tls.key")
        return folder

    def _environment(self):
        return {"KUBECONFIG": str(self.plane.admin_kubeconfig), "WATCH_NAMESPACE": "", "POD_NAMESPACE": "keda",
                "KEDA_CLUSTER_OBJECT_NAMESPACE": "keda", "HTTPS_PROXY": f"http://{self._services}", "NO_PROXY": ""}

    def _start_operator(self, metrics_service):
        self._folder, take = self._certificates(), self.plane.ports.take
        self._operator_argv = [
            self._bin / "keda", f"--metrics-bind-address=127.0.0.1:{take()}",
            f"--health-probe-bind-address=127.0.0.1:{take()}",
            f"--metrics-service-bind-address=127.0.0.1:{metrics_service}", f"--cert-dir={self._folder}",
            "--enable-cert-rotation=false", "--enable-webhook-patching=false", "--enable-apiservice-patching=false",
            "--zap-log-level=debug"]
        self.start_operator()

    def start_operator(self):
        """The first one, or a new one where the last was killed."""
        self.operator = self.plane.children.start("keda-operator", self._operator_argv, self._environment())

    def kill_operator(self):
        self.plane.children.forget(self.operator)
        self.operator.stop(signal.SIGKILL)

    def _start_adapter(self, metrics_service):
        port, config = self.plane.ports.take(), self.plane.admin_kubeconfig
        self.plane.children.start("keda-adapter", [
            self._bin / "keda-adapter", f"--secure-port={port}", "--bind-address=127.0.0.1",
            f"--port={self.plane.ports.take()}", f"--metrics-service-address=localhost:{metrics_service}",
            f"--cert-dir={self._folder}", f"--tls-cert-file={self._folder}/tls.crt",
            f"--tls-private-key-file={self._folder}/tls.key", f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}", f"--lister-kubeconfig={config}"], self._environment())
        self._register(port)

    def _register(self, port):
        """A Service of type ExternalName brings the aggregator to a process of this machine."""
        apply = self.plane.api.apply
        apply("/api/v1/namespaces/keda/services/keda-adapter", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "keda-adapter", "namespace": "keda"},
            "spec": {"type": "ExternalName", "externalName": "localhost"}})
        apply(_EXTERNAL_METRICS, {
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
            "spec": {"group": "external.metrics.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": True,
                     "groupPriorityMinimum": 100, "versionPriority": 100,
                     "service": {"namespace": "keda", "name": "keda-adapter", "port": port}}})
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        apply(f"{rbac}/clusterroles/external-metrics-reader", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "external-metrics-reader"},
            "rules": [{"apiGroups": ["external.metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]}]})
        apply(f"{rbac}/clusterrolebindings/external-metrics-reader", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "external-metrics-reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "external-metrics-reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}]})

    def _is_available(self):
        conditions = self.plane.api.get(_EXTERNAL_METRICS).get("status", {}).get("conditions", [])
        return any(c["type"] == "Available" and c["status"] == "True" for c in conditions)
