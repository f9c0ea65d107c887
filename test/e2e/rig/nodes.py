"""Simulated nodes: an agent on simulated GPUs and a kubelet that says which pods hold them.

It knows which GPU is whose and what load each carries; which pods there are is rig/pods.py's business.
"""

import pathlib
import tempfile
import threading

from . import agent, container

_CGROUP = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-{:064x}.scope\n"


class Processes:
    """The files of a node that tell whose a process is: a /proc and the kubelet's folders of logs, which name pods."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="e2e-node-")
        self._path = pathlib.Path(self._folder.name)
        for name in ("proc", "pods", "containers"):
            (self._path / name).mkdir()
        self._write("self", "0::/system.slice/agent.service\n")
        (self._path / "proc/self/ns").mkdir()
        (self._path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")

    def different(self):
        return container.host_processes(self._path / "proc", self._path / "pods", self._path / "containers")

    def _write(self, pid, cgroup):
        folder = self._path / "proc" / str(pid)
        folder.mkdir()
        (folder / "cgroup").write_text(cgroup)
        (folder / "stat").write_text(f"{pid} (python3) S 1 1 0 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 100 1 2\n")

    def begin(self, pid, namespace, pod, uid):
        (self._path / "pods" / f"{namespace}_{pod}_{uid}").mkdir()
        self._write(pid, _CGROUP.format(uid.replace("-", "_"), pid))

    def end(self, pid, namespace, pod, uid):
        folder = self._path / "proc" / str(pid)
        (folder / "cgroup").unlink()
        (folder / "stat").unlink()
        folder.rmdir()
        (self._path / "pods" / f"{namespace}_{pod}_{uid}").rmdir()

    def close(self):
        self._folder.cleanup()


class Slot:
    """What a pod can get: a GPU, or one share of it where GPUs are shared in time."""

    def __init__(self, node, gpu, share=None):
        self.node, self.gpu, self.share, self.owner = node, gpu, share, None

    @property
    def device_id(self):
        uuid = self.node.agent.gpus.uuid(self.gpu)
        return uuid if self.share is None else f"{uuid}::{self.share}"


class Node:
    """shares: how many pods may have one GPU. host: the agent's address. listed=False: no device plugin, the chart's
    mockMode."""

    def __init__(self, cluster, name, gpus, shares=1, host="127.0.0.1", listed=True):
        import kubelet  # of the integration tests; loads gRPC, which only a run needs

        self.name, self._pb = name, kubelet
        self.kubelet = kubelet.Kubelet()
        self.processes = Processes() if shares > 1 else None
        different = [container.kubelet(self.kubelet.path)] if listed else []
        values = [] if listed else ["mockMode.enabled=true"]
        if self.processes:
            different.append(self.processes.different())
            values.append("agent.hostProc=true")
        self.agent = agent.Agent(cluster, name, [0] * gpus, different=different, values=values, host=host)
        self.slots = [Slot(self, gpu, None if shares == 1 else share) for gpu in range(gpus) for share in range(shares)]
        self.is_open = True  # for new pods
        self.preallocates = 0  # percent of a board's memory that a pod takes when it starts and never lets go
        self._others, self._lost, self._fault, self._played = {}, set(), None, None
        self._lock = threading.Lock()

    def start(self):
        self.agent.start()

    def close(self):
        try:
            self.agent.close()
        finally:
            self.kubelet.__exit__()
            if self.processes:
                self.processes.close()

    def free(self):
        return [slot for slot in self.slots if slot.owner is None and slot.gpu not in self._others]

    def tenant(self, gpu, load, name=None):
        """A pod of somebody else on a GPU, or (name=None) load that no pod is known to make; our pods do not get it."""
        with self._lock:
            self._others[gpu] = (name, load)
        self.tell_kubelet()

    def lose(self, *gpus):
        self._lost = set(gpus)

    def strike(self, fault):
        """A fault of all boards, as `hung`; None ends it."""
        self._fault = fault

    def tell_kubelet(self):
        """What the kubelet lists from now on."""
        held = {}
        for slot in self.slots:
            if slot.owner:
                held.setdefault((slot.owner.namespace, slot.owner.name), []).append(slot.device_id)
        for gpu, (name, _) in list(self._others.items()):
            if name:
                held.setdefault(("others", name), []).append(self.agent.gpus.uuid(gpu))
        self.kubelet.pods = [self._pb.pod(namespace, name, self._pb.container("model", *ids))
                             for (namespace, name), ids in sorted(held.items())]

    def play(self):
        """Brings the simulation to the load that the pods make now."""
        loads, processes, memory = [], {}, {}
        for gpu in range(len({slot.gpu for slot in self.slots})):
            pods = [slot.owner for slot in self.slots if slot.gpu == gpu and slot.owner]
            own = sum(pod.load for pod in pods)
            total = self._others[gpu][1] if gpu in self._others else own
            loads.append(None if gpu in self._lost else round(min(100, total), 1))
            if self.preallocates:
                memory[gpu] = self.preallocates if any(pod.is_started for pod in pods) else 0
            if self.processes:
                part = 100 / max(100, own)  # more than the board has is shared
                processes[gpu] = [(pod.pid, round(pod.load * part, 1)) for pod in pods if pod.is_started]
        now = (loads, processes, memory, self._fault)
        if now != self._played:
            self.agent.gpus.set(loads, self._fault, processes, memory)
            self._played = now


class Plain:
    """A node whose agent and GPUs are somebody else's: it has places for pods, and no load is played on it."""

    def __init__(self, name, gpus):
        self.name, self.is_open, self.processes = name, True, None
        self.slots = [Slot(self, gpu) for gpu in range(gpus)]

    def free(self):
        return [slot for slot in self.slots if slot.owner is None]

    def tell_kubelet(self):
        pass

    def play(self):
        pass
