"""The real Helm on this run's API server. Nothing of the developer's own Helm or cluster gets in, and no rule of the chart
is known here."""

import os
import subprocess

from . import procs, settings

_PATIENCE_S = 360  # Helm itself gives up on a hook after five minutes


class Helm:
    def __init__(self, plane, folder):
        self._plane, self._program = plane, folder / "helm"

    def _environment(self):
        home = self._plane.work / "helm"
        home.mkdir(exist_ok=True)
        mine = {k: v for k, v in os.environ.items() if not k.startswith(("HELM_", "KUBE"))}
        return {**mine, "HOME": str(home), "HELM_CONFIG_HOME": str(home), "HELM_CACHE_HOME": str(home),
                "HELM_DATA_HOME": str(home), "KUBECONFIG": str(self._plane.admin_kubeconfig)}

    def __call__(self, *words):
        """Standard output of `helm WORDS` in the project's root, which must succeed."""
        done = subprocess.run([self._program, *words], cwd=settings.ROOT, env=self._environment(), text=True,
                              capture_output=True, timeout=_PATIENCE_S, check=False)
        if done.returncode != 0:
            raise procs.ChildFailed(f"helm {' '.join(map(str, words))}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout
