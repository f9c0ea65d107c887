"""Defects of the existing scaler that concern one node, numbered as in its review ("B n"): what it did wrong, and that
ours does not. Those about engines, fleets, charts and its command line belong to other suites."""
import concurrent.futures
import re
import signal
import subprocess
import time

import states
from agent import PROGRAM, Agent, check, is_sanitized, wait_until
from cases import has_rate, has_spec, has_value, is_active, is_refused
from scaler import NOT_SERVING, SERVING, Scaler, grpc, near, pb, refused
from states import MIG_HOPPER, MIXED, T, gpus, loads, shared
from suite import add, test

# ---- B.1 the number ----

def warns(state, metadata, *words):
    text = shared(state).explain(metadata)
    lines = [line for line in text.splitlines() if line.startswith("warning")]
    check(any(all(word in line for word in words) for line in lines), f"no warning with {words} in:\n{text}")


for aggregation, want in (("max", "2 replicas"), ("avg", "2 replicas")):
    add(f"B 3 {aggregation} of a percentage: the explanation says that it never passes 2 replicas", warns, T,
        {"aggregation": aggregation}, "never past " + want)
add("B 3 sum of percentages goes past 100", has_value, T, {"aggregation": "sum"}, 110)
add("B 5 memory of a preallocating server: the explanation warns", warns, T, {"profile": "vllm-inference"}, "vLLM")

IDLE_T4 = gpus("board: T4, utilization: 0, memory_used_mib: 0")
add("B 7 an idle T4 with its usual reserve uses 0 % of its memory", has_value, IDLE_T4, {"profile": "batch"}, 0)
add("B 7 an idle T4 with its usual reserve is not active", is_active, IDLE_T4, {"profile": "batch"}, False)
add("B 8 profile training stays active at 0 %", is_active, IDLE_T4, {"profile": "training"}, True)


@test("B 9 profile vllm-queue-depth is active from one request")
def one_request():
    text = shared(T).explain({"profile": "vllm-queue-depth", "vllmEndpoint": "http://vllm:8000/metrics"})
    check("active with any request" in text, text)


add("B 11 pollIntervalSeconds is taken with a polled trigger", has_value, T, {"pollIntervalSeconds": "15"}, 80)
add("B 22 p95 of 16 GPUs is the busiest one, by nearest rank", has_value, loads(100, *[10] * 15),
    {"aggregation": "p95"}, 100)
add("B 22 p95 of 16 GPUs: the explanation says that it is the maximum below 20 GPUs", warns, loads(100, *[10] * 15),
    {"aggregation": "p95"}, "p95", "maximum")

CONTRADICTION = {"profile": "vllm-queue-depth", "targetGpuUtilization": "80"}
add("B 24 a profile overruled by targetGpuUtilization measures that", has_value, loads(50), CONTRADICTION, 50)
add("B 24 a profile overruled by targetGpuUtilization keeps its name", has_spec, loads(50), CONTRADICTION,
    "keda_gpu_vllm_queue_depth", 80)
add("B 24 a profile overruled by targetGpuUtilization says so", warns, loads(50), CONTRADICTION, "overrules")
add("B 24 a profile's threshold does not outlive its metric", is_active, loads(4),
    {"profile": "vllm-inference", "targetGpuUtilization": "80"}, True)
BOTH = {"targetGpuUtilization": "80", "targetMemoryUtilization": "70"}
add("B 24 both shorthands: memory wins", has_spec, T, BOTH, "keda_gpu_metric", 70)
add("B 24 both shorthands: memory is measured", has_value, T, {**BOTH, "gpuIndex": "0"}, 50)
add("B 24 both shorthands: a warning", warns, T, BOTH, "targetMemoryUtilization", "overrules")
THREE = {"metricType": "power_draw", "targetValue": "300", "targetGpuUtilization": "80"}
add("B 24 metricType overruled by a shorthand measures utilization", has_value, T, THREE, 80)
add("B 24 metricType overruled by a shorthand: a warning", warns, T, THREE, "overrules", "power_draw")

# ---- B.2 reading the GPU ----


@test("B 25 answers make no NVML calls")
def no_calls_per_answer():
    with Agent(loads(*[50] * 8), interval="5s") as agent, Scaler(agent.address) as scaler:
        before, cycles = agent.metric("keda_gpu_scaler_nvml_calls_total"), agent.metric("keda_gpu_scaler_samples_total")
        for _ in range(200):
            scaler.value({"metricType": "temperature"})
        after = agent.metric("keda_gpu_scaler_nvml_calls_total")
        cycles = agent.metric("keda_gpu_scaler_samples_total") - cycles
        check(after - before <= 300 * cycles, f"{after - before} calls in {cycles} cycles and 200 answers")


@test("B 26 PCIe that takes 20 ms a sample delays no answer")
def pcie_delays_nobody():
    scenario = loads(*[50] * 8) + "faults: [{fault: slow, ms: 20, function: nvmlDeviceGetPcieThroughput}]\n"
    with Agent(scenario) as agent, Scaler(agent.address) as scaler:
        metadata = {"metricType": "pcie_tx_kbps", "aggregation": "sum"}
        wait_until(lambda: "missing" not in scaler.explain(metadata), "PCIe of all GPUs", 60)
        check(near(scaler.value(metadata), 8 * 50 * 5000), f"sum is {scaler.value(metadata)}")
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(scaler.value, [metadata] * 300))
        check(time.monotonic() - start < 10, f"300 answers took {time.monotonic() - start:.1f} s")


@test("B 27 calls that were given up cost the next one nothing")
def abandoned_calls():
    scenario = loads(50) + "faults: [{fault: slow, ms: 250, function: nvmlDeviceGet*}]\n"
    with Agent(scenario) as agent, Scaler(agent.address) as scaler:
        for _ in range(20):
            try:
                scaler.get_metrics({}, timeout=0.1)
            except grpc.RpcError:
                pass
        start = time.monotonic()
        check(scaler.value({}) == 50, "wrong value")
        check(time.monotonic() - start < 1, f"took {time.monotonic() - start:.1f} s")


LOST = "faults: [{fault: lost%s}]\n"


@test("B 29 a lost GPU is no idle GPU: an error, active, counted, its value gone from /metrics")
def lost_only():
    with Agent(loads(90)) as agent, Scaler(agent.address) as scaler:
        check(scaler.value({}) == 90, "not 90 at first")
        agent.play(loads(90) + LOST % "")
        wait_until(lambda: agent.metric("keda_gpu_scaler_nvml_errors_total") > 0, "an error in the metrics")
        seen = set()

        def is_error():
            try:
                seen.add(scaler.value({"window": "0"}))
                return False
            except grpc.RpcError as error:
                return error.code() == grpc.StatusCode.UNAVAILABLE
        wait_until(is_error, "UNAVAILABLE", 20)
        check(seen <= {90.0}, f"saw values {seen}")
        check(scaler.active({}) is True, "a GPU that cannot be read must not let the workload go to zero")
        wait_until(lambda: "keda_gpu_scaler_gpu_utilization_ratio" not in agent.page(), "the value to go from /metrics")
        check(agent.metric("keda_gpu_scaler_gpu_up") == 0, "gpu_up is not 0")


@test("B 30 95 and 5, the busy one lost: the value stays, the loss is reported")
def lost_one():
    with Agent(loads(95, 5)) as agent, Scaler(agent.address) as scaler:
        agent.play(loads(95, 5) + LOST % ", gpu: 0")
        wait_until(lambda: agent.page()["keda_gpu_scaler_gpu_up"].values() and
                   agent.metric("keda_gpu_scaler_gpu_up") == 1, "gpu_up of one GPU to fall")
        deadline = time.monotonic() + 8
        while time.monotonic() < deadline:
            got = scaler.value({"window": "0"})
            check(got == 95, f"the value is {got}")
            time.sleep(0.2)
        check("missing: GPU 0" in scaler.explain({}), scaler.explain({}))
        check(scaler.value({"window": "0", "onMissing": "ignore"}) == 5, "onMissing ignore does not leave it out")
        with refused("UNAVAILABLE", "GPU 0"):
            scaler.value({"window": "0", "onMissing": "error"})
        check(scaler.active({"activationThreshold": "50"}) is True, "inactive because a GPU is lost")


UNSUPPORTED = gpus("board: T4, utilization: 50", "board: A100-40, utilization: 50, nvlink_tx_kibps: 102400")
add("B 31 NVLink on a board without it is left out, not 0", has_rate, UNSUPPORTED,
    {"metricType": "nvlink_tx_mbps", "aggregation": "min"}, 100)
add("B 31 NVLink on no board is an error", is_refused, IDLE_T4, {"metricType": "nvlink_tx_mbps"},
    "FAILED_PRECONDITION", "nvlink_tx_mbps")
add("B 31 sm_activity before Hopper is an error", is_refused, IDLE_T4, {"metricType": "sm_activity"},
    "FAILED_PRECONDITION", "sm_activity")
for name, sources, metric in (
        ("power", ("function: nvmlDeviceGetPowerUsage", "field: 185", "field: 186"), "power_draw"),
        ("utilization", ("function: nvmlDeviceGetUtilizationRates",), "gpu_utilization"),
        ("PCIe", ("function: nvmlDeviceGetPcieThroughput",), "pcie_tx_kbps")):
    state = loads(50, board="T4") + "faults: [" + ", ".join(f"{{fault: not_supported, {s}}}" for s in sources) + "]\n"
    add(f"B 31 {name} that is not supported is an error, not 0", is_refused, state, {"metricType": metric},
        "FAILED_PRECONDITION", metric)

SEVEN = "mig: [{profile: 1g.10gb, count: 7, utilization: 20, sm_activity: 10, memory_used_mib: 1000}]"
SEVEN_AND_ONE = gpus(f"board: H100, power_w: 650, {SEVEN}", "board: H100, utilization: 40, sm_activity: 40, power_w: 100")
add("B 32 utilization of MIG devices is absent, not 0", has_value, SEVEN_AND_ONE, {"aggregation": "avg"}, 40)
add("B 32 utilization of MIG devices: a warning", warns, SEVEN_AND_ONE, {"aggregation": "avg"}, "gpu_utilization")
add("B 32 sm_activity of MIG devices is measured", has_rate, SEVEN_AND_ONE,
    {"metricType": "sm_activity", "aggregation": "sum"}, 110)
add("B 33 a board's power counts once, whatever its MIG devices", has_value, SEVEN_AND_ONE,
    {"metricType": "power_draw", "aggregation": "sum"}, 750)


@test("B 33 a board's power stands once in /metrics, on the parent")
def power_series():
    series = states.shared_agent(SEVEN_AND_ONE).agent.page()["keda_gpu_scaler_gpu_power_watts"]
    check(sorted(series.values()) == [100, 650], f"{series}")
    check(not any("MIG-" in labels.split("parent")[0] for labels in series), f"{series}")


@test("B 34 holes among MIG devices hide nobody")
def mig_holes():
    def layout(*starts):
        rows = ", ".join(f"{{profile: 1g.10gb, start: {s}, memory_used_mib: 1000}}" for s in starts)
        return gpus(f"board: H100, mig: [{rows}]")
    with Agent(layout(0, 1, 2, 3)) as agent, Scaler(agent.address) as scaler:
        metadata = {"metricType": "memory_used_mib", "aggregation": "sum", "window": "0"}
        check(scaler.value(metadata) == 4000, "not 4000 at first")
        agent.play(layout(0, 2, 3))
        wait_until(lambda: scaler.value(metadata) == 3000, "3000 with a hole at 1", 20)
        agent.play(layout(2, 3))
        wait_until(lambda: scaler.value(metadata) == 2000, "2000 with holes at 0 and 1", 20)


@test("B 35 the MIG profile of an H200 is 1g.18gb")
def mig_profile_name():
    state = gpus("board: H200, mig: [{profile: 1g.18gb, memory_used_mib: 1000}]")
    infos = states.shared_agent(state).agent.page()["keda_gpu_scaler_gpu_info"]
    check(any('mig_profile="1g.18gb"' in labels for labels in infos), f"{infos}")


@test("B 36 every device has an identity of its own, MIG devices name parent and profile")
def mig_identity():
    agent = states.shared_agent(gpus(f"board: H100, {SEVEN}", f"board: H100, {SEVEN}", "board: H100")).agent
    page = agent.page()
    infos = page["keda_gpu_scaler_gpu_info"]
    uuids = [re.search(r'(?:^|,)uuid="([^"]+)"', labels)[1] for labels in infos]
    check(len(infos) == 17 and len(set(uuids)) == 17, f"{len(infos)} devices, {len(set(uuids))} UUIDs")
    migs = [labels for labels in infos if 'uuid="MIG-' in labels]
    check(len(migs) == 14 and all("parent_uuid=\"GPU-" in m and "1g.10gb" in m for m in migs), f"{migs}")
    check(len(page["keda_gpu_scaler_gpu_memory_used_bytes"]) >= 15, "memory series are mixed up")


@test("B 37 gpuIndex of a GPU with MIG means its devices, and no call floods the log")
def mig_by_index():
    with Agent(MIXED) as agent, Scaler(agent.address) as scaler:
        metadata = {"gpuIndex": "1", "metricType": "memory_used_mib"}
        for _ in range(50):
            check(scaler.value(metadata) == 2048, "not the device's memory")
        with refused("FAILED_PRECONDITION", "gpu_utilization"):
            scaler.value({"gpuIndex": "1"})
        check(len(agent.log().splitlines()) < 30, agent.log())


NVLINK = gpus("board: A100-40, utilization: 50, nvlink_tx_kibps: 4096, nvlink_rx_kibps: 1024")
add("B 38 NVLink tx is tx", has_rate, NVLINK, {"metricType": "nvlink_tx_mbps"}, 4)
add("B 38 NVLink rx is rx", has_rate, NVLINK, {"metricType": "nvlink_rx_mbps"}, 1)


@test("B 39 NVLink is a rate: it falls to 0 with the traffic, and the workload becomes inactive")
def nvlink_is_a_rate():
    busy = gpus("board: H100, utilization: 50, nvlink_tx_kibps: 61440000")
    with Agent(busy) as agent, Scaler(agent.address) as scaler:
        metadata = {"profile": "distributed-training", "window": "2", "activationWindow": "2"}
        wait_until(lambda: "missing" not in scaler.explain(metadata), "a rate")
        check(near(scaler.value(metadata), 60000), f"{scaler.value(metadata)}")
        check(scaler.active(metadata) is True, "not active")
        agent.play(gpus("board: H100, utilization: 0, nvlink_tx_kibps: 0"))
        wait_until(lambda: scaler.value(metadata) == 0, "0 MiB/s", 20)
        wait_until(lambda: scaler.active(metadata) is False, "inactive", 20)


@test("B 41 PCIe tx leaves the GPU, in HELP too")
def pcie_direction():
    text = states.shared_agent(T).agent.get("/metrics")[2].decode()
    check(re.search(r"HELP keda_gpu_scaler_gpu_pcie_transmit\S* .*leaves the GPU", text), "HELP does not say so")


SMALL = gpus("board: A100-40, utilization: 1, power_w: 0.999, memory_used_mib: 0.999999")
add("B 42 999 mW are 0.999 W", has_value, SMALL, {"metricType": "power_draw"}, 0.999)


@test("B 42 a byte less than a MiB is not 0")
def small_memory():
    got = shared(SMALL).value({"metricType": "memory_used_mib"})
    check(0.999 < got < 1, f"{got}")
    check(0 < shared(SMALL).value({"metricType": "memory_used_percent"}) < 0.01, "0 %")
    bytes_used = states.shared_agent(SMALL).agent.metric("keda_gpu_scaler_gpu_memory_used_bytes")
    check(1048000 < bytes_used < 1048576, f"{bytes_used} bytes")


add("B 43 gpuIndex 4294967296 does not wrap around to 0", is_refused, T, {"gpuIndex": "4294967296"},
    "INVALID_ARGUMENT", "gpuIndex")
add("B 43 gpuIndex +0 is not a plain number", is_refused, T, {"gpuIndex": "+0"}, "INVALID_ARGUMENT", "gpuIndex")
TWO_KINDS = gpus("board: T4, uuid: GPU-00000000-0000-0000-0000-000000000001, utilization: 20",
                 "board: A100-40, uuid: GPU-00000000-0000-0000-0000-000000000002, utilization: 70")
for metadata, want in (({"gpuUUID": "GPU-00000000-0000-0000-0000-000000000001"}, 20), ({"gpuProduct": "T4"}, 20),
                       ({"gpuProduct": "NVIDIA-A100-SXM4-40GB"}, 70)):
    add(f"B 43 selection by {metadata}", has_value, TWO_KINDS, metadata, want)
add("B 43 a UUID that is not there is an error", is_refused, TWO_KINDS,
    {"gpuUUID": "GPU-00000000-0000-0000-0000-000000000003"}, "FAILED_PRECONDITION")


@test("B 44 a reloaded driver and a GPU that was added are seen without a restart")
def driver_reload():
    gone = loads(50) + "faults: [{fault: driver_not_loaded}]\n"
    with Agent(loads(50)) as agent, Scaler(agent.address) as scaler:
        agent.play(gone)
        agent.wait_driver(False)
        agent.play(loads(50, 70))
        agent.wait_driver()
        wait_until(lambda: scaler.value({"aggregation": "sum", "window": "0"}) == 120, "both GPUs", 20)


@test("B 45 HELP says what the utilizations are")
def true_names():
    text = states.shared_agent(T).agent.get("/metrics")[2].decode()
    for name, word in (("gpu_utilization_ratio", "kernel"), ("gpu_memory_utilization_ratio", "read or written")):
        check(re.search(rf"HELP keda_gpu_scaler_{name} .*{word}", text), f"{name}: no {word!r}")


# ---- B.3 crashes and shutdown ----


@test("B 46 GetMetrics without scaledObjectRef is refused, and the process lives")
def no_ref():
    scaler = shared(T)
    with refused("INVALID_ARGUMENT", "scaledObjectRef"):
        scaler.stub.GetMetrics(pb.GetMetricsRequest(metricName="x"), timeout=10)
    check(scaler.value({}) == 80, "no value afterwards")


@test("B 47 64 clients with engine endpoints at once")
def many_engines():
    def ask(number):
        with Scaler(states.shared_agent(T).agent.address) as scaler:
            try:
                scaler.value({"metricType": "vllm_queue_depth", "targetValue": "5",
                              "vllmEndpoint": f"http://127.0.77.{number}:1/metrics"})
            except grpc.RpcError as error:
                return error.code().name
        return "OK"
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        codes = set(pool.map(ask, range(1, 65)))
    check(codes == {"UNAVAILABLE"}, f"{codes}")
    check(shared(T).value({}) == 80, "no value afterwards")


for text in ("0", "-5", "9223372037"):
    add(f"B 48 pollIntervalSeconds {text} is refused with what is allowed", is_refused, T,
        {"pollIntervalSeconds": text}, "INVALID_ARGUMENT", "pollIntervalSeconds", text, "3600")


@test("B 49 SIGTERM with an open stream: the stream ends with OK, the process with 0, in under 5 s")
def sigterm_with_stream():
    with Agent(loads(60)) as agent, Scaler(agent.address) as scaler:
        stream = scaler.stream_active({})
        next(stream)
        start = time.monotonic()
        agent.signal(signal.SIGTERM)
        check(list(stream) == [] and stream.code() == grpc.StatusCode.OK, f"the stream ended with {stream.code()}")
        check(agent.wait_exit() == 0, "not 0")
        check(time.monotonic() - start < 5, f"took {time.monotonic() - start:.1f} s")


@test("B 50 shutdown: NOT_SERVING and not ready first, while calls are still answered")
def not_serving_first():
    with Agent(loads(60), "--shutdown-delay=3s", "--drain-timeout=6s") as agent, Scaler(agent.address) as scaler:
        watch = scaler.watch("")
        check(next(watch).status == SERVING, "not SERVING at first")
        agent.signal(signal.SIGTERM)
        check(next(watch).status == NOT_SERVING, "the watch says nothing")
        check(scaler.serving("") == NOT_SERVING, "Check says SERVING")
        check(agent.get("/readyz", port=agent.probe_port)[0] == 503, "/readyz is not 503")
        check(agent.get("/livez", port=agent.probe_port)[0] == 200, "/livez is not 200")
        check(scaler.value({}) == 60, "no value during the delay")
        check(agent.wait_exit() == 0, "not 0")


@test("B 51 ten thousand distinct triggers leave memory as it is", alone=True)
def many_triggers():
    # ASan keeps what is freed for a while: let that be little.
    with Agent(loads(60), env={"ASAN_OPTIONS": "quarantine_size_mb=1"}) as agent, Scaler(agent.address) as scaler:
        def ask(number):
            scaler.spec({"metricType": "vllm_queue_depth", "targetValue": "5",
                         "vllmEndpoint": f"http://10.{number // 250}.{number % 250}.1:8000/metrics"})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(3000)))
            before = agent.rss_kb()
            list(pool.map(ask, range(3000, 10000)))
        grown = agent.rss_kb() - before
        check(grown < (12000 if is_sanitized() else 2000), f"{before} kB grew by {grown} kB")
        check(agent.metric("keda_gpu_scaler_cached_triggers") <= 1024, "the cache has no ceiling")


@test("B 53 StreamIsActive: the state at once, then only changes to active, never false")
def stream_only_changes():
    with Agent(loads(60)) as agent, Scaler(agent.address) as scaler:
        metadata = {"pollIntervalSeconds": "1", "activationWindow": "1", "activationThreshold": "50"}
        stream = scaler.stream_active(metadata)
        messages = []
        check(next(stream).result is True, "not true at first")
        reader = concurrent.futures.ThreadPoolExecutor(1)
        reader.submit(lambda: messages.extend(m.result for m in stream))
        time.sleep(2.5)
        check(messages == [], f"repeated: {messages}")
        agent.play(loads(5))
        wait_until(lambda: scaler.active(metadata) is False, "inactive")
        time.sleep(2.2)
        check(messages == [], f"a message at the change to inactive: {messages}")
        agent.play(loads(95))
        wait_until(lambda: messages, "a message at the change to active")
        time.sleep(2.2)
        stream.cancel()
        reader.shutdown()
        check(messages == [True], f"{messages}")


@test("B 54 the driver goes and comes: the process stays ready, ?verbose follows the driver")
def readiness():
    with Agent(loads(60)) as agent, Scaler(agent.address) as scaler:
        agent.play(loads(60) + "faults: [{fault: driver_not_loaded}]\n")
        agent.wait_driver(False)
        check(agent.get("/readyz", port=agent.probe_port)[0] == 200, "/readyz is not 200")
        check(scaler.spec({}) == ("keda_gpu_metric", 80), "no spec without a driver")
        wait_until(lambda: agent.metric("keda_gpu_scaler_nvml_up") == 0, "nvml_up 0")
        agent.play(loads(60))
        agent.wait_driver()


@test("B 55 starting before the driver is no failure: ready, alive, a spec, and values once it is there")
def start_without_driver():
    with Agent(loads(60) + "faults: [{fault: driver_not_loaded}]\n", wait=False) as agent, \
            Scaler(agent.address) as scaler:
        agent.wait_driver(False)
        check(agent.get("/livez", port=agent.probe_port)[0] == 200, "/livez is not 200")
        check(scaler.serving("") == SERVING and scaler.serving("nvml") == NOT_SERVING, "wrong health")
        check(scaler.spec({}) == ("keda_gpu_metric", 80), "no spec")
        with refused("UNAVAILABLE", "driver"):
            scaler.value({})
        agent.play(loads(60))
        agent.wait_driver()
        check(scaler.value({}) == 60, "no value")


# ---- B.4 inputs ----

for key in ("targetValue", "targetGpuUtilization", "targetMemoryUtilization", "activationThreshold"):
    for text in ("NaN", "Inf", "-Inf", "-1", "0x1p10", "1_0", "1e400", "80%", "٣"):
        add(f"B 56, 58 {key} {text} is refused", is_refused, T, {key: text}, "INVALID_ARGUMENT", key)
add("B 56 targetValue 0 is refused", is_refused, T, {"targetValue": "0"}, "INVALID_ARGUMENT", "targetValue", "0.001")
add("B 57 targetvalue is refused, with the right spelling", is_refused, T, {"targetvalue": "10"}, "INVALID_ARGUMENT",
    "targetvalue", "targetValue")
add("B 57 an unknown key is refused", is_refused, T, {"cooldown": "10"}, "INVALID_ARGUMENT", "cooldown")
add("B 58 the list of profiles is sorted", is_refused, T, {"profile": "x"}, "INVALID_ARGUMENT",
    "batch, distributed-training, ollama")
for name in ("", "a/b", "..", "a%b", "a b"):
    add(f"B 59 metricName {name!r} is refused", is_refused, T, {"metricName": name}, "INVALID_ARGUMENT", "metricName")
add("B 59 metricName is folded to lower case", has_spec, T, {"metricName": "My.Metric_1"}, "my.metric_1", 80)
add("keda 2 KEDA's own keys are passed over", has_value, T,
    {"scalerAddress": "x:1", "enableTLS": "true", "unsafeSsl": "false", "tlsCertFile": "/x"}, 80)
add("keda 2 <key>FromEnv is the key", has_spec, T, {"targetValueFromEnv": " 42 "}, "keda_gpu_metric", 42)
for scope in ("workload", "cluster"):
    add(f"semantics 1 scope {scope} is the hub's", is_refused, T, {"scope": scope}, "FAILED_PRECONDITION",
        "scalerAddress", "hub")
for name in ("memory_free", "gpu_memory_free"):
    add(f"semantics 6 {name} is refused with the equivalent", is_refused, T, {"metricType": name, "targetValue": "20"},
        "INVALID_ARGUMENT", "memory_used", "80")

# ---- B.5 observability ----


@test("B 60 the counters of calls and errors move")
def counters_move():
    agent = states.shared_agent(loads(60)).agent
    labels = ('grpc_service="externalscaler.ExternalScaler"', 'grpc_method="GetMetrics"')

    def handled(code):
        return agent.metric("grpc_server_handled_total", *labels, f'grpc_code="{code}"')
    good, bad = handled("OK"), handled("InvalidArgument")
    shared(loads(60)).value({"metricName": "counted"})
    with refused("INVALID_ARGUMENT"):
        shared(loads(60)).value({"gpuIndex": "x"})
    check(handled("OK") - good == 1 and handled("InvalidArgument") - bad == 1, "the counters do not move by one")
    page = agent.page()
    for name in ("keda_gpu_scaler_devices", "keda_gpu_scaler_build_info", "keda_gpu_scaler_nvml_info"):
        check(name in page, f"no {name}")
    values = [name for name in page if "scaled" in name or "trigger" in name or "value" in name]
    check(any("counted" in text for name in values for text in page[name]), f"no last value of the trigger in {values}")


@test("B 61 /metrics follows the GPUs without anybody asking; series of gone GPUs go")
def metrics_follow():
    with Agent(loads(*range(10, 26))) as agent:
        name = "keda_gpu_scaler_gpu_utilization_ratio"
        check(len(agent.page()[name]) == 16, "not 16 series")
        agent.play(loads(90))
        wait_until(lambda: list(agent.page()[name].values()) == [0.9] or None, "one series at 0.9", 30)
        wait_until(lambda: agent.metric("keda_gpu_scaler_gpu_up") == 1, "gpu_up 0 for those that are gone")


@test("B 63 power limit, memory utilization, driver and build stand in /metrics")
def series_exist():
    page = states.shared_agent(T).agent.page()
    for name in ("gpu_power_limit_watts", "gpu_memory_utilization_ratio", "nvml_info", "build_info"):
        check(f"keda_gpu_scaler_{name}" in page, f"no {name}")


@test("B 63 evaluations are logged at debug level, with the reason")
def decisions_logged():
    with Agent(loads(60), "--log-level=debug") as agent, Scaler(agent.address) as scaler:
        scaler.value({"metricName": "asked"})
        line = wait_until(lambda: re.search(r".*evaluated.*metric=asked.*", agent.log()), "a line in the log")
        check("value=60" in line[0] and "rule=" in line[0], line[0])


@test("B 64 no unit but base units in names")
def base_units():
    names = states.shared_agent(T).agent.page()
    bad = [n for n in names if re.search(r"(kbps|mbps|mib|percent|milli)", n)]
    check(not bad, f"{bad}")


# ---- B.6 endpoints (what can be told without resolving) ----

for host in ("metadata.google.internal.", "metadata", "instance-data.ec2.internal", "[fd00:ec2::254]",
             "[64:ff9b::a9fe:a9fe]", "[fe80::1%25eth0]", "100.100.100.200", "168.63.129.16", "192.0.0.192", "0.0.0.0",
             "[::]", "kubernetes.default.svc", "user:password@vllm", "[::ffff:169.254.169.254]", "2852039166",
             "0xA9FEA9FE", "0251.0376.0251.0376", "169.254.43518", "169.254.169.254."):
    add(f"B 65 the endpoint http://{host}/ is refused", is_refused, T,
        {"metricType": "triton_request_rate", "tritonEndpoint": f"http://{host}/"}, "INVALID_ARGUMENT",
        "tritonEndpoint")


@test("B 67 reflection can be switched off")
def no_reflection():
    with Agent(loads(60), "--grpc-reflection=false") as agent, Scaler(agent.address) as scaler:
        call = scaler.channel.unary_unary("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        with refused("UNIMPLEMENTED"):
            call(b"", timeout=10)


# ---- B.7 ----


@test("B 73 --version is stamped and needs no GPU")
def version():
    output = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    check(re.match(r"keda-gpu-scaler \d+\.\d+\.\d+ \(.+\)", output) and "unknown" not in output, output)


@test("B 74 the program probes itself")
def probe_command():
    agent = states.shared_agent(T).agent
    for words in ([agent.address], [agent.address, "--service=nvml"],
                  [f"127.0.0.1:{agent.probe_port}", "--http=/readyz"]):
        result = subprocess.run([PROGRAM, "probe", *words], capture_output=True, text=True, timeout=30, check=False)
        check(result.returncode == 0, f"{words}: {result.returncode} {result.stdout}{result.stderr}")
