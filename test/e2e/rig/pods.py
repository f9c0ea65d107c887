"""What nodes do with pods: a scheduler and kubelets in one thread, for the pods of one namespace.

Deployments and ReplicaSets are the real controllers'; here pods are bound to nodes with free GPUs, start, become Ready,
carry load and end. The load closes the loop: what a workload is asked for is shared by its pods that serve.
"""

import threading
import time
import traceback

from . import api as kubernetes

_TICK_S = 0.2


def _stamp(wall):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall))


class Demand:
    """What a workload is asked for, in percent of one GPU, and how its pods share it."""

    def __init__(self, total=0.0, hot=1.0):
        self.total = total
        self.hot = hot  # the first pod gets so many times what each of the others gets
        self.draining = 0.0  # of pods that are being deleted

    def share(self, pods):
        """Sets the load of each pod's GPUs. A GPU has no more than 100: what is beyond that queues."""
        serving = [pod for pod in pods if pod.serves]
        weights = [self.hot if place == 0 else 1.0 for place, _ in enumerate(serving)]
        for pod in pods:
            pod.load = 0.0 if pod.deleted is None else self.draining
        for pod, weight in zip(serving, weights):
            pod.load = min(100.0, self.total * weight / sum(weights) / max(1, len(pod.gpus)))
        for pod in pods:
            if pod.stuck_load is not None:
                pod.load = pod.stuck_load


class Pod:
    def __init__(self, item, node, slots):
        self.namespace, self.name = item["metadata"]["namespace"], item["metadata"]["name"]
        self.uid, self.app = item["metadata"]["uid"], item["metadata"]["labels"].get("app", "")
        self.slots, self.node = slots, node
        self.gpus = {slot.gpu for slot in slots}
        self.bound = time.time()
        self.started = self.ready = self.deleted = None  # wall times
        self.load, self.pid = 0.0, 0
        self.ip = None  # where nothing listens on behalf of pods
        self.ready_s = 0.0  # from its start
        self.stuck_load = None  # overrides what Demand says
        self.is_failing = False  # its readiness probe fails

    @property
    def is_started(self):
        return self.started is not None

    @property
    def serves(self):
        return self.ready is not None and self.deleted is None


class Pods:
    """Everything that happens to the pods of one namespace, on these nodes."""

    def __init__(self, cluster, namespace, nodes):
        self._api = cluster.api
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self.nodes, self._pods, self.demand = nodes, {}, {}
        self.start_s, self.ready_s, self.grace_s = 0.5, 1.0, 1.0  # from binding, from start, from deletion
        self._next_pid, self._lock, self._end = 1000, threading.RLock(), threading.Event()
        self.problem = None
        self.engines = None  # simulated servers, each at its pod's address
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"pods-{namespace}")
        self._thread.start()

    def close(self):
        self._end.set()
        self._thread.join(20)

    def of(self, app=None):
        """The pods that have a node, by name."""
        with self._lock:
            return sorted((p for p in self._pods.values() if app in (None, p.app)), key=lambda p: (p.bound, p.name))

    def evict(self, node):
        """Deletes the pods of a node, as a drain does."""
        for pod in [pod for pod in self.of() if pod.node is node]:
            self._api.delete(f"{self._path}/{pod.name}")

    def serving(self, app=None):
        return [pod for pod in self.of(app) if pod.serves]

    def summary(self, app):
        """ "3/4": so many serve of so many that have a node, with their nodes' loads."""
        pods = self.of(app)
        loads = " ".join(f"{pod.load:.0f}{'' if pod.serves else '!' if pod.deleted is None else 'x'}" for pod in pods)
        return f"{sum(p.serves for p in pods)}/{len(pods)} [{loads}]"

    def _run(self):
        while not self._end.wait(_TICK_S):
            try:
                with self._lock:
                    self._tick()
            except (OSError, kubernetes.ApiError):
                continue  # seen again at the next tick
            except Exception:
                self.problem = traceback.format_exc()
                return

    # One tick.
    def _tick(self):
        items = {item["metadata"]["uid"]: item for item in self._api.get(self._path)["items"]}
        for uid in [uid for uid in self._pods if uid not in items]:
            self._release(self._pods.pop(uid))
        for uid, item in items.items():
            if uid in self._pods:
                self._step(self._pods[uid], item)
            elif "deletionTimestamp" not in item["metadata"]:
                self._bind(item)
        by_app = {}
        for pod in self.of():
            by_app.setdefault(pod.app, []).append(pod)
        for app, pods in by_app.items():
            self.demand.setdefault(app, Demand()).share(pods)
        if self.engines:
            self.engines.play(self.of())
        for node in self.nodes:
            node.play()

    @staticmethod
    def _wanted(item):
        limits = [c.get("resources", {}).get("limits", {}) for c in item["spec"]["containers"]]
        return sum(int(limit.get("nvidia.com/gpu", 0)) for limit in limits)

    def _bind(self, item):
        wanted = self._wanted(item)
        nodes = [node for node in self.nodes if node.is_open and len(node.free()) >= max(1, wanted)]
        if not nodes:
            return
        node = max(nodes, key=lambda n: len(n.free()))
        name = item["metadata"]["name"]
        self._api.create(f"{self._path}/{name}/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node.name}})
        pod = Pod(item, node, node.free()[:wanted])
        pod.ready_s = self.ready_s
        self._next_pid += 1
        pod.pid = self._next_pid
        for slot in pod.slots:
            slot.owner = pod
        self._pods[pod.uid] = pod
        node.tell_kubelet()

    def _step(self, pod, item):
        now = time.time()
        if "deletionTimestamp" in item["metadata"]:
            pod.deleted = pod.deleted or now
            if now - pod.deleted >= self.grace_s:
                self._api.request("DELETE", f"{self._path}/{pod.name}", {
                    "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                    "preconditions": {"uid": pod.uid}})
            return
        if self.engines and pod.ip is None:  # a pod may be there before its traffic is
            pod.ip = self.engines.take_address()
            if pod.is_started:
                self._report(pod)
        if not pod.is_started and now - pod.bound >= self.start_s:
            pod.started = now
            if pod.node.processes:
                pod.node.processes.begin(pod.pid, pod.namespace, pod.name, pod.uid)
            self._report(pod)
        can_be_ready = pod.is_started and not pod.is_failing and now - pod.started >= pod.ready_s
        if can_be_ready != (pod.ready is not None):
            pod.ready = now if can_be_ready else None
            self._report(pod)

    def _report(self, pod):
        """The pod's status, as a kubelet writes it."""
        now = _stamp(time.time())
        is_ready = pod.ready is not None
        conditions = [{"type": kind, "status": "True" if is_ready else "False", "lastTransitionTime": now}
                      for kind in ("Ready", "ContainersReady")]
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": _stamp(pod.bound)})
        self._api.merge(f"{self._path}/{pod.name}/status", {"status": {
            "phase": "Running", "startTime": _stamp(pod.bound), "conditions": conditions,
            **({"podIP": pod.ip, "podIPs": [{"ip": pod.ip}]} if pod.ip else {}),
            "containerStatuses": [{
                "name": "model", "ready": is_ready, "started": True, "restartCount": 0, "image": "model", "imageID": "",
                "state": {"running": {"startedAt": _stamp(pod.started)}}}]}})

    def _release(self, pod):
        if pod.is_started and pod.node.processes:
            pod.node.processes.end(pod.pid, pod.namespace, pod.name, pod.uid)
        for slot in pod.slots:
            slot.owner = None
        pod.node.tell_kubelet()
