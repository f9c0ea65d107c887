"""deploy/examples on the real API server and the real KEDA: each file is taken with every field known, and each
ScaledObject gets the HPA that it describes."""

import collections
import functools
import json
import pathlib
import subprocess
import sys
import urllib.parse

from rig import settings, wait
from rig.scenario import scenario

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "deploy/examples"
# Operators that are not here: test/integration/examples looks at their objects' structure. The last one is no longer.
FOREIGN = {"leaderworkerset.x-k8s.io/v1", "karpenter.sh/v1", "karpenter.k8s.aws/v1", "monitoring.coreos.com/v1", "karpenter.sh/v1beta1"}


# For the system's Python, which has Debian's PyYAML: the one that runs this has no more than gRPC.
READ = """import json, pathlib, sys, yaml
json.dump([(str(path.relative_to(sys.argv[1])), thing) for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.yaml"))
           for thing in yaml.safe_load_all(path.read_text()) if thing and "-values" not in path.name], sys.stdout)"""


@functools.cache
def _objects():
    """(file, object) of all that kubectl would apply."""
    python = pathlib.Path(sys.base_prefix) / "bin/python3"
    found = json.loads(subprocess.run([python, "-c", READ, FOLDER], check=True, stdout=subprocess.PIPE, timeout=60).stdout)
    assert found, f"no examples in {FOLDER}"
    return found


class _Api:
    """The API server as kubectl sees it: by apiVersion and kind."""

    def __init__(self, api):
        self._api, self._resources = api, {}

    def path(self, thing, namespace=None):
        version = thing["apiVersion"]
        base = ("/apis/" if "/" in version else "/api/") + version
        if version not in self._resources:
            rows = self._api.get(base)["resources"]
            self._resources[version] = {row["kind"]: row for row in rows if "/" not in row["name"]}
        row = self._resources[version][thing["kind"]]
        space = f"/namespaces/{namespace or thing['metadata'].get('namespace', 'default')}" if row["namespaced"] else ""
        return f"{base}{space}/{row['name']}/{thing['metadata']['name']}"

    def namespace(self, name):
        self._api.apply(f"/api/v1/namespaces/{name}", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def try_out(self, thing):
        """A server-side apply that is not kept and knows each field."""
        query = urllib.parse.urlencode({"fieldManager": "e2e", "force": "true", "dryRun": "All", "fieldValidation": "Strict"})
        self._api.request("PATCH", f"{self.path(thing)}?{query}", thing, "application/apply-patch+yaml")


@scenario("the examples: the API server takes every object, no field of which is unknown")
def examples_are_valid(context):
    api, seen = _Api(context.cluster.api), collections.Counter()
    for name in sorted({thing["metadata"].get("namespace", "default") for _, thing in _objects()}):
        api.namespace(name)
    for path, thing in _objects():
        kind = f"{thing['apiVersion']} {thing['kind']}"
        if thing["apiVersion"] in FOREIGN:
            context.expect(context.cluster.api.find(f"/apis/{thing['apiVersion']}") is None, f"{kind} not to be served")
            continue
        try:
            api.try_out(thing)
        except Exception as error:  # whose it is, is not in it
            raise AssertionError(f"{path}: {kind}: {error}") from error
        seen[kind] += 1
    broken = {**next(thing for _, thing in _objects() if thing["kind"] == "ScaledObject")}
    broken["spec"] = {**broken["spec"], "maxReplicas": 3}
    try:
        api.try_out(broken)
        taken = True
    except Exception:
        taken = False
    context.expect(not taken, "an unknown field to be refused")
    context.note(", ".join(f"{count} {kind}" for kind, count in sorted(seen.items())))


def _elsewhere(trigger, hub, closed):
    """The trigger with our hub in it, and addresses that refuse at once in place of servers that are not here."""
    metadata = dict(trigger["metadata"])
    if trigger["type"] == "external":
        metadata["scalerAddress"] = hub.address
    if "wakeEndpoint" in metadata:
        metadata["wakeEndpoint"] = f"http://127.0.0.1:{closed}/metrics"
    if "serverAddress" in metadata:
        metadata["serverAddress"] = f"http://127.0.0.1:{closed}"
    if trigger["type"] == "rabbitmq":
        metadata["host"] = f"http://guest:guest@127.0.0.1:{closed}/batch"
    return {**{k: v for k, v in trigger.items() if k != "authenticationRef"}, "metadata": metadata}


def _is_asked_of_a_hub(thing):
    """Has a trigger of ours, of a scope that a hub serves, and a target that the API server knows."""
    return thing["kind"] == "ScaledObject" and thing["spec"]["scaleTargetRef"].get("apiVersion") not in FOREIGN and any(
        t["type"] == "external" and t["metadata"].get("scope") != "node" for t in thing["spec"]["triggers"])


def _check_hpa(context, path, spec, hpa):
    context.expect(len(hpa["spec"]["metrics"]) == len(spec["triggers"]), f"{path}: a metric for each trigger: {hpa['spec']}")
    context.expect(hpa["spec"]["maxReplicas"] == spec.get("maxReplicaCount", 100), f"{path}: its maximum: {hpa['spec']}")
    for index, trigger in enumerate(spec["triggers"]):
        if trigger["type"] == "external" and "targetValue" in trigger["metadata"]:
            target = hpa["spec"]["metrics"][index]["external"]["target"]
            wanted = trigger["metadata"]["targetValue"]
            wanted = "100" if "," in wanted else wanted  # of several: % of their targets
            context.expect(target["averageValue"] == wanted, f"{path}: its target: {target}")
    behavior = spec.get("advanced", {}).get("horizontalPodAutoscalerConfig", {}).get("behavior", {})
    for direction, wanted in behavior.items():
        has = hpa["spec"]["behavior"][direction]
        context.expect({**has, **wanted} == has, f"{path}: its behavior: {has}")


def _key(thing, kind, name):
    return thing["metadata"].get("namespace", "default"), kind, name


def _target_of(scaled):
    """What a ScaledObject scales, from the examples; a Deployment of ours where its document has none."""
    ref = scaled["spec"]["scaleTargetRef"]
    known = {_key(thing, thing["kind"], thing["metadata"]["name"]): thing for _, thing in _objects()}
    labels = {"app": ref["name"]}
    return known.get(_key(scaled, ref.get("kind", "Deployment"), ref["name"])) or {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": ref["name"]},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "example.invalid/x:1"}]}}}}


def _create(api, raw, namespace, scaled, change):
    """The ScaledObject with its target, in a namespace of its own."""
    api.namespace(namespace)
    triggers = [change(trigger) for trigger in scaled["spec"]["triggers"]]
    for thing in (_target_of(scaled), {**scaled, "spec": {**scaled["spec"], "triggers": triggers}}):
        raw.apply(api.path(thing, namespace),
                  {**thing, "metadata": {"name": thing["metadata"]["name"], "namespace": namespace}})


@scenario("the examples: KEDA makes of each ScaledObject the HPA that it describes, its own triggers included")
def examples_get_hpas(context):
    raw, hub, closed = context.cluster.api, context.hub(agents=[]), context.cluster.ports.take()
    api = _Api(raw)
    rows = [(path, thing, f"{context.name}-{number}") for number, (path, thing) in enumerate(_objects())
            if _is_asked_of_a_hub(thing)]
    try:
        for _, thing, namespace in rows:
            _create(api, raw, namespace, thing, lambda trigger: _elsewhere(trigger, hub, closed))
        for path, thing, namespace in rows:
            name = f"keda-hpa-{thing['metadata']['name']}"
            where = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{name}"
            hpa = wait.until(f"{path}: an HPA", functools.partial(raw.find, where), settings.PATIENCE_S)
            _check_hpa(context, path, thing["spec"], hpa)
        context.note(f"{len(rows)} ScaledObjects, {len(rows)} HPAs")
    finally:
        for _, thing, namespace in rows:
            raw.delete(api.path(thing, namespace))
        wait.until("KEDA to let go of the examples", lambda: all(
            raw.find(api.path(thing, namespace)) is None for _, thing, namespace in rows), 20)
        for _, _, namespace in rows:
            raw.delete(f"/api/v1/namespaces/{namespace}")
