"""Drivers that are not there yet, real ones without a GPU, released, hung, lost and broken ones."""
import shutil
import signal
import threading
import time

import cache
from agent import NVMLSIM, Agent, check, wait_until
from scaler import NOT_SERVING, SERVING, Scaler, grpc, refused
from suite import add, test

SCENARIO = "gpus: [{board: A100-40, utilization: 60}]\n"
STALE_S = 5  # readings older than that are missing (three periods, at least 5 s)


def fault(text):
    return SCENARIO + f"faults: [{{{text}}}]\n"


def is_unavailable(scaler, metadata=None):
    try:
        scaler.value(metadata or {})
    except grpc.RpcError as error:
        return error.code() == grpc.StatusCode.UNAVAILABLE and (error.details() or "?")
    return False


def serves_without_driver(agent, scaler, word):
    """What must work on a node whose driver does not."""
    agent.wait_driver(False)
    check(scaler.spec({"targetValue": "70"}) == ("keda_gpu_metric", 70), "no spec")
    with refused("UNAVAILABLE", word):
        scaler.value({})
    with refused("UNAVAILABLE", word):
        scaler.active({})
    check(scaler.serving("") == SERVING and scaler.serving("nvml") == NOT_SERVING, "wrong health")
    check(agent.get("/readyz", port=agent.probe_port)[0] == 200, "/readyz is not 200")
    check(word in agent.get("/readyz?verbose", port=agent.probe_port)[2].decode(), "/readyz?verbose lacks the reason")
    check(agent.metric("keda_gpu_scaler_nvml_up") == 0, "nvml_up is not 0")
    check(word in agent.log(), agent.log())


# ---- not there ----


@test("no library: the agent serves, says so, and takes the library once it is there")
def library_appears():
    with Agent(None, library="/nonexistent/libnvidia-ml.so.1") as agent, Scaler(agent.address) as scaler:
        serves_without_driver(agent, scaler, "/nonexistent/libnvidia-ml.so.1")
    with Agent(SCENARIO) as outer:
        path = outer.path / "libnvidia-ml.so.1"
        with Agent(SCENARIO, library=path, wait=False) as agent, Scaler(agent.address) as scaler:
            agent.wait_driver(False)
            shutil.copy(NVMLSIM, path)
            agent.wait_driver()
            check(scaler.value({}) == 60, "no value")


@test("a file that is no library is reported as such")
def no_library():
    with Agent(None, library="/etc/hostname") as agent, Scaler(agent.address) as scaler:
        serves_without_driver(agent, scaler, "/etc/hostname")


def is_mapped(agent, word):
    """Does the process have a library of this name in its memory?"""
    with open(f"/proc/{agent.process.pid}/maps", encoding="utf-8") as file:
        return word in file.read()


def real_library(package):
    folder = cache.debian(package)
    library = next(path for path in folder.rglob("libnvidia-ml.so.*") if path.name != "libnvidia-ml.so.1")
    with Agent(None, library=library) as agent, Scaler(agent.address) as scaler:
        wait_until(lambda: "not_loaded" in agent.log(), "the state in the log")
        serves_without_driver(agent, scaler, "driver")
        check(agent.metric("keda_gpu_scaler_nvml_state", 'state="not_loaded"') == 1, "another state")
        wait_until(lambda: agent.metric("keda_gpu_scaler_nvml_reinits_total") >= 1, "another try")
        agent.signal(signal.SIGUSR2)
        wait_until(lambda: agent.metric("keda_gpu_scaler_nvml_state", 'state="released"') == 1, "the state released")
        check(not is_mapped(agent, "libnvidia-ml"), "the library is still mapped after SIGUSR2")


for package in ("bookworm/libnvidia-ml1", "bookworm/libnvidia-tesla-470-ml1"):
    add(f"NVIDIA's own library without a driver ({package}): driver not loaded, serves, tries again", real_library,
        package)


@test("no driver at start, then it appears")
def driver_appears():
    with Agent(fault("fault: driver_not_loaded"), wait=False) as agent, Scaler(agent.address) as scaler:
        serves_without_driver(agent, scaler, "driver")
        agent.play(SCENARIO)
        agent.wait_driver()
        check(scaler.value({}) == 60 and scaler.active({}) is True, "no value")
        check(scaler.serving("nvml") == SERVING, "nvml is not SERVING")


# ---- let go of ----


@test("SIGUSR2 lets go of NVML and takes it up again")
def release():
    with Agent(SCENARIO) as agent, Scaler(agent.address) as scaler:
        agent.signal(signal.SIGUSR2)
        wait_until(lambda: agent.metric("keda_gpu_scaler_nvml_state", 'state="released"') == 1, "the state released")
        check(scaler.serving("nvml") == NOT_SERVING, "nvml is SERVING")
        text = wait_until(lambda: is_unavailable(scaler), "UNAVAILABLE", 20)
        check("SIGUSR2" in text or "released" in text, text)
        check(scaler.spec({}) == ("keda_gpu_metric", 80), "no spec")
        calls = agent.metric("keda_gpu_scaler_nvml_calls_total")
        time.sleep(1)
        check(agent.metric("keda_gpu_scaler_nvml_calls_total") == calls, "NVML is called while released")
        agent.signal(signal.SIGUSR2)
        start = time.monotonic()
        agent.wait_driver()
        check(time.monotonic() - start < 5, f"took {time.monotonic() - start:.1f} s to take it up")
        check(scaler.value({}) == 60, "no value")


@test("SIGUSR2 twice in a row leaves the driver in use")
def release_twice():
    with Agent(SCENARIO) as agent, Scaler(agent.address) as scaler:
        for _ in range(4):
            agent.signal(signal.SIGUSR2)
            time.sleep(0.3)
        agent.wait_driver()
        check(scaler.value({}) == 60, "no value")


# ---- hung ----


@test("a hung driver: answers do not wait, age to UNAVAILABLE, health follows in 3 s, and it all comes back")
def hung():
    with Agent(SCENARIO, interval="1s") as agent, Scaler(agent.address) as scaler:
        check(scaler.value({}) == 60, "no value at first")
        agent.play(fault("fault: hung"))
        start = time.monotonic()
        slowest, states = 0, []
        while time.monotonic() - start < 9:
            asked = time.monotonic()
            state = is_unavailable(scaler)
            slowest = max(slowest, time.monotonic() - asked)
            states.append((asked - start, bool(state)))
            if not state:
                check(asked - start < 2 + STALE_S + 1.5, f"a value {asked - start:.1f} s after the last reading")
            time.sleep(0.1)
        check(slowest < 1, f"an answer took {slowest:.2f} s")
        check(not states[0][1], "UNAVAILABLE at once: a reading of a second ago is good")
        check(scaler.spec({}) == ("keda_gpu_metric", 80), "no spec")
        check(scaler.active({}) is True, "inactive because the driver hangs")
        check("does not return" in agent.log(), "the log says nothing")
        check("nvmlDevice" in agent.log(), "the log does not name the call")
        check(agent.get("/livez", port=agent.probe_port)[0] == 200, "/livez is not 200")
        check(agent.metric("keda_gpu_scaler_snapshot_age_seconds") > 4, "the age is not shown")
        agent.play(SCENARIO)
        wait_until(lambda: not is_unavailable(scaler), "values again")
        agent.wait_driver()


@test("a hung driver: health nvml is NOT_SERVING within 3 s, also for who watches")
def hung_health():
    with Agent(SCENARIO, interval="500ms") as agent, Scaler(agent.address) as scaler:
        seen = []
        watch = scaler.watch("nvml")
        check(next(watch).status == SERVING, "not SERVING at first")
        reader = threading.Thread(target=lambda: seen.append((next(watch).status, time.monotonic())), daemon=True)
        reader.start()
        start = time.monotonic()
        agent.play(fault("fault: hung"))
        wait_until(lambda: scaler.serving("nvml") == NOT_SERVING, "NOT_SERVING", 5)
        check(time.monotonic() - start < 4, f"took {time.monotonic() - start:.1f} s")
        reader.join(5)
        check(seen and seen[0][0] == NOT_SERVING, f"the watch saw {seen}")
        check(scaler.serving("") == SERVING, "the process must stay SERVING")
        watch.cancel()


def ends_although(scenario):
    with Agent(SCENARIO) as agent:
        agent.play(scenario)
        time.sleep(1)
        start = time.monotonic()
        agent.signal(signal.SIGTERM)
        check(agent.wait_exit() == 0, f"not 0\n{agent.log()[-2000:]}")
        check(time.monotonic() - start < 5, f"took {time.monotonic() - start:.1f} s")


for text in ("fault: hung", "fault: slow, ms: 60000", "fault: slow, ms: 300"):
    add(f"SIGTERM ends within 5 s with the driver in {text}", ends_although, fault(text))


@test("SIGTERM ends within 5 s while nvmlInit hangs")
def ends_in_init():
    with Agent(fault("fault: init_hang"), wait=False) as agent:
        time.sleep(0.5)
        start = time.monotonic()
        agent.signal(signal.SIGTERM)
        check(agent.wait_exit() == 0, "not 0")
        check(time.monotonic() - start < 5, f"took {time.monotonic() - start:.1f} s")


# ---- lost ----


@test("a lost GPU comes back: others go on meanwhile, its readings return")
def lost_and_found():
    two = "gpus: [{board: A100-40, utilization: 20}, {board: A100-40, utilization: 30}]\n"
    with Agent(two) as agent, Scaler(agent.address) as scaler:
        agent.play(two + "faults: [{fault: lost, gpu: 0}]\n")
        wait_until(lambda: agent.metric("keda_gpu_scaler_gpu_up") == 1, "gpu_up of one GPU to fall")
        check("device lost" in agent.log(), "the log says nothing")
        agent.play(two.replace("30", "55") + "faults: [{fault: lost, gpu: 0}]\n")
        wait_until(lambda: scaler.value({"gpuIndex": "1", "window": "0"}) == 55, "the other GPU's new value")
        agent.play(two.replace("20", "70"))
        wait_until(lambda: agent.metric("keda_gpu_scaler_gpu_up") == 2, "both GPUs", 60)
        wait_until(lambda: scaler.value({"gpuIndex": "0", "window": "0"}) == 70, "its new value")


# ---- only a restart helps ----


def restarts(faults):
    with Agent(SCENARIO, "--restart-after=2s") as agent, Scaler(agent.address) as scaler:
        check(scaler.value({}) == 60, "no value at first")
        agent.play(SCENARIO + f"faults: [{faults}]\n")
        check(agent.wait_exit(90) == 1, f"not 1\n{agent.log()[-1500:]}")
        check("only a restart" in agent.log(), agent.log()[-1500:])


for name, faults in (("a driver upgrade under a running container", "{fault: lib_rm_version_mismatch}"),
                     ("device access taken from a running container",
                      "{fault: unknown}, {fault: unknown, function: nvmlInit*}")):
    add(f"{name}: the agent exits with 1 and the reason after --restart-after", restarts, faults)


@test("states that a restart does not help are waited out")
def no_restart():
    with Agent(fault("fault: driver_not_loaded"), "--restart-after=1s", wait=False) as agent:
        agent.wait_driver(False)
        time.sleep(8)
        check(agent.process.poll() is None, f"the agent ended\n{agent.log()[-1500:]}")


@test("a mismatch that passes before --restart-after is forgiven")
def mismatch_passes():
    with Agent(SCENARIO, "--restart-after=60s") as agent, Scaler(agent.address) as scaler:
        agent.play(fault("fault: lib_rm_version_mismatch"))
        agent.wait_driver(False)
        agent.play(SCENARIO)
        agent.wait_driver()
        check(scaler.value({}) == 60, "no value")
