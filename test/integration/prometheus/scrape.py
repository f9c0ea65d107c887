"""A real Prometheus scrapes two agents (plaintext, mTLS) on all their ports and in every format for SCRAPED_S seconds."""
import functools
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import cache
from agent import Agent, TestFailure, check, free_port, spawn, wait_until
from certs import Authority
from scaler import Scaler
from suite import add, test

SCENARIO = """
gpus:
  - {board: H100, utilization: {sine: {mean: 50, amplitude: 40, period: 10}}, memory_used_mib: 30000, ecc: {corrected: 3}}
  - {board: T4, utilization: 20}
  - board: H100
    mig: [{profile: 3g.40gb, sm_activity: 50, memory_used_mib: 2000}, {profile: 1g.10gb}]
events: [{at: 3, gpu: 0, xid: 43}]
"""
SCRAPED_S = 20
NODE = 'no"de\\\n中'  # what escaping is for
PROTOCOLS = {"default": None, "openmetrics": "OpenMetricsText1.0.0", "text": "PrometheusText0.0.4",
             "text1": "PrometheusText1.0.0", "protobuf": "PrometheusProto"}

_folder = tempfile.TemporaryDirectory(prefix="kgs-")
FOLDER = pathlib.Path(_folder.name)
AUTHORITY = Authority(FOLDER, "ca")
SERVER, CLIENT = AUTHORITY.issue("server", "/CN=server"), AUTHORITY.issue("client", "/CN=client")
_started = {}
_lock = threading.RLock()  # the first to come starts what all use


def agents():
    """(plaintext agent, mTLS agent), each with a call answered so that series by trigger exist."""
    with _lock:
        if "agents" not in _started:
            plain = Agent(SCENARIO, f"--node-name={NODE}")
            secure = Agent(SCENARIO, f"--tls-cert={SERVER[0]}", f"--tls-key={SERVER[1]}",
                           f"--tls-client-ca={AUTHORITY.certificate}", "--metrics-tls")
            with Scaler(plain.address) as scaler:
                ref = scaler.ref({"metricName": "queue"}, name='no"name\n')
                scaler.stub.GetMetricSpec(ref, timeout=30)
                scaler.stub.IsActive(ref, timeout=30)
                scaler.value({"metricName": "queue"})
            _started["agents"] = plain, secure
    return _started["agents"]


# (name, is it the agent with TLS, which of its ports, scrape protocol)
JOBS = [(f"{prefix}{port}-{name}", bool(prefix), port, protocol) for name, protocol in PROTOCOLS.items()
        for prefix in ("", "tls-") for port in ("metrics", "grpc")] + [("probe", False, "probe", None)]


def port_of(is_tls, name):
    agent = agents()[is_tls]
    return {"metrics": agent.metrics_port, "grpc": agent.port, "probe": agent.probe_port}[name]


def _config():
    lines = ["global: {scrape_interval: 1s, scrape_timeout: 900ms}", "scrape_configs:"]
    for name, is_tls, port, protocol in JOBS:
        lines += [f"- job_name: {name}", f"  static_configs: [{{targets: ['localhost:{port_of(is_tls, port)}']}}]"]
        if protocol:
            # Protobuf is never answered: Prometheus has to find its way with text.
            extra = ", PrometheusText0.0.4" if protocol == "PrometheusProto" else ""
            lines += [f"  scrape_protocols: [{protocol}{extra}]"]
        if is_tls:
            lines += ["  scheme: https", f"  tls_config: {{ca_file: {AUTHORITY.certificate}, cert_file: {CLIENT[0]}, "
                      f"key_file: {CLIENT[1]}}}"]
    return "\n".join(lines) + "\n"


class Prometheus:
    """A running Prometheus on a port of ours; `name` is that of its files."""

    def __init__(self, name, config):
        (FOLDER / f"{name}.yml").write_text(config)
        self.port = free_port()
        self.log = open(FOLDER / f"{name}.log", "wb")  # pylint: disable=consider-using-with
        self.process = spawn([cache.go_programs("prometheus") / "prometheus", f"--config.file={FOLDER}/{name}.yml",
                              f"--storage.tsdb.path={FOLDER}/{name}", f"--web.listen-address=127.0.0.1:{self.port}"],
                             stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        wait_until(self._is_ready, "Prometheus to be ready", 60)

    def get(self, path):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return opener.open(f"http://127.0.0.1:{self.port}{path}", timeout=30).read()

    def _is_ready(self):
        try:
            return self.get("/-/ready")
        except OSError:
            return False

    def query(self, text):
        """{labels as a sorted tuple: value}"""
        answer = json.loads(self.get("/api/v1/query?" + urllib.parse.urlencode({"query": text})))
        return {tuple(sorted(r["metric"].items())): float(r["value"][1]) for r in answer["data"]["result"]}

    def by_job(self, text):
        return {dict(labels).get("job"): value for labels, value in self.query(text).items()}


@functools.cache
def _scraped():
    prometheus = Prometheus("prometheus", _config())
    wait_until(lambda: len(prometheus.by_job("up")) == len(JOBS), "a first scrape of every target")
    time.sleep(SCRAPED_S)
    return prometheus


def scraped():
    """The Prometheus after its while."""
    agents()
    with _lock:
        return _scraped()


def stop_all():
    failures = []
    if "agents" in _started:
        scraped().process.terminate()
        scraped().process.wait(30)
        for agent in _started["agents"]:
            try:
                with agent:
                    pass
            except TestFailure as failure:
                failures.append(str(failure))
    _folder.cleanup()
    check(not failures, "\n".join(failures))


def is_scraped(job):
    prometheus = scraped()
    check(prometheus.by_job("min_over_time(up[20s])").get(job) == 1, "up was not always 1: " + json.dumps(
        [t for t in json.loads(prometheus.get("/api/v1/targets"))["data"]["activeTargets"] if t["labels"]["job"] == job]))
    check(prometheus.by_job("count_over_time(up[25s])")[job] >= 12, "few scrapes")
    check(prometheus.by_job("min_over_time(scrape_samples_scraped[20s])")[job] > 300, "few samples")
    devices = prometheus.by_job("count by (job) (keda_gpu_scaler_gpu_up)")
    check(devices[job] == 5, f"{devices[job]} devices")
    for family in ("keda_gpu_scaler_gpu_utilization_ratio", "keda_gpu_scaler_samples_total", "grpc_server_started_total",
                   "grpc_server_handling_seconds_bucket", "process_resident_memory_bytes", "DCGM_FI_DEV_GPU_TEMP",
                   "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"):
        check(prometheus.by_job(f"count by (job) ({family})").get(job, 0) > 0, f"no {family}")
    check(prometheus.by_job("rate(keda_gpu_scaler_samples_total[15s])")[job] > 1, "the samples do not move")


for name, *_ in JOBS:
    add(f"Prometheus scrapes {name} for {SCRAPED_S} s without an error", is_scraped, name)


@test("Prometheus has nothing to complain of: no rejected sample, no warning in its log")
def nothing_rejected():
    prometheus = scraped()
    own = prometheus.get("/metrics").decode()
    for name in re.findall(r"^(prometheus_target_scrapes?_(?:sample|exceeded)_\w*_total) ", own, re.MULTILINE):
        check(f"\n{name} 0\n" in own, f"{name} is not 0")
    check("prometheus_target_scrapes_sample_duplicate_timestamp_total 0" in own, "duplicates, or no such counter")
    lines = [line for line in (FOLDER / "prometheus.log").read_text().splitlines()
             if re.search(r"level=(WARN|ERROR)", line) and "scrape" in line.lower()]
    check(not lines, "\n".join(lines[:5]))


def reads_labels(job):
    series = scraped().query(f'keda_gpu_scaler_build_info{{job="{job}"}}')
    check([dict(labels)["node_name"] for labels in series] == [NODE], f"{series}")


for job in ("metrics-openmetrics", "metrics-text"):
    add(f"Prometheus reads escaped labels back as they were ({job})", reads_labels, job)


@test("names that no Kubernetes object has share one label")
def invalid_names():
    names = {dict(labels)["scaledobject"] for labels in scraped().query("keda_gpu_scaler_metric_errors_total")}
    check(names == {"invalid", "workload"}, f"{names}")


@test("every query of the dashboard has an answer, but for what no agent here has")
def dashboard():
    without = {"keda_gpu_scaler_gpu_owner_info", "keda_gpu_scaler_gpu_nvlink_transmit_bytes_per_second",
               "keda_gpu_scaler_gpu_nvlink_receive_bytes_per_second", "keda_gpu_scaler_pod_gpu_utilization_ratio",
               "keda_gpu_scaler_pod_gpu_memory_used_bytes", "keda_gpu_scaler_gpu_unattributed_utilization_ratio",
               "keda_gpu_scaler_gpu_unattributed_memory_bytes"}
    board = json.loads((cache.ROOT / "deploy/grafana/keda-gpu-scaler.json").read_text())
    for text in (t["expr"] for panel in board["panels"] for t in panel.get("targets", ())):
        query = re.sub(r"\$(instance|uuid)\b", ".*", text).replace("$__rate_interval", "15s")
        query = query.replace("{", '{job="metrics-default",')
        is_filter = query.endswith("== 1")  # shows only what is wrong
        names = set(re.findall(r"\b(?:keda_gpu_scaler|process)_\w+", query))
        check(scraped().query(query) or is_filter or names & without, f"nothing for {query}")


@test("Prometheus sees counters as counters in OpenMetrics, units and all")
def metadata():
    answer = json.loads(scraped().get("/api/v1/targets/metadata?" + urllib.parse.urlencode(
        {"match_target": '{job="metrics-openmetrics"}'})))["data"]
    kinds = {entry["metric"]: entry["type"] for entry in answer}
    for family, kind in (("keda_gpu_scaler_samples", "counter"), ("keda_gpu_scaler_gpu_up", "gauge"),
                         ("grpc_server_handling_seconds", "histogram"), ("DCGM_FI_DEV_GPU_UTIL", "gauge"),
                         ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "unknown")):
        check(kinds.get(family) == kind, f"{family}: {kinds.get(family)}")
    check(all(entry["help"] for entry in answer), "a family without HELP")
