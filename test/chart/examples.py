"""Values that the documents about this kind of scaling show: the chart takes them, and the program what comes of them."""
import program
import yaml
from chart import ROOT, equal, template
from suite import add, test

FOLDER = ROOT / "deploy/examples/documents"
VALUES = sorted(FOLDER.glob("*-values*.yaml"))

for path in VALUES:
    add(f"the chart and the program take deploy/examples: {path.name}", program.accepts, path)


@test("the Spanish guide's values: its metrics are in force, and its image is what its note warns of")
def spanish_values():
    rendered = template("-f", FOLDER / "spanish-values.yaml")
    equal([(m["name"], m["targetValue"], m["aggregation"]) for m in rendered.config()["metrics"]],
          [("gpu_memory_used", 80, "max"), ("gpu_utilization", 70, "avg")], "metrics")
    equal(rendered.container("DaemonSet")["image"], "ghcr.io/epower/keda-gpu-scaler:v0.10.0", "image")
    equal(len(VALUES), len([p for p in FOLDER.glob("*.yaml") if "apiVersion" not in next(yaml.safe_load_all(p.read_text()))]),
          "files of values")
