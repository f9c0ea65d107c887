"""Simulated model servers for tests: a scenario as Python data, played by keda-gpu-scaler-enginesim, rewritten while it
runs. Scenarios are written as JSON, which is YAML."""
import json
import os
import pathlib
import subprocess
import tempfile
import urllib.request

from agent import BUILD, SANITIZERS, check, spawn
from cache import ROOT

ENGINESIM = pathlib.Path(os.environ.get("ENGINESIM", ROOT / BUILD / "enginesim" / "keda-gpu-scaler-enginesim"))


class Engines:
    """Running servers. Each is a dict of the scenario's keys; `listen` with port 0 gets a free one."""

    def __init__(self, servers, files=None):
        self.folder = tempfile.TemporaryDirectory(prefix="kgs-engines-")
        self.path = pathlib.Path(self.folder.name)
        for name, text in (files or {}).items():
            (self.path / name).write_text(text)
        self.play(servers)
        self.errors = open(self.path / "errors", "w+b")
        self.process = spawn([ENGINESIM, self.path / "scenario.yaml"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=self.errors, text=True, env={**os.environ, **SANITIZERS})
        self.addresses = []
        for line in self.process.stdout:
            if line == "ready\n":
                break
            self.addresses.append(line.split()[0])
        else:
            self.process.wait()
            check(False, f"enginesim ended with {self.process.returncode}: {self.said()}")

    def play(self, servers, **top):
        """Play these servers from now on."""
        temporary = self.path / "scenario.new"
        temporary.write_text(json.dumps({**top, "servers": servers}))
        temporary.rename(self.path / "scenario.yaml")

    def get(self, number=0, path="/metrics", timeout=10):
        """The body of a page of the server of that number."""
        with urllib.request.urlopen(f"http://{self.addresses[number]}{path}", timeout=timeout) as answer:
            return answer.read().decode()

    def state(self, number=0):
        return json.loads(self.get(number, "/state"))

    def said(self):
        return (self.path / "errors").read_text()

    def stop(self):
        """End it; what it said on stderr."""
        self.process.terminate()
        status = self.process.wait(timeout=30)
        self.process.stdout.close()
        said = self.said()
        self.errors.close()
        self.folder.cleanup()
        check(status == 0, f"enginesim ended with {status}: {said}")
        return said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
