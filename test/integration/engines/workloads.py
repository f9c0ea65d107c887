"""A hub and workloads whose pods have metrics pages: whose requests count, what a page that fails may change (never
down), what wakes at zero, several signals, profiles by page and by GPU, and what people are told."""
import contextlib
import json
import pathlib
import subprocess
import tempfile
import time

from agent import PROGRAM, TestFailure, check, wait_until
from cluster import make_deployment, make_scaled_object
from models import Model, Models, free_address, one_model, trigger
from pages import HTML, PageServer, family, sglang, tgi, triton, vllm, vllm_ranks
from scaler import refused
from suite import add, test


def near(want, tolerance=0.5):
    return lambda got: not isinstance(got, str) and abs(got - want) <= tolerance


# ---- additive signals ----


@test("requests add up over the workload's pods, and any of them is activity")
def additive():
    with one_model(10, 20, 30) as model:
        ask = model.ask(model.cluster.hub())
        ask.until(60, model.metadata)
        check(ask.active(model.metadata) is True, "not active")
        model.play(vllm(), vllm(), vllm())
        ask.until(0, model.metadata)
        wait_until(lambda: ask.active(model.metadata) is False, "inactive")
        model.play(vllm(), vllm(running=1), vllm())
        wait_until(lambda: ask.active(model.metadata) is True, "active by a running request")


@test("waiting requests double the replicas in one step")
def doubling():
    with one_model(5, 5) as model:
        ask = model.ask(model.cluster.hub())
        ask.until(10, model.metadata)
        model.play(vllm(waiting=10, running=8), vllm(waiting=10, running=8))
        ask.until(20, model.metadata)
        check("4" in ask.explain(model.metadata), ask.explain(model.metadata))


@test("a page that is gone holds the count; what the others have asks for more by itself")
def dead_page():
    with one_model(20, 20, 20, metadata=trigger(target=20)) as model:
        ask = model.ask(model.cluster.hub())
        ask.until(60, model.metadata)
        model.kill(2)
        ask.stays(60, 12, model.metadata)
        check(ask.active(model.metadata) is True, "not active: unknown is not idle")
        model.play(vllm(waiting=1), vllm(waiting=1))
        ask.until(22, model.metadata)  # a server that cannot be seen may have what it had: not less than one replica
        ask.stays(22, 3, model.metadata)
        text = ask.explain(model.metadata)
        check(model.server(2).url in text and "missing" in text, text)
        model.play(vllm(waiting=100, running=9), vllm(waiting=100, running=9))
        ask.until(200, model.metadata)
        model.play(vllm(waiting=1), vllm(waiting=1))
        model.revive(2, vllm(waiting=1))
        ask.until(3, model.metadata)


def faulty_page(prepare, *words):
    """One of three pods has a page of no use from now on: nothing else is answered, and the reason is told."""
    with one_model(20, 20, 20, metadata=trigger(target=20)) as model:
        ask = model.ask(model.cluster.hub())
        ask.until(60, model.metadata)
        prepare(model.server(1))
        ask.stays(60, 9, model.metadata)
        wait_until(lambda: "1 missing" in ask.explain(model.metadata), "the pod to be missing")
        text = ask.explain(model.metadata)
        for word in (model.server(1).url, *words):
            check(word in text, f"lacks {word!r}: {text}")
        check(ask.active(model.metadata) is True, "not active")


def setting(**values):
    def prepare(server):
        for name, value in values.items():
            setattr(server, name, value)
    return prepare


for title, prepare_fault, words in (
        ("says 404", setting(status=404), ("404",)), ("says 401", setting(status=401), ("401",)),
        ("is HTML", setting(page=HTML), ()), ("is empty", setting(page=""), ()), ("never answers", setting(fault="silent"), ()),
        ("never ends", setting(fault="endless"), ()), ("dribbles", setting(fault="dribble"), ()),
        ("lies about its length", setting(length=10 ** 6), ()),
        ("redirects", setting(status=302, head=("Location: http://127.0.0.1:1/",)), ("302",))):
    add(f"a pod whose page {title} is missing: the count stays, never down", faulty_page, prepare_fault, *words)


@test("two models in one namespace do not mix, nor do namespaces")
def no_mixing():
    with Models() as cluster:
        big = Model(cluster, "big", [vllm(waiting=50, running=5), vllm(waiting=50, running=5)])
        small = Model(cluster, "small", [vllm(waiting=1, running=1)])
        other = Model(cluster, "big", [vllm(waiting=7, running=1)], ns="other")
        hub = cluster.hub()
        for model, want in ((big, 100), (small, 1), (other, 7)):
            model.ask(hub).until(want, model.metadata)


@test("a pod that is not Ready yet, terminating or of a finished phase is not asked for")
def whose_pages():
    with one_model(10) as model:
        model.add("loads", vllm(waiting=500), ready_s=None, created_s=20)
        ask = model.ask(model.cluster.hub())
        ask.until(10, model.metadata)
        ask.stays(lambda got: not isinstance(got, str) and got < 100, 3, model.metadata)
        check(model.servers["loads"].n == 0, f"{model.servers['loads'].n} requests to a pod that loads")


@test("the engine's own page says which engine it is: SGLang, TGI and Triton in one workload")
def engines_mixed():
    with Models() as cluster:
        pages = [sglang(waiting=3, running=1), tgi(waiting=4, batch=2), triton({"count": 5, "pending": 6}), vllm(waiting=7)]
        model = Model(cluster, "mixed", pages)
        ask = model.ask(cluster.hub())
        ask.until(20, model.metadata)
        wait_until(lambda: all(word in ask.explain(model.metadata) for word in ("SGLang", "TGI", "Triton", "vLLM")),
                   "all engines in the explanation")


@test("data-parallel ranks of a pod add up")
def ranks():
    with Models() as cluster:
        model = Model(cluster, "ranks", [vllm_ranks([{"waiting": 40}, {"waiting": 35}, {"waiting": 30}, {}])])
        model.ask(cluster.hub()).until(105, model.metadata)


@test("a metric that the user names: a gauge as it is, a counter as a rate")
def custom_metric():
    def counted(start=time.monotonic()):
        return family("my_requests_total", "counter", ({"path": "/a"}, int(20 * (time.monotonic() - start)))) + \
            family("my_queue", "gauge", ({"shard": "0"}, 3), ({"shard": "1"}, 4))
    with Models() as cluster:
        gauge = Model(cluster, "gauge", [counted, counted], trigger("engine_metric", engineMetric="my_queue"))
        counter = Model(cluster, "counter", [counted, counted], trigger("engine_metric", 10, engineMetric="my_requests_total",
                                                                        window=10))
        hub = cluster.hub()
        gauge.ask(hub).until(14, gauge.metadata)
        wait_until(lambda: near(40, 4)(counter.ask(hub).answer(counter.metadata)), "40 requests/s of two pods")


@test("a latency is the mean over the pods' requests, not over the pods")
def latency():
    start = time.monotonic()

    def page(rate, wait_ms):
        def text():
            count = int(1000 + rate * (time.monotonic() - start))
            return triton({"count": count, "queue_us": int(count * wait_ms * 1000)})
        return text
    with Models() as cluster:
        model = Model(cluster, "triton", [page(90, 100), page(10, 500)], trigger("queue_wait_ms", 100, window=10), target=100)
        ask = model.ask(cluster.hub())
        # the mean of a request is 140 ms; 2 pods: 280
        try:
            wait_until(lambda: near(280, 15)(ask.answer(model.metadata)), "140 ms a request")
        except TestFailure as failure:
            raise TestFailure(f"{failure}; {ask.why(model.metadata)}") from None


# ---- where a page is ----


def found_at(ports, annotations, metadata, path="/metrics"):
    with Models() as cluster:
        model = Model(cluster, "llm", [], metadata, replicas=1)
        address = free_address()
        server = cluster.enter(PageServer(vllm(waiting=12, running=1), address=address, port=model.port))
        filled = [{**one, "containerPort": model.port if one["containerPort"] == "PORT" else one["containerPort"]}
                  for one in ports]
        model.metadata.update({key: str(model.port) for key, value in model.metadata.items() if value == "PORT"})
        cluster.kube.put(make_scaled_object(model.ns, model.name, model.metadata))
        model.put("llm-0", address, ports=filled,
                  annotations={key: str(model.port) if value == "PORT" else value for key, value in annotations.items()})
        model.ask(cluster.hub()).until(12, model.metadata)
        check(all(asked == path for asked, _ in server.requests), f"{server.requests[:3]}")


SSH = {"name": "ssh", "containerPort": 22}
for title, *where in (
        ("the container port named metrics", [SSH, {"name": "metrics", "containerPort": "PORT"}], {}, {}),
        ("the container port named http", [SSH, {"name": "http", "containerPort": "PORT"}], {}, {}),
        ("prometheus.io/port", [SSH, {"name": "http", "containerPort": 9}], {"prometheus.io/port": "PORT"}, {}),
        ("prometheus.io/path", [{"name": "http", "containerPort": "PORT"}], {"prometheus.io/path": "/stats"}, {}, "/stats"),
        ("enginePort and enginePath before all else", [{"name": "metrics", "containerPort": 9}],
         {"prometheus.io/port": "9", "prometheus.io/path": "/no"}, {"enginePort": "PORT", "enginePath": "/own"}, "/own")):
    def find(ports, annotations, keys, path="/metrics"):
        found_at(ports, annotations, {**trigger(), **keys}, path)
    add(f"a pod's page is found at {title}", find, *where)


@test("vllmEndpoint in scope workload is a hint: each pod's own page at its port and path")
def endpoint_hint():
    with Models() as cluster:
        model = Model(cluster, "llm", [], replicas=2)
        model.metadata = trigger(vllmEndpoint=f"http://llm.ml:{model.port}/v2/metrics")
        cluster.kube.put(make_scaled_object(model.ns, model.name, model.metadata))
        for number, waiting in enumerate((4, 5)):
            address = free_address()
            server = cluster.enter(PageServer(vllm(waiting=waiting, running=1), address=address, port=model.port))
            model.servers[f"llm-{number}"] = server
            model.put(f"llm-{number}", address, ports=[])
        ask = model.ask(cluster.hub())
        ask.until(9, model.metadata)
        check(all(path == "/v2/metrics" for path, _ in model.server(0).requests), f"{model.server(0).requests[:2]}")


@test("the bearer token goes to pods, changed ones too, and never to an endpoint")
def token():
    with one_model(4, 5) as model:
        cluster = model.cluster
        path = cluster.enter(_folder()) / "token"
        path.write_text("first\n")
        router = cluster.enter(PageServer(family("queue", "gauge", ({}, 0))))
        waking = Model(cluster, "waking", [], trigger(wakeEndpoint=router.url, wakeMetric="queue"))
        hub = cluster.hub(f"--engine-token-file={path}", "--engine-token-plain")
        model.ask(hub).until(9, model.metadata)
        check(all(h.get("authorization") == "Bearer first" for _, h in model.server(0).requests), "no token at a pod")
        waking.ask(hub).until(0, waking.metadata)
        wait_until(lambda: router.n > 0, "the router's page to be asked for")
        check(all("authorization" not in headers for _, headers in router.requests), "a token at an endpoint")
        path.write_text("second\n")
        hub.signal(1)
        wait_until(lambda: model.server(0).requests[-1][1].get("authorization") == "Bearer second", "the new token")


@contextlib.contextmanager
def _folder():
    with tempfile.TemporaryDirectory(prefix="kgs-") as name:
        yield pathlib.Path(name)


# ---- how often ----


@test("a page is read as often as the windows need, by one connection, and no more once nobody asks")
def how_often():
    with one_model(4, metadata=trigger(window=15)) as model:
        server = model.server(0)
        model.ask(model.cluster.hub()).until(4, model.metadata)
        before = server.n
        time.sleep(12)
        count = server.n - before
        check(1 <= count <= 4, f"{count} fetches in 12 s at one each 5 s")
        check(server.most_at_once == 1 and server.connections <= 4, f"{server.connections} connections")


@test("workloads that scale on GPUs have no page read")
def gpu_only():
    with one_model(4, metadata=trigger("gpu_utilization")) as model:
        hub = model.cluster.hub()
        model.ask(hub).answer(model.metadata)
        time.sleep(4)
        check(model.server(0).n == 0, f"{model.server(0).n} requests")


# ---- a hub that has just started ----


@test("a hub that has just started says not yet, or holds, until the pages' first fetches; never less")
def fresh_hub():
    with one_model(20, 20, 20, metadata=trigger(target=20)) as model:
        model.server(1).fault, model.server(1).delay_s = "slow", 1.0
        hub = model.cluster.hub(wait=False)
        ask = model.ask(hub)
        ask.stays(lambda got: got == "UNAVAILABLE" or near(60)(got), 10, model.metadata)
        check(near(60)(ask.answer(model.metadata)), f"{ask.answer(model.metadata)}")
        other = model.cluster.hub()
        other_ask = other.ask(model.ns, model.name)
        other_ask.until(60, model.metadata)


@test("two hubs give the same answer")
def two_hubs():
    with one_model(11, 22, 33) as model:
        hubs = [model.cluster.hub(), model.cluster.hub()]
        for hub in hubs:
            model.ask(hub).until(66, model.metadata)


@test("a page that was never read may hold anything: idle neighbours that were read first take nothing away")
def unread_page():
    with one_model(0, 0, 60, metadata=trigger(target=20)) as model:
        model.server(2).fault, model.server(2).delay_s = "slow", 2.5
        hub = model.cluster.hub(wait=False)
        ask = model.ask(hub)
        ask.stays(lambda got: got == "UNAVAILABLE" or near(60)(got), 10, model.metadata)


# ---- from zero ----


@test("at zero replicas wakeEndpoint and wakeMetric decide about activity; the value is 0")
def wake():
    with Models() as cluster:
        router = cluster.enter(PageServer(family("router_queue", "gauge", ({"model": "a"}, 0), ({"model": "b"}, 0))))
        metadata = trigger(wakeEndpoint=router.url, wakeMetric="router_queue")
        model, hub = Model(cluster, "llm", [], metadata), cluster.hub()
        ask = model.ask(hub)
        ask.until(0, metadata)
        wait_until(lambda: _active(ask, metadata) is False, "inactive with an empty queue")
        router.page = family("router_queue", "gauge", ({"model": "a"}, 0), ({"model": "b"}, 2))
        wait_until(lambda: _active(ask, metadata) is True, "active with a queue")
        check(ask.answer(metadata) == 0, f"{ask.answer(metadata)}")
        check("router_queue" in ask.explain(metadata), ask.explain(metadata))
        router.status = 503
        wait_until(lambda: _active(ask, metadata) == "UNAVAILABLE", "unknown where the router's page is away", 60)
        check("503" in ask.explain(metadata), ask.explain(metadata))
        check("503" in hub.text("workloads"), hub.text("workloads"))


def _active(ask, metadata):
    try:
        return ask.active(metadata)
    except Exception as error:  # pylint: disable=broad-except
        return error.code().name if hasattr(error, "code") else repr(error)


@test("at zero replicas a counter wakes by its increase")
def wake_counter():
    count = [100]
    with Models() as cluster:
        router = cluster.enter(PageServer(lambda: family("router_requests_total", "counter", ({}, count[0]))))
        metadata = {**trigger(wakeEndpoint=router.url, wakeMetric="router_requests_total"), "activationWindow": "60"}
        model = Model(cluster, "llm", [], metadata)
        ask = model.ask(cluster.hub())
        ask.until(0, metadata)
        wait_until(lambda: _active(ask, metadata) is False, "inactive without requests")
        count[0] += 5
        wait_until(lambda: _active(ask, metadata) is True, "active by new requests")


@test("from zero to one and on: the pod's page takes over from the router's")
def zero_to_one():
    with Models() as cluster:
        router = cluster.enter(PageServer(family("queue", "gauge", ({}, 3))))
        metadata = trigger(wakeEndpoint=router.url, wakeMetric="queue")
        model = Model(cluster, "llm", [], metadata)
        ask = model.ask(cluster.hub())
        wait_until(lambda: _active(ask, metadata) is True, "active by the router")
        cluster.kube.put(make_deployment("ml", "llm", 1))
        model.add("llm-0", vllm(waiting=25, running=2))
        ask.until(25, metadata)
        router.page = family("queue", "gauge", ({}, 0))
        check(ask.active(metadata) is True, "not active with waiting requests")


# ---- several signals ----


@test("several signals: the busiest relative to its target decides; one in error never lets go")
def several():
    metadata = {**trigger("requests_in_flight,kv_cache_usage"), "targetValue": "16,80"}
    with Models() as cluster:
        pages = [vllm(running=8, kv=0.9), vllm(running=8, kv=0.9)]
        model = Model(cluster, "llm", pages, metadata, target=100)
        ask = model.ask(cluster.hub())
        check(ask.spec(metadata)[1] == 100, f"{ask.spec(metadata)}")
        ask.until(225, metadata)  # 180 of 80, against 16 of 16
        model.play(vllm(running=40, kv=0.2), vllm(running=40, kv=0.2))
        ask.until(500, metadata)  # 80 of 16
        text = ask.explain(metadata)
        check("requests_in_flight" in text and "kv_cache_usage" in text, text)
        without_kv = family("vllm:num_requests_running", "gauge", ({"engine": "0"}, 1)) + \
            family("vllm:num_requests_waiting", "gauge", ({"engine": "0"}, 0))
        model.play(without_kv, without_kv)
        ask.until(200, metadata)  # in flight asks for one, the cache is unknown: the count stays
        ask.stays(200, 3, metadata)


# ---- profiles ----

VLLM = {"scalerAddress": trigger()["scalerAddress"], "profile": "vllm-inference", "metricName": "load", "window": "0",
        "activationWindow": "0"}


@test("profile vllm-inference by the pods' pages: the KV cache in use, and demand beyond it")
def profile_by_page():
    with Models() as cluster:
        model = Model(cluster, "llm", [vllm(kv=0.5, running=3), vllm(kv=0.3, running=1)], VLLM, target=80)
        ask = model.ask(cluster.hub())
        ask.until(80, VLLM)
        model.play(vllm(kv=0.9, running=10, waiting=10), vllm(kv=0.5, running=3))
        ask.until(250, VLLM)  # 200 and 50
        model.play(vllm(kv=0.9, running=10, waiting=500), vllm(kv=0.9, running=10, waiting=500))
        ask.until(400, VLLM)  # at most 200 each
        text = ask.explain(VLLM)
        check("pages" in text and model.server(0).url in text, text)
        model.kill(0)
        model.play(vllm(), vllm(kv=0.1, running=1))
        ask.until(160, VLLM)  # one is unknown: the count stays
        ask.stays(160, 6, VLLM)


@test("profile vllm-inference by the GPUs where no page can be read: the explanation says what to open")
def profile_by_gpu():
    with Models([{"utilization": 30, "memory_used_mib": 73000}]) as cluster:
        model = Model(cluster, "llm", [], VLLM, target=80, replicas=1)
        address = free_address()
        model.put("llm-0", address)
        cluster.nodes[0].holds("ml", "llm-0", 0)
        cluster.start_agents()
        hub = cluster.hub()
        ask = model.ask(hub)
        wait_until(lambda: not isinstance(ask.answer(VLLM), str), "a value")
        text = ask.explain(VLLM)
        check("GPU" in text and str(model.port) in text, text)
        cluster.enter(PageServer(vllm(kv=0.4, running=2), address=address, port=model.port))  # somebody opens it
        ask.until(40, VLLM)


@test("profile vllm-inference: pages at once, whatever the order of their first fetches")
def profile_fresh():
    with Models() as cluster:
        model = Model(cluster, "llm", [vllm(kv=0.8, running=3), vllm(kv=0.8, running=3), vllm(kv=0.8, running=3)], VLLM, target=80)
        model.server(0).status = 503
        hub = cluster.hub(wait=False)
        ask = model.ask(hub)
        ask.stays(lambda got: got == "UNAVAILABLE" or near(240)(got), 8, VLLM)


# ---- the URL itself ----


@test("scope cluster with vllmEndpoint: that page itself, read inside the call")
def scope_cluster():
    with Models() as cluster:
        server = cluster.enter(PageServer(vllm(waiting=14, running=1)))
        metadata = {"scope": "cluster", "metricType": "vllm_queue_depth", "targetValue": "5", "vllmEndpoint": server.url}
        ask = cluster.hub().ask("ml", "anything")
        check(ask.answer(metadata) == 14, ask.why(metadata))
        server.page = vllm(waiting=15, running=1)
        check(ask.answer({**metadata, "window": "0"}) == 15, "not from a page of this call")
        server.close()
        wait_until(lambda: ask.answer(metadata) == "UNAVAILABLE", "no value of a page that is gone", 60)
        with refused("INVALID_ARGUMENT", "vllmEndpoint"):
            ask.value({**metadata, "vllmEndpoint": "http://169.254.169.254/"})


@test("a bare name is one of the asker's namespace, for a question about no ScaledObject too")
def bare_name():
    with Models() as cluster:
        ask = cluster.hub(env={"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}).ask("ml", "anything")
        with refused("UNAVAILABLE", "http://nowhere.ml.svc:8000/metrics"):
            ask.value({"scope": "cluster", "metricType": "vllm_queue_depth", "targetValue": "5",
                       "vllmEndpoint": "http://nowhere:8000/metrics"})


# ---- what people see ----


@test("the API shows the workload as the explanation does; /readyz and /metrics show the pages, without one series a pod")
def shown():
    with one_model(10, 20, 30) as model:
        hub = model.cluster.hub()
        model.ask(hub).until(60, model.metadata)
        rows = hub.api("workloads")["workloads"]
        check([t["value"] for row in rows for t in row["triggers"]] == [60], f"{rows}")
        whole = hub.text("workloads/ml/llm")
        for number in range(3):
            check(model.server(number).url in whole, whole)
        check("vLLM" in whole, whole)
        check("pages" in hub.get("/readyz?verbose", port=hub.probe_port)[2].decode(), "no pages in ?verbose")
        page = hub.page()
        check(hub.metric("keda_gpu_scaler_engine_pages") == 3, f"{page.get('keda_gpu_scaler_engine_pages')}")
        check(hub.metric("keda_gpu_scaler_engine_scrapes_total") >= 3, "no scrapes")
        grown = [name for name, series in page.items() if name.startswith("keda_gpu_scaler_engine") and len(series) > 40]
        check(not grown, f"{grown}")


@test("a pod that went takes its page along: nobody asks a dead address for long")
def gone_pod():
    with one_model(10, 20) as model:
        hub = model.cluster.hub()
        ask = model.ask(hub)
        ask.until(30, model.metadata)
        model.cluster.kube.put(make_deployment("ml", "llm", 1))
        model.cluster.kube.delete("pods", "ml", "llm-1")
        ask.until(10, model.metadata)
        wait_until(lambda: hub.metric("keda_gpu_scaler_engine_pages") == 1, "the page to be forgotten", 100)


@test("`explain` and the API as JSON name each pod's page, what it says and why it says nothing")
def commands():
    with one_model(10, 20) as model:
        hub = model.cluster.hub()
        ask = model.ask(hub)
        ask.until(30, model.metadata)
        model.server(1).status = 404
        wait_until(lambda: "404" in ask.explain(model.metadata), "the failing page in the explanation")
        done = subprocess.run([PROGRAM, "explain", "ml/llm", "--hub", f"127.0.0.1:{hub.metrics_port}"], capture_output=True, text=True,
                              timeout=30, check=False)
        check(done.returncode == 0 and all(model.server(i).url in done.stdout for i in (0, 1)), f"{done}")
        check("404" in done.stdout and "vLLM" in done.stdout, done.stdout)
        text = json.dumps(hub.api("workloads/ml/llm"))
        check(all(model.server(i).url in text for i in (0, 1)) and "404" in text, text)


@test("KEDA's push: true once when requests come to the workload's pods")
def push():
    with one_model(0, 0) as model:
        ask = model.ask(model.cluster.hub())
        ask.until(0, model.metadata)
        wait_until(lambda: ask.active(model.metadata) is False, "inactive")
        stream = ask.stream_active({**model.metadata, "pollIntervalSeconds": "1"}, timeout=60)
        model.play(vllm(), vllm(waiting=3))
        check(next(iter(stream)).result is True, "not true")
        stream.cancel()


@test("of a LeaderWorkerSet's group only the leader has a page")
def leader_workers():
    with Models() as cluster:
        model = Model(cluster, "llm", [], replicas=2)
        for group, waiting in enumerate((4, 5)):
            for worker in range(3):
                labels = {"leaderworkerset.sh/group-index": str(group), "leaderworkerset.sh/worker-index": str(worker)}
                address = free_address()
                if worker == 0:
                    model.servers[f"llm-{group}"] = cluster.enter(PageServer(vllm(waiting=waiting), address=address, port=model.port))
                model.put(f"llm-{group}-{worker}", address, labels=labels)
        model.ask(cluster.hub()).until(9, model.metadata)


@test("a pod that is replaced: its successor's page at another address counts, and its own past does not")
def replaced():
    with one_model(10, 20, metadata=trigger(window=10)) as model:
        kube, ask = model.cluster.kube, model.ask(model.cluster.hub())
        ask.until(30, model.metadata)
        kube.delete("pods", "ml", "llm-1")
        model.servers["llm-1"].close()
        model.add("llm-1", vllm(waiting=2, running=1), ready_s=60, created_s=80)
        ask.until(12, model.metadata)


@test("with the API away the pages are read all the same")
def api_away():
    with one_model(10, 20) as model:
        ask = model.ask(model.cluster.hub())
        ask.until(30, model.metadata)
        model.cluster.kube.fault(status=503)
        model.play(vllm(waiting=15), vllm(waiting=25))
        ask.until(40, model.metadata)  # pages are read all the same


@test("certificate and token files that are refused are logged once, and the ones before stay")
def refused_files():
    with one_model(4) as model, _folder() as folder:
        path = folder / "token"
        path.write_text("first\n")
        hub = model.cluster.hub(f"--engine-token-file={path}", "--engine-token-plain")
        model.ask(hub).until(4, model.metadata)
        path.unlink()
        hub.signal(1)
        wait_until(lambda: "files are refused" in hub.log(), "a line in the log")
        time.sleep(2.5)
        check(hub.log().count("files are refused") == 1, hub.log())
        count = model.server(0).n
        wait_until(lambda: model.server(0).n > count + 1, "more requests")
        check(model.server(0).requests[-1][1].get("authorization") == "Bearer first", f"{model.server(0).requests[-1]}")
        path.write_text("second\n")
        hub.signal(1)
        wait_until(lambda: "in use again" in hub.log(), "the other line")
