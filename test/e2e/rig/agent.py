"""Our agent as the chart's DaemonSet starts it, on simulated GPUs. The only file of the rig that knows the scenario file's
format; what differs from the chart is in rig/container.py.
"""

import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import zlib

from . import container, procs, settings, wait


# Agents that KEDA asks itself, with the scenario's own Secrets.
_TLS = ("hub.enabled=false", "tls.mode=secret", "tls.secretName=agent-tls")
_CLIENTS = ("tls.clientCA.secretName=keda-client-ca",)


class Gpus:
    """The simulated boards of one agent: utilisation in percent by index; None is a board that fell off the bus."""

    def __init__(self, path, loads):
        self._path = path
        self._seed = zlib.crc32(str(path).encode())
        self.set(loads)

    def uuid(self, index):
        return f"GPU-{self._seed:08x}-0000-4000-8000-{index:012x}"

    def set(self, loads, fault=None, processes=None, memory=None):
        """Rewrites the scenario file in one step; the simulation takes it over while it runs. `fault` strikes all boards;
        processes: {index: [(pid, its share of the board in percent)]}; memory: {index: percent in use}."""
        lines = ["gpus:"]
        for index, load in enumerate(loads):
            listed = ", ".join(f"{{pid: {pid}, memory_mib: 1000, sm: {share:g}}}"
                               for pid, share in (processes or {}).get(index, []))
            lines.append(f"  - {{board: A100-40, uuid: {self.uuid(index)}, utilization: {load or 0:g}"
                         + (f", memory_used_percent: {memory[index]:g}" if index in (memory or {}) else "")
                         + (f", processes: [{listed}]" if listed else "") + "}")
        faults = [f"  - {{fault: lost, gpu: {index}}}" for index, load in enumerate(loads) if load is None]
        faults += [f"  - {{fault: {fault}}}"] if fault else []
        lines += ["faults:", *faults] if faults else []
        fresh = self._path.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        os.replace(fresh, self._path)


class Agent:
    """By the DaemonSet of a release, or of one with these `values` of the chart. loads: None where the release itself says
    what is simulated. spec: of a pod that is there already. different: see rig/container.py. host: where it listens."""

    def __init__(self, cluster, name, loads, tls=None, client_authority=None, metrics=None, configuration=False,
                 different=(), host="127.0.0.1", values=(), node=None, release=None, spec=None):
        self.cluster, self.name = cluster, name
        self.host, self.port, self._different = host, cluster.ports.take(), different
        self._folder = cluster.work / name
        self._folder.mkdir()
        self.gpus = Gpus(self._folder / "gpus.yaml", loads) if loads is not None else None
        if tls:
            values = (*values, *_TLS, *(_CLIENTS if client_authority else ()))
            self._tls = self._put("tls", zip(("tls.crt", "tls.key"), tls))
        if client_authority:
            self._put("client-ca", [("ca.crt", client_authority)])
        self._config = self._folder / "config/agent.yaml" if configuration or metrics is not None else None
        if self._config:
            self._config.parent.mkdir()
            self.write_metrics(metrics or [])
        self._node, self._values, self._release, self._spec = node or name, values, release, spec
        self._child, self._container, self._starts = None, None, 0

    def _put(self, name, files):
        """Content of a Secret that the chart would mount."""
        folder = self._folder / name
        folder.mkdir()
        return [pathlib.Path(shutil.copy(path, folder / key)) for key, path in files]

    @property
    def address(self):
        """For plaintext triggers; with TLS the name must be the certificate's: use `tls_address`."""
        return f"{self.host}:{self.port}"

    @property
    def tls_address(self):
        return f"localhost:{self.port}"

    def _argv(self):
        if not self._container:
            release = self._release or self.cluster.releases.get(*self._values)
            self._container = container.Container(release, self._spec or release.pod_spec("agent"), self._folder)
            self._namespace = release.namespace
        return self._container.argv(container.ports(self.address), container.no_driver(), *self._different)

    def refresh(self):
        """Its mounted files, to what the cluster has now."""
        self._container.refresh()

    def command(self):
        return [str(word) for word in self._argv()]

    def start(self):
        """Returns when the port accepts connections."""
        self._starts += 1
        argv = self._argv()
        environment = self._container.environment(self.name, self._node, self._namespace)
        if self.gpus:
            environment["NVMLSIM_SCENARIO"] = str(self._folder / "gpus.yaml")
        self._child = self.cluster.children.start(f"{self.name}-{self._starts}", argv, environment)
        wait.until(f"{self.name} to listen", self._is_listening, settings.PATIENCE_S, 0.02, self._child.require_running)

    def _is_listening(self):
        with socket.create_connection((self.host, self.port), timeout=1):
            return True

    def freeze(self):
        """The process hangs, its connections stay."""
        self._child.send(signal.SIGSTOP)

    def thaw(self):
        self._child.send(signal.SIGCONT)

    def kill(self):
        """Without a word to anybody."""
        self.cluster.children.forget(self._child)
        self._child.stop(signal.SIGKILL)

    def stop(self):
        """SIGTERM; returns (seconds until it ended, exit status)."""
        self.cluster.children.forget(self._child)
        return self._child.stop(signal.SIGTERM, patience_s=10)

    def close(self):
        """Ends the agent if it runs; it must always end well."""
        if not self._child or not self._child.is_running():
            return
        self.thaw()
        seconds, status = self.stop()
        if status != 0 or seconds >= 5:
            raise procs.ChildFailed(f"{self.name} ended with status {status} after {seconds:.1f} s, want 0 in under 5 s; "
                                    f"end of {self._child.log_path}:\n{self._child.log_tail()}")

    def write_metrics(self, entries):
        """The `metrics:` list of the configuration file: defaults for triggers by metric name."""
        self._config.write_text(json.dumps({"metrics": entries}, indent=1))

    def rotate(self, tls):
        """Replaces the content of the certificate and key files."""
        for fresh, used in zip(tls, self._tls):
            shutil.copy(fresh, f"{used}.new")
            os.replace(f"{used}.new", used)

    def served_certificate(self):
        """The certificate (PEM) that a new connection gets; not for agents that demand one of the client."""
        return ssl.get_server_certificate(("127.0.0.1", self.port), timeout=5)

    def reload(self):
        self._child.send(signal.SIGHUP)

    def log_text(self):
        return self._child.log_text()

    def page(self, path="/metrics"):
        """A page of the agent's port, plaintext agents only."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def open_streams(self, method):
        """How many streams of this method are open, by the agent's own page."""
        for line in self.page().splitlines():
            if line.startswith("keda_gpu_scaler_open_streams{") and f'"{method}"' in line:
                return int(float(line.rsplit(" ", 1)[1]))
        return 0
