"""Simulated model servers: each pod of a scenario has an address of its own, on which one serves its metrics page.

One process plays all of them from a scenario file, which is written anew when pods come, go or get other traffic. The
only file of the rig that knows the format of that file.
"""

import http.client
import itertools
import json
import os
import threading

from . import settings, wait

_FOLLOWS_S = 0.5  # the process reads its file again within this time


class Addresses:
    """Loopback addresses, each once: 127.64.0.1 and so on."""

    def __init__(self):
        self._next, self._lock = itertools.count(1), threading.Lock()

    def take(self):
        with self._lock:
            number = next(self._next)
        return f"127.{64 + number // 64000}.{number // 250 % 256}.{number % 250 + 1}"


_addresses = Addresses()


class Traffic:
    """What a workload is asked for, in requests a second, and the servers that its pods are. A GPU is busy whatever the
    number of requests, as they are."""

    def __init__(self, requests=0.0, engine="vllm", port=8000, **server):
        """server: further keys of each server in the scenario file."""
        self.requests, self.engine, self.port = requests, engine, port
        self.server = {"service_rate": 4, "slots": 16, "kv_per_request_percent": 5, **server}

    def share(self, pods):
        serving = [pod for pod in pods if pod.serves]
        for pod in pods:
            pod.traffic, pod.arrivals = self, 0.0
        for pod in serving:
            pod.arrivals = self.requests / len(serving)
        for pod in pods:
            pod.load = 98.0 if pod.arrivals > 0 else 0.0


class Engines:
    def __init__(self, cluster, name):
        self._cluster, self._name = cluster, name
        self._path = cluster.work / f"{name}-engines.yaml"
        self._faults, self._written = {}, None  # faults by pod's name
        self.play([])
        self._child = cluster.children.start(f"{name}-engines", [settings.ENGINES, self._path])
        wait.until("the simulated servers to be ready", lambda: "ready" in self._child.log_text(), settings.PATIENCE_S,
                   0.05, self._child.require_running)

    @staticmethod
    def take_address():
        return _addresses.take()

    def strike(self, pod, **fault):
        """A fault of this pod's page from now on, as {"fault": "status", "code": 503}; none: it ends."""
        self._faults[pod.name] = fault

    def play(self, pods):
        """Brings the servers to what the pods are now."""
        servers = []
        for pod in pods:
            traffic = getattr(pod, "traffic", None)
            if not traffic or not pod.is_started or not pod.ip:
                continue
            faults = [self._faults[pod.name]] if self._faults.get(pod.name) else []
            servers.append({"engine": traffic.engine, "listen": f"{pod.ip}:{traffic.port}", "model": pod.app,
                            "arrivals": round(pod.arrivals, 4), **traffic.server, "faults": faults})
        text = json.dumps({"servers": servers}, indent=1)
        if text != self._written:
            fresh = self._path.with_suffix(".new")
            fresh.write_text(text)
            os.replace(fresh, self._path)
            self._written = text

    @staticmethod
    def state(pod):
        """What the server of a pod says of itself: running, waiting, KV cache."""
        connection = http.client.HTTPConnection(pod.ip, pod.traffic.port, timeout=5)
        try:
            connection.request("GET", "/state")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def close(self):
        self._cluster.children.forget(self._child)
        self._child.stop()
