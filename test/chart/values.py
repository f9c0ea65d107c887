"""From values to objects: names, metrics, the schema, what is switched on and off."""
import subprocess
import sys

import chart
from agent import check
from chart import equal, refuse, template, with_set
from suite import add, test

NAME = "app.kubernetes.io/name"


# ---- the whole ----

@test("render-chart's copies, manifests and golden files are fresh")
def is_fresh():
    done = subprocess.run([sys.executable, chart.ROOT / "tools/render-chart", "--check"], capture_output=True, text=True,
                          check=False)
    check(done.returncode == 0, done.stdout + done.stderr)


@test("the link charts/keda-gpu-scaler leads to the chart")
def is_linked():
    equal((chart.ROOT / chart.LINK).resolve(), (chart.ROOT / chart.CHART).resolve(), "the link")


@test("chart and program have one version")
def one_version():
    version = (chart.ROOT / "VERSION").read_text().strip()
    about = chart.yaml.safe_load((chart.ROOT / chart.CHART / "Chart.yaml").read_text())
    equal([about["version"], about["appVersion"]], [version, version], "versions")
    check(f":{version}\n" in about["annotations"]["artifacthub.io/images"], "artifacthub.io/images names another version")


def lints(values):
    chart.helm("lint", "--strict", chart.CHART, *(["-f", values] if values else []))


add("helm lint --strict: default values", lints, None)
for path in chart.CI_VALUES:
    add(f"helm lint --strict: {path.name}", lints, path)


@test("the packaged chart has no CI values, and renders what the folder renders")
def is_packaged():
    import tarfile
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        chart.helm("package", chart.CHART, "-d", folder)
        [archive] = chart.pathlib.Path(folder).glob("*.tgz")
        with tarfile.open(archive) as tar:
            names = tar.getnames()
        check("keda-gpu-scaler/values.schema.json" in names, "the schema is not in the package")
        check(not [n for n in names if "/ci/" in n], "ci/ is in the package")
        packaged = chart.helm("template", "g", archive)
    equal(packaged, chart.helm("template", "g", chart.CHART), "the package")


def objects_are_placed(values):
    """Every namespaced object says its namespace, and all carry the common labels."""
    for o in template("-f", values).all:
        labels = o["metadata"]["labels"] if o["metadata"]["name"] != "more" else None
        if labels is None:
            continue
        equal([labels[NAME], labels["app.kubernetes.io/instance"]], ["keda-gpu-scaler", "g"], o["kind"])
        is_wide = o["kind"].startswith("Cluster")
        check(("namespace" in o["metadata"]) != is_wide, f"{o['kind']} {o['metadata']['name']}: namespace")
        check(not is_wide or o["metadata"]["name"].endswith("-gpu-g"), f"{o['kind']}: named {o['metadata']['name']}")


for path in chart.CI_VALUES:
    add(f"names, namespaces and labels: {path.name}", objects_are_placed, path)


@test("tls.mode selfSigned renders the same text each time, and asks the cluster nothing")
def is_repeatable():
    words = ("template", "g", chart.CHART, "--set", "tls.mode=selfSigned")
    equal(chart.helm(*words), chart.helm(*words), "a second rendering")
    check(template("--set", "tls.mode=selfSigned").find("Secret") is None, "a key in Helm's own records")


@test("tls.mode certManager: only the certificate's key changes when it is renewed")
def authority_stays():
    rendered = with_set("tls.mode=certManager")
    certificates = rendered.of_kind("Certificate")
    policies = {o["spec"].get("isCA", False): o["spec"]["privateKey"].get("rotationPolicy") for o in certificates}
    equal(policies, {True: "Never", False: "Always"}, "rotation policies")


# ---- names ----

@test("KEDA's Service is called keda-gpu-scaler whatever the release is called")
def service_name():
    for release in ("gpu-scaler", "keda-gpu-scaler", "x"):
        rendered = template(release=release, namespace="keda")
        ports = {p["name"]: p["port"] for p in rendered.get("Service", "keda-gpu-scaler")["spec"]["ports"]}
        equal(ports, {"grpc": 6000, "metrics": 9090}, release)
        rendered.get("DaemonSet", "keda-gpu-scaler")
    changed = with_set("service.name=gpu", "hub.enabled=true")
    check("--service-name=gpu" in changed.args("Deployment"), "the hub does not know its Service's new name")
    changed.get("Service", "gpu")


@test("the hub finds the agents' Service, in its namespace, by the port's name")
def hub_finds_agents():
    rendered = with_set("fullnameOverride=other", "namespaceOverride=elsewhere")
    headless = rendered.get("Service", "other-agents")
    check("--agents=service:elsewhere/other-agents:grpc" in rendered.args("Deployment"), "--agents")
    equal(headless["spec"]["clusterIP"], "None", "headless")
    equal(headless["spec"]["publishNotReadyAddresses"], True, "agents that are not ready")
    equal(headless["spec"]["ports"][0]["name"], "grpc", "the port's name")


def image(pairs, wanted):
    equal(with_set(*pairs).container("DaemonSet")["image"], wanted, "image")


VERSION = (chart.ROOT / "VERSION").read_text().strip()
for pairs, wanted in [
        ([], f"ghcr.io/keda-gpu-scaler/keda-gpu-scaler:{VERSION}"),
        (["image.tag=v1.2"], "ghcr.io/keda-gpu-scaler/keda-gpu-scaler:v1.2"),
        (["image.repository=ghcr.io/epower/keda-gpu-scaler"], f"ghcr.io/epower/keda-gpu-scaler:{VERSION}"),
        (["image.repository=localhost/a"], f"localhost/a:{VERSION}"),
        (["global.imageRegistry=mirror:5000"], f"mirror:5000/keda-gpu-scaler/keda-gpu-scaler:{VERSION}"),
        (["image.registry="], f"keda-gpu-scaler/keda-gpu-scaler:{VERSION}"),
        (["image.digest=sha256:" + "a" * 64, "image.tag=x"], "ghcr.io/keda-gpu-scaler/keda-gpu-scaler@sha256:" + "a" * 64)]:
    add(f"image: {' '.join(pairs) or 'default'}", image, pairs, wanted)


# ---- metrics ----

MEMORY = {"name": "gpu_memory_used", "type": "Utilization", "targetValue": 80, "aggregation": "max", "gpuIndex": -1}
UTILIZATION = {"name": "gpu_utilization", "type": "Utilization", "targetValue": 70, "aggregation": "avg", "gpuIndex": -1}
FREE = {"name": "gpu_memory_free", "type": "Utilization", "targetValue": 20, "aggregation": "max"}


def entries(pairs, wanted):
    rendered = with_set(*pairs)
    equal(rendered.config()["metrics"], wanted, "the agents' metrics")
    equal(rendered.config("hub")["metrics"], wanted, "the hubs' metrics")


for pairs, wanted in [
        ([], [MEMORY, UTILIZATION]),
        (["metrics[0].targetValue=85"], [{**MEMORY, "targetValue": 85}, UTILIZATION]),
        (["metrics[1].aggregation=p95"], [MEMORY, {**UTILIZATION, "aggregation": "p95"}]),
        (["metrics[1].name=gpu_memory_free", "metrics[1].type=Utilization", "metrics[1].targetValue=20",
          "metrics[1].aggregation=max"], [MEMORY, FREE]),
        (["metrics[0].name=gpu_utilization", "metrics[0].targetValue=50"], [{"name": "gpu_utilization", "targetValue": 50}]),
        (["metrics[0].name=GPU_MEMORY_USED", "metrics[0].gpuIndex=2"],
         [{**MEMORY, "name": "GPU_MEMORY_USED", "gpuIndex": 2}, UTILIZATION]),
        (["metrics[2].name=mine", "metrics[2].targetValue=1"], [MEMORY, UTILIZATION, {"name": "mine", "targetValue": 1}]),
        (["metrics[0].enabled=false"], [UTILIZATION]),
        (["metrics[0].enabled=false", "metrics[1].enabled=false"], []),
        (["metrics.enabled=true", "metrics.port=9400"], [MEMORY, UTILIZATION])]:
    add(f"metrics: {' '.join(pairs) or 'default'}", entries, pairs, wanted)


@test("metrics: the document's list of three keys stands as it is")
def document_list():
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("metrics:\n  - {name: gpu_memory_used, type: Utilization, targetValue: 80, aggregation: max}\n"
                   "  - {name: gpu_memory_free, type: Utilization, targetValue: 20, aggregation: max}\n")
        file.flush()
        equal(template("-f", file.name).config()["metrics"], [MEMORY, FREE], "metrics")


@test("metrics: an entry without a name beyond the built-in ones is refused")
def nameless():
    check("metrics[2]: has no name" in refuse("--set", "metrics[2].targetValue=1"), "not said")


def metrics_port(pairs, wanted):
    rendered = with_set(*pairs)
    for kind in ("DaemonSet", "Deployment"):
        check(f"--metrics-port={wanted}" in rendered.args(kind), f"{kind}: {rendered.args(kind)}")
        ports = {p["name"]: p["containerPort"] for p in rendered.container(kind)["ports"]}
        equal(ports.get("metrics"), wanted or None, f"{kind}'s port")
    ports = {p["name"]: p["port"] for p in rendered.get("Service", "keda-gpu-scaler")["spec"]["ports"]}
    equal(ports.get("metrics"), wanted or None, "the Service's port")


for pairs, wanted in [(["exporter.port=9400"], 9400), (["exporter.enabled=false"], 0), (["metrics.port=9401"], 9401),
                      (["metrics.enabled=false"], 0), (["metrics.port=0"], 0)]:
    add(f"metrics port: {pairs[0]}", metrics_port, pairs, wanted)


# ---- what is refused ----

def refused(pair, words):
    said = refuse("--set", pair)
    for word in words:
        check(word in said, f"--set {pair}: {word!r} is not in: {said}")


for pair, *words in [
        ("hub.replica=3", "/hub", "replica"), ("tolerationz[0].key=a", "tolerationz"), ("metrics[0].target=3", "target"),
        ("metrics[0].aggregation=median", "/metrics/0/aggregation"), ("metrics[0].targetValue=0", "/metrics/0/targetValue"),
        ("agent.owners.enable=true", "/agent/owners", "enable"), ("logLevel=loud", "/logLevel"),
        ("grpc.port=70000", "/grpc/port"), ("agent.sampleInterval=1", "/agent/sampleInterval"), ("tls.mode=on", "/tls/mode"),
        ("hub.config.metrics=1", "/hub/config/metrics"), ("service.name=Gpu", "/service/name"),
        ("hub.hpaTolerance=2", "/hub/hpaTolerance"), ("image.digest=sha256:1", "/image/digest"),
        ("probes.type=exec", "/probes/type"), ("tls.mode=secret", "tls.secretName"), ("tls.metrics=true", "tls.mode"),
        ("grpc.port=9090", "must not be the same"), ("podMonitor.period=5s", "period")]:
    add(f"refused with the place: {pair}", refused, pair, words)


@test("refused: client certificates with the hub, and nothing to check the hub's by")
def clients_without_authority():
    said = refuse("--set", "tls.mode=secret", "--set", "tls.secretName=a", "--set", "tls.clientCA.secretName=b", "--set",
                  "tls.caKey=")
    check("tls.caKey" in said, said)


@test("a parent chart may carry a condition and its global values")
def as_a_dependency():
    with_set("enabled=true", "global.anything.else=1")


# ---- parts ----

@test("hub.enabled=false: KEDA's Service leads to the agents, and nothing of the hub is left")
def without_hub():
    rendered = with_set("hub.enabled=false")
    selector = rendered.get("Service", "keda-gpu-scaler")["spec"]["selector"]
    equal(selector["app.kubernetes.io/component"], "agent", "the Service's selector")
    for o in rendered.all:
        check("hub" not in o["metadata"]["name"], f"{o['kind']} {o['metadata']['name']}")
        check(not o["kind"].startswith(("Cluster", "Role")), f"{o['kind']} although agents need no rights")
    equal(list(rendered.get("ConfigMap")["data"]), ["agent.yaml"], "configuration")


@test("a single hub has no PodDisruptionBudget, which would only stop drains")
def no_budget():
    check(with_set("hub.replicas=1").find("PodDisruptionBudget") is None, "there is one")
    equal(template().get("PodDisruptionBudget")["spec"]["maxUnavailable"], 1, "of two hubs")


@test("the hub reads and nothing else; the agents have neither rights nor a token")
def least_rights():
    rendered = template()
    for kind in ("ClusterRole", "Role"):
        for rule in rendered.get(kind)["rules"]:
            check(set(rule["verbs"]) <= {"get", "list", "watch"}, f"{kind}: {rule}")
            check("secrets" not in rule["resources"] and "*" not in rule["resources"], f"{kind}: {rule}")
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        equal([s["name"] for s in rendered.get(kind)["subjects"]], ["keda-gpu-scaler-hub"], kind)
    equal(rendered.pod("DaemonSet")["automountServiceAccountToken"], False, "the agents' token")
    check(with_set("rbac.create=false").find("ClusterRole") is None, "rbac.create=false")


@test("monitors and rules wait for the operator's API, unless forced or there")
def monitors():
    pairs = [f"{kind}.enabled=true" for kind in ("podMonitor", "serviceMonitor", "prometheusRule")]
    kinds = ("PodMonitor", "ServiceMonitor", "PrometheusRule")
    without = with_set(*pairs)
    equal([k for k in kinds if without.find(k)], [], "without the API")
    words = [w for p in pairs for w in ("--set", p)]
    have = template("--api-versions", "monitoring.coreos.com/v1", *words)
    for kind in kinds:
        have.get(kind)
    for kind, key in (("PodMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "endpoints")):
        equal(have.get(kind)["spec"][key][0]["honorLabels"], True, f"{kind}'s honorLabels")


@test("alerts are those of deploy/prometheus, without those that are switched off")
def alerts():
    groups = chart.yaml.safe_load((chart.ROOT / "deploy/prometheus/keda-gpu-scaler.rules.yaml").read_text())["groups"]
    rendered = with_set("prometheusRule.enabled=true", "prometheusRule.force=true").get("PrometheusRule")["spec"]["groups"]
    equal(rendered, groups, "groups")
    off = with_set("prometheusRule.enabled=true", "prometheusRule.force=true", "prometheusRule.disabled={GPUHot,GPULost}")
    names = [r["alert"] for g in off.get("PrometheusRule")["spec"]["groups"] for r in g["rules"]]
    equal([r["alert"] for g in groups for r in g["rules"] if r["alert"] not in ("GPUHot", "GPULost")], names, "alerts")


@test("the dashboard is deploy/grafana's, under the sidecar's label")
def dashboards():
    found = with_set("dashboards.enabled=true").get("ConfigMap", "keda-gpu-scaler-dashboards")
    equal(found["data"]["keda-gpu-scaler.json"], (chart.ROOT / "deploy/grafana/keda-gpu-scaler.json").read_text(), "JSON")
    equal(found["metadata"]["labels"]["grafana_dashboard"], "1", "label")


@test("NetworkPolicy: KEDA reaches the hubs and the hubs the agents; nobody else asks gRPC")
def policies():
    rendered = with_set("networkPolicy.enabled=true", "networkPolicy.egress.enabled=true",
                        "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b")
    hub, agents = (rendered.get("NetworkPolicy", f"keda-gpu-scaler-{n}")["spec"] for n in ("hub", "agents"))
    keda = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "keda"}}}

    def sources(spec, port):
        [rule] = [r for r in spec["ingress"] if r["ports"] == [{"port": port}]]
        return rule.get("from")
    components = [f["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for f in sources(agents, "grpc")]
    equal(components, ["hub"], "who may ask agents")
    check(keda in sources(hub, "grpc") and keda in sources(hub, "metrics"), "KEDA may not ask the hub")
    check(keda not in sources(agents, "metrics"), "KEDA may ask agents")
    equal(sources(agents, "health"), None, "the kubelet's probes")
    for spec in (hub, agents):
        check({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]} in spec["egress"], "DNS")
    ports = [p["port"] for rule in hub["egress"] for p in rule["ports"]]
    equal(ports, ["grpc", 443, 6443, 53, 53, 80, 8000, 8002, 8080, 30000], "the hub's way out")
    alone = with_set("networkPolicy.enabled=true", "hub.enabled=false").get("NetworkPolicy")["spec"]
    check(keda in sources(alone, "grpc"), "without a hub KEDA asks the agents")


@test("networkPolicy: pages of engines where the values say they are, for hubs and agents; no port, no way")
def network_policy_of_engines():
    rendered = template("-f", chart.ROOT / chart.CHART / "ci/engine-values.yaml")
    wanted = {"ports": [{"port": 8000}, {"port": 9000}],
              "to": [{"namespaceSelector": {"matchLabels": {"team": "ml"}}}, {"ipBlock": {"cidr": "192.0.2.0/24"}}]}
    for name in ("keda-gpu-scaler-hub", "keda-gpu-scaler-agents"):
        check(wanted in rendered.get("NetworkPolicy", name)["spec"]["egress"], name)
    closed = with_set("networkPolicy.enabled=true", "networkPolicy.egress.enabled=true", "networkPolicy.egress.engines.ports=null")
    rules = closed.get("NetworkPolicy", "keda-gpu-scaler-hub")["spec"]["egress"]
    check(not [r for r in rules if "namespaceSelector" in str(r.get("to"))], "a way to every namespace")


@test("networkPolicy: the Jobs of tls.mode selfSigned reach the API server and nothing else, the hook's too")
def network_policy_of_certificates():
    rendered = with_set("networkPolicy.enabled=true", "networkPolicy.egress.enabled=true", "tls.mode=selfSigned")
    for name in ("keda-gpu-scaler-cert", "keda-gpu-scaler-cert-hook"):
        spec = rendered.get("NetworkPolicy", name)["spec"]
        equal([spec["egress"], spec.get("ingress"), spec["policyTypes"]],
              [[{"ports": [{"port": 443}, {"port": 6443}]}], None, ["Ingress", "Egress"]], name)
        equal(spec["podSelector"]["matchLabels"]["app.kubernetes.io/component"], "cert", name)


# ---- engines ----

def flags(rendered, kind):
    return [a for a in rendered.args(kind) if a.startswith(("--engine-", "--endpoint-"))]


@test("engine: by default one time limit, and nothing else")
def engine_defaults():
    for kind in ("DaemonSet", "Deployment"):
        equal(flags(template(), kind), ["--engine-timeout=3s"], kind)


@test("engine: the hub shows its certificate and token to pods, agents have neither; both trust the authority")
def engine_files():
    rendered = template("-f", chart.ROOT / chart.CHART / "ci/engine-values.yaml")
    ours = "/etc/keda-gpu-scaler/engine-"
    both = ["--engine-timeout=2s", f"--engine-ca-file={ours}tls/ca.crt", "--endpoint-allow=10.0.0.0/8",
            "--endpoint-allow=fd00::/8", "--endpoint-deny=10.96.0.1"]
    equal(sorted(flags(rendered, "DaemonSet")), sorted(both), "agents")
    equal(sorted(flags(rendered, "Deployment")), sorted(both + [
        f"--engine-cert-file={ours}tls/tls.crt", f"--engine-key-file={ours}tls/tls.key",
        f"--engine-token-file={ours}token/token"]), "hubs")
    for kind, keys in (("DaemonSet", ["ca.crt"]), ("Deployment", ["ca.crt", "tls.crt", "tls.key"])):
        volumes = {v["name"]: v for v in rendered.pod(kind)["volumes"]}
        equal([i["key"] for i in volumes["engine-tls"]["secret"]["items"]], keys, f"{kind}: what is mounted")
        mounts = {m["name"]: m["mountPath"] for m in rendered.container(kind)["volumeMounts"]}
        equal(mounts["engine-tls"], ours + "tls", kind)
        equal("engine-token" in volumes, kind == "Deployment", f"{kind}: a token")
    [source] = {v["name"]: v for v in rendered.pod("Deployment")["volumes"]}["engine-token"]["projected"]["sources"]
    equal(source["serviceAccountToken"], {"path": "token", "audience": "engines.example.com", "expirationSeconds": 1800}, "token")


@test("engine: a token for the API server is never sent to pods, and half a pair is refused")
def engine_refusals():
    check("needs an audience" in refuse("--set", "engine.token.enabled=true"), "no audience")
    check("needs engine.tls.secretName" in refuse("--set", "engine.tls.clientPair=true"), "a pair from nowhere")
    refuse("--set", "engine.token.expirationSeconds=60")
    refuse("--set", "engine.endpoints.allow=10.0.0.0/8")


@test("engine.tls.insecure: nothing of the authority is left")
def engine_insecure():
    rendered = with_set("engine.tls.insecure=true", "engine.tls.secretName=engines")
    equal(flags(rendered, "Deployment"), ["--engine-timeout=3s", "--engine-insecure"], "flags")
    check("engine-tls" not in str(rendered.pod("Deployment")), "mounted all the same")
