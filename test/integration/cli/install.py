"""`make install`: what lands where, and that the installed program works from there."""
import os
import pathlib
import subprocess
import tempfile

from agent import PROGRAM, check
from cache import ROOT
from suite import test

WANTED = [
    "bin/keda-gpu-scaler",
    "bin/gpu-metrics",
    "bin/keda-gpu-scaler-enginesim",
    "lib*/**/keda-gpu-scaler/nvmlsim/libnvidia-ml.so.1",
    "share/man/man1/gpu-metrics.1",
    "share/man/man1/keda-gpu-scaler.1",
    "share/man/man1/keda-gpu-scaler-call.1",
    "share/man/man1/keda-gpu-scaler-cert.1",
    "share/man/man1/keda-gpu-scaler-check.1",
    "share/man/man1/keda-gpu-scaler-demo.1",
    "share/man/man1/keda-gpu-scaler-enginesim.1",
    "share/keda-gpu-scaler/enginesim/demo.yaml",
    "share/man/man1/keda-gpu-scaler-probe.1",
    "share/man/man1/keda-gpu-scaler-top.1",
    "share/man/man5/keda-gpu-scaler.conf.5",
    "share/man/man8/keda-gpu-scaler-agent.8",
    "share/bash-completion/completions/keda-gpu-scaler",
    "share/zsh/vendor-completions/_keda-gpu-scaler",
    "share/fish/vendor_completions.d/keda-gpu-scaler.fish",
    "share/doc/keda-gpu-scaler/LICENSE",
    "share/keda-gpu-scaler/scenarios/demo.yaml",
    "share/keda-gpu-scaler/scenarios/boards.yaml",
    "share/keda-gpu-scaler/scenarios/faults.yaml",
    "share/keda-gpu-scaler/scenarios/mig.yaml",
]


@test("meson install puts program, library, man pages, completions, licence and scenarios in place", alone=True)
def installed():
    build = PROGRAM.parent
    with tempfile.TemporaryDirectory(prefix="kgs-install-") as folder:
        subprocess.run(["meson", "install", "-C", str(build), "--no-rebuild", "--quiet"], check=True, cwd=ROOT,
                       env={**os.environ, "DESTDIR": folder}, stdout=subprocess.DEVNULL)
        prefixes = [p.parent.parent for p in pathlib.Path(folder).rglob("bin/keda-gpu-scaler")]
        check(len(prefixes) == 1, f"{prefixes}")
        for pattern in WANTED:
            check(list(prefixes[0].glob(pattern)), f"no {pattern}")
        there = {str(p.relative_to(prefixes[0])) for p in prefixes[0].rglob("*") if not p.is_dir()}
        strange = [n for n in sorted(there) if not n.startswith(("bin/keda-gpu-scaler", "bin/gpu-metrics", "lib", "share/man/", "share/doc/",
                                                                 "share/bash", "share/zsh", "share/fish",
                                                                 "share/keda-gpu-scaler/"))]
        check(not strange, f"also installed: {strange}")
        version = subprocess.run([prefixes[0] / "bin/keda-gpu-scaler", "version"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        check(version.startswith("keda-gpu-scaler "), version)
