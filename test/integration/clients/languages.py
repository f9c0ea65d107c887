"""The client programs: how each is built and called."""
import functools
import pathlib
import subprocess
import sys
import tempfile

import cache
from agent import spawn

HERE = pathlib.Path(__file__).resolve().parent
LANGUAGES = ("grpc-go", "grpc-js", "grpcio")


@functools.cache
def _go():
    def build(target):
        go = subprocess.run([cache.ROOT / "test/e2e/build-tools", "--go"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.strip()
        cache.run(["env", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=", go, "build", "-mod=readonly",
                   "-trimpath", "-buildvcs=false", "-o", target / "client", "."], cwd=HERE / "go")
    return cache.folder("client-go", [HERE / "go" / name for name in ("go.mod", "go.sum", "main.go")], build) / "client"


@functools.cache
def _node_modules():
    node = cache.python().parent / "node"

    def build(target):
        for name in ("package.json", "package-lock.json"):
            (target / name).write_bytes((HERE / "node" / name).read_bytes())
        cache.run([node.parent / "npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=target,
                  env={**cache.os.environ, "PATH": f"{node.parent}:{cache.os.environ['PATH']}"})
    return node, cache.folder("client-node", [HERE / "node" / "package-lock.json"], build) / "node_modules"


@functools.cache
def _descriptors():
    file = tempfile.NamedTemporaryFile(suffix=".pb")  # pylint: disable=consider-using-with
    cache.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{cache.ROOT / 'proto'}", "--include_imports",
               f"--descriptor_set_out={file.name}", "externalscaler.proto", "health.proto"])
    return file


def prepare():
    """Build what takes long before the clock of any test runs."""
    _go(), _node_modules(), _descriptors()  # pylint: disable=expression-not-assigned


def command(language, address, *flags):
    """(command, extra environment) of a client; flags: -ca FILE -cert FILE -key FILE -hold N -loop SECONDS."""
    if language == "grpc-go":
        return [_go(), address, _descriptors().name, *flags], {}
    if language == "grpc-js":
        node, modules = _node_modules()
        return [node, HERE / "node" / "client.js", address, cache.ROOT / "proto", *flags], {"CLIENT_MODULES": modules}
    return [sys.executable, HERE / "client.py", address, *flags], {"GRPC_VERBOSITY": "NONE"}


def start(language, address, *flags):
    """A running client with its output as text in a pipe."""
    words, extra = command(language, address, *flags)
    environment = {**cache.os.environ, **{name: str(text) for name, text in extra.items()}}
    return spawn(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                 text=True)


def run(language, address, *flags, patience_s=120):
    """The output of a client that has ended."""
    process = start(language, address, *flags)
    try:
        return process.communicate(timeout=patience_s)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] + f"\nstopped after {patience_s} s\n"
