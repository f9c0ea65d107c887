"""An image as deploy/image/build writes it: the archive, what it says, and its files, unpacked. Trusts nothing: each blob is
held against its digest. Programs of it are run by test/image/contain, or for a foreign architecture by qemu."""
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile
import threading

from agent import Agent, TestFailure, check, free_port, spawn, wait_until
from cache import ROOT
from suite import Skip

OUT = pathlib.Path(os.environ.get("OUT", ROOT / "build/image"))
VERSION = (ROOT / "VERSION").read_text().strip()
NATIVE = subprocess.run(["dpkg", "--print-architecture"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
LOADERS = {"amd64": "lib64/ld-linux-x86-64.so.2", "arm64": "lib/ld-linux-aarch64.so.1"}
NVMLSIM = "/usr/lib/keda-gpu-scaler/nvmlsim/libnvidia-ml.so.1"
UID = 65532

_work = tempfile.TemporaryDirectory(prefix="kgs-image-")
os.chmod(_work.name, 0o755)


class Archive:
    """An OCI archive: what its index.json points to."""

    def __init__(self, path):
        self.path = path
        with tarfile.open(path) as tar:
            self.files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
        index = json.loads(self.files["index.json"])
        check(len(index["manifests"]) == 1, f"{path}: {index}")
        self.name = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
        self.digest = index["manifests"][0]["digest"]
        self.top = self.json(self.digest)

    def blob(self, digest):
        data = self.files["blobs/" + digest.replace(":", "/")]
        check("sha256:" + hashlib.sha256(data).hexdigest() == digest, f"{self.path}: the blob {digest} is another one")
        return data

    def json(self, digest):
        return json.loads(self.blob(digest))


class Image(Archive):
    """One architecture's image, unpacked into `root`."""

    def __init__(self, arch):
        super().__init__(OUT / f"keda-gpu-scaler-{VERSION}-{arch}.tar")
        self.arch = arch
        self.description = self.json(self.top["config"]["digest"])
        self.config = self.description["config"]
        self.sbom_path = OUT / f"keda-gpu-scaler-{VERSION}-{arch}.spdx.json"
        self.root = pathlib.Path(_work.name) / arch
        self.root.mkdir()
        self.members = []
        for layer in self.top["layers"]:
            path = pathlib.Path(_work.name) / f"{arch}.layer"
            path.write_bytes(self.blob(layer["digest"]))
            with tarfile.open(path) as tar:
                self.members += tar.getmembers()
            subprocess.run(["tar", "-xf", path, "-C", self.root, "--no-same-owner"], check=True)

    def size(self):
        return sum(layer["size"] for layer in self.top["layers"])

    def command(self, *words, entrypoint=True):
        """The words that run the image with these arguments."""
        words = [*(self.config["Entrypoint"] if entrypoint else ()), *words]
        if self.arch != NATIVE:
            return [{"arm64": "qemu-aarch64"}[self.arch], "-L", self.root, self.root / words[0].lstrip("/"), *words[1:]]
        if not can_contain():
            raise Skip("to run an image's programs in their own file system needs root and the right to mount")
        return [ROOT / "test/image/contain", self.root, *words]

    def environment(self, *more, show=()):
        """For the process that runs command(): variables of the image and more ("NAME=VALUE"), folders to show."""
        lines = [*self.config["Env"], *more]
        outer = {"PATH": os.environ["PATH"], "CONTAIN_ENV": "\n".join(lines), "CONTAIN_SHOW": " ".join(map(str, show))}
        return outer if self.arch == NATIVE else {**outer, **dict(line.split("=", 1) for line in lines if line[:5] != "PATH=")}

    def run(self, *words, entrypoint=True, show=(), variables=()):
        """(exit status, output and errors) of a command that ends."""
        done = subprocess.run([str(w) for w in self.command(*words, entrypoint=entrypoint)],
                              env=self.environment(*variables, show=show),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=120, check=False)
        return done.returncode, done.stdout


@functools.cache
def can_contain():
    return os.getuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0


_images, _lock = {}, threading.Lock()


def image(arch):
    """The image of an architecture, unpacked once."""
    with _lock:
        if arch not in _images:
            _images[arch] = Image(arch)
        return _images[arch]


class Daemon(Agent):
    """A long-running command of an image: an agent or a hub. files: {name: text}, shown to it under self.path."""

    def __init__(self, one, command, *flags, files=(), variables=()):  # pylint: disable=super-init-not-called
        self.folder = tempfile.TemporaryDirectory(prefix="kgs-")
        self.path = pathlib.Path(self.folder.name) / "shown"
        self.path.mkdir()
        for name, text in dict(files).items():
            (self.path / name).write_text(text)
        self.tls_context = None
        self.port, self.metrics_port, self.probe_port = free_port(), free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        where = {"path": self.path}
        words = [command, f"--listen={self.address}", f"--metrics-listen=127.0.0.1:{self.metrics_port}",
                 f"--probe-listen=127.0.0.1:{self.probe_port}", *(flag.format_map(where) for flag in flags)]
        self.log_path = pathlib.Path(self.folder.name) / "log"
        self.log_file = open(self.log_path, "wb")
        self.process = spawn(one.command(*words), stdin=subprocess.DEVNULL, stdout=self.log_file, stderr=subprocess.STDOUT,
                             env=one.environment(*(v.format_map(where) for v in variables), show=[self.path]))
        try:
            wait_until(self._is_up, f"the {command} to listen")
        except TestFailure as failure:
            text = self.log()[-2000:]
            self.kill()
            raise TestFailure(f"{failure}\n{text}") from None

    def log(self):
        return self.log_path.read_text(errors="replace")

    def status_field(self, name):
        """A line of /proc/PID/status."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return line.split(":", 1)[1].split()
        raise TestFailure(f"no {name} in /proc/{self.process.pid}/status")
