"""The whole bench of one run: ports, children, control plane and KEDA; and where its logs are."""

import shutil

from . import access, control_plane, keda, procs, settings


class Cluster:
    def __init__(self, tools):
        """tools: folders of the programs by module name, from build-tools."""
        self.work, self.ports = settings.WORK, settings.Ports()
        if self.work.exists():
            shutil.rmtree(self.work)
        self.logs = self.work / "logs"
        self.children = procs.Children(self.logs)
        self._plane = control_plane.ControlPlane(self.work, self.ports, self.children, tools["etcd"], tools["kubernetes"])
        self.keda = keda.Keda(self._plane, tools["keda"])
        self.access = access.Access(self._plane)

    def start(self):
        self._plane.start()
        self.keda.start()

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
