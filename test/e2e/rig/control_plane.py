"""etcd, kube-apiserver and kube-controller-manager on loopback, without nodes: pods stay Pending, which is enough for
`AverageValue` targets. It knows nothing of KEDA or of our agent."""

import concurrent.futures

from . import api, certs, kubeconfig, settings, wait

_CONTROLLERS = ("horizontal-pod-autoscaler-controller", "deployment-controller", "replicaset-controller",
                "namespace-controller", "serviceaccount-controller", "garbage-collector-controller", "daemonset-controller",
                "job-controller")


class ControlPlane:
    def __init__(self, work, ports, children, etcd_bin, kubernetes_bin):
        self.work, self.ports, self.children = work, ports, children
        self._etcd_bin, self._kubernetes_bin = etcd_bin, kubernetes_bin
        self._pki = work / "pki"
        self.api_port = ports.take()
        self.server = f"https://127.0.0.1:{self.api_port}"

    def start(self):
        etcd_port = self._start_etcd()
        self._make_identities()
        self._start_api_server(etcd_port)
        self.api = api.Api(self.api_port, self.authority.certificate, *self._admin)
        wait.until("kube-apiserver to be ready", lambda: self.api.get("/readyz") == "ok", settings.PATIENCE_S,
                   alive=self.children.require_running)
        self._start_controller_manager()

    def _start_etcd(self):
        client, peer = (f"http://127.0.0.1:{self.ports.take()}" for _ in range(2))
        self.children.start("etcd", [
            self._etcd_bin / "etcd", f"--data-dir={self.work / 'etcd'}",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}", "--unsafe-no-fsync", "--log-level=warn"])
        return client

    def _make_identities(self):
        self.authority = certs.Authority(self._pki, "ca")
        self._front_proxy = certs.Authority(self._pki, "front-proxy-ca")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            server = pool.submit(self.authority.issue, "apiserver", "/CN=kube-apiserver")
            admin = pool.submit(self.authority.issue, "admin", "/O=system:masters/CN=admin")
            manager = pool.submit(self.authority.issue, "kcm", "/CN=system:kube-controller-manager")
            proxy = pool.submit(self._front_proxy.issue, "front-proxy-client", "/CN=front-proxy-client")
            tokens = pool.submit(certs.make_key_pair, self._pki, "service-account")
        self._server, self._admin, self._manager = server.result(), admin.result(), manager.result()
        self._proxy, self._tokens = proxy.result(), tokens.result()
        self.admin_kubeconfig = self._kubeconfig("admin", self._admin)

    def _kubeconfig(self, name, identity):
        return kubeconfig.write(self._pki / f"{name}.kubeconfig", self.server, self.authority.certificate, *identity)

    def _start_api_server(self, etcd):
        private, public = self._tokens
        self.children.start("kube-apiserver", [
            self._kubernetes_bin / "kube-apiserver", f"--etcd-servers={etcd}", "--bind-address=127.0.0.1",
            f"--secure-port={self.api_port}", f"--tls-cert-file={self._server[0]}",
            f"--tls-private-key-file={self._server[1]}", f"--client-ca-file={self.authority.certificate}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={public}", f"--service-account-signing-key-file={private}",
            "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
            f"--proxy-client-cert-file={self._proxy[0]}", f"--proxy-client-key-file={self._proxy[1]}",
            f"--requestheader-client-ca-file={self._front_proxy.certificate}",
            "--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-"])

    def _start_controller_manager(self):
        config = self._kubeconfig("kcm", self._manager)
        self.children.start("kube-controller-manager", [
            self._kubernetes_bin / "kube-controller-manager", f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
            "--bind-address=127.0.0.1", f"--secure-port={self.ports.take()}", "--leader-elect=false",
            "--use-service-account-credentials=true", f"--controllers={','.join(_CONTROLLERS)}",
            f"--service-account-private-key-file={self._tokens[0]}", f"--root-ca-file={self.authority.certificate}",
            f"--horizontal-pod-autoscaler-sync-period={settings.HPA_SYNC_S}s",
            f"--horizontal-pod-autoscaler-downscale-stabilization={settings.HPA_SCALE_DOWN_WINDOW_S}s"])
