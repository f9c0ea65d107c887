"""Child processes: started with a log file each, watched, and always ended, even when the rig itself is killed.

The kernel ends the children when the rig dies (PR_SET_PDEATHSIG); in the ordinary case Children.stop_all() does.
"""

import ctypes
import os
import signal
import subprocess
import threading
import time

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ChildFailed(Exception):
    """A child could not be started, or ended when it should run."""


class Child:
    def __init__(self, name, argv, env, log_path):
        self.name, self.log_path = name, log_path
        self._log = open(log_path, "ab")
        self._log.write(("$ " + " ".join(str(a) for a in argv) + "\n").encode())
        self._log.flush()
        self.process = _spawner.call(lambda: subprocess.Popen(
            [str(a) for a in argv], env=env, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)))

    @property
    def pid(self):
        return self.process.pid

    def is_running(self):
        return self.process.poll() is None

    def require_running(self):
        if not self.is_running():
            raise ChildFailed(f"{self.name} ended with status {self.process.returncode}; end of {self.log_path}:\n"
                              + self.log_tail())

    def log_text(self):
        return self.log_path.read_text(errors="replace")

    def log_tail(self, lines=12):
        return "\n".join("    " + line for line in self.log_text().splitlines()[-lines:])

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM, patience_s=10.0):
        """Ends the child; returns (seconds it took, exit status). A child that outlives its patience is killed."""
        began = time.monotonic()
        if self.is_running():
            self.process.send_signal(number)
            try:
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()
        return time.monotonic() - began, self.process.returncode


class _Spawner:
    """One thread that starts all children: PR_SET_PDEATHSIG fires when the *thread* that forked ends, not the process."""

    def __init__(self):
        self._thread, self._lock, self._jobs = None, threading.Lock(), None

    def call(self, work):
        import queue

        with self._lock:
            if self._thread is None:
                self._jobs = queue.Queue()
                self._thread = threading.Thread(target=self._run, daemon=True, name="spawner")
                self._thread.start()
        answer = queue.Queue()
        self._jobs.put((work, answer))
        result, error = answer.get()
        if error:
            raise error
        return result

    def _run(self):
        while True:
            work, answer = self._jobs.get()
            try:
                answer.put((work(), None))
            except Exception as error:  # handed to the caller, whose problem it is
                answer.put((None, error))


_spawner = _Spawner()


class Children:
    """All children of one run."""

    def __init__(self, log_dir):
        self.log_dir = log_dir
        self._children, self._lock = [], threading.Lock()
        log_dir.mkdir(parents=True, exist_ok=True)

    def start(self, name, argv, env=None):
        try:
            child = Child(name, argv, {**os.environ, **(env or {})}, self.log_dir / f"{name}.log")
        except OSError as error:
            raise ChildFailed(f"cannot start {argv[0]}: {error.strerror}") from error
        with self._lock:
            self._children.append(child)
        return child

    def require_running(self):
        with self._lock:
            children = list(self._children)
        for child in children:
            child.require_running()

    def forget(self, child):
        with self._lock:
            if child in self._children:
                self._children.remove(child)

    def stop_all(self):
        """Newest first, all at once, so that nothing waits for a server that is gone."""
        with self._lock:
            children, self._children = self._children[::-1], []
        for child in children:
            if child.is_running():
                child.send(signal.SIGTERM)
        deadline = time.monotonic() + 5
        for child in children:
            child.stop(patience_s=max(0.1, deadline - time.monotonic()))
