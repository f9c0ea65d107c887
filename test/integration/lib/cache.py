"""The tool cache: third-party programs and libraries that the tests need, fetched once and pinned. It owns where they
are; what they are stands in requirements.txt, package-lock.json and test/tools-go/."""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
CACHE = pathlib.Path(os.environ.get("KGS_TOOL_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") /
                     "keda-gpu-scaler" / "tools")


def folder(name, inputs, build):
    """CACHE/name-HASH, made by build(folder) unless it is there; HASH is that of the files in `inputs`."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()[:16]
    target = CACHE / f"{name}-{digest}"
    if (target / ".complete").exists():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f".lock-{name}", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / ".complete").exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()  # in its final place: virtual environments hold their path
            build(target)
            (target / ".complete").touch()
    return target


def run(command, **options):
    """Run a command that must succeed; its output goes to stderr."""
    subprocess.run([str(word) for word in command], check=True, stdout=sys.stderr, **options)


def python():
    """The interpreter of a virtual environment that has the packages of requirements.txt."""
    def build(target):
        run([sys.executable, "-m", "venv", target])
        run([target / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r",
             HERE / "requirements.txt"])
    tag = f"python{sys.version_info[0]}.{sys.version_info[1]}-grpc"
    return folder(tag, [HERE / "requirements.txt"], build) / "bin/python3"


def enter_python(script):
    """Go on in python()'s interpreter, unless this is it."""
    interpreter = python()
    if pathlib.Path(sys.prefix) != interpreter.parent.parent:
        os.execv(interpreter, [str(interpreter), script, *sys.argv[1:]])


def go_programs(module):
    """The folder of the programs that test/e2e/build-tools builds of a Go module."""
    return pathlib.Path(subprocess.run([ROOT / "test/e2e/build-tools", module], check=True, text=True,
                                       stdout=subprocess.PIPE).stdout.strip())


def debian(package):
    """The folder of an unpacked Debian package, given as suite/name."""
    return pathlib.Path(subprocess.run([ROOT / "tools/fetch-debian", package], check=True, text=True,
                                       stdout=subprocess.PIPE).stdout.strip())


def node_modules(lock_folder):
    """A folder with package.json and node_modules as lock_folder's package-lock.json pins them."""
    def build(target):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(lock_folder / name, target)
        run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=target)
    return folder("node-" + lock_folder.name, [lock_folder / "package-lock.json"], build)


def stubs():
    """Compile proto/ and make the Python modules importable, once a process."""
    if not getattr(stubs, "path", None):
        stubs.path = tempfile.TemporaryDirectory()
        sources = sorted(str(path) for path in (ROOT / "proto").glob("*.proto"))
        run([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"--python_out={stubs.path.name}",
             f"--grpc_python_out={stubs.path.name}", *sources])
        sys.path.insert(0, stubs.path.name)
