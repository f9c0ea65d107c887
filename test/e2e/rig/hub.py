"""Our hub as the chart's Deployment starts it, with the rights of the chart's ServiceAccount. What differs from the chart
is in rig/container.py.
"""

import http.client
import json
import signal
import subprocess

from . import container, procs, settings, wait


class Hub:
    """By the Deployment of a release. agents: what --agents is told, one each; none: as the chart says. server: the way to
    the API server, where it is not the straight one. flags: `--NAME=VALUE`, instead of the chart's. simulates: its nodes'
    GPUs are those of mockMode. spec: of a pod that is there already."""

    def __init__(self, cluster, name, agents, server=None, flags=(), simulates=False, release=None, spec=None):
        self.cluster, self.name = cluster, name
        self.port, self._metrics = cluster.ports.take(), cluster.ports.take()
        release = release or cluster.releases.get(*(["mockMode.enabled=true"] if simulates else []))
        spec = spec or release.pod_spec("hub")
        folder = cluster.work / name
        folder.mkdir()
        self._container = container.Container(release, spec, folder)
        config = release.access(spec["serviceAccountName"]).kubeconfig(folder / "kubeconfig", server)
        self._argv = self._container.argv(
            container.ports(self.address, f"127.0.0.1:{self._metrics}"), container.api_server(config),
            container.agents_at(agents), {} if simulates else container.boards_as_if_real(), container.instead(flags))
        self._environment = self._container.environment(name, "hub-node", release.namespace)
        self._end_s = 5 + float(self._container.value("--shutdown-delay").rstrip("s"))
        self._child, self._starts = None, 0

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def refresh(self):
        """Its mounted files, to what the cluster has now."""
        self._container.refresh()

    def command(self):
        return [str(word) for word in self._argv]

    def start(self, is_ready=True):
        """Returns when it has heard the API and all agents, or (is_ready=False) when its port accepts connections."""
        self._starts += 1
        self._child = self.cluster.children.start(f"{self.name}-{self._starts}", self._argv, self._environment)
        wait.until(f"{self.name} to be up", lambda: self.readiness() == 200 if is_ready else self.page("/livez"),
                   settings.PATIENCE_S, 0.05, self._child.require_running)

    def stop(self):
        """SIGTERM; returns (seconds until it ended, exit status)."""
        self.cluster.children.forget(self._child)
        return self._child.stop(signal.SIGTERM, patience_s=self._end_s + 5)

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
        if status != 0 or seconds >= self._end_s:
            raise procs.ChildFailed(f"{self.name} ended with status {status} after {seconds:.1f} s, want 0 in under "
                                    f"{self._end_s:.0f} s; end of {self._child.log_path}:\n{self._child.log_tail()}")

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
