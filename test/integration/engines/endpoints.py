"""An agent and the pages of endpoints that triggers name: the existing scaler's cases with an engine ("A.12 n") and its
defects ("B n"), each with the right value. The agent has no GPU and no driver: pages need neither."""
import concurrent.futures
import contextlib
import functools
import threading
import time

from agent import Agent, check, wait_until
from pages import HTML, PageServer, family, sglang, triton, vllm, vllm_ranks
from scaler import Scaler, grpc, near, refused
from suite import add, test

RATE = {"profile": "triton-request-rate"}
WAIT = {"profile": "triton-queue-wait"}
DEPTH = {"profile": "vllm-queue-depth"}
_lock = threading.Lock()
_agents = []


def the_agent():
    """The one that most tests share; each has endpoints of its own."""
    with _lock:
        if not _agents:
            _agents.append(Agent(None))
        return _agents[0]


def stop_agent():
    for agent in _agents:
        with agent:
            pass


@functools.cache
def scaler():
    return Scaler(the_agent().address)


def of(server, metadata=None, key="vllmEndpoint", **more):
    """Metadata of a trigger on this server's page."""
    return {**(metadata or {"metricType": "vllm_queue_depth", "targetValue": "5"}), key: server.url, **more}


def code_of(call, *arguments):
    """The name of the code of an error; "OK"."""
    try:
        call(*arguments)
        return "OK"
    except grpc.RpcError as error:
        return error.code().name


# ---- the existing scaler's own cases ----


@test("A.12 16 VLLMQueueDepthE2E: 14 requests wait: name, value and activity")
def queue_depth():
    with PageServer(vllm(waiting=14, running=3)) as server:
        metadata = of(server, DEPTH)
        check(scaler().spec(metadata) == ("keda_gpu_vllm_queue_depth", 5), f"{scaler().spec(metadata)}")
        check(scaler().value(metadata) == 14, f"{scaler().value(metadata)}")
        check(scaler().active(metadata) is True, "not active")


for number, kind, keys in ((17, "vllm_queue_depth", "vllmEndpoint"), (20, "triton_queue_wait_ms", "tritonEndpoint")):
    def missing_endpoint(metadata, key):
        for call in (scaler().value, scaler().active, scaler().spec, scaler().explain):
            with refused("INVALID_ARGUMENT", key):
                call(metadata)
    add(f"A.12 {number} {kind} without an endpoint is refused by every call", missing_endpoint,
        {"metricType": kind, "targetValue": "5"}, keys)


@test("A.12 18 TritonRequestRateE2E: the first answer is exactly 0, after 100 more it is above, and active at once")
def request_rate():
    with PageServer(triton({"count": 200})) as server:
        metadata = of(server, {"metricType": "triton_request_rate", "targetValue": "10"}, "tritonEndpoint")
        first = scaler().value(metadata)
        check(first == 0, f"the first answer is {first}")
        server.page = triton({"count": 300})
        second = scaler().value(metadata)
        check(second > 0, f"the second answer is {second}")
        server.page = triton({"count": 400})
        check(scaler().active(metadata) is True, "not active")


@test("A.12 19 TritonQueueWaitE2E: 200 requests that waited 20 ms together are 0.1 ms each, at once")
def queue_wait():
    with PageServer(triton({"count": 200, "queue_us": 5000})) as server:
        metadata = of(server, {"metricType": "triton_queue_wait_ms", "targetValue": "50"}, "tritonEndpoint")
        scaler().value(metadata)
        server.page = triton({"count": 400, "queue_us": 25000})
        value = scaler().value(metadata)
        check(0.09 < value < 0.11, f"{value} ms")


@test("A.12 more: counters of Triton are summed over models, and one that begins anew is no negative rate")
def models_and_reset():
    with PageServer(triton({"count": 100}, {"count": 5000})) as server:
        metadata = of(server, {"metricType": "triton_request_rate", "targetValue": "10", "window": "300"}, "tritonEndpoint")
        check(scaler().value(metadata) == 0, "the first answer is not 0")
        server.page = triton({"count": 600}, {"count": 5500})
        time.sleep(0.5)  # a rate over a time that can be told
        start = time.monotonic()
        rate = scaler().value(metadata)
        check(100 < rate <= 1000 / 0.5, f"{rate}/s of 1000 in half a second or more ({start})")
        server.page = triton({"count": 3}, {"count": 0})
        after = scaler().value(metadata)
        check(0 < after <= rate * 1.02, f"{after}/s after a restart, {rate}/s before")


@test("A.12 more: an engine that cannot be reached, or answers 500, is an error that says so")
def unreachable():
    server = PageServer(vllm(waiting=14))
    server.close()
    with refused("UNAVAILABLE", server.url):
        scaler().value(of(server))
    with PageServer(vllm(waiting=14)) as failing:
        failing.status = 500
        with refused("UNAVAILABLE", "500"):
            scaler().value(of(failing))


# ---- its defects ----


@test("B 4, 6 an endpoint that cannot be read is unknown, which is not idle")
def unknown_is_not_idle():
    server = PageServer(vllm(waiting=14))
    server.close()
    answer = code_of(scaler().active, of(server))
    check(answer == "UNAVAILABLE" or scaler().active(of(server)) is True, f"IsActive is {answer}, and false")


@test("B 9 one waiting request makes vllm-queue-depth active")
def one_waits():
    with PageServer(vllm(waiting=1)) as server:
        check(scaler().active(of(server, DEPTH)) is True, "not active")
        check(scaler().value(of(server, DEPTH)) == 1, "not 1")


@contextlib.contextmanager
def steady_triton(rate=10.0, wait_ms=80.0):
    """A Triton that ends so many requests a second, each after such a wait."""
    start = time.monotonic()

    def page():
        count = 1000 + int(rate * (time.monotonic() - start))
        return triton({"count": count, "queue_us": int(count * wait_ms * 1000)})
    with PageServer(page) as server:
        yield server


@test("B 12 GetMetrics and IsActive back to back, as KEDA asks: both see the same window, each time")
def back_to_back():
    with steady_triton() as server:
        rate, wait = of(server, RATE, "tritonEndpoint"), of(server, WAIT, "tritonEndpoint")
        scaler().value(rate)
        time.sleep(2)
        for _ in range(5):
            got = scaler().value(rate)
            check(scaler().active(rate) is True, f"not active at {got}/s")
            check(near(got, 10, 0.35), f"{got}/s of 10")
            got = scaler().value(wait)
            check(scaler().active(wait) is True, f"not active at {got} ms")
            check(near(got, 80), f"{got} ms of 80")
            time.sleep(0.4)


@test("B 13 two triggers on one endpoint have their own windows, whoever asks first")
def two_triggers():
    with steady_triton() as server:
        rate, wait = of(server, RATE, "tritonEndpoint"), of(server, WAIT, "tritonEndpoint")
        check(scaler().value(rate) == 0 and scaler().value(wait) == 0, "the first answers are not 0")
        time.sleep(2)
        for first, second in ((rate, wait), (wait, rate)):
            got = [scaler().value(first), scaler().value(second)]
            values = got if first is rate else got[::-1]
            check(near(values[0], 10, 0.35) and near(values[1], 80), f"{values}")
            time.sleep(1)


@test("B 14 a stalled Triton: nothing ends while requests wait: the wait grows, and it is active")
def stalled():
    with PageServer(triton({"count": 1000, "queue_us": 80000, "pending": 40})) as server:
        metadata = of(server, WAIT, "tritonEndpoint")
        scaler().value(metadata)
        time.sleep(1)
        first = scaler().value(metadata)
        time.sleep(1)
        second = scaler().value(metadata)
        check(0 < first < second, f"{first} ms, then {second} ms")
        check(scaler().active(metadata) is True, "not active")
        depth = of(server, {"metricType": "requests_waiting", "targetValue": "5"}, "tritonEndpoint")
        check(scaler().value(depth) == 40, f"{scaler().value(depth)}")


@test("B 15 Triton's wait is that of a request, not of an item of its batch")
def batches():
    with PageServer(triton({"count": 100, "inferences": 800, "queue_us": 0})) as server:
        metadata = of(server, WAIT, "tritonEndpoint")
        scaler().value(metadata)
        server.page = triton({"count": 200, "inferences": 1600, "queue_us": 100 * 80000})
        check(near(scaler().value(metadata), 80), f"{scaler().value(metadata)} ms of 80")


@test("B 17 an agent that has just started does not make a busy Triton inactive: one page does not tell, and unknown is not idle")
def restarted_agent():
    with steady_triton() as server:
        for metadata in (of(server, RATE, "tritonEndpoint"), of(server, WAIT, "tritonEndpoint")):
            for _ in range(2):
                with Agent(None) as agent, Scaler(agent.address) as one:
                    one.value(metadata)
                    check(one.active(metadata) is True, one.explain(metadata))
    with PageServer(triton({"count": 1000})) as server, Agent(None) as agent, Scaler(agent.address) as one:
        metadata = of(server, RATE, "tritonEndpoint", activationWindow="5")
        check(one.active(metadata) is True, "idle by one page")
        wait_until(lambda: one.active(metadata) is False, "an idle server to be inactive", 15)


@test("B 16, 17 counters of another server, or of one that began anew, are no jump")
def another_server():
    with PageServer(triton({"count": 1000})) as server:
        metadata = of(server, {"metricType": "triton_request_rate", "targetValue": "10", "window": "60"}, "tritonEndpoint")
        scaler().value(metadata)
        time.sleep(1)
        server.page = triton({"count": 1010})
        before = scaler().value(metadata)
        check(0 < before <= 10.1, f"{before}/s")
        server.page = triton({"count": 3})  # a new process
        check(scaler().value(metadata) <= 14, f"{scaler().value(metadata)}/s")


@test("B 18 data-parallel ranks add up; the KV cache is the fullest one's")
def ranks():
    with PageServer(vllm_ranks([{"waiting": 40, "kv": 0.2}, {"waiting": 35, "kv": 0.9}, {"waiting": 30}, {}])) as server:
        check(scaler().value(of(server)) == 105, f"{scaler().value(of(server))}")
    with PageServer(vllm_ranks([{"kv": 0.2}, {"kv": 0.9}, {"kv": 0.0}])) as server:
        got = scaler().value(of(server, {"metricType": "vllm_kv_cache_usage", "targetValue": "80"}))
        check(near(got, 90), f"{got} %")
    with PageServer(vllm_ranks([{"waiting": 50, "model": "a", "engine": "0"}, {"model": "b", "engine": "0"}])) as server:
        check(scaler().value(of(server)) == 50, f"{scaler().value(of(server))}")


@test("B 19 the KV cache under its names of all versions")
def kv_names():
    for name in ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "vllm_kv_cache_usage_perc"):
        with PageServer(vllm(kv=0.97, running=3, kv_name=name)) as server:
            got = scaler().value(of(server, {"metricType": "vllm_kv_cache_usage", "targetValue": "80"}))
            check(near(got, 97), f"{name}: {got}")


@test("B 20 an HTML page with status 200 is an error and not 0")
def html():
    with PageServer(HTML) as server:
        for metadata in (of(server, DEPTH), of(server, RATE, "tritonEndpoint")):
            with refused("UNAVAILABLE"):
                scaler().value(metadata)
            check(code_of(scaler().active, metadata) == "UNAVAILABLE" or scaler().active(metadata), "idle by an HTML page")


@test("B 20 a page of something else names what was looked for and what is there")
def another_page():
    with PageServer(family("go_goroutines", "gauge", ({}, 12)) + family("http_requests_total", "counter", ({}, 3))) as server:
        text = scaler().explain(of(server))
        check("go_goroutines" in text, text)
        check(code_of(scaler().value, of(server)) in ("UNAVAILABLE", "FAILED_PRECONDITION"), "a value")
    with PageServer(sglang(running=3)) as server:  # an engine, without the signal that is asked for
        metadata = of(server, {"metricType": "queue_wait_ms", "targetValue": "50"})
        check(code_of(scaler().value, metadata) in ("UNAVAILABLE", "FAILED_PRECONDITION"), "a value")
        check("SGLang" in scaler().explain(metadata), scaler().explain(metadata))


@test("B 21 braces in labels, long lines, NaN")
def hard_lines():
    page = ("# TYPE vllm:num_requests_waiting gauge\n"
            'vllm:num_requests_waiting{engine="0",model_name="a}b\\"{c"} 42\n' +
            'long_metric{text="' + "x" * 60000 + '"} 1\n')
    with PageServer(page) as server:
        check(scaler().value(of(server)) == 42, f"{scaler().value(of(server))}")
    with PageServer(vllm(waiting="NaN", running=1)) as server:
        check(code_of(scaler().value, of(server)) != "OK", f"NaN is {code_of(scaler().value, of(server))}")


@test("B 47 64 clients at once: one page at a time and no crash")
def many_clients():
    with PageServer(vllm(waiting=14)) as server:
        server.fault, server.delay_s = "slow", 0.1

        def ask(_):
            with Scaler(the_agent().address) as one:
                return one.value(of(server)), one.active(of(server))
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            answers = set(pool.map(ask, range(64)))
        check(answers == {(14, True)}, f"{answers}")
        check(server.most_at_once == 1, f"{server.most_at_once} requests at once")
        check(server.n < 64, f"{server.n} requests for 128 answers")


@test("B 47 64 clients with an endpoint each")
def many_endpoints():
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(PageServer(vllm(waiting=i))) for i in range(64)]

        def ask(i):
            with Scaler(the_agent().address) as one:
                return one.value(of(servers[i]))
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            answers = list(pool.map(ask, range(64)))
        check(answers == list(range(64)), f"{answers}")


# ---- faults of pages: each costs its own trigger an answer, in bounded time, and nobody else anything ----

BOUND_S = 5.0


def misbehaves(prepare, *words):
    with PageServer(vllm(waiting=14, running=2)) as bad, PageServer(vllm(waiting=3)) as good:
        prepare(bad)
        waiting = threading.Event()
        seconds = []

        def ask_bad():
            start = time.monotonic()
            code, text = "OK", ""
            try:
                scaler().value(of(bad))
            except grpc.RpcError as error:
                code, text = error.code().name, error.details()
            seconds.append(time.monotonic() - start)
            waiting.set()
            return code, text
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(ask_bad)
            while not waiting.is_set():
                start = time.monotonic()
                check(scaler().value(of(good)) == 3, "the other endpoint has no value")
                check(time.monotonic() - start < 2, "the other endpoint waits for the bad one")
                waiting.wait(0.1)
            code, text = future.result()
        check(code == "UNAVAILABLE", f"{code}: {text}")
        for word in words:
            check(word in text, f"the text lacks {word!r}: {text}")
        check(seconds[0] < BOUND_S, f"took {seconds[0]:.1f} s")
        bad.fault, bad.status, bad.head, bad.length, bad.page = "", 200, (), None, vllm(waiting=14)
        wait_until(lambda: code_of(scaler().value, of(bad)) == "OK", "the page to be read again", 15)


def setting(**values):
    def prepare(server):
        for name, value in values.items():
            setattr(server, name, value)
    return prepare


for title, prepare_fault, words in (
        ("never answers", setting(fault="silent"), ()),
        ("never ends", setting(fault="endless"), ()),
        ("dribbles", setting(fault="dribble"), ()),
        ("ends in the middle", setting(fault="cut"), ()),
        ("is shorter than it says", setting(length=1000000), ()),
        ("says 401", setting(status=401), ("401",)),
        ("says 404", setting(status=404), ("404",)),
        ("says 503", setting(status=503), ("503",)),
        ("says 204", setting(status=204, page=""), ()),
        ("redirects", setting(status=302, head=("Location: http://127.0.0.1:1/metrics",)), ("302",)),
        ("is empty", setting(page=""), ()),
        ("is JSON", setting(page='{"waiting": 14}\n'), ()),
        ("is binary", setting(page="\x00\x01\x02" * 100), ())):
    add(f"a page that {title} is an error within {BOUND_S:g} s, and delays no other endpoint", misbehaves, prepare_fault,
        *words)


@test("a page that says a shorter length than it has is cut there: what is whole counts, or it is an error")
def short_length():
    with PageServer(vllm(waiting=14, running=2)) as server:
        server.length = 20
        check(code_of(scaler().value, of(server)) == "UNAVAILABLE", "a value from a cut page")


@test("a redirect is not followed")
def no_redirects():
    with PageServer(vllm(waiting=99)) as target, PageServer("") as server:
        for status in (301, 302, 303, 307, 308):
            server.status, server.head = status, (f"Location: {target.url}",)
            with refused("UNAVAILABLE", str(status)):
                scaler().value(of(server))
        check(target.n == 0, f"{target.n} requests to the target")


@test("a page of 20 MB is refused without being held in memory")
def large_page():
    agent = the_agent()
    line = 'other_metric{n="%d",text="' + "x" * 200 + '"} 1\n'
    with PageServer("".join(line % i for i in range(90000)) + vllm(waiting=14)) as server:
        before = agent.rss_kb()
        with refused("UNAVAILABLE"):
            scaler().value(of(server))
        check(agent.rss_kb() - before < 30000, f"{agent.rss_kb() - before} kB more")


# ---- what people see ----


@test("the explanation names the endpoint, the engine and what it says")
def explained():
    with PageServer(vllm(waiting=14, running=3, kv=0.5)) as server:
        text = scaler().explain(of(server))
        for word in (server.url, "vLLM", "14"):
            check(word in text, f"lacks {word!r}: {text}")


@test("StreamIsActive wakes when a request comes to wait")
def stream_wakes():
    with PageServer(vllm()) as server:
        metadata = of(server, DEPTH, pollIntervalSeconds="1", activationWindow="0")
        check(scaler().active(metadata) is False, "active without a request")
        stream = scaler().stream_active(metadata, timeout=60)
        got = []
        thread = threading.Thread(target=lambda: got.append(_first(stream)), daemon=True)
        thread.start()
        wait_until(lambda: server.n >= 3, "the page to be read again and again")
        check(not got, f"{got} while nothing waits")
        server.page = vllm(waiting=1)
        wait_until(lambda: got, "the stream to wake")
        check(got == [True], f"{got}")
        stream.cancel()


def _first(stream):
    try:
        return next(stream).result
    except grpc.RpcError as error:
        return error.code().name


@test("/metrics counts fetches by their outcome, and ?verbose shows the pages")
def own_metrics():
    with PageServer(vllm(waiting=14)) as server, Agent(None) as agent, Scaler(agent.address) as one:
        one.value(of(server))
        server.status = 404
        code_of(one.value, of(server))
        page = agent.page()
        check(agent.metric("keda_gpu_scaler_engine_scrapes_total") >= 2, f"{page.get('keda_gpu_scaler_engine_scrapes_total')}")
        check(len(page["keda_gpu_scaler_engine_scrapes_total"]) >= 2, "one outcome")
        check(agent.metric("keda_gpu_scaler_engine_pages") == 1, f"{page.get('keda_gpu_scaler_engine_pages')}")
        text = agent.get("/readyz?verbose", port=agent.probe_port)[2].decode()
        check("pages" in text, text)


__all__ = ["code_of", "of", "scaler", "stop_agent", "the_agent"]
