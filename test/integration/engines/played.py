"""Hubs and the program that plays engines: what its queues, ranks, caches and clocks come to, for every engine that it
has. Its /state says what is true."""
import contextlib
import os
import pathlib
import subprocess
import tempfile
import time

from agent import check, wait_until
from engine import Engines
from models import Model, Models, free_address, trigger
from suite import add, test

STEADY = {"service_rate": 10, "slots": 8, "kv_per_request_percent": 10}


def full(ranks=1):
    """For two seconds more requests come than end; then nothing comes, starts or ends: the state stays."""
    return {**STEADY, "arrivals": {"ramp": [[0, 30 * ranks], [2, 30 * ranks], [2.05, 0]]},
            "faults": [{"fault": "slow", "from": 2.1}]}


@contextlib.contextmanager
def played(*servers, metadata=None, target=None, flags=(), annotations=None, files=None):
    """(question to a hub, metadata, engines) about ml/llm, with a pod for each server; port 8000 of addresses of their
    own, which nothing names."""
    with Models() as cluster:
        metadata = metadata or trigger()
        model = Model(cluster, "llm", [], metadata, target=target, replicas=len(servers))
        addresses = [free_address() for _ in servers]
        listed = [{**server, "listen": f"{address}:{model.port}"} for server, address in zip(servers, addresses)]
        engines = cluster.enter(Engines(listed, files))
        for number, address in enumerate(addresses):
            model.put(f"llm-{number}", address, annotations=annotations)
        yield model.ask(cluster.hub(*flags)), metadata, engines


def total(engines, *keys, numbers=None):
    return sum(engines.state(number)[key] for number in numbers or range(len(engines.addresses)) for key in keys)


def settled(engines):
    """Wait for the state that stays."""
    wait_until(lambda: engines.state()["time_s"] > 2.3 and engines.state()["waiting"] > 5, "a queue that stays")


def waiting_is(server, name):
    with played({**full(server.get("ranks", 1)), **server}, {**full(server.get("ranks", 1)), **server}) as (ask, metadata, engines):
        settled(engines)
        ask.until(total(engines, "waiting"), metadata)
        check(ask.active(metadata) is True, "not active")
        check(name in ask.explain(metadata), ask.explain(metadata))


for row, engine_name in (
        ({"engine": "vllm"}, "vLLM"), ({"engine": "vllm", "names": "old"}, "vLLM"), ({"engine": "vllm", "names": "both"}, "vLLM"),
        ({"engine": "vllm", "ranks": 4}, "vLLM"), ({"engine": "vllm", "api_servers": 4}, "vLLM"),
        ({"engine": "sglang"}, "SGLang"), ({"engine": "sglang", "ranks": 2, "tensor_ranks": 4}, "SGLang"),
        ({"engine": "sglang", "ranks": 2, "attention_dp": True}, "SGLang"), ({"engine": "tgi"}, "TGI"),
        ({"engine": "triton"}, "Triton"), ({"engine": "llamacpp"}, "llama.cpp")):
    add("waiting requests of " + ", ".join(f"{key} {value}" for key, value in row.items()), waiting_is, row, engine_name)


def in_flight_is(server):
    metadata = trigger("requests_in_flight", 16)
    with played({**full(server.get("ranks", 1)), **server}, metadata=metadata) as (ask, _, engines):
        settled(engines)
        ask.until(total(engines, "waiting", "running"), metadata)


for row in ({"engine": "vllm", "ranks": 2}, {"engine": "sglang", "ranks": 2, "tensor_ranks": 2}, {"engine": "triton-tensorrtllm"},
            {"engine": "trtllm"}, {"engine": "llamacpp"}):
    add("requests in flight of " + ", ".join(f"{key} {value}" for key, value in row.items()), in_flight_is, row)


@test("the profile doubles the replicas where more wait than run, and lets go when they are gone")
def demand():
    metadata = {**trigger(), "profile": "vllm-inference"}
    for key in ("metricType", "targetValue"):
        del metadata[key]
    busy = {**full(), "engine": "vllm"}
    with played(busy, busy, metadata=metadata, target=80) as (ask, _, engines):
        settled(engines)
        ask.until(400, metadata)
        text = ask.explain(metadata)
        check("the demand" in text or "demand" in text, text)
        idle = [{"engine": "vllm", **STEADY, "listen": address, "arrivals": 0} for address in engines.addresses]
        engines.play(idle)
        wait_until(lambda: engines.state()["running"] == 0, "the queues to be empty")
        ask.until(0, metadata)
        wait_until(lambda: ask.active(metadata) is False, "inactive")


@test("tokens a second are those of the pods, and a restart of an engine is no negative rate")
def tokens():
    metadata = trigger("tokens_per_second", 1000, window=10)
    busy = {"engine": "vllm", **STEADY, "arrivals": 5, "output_tokens": 200}
    again = {**busy, "faults": [{"fault": "restart", "from": 8}]}
    with played(busy, again, metadata=metadata) as (ask, _, engines):
        wait_until(lambda: engines.state()["time_s"] > 6 and not isinstance(ask.answer(metadata), str), "a rate")
        # 1000 tokens/s each, and the count of a page of a moment before
        wait_until(lambda: abs(ask.answer(metadata) - 2000) < 300, "2000 tokens/s", 20)
        while engines.state()["time_s"] < 14:
            got = ask.answer(metadata)
            check(not isinstance(got, str) and 900 <= got < 2600, f"{got} tokens/s")


@test("the wait in the queue is that of the requests")
def waits():
    metadata = trigger("queue_wait_ms", 500, window=10)
    with played({"engine": "vllm", **STEADY, "arrivals": 5}, metadata=metadata) as (ask, _, engines):
        wait_until(lambda: engines.state()["finished"] > 20 and "every pod is known" in ask.explain(metadata), "requests to end")
        check(ask.answer(metadata) < 100, f"{ask.answer(metadata)} ms without a queue")
        engines.play([{"engine": "vllm", **STEADY, "arrivals": 40, "listen": engines.addresses[0]}])
        wait_until(lambda: ask.answer(metadata) > 500, "the wait to grow with the queue")


@test("O26 the KV gauge that a mass cancel left behind counts as 0 after half a minute")
def left_over_gauge():
    metadata = trigger("kv_cache_usage", 80)
    server = {"engine": "vllm", **STEADY, "arrivals": {"ramp": [[0, 9], [4.9, 9], [4.95, 0]]}, "faults": [{"fault": "cancel", "from": 5}]}
    with played(server, metadata=metadata) as (ask, _, engines):
        wait_until(lambda: ask.answer(metadata) not in (0, "UNAVAILABLE"), "some use of the cache")
        wait_until(lambda: engines.state()["time_s"] > 6, "the cancel")
        check(engines.state()["running"] == 0 and ask.answer(metadata) > 20, f"no gauge was left: {engines.state()}")
        ask.until(0, metadata, 60)
        text = ask.explain(metadata)
        check("counts as 0" in text, text)


@test("https with a token: the hub's authority and token file; the pod's annotation says https")
def secured():
    with tempfile.TemporaryDirectory(prefix="kgs-") as name:
        folder = pathlib.Path(name)
        (folder / "token").write_text("secret\n")
        address = free_address()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", "/CN=engine", "-addext", f"subjectAltName=IP:{address}", "-keyout", folder / "tls.key",
                        "-out", folder / "tls.crt"], check=True, capture_output=True)
        with Models() as cluster:
            metadata = trigger()
            model = Model(cluster, "llm", [], metadata, replicas=1)
            engines = cluster.enter(Engines([{"engine": "vllm", **full(), "listen": f"{address}:{model.port}", "token": "secret",
                                              "tls_cert": str(folder / "tls.crt"), "tls_key": str(folder / "tls.key")}]))
            check(engines.addresses, "no server")
            model.put("llm-0", address, annotations={"prometheus.io/scheme": "https"})
            hub = cluster.hub(f"--engine-ca-file={folder}/tls.crt", f"--engine-token-file={folder}/token")
            ask = model.ask(hub)
            wait_until(lambda: not isinstance(ask.answer(metadata), str) and ask.answer(metadata) > 5, "a queue over https")
            without = model.ask(cluster.hub(f"--engine-ca-file={folder}/tls.crt"))
            wait_until(lambda: "401" in without.why(metadata), "401 without the token")
            untrusting = model.ask(cluster.hub(f"--engine-token-file={folder}/token"))
            wait_until(lambda: "certificate" in untrusting.why(metadata), "a certificate that is not trusted")


@test("faults of the program: each costs its pod the reading; the others stay, the count too")
def faults():
    steady = {"engine": "vllm", **full()}
    kinds = ("html", "empty", "hang", "close", "never_ends", "dribble", "wrong_length")
    rows = [{**steady, "faults": [*steady["faults"], {"fault": kind, "from": 9}]} for kind in kinds]
    metadata = trigger(target=36)
    with played(steady, *rows, metadata=metadata) as (ask, _, engines):
        settled(engines)
        want = total(engines, "waiting")
        ask.until(want, metadata)
        wait_until(lambda: engines.state()["time_s"] > 9, "the faults")
        ask.stays(lambda got: not isinstance(got, str) and got >= 36 * (len(rows) + 1) - 36, 10, metadata)
        wait_until(lambda: f"{len(kinds)} missing" in ask.explain(metadata), "all but one to be missing", 40)
        check(ask.answer(metadata) == 36 * (len(rows) + 1), f"{want}, then {ask.answer(metadata)}")


@test("a hundred pods that never answer delay nobody: the others are read as often as before")
def many_hang():
    def address(number):
        return f"127.{201 + number // 62500}.{number // 250 % 250 + 1}.{number % 250 + 1}"
    with Models() as cluster:
        metadata = trigger(target=1)
        model = Model(cluster, "llm", [], metadata, replicas=120)
        start = 1000 + os.getpid() % 50000
        rows = [{"engine": "vllm", **full(), "listen": f"{address(start + i)}:{model.port}"} for i in range(120)]
        for row in rows[:100]:
            row["faults"] = [*row["faults"], {"fault": "hang"}]
        engines = cluster.enter(Engines(rows))
        for number in range(120):
            model.put(f"llm-{number:03d}", address(start + number))
        ask = model.ask(cluster.hub())
        wait_until(lambda: ask.explain(metadata).count("no complete page") >= 100, "each to have hung once", 60)
        wait_until(lambda: "20 measured, 100 missing" in ask.explain(metadata), "20 of 120 to be measured", 20)
        want = total(engines, "waiting", numbers=range(100, 120))
        end = time.monotonic() + 12
        while time.monotonic() < end:
            text = ask.explain(metadata)
            check("20 measured, 100 missing" in text, text[:1500])
            time.sleep(0.3)
        check(want > 0, f"{want} wait")
