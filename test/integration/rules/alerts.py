"""The alerts of deploy/prometheus: valid, tested, each of them by a test that can fail, and the same for the operator."""
import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import tempfile

import cache
from agent import check
from cache import ROOT
from suite import add, test

RULES = ROOT / "deploy/prometheus/keda-gpu-scaler.rules.yaml"
TESTS = ROOT / "test/integration/rules/rules.test.yaml"
METRIC = re.compile(r"\b(?:keda_gpu_scaler|grpc_server|process|DCGM_FI)_\w+")


def promtool(*words):
    """(exit status, everything said)."""
    program = cache.go_programs("prometheus") / "promtool"
    result = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
    return result.returncode, result.stdout + result.stderr


def known_metrics():
    """Names of the samples on the golden pages, and of the documented families: those of a live agent."""
    names = set(re.findall(r"^\| `(\w+)` \| (?:gauge|counter|histogram) \|", (ROOT / "docs/metrics.md").read_text(),
                           re.MULTILINE))
    for page in ("metrics.txt", "dcgm.txt"):
        names |= set(re.findall(r"^(\w+)(?:\{| )", (ROOT / "test/golden" / page).read_text(), re.MULTILINE))
    return names | {name + suffix for name in names for suffix in ("_bucket", "_sum", "_count")}


def code(text):
    """YAML without its comments."""
    return re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)


def rules():
    """{alert: its whole text}."""
    parts = re.split(r"^  - alert: (\w+)$", code(RULES.read_text()), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


@test("the alerts are valid for Prometheus")
def valid():
    status, text = promtool("check", "rules", RULES)
    check(status == 0 and f"{len(rules())} rules found" in text, text)


@test("the alerts fire when they must and not when they must not")
def fire():
    status, text = promtool("test", "rules", TESTS)
    check(status == 0, text)


def can_fail(alert):
    """An alert that never fires breaks a test; so does one that always does."""
    with tempfile.TemporaryDirectory(prefix="kgs-") as folder:
        for never in (True, False):
            text = RULES.read_text()
            before, name, after = text.partition(f"  - alert: {alert}\n")
            check(name, f"no alert {alert}")
            expression = "vector(0) > 1" if never else "vector(1)"
            body = re.sub(r"(?ms)^    expr: .*?(?=^    (?:for|labels):)", f"    expr: {expression}\n", after, count=1)
            check(body != after, "nothing was replaced")
            changed = pathlib.Path(folder) / "rules.yaml"
            changed.write_text(before + name + body)
            tests = pathlib.Path(folder) / "tests.yaml"
            tests.write_text(re.sub(r"(?m)^rule_files:.*$", f"rule_files: [{changed}]", TESTS.read_text()))
            status, said = promtool("test", "rules", tests)
            check(status == 1 and alert in said, f"{alert} with {expression}: {said[-500:]}")


for alert_name in rules():
    add(f"the tests notice an alert {alert_name} that never fires, or always", can_fail, alert_name)


@test("alerts have a severity, a summary and a description")
def texts():
    for alert, text in rules().items():
        check(re.search(r"labels: \{severity: (critical|warning|info)\}", text), f"{alert}: no severity")
        check("summary:" in text and "description:" in text, f"{alert}: no summary or description")


@test("alerts ask for metrics that the agent gives")
def metrics():
    unknown = {name for text in rules().values() for name in METRIC.findall(text)} - known_metrics()
    check(not unknown, f"unknown: {unknown}")


@test("the operator's file is that of tools/make-goldens")
def operator():
    loader = importlib.machinery.SourceFileLoader("make_goldens", str(ROOT / "tools/make-goldens"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_goldens", loader))
    loader.exec_module(module)
    check((ROOT / "deploy/prometheus/prometheusrule.yaml").read_text() == module.operator_rules(),
          "deploy/prometheus/prometheusrule.yaml is not what tools/make-goldens writes")
