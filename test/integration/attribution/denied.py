"""A kubelet's socket that a user who is not root may not open: what the agent, `check` and `top` say of it."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from agent import NVMLSIM, PROGRAM, Agent, check, wait_until
from kubelet import Kubelet, container, pod
from owners import holders, state
from suite import Skip, add

USER = 65532
SCENARIO = "gpus: [{board: H100, utilization: 40}]\n"
TREE = {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08\n",
        "proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n", "sys/module/nvidia/initstate": "live\n",
        "proc/self/status": "CapEff:\t0000000000000000\n", "proc/2/comm": "kthreadd\n", "proc/net/tcp": "  sl\n",
        "dev/nvidiactl": "", "dev/nvidia0": ""}


class Place:
    """A kubelet whose folder or socket is root's alone, and what somebody else can run: the program, the library, a
    scenario, and below `root` a node in order."""

    def __init__(self, is_folder_closed):
        if os.geteuid() != 0:
            raise Skip("only root can become somebody else")
        self.folder = tempfile.TemporaryDirectory(prefix="denied-")
        self.path = pathlib.Path(self.folder.name)
        self.path.chmod(0o755)
        self.program = shutil.copy(PROGRAM, self.path / "program")
        self.library = shutil.copy(NVMLSIM, self.path / "libnvidia-ml.so.1")
        self.scenario = self.path / "scenario.yaml"
        self.scenario.write_text(SCENARIO)
        self.kubelet = Kubelet(pod("ml", "a", container("main", "nvidia0")))
        self.root = self.path / "root"
        for name, text in TREE.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o666)
        (self.root / "kubelet").symlink_to(self.kubelet.path.parent)
        self.socket = self.kubelet.path
        self.socket.parent.chmod(0o700 if is_folder_closed else 0o755)
        self.socket.chmod(0o600)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.kubelet:
            self.folder.cleanup()

    def run(self, *arguments, user=USER):
        env = {**{k: v for k, v in os.environ.items() if k != "NODE_NAME"}, "NVMLSIM_SCENARIO": str(self.scenario)}
        return subprocess.run([self.program, *map(str, arguments), "--nvml-library", self.library], env=env, text=True,
                              timeout=60, check=False, capture_output=True, user=user, group=user, extra_groups=[])


def by_agent(is_folder_closed):
    with Place(is_folder_closed) as place:
        become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--pdeathsig", "KILL", "--"]
        with Agent(None, f"--pod-resources={place.socket}", library=place.library, program=[*become, place.program],
                   env={"NVMLSIM_SCENARIO": str(place.scenario)}) as agent:
            agent.wait_driver()
            wait_until(lambda: state(agent) == "denied", "denied")
            check(agent.metric("keda_gpu_scaler_pod_resources_errors_total", 'reason="denied"') >= 1, "not counted")
            check(agent.metric("keda_gpu_scaler_gpu_up") == 1 and not holders(agent), "the GPU is gone, or has a holder")
            check(agent.log().count(f"may not open {place.socket}: run as root") == 1, agent.log()[-1500:])
            out = place.run("top", f"127.0.0.1:{agent.metrics_port}", "-o", "json")
            check(out.returncode == 0 and "it may not open the kubelet's socket" in out.stderr, f"top of the agent: {out}")
            place.socket.parent.chmod(0o755)
            place.socket.chmod(0o666)
            wait_until(lambda: state(agent) == "ok" and holders(agent), "the holder", patience_s=60)


def by_check(is_folder_closed):
    with Place(is_folder_closed) as place:
        words = ["check", "-o", "json", "--root", place.root, "--pod-resources", "/kubelet/kubelet.sock"]
        for strict, status in (([], 0), (["--strict"], 3)):
            out = place.run(*words, *strict)
            bad = [row for row in json.loads(out.stdout)["checks"] if row["result"] != "ok"]
            check(out.returncode == status and [row["name"] for row in bad] == ["pod-resources"], f"{out.returncode} {bad}")
            check(bad[0]["text"] == "/kubelet/kubelet.sock may not be opened" and "run as root" in bad[0]["hint"], f"{bad}")
        out = place.run(*words, "--strict", user=0)
        check(out.returncode == 0, f"root: {out}")


def by_top(is_folder_closed):
    with Place(is_folder_closed) as place:
        words = ["top", "-o", "jsonl", "--pod-resources", place.socket, "--procfs="]
        out = place.run(*words, "--count", 2, "--interval", "200ms")
        said = f"keda-gpu-scaler: pods are not known: may not open {place.socket}: run as root\n"
        check(out.returncode == 0 and out.stderr == said, f"{out}")
        device = json.loads(out.stdout.splitlines()[-1])["devices"][0]
        check(device["pods"] is None and device["utilization_percent"] == 40, f"{device}")
        out = place.run(*words, user=0)
        check(out.returncode == 0 and not out.stderr and '"name":"a"' in out.stdout.replace(" ", ""), f"root: {out}")


for word, closed in (("folder", True), ("socket", False)):
    add(f"an agent that may not open the kubelet's {word} says so once and what to do, and goes on when it may", by_agent, closed)
    add(f"check as a user who may not open the kubelet's {word}: a warning, what to do, status 3 with --strict", by_check, closed)
    add(f"top as a user who may not open the kubelet's {word}: devices, a message once, status 0", by_top, closed)
