"""Model servers that take all memory at start and keep a GPU busy with one request: what their own pages say decides."""

import time

from rig.scenario import scenario

from .common import is_close

_STEADY_S = 10


def _profile(hub, **keys):
    """The documents' own trigger; only the windows are as short as the scenarios' waits."""
    return {"scalerAddress": hub.address, "profile": "vllm-inference", "window": "4", "activationWindow": "5", **keys}


def _engine(hub, metric, target, **keys):
    return {"scalerAddress": hub.address, "metricType": metric, "targetValue": target, "window": "4",
            "activationWindow": "5", **keys}


def _servers(context, nodes=3, gpus=4):
    """Nodes whose pods fill 90 % of a GPU's memory when they start."""
    for node in context.nodes(nodes, gpus=gpus):
        node.preallocates = 90
    return context.hub()


def _counted(hub, workload):
    return hub.explain(workload.namespace, workload.name).count(": measured,")


def _settles(context, workload, count):
    """A rise leaves a backlog, which asks for more until it is worked off; what remains needs so many, and stays."""
    since = []

    def is_settled(view):
        if view.replicas != count or len(context.pods.serving(workload.name)) != count:
            since.clear()
        else:
            since.append(time.monotonic())
        return since and since[-1] - since[0] >= _STEADY_S
    context.until(f"{count} replicas for {_STEADY_S} s", is_settled, 150, of=workload)


@scenario("vLLM with preallocated memory, profile vllm-inference: idle stays at one, demand ends at the right count, and back")
def vllm_profile(context):
    hub = _servers(context)
    workload = context.workload(gpus=1)
    traffic = context.traffic(workload, 0)
    context.until_served(workload, 1)
    workload.scale(_profile(hub), maximum=12)
    context.until("Ready=True with 1 idle replica", lambda v: v.ready == "True" and v.hpa and v.replicas == 1)
    context.holds("1 replica although 90 % of the memory is in use", lambda v: v.replicas == 1, 10)
    context.note("15 requests a second; four replicas have 75 % of their KV cache in use then")
    traffic.requests = 15
    context.until("4 replicas or more", lambda v: v.replicas >= 4)
    _settles(context, workload, 4)
    context.note("no requests")
    traffic.requests = 0
    context.until("1 replica", lambda v: v.replicas == 1)


@scenario("vLLM to zero: idle pods go although their memory is full, and the router's page wakes them")
def vllm_zero(context):
    hub = _servers(context)
    router = context.workload(name="router")
    arrivals = context.traffic(router, 0, slots=1, service_rate=10)
    context.until_served(router, 1)
    address = context.pods.of("router")[0].ip
    workload = context.workload(gpus=1, name="model", replicas=2)
    traffic = context.traffic(workload, 6)
    context.until_served(workload, 2)
    workload.scale(_profile(hub, wakeEndpoint=f"http://{address}:8000/metrics", wakeMetric="vllm:num_requests_waiting"),
                   minimum=0)
    context.until("2 replicas in use", lambda v: v.ready == "True" and v.hpa and v.replicas == 2, of=workload)
    context.note("no requests")
    traffic.requests = 0
    context.until("no replica", lambda v: v.replicas == 0, of=workload)
    context.holds("no replica", lambda v: v.replicas == 0, 6, of=workload)
    context.note("requests wait at the router")
    arrivals.requests = 20
    context.until("a replica", lambda v: v.replicas >= 1, of=workload)
    arrivals.requests, traffic.requests = 0, 6
    _settles(context, workload, 2)


@scenario("a pod whose page is dead: no scale-down without it, though the others are nearly idle; its return ends the hold")
def dead_page(context):
    hub = _servers(context)
    workload = context.workload(gpus=1, replicas=4)
    traffic = context.traffic(workload, 14)
    context.until_served(workload, 4)
    workload.scale(_profile(hub))
    context.until("4 replicas", lambda v: v.hpa and v.value is not None and v.replicas == 4)
    context.wait_for("4 pages to be read", lambda: _counted(hub, workload) == 4)
    context.note("one page answers 503")
    dead = context.pods.of(workload.name)[0]
    context.pods.engines.strike(dead, fault="status", code=503)
    context.wait_for("3 pages to be read", lambda: _counted(hub, workload) == 3)
    context.note("demand for 3")
    traffic.requests = 8
    context.holds("4 replicas while one is unknown", lambda v: v.replicas == 4, 15)
    context.expect("503" in hub.explain(workload.namespace, workload.name), "the explanation to say why")
    context.note("the page is back")
    context.pods.engines.strike(dead)
    context.until("fewer replicas", lambda v: v.replicas in (2, 3))


@scenario("requests that wait double the replicas in one step; a KV cache near full without a queue grows by one")
def queue_and_cache(context):
    hub = _servers(context)
    waiting, full = context.workload(gpus=1, name="waiting", replicas=2), context.workload(gpus=1, name="full", replicas=2)
    queue = context.traffic(waiting, 6)
    cache = context.traffic(full, 6, slots=32, service_rate=8)
    context.until_served(waiting, 2)
    context.until_served(full, 2)
    # The newest page alone: a window would show the burst bit by bit.
    waiting.scale(_profile(hub, window="0"), maximum=4)
    full.scale(_profile(hub), maximum=4)
    for workload in (waiting, full):
        context.until("2 replicas at 60 %", lambda v: v.hpa and is_close(v.value, 120) and v.replicas == 2, of=workload)
    context.note("95 % of the cache in use in one, a burst in the other: 16 places, and thousands wait")
    cache.requests, queue.requests = 9.5, 20000  # so many that no page can show the beginning of it
    context.until("4 replicas by the queue", lambda v: v.replicas == 4, of=waiting)
    context.expect(context.trace.replicas["waiting"] == [2, 4], f"2, then 4, got {context.trace.replicas['waiting']}")
    queue.requests = 6
    context.until("3 replicas by the cache", lambda v: v.replicas == 3, of=full)
    context.holds("3 replicas by the cache", lambda v: v.replicas == 3, 8, of=full)


@scenario("two models in one namespace do not mix: each follows the requests of its own pods, SGLang beside vLLM")
def two_models(context):
    hub = _servers(context, nodes=3, gpus=5)
    first, second = context.workload(gpus=1, name="chat"), context.workload(gpus=1, name="code", replicas=2)
    chat = context.traffic(first, 1)
    code = context.traffic(second, 2, engine="sglang", port=30000, tensor_ranks=2)
    context.until_served(first, 1)
    context.until_served(second, 2)
    first.scale(_engine(hub, "requests_in_flight", "8"))
    second.scale(_engine(hub, "requests_in_flight", "8", enginePort="30000"))
    context.until("1 replica of one", lambda v: v.hpa and v.replicas == 1, of=first)
    context.until("1 replica of the other", lambda v: v.hpa and v.replicas == 1, of=second)
    context.note("traffic for 5 of the first: 9 requests a second, each of 4 seconds, 8 a replica")
    chat.requests = 9
    _settles(context, first, 5)
    context.expect(context.trace.replicas["code"] == [2, 1], "the second to stay at 1")
    context.note("traffic for 3 of the second")
    code.requests = 5
    _settles(context, second, 3)
    context.expect(first.view().replicas == 5, "the first to stay at 5")


@scenario("two signals in one trigger: the busier one relative to its target decides, first the cache, then the requests")
def two_signals(context):
    hub = _servers(context)
    workload = context.workload(gpus=1, replicas=2)
    # 4 seconds a request: 3 a second and pod are 12 in flight, 60 % of the cache.
    traffic = context.traffic(workload, 6, slots=32, service_rate=8)
    context.until_served(workload, 2)
    workload.scale(_engine(hub, "requests_in_flight,kv_cache_usage", "24,40"))
    _settles(context, workload, 3)  # by the cache: 120 of 40 %
    context.expect("kv_cache_usage" in hub.explain(workload.namespace, workload.name), "the explanation to name the signal")
    context.note("the target of the cache is raised: 24 requests of 4 a replica decide")
    workload.scale(_engine(hub, "requests_in_flight,kv_cache_usage", "4,80"))
    _settles(context, workload, 6)
