"""Pages, faults and rewriting of simulated model servers."""
import gzip
import itertools
import os
import pathlib
import subprocess
import time

from prometheus_client import parser

import cache
from agent import SANITIZERS, check, wait_until
from engine import ENGINESIM, Engines
from suite import add, test

LOAD = {"arrivals": 40, "service_rate": 20, "slots": 8, "kv_per_request_percent": 10, "model": "org/chat-8b"}
_addresses = itertools.count(1)


def server(engine="vllm", **keys):
    """A server at an address of its own."""
    number = next(_addresses)
    return {"engine": engine, "listen": f"127.77.{number // 250}.{number % 250 + 1}:{24000 + number % 900}", **LOAD, **keys}


# Real pages have some of these; nobody but promtool minds.
KNOWN = ("use base unit", "no help text", "counter metrics should have \"_total\" suffix", "non-histogram and non-summary metrics",
         "metric names should not contain ':'", "should not include", "should not contain abbreviated units",
         "should not have \"_total\" suffix")


def reads_well(**keys):
    with Engines([server(**keys)]) as engines:
        wait_until(lambda: engines.state()["finished"] > 10, "requests to end")
        text = engines.get()
    promtool = subprocess.run([cache.go_programs("prometheus") / "promtool", "check", "metrics"], input=text.encode(),
                              capture_output=True, timeout=60, check=False)
    said = (promtool.stdout + promtool.stderr).decode().splitlines()
    check(promtool.returncode in (0, 3), said)
    strange = [line for line in said if not any(known in line for known in KNOWN)]
    check(not strange, "\n".join(strange))
    families = list(parser.text_string_to_metric_families(text))
    check(len({family.name for family in families}) == len(families), "a family twice")
    for family in families:
        check(family.documentation and family.type != "unknown", f"{family.name}: no HELP or TYPE")
        series = [(s.name, tuple(sorted(s.labels.items()))) for s in family.samples]
        check(len(series) == len(set(series)), f"{family.name}: a series twice")


for variant in ({"engine": "vllm"}, {"engine": "vllm", "names": "old"}, {"engine": "vllm", "names": "both", "ranks": 2},
                {"engine": "vllm", "api_servers": 4, "waiting_by_reason": True}, {"engine": "vllm", "pad_bytes": 120000},
                {"engine": "sglang"}, {"engine": "sglang", "ranks": 2, "tensor_ranks": 2}, {"engine": "tgi"}, {"engine": "triton"},
                {"engine": "triton-tensorrtllm"}, {"engine": "trtllm"}, {"engine": "llamacpp"}):
    add("promtool and the reference parser read " + ", ".join(str(v) for v in variant.values()), lambda v=variant: reads_well(**v))


def curl(address, *words, scheme="http"):
    """(exit status of curl, body, headers)"""
    result = subprocess.run(["curl", "-sS", "-i", "--noproxy", "*", "--max-time", "2", *words, f"{scheme}://{address}/metrics"],
                            capture_output=True, timeout=60, check=False)
    head, _, body = result.stdout.partition(b"\r\n\r\n")
    return result.returncode, body, head.decode()


TIMED_OUT, PARTIAL, EMPTY, RESET = 28, 18, 52, 56
FAULTS = {
    "status": ({"code": 404}, lambda rc, body, head: rc == 0 and head.startswith("HTTP/1.1 404 ")),
    "html": ({}, lambda rc, body, head: rc == 0 and "text/html" in head and b"<html>" in body),
    "empty": ({}, lambda rc, body, head: rc == 0 and head.startswith("HTTP/1.1 200 ") and body == b""),
    "hang": ({}, lambda rc, body, head: rc == TIMED_OUT and not head),
    "close": ({}, lambda rc, body, head: rc in (EMPTY, RESET) and not head),
    "never_ends": ({}, lambda rc, body, head: rc == TIMED_OUT and len(body) > 500000),
    "dribble": ({}, lambda rc, body, head: rc == TIMED_OUT and 5 < len(body) < 25),
    "wrong_length": ({}, lambda rc, body, head: rc == PARTIAL and body.count(b"\n") > 100),
}


def strikes(kind):
    keys, is_right = FAULTS[kind]
    with Engines([server(faults=[{"fault": kind, **keys}])]) as engines:
        rc, body, head = curl(engines.addresses[0])
        check(is_right(rc, body, head), f"curl {rc}, {len(body)} bytes, {head!r}")
        check(engines.state()["engine"] == "vllm", "no state beside the fault")


for name in FAULTS:
    add(f"the fault {name} is what a reader meets, and the state stays readable", lambda k=name: strikes(k))


@test("a frozen page stays what it was while the engine goes on")
def frozen():
    with Engines([server(faults=[{"fault": "freeze"}])]) as engines:
        page = engines.get()
        before = engines.state()["finished"]
        wait_until(lambda: engines.state()["finished"] > before + 10, "requests to end")
        check(engines.get() == page, "it changed")


@test("a restart: no answer, then counters from 0")
def restarted():
    with Engines([server(faults=[{"fault": "restart", "from": 1.5, "until": 2.5}])]) as engines:
        wait_until(lambda: engines.state()["finished"] > 10, "requests to end")
        wait_until(lambda: curl(engines.addresses[0])[0] in (EMPTY, RESET), "the process to be away")
        wait_until(lambda: curl(engines.addresses[0])[0] == 0, "the process to be back")
        check(engines.state()["finished"] < 30, "counters went on")


@test("a rewritten scenario is played: servers that stay keep their counters, others come and go")
def rewritten():
    first, second, third = server(), server("sglang"), server("tgi")
    with Engines([first, second]) as engines:
        wait_until(lambda: engines.state()["finished"] > 10, "requests to end")
        engines.addresses.append(third["listen"])
        engines.play([{**first, "arrivals": 0}, third])
        wait_until(lambda: curl(third["listen"])[0] == 0, "the new server to answer")
        check(curl(second["listen"])[0] == 7, "the server that is gone still answers")
        wait_until(lambda: engines.state()["running"] == 0, "the queue to drain")
        check(engines.state()["finished"] > 10, "counters began anew")
        check(b"tgi_queue_size" in curl(third["listen"])[1], "another engine's page")


@test("a bad rewrite is reported once and not played")
def bad_rewrite():
    good = server()
    with Engines([good]) as engines:
        engines.play([{**good, "arivals": 3}])
        wait_until(lambda: "did you mean `arrivals`?; " in engines.said(), "the report")
        before = engines.state()["finished"]
        wait_until(lambda: engines.state()["finished"] > before, "the old scenario to go on")
        time.sleep(0.2)  # several looks at the file
        check(engines.said().count("\n") == 1, engines.said())


@test("a bad scenario at the start ends it with a line and a status of 2; so do wrong words")
def bad_start():
    with Engines([]) as engines:
        path = pathlib.Path(engines.path) / "bad.yaml"
        path.write_text("servers: [{engine: vllm}]")
        for words, wanted in (([path], "bad.yaml:1:11: a server needs"), ([], "Usage: "), (["--what"], "Usage: ")):
            result = subprocess.run([ENGINESIM, *words], capture_output=True, text=True, timeout=60, check=False,
                                    env={**os.environ, **SANITIZERS})
            check(result.returncode == 2 and wanted in result.stderr, f"{result.returncode}: {result.stderr}")


@test("--with-parent: it ends when standard input does")
def with_parent():
    with Engines([]) as folder:
        with subprocess.Popen([ENGINESIM, "--with-parent", folder.path / "scenario.yaml"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, env={**os.environ, **SANITIZERS}) as process:
            check(process.stdout.readline() == "ready\n", "not ready")
            check(process.poll() is None, "it ended at once")
            process.stdin.close()
            check(process.wait(timeout=30) == 0, f"ended with {process.returncode}")


@test("gzip for who accepts it, a token for who must bear it")
def wrapped():
    with Engines([server(gzip=True), server(token="secret")]) as engines:
        rc, body, head = curl(engines.addresses[0], "-H", "Accept-Encoding: gzip")
        check(rc == 0 and "Content-Encoding: gzip" in head and b"vllm:" in gzip.decompress(body), head)
        check(curl(engines.addresses[1])[2].startswith("HTTP/1.1 401 "), "an answer without the token")
        check(curl(engines.addresses[1], "-H", "Authorization: Bearer wrong")[2].startswith("HTTP/1.1 401 "), "a wrong token")
        rc, body, head = curl(engines.addresses[1], "-H", "authorization: Bearer secret")
        check(rc == 0 and head.startswith("HTTP/1.1 200 ") and b"vllm:" in body, head)


@test("HTTPS with the scenario's certificate")
def encrypted():
    with Engines([]) as folder:
        files = [str(folder.path / name) for name in ("tls.key", "tls.crt")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", "/CN=engine", "-keyout", files[0], "-out", files[1]], check=True, capture_output=True)
        with Engines([server(tls_key=files[0], tls_cert=files[1])]) as engines:
            rc, body, _ = curl(engines.addresses[0], "-k", scheme="https")
            check(rc == 0 and b"vllm:" in body, f"curl {rc}")
            check(b"vllm:" not in curl(engines.addresses[0])[1], "the page in plaintext")


@test("500 servers with long pages from one program")
def many():
    with Engines([{**server(pad_bytes=120000), "listen": "127.78.0.1:24999", "count": 500}]) as engines:
        check(len(engines.addresses) == 500 and engines.addresses[-1] == "127.78.1.244:24999", engines.addresses[-1])
        for number in (0, 250, 499):
            check(len(engines.get(number)) >= 120000, "a short page")
