"""The driver (driver.c) as an object: lines in, lines out, and the clock moved so that nobody waits for back-off."""
import os
import re
import subprocess
import tempfile
import threading
import time

from agent import BUILD, PATIENCE_S, SANITIZER, SANITIZERS, TestFailure, check, spawn
from cache import ROOT
from fake_kube import FakeKube

DRIVER = ROOT / BUILD / "test" / "integration" / "kube" / "kube_driver"


def pod(name, ns="a", labels=None, **more):
    """A running pod with one GPU."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": ns, "name": name, "labels": labels or {"app": "x"}},
            "spec": {"nodeName": "node1", "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1"}, **more}


class Client:
    """One driver on one server. As a context it must end well, with no word of a sanitizer. timeout_s: of its requests;
    long, since tests move the clock for other reasons."""

    def __init__(self, kube=None, config=None, env=None, timeout_s=3600):
        self.folder = tempfile.TemporaryDirectory(prefix="kgs-")
        path = os.path.join(self.folder.name, "config")
        if kube:
            kube.write_kubeconfig(path)
        if config is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(config)
        self.lines, self._news = [], threading.Condition()
        self.process = spawn([DRIVER, path if kube or config is not None else "-"],
                             env={**os.environ, **SANITIZERS, "TIMEOUT_S": str(timeout_s), **(env or {})},
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.process.stdin.close()
        status = self.process.wait(20)
        if not kind:
            words = [line for line in self.lines if SANITIZER.search(line)]
            check(not words, "\n".join(words))
            check(status == 0, f"the driver ended with {status}: {self.lines[-5:]}")

    def say(self, *orders):
        """Orders, one a line."""
        self.process.stdin.write("".join(order + "\n" for order in orders))
        self.process.stdin.flush()

    def watch(self, kind="pods", ns="-", labels="-", fields="-", most="-"):
        """Begin a watch; the first is number 0."""
        self.say(f"watch {kind} {ns} {labels} {fields} {most}")

    def seen(self, pattern):
        """All lines so far that match."""
        with self._news:
            return [line for line in self.lines if re.search(pattern, line)]

    def until(self, pattern, times=1, skipping=False):
        """The lines that match, as soon as there are so many. skipping: move the clock meanwhile, 1 s at a time."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with self._news:
                found = [line for line in self.lines if re.search(pattern, line)]
                if len(found) >= times:
                    return found
                if time.monotonic() > deadline:
                    raise TestFailure(f"waited for {times} of {pattern!r}; the last lines: {self.lines[-6:]}")
                self._news.wait(0.1)
            if skipping:
                self.say("skip 1")

    def ask(self, order, pattern):
        """The next line that matches, after this order."""
        before = len(self.seen(pattern))
        self.say(order)
        return self.until(pattern, before + 1)[before]

    def metric(self, name):
        """One sample; 0 where there is none."""
        with self._news:
            mark = len(self.lines)
        self.say("metrics")
        self.ask("end", "^what is \"end\"")
        with self._news:
            found = [line.split()[2] for line in self.lines[mark:] if line.startswith(f"metric {name} ")]
        return float(found[-1]) if found else 0.0


__all__ = ["Client", "FakeKube", "check", "pod"]
