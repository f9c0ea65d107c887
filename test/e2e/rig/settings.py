"""Where things lie and how fast the cluster's clocks run: the only file that reads the environment.

It does not start or write anything.
"""

import os
import pathlib
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The tool cache, the fake kubelet and the messages of proto/ are those of the integration tests.
sys.path[:0] = [str(ROOT / "test/integration" / folder) for folder in ("lib", "attribution")]
BUILD = pathlib.Path(os.environ.get("KGS_BUILD", ROOT / "build"))
PROGRAM = pathlib.Path(os.environ.get("KGS_PROGRAM", BUILD / "keda-gpu-scaler"))
NVML_LIBRARY = pathlib.Path(os.environ.get("KGS_NVML_LIBRARY", BUILD / "nvmlsim" / "libnvidia-ml.so.1"))
ENGINES = pathlib.Path(os.environ.get("KGS_ENGINES", BUILD / "enginesim" / "keda-gpu-scaler-enginesim"))
WORK = pathlib.Path(os.environ.get("KGS_E2E_DIR", BUILD / "e2e"))

# Of every release that scenarios share: what is logged does not change what programs do, and tells why one failed.
CHART_VALUES = ("logLevel=debug",)

# Short clocks, so that minutes of a real cluster pass in seconds. The scale-down window is longer than a sync and than
# KEDA's reconnect delay of 2 s: what must not scale down is watched for longer than this.
HPA_SYNC_S = 1
HPA_SCALE_DOWN_WINDOW_S = 5
KEDA_POLL_S = 2
KEDA_COOLDOWN_S = 5

# Generous, because a loaded machine is slower: a condition that comes true ends the wait at once.
PATIENCE_S = float(os.environ.get("KGS_E2E_PATIENCE", "60"))

PORT_BASE = int(os.environ.get("KGS_E2E_PORT_BASE", "26000"))
PORT_COUNT = 1000


class Ports:
    """Hands out loopback ports below the ephemeral range, each once, skipping those that something listens on."""

    def __init__(self, base=PORT_BASE, count=PORT_COUNT):
        self._next, self._end, self._lock = base, base + count, threading.Lock()

    def take(self):
        import socket

        with self._lock:
            while self._next < self._end:
                port, self._next = self._next, self._next + 1
                with socket.socket() as probe:
                    try:
                        probe.bind(("127.0.0.1", port))
                        return port
                    except OSError:
                        continue
        raise RuntimeError(f"no free port from {PORT_BASE} on; set KGS_E2E_PORT_BASE")
