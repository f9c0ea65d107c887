"""The whole bench of one run: ports, children, control plane and KEDA; and where its logs are."""

import shutil

from . import control_plane, forwarder, helm, keda, procs, release, settings


class Cluster:
    def __init__(self, tools):
        """tools: folders of the programs by module name, from build-tools."""
        self.work, self.ports = settings.WORK, settings.Ports()
        if self.work.exists():
            shutil.rmtree(self.work)
        self.logs = self.work / "logs"
        self.children = procs.Children(self.logs)
        self._plane = control_plane.ControlPlane(self.work, self.ports, self.children, tools["etcd"], tools["kubernetes"])
        self._helm = helm.Helm(self._plane, tools["helm"])
        self.keda = keda.Keda(self._plane, tools["keda"])

    def start(self):
        self._plane.start()
        self.services = forwarder.Services(self.ports.take())
        self.keda.start(self.services.address)
        self.releases = release.Releases(self._plane, self._helm)
        self.releases.get()

    @property
    def api(self):
        return self._plane.api

    @property
    def api_port(self):
        return self._plane.api_port

    @property
    def admin_kubeconfig(self):
        return self._plane.admin_kubeconfig

    def stop(self):
        self.children.stop_all()
        shutil.rmtree(self.work / "etcd", ignore_errors=True)
