"""`check` on simulated GPUs and on trees of /proc, /sys and /dev that are built for the test."""
import json
import os
import pathlib
import socket
import tempfile
import time

from agent import NVMLSIM, check, free_port
from program import fails, run
from suite import add, test

SCENARIO = "gpus: [{board: H100, count: 2}]\n"
VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build  (builder)\n"


class Node:
    """A node in order as check looks at it, below a folder. Tests take something away."""

    def __init__(self, scenario=SCENARIO):
        self.folder = tempfile.TemporaryDirectory(prefix="kgs-check-")
        self.root = pathlib.Path(self.folder.name) / "root"
        self.scenario = pathlib.Path(self.folder.name) / "scenario.yaml"
        self.scenario.write_text(scenario)
        self.write("proc/driver/nvidia/version", VERSION)
        self.write("proc/driver/nvidia/params", "ModifyDeviceFiles: 1\nRmProfilingAdminOnly: 0\n")
        self.write("sys/module/nvidia/initstate", "live\n")
        self.write("proc/self/status", "Name:\tcheck\nCapEff:\t000001ffffffffff\n")
        self.write("proc/2/comm", "kthreadd\n")
        self.write("proc/net/tcp", "  sl  local_address rem_address   st\n")
        for name in ("nvidiactl", "nvidia0", "nvidia1"):
            self.write(f"dev/{name}", "")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def remove(self, name):
        (self.root / name).unlink()

    def check(self, *arguments, library=NVMLSIM, env=None):
        """(exit status, {name: (result, text, hint)}, document)."""
        result = run("check", "-o", "json", "--root", self.root, "--nvml-library", library, *arguments,
                     env={"NVMLSIM_SCENARIO": str(self.scenario), **(env or {})})
        check(not result.err, str(result))
        document = json.loads(result.out)
        lines = {line["name"]: (line["result"], line["text"], line["hint"]) for line in document["checks"]}
        return result.status, lines, document


def bad(lines):
    return {name: line[0] for name, line in lines.items() if line[0] != "ok"}


@test("check: a node in order but for the kubelet: status 0, and 3 with --strict")
def in_order():
    node = Node()
    status, lines, document = node.check()
    check(status == 0 and bad(lines) == {"pod-resources": "warn"}, f"{status} {lines}")
    check(document["schema_version"] == 1 and document["problems"] == 0 and document["warnings"] == 1, str(document))
    check(lines["driver"][1] == "NVIDIA kernel driver 570.172.08 is loaded" and lines["driver"][2] is None, str(lines))
    check(lines["library"][1] == os.path.realpath(NVMLSIM) and lines["devices"][1] == "2 GPUs visible", str(lines))
    check(node.check("--strict")[0] == 3, "--strict")


def spoiled(spoil, status, wanted, scenario=SCENARIO):
    node = Node(scenario)
    spoil(node)
    got = node.check()
    check(got[0] == status and bad(got[1]) == {"pod-resources": "warn", **wanted}, f"{got}")


def listens(node):
    node.write("proc/net/tcp6", "   0: 00000000000000000000000000000000:2382 00000000000000000000000000000000:0000 0A 0 0\n")


def in_a_namespace(node):
    (node.root / "proc/self/ns").mkdir()
    (node.root / "proc/self/ns/pid").symlink_to("pid:[4026532281]")  # with kthreadd in sight: the host's is mounted


SPOILED = [
    ("the driver's files are not visible, NVML works", lambda n: n.remove("proc/driver/nvidia/version"), 0, {}),
    ("the module is being unloaded", lambda n: n.write("sys/module/nvidia/initstate", "going"), 3, {"driver": "fail"}),
    ("a device file is missing", lambda n: n.remove("dev/nvidia1"), 0, {"device-files": "warn"}),
    ("activity metrics for administrators only",
     lambda n: (n.write("proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n"),
                n.write("proc/self/status", "CapEff:\t00000000a80425fb\n")), 0, {"profiling": "warn"}),
    ("a process namespace of its own", lambda n: n.write("proc/2/comm", "sh\n"), 0, {"processes": "warn"}),
    ("a process namespace of its own below another's /proc", in_a_namespace, 0, {"processes": "warn"}),
    ("somebody on port 9090", listens, 0, {"ports": "warn"}),
    ("driver not loaded", lambda n: None, 3, {"init": "fail", "versions": "warn", "devices": "fail"},
     SCENARIO + "faults: [{fault: driver_not_loaded}]\n"),
    ("versions differ", lambda n: None, 3, {"init": "fail", "versions": "fail", "devices": "fail"},
     SCENARIO + "faults: [{fault: lib_rm_version_mismatch}]\n"),
    ("a lost GPU", lambda n: None, 3, {"devices": "fail"}, SCENARIO + "faults: [{fault: lost, gpu: 1}]\n"),
    ("no GPU", lambda n: None, 3, {"devices": "fail"}, "gpus: []\n"),
    ("MIG devices", lambda n: None, 0, {}, "gpus: [{board: H100, mig: [1g.10gb]}]\n"),
    ("MIG without its monitor capability",
     lambda n: n.write("proc/driver/nvidia/capabilities/mig/monitor", "DeviceFileMinor: 2\nDeviceFileMode: 292\n"), 3,
     {"mig": "fail"}, "gpus: [{board: H100, mig: [1g.10gb]}]\n"),
    ("MIG that goes on with the next reset", lambda n: None, 0, {"mig": "warn"}, "gpus: [{board: H100, mig_pending: true}]\n"),
    ("MIG that goes off with the next reset", lambda n: None, 0, {"mig": "warn"},
     "gpus: [{board: H100, mig: [1g.10gb], mig_pending: true}]\n"),
]
for row in SPOILED:
    add(f"check: {row[0]}", spoiled, *row[1:])


@test("check: a change of MIG mode that waits for a reset: of which GPU, from what to what, and how to get there")
def mig_pending():
    for mig, words in (("", "has MIG off until its next reset, and then on"),
                       (", mig: [1g.10gb]", "has MIG on until its next reset, and then off")):
        status, lines, _ = Node(f"gpus: [{{board: H100}}, {{board: H100, mig_pending: true{mig}}}]\n").check("--pod-resources=")
        result, text, hint = lines["mig"]
        check(status == 0 and (result, text) == ("warn", f"GPU 1 {words}") and "nvidia-smi --gpu-reset" in hint, f"{lines['mig']}")
    check(Node("gpus: [{board: H100, mig_pending: true}]\n").check("--pod-resources=", "--strict")[0] == 3, "--strict")


@test("check: no library: what to set, status 3, and the path that was asked for")
def no_library():
    status, lines, _ = Node().check(library="/nonexistent/libnvidia-ml.so.1")
    check(status == 3 and lines["library"][:2] == ("fail", "there is no /nonexistent/libnvidia-ml.so.1"), str(lines))
    check("runtimeClassName: nvidia" in lines["library"][2], str(lines["library"]))


def hangs(fault):
    node = Node(SCENARIO + f"faults: [{{fault: {fault}}}]\n")
    start = time.monotonic()
    status, lines, _ = node.check("--timeout", "500ms")
    check(time.monotonic() - start < 20, "took too long")
    check(status == 3 and lines["init"][0] == "fail" and "the driver does not answer: nvml" in lines["init"][1], str(lines))


for name in ("hung", "init_hang"):
    add(f"check ends within --timeout though the driver hangs ({name})", hangs, name)


@test("check: the /proc that the agent is to read: there, or what to mount")
def procfs():
    node = Node()
    _, lines, _ = node.check("--procfs", "/host/proc")
    check(lines["processes"][:2] == ("warn", "no process can be read in /host/proc: which pod uses a shared GPU stays unknown"),
          str(lines["processes"]))
    node.write("host/proc/1/stat", "1 (init) S 0\n")
    _, lines, _ = node.check(env={"KEDA_GPU_SCALER_PROCFS": "/host/proc"})
    check(lines["processes"][:2] == ("ok", "the machine's processes are visible"), str(lines["processes"]))


@test("check: a kubelet's socket without a kubelet")
def stale_socket():
    node = Node()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(node.root / "kubelet.sock"))
        _, lines, _ = node.check("--pod-resources", "/kubelet.sock")
        check(lines["pod-resources"][0] == "warn" and "does not answer" in lines["pod-resources"][1], str(lines))


@test("check: no kubelet to be asked, as the agent's flag has it")
def no_kubelet_wanted():
    status, lines, _ = Node().check("--pod-resources=", "--strict")
    check(status == 0 and not bad(lines), str(lines))


@test("check: a server on the socket that is no kubelet")
def no_kubelet():
    from agent import Agent
    node = Node()
    with Agent(SCENARIO, listen=(f"unix:{node.root}/kubelet.sock",)):
        _, lines, _ = node.check("--pod-resources", "/kubelet.sock")
        check(lines["pod-resources"][0] == "warn" and "UNIMPLEMENTED" in lines["pod-resources"][1], str(lines))


@test("check sees a port that is taken on this machine, and reads the agent's variables")
def real_port():
    with socket.socket() as server:
        port = free_port()
        server.bind(("127.0.0.1", port))
        server.listen()
        result = run("check", "--metrics-port", "0", "--probe-port=-1", env={"KEDA_GPU_SCALER_PORT": str(port)})
        check(f"somebody listens on {port} (--port)" in result.out, str(result))


@test("check as text: one line a check, hints, a count; no colour when piped")
def text():
    result = run("check", "--nvml-library", "/nonexistent", env={"TERM": "xterm"})
    check(result.status == 3 and "\nfail  library        there is no /nonexistent\n" in result.out, str(result))
    check("hint: " in result.out and "\033" not in result.out and result.out.rstrip().endswith(("warnings", "warning")), result.out)


@test("check: wrong usage is status 2")
def usage():
    fails(2, "takes no operand", arguments=("check", "node"))
    fails(2, "is not one of text", arguments=("check", "-o", "yaml"))
