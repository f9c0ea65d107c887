"""The Grafana dashboard of deploy/grafana: any data source, metrics that there are, queries that Prometheus reads."""
import json
import re

from agent import check
from alerts import METRIC, known_metrics
from cache import ROOT
from dcgm import prometheus
from suite import test

DASHBOARD = ROOT / "deploy/grafana/keda-gpu-scaler.json"


def dashboard():
    return json.loads(DASHBOARD.read_text())


def queries(board=None):
    """Every query with the variables as they stand when everything is chosen."""
    expressions = [t["expr"] for panel in (board or dashboard())["panels"] for t in panel.get("targets", ())]
    return [re.sub(r"\$(instance|uuid)\b", ".*", e).replace("$__rate_interval", "1m") for e in expressions]


def all_of(value, key):
    """What stands under the key, at any depth."""
    if isinstance(value, dict):
        return [v for k, v in value.items() if k == key] + [x for v in value.values() for x in all_of(v, key)]
    return [x for v in value for x in all_of(v, key)] if isinstance(value, list) else []


@test("the dashboard works with any data source: it names none")
def sources():
    board = dashboard()
    found = all_of(board, "datasource")
    check(len(found) > 20 and all(source == {"type": "prometheus", "uid": "${datasource}"} for source in found), f"{found}")
    check(all_of(board, "uid") == ["${datasource}"] * len(found) and "id" not in board, "an id of some Grafana")
    kinds = {v["name"]: v["type"] for v in board["templating"]["list"]}
    check(kinds == {"datasource": "datasource", "instance": "query", "uuid": "query"}, f"{kinds}")


@test("panels of the dashboard have a title, say what they show, and do not overlap")
def panels():
    taken, ids = set(), set()
    for panel in dashboard()["panels"]:
        check(panel["title"] and (panel["type"] == "row" or panel["description"]), f"{panel['id']}")
        check(panel["id"] not in ids, f"{panel['id']} twice")
        ids.add(panel["id"])
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        check(not cells & taken and at["x"] + at["w"] <= 24, f"{panel['title']} overlaps")
        taken |= cells


@test("the dashboard asks for metrics that the agent gives")
def metrics():
    asked = {name for query in queries() for name in METRIC.findall(query)}
    check(len(asked) > 20 and asked <= known_metrics(), f"unknown: {asked - known_metrics()}")


@test("Prometheus reads every query of the dashboard")
def parses():
    for query in queries():
        prometheus().query(query)  # raises where Prometheus answers 400
