"""Completion in real shells: bash and zsh at a terminal of their own, fish by its own question."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time

from agent import PROGRAM, check
from cache import ROOT
from program import environment
from suite import add, test

BIN = tempfile.TemporaryDirectory(prefix="kgs-cli-bin-")
(pathlib.Path(BIN.name) / "keda-gpu-scaler").symlink_to(PROGRAM)
(pathlib.Path(BIN.name) / "certificate.pem").touch()
PROMPT = "ready> "


class Shell:
    """An interactive shell on a pty: write keys, read what it shows."""

    def __init__(self, command, setup):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(BIN.name)
            os.execvpe(command[0], command, environment({
                "PATH": f"{BIN.name}:{os.environ['PATH']}", "TERM": "dumb", "PS1": PROMPT, "HOME": BIN.name, "COLUMNS": "200",
                "INPUTRC": "/dev/null", "HISTFILE": ""}))
        self.until(PROMPT)
        self.send(setup + "\n")
        self.until(PROMPT)

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def until(self, end, patience_s=30):
        """What it shows until `end`; fails without it."""
        seen, deadline = "", time.monotonic() + patience_s
        while end not in seen.split("\n", 1)[-1] if end == PROMPT and "\n" in seen else end not in seen:
            check(time.monotonic() < deadline, f"waited for {end!r}, saw {seen[-500:]!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    data = b""
                check(data, f"the shell ended; saw {seen[-500:]!r}")
                seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode(errors="replace")).replace("\a", "")
        return seen

    def complete(self, line, wanted):
        """Type the line and TAB twice; all the words must show up."""
        self.send(line + "\t\t")
        seen, deadline = "", time.monotonic() + 20
        while not all(word in seen[len(line):] for word in wanted):
            check(time.monotonic() < deadline, f"{line}<TAB>: want {wanted}, saw {seen!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(self.fd, 65536).decode(errors="replace"))
        self.send("\x15\n")  # forget the line
        time.sleep(0.05)
        while select.select([self.fd], [], [], 0.2)[0]:
            os.read(self.fd, 65536)

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


# line, what must appear (for a unique match the completed rest)
CASES = [
    ("keda-gpu-scaler ", ("agent", "demo", "call", "probe", "version", "completion", "help")),
    ("keda-gpu-scaler age", ("nt",)),
    ("keda-gpu-scaler agent --log-", ("--log-level", "--log-format")),
    ("keda-gpu-scaler agent --log-level ", ("debug", "info", "warn", "error")),
    ("keda-gpu-scaler agent --log-level=", ("debug", "info", "warn", "error")),
    ("keda-gpu-scaler agent --tls-cert cert", ("ificate.pem",)),
    ("keda-gpu-scaler agent --config=cert", ("ificate.pem",)),
    ("keda-gpu-scaler call ", ("all", "spec", "metrics", "explain", "stream-active")),
    ("keda-gpu-scaler call -m prof", ("ile=",)),
    ("keda-gpu-scaler call -m profile=", ("triton-inference", "vllm-queue-depth", "training")),
    ("keda-gpu-scaler call --metadata metricType=gpu_", ("utilization",)),
    ("keda-gpu-scaler call -o ", ("text", "json")),
    ("keda-gpu-scaler completion ", ("bash", "zsh", "fish")),
    ("keda-gpu-scaler help pro", ("be",)),
    ("keda-gpu-scaler probe --tls-se", ("rver-name",)),
]


def need(name):
    check(shutil.which(name), f"{name} is not installed (tools/packages lists it)")


def complete_all(shell):
    try:
        for line, wanted in CASES:
            shell.complete(line, wanted)
    finally:
        shell.close()


@test("bash: the sourced script completes commands, flags, values, files and metadata")
def bash_sourced():
    complete_all(Shell(["bash", "--norc", "--noprofile", "-i"],
                       "bind 'set enable-bracketed-paste off'; source <(keda-gpu-scaler completion bash)"))


@test("bash: the installed file works as it is")
def bash_file():
    shell = Shell(["bash", "--norc", "--noprofile", "-i"],
                  f"bind 'set enable-bracketed-paste off'; . {ROOT}/completions/keda-gpu-scaler.bash")
    complete_all(shell)


@test("zsh: the sourced script completes commands, flags, values, files and metadata")
def zsh_sourced():
    need("zsh")
    complete_all(Shell(["zsh", "-f", "-i"],
                       "unsetopt zle_bracketed_paste prompt_sp; autoload -U compinit; compinit -u -D; "
                       "source <(keda-gpu-scaler completion zsh)"))


@test("zsh: the installed file is found by its name in fpath")
def zsh_file():
    need("zsh")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "completions/keda-gpu-scaler.zsh", pathlib.Path(folder) / "_keda-gpu-scaler")
        complete_all(Shell(["zsh", "-f", "-i"],
                           f"unsetopt zle_bracketed_paste prompt_sp; fpath=({folder} $fpath); autoload -U compinit; "
                           "compinit -u -D"))


def fish(script, line, wanted):
    """fish answers what it would offer for a line; the words come with their beginning."""
    need("fish")
    done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"], text=True, check=False,
                          cwd=BIN.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment({"PATH": f"{BIN.name}:{os.environ['PATH']}", "HOME": BIN.name, "TERM": "dumb"}))
    check(done.returncode == 0 and not done.stderr, f"{done}")
    offered = "\n".join(row.split("\t")[0] for row in done.stdout.splitlines())
    check(all(word in offered for word in wanted), f"{line}<TAB>: want {wanted}, got {offered!r}")


for case, words in CASES:
    add(f"fish: {case}<TAB>", fish, ROOT / "completions/keda-gpu-scaler.fish", case, words)
