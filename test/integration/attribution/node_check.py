"""`check` asks the kubelet as the agent does."""
import json
import subprocess
import time

import grpc
from agent import PROGRAM, check
from kubelet import Kubelet, container, pod
from suite import add, test


def line(kubelet, timeout="10s"):
    """(result, text) of check's line about the kubelet."""
    out = subprocess.run([PROGRAM, "check", "-o", "json", "--pod-resources", kubelet.path, "--timeout", timeout,
                          "--nvml-library", "/nonexistent"], stdout=subprocess.PIPE, check=False, timeout=60).stdout
    found = next(row for row in json.loads(out)["checks"] if row["name"] == "pod-resources")
    return found["result"], found["text"]


@test("check: a kubelet that answers, with nothing and with more than 4 MiB")
def answers():
    with Kubelet() as kubelet:
        check(line(kubelet) == ("ok", f"the kubelet answers on {kubelet.path}") and kubelet.calls == 1, str(line(kubelet)))
        kubelet.pods = [pod("ml", f"cpu-{i}", container("main", cpu_ids=[1] * 1000000)) for i in range(6)]
        check(line(kubelet)[0] == "ok", str(line(kubelet)))


def refuses(code, result):
    with Kubelet() as kubelet:
        kubelet.error = (code, "no")
        check(line(kubelet)[0] == result, str(line(kubelet)))


for status, word in ((grpc.StatusCode.RESOURCE_EXHAUSTED, "ok"), (grpc.StatusCode.PERMISSION_DENIED, "warn"),
                     (grpc.StatusCode.INTERNAL, "warn")):
    add(f"check: a kubelet that answers {status.name} is {word}", refuses, status, word)


@test("check: a kubelet that does not answer costs --timeout and a warning")
def silent():
    with Kubelet() as kubelet:
        kubelet.gate.clear()
        start = time.monotonic()
        result, text = line(kubelet, timeout="500ms")
        check(result == "warn" and "DEADLINE_EXCEEDED" in text and time.monotonic() - start < 20, text)
        kubelet.gate.set()
