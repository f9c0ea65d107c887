"""What a cluster does with the pods of a release: kubelets that run them as processes, EndpointSlices that say where agents
are, and the Service's way to hubs that are ready.

The pods are those of the real Deployment and DaemonSet controllers, so a rollout goes as these say. Certificates' Jobs are
run as well. How programs are started is rig/container.py's business.
"""

import subprocess
import threading
import time
import traceback

from . import agent, api as kubernetes, container, hub, settings

_TICK_S = 0.3
_REFRESH_S = 3  # what a kubelet takes a minute for
_COMPONENT = "app.kubernetes.io/component"


class _Running:
    """A pod of the release whose program runs. program: Hub or Agent."""

    def __init__(self, program, component, node):
        self.program, self.component, self.node = program, component, node
        self.is_ready, self.ending, self.refreshed = False, None, time.monotonic()

    def end(self):
        """Begins or goes on with SIGTERM; true when it has ended."""
        if not self.ending:
            self.ending = threading.Thread(target=self._end, daemon=True)
            self.problem = None
            self.ending.start()
        return not self.ending.is_alive()

    def _end(self):
        try:
            self.program.close()
        except Exception as error:  # told by whoever asks for it
            self.problem = error


class Fleet:
    """host: an address of this machine that EndpointSlices may have. nodes: names; agents are there and nowhere else."""

    def __init__(self, cluster, release, forwarder, host, nodes):
        self._cluster, self._release, self.forwarder, self._host = cluster, release, forwarder, host
        self._api, self._nodes = cluster.api, nodes
        self._pods = f"/api/v1/namespaces/{release.namespace}/pods"
        self._slices = f"/apis/discovery.k8s.io/v1/namespaces/{release.namespace}/endpointslices"
        self._running, self.said, self.problem = {}, [], None
        self._end = threading.Event()
        for name in nodes:
            self._api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            self._api.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": []}})  # the server's, until a kubelet says Ready
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"fleet-{release.namespace}")
        self._thread.start()

    def close(self):
        self._end.set()
        self._thread.join(30)
        try:
            for one in self._running.values():
                one.program.close()
        finally:
            for name in self._nodes:
                self._api.delete(f"/api/v1/nodes/{name}")

    def ready(self, component):
        """Programs of pods that are Ready and stay."""
        return [one.program for one in list(self._running.values())
                if one.component == component and one.is_ready and not one.ending]

    def of(self, component):
        """Programs of all pods, those that end among them."""
        return [one.program for one in list(self._running.values()) if one.component == component]

    def _run(self):
        while not self._end.wait(_TICK_S):
            try:
                self._tick()
            except (OSError, kubernetes.ApiError):
                continue  # seen again at the next tick
            except Exception:
                self.problem = traceback.format_exc()
                return

    def _tick(self):
        pods = {pod["metadata"]["uid"]: pod for pod in self._release.pods()}
        for uid, pod in pods.items():
            component = pod["metadata"]["labels"].get(_COMPONENT)
            is_leaving = "deletionTimestamp" in pod["metadata"]
            if uid in self._running:
                (self._leave if is_leaving else self._watch)(uid, pod)
            elif is_leaving:
                self._delete(pod)
            elif component == "cert":
                self._run_to_its_end(pod)
            elif component in ("agent", "hub"):
                self._start(uid, pod, component)
        self.forwarder.lead_to([program.port for program in self.ready("hub")])

    def _node_of(self, pod, component):
        """The DaemonSet controller names it; for hubs a scheduler would."""
        if component == "hub":
            return self._nodes[0]
        terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        return terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]

    def _start(self, uid, pod, component):
        name, node = pod["metadata"]["name"], self._node_of(pod, component)
        if "nodeName" not in pod["spec"]:
            self._api.create(f"{self._pods}/{name}/binding", {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
        common = {"release": self._release, "spec": pod["spec"]}
        if component == "hub":
            program = hub.Hub(self._cluster, name, [], simulates=True, **common)
            program.start(is_ready=False)
        else:
            program = agent.Agent(self._cluster, name, None, host=self._host, node=node, **common)
            program.start()
            self._announce(program, node)
        self._running[uid] = _Running(program, component, node)
        self._report(pod, False)

    def _watch(self, uid, pod):
        one = self._running[uid]
        is_ready = one.component == "agent" or one.program.readiness() == 200
        if is_ready != one.is_ready:
            one.is_ready = is_ready
            self._report(pod, is_ready)
        if time.monotonic() - one.refreshed > _REFRESH_S:
            one.program.refresh()
            one.refreshed = time.monotonic()

    def _leave(self, uid, pod):
        one = self._running[uid]
        if not one.end():
            return
        if one.problem:
            raise one.problem
        del self._running[uid]
        if one.component == "agent":
            self._api.delete(f"{self._slices}/{one.program.name}")
        self._delete(pod)

    def _delete(self, pod):
        self._api.request("DELETE", f"{self._pods}/{pod['metadata']['name']}", {
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]}})

    def _report(self, pod, is_ready):
        ready = str(is_ready)
        self._api.merge(f"{self._pods}/{pod['metadata']['name']}/status", {"status": {
            "phase": "Running", "podIP": self._host, "podIPs": [{"ip": self._host}],
            "conditions": [{"type": kind, "status": ready} for kind in ("Ready", "ContainersReady")]}})

    def _announce(self, program, node):
        """As the EndpointSlice controller does for the headless Service, but that each agent here has a port of its own."""
        service = self._release.service("agent", headless=True)["metadata"]
        self._api.apply(f"{self._slices}/{program.name}", {
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": program.name, "labels": {"kubernetes.io/service-name": service["name"]}},
            "ports": [{"name": "grpc", "port": program.port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [program.host], "nodeName": node, "conditions": {"ready": True}}]})

    def _run_to_its_end(self, pod):
        """A Job's pod."""
        name = pod["metadata"]["name"]
        if pod["status"].get("phase") != "Pending":
            return
        folder = self._cluster.work / name
        folder.mkdir()
        one = container.Container(self._release, pod["spec"], folder)
        config = self._release.access(pod["spec"]["serviceAccountName"]).kubeconfig(folder / "kubeconfig")
        done = subprocess.run([str(word) for word in one.argv(container.api_server(config))], text=True, capture_output=True,
                              timeout=settings.PATIENCE_S, check=False)
        self.said.append((done.stdout + done.stderr).strip())
        phase = "Failed" if done.returncode else "Succeeded"
        self._api.merge(f"{self._pods}/{name}/status", {"status": {"phase": phase}})
