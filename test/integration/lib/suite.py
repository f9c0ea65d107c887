"""Registration and running of the tests of one suite: `@test("sentence")`, then `sys.exit(main())`. Tests run side by
side, since most of them wait. One line each, the summary last."""
import argparse
import concurrent.futures
import os
import signal
import sys
import threading
import time
import traceback

from agent import TestFailure

# grpcio's own poller and fork handlers have nothing to do with what is tested.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

_tests = []
_lock = threading.Lock()


class Skip(Exception):
    """Raised by a test that cannot run here, with the reason."""


def test(name, alone=False):
    """Register a test. alone: nothing else runs beside it (it measures)."""
    def register(function):
        _tests.append((name, function, alone))
        return function
    return register


def add(name, function, *arguments):
    """Register one row of a table."""
    _tests.append((name, lambda: function(*arguments), False))


def _run(name, function, counts):
    start = time.monotonic()
    try:
        function()
        word, detail = "ok", ""
    except Skip as reason:
        word, detail = "skip", f": {reason}"
    except TestFailure as failure:
        word, detail = "FAIL", f": {failure}"
    except Exception:  # pylint: disable=broad-except
        word, detail = "FAIL", ":\n" + traceback.format_exc()
    with _lock:
        counts[word] += 1
        print(f"{word:<4} {name} ({time.monotonic() - start:.1f} s){detail}", flush=True)


def main(last=None):
    """Run the tests whose names contain all of the words given; 0 if none failed. last: (name, function) of a test that
    runs after all others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*", help="only tests whose names contain all of these")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("KGS_TEST_JOBS", "6")))
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that atexit handlers run
    wanted = [t for t in _tests if all(word in t[0] for word in arguments.words)]
    if arguments.list:
        print("\n".join(name for name, _, _ in wanted))
        return 0
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, function, alone in wanted:
            if not alone:
                pool.submit(_run, name, function, counts)
    for name, function, alone in wanted:
        if alone:
            _run(name, function, counts)
    if last:
        _run(*last, counts)
    print(f"{counts['ok']} passed, {counts['FAIL']} failed" + (f", {counts['skip']} skipped" if counts["skip"] else ""))
    return 1 if counts["FAIL"] else 0
