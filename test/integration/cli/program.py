"""The program under test as a command: run it, look at what came out. Sanitizer findings fail whatever asked."""
import os
import re
import subprocess

from agent import PROGRAM, SANITIZER, SANITIZERS, check

NAME = "keda-gpu-scaler: "


class Result:
    """Exit status, stdout and stderr of one run."""

    def __init__(self, arguments, status, out, err):
        self.arguments, self.status, self.out, self.err = arguments, status, out, err

    def __str__(self):
        return f"{' '.join(self.arguments)}: status {self.status}\nstdout: {self.out[-1500:]}\nstderr: {self.err[-1500:]}"


def environment(extra=None):
    """Ours without what would configure the program; with what the test wants."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("KEDA_GPU_SCALER_", "NVMLSIM_")) and k not in ("NODE_NAME", "NVML_LIB", "NO_COLOR")}
    for name, value in SANITIZERS.items():
        clean.setdefault(name, value)
    return {**clean, **(extra or {})}


def run(*arguments, env=None, patience_s=60, **options):
    """The program with these arguments, until it ends."""
    words = [str(word) for word in arguments]
    done = subprocess.run([PROGRAM, *words], env=environment(env), stdin=subprocess.DEVNULL, timeout=patience_s, text=True,
                          check=False, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})
    result = Result(words, done.returncode, done.stdout or "", done.stderr or "")
    check(not SANITIZER.search(result.err), f"sanitizer: {result}")
    return result


def succeeds(*arguments, **options):
    """run() that must end with 0; its stdout."""
    result = run(*arguments, **options)
    check(result.status == 0, f"want status 0: {result}")
    return result.out


def fails(status, *patterns, arguments, **options):
    """run() that must end with this status, nothing on stdout, and stderr that matches each pattern."""
    result = run(*arguments, **options)
    check(result.status == status, f"want status {status}: {result}")
    check(not result.out, f"want nothing on stdout: {result}")
    for pattern in patterns:
        check(re.search(pattern, result.err, re.MULTILINE), f"want {pattern!r} on stderr: {result}")
    return result
