"""The existing scaler's end-to-end cases (numbered as there, "A.12 n") and the cases of its unit tests that can be
asked over gRPC ("A.12 more"). Where its expectation was a mistake the right value stands here, with the reason."""
import time

import states
from agent import Agent, check, wait_until
from scaler import SERVING, NOT_SERVING, Scaler, grpc, near, read_spec, refused
from states import MIG, MIG_HOPPER, MIXED, NONE, QUARTERS, T, T_HOPPER, gpus, loads, shared
from suite import add, test

PROFILES_OF_GPUS = {
    "vllm-inference": ("keda_gpu_vllm_inference", 80),
    "triton-inference": ("keda_gpu_triton_inference", 75),
    "training": ("keda_gpu_training", 90),
    "batch": ("keda_gpu_batch", 70),
    "ollama": ("keda_gpu_ollama", 70),
    "tgi-inference": ("keda_gpu_tgi_inference", 75),
}


def settle(state, metadata):
    """Rates take two readings: until then a GPU is missing, which counts as something else than its value."""
    def is_complete():
        text = shared(state).explain(metadata)
        return "missing" not in text and "UNAVAILABLE" not in text
    wait_until(is_complete, "complete readings")


def is_active(state, metadata, want):
    settle(state, metadata or {})
    got = shared(state).active(metadata)
    check(got is want, f"IsActive is {got}, want {want}")


def has_value(state, metadata, want):
    got = shared(state).value(metadata)
    check(got == want, f"the value is {got}, want {want}")


def has_rate(state, metadata, want):
    settle(state, metadata)
    got = shared(state).value(metadata)
    check(near(got, want), f"the value is {got}, want {want}")


def has_spec(state, metadata, name, target):
    got = shared(state).spec(metadata)
    check(got == (name, target), f"the spec is {got}, want {(name, target)}")


def is_refused(state, metadata, code, *words):
    """By every call alike."""
    scaler = shared(state)
    if code == "FAILED_PRECONDITION":
        settle(state, metadata)
    for call in (scaler.active, scaler.value, scaler.explain) + ((scaler.spec,) if code == "INVALID_ARGUMENT" else ()):
        if call == scaler.explain and code != "INVALID_ARGUMENT":
            continue
        with refused(code, *words):
            call(metadata)
    for stream in (scaler.stream_active, scaler.stream_spec) if code == "INVALID_ARGUMENT" else ():
        with refused(code, *words):
            next(stream(metadata, timeout=10))


# ---- 1 to 20 ----

@test("A.12 1 HealthCheck: serving")
def health():
    check(shared(loads(50)).serving("") == SERVING, "not SERVING")


@test("A.12 2 HealthCheck reflects the driver within 2 s, under the name nvml; the process stays healthy")
def health_follows_driver():
    scenario = loads(50)
    with Agent(scenario) as agent, Scaler(agent.address) as scaler:
        check(scaler.serving("nvml") == SERVING, "not SERVING at first")
        for fault, back_within_s in (("unknown, function: nvmlDeviceGetCount*", 2), ("driver_not_loaded", 15)):
            agent.play(scenario + "faults: [{fault: %s}]\n" % fault)
            wait_until(lambda: scaler.serving("nvml") == NOT_SERVING, "nvml not to serve", 2)
            check(scaler.serving("") == SERVING, "the process must stay SERVING")
            agent.play(scenario)
            wait_until(lambda: scaler.serving("nvml") == SERVING, "nvml to serve again", back_within_s)


for number, state, metadata, want in (
        (1, loads(50), {}, True),
        (2, loads(5), {"activationThreshold": "10"}, False),
        (3, QUARTERS, {"profile": "vllm-inference"}, True),
        (4, QUARTERS, {"profile": "tgi-inference"}, True),
        (5, loads(5, 90), {"activationThreshold": "50"}, True)):
    add(f"A.12 3.{number} IsActive {metadata} is {want}", is_active, state, metadata, want)

for number, metadata, name, target in (
        (1, {}, "keda_gpu_metric", 80),
        (2, {"profile": "vllm-inference"}, "keda_gpu_vllm_inference", 80),
        (3, {"profile": "tgi-inference"}, "keda_gpu_tgi_inference", 75),
        (4, {"targetValue": "60"}, "keda_gpu_metric", 60)):
    add(f"A.12 4.{number} GetMetricSpec {metadata} is {name} {target}", has_spec, loads(50), metadata, name, target)

for number, state, metadata, want in (
        (1, loads(75), {}, 75),
        (2, loads(30, 90), {"gpuIndex": "1"}, 90),
        (3, loads(60, 80), {"aggregation": "avg"}, 70),
        (4, QUARTERS, {"metricType": "memory_used_percent"}, 75),
        (5, QUARTERS, {"metricType": "temperature"}, 72),
        (6, QUARTERS, {"metricType": "power_draw"}, 250)):
    add(f"A.12 5.{number} GetMetrics {metadata} is {want}", has_value, state, metadata, want)


@test("A.12 6 ScaleOutScaleIn: busy GPUs are active and above 80, idle ones neither")
def scale_out_and_in():
    metadata = {"activationThreshold": "10"}
    is_active(loads(95, 88), metadata, True)
    has_value(loads(95, 88), metadata, 95)
    is_active(loads(5, 3), metadata, False)
    has_value(loads(5, 3), metadata, 5)


def profile_works(profile, name, target):
    scaler = shared(QUARTERS)
    check(scaler.spec({"profile": profile}) == (name, target), "wrong spec")
    check(scaler.value({"profile": profile}) == 75, "wrong value")
    check(scaler.active({"profile": profile}) is True, "not active")


for profile, (name, target) in PROFILES_OF_GPUS.items():
    add(f"A.12 7 profile {profile}: all three calls", profile_works, profile, name, target)

for number, metadata, words in (
        (1, {"profile": "doesnt-exist"}, ("profile", "doesnt-exist", "vllm-inference")),
        (2, {"targetValue": "abc"}, ("targetValue", "abc")),
        (3, {"gpuIndex": "xyz"}, ("gpuIndex", "xyz")),
        (4, {"aggregation": "median"}, ("aggregation", "median", "p95"))):
    add(f"A.12 8.{number} bad metadata {metadata} is refused by every call", is_refused, loads(50), metadata,
        "INVALID_ARGUMENT", *words)


@test("A.12 9 StreamIsActive: true at once")
def stream_is_active():
    stream = shared(loads(60)).stream_active({"pollIntervalSeconds": "1"}, timeout=30)
    start = time.monotonic()
    check(next(stream).result is True, "the first message is not true")
    check(time.monotonic() - start < 3, "the first message took 3 s")
    stream.cancel()


add("A.12 10 gpuIndex out of range is an error of the place, not of the metadata", is_refused, loads(50),
    {"gpuIndex": "99"}, "FAILED_PRECONDITION", "gpuIndex 99")

TWENTY = loads(*range(1, 21))
for number, state, aggregation, want in (
        (11, loads(80, 40, 90, 55), "min", 40), (12, loads(20, 30, 50), "sum", 100),
        (13, loads(20, 30, 40, 95), "p95", 95), (14, TWENTY, "p99", 20), (15, TWENTY, "p95", 19)):
    add(f"A.12 {number} {aggregation} is {want}", has_value, state, {"aggregation": aggregation}, want)

for number, metric in ((17, "vllm_queue_depth"), (20, "triton_queue_wait_ms")):
    add(f"A.12 {number} {metric} without an endpoint is refused", is_refused, loads(50), {"metricType": metric},
        "INVALID_ARGUMENT", metric.split("_", maxsplit=1)[0] + "Endpoint")

# ---- more: state T ----

for metadata, want in (({"activationThreshold": "50"}, True), ({"activationThreshold": "90"}, False),
                       ({"activationThreshold": "0"}, True), ({"gpuIndex": "0", "activationThreshold": "50"}, True),
                       ({"gpuIndex": "1", "activationThreshold": "50"}, False), (None, True),
                       ({"profile": "distributed-training"}, False)):
    add(f"A.12 more: IsActive {metadata} on T is {want}", is_active, T, metadata, want)

add("A.12 more: IsActive with an unknown profile is refused", is_refused, T, {"profile": "nope"}, "INVALID_ARGUMENT")
add("A.12 more: IsActive with gpuIndex 99 is refused", is_refused, T, {"gpuIndex": "99"}, "FAILED_PRECONDITION")
add("A.12 more: spec of targetValue 95 and metricName", has_spec, T,
    {"targetValue": "95", "metricName": "custom_metric"}, "custom_metric", 95)
add("A.12 more: spec of distributed-training", has_spec, T, {"profile": "distributed-training"},
    "keda_gpu_distributed_training", 50000)

for metadata, want in (
        ({}, 80), ({"aggregation": "avg"}, 55), ({"aggregation": "sum"}, 110), ({"aggregation": "min"}, 30),
        ({"aggregation": "p95"}, 80), ({"aggregation": "p99"}, 80),
        ({"gpuIndex": "0", "metricType": "memory_used_percent"}, 50),
        ({"metricType": "temperature", "aggregation": "max"}, 65),
        ({"metricType": "power_draw", "aggregation": "sum"}, 350),
        ({"gpuIndex": "1", "aggregation": "sum"}, 30),
        ({"metricType": "memory_used_mib", "aggregation": "max"}, 40960),
        ({"metricType": "memory_used", "aggregation": "sum"}, 70)):
    add(f"A.12 more: GetMetrics {metadata} on T is {want}", has_value, T, metadata, want)

for state, kind in ((T, "sampled"), (T_HOPPER, "counted")):
    for metadata, want in (
            ({"metricType": "pcie_tx_kbps", "aggregation": "max"}, 8000),
            ({"metricType": "pcie_rx_kbps", "aggregation": "sum"}, 5000),
            ({"metricType": "nvlink_tx_mbps", "aggregation": "max"}, 600),
            ({"metricType": "nvlink_rx_mbps", "aggregation": "avg"}, 325)):
        add(f"A.12 more: GetMetrics {metadata} on T ({kind}) is {want}", has_rate, state, metadata, want)

add("A.12 more: no GPU is an error", is_refused, NONE, {}, "UNAVAILABLE")
# A busy GPU beside a divided one: the existing scaler counted the instance's utilization, which NVML does not have.
add("A.12 more: mixed GPUs, avg of gpu_utilization is that of those that have it", has_value, MIXED,
    {"aggregation": "avg"}, 60)
add("A.12 more: mixed GPUs, avg of sm_activity is 40", has_rate, MIXED,
    {"metricType": "sm_activity", "aggregation": "avg"}, 40)
add("A.12 more: mixed GPUs, sum of sm_activity is 80", has_rate, MIXED,
    {"metricType": "sm_activity", "aggregation": "sum"}, 80)

# ---- more: MIG ----

add("A.12 more: MIG, gpu_utilization does not exist there", is_refused, MIG, {}, "FAILED_PRECONDITION",
    "gpu_utilization")
for aggregation, want in (("max", 85), ("avg", 47.5), ("min", 10)):
    add(f"A.12 more: MIG, {aggregation} of sm_activity is {want}", has_rate, MIG_HOPPER,
        {"metricType": "sm_activity", "aggregation": aggregation}, want)
for state, board in ((MIG, "A100"), (MIG_HOPPER, "H100")):
    add(f"A.12 more: MIG on {board}, memory sum is 32768", has_value, state,
        {"metricType": "memory_used_mib", "aggregation": "sum"}, 32768)
    add(f"A.12 more: MIG on {board}, temperature is 72, once", has_value, state,
        {"metricType": "temperature", "aggregation": "sum"}, 72)

# ---- more: metadata ----

add("A.12 more: overrides of a profile keep its metricName", has_spec, T,
    {"profile": "vllm-inference", "targetValue": "60", "metricType": "gpu_utilization"}, "keda_gpu_vllm_inference", 60)
add("A.12 more: a profile with metricType changes the type", has_value, T,
    {"profile": "vllm-inference", "metricType": "gpu_utilization"}, 80)
for metadata in ({"targetValue": ""}, {"gpuIndex": ""}, {"pollIntervalSeconds": ""}, {"gpuIndex": "-2"},
                 {"gpuIndex": "-100"}, {"metricType": "gpu_utilisation"}, {"targetGpuUtilization": "high"},
                 {"targetMemoryUtilization": "high"}, {"activationThreshold": "high"},
                 {"pollIntervalSeconds": "0"}):
    key = next(iter(metadata))
    add(f"A.12 more: {metadata} is refused", is_refused, T, metadata, "INVALID_ARGUMENT", key)
for metadata, want in (({"gpuIndex": "-1"}, 80), ({"gpuIndex": "0"}, 80), ({"targetValue": "999999999"}, 80)):
    add(f"A.12 more: {metadata} is taken", has_value, T, metadata, want)

# ---- more: endpoints as metadata. What their pages say, and cases 16 to 20: the suite of engines. ----

for url in ("http://vllm.models.svc:8000/metrics", "https://vllm.example.org/metrics", "http://10.0.1.5:8000/metrics",
            "http://127.0.0.1:8000/metrics"):
    add(f"A.12 more: the endpoint {url} is taken", has_spec, T,
        {"metricType": "vllm_queue_depth", "vllmEndpoint": url, "targetValue": "5"}, "keda_gpu_metric", 5)
for url in ("http://169.254.169.254/latest", "http://169.254.1.1/", "http://metadata.google.internal/",
            "http://metadata.goog/", "ftp://vllm:8000/metrics", "http:///metrics"):
    add(f"A.12 more: the endpoint {url} is refused", is_refused, T,
        {"metricType": "vllm_queue_depth", "vllmEndpoint": url}, "INVALID_ARGUMENT", "vllmEndpoint")

# ---- more: streams ----


@test("A.12 more: a cancelled stream ends cleanly and its state is freed")
def cancelled_stream():
    one = states.shared_agent(loads(60))
    stream = one.scaler.stream_active({})
    next(stream)
    opened = 'method="StreamIsActive"'
    wait_until(lambda: one.agent.metric("keda_gpu_scaler_open_streams", opened) >= 1, "the stream in the metrics")
    stream.cancel()
    wait_until(lambda: one.agent.metric("keda_gpu_scaler_open_streams", opened) == 0, "the stream to be gone")


@test("A.12 more: a device error in mid-stream sends nothing and the stream stays")
def error_in_stream():
    scenario = gpus("board: A100-40, utilization: 60")
    with Agent(scenario) as agent, Scaler(agent.address) as scaler:
        stream = scaler.stream_active({"pollIntervalSeconds": "1"})
        seen = []
        check(next(stream).result is True, "not active at first")
        stream.add_callback(lambda: seen.append("ended"))
        agent.play(scenario + "faults: [{fault: lost}]\n")
        wait_until(lambda: _fails(scaler), "GetMetrics to fail", 20)
        time.sleep(1.5)
        check(not seen, "the stream ended")
        agent.play(scenario)
        wait_until(lambda: not _fails(scaler), "GetMetrics to work again", 20)
        check(not seen, "the stream ended")
        stream.cancel()


def _fails(scaler):
    try:
        scaler.value({})
        return False
    except grpc.RpcError:
        return True


@test("A.12 more: StreamMetricSpec sends the spec at once, equal to GetMetricSpec")
def stream_metric_spec():
    scaler = shared(T)
    metadata = {"profile": "tgi-inference"}
    stream = scaler.stream_spec(metadata)
    check(read_spec(next(stream)) == scaler.spec(metadata), "the two differ")
    stream.cancel()


@test("A.12 more: GetMetrics answers under the name that was asked for")
def echoes_name():
    answer = shared(T).get_metrics({"metricName": "Gpu.Util"}, name="gpu.util")
    check(answer.metricValues[0].metricName == "gpu.util", f"{answer}")
