"""Pages that prometheus-client writes, as engines in Python have them: with creation times, put together of several
processes, and in the other text format. The names are those of vLLM; the numbers are ours."""
import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from prometheus_client import CollectorRegistry, multiprocess
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics import exposition as openmetrics

from agent import check, free_port
from scaler import near
from shared import of, scaler
from suite import test

HERE = pathlib.Path(__file__).resolve().parent


class Served:
    """A page from a function of the Accept header: (text, content type)."""

    def __init__(self, page):
        self.accepts = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(handler):  # pylint: disable=no-self-argument,invalid-name
                accept = handler.headers.get("Accept", "")
                self.accepts.append(accept)
                text, kind = page(accept)
                handler.send_response(200)
                handler.send_header("Content-Type", kind)
                handler.send_header("Content-Length", str(len(text)))
                handler.end_headers()
                handler.wfile.write(text)

            def log_message(handler, *_):  # pylint: disable=no-self-argument,arguments-differ
                pass
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/metrics"
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def told(**more):
    return {"waiting": 3, "running": 4, "kv": 0.5, "tokens": 600, "queue_s": [0.4] * 5, **more}


def run_process(numbers, folder=None):
    """What one process of the engine prints."""
    environment = {key: value for key, value in os.environ.items() if key != "PROMETHEUS_MULTIPROC_DIR"}
    if folder:
        environment["PROMETHEUS_MULTIPROC_DIR"] = folder
    return subprocess.run([sys.executable, HERE / "process.py", json.dumps(numbers)], env=environment, check=True,
                          stdout=subprocess.PIPE).stdout


@contextlib.contextmanager
def processes(*numbers):
    """A server of the page that several processes have left, in the format that is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        for one in numbers:
            run_process(one, folder)

        def page(accept):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, folder)
            encode, kind = choose_encoder(accept)
            return encode(registry), kind
        with Served(page) as served:
            yield served, folder


def value(served, kind, **more):
    return scaler().value({**of(kind), "vllmEndpoint": served.url, **more})


@test("prometheus-client: a page of one process, with creation times beside the counters")
def one_process():
    text = run_process(told())
    check(b"vllm:generation_tokens_created" in text, "the library writes no creation times")
    with Served(lambda _: (text, "text/plain; version=0.0.4; charset=utf-8")) as served:
        check(value(served, "requests_waiting") == 3, "waiting")
        check(value(served, "requests_running") == 4, "running")
        check(near(value(served, "kv_cache_usage"), 175), f"{value(served, 'kv_cache_usage')} % of 175")
        check(value(served, "tokens_per_second") == 0, "tokens without a second page")


@test("prometheus-client: several processes: the newest level of an engine counts, and all that they counted")
def several_processes():
    first, second = told(waiting=9, running=1), told()
    with processes(first, second, told(engine="1", waiting=2, running=5)) as (served, folder):
        check(value(served, "requests_waiting") == 5, f"{value(served, 'requests_waiting')} waiting")
        check(value(served, "requests_in_flight") == 14, f"{value(served, 'requests_in_flight')} in flight")
        value(served, "queue_wait_ms", window="300")
        run_process(told(queue_s=[0.1] * 4 + [0.6]), folder)
        got = value(served, "queue_wait_ms", window="300")
        check(near(got, 200), f"{got} ms of 200")
        check(value(served, "tokens_per_second", window="300") > 0, "no tokens")


@test("prometheus-client: levels that each process reports under its own pid are one engine's")
def by_pid():
    with processes(told(mode="all", waiting=9), told(mode="all"), told(mode="all", engine="1")) as (served, _):
        got = value(served, "requests_waiting")
        check(got == 12, f"{got} waiting of 9 and 3")


@test("prometheus-client: a page in OpenMetrics though plain text is asked for: the same numbers")
def other_format():
    with processes(told()) as (_, folder):
        def page(_):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, folder)
            return openmetrics.generate_latest(registry), openmetrics.CONTENT_TYPE_LATEST
        with Served(page) as served:
            check(value(served, "requests_in_flight") == 7, f"{value(served, 'requests_in_flight')} in flight")
            check(near(value(served, "kv_cache_usage"), 175), "the cache")
            check(all(accept.startswith("text/plain;version=0.0.4") for accept in served.accepts), f"{served.accepts}")
