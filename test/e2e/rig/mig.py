"""Nodes whose boards are divided by MIG: to the rest of the rig each slice is a GPU of its own, with an id and a load.

It knows how divided boards are written for the simulation; who holds a slice is rig/pods.py's business.
"""

import os
import re

from . import agent, nodes, settings, wait

_SLICES = 7  # of one board, each 1g.10gb
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class _Slices(agent.Gpus):
    """By index, over all boards: slice 0 to 6 of the first, then those of the second."""

    def __init__(self, path, count):
        self._ids = []
        super().__init__(path, [0] * count)

    def uuid(self, index):
        return self._ids[index]

    def set(self, loads, fault=None, processes=None, memory=None):
        lines = ["gpus:"]
        for first in range(0, len(loads), _SLICES):
            board = super().uuid(first // _SLICES)
            listed = ", ".join(f"{{profile: 1g.10gb, sm_activity: {load:g}}}" for load in loads[first:first + _SLICES])
            lines.append(f"  - {{board: H100, uuid: {board}, mig: [{listed}]}}")
        fresh = self._path.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        os.replace(fresh, self._path)

    def learn(self, page):
        """Takes the driver's ids from the agent's page; true when all are there."""
        found = []
        for line in page.splitlines():
            if line.startswith("keda_gpu_scaler_gpu_info{"):
                labels = dict(_LABEL.findall(line))
                if labels["kind"] == "mig":
                    found.append((int(labels["gpu"]), int(labels["gpu_instance"]), labels["uuid"]))
        self._ids = [uuid for _, _, uuid in sorted(found)]
        return self._ids


class Node(nodes.Node):
    """gpus: slices, seven for each board."""

    def __init__(self, cluster, name, gpus, **options):
        super().__init__(cluster, name, gpus, **options)
        self.agent.gpus = _Slices(cluster.work / name / "gpus.yaml", gpus)

    def start(self):
        super().start()
        wait.until(f"{self.name} to have {len(self.slots)} slices",
                   lambda: len(self.agent.gpus.learn(self.agent.page())) == len(self.slots), settings.PATIENCE_S)
