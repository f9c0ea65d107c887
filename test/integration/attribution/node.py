"""The files of a node that tell whose a process is: a /proc, and the kubelet's folders and links of logs."""
import pathlib
import shutil
import tempfile

INITIAL, OWN = "pid:[4026531836]", "pid:[4026532777]"


def identity(number):
    """The UID of a pod and the id of a container, made of a number."""
    return f"{number:08x}-1111-4222-8333-444444444444", f"{number:064x}"


class Node:
    """A tree in a folder that goes with the test. Pods are numbered: pod(1) is the one of identity(1)."""

    def __init__(self, pid_namespace=INITIAL):
        self.folder = tempfile.TemporaryDirectory(prefix="node-")
        self.path = pathlib.Path(self.folder.name)
        self.procfs, self.pod_logs, self.links = (self.path / name for name in ("proc", "pods", "containers"))
        for folder in (self.procfs, self.pod_logs, self.links):
            folder.mkdir()
        self.process("self", "0::/system.slice/agent.service")
        (self.procfs / "self/ns").mkdir()
        (self.procfs / "self/ns/pid").symlink_to(pid_namespace)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def flags(self):
        return [f"--procfs={self.procfs}", f"--pod-logs={self.pod_logs}", f"--container-logs={self.links}"]

    def process(self, pid, cgroup, start=100):
        """A process in a cgroup; the text of a whole file where it has more than one line."""
        folder = self.procfs / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "cgroup").write_text(cgroup + "\n")
        (folder / "stat").write_text(f"{pid} (py (x) 3) S 1 1 0 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 {start} 1 2\n")

    def in_pod(self, pid, number, start=100):
        uid, container = identity(number)
        slice_name = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
        self.process(pid, f"0::/kubepods.slice/kubepods-burstable.slice/{slice_name}/cri-containerd-{container}.scope", start)

    def end(self, pid):
        shutil.rmtree(self.procfs / str(pid))

    def name(self, number, namespace, pod):
        """The folder of logs that the kubelet makes for a pod."""
        (self.pod_logs / f"{namespace}_{pod}_{identity(number)[0]}").mkdir()

    def link(self, number, namespace, pod, container="main"):
        """The link to a container's log."""
        (self.links / f"{pod}_{namespace}_{container}-{identity(number)[1]}.log").symlink_to("/nowhere")
