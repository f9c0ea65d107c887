"""What every example has: a head that says what it is for, objects of kinds that are known, and things that fit each
other."""
import hashlib
import pathlib
import re

import examples
from agent import check
from examples import ALL, FOLDER, OWN_TEXT, ROOT, external, target_of, targets
from suite import add, test

HERE = pathlib.Path(__file__).resolve().parent
# Kinds that the API server of `make e2e` knows, with whether they have a namespace. Their fields are checked there.
SERVED = {
    ("v1", "ConfigMap"), ("v1", "PersistentVolumeClaim"), ("v1", "Secret"), ("v1", "Service"), ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"), ("autoscaling/v2", "HorizontalPodAutoscaler"), ("batch/v1", "Job"),
    ("networking.k8s.io/v1", "NetworkPolicy"), ("policy/v1", "PodDisruptionBudget"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"), ("keda.sh/v1alpha1", "ScaledJob"), ("keda.sh/v1alpha1", "ScaledObject"),
    ("keda.sh/v1alpha1", "TriggerAuthentication"),
}
# Kinds whose definitions are not at hand: the keys that an object must have, and the only ones that it may.
FOREIGN = {
    ("karpenter.sh/v1", "NodePool"): ({"template"}, {"disruption", "limits", "weight"}),
    ("karpenter.k8s.aws/v1", "EC2NodeClass"): (
        {"amiSelectorTerms", "role", "subnetSelectorTerms", "securityGroupSelectorTerms"}, {"blockDeviceMappings", "tags"}),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): ({"leaderWorkerTemplate"}, {"rolloutStrategy", "startupPolicy"}),
    ("monitoring.coreos.com/v1", "PrometheusRule"): ({"groups"}, set()),
}
# Kept for what it is, and said so in its head.
OUTDATED = {"documents/german-nodepool.yaml"}


def head(example):
    """What a reader looks for first."""
    check(not example.head.startswith("#\n") and len(example.head.splitlines()) >= 3, "no head")
    words = ("Works", "Does not") if example.is_document else ("Reaches", "Cannot", "Change", "Lint")
    found = [word for word in words if example.says(word)]
    check(found and (example.is_document or found == list(words)), f"the head has {found} of {words}")
    if example.is_document:
        check(OWN_TEXT in example.text and example.text.split(OWN_TEXT)[0] == example.head.split(OWN_TEXT)[0],
              "the document's own text is not set apart")


def kinds(example):
    """Known ones, with the fields that those must have whose definitions are not at hand."""
    check(not example.error, f"it does not parse: {example.error}")
    check(example.objects or example.is_values, "no object")
    for thing in example.objects:
        kind = thing["apiVersion"], thing["kind"]
        check(re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", thing["metadata"]["name"]), thing["metadata"])
        if example.name in OUTDATED:
            check(kind not in SERVED and kind not in FOREIGN, f"{kind} is known by now")
        elif kind in FOREIGN:
            needs, may = FOREIGN[kind]
            has = set(thing["spec"])
            check(needs <= has <= needs | may, f"{kind} has {has}, needs {needs}, may have {may}")
        else:
            check(kind in SERVED, f"{kind} is not known")


for one in ALL:
    add(f"{one.name}: its head says what it is for", head, one)
    add(f"{one.name}: it parses, and its kinds are known", kinds, one)


@test("the pool of Karpenter's v1 has what moved there from v1beta1")
def node_pool():
    [pool] = [t for e in ALL if e.name not in OUTDATED for t in e.of_kind("NodePool")]
    template, disruption = pool["spec"]["template"]["spec"], pool["spec"]["disruption"]
    check({"nodeClassRef", "requirements", "expireAfter"} <= set(template), template)
    check(set(template["nodeClassRef"]) == {"group", "kind", "name"}, template["nodeClassRef"])
    check(disruption["consolidationPolicy"] in ("WhenEmpty", "WhenEmptyOrUnderutilized"), disruption)
    check("expireAfter" not in disruption and disruption["consolidateAfter"], disruption)
    check(("default", "EC2NodeClass", template["nodeClassRef"]["name"]) in targets(), "no such class")


@test("no two objects of one kind have one name, and what an object refers to is in some example")
def references():
    seen = set()
    for example in ALL:
        for thing in example.objects:
            key = thing["apiVersion"], thing["kind"], thing["metadata"].get("namespace"), thing["metadata"]["name"]
            check(key not in seen or example.is_document, f"{example.name}: {key} is in another example too")
            seen.add(key)
    for example in (e for e in ALL if not e.is_document):
        for scaled in example.of_kind("ScaledObject"):
            check(target_of(scaled) in targets(), f"{example.name}: nothing has {target_of(scaled)}")
        for scaled in example.of_kind("ScaledObject", "ScaledJob"):
            for trigger in scaled["spec"]["triggers"]:
                if "authenticationRef" in trigger:
                    key = scaled["metadata"]["namespace"], "TriggerAuthentication", trigger["authenticationRef"]["name"]
                    check(key in targets(), f"{example.name}: nothing has {key}")
        for given in example.of_kind("TriggerAuthentication"):
            for ref in given["spec"]["secretTargetRef"]:
                secret = targets().get((given["metadata"]["namespace"], "Secret", ref["name"]), {})
                check(ref["key"] in secret.get("stringData", {}), f"{example.name}: no key {ref}")


@test("ours have a fallback that can act, no count in what is scaled, and no query that takes nothing for 0")
def habits():
    for example in (e for e in ALL if not e.is_document):
        for scaled in example.of_kind("ScaledObject"):
            spec = scaled["spec"]
            check({"minReplicaCount", "maxReplicaCount", "fallback"} <= set(spec), f"{example.name}: {set(spec)}")
            check(spec["fallback"]["behavior"].startswith("currentReplicas") and spec["fallback"]["replicas"] > 0, example.name)
            check(external(scaled), f"{example.name}: no trigger of ours")
            target = targets()[target_of(scaled)]
            check("replicas" not in target["spec"], f"{example.name}: the target's manifest sets the count")
        for scaled in example.of_kind("ScaledObject", "ScaledJob"):
            for trigger in scaled["spec"]["triggers"]:
                check(trigger["type"] != "prometheus" or trigger["metadata"].get("ignoreNullValues") == "false",
                      f"{example.name}: {trigger['metadata'].get('query')}: nothing found counts as 0")


@test("pods that ask for a GPU bear the taint, and a server that is scaled says when it is ready")
def pods():
    for example in ALL:
        for thing in example.of_kind("Deployment", "StatefulSet", "Job"):
            pod = thing["spec"]["template"]["spec"]
            check(any(t["key"] == "nvidia.com/gpu" for t in pod["tolerations"]), f"{example.name}: no toleration")
            asks = [c for c in pod["containers"] if any("nvidia.com/" in name for name in c["resources"].get("limits", {})) or
                    c["resources"].get("claims")]
            check(asks, f"{example.name}: asks for no GPU in its limits")
            for container in asks:
                has_port = any(p["name"] == "http" for p in container.get("ports", []))
                check(example.is_document or not has_port or container.get("readinessProbe"),
                      f"{example.name}: no readinessProbe")


@test("the folder's page has a row for each file, and each row a file")
def page():
    text = (FOLDER / "README.md").read_text()
    rows = set(re.findall(r"^\| \[[^\]]+\]\(([^)]+\.yaml)\)", text, re.MULTILINE))
    names = {e.name for e in ALL}
    check(rows == names, f"without a row: {sorted(names - rows)}; without a file: {sorted(rows - names)}")


@test("the documents' own text is as they have it")
def unchanged():
    listed = dict(reversed(line.split()) for line in (HERE / "documents.sha256").read_text().splitlines())
    found = {e.path.name: hashlib.sha256(e.text.split(OWN_TEXT)[1].encode()).hexdigest() for e in ALL if e.is_document}
    check(found == listed, f"changed: {sorted(set(found.items()) ^ set(listed.items()))}")


@test("what the examples point to is there")
def pointers():
    for example in ALL:
        for word in re.findall(r"(?:\.\./)*[\w./-]+\.(?:yaml|md)\b", example.head.split(OWN_TEXT)[0]):
            where = [(example.path.parent / word), (FOLDER / word), (ROOT / word)]
            check(any(path.exists() for path in where) or word.endswith("values.yaml"), f"{example.name}: no {word}")


assert examples.ALL, "no examples"
