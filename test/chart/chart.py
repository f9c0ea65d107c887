"""Helm, kubectl and the objects that the chart renders. It knows where things are and how they are called, and no rule of
the chart."""
import json
import os
import pathlib
import subprocess
import tempfile

import yaml

from agent import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = "deploy/helm/keda-gpu-scaler"
LINK = "./charts/keda-gpu-scaler"
CI_VALUES = sorted((ROOT / CHART / "ci").glob("*-values.yaml"))
HELM = pathlib.Path(os.environ["KGS_TOOL_helm"]) / "helm"
KUBECTL = pathlib.Path(os.environ["KGS_TOOL_kubernetes"]) / "kubectl"

_home = tempfile.TemporaryDirectory(prefix="kgs-helm-")


def environment(kubeconfig=None):
    """Nothing of the developer's own Helm or cluster gets in."""
    mine = {k: v for k, v in os.environ.items() if not k.startswith(("HELM_", "KUBE", "KEDA_GPU_SCALER_"))}
    return {**mine, "HOME": _home.name, "HELM_CONFIG_HOME": _home.name, "HELM_CACHE_HOME": _home.name,
            "HELM_DATA_HOME": _home.name, "KUBECONFIG": str(kubeconfig or pathlib.Path(_home.name) / "none")}


def run(words, kubeconfig=None, text=None):
    return subprocess.run([str(w) for w in words], cwd=ROOT, env=environment(kubeconfig), input=text, text=True,
                          capture_output=True, check=False)


def helm(*words, kubeconfig=None):
    """Standard output of a command that must succeed."""
    done = run([HELM, *words], kubeconfig)
    check(done.returncode == 0, f"helm {' '.join(map(str, words))}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def refuse(*words):
    """What helm template says of values that it must refuse."""
    done = run([HELM, "template", "g", CHART, *words])
    check(done.returncode != 0, f"helm template {' '.join(map(str, words))}: accepted")
    return done.stderr


class Objects:
    """The objects of a rendering."""

    def __init__(self, text):
        self.all = [o for o in yaml.safe_load_all(text) if o]

    def find(self, kind, name=None):
        """The only object of that kind and name; None where there is none."""
        found = [o for o in self.all if o["kind"] == kind and name in (None, o["metadata"]["name"])]
        check(len(found) <= 1, f"{len(found)} of {kind} {name}")
        return found[0] if found else None

    def get(self, kind, name=None):
        found = self.find(kind, name)
        check(found is not None, f"no {kind} {name or ''}")
        return found

    def of_kind(self, kind):
        return [o for o in self.all if o["kind"] == kind]

    def pod(self, kind):
        return self.get(kind)["spec"]["template"]["spec"]

    def container(self, kind):
        return self.pod(kind)["containers"][0]

    def args(self, kind):
        return self.container(kind)["args"]

    def env(self, kind):
        return {e["name"]: e.get("value") for e in self.container(kind)["env"]}

    def config(self, component="agent"):
        return yaml.safe_load(self.get("ConfigMap", "keda-gpu-scaler")["data"][f"{component}.yaml"])

    def metrics(self):
        return {m["name"]: m for m in self.config()["metrics"]}


def template(*words, release="g", namespace="gpu"):
    return Objects(helm("template", release, CHART, f"--namespace={namespace}", *words))


def with_set(*pairs, **more):
    return template(*(word for pair in pairs for word in ("--set", pair)), **more)


def equal(seen, wanted, what):
    check(seen == wanted, f"{what}: want {json.dumps(wanted, default=str)}, is {json.dumps(seen, default=str)}")
