"""Our hub as a process, with the rights of rig/access.py. The only file of the rig that knows the hub's flags."""

import http.client
import json
import signal
import subprocess

from . import procs, settings, wait


class Hub:
    """agents: what --agents is told, one each. server: the way to the API server, where it is not the straight one."""

    def __init__(self, cluster, name, agents, server=None, flags=()):
        self.cluster, self.name = cluster, name
        self.port, self._metrics = cluster.ports.take(), cluster.ports.take()
        self._config = cluster.access.kubeconfig(cluster.work / f"{name}.kubeconfig", server)
        self._agents, self._flags = agents, flags
        self._child, self._starts = None, 0

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def _argv(self):
        argv = [settings.PROGRAM, "hub", "--listen", self.address, "--metrics-listen", f"127.0.0.1:{self._metrics}",
                "--probe-port", "0", "--kubeconfig", self._config, "--hub-name", self.name, "--simulated-gpus", "0",
                "--log-level", "debug", *self._flags]
        for where in self._agents:
            argv += ["--agents", where]
        return argv

    def start(self, is_ready=True):
        """Returns when it has heard the API and all agents, or (is_ready=False) when its port accepts connections."""
        self._starts += 1
        self._child = self.cluster.children.start(f"{self.name}-{self._starts}", self._argv())
        wait.until(f"{self.name} to be up", lambda: self.readiness() == 200 if is_ready else self.page("/livez"),
                   settings.PATIENCE_S, 0.05, self._child.require_running)

    def stop(self):
        """SIGTERM; returns (seconds until it ended, exit status)."""
        self.cluster.children.forget(self._child)
        return self._child.stop(signal.SIGTERM, patience_s=10)

    def kill(self):
        self.cluster.children.forget(self._child)
        self._child.stop(signal.SIGKILL)

    def is_running(self):
        return self._child is not None and self._child.is_running()

    def close(self):
        """Ends the hub if it runs; it must always end well."""
        if not self.is_running():
            return
        seconds, status = self.stop()
        if status != 0 or seconds >= 5:
            raise procs.ChildFailed(f"{self.name} ended with status {status} after {seconds:.1f} s, want 0 in under 5 s; "
                                    f"end of {self._child.log_path}:\n{self._child.log_tail()}")

    def log_text(self):
        return self._child.log_text()

    def _get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self._metrics, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def readiness(self):
        return self._get("/readyz")[0]

    def page(self, path="/metrics"):
        return self._get(path)[1]

    def workload(self, namespace, name):
        """What the hub says of the workload, decoded."""
        return json.loads(self.page(f"/api/v1/workloads/{namespace}/{name}"))

    def explain(self, namespace, name):
        """The command `explain`, for people."""
        done = subprocess.run([settings.PROGRAM, "explain", f"{namespace}/{name}", "--hub", f"127.0.0.1:{self._metrics}"],
                              capture_output=True, text=True, timeout=20, check=False)
        return (done.stdout + done.stderr).rstrip()
