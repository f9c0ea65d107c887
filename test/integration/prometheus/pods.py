"""Pods in a real Prometheus: an agent with a kubelet, a /proc and names of pods made for the test; GPUs that one pod holds,
one that pods share in time, one that nobody holds, a MIG device. What people ask of them gets the right answer."""
import json
import re
import threading

import cache
import scrape
from agent import Agent, check, wait_until
from kubelet import Kubelet, container, pod
from node import Node
from scaler import Scaler
from suite import add, test

SCENARIO = """gpus:
  - {board: H100, utilization: 80, processes: [{pid: 801, memory_mib: 40000, sm: 80}]}
  - {board: H100, utilization: 40, temperature: 91, processes: [{pid: 802, memory_mib: 20000, sm: 40}]}
  - board: H100
    utilization: 70
    processes:
      - {pid: 501, memory_mib: 20000, sm: 30}
      - {pid: 601, memory_mib: 16000, sm: 20}
      - {pid: 700, memory_mib: 1000, sm: 10}
  - {board: H100, utilization: 2, memory_used_mib: 10}
  - {board: H100, utilization: 60, processes: [{pid: 901, memory_mib: 3000, sm: 60}]}
  - board: H100
    mig: [{profile: 1g.10gb, memory_used_mib: 5000, sm_activity: 50}]
"""
LEAVER = "processes: [{pid: 901, memory_mib: 3000, sm: 60}]"
ENTRIES = """metrics:
  - {name: gpu_memory_used, aggregation: avg, type: percent}
  - {name: gpu_memory_free, aggregation: min, gpuIndex: 0}
  - {name: gpu-power, targetValue: 300}
"""
MIB = 1 << 20
_lock = threading.RLock()
_started = {}


def uuids(agent, kind):
    """UUIDs of a kind of device, by index."""
    found = [dict(re.findall(r'(\w+)="([^"]*)"', text)) for text in agent.page()["keda_gpu_scaler_gpu_info"]]
    return [d["uuid"] for d in found if d["kind"] == kind]


class Scene:
    """All of it, with a Prometheus that has scraped until every process is told."""

    def __init__(self):
        self.node, self.kubelet = Node(), Kubelet()
        for pid, number, name in ((801, 1, "ml-production_llm-0"), (802, 2, "ml-production_llm-1"),
                                  (501, 3, "ml-production_part-a"), (601, 4, "web_part-b"), (901, 5, "web_leaver")):
            self.node.in_pod(pid, number)
            self.node.name(number, *name.split("_"))
        self.node.process(700, "0::/system.slice/sshd.service")
        (self.node.path / "agent.yaml").write_text(ENTRIES)
        self.agent = Agent(SCENARIO, f"--pod-resources={self.kubelet.path}", f"--config={self.node.path}/agent.yaml",
                           *self.node.flags())
        gpus, (mig,) = uuids(self.agent, "gpu"), uuids(self.agent, "mig")
        self.kubelet.pods = [pod("ml-production", "llm-0", container("main", gpus[0])),
                             pod("ml-production", "llm-1", container("main", gpus[1])),
                             pod("ml-production", "part-a", container("main", f"{gpus[2]}::0")),
                             pod("web", "part-b", container("main", f"{gpus[2]}::1")),
                             pod("web", "slice", container("main", mig)), pod("web", "leaver", container("main", gpus[4]))]
        self.prometheus = scrape.Prometheus("pods", f"""global: {{scrape_interval: 1s, scrape_timeout: 900ms}}
scrape_configs: [{{job_name: gpu, honor_labels: true,
                  static_configs: [{{targets: ['localhost:{self.agent.metrics_port}'], labels: {{instance: node-1}}}}]}}]
""")
        told = "keda_gpu_scaler_pod_gpu_memory_used_bytes unless on (pod_name) keda_gpu_scaler_pod_gpu_memory_used_bytes == 0"
        wait_until(lambda: len(self.prometheus.query(told)) == 6 and self.prometheus.query("DCGM_FI_DEV_GPU_UTIL{pod!=''}"),
                   "every pod to be told", 60)
        wait_until(lambda: len(self.prometheus.query("count_over_time(keda_gpu_scaler_nvml_up[30s]) > 8")) == 1, "a few scrapes")

    def stop(self):
        self.prometheus.process.terminate()
        self.prometheus.process.wait(30)
        with self.agent, self.kubelet, self.node:
            pass


def scene():
    """The scene, tried once."""
    with _lock:
        if not _started:
            _started["scene"] = None
            _started["scene"] = Scene()
        check(_started["scene"], "no scene: see the first test that failed")
        return _started["scene"]


def stop():
    if _started.get("scene"):
        _started["scene"].stop()


def gives(query, by, want, tolerance):
    """The query's answer as {value of the labels `by`, with / between them: value}."""
    found = scene().prometheus.query(query)
    got = {"/".join(dict(labels).get(name, "") for name in by): value for labels, value in found.items()}
    check(len(got) == len(found), f"series that these labels do not tell apart: {found}")
    check(got.keys() == want.keys() and all(abs(got[key] - want[key]) <= tolerance for key in want), f"{got}, want {want}")


POD = ("namespace", "pod")
OWN_POD = ("pod_namespace", "pod_name")
UTILIZATION, MEMORY = "keda_gpu_scaler_pod_gpu_utilization_ratio", "keda_gpu_scaler_pod_gpu_memory_used_bytes"
# Queries that people have for dcgm-exporter: no series of a shared or free GPU names a pod.
for text, labels, answer in (
        ('avg(DCGM_FI_DEV_GPU_UTIL{namespace="ml-production"})', (), {"": 60}),
        ("DCGM_FI_DEV_GPU_TEMP > 85", ("gpu", "pod"), {"1/llm-1": 91}),
        ("(DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_FREE) > bool 0.9", ("gpu", "GPU_I_ID"),
         {"0/": 1, "1/": 0, "2/": 0, "3/": 0, "4/": 0, "5/7": 1}),
        ("avg_over_time(DCGM_FI_DEV_GPU_UTIL[1h]) < 10", ("gpu",), {"3": 2}),
        ('avg(DCGM_FI_DEV_GPU_UTIL{namespace!="",pod!="",pod!="leaver"}) by (namespace, pod)', POD,
         {"ml-production/llm-0": 80, "ml-production/llm-1": 40}),
        ('avg(DCGM_FI_DEV_FB_USED{namespace!="",pod!="",pod!="leaver"}) by (namespace, pod)', POD,
         {"ml-production/llm-0": 40000, "ml-production/llm-1": 20000, "web/slice": 5000}),
        ('count by (gpu) (DCGM_FI_DEV_GPU_UTIL{gpu=~"2|3"})', ("gpu",), {"2": 1, "3": 1}),
        # Our own: what each pod does, in GPUs and bytes.
        (f'sum by (pod_namespace, pod_name) ({UTILIZATION}{{pod_name!="leaver"}})', OWN_POD,
         {"ml-production/llm-0": 0.8, "ml-production/llm-1": 0.4, "ml-production/part-a": 0.3, "web/part-b": 0.2, "/": 0.1}),
        (f'sum by (pod_namespace, pod_name) ({MEMORY}{{pod_name!="leaver"}}) / {MIB}', OWN_POD,
         {"ml-production/llm-0": 40000, "ml-production/llm-1": 20000, "ml-production/part-a": 20000, "web/part-b": 16000,
          "/": 1000, "web/slice": 0}),
        (f'count by (pod_namespace) ({MEMORY}{{pod_name=~"part-.*"}})', ("pod_namespace",), {"ml-production": 1, "web": 1}),
        ('keda_gpu_scaler_process_sight == 1', ("state",), {"ok": 1}),
        ('keda_gpu_scaler_gpu_unattributed_utilization_ratio{gpu=~"2|3"}', ("gpu",), {"2": 0.1, "3": 0.02})):
    add(f"pods: {text}", gives, text, labels, answer, 0.011)


def adds_up(pods, rest, device, gpus):
    """In no scrape of a while do pods and rest differ from their device."""
    on = "on (gpu, uuid)"
    deviation = f"abs(sum by (gpu, uuid) ({pods}) + {on} {rest} - {on} {device})"
    gives(f"max by (gpu) (max_over_time(({deviation} / {on} {device})[8s:500ms]))", ("gpu",), dict.fromkeys(gpus, 0), 1e-9)


add("pods: the sums over a time-sliced GPU equal the device: utilization", adds_up, UTILIZATION,
    "keda_gpu_scaler_gpu_unattributed_utilization_ratio", 'keda_gpu_scaler_gpu_utilization_ratio{gpu=~"0|1|2"}', "012")
add("pods: the sums over a time-sliced GPU equal the device: memory", adds_up, MEMORY,
    "keda_gpu_scaler_gpu_unattributed_memory_bytes", 'keda_gpu_scaler_gpu_memory_used_bytes{gpu=~"0|1|2"}', "012")


@test("pods: a pod that ends leaves Prometheus, and its GPU stays")
def ends():
    prometheus = scene().prometheus
    check(prometheus.query('DCGM_FI_DEV_GPU_UTIL{pod="leaver"}') and prometheus.query(f'{MEMORY}{{pod_name="leaver"}}'),
          "it was never there")
    scene().kubelet.pods = [p for p in scene().kubelet.pods if p.name != "leaver"]
    scene().agent.play(SCENARIO.replace(f", {LEAVER}", ", memory_used_mib: 0"))
    scene().node.end(901)
    wait_until(lambda: not prometheus.query('{pod="leaver"}') and not prometheus.query('{pod_name="leaver"}'),
               "all series of the pod to end", 60)
    check(len(prometheus.query('DCGM_FI_DEV_GPU_UTIL{gpu="4",pod=""}')) == 1, "its GPU is gone")


@test("pods: entries of metrics: are families, and what a trigger of the name gets")
def entries():
    prometheus = scene().prometheus
    with Scaler(scene().agent.address) as scaler:
        power = scaler.value({"metricName": "gpu-power"})
        check(list(prometheus.query("gpu_power").values()) == [power], f"{prometheus.query('gpu_power')}, {power}")
    text = scene().agent.get("/metrics")[2].decode()
    check("# TYPE gpu_memory_used gauge\n" in text and "# HELP gpu_memory_used avg of " in text, "no gpu_memory_used")
    used = 'avg(DCGM_FI_DEV_FB_USED{pod!~"leaver|"} / DCGM_FI_DEV_FB_TOTAL)'
    check(prometheus.query(used), "no memory")
    free = re.search(r"^gpu_memory_free (\S+)$", text, re.MULTILINE)[1]
    (want,) = prometheus.query('100 * DCGM_FI_DEV_FB_FREE{gpu="0"} / DCGM_FI_DEV_FB_TOTAL').values()
    check(abs(float(free) - want) < 1e-6, f"{free}, want {want}")


@test("pods: the dashboard's panels of pods stack to the device")
def panels():
    board = json.loads((cache.ROOT / "deploy/grafana/keda-gpu-scaler.json").read_text())
    for title, device, scale in (("Utilization by pod", "keda_gpu_scaler_gpu_utilization_ratio", 1),
                                 ("Memory by pod", "keda_gpu_scaler_gpu_memory_used_bytes", MIB)):
        targets = next(panel["targets"] for panel in board["panels"] if panel["title"] == title)
        chosen = [re.sub(r"\$(instance|uuid)\b", ".*", t["expr"]).replace("{", '{gpu="2",') for t in targets]
        stack = sum(sum(scene().prometheus.query(query).values()) for query in chosen)
        (whole,) = scene().prometheus.query(f'{device}{{gpu="2"}}').values()
        check(abs(stack - whole) < 0.011 * scale, f"{title}: {stack}, the device {whole}")
