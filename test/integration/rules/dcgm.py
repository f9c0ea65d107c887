"""Queries that people have for dcgm-exporter, asked of a real Prometheus that scrapes the golden page of its families: the
page is what the exporter gives (test/unit/exporter), with pods on it. Two nodes: the page as it is, and one that is hot,
full and idle. Three Prometheus: one honors the page's labels, one puts the target's in their place, one is set up as
deploy/prometheus/podmonitor.yaml says."""
import functools
import http.server
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request

import cache
from agent import check, free_port, spawn, wait_until
from cache import ROOT
from suite import add, test

# What the second node has instead: DCGM's family, of which GPU, value.
OTHER = (("DCGM_FI_DEV_GPU_TEMP", "91"), ("DCGM_FI_DEV_FB_FREE", "30000"), ("DCGM_FI_DEV_GPU_UTIL", "3"))
_folder = tempfile.TemporaryDirectory(prefix="kgs-")
FOLDER = pathlib.Path(_folder.name)
_lock = threading.RLock()


def other_node(page):
    for family, value in OTHER:
        page = re.sub(rf"(?m)^({family}\{{.*\}}) .*$", rf"\1 {value}", page)
    return re.sub(r"\b(node|llm|mig)-[01]\b", lambda m: m[1] + ("-2" if m[1] == "node" else "-1"), page)


class Page(http.server.BaseHTTPRequestHandler):
    """/1 and /2: the page of each node in the format that was asked for."""

    def do_GET(self):  # pylint: disable=invalid-name
        is_strict = "openmetrics" in self.headers.get("Accept", "")
        text = (ROOT / "test/golden" / ("dcgm.openmetrics.txt" if is_strict else "dcgm.txt")).read_text()
        body = (other_node(text) if self.path == "/2" else text) + ("# EOF\n" if is_strict else "")
        self.send_response(200)
        self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8" if is_strict
                         else "text/plain; version=0.0.4; charset=utf-8")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Prometheus:
    """One that scrapes both nodes as the operator sets it up: the target is a pod itself."""

    def __init__(self, setup, port):
        self.port = free_port()
        folder = FOLDER / setup
        folder.mkdir()
        monitor = (ROOT / "deploy/prometheus/podmonitor.yaml").read_text()
        is_honoring = setup == "honored" or (setup == "monitored" and "honorLabels: true" in monitor)
        dropped = re.search(r"labeldrop, regex: (\S+)}", monitor)[1]
        config = f"""global: {{scrape_interval: 1s, scrape_timeout: 900ms}}
scrape_configs:
- job_name: gpu
  honor_labels: {str(is_honoring).lower()}
  scrape_protocols: [{"OpenMetricsText1.0.0" if is_honoring else "PrometheusText0.0.4"}]
  static_configs:
"""
        if setup == "monitored":
            config = config.replace("  static_configs:", f"  relabel_configs: [{{action: labeldrop, regex: {dropped}}}]\n"
                                    "  static_configs:")
        for node in "12":
            config += (f"  - targets: ['localhost:{port}']\n    labels: {{__metrics_path__: /{node}, instance: node-{node}, "
                       f"namespace: gpu-monitoring, pod: agent-{node}, container: agent}}\n")
        (folder / "prometheus.yml").write_text(config)
        with open(folder / "log", "wb") as log:
            self.process = spawn([cache.go_programs("prometheus") / "prometheus", f"--config.file={folder}/prometheus.yml",
                                  f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{self.port}"],
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        wait_until(self._has_scraped, "both nodes to be scraped", 60)

    def get(self, path, **words):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        query = urllib.parse.urlencode([(k, v) for k, v in words.items()])
        return json.loads(opener.open(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=30).read())["data"]

    def _has_scraped(self):
        try:
            return len(self.query("DCGM_FI_DEV_GPU_TEMP")) == 4
        except urllib.error.URLError:
            return False

    def query(self, text):
        """[(labels, value)]"""
        return [(r["metric"], float(r["value"][1])) for r in self.get("query", query=text)["result"]]


@functools.cache
def _prometheus(setup):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return Prometheus(setup, server.server_address[1])


def prometheus(setup="honored"):
    with _lock:
        return _prometheus(setup)


def gives(setup, query, by, want):
    """The query's answer as {value of the labels `by`, with / between them: value}, rounded to thousandths."""
    got = {"/".join(labels.get(name, "") for name in by): round(value, 3) for labels, value in
           prometheus(setup).query(query)}
    check(got == want, f"{got}, want {want}")
    check(len(prometheus(setup).query(query)) == len(want), "series that these labels do not tell apart")


NODE_GPU = ("Hostname", "gpu")
ALL_BOARDS = 'instance=~"node-.*",gpu=~"0|2"'  # as the dashboard's variables stand when everything is chosen
# (whose, query, labels that tell the answer apart, answer)
QUERIES = [
    ("ScaledObject", 'avg(DCGM_FI_DEV_GPU_UTIL{namespace="ml-production"})', (), {"": 45}),
    ("alert", "DCGM_FI_DEV_GPU_TEMP > 85", NODE_GPU, {"node-2/0": 91, "node-2/2": 91}),
    ("alert", "(DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_FREE) > 0.9", NODE_GPU, {"node-2/0": 1.032}),
    ("alert", "avg_over_time(DCGM_FI_DEV_GPU_UTIL[1h]) < 10", NODE_GPU, {"node-2/0": 3}),
    ("alert", "DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) > 0.5", NODE_GPU, {"node-2/0": 0.508}),
    ("alert", "DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_TOTAL", NODE_GPU, {"node-1/0": 0.38, "node-2/0": 0.38}),
    ("alert", "DCGM_FI_DEV_XID_ERRORS > 0", NODE_GPU, {"node-1/1": 79, "node-2/1": 79}),
    ("alert", "DCGM_FI_DEV_ROW_REMAP_FAILURE == 1", NODE_GPU, {}),
    ("alert", "absent(DCGM_FI_DEV_GPU_TEMP)", NODE_GPU, {}),
    ("alert", "increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[5m]) > 0", NODE_GPU, {}),
    ("adapter", 'avg(DCGM_FI_DEV_GPU_UTIL{namespace="ml-production",pod=~"llm-0|llm-1"}) by (pod)', ("pod",),
     {"llm-0": 87, "llm-1": 3}),
    ("adapter", 'avg(DCGM_FI_DEV_FB_USED{namespace="ml-production",pod=~".+"}) by (namespace, pod)', ("namespace", "pod"),
     {"ml-production/llm-0": 30970.5, "ml-production/llm-1": 30970.5, "ml-production/mig-0": 500,
      "ml-production/mig-1": 500}),
    ("12239", f"DCGM_FI_DEV_GPU_TEMP{{{ALL_BOARDS}}}", NODE_GPU,
     {"node-1/0": 54, "node-1/2": 54, "node-2/0": 91, "node-2/2": 91}),
    ("12239", f"avg(DCGM_FI_DEV_GPU_TEMP{{{ALL_BOARDS}}})", (), {"": 72.5}),
    ("12239", f"sum(DCGM_FI_DEV_POWER_USAGE{{{ALL_BOARDS}}})", (), {"": 1649.5}),
    ("12239", f"DCGM_FI_DEV_SM_CLOCK{{{ALL_BOARDS}}} * 1000000", NODE_GPU,
     {"node-1/0": 1.98e9, "node-1/2": 1.98e9, "node-2/0": 1.98e9, "node-2/2": 1.98e9}),
    ("12239", f"DCGM_FI_DEV_GPU_UTIL{{{ALL_BOARDS}}}", NODE_GPU, {"node-1/0": 87, "node-2/0": 3}),
    ("12239", f"DCGM_FI_DEV_FB_USED{{{ALL_BOARDS}}}", (*NODE_GPU, "GPU_I_ID"),
     {"node-1/0/": 30970.5, "node-1/2/1": 2000, "node-1/2/7": 500,
      "node-2/0/": 30970.5, "node-2/2/1": 2000, "node-2/2/7": 500}),
    ("12239", f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{ALL_BOARDS}}}", NODE_GPU, {"node-1/0": 0.55, "node-2/0": 0.55}),
    ("sum", "sum by (Hostname) (DCGM_FI_DEV_FB_USED)", ("Hostname",), {"node-1": 33470.5, "node-2": 33470.5}),
    ("sum", "count(DCGM_FI_DEV_GPU_TEMP)", (), {"": 4}),
    ("either", 'count(DCGM_FI_DEV_GPU_TEMP{Hostname="node-1"} and DCGM_FI_DEV_GPU_TEMP{hostname="node-1"})', (), {"": 2}),
]
for whose, text, by, want in QUERIES:
    for setup_name in ("honored", "monitored"):
        add(f"{whose}, labels {setup_name}: {text}", gives, setup_name, text, by, want)
# Where the target's labels win, as dcgm-exporter's chart has it.
for text, by, want in (
        ('avg(DCGM_FI_DEV_GPU_UTIL{exported_pod=~"llm-.*"}) by (exported_pod)', ("exported_pod",),
         {"llm-0": 87, "llm-1": 3}),
        ('avg(DCGM_FI_DEV_GPU_UTIL{exported_namespace="ml-production"})', (), {"": 45}),
        ('count(DCGM_FI_DEV_FB_USED{exported_pod=""})', (), {"": 2}),
        ('count(DCGM_FI_DEV_FB_USED{pod=~"agent-.*"})', (), {"": 6})):
    add(f"labels not honored: {text}", gives, "not honored", text, by, want)


def lists_series(setup, family, pods):
    """What the adapter finds to make metrics of."""
    selector = f'DCGM_FI_DEV_{family}{{namespace!="",pod!=""}}'
    found = [series["pod"] for series in prometheus(setup).get("series", **{"match[]": selector})]
    check(sorted(found) == pods, f"{found}")


# A device without a pod has that of the target where labels are honored and the target's are not dropped.
HELD = ["llm-0", "llm-1", "mig-0", "mig-1"]
for setup_name, family, pods in (("honored", "FB_USED", ["agent-1", "agent-2", *HELD]), ("monitored", "FB_USED", HELD),
                                 ("monitored", "GPU_UTIL", HELD[:2])):
    add(f"adapter, labels {setup_name}: seriesQuery of DCGM_FI_DEV_{family}", lists_series, setup_name, family, pods)


@test("12239: the variables list instances and GPUs")
def variables():
    for name, want in (("instance", ["node-1", "node-2"]), ("gpu", ["0", "2"])):
        got = prometheus().get(f"label/{name}/values", **{"match[]": "DCGM_FI_DEV_GPU_TEMP"})
        check(got == want, f"{name}: {got}")
