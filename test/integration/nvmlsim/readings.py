"""What nvidia-ml-py reads of every GPU, as one line of JSON for every line on stdin. A refusal is its exception's name."""
import json
import sys
import time

import pynvml as nvml

GPM_SM_UTIL = 2


def attempt(read):
    try:
        return read()
    except nvml.NVMLError as error:
        return type(error).__name__


def memory(device, version=None):
    info = nvml.nvmlDeviceGetMemoryInfo(device, version) if version else nvml.nvmlDeviceGetMemoryInfo(device)
    return {name: getattr(info, name) for name in ("total", "used", "free", "reserved") if hasattr(info, name)}


def utilization(device):
    rates = nvml.nvmlDeviceGetUtilizationRates(device)
    return [rates.gpu, rates.memory]


def energy_w(device):
    """Mean power over a quarter of a second, from two readings of the energy counter."""
    first, start = nvml.nvmlDeviceGetTotalEnergyConsumption(device), time.monotonic()
    time.sleep(0.25)
    return (nvml.nvmlDeviceGetTotalEnergyConsumption(device) - first) / 1000 / (time.monotonic() - start)


def fields(device):
    values = nvml.nvmlDeviceGetFieldValues(device, [82, 83, 9999])
    return [[value.nvmlReturn, value.value.uiVal] for value in values]


def gpm_sm(device):
    first, second = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
    try:
        nvml.nvmlGpmSampleGet(device, first)
        time.sleep(0.11)
        nvml.nvmlGpmSampleGet(device, second)
        question = nvml.c_nvmlGpmMetricsGet_t()
        question.version = nvml.NVML_GPM_METRICS_GET_VERSION
        question.numMetrics = 1
        question.sample1, question.sample2 = first, second
        question.metrics[0].metricId = GPM_SM_UTIL
        return nvml.nvmlGpmMetricsGet(question).metrics[0].value
    finally:
        nvml.nvmlGpmSampleFree(first)
        nvml.nvmlGpmSampleFree(second)


def processes(device):
    """[[pid, memory]] of all lists; a process that stands in several counts once."""
    found = {}
    for read in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses,
                 nvml.nvmlDeviceGetMPSComputeRunningProcesses):
        for process in read(device):
            found[process.pid] = max(found.get(process.pid, 0), process.usedGpuMemory)
    return sorted([pid, used] for pid, used in found.items())


def loads(device):
    """{pid: percent} of the processes that were busy within a second."""
    since_us = int((time.time() - 1) * 1000000)
    return {sample.pid: sample.smUtil for sample in nvml.nvmlDeviceGetProcessUtilization(device, since_us)}


def mig_devices(device):
    found = []
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(device)):
        try:
            mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
        except nvml.NVMLError_NotFound:
            continue
        found.append({"index": index, "name": nvml.nvmlDeviceGetName(mig), "uuid": nvml.nvmlDeviceGetUUID(mig),
                      "used": nvml.nvmlDeviceGetMemoryInfo(mig).used, "processes": processes(mig)})
    return found


def readings(device):
    return {
        "name": nvml.nvmlDeviceGetName(device),
        "uuid": nvml.nvmlDeviceGetUUID(device),
        "utilization": attempt(lambda: utilization(device)),
        "memory": memory(device),
        "memory_v2": memory(device, nvml.nvmlMemory_v2),
        "power_mw": nvml.nvmlDeviceGetPowerUsage(device),
        "energy_w": energy_w(device),
        "temperature": nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
        "clocks": {"sm": nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
                   "max_sm": nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM)},
        "pcie_kbps": [nvml.nvmlDeviceGetPcieThroughput(device, nvml.NVML_PCIE_UTIL_TX_BYTES),
                      nvml.nvmlDeviceGetPcieThroughput(device, nvml.NVML_PCIE_UTIL_RX_BYTES)],
        "decoder": attempt(lambda: nvml.nvmlDeviceGetDecoderUtilization(device)[0]),
        "processes": processes(device),
        "loads": attempt(lambda: loads(device)),
        "fields": fields(device),
        "gpm_sm": attempt(lambda: gpm_sm(device)),
        "mig_mode": attempt(lambda: list(nvml.nvmlDeviceGetMigMode(device))),
        "mig": mig_devices(device),
    }


def main():
    nvml.nvmlInit()
    for _ in sys.stdin:
        answer = {
            "versions": [nvml.nvmlSystemGetDriverVersion(), nvml.nvmlSystemGetNVMLVersion(),
                         nvml.nvmlSystemGetCudaDriverVersion_v2()],
            "gpus": [readings(nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(nvml.nvmlDeviceGetCount())],
        }
        print(json.dumps(answer), flush=True)
    nvml.nvmlShutdown()


main()
