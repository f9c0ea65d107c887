"""The chart on the real API server: install, upgrade, rollback, uninstall, and what the server accepts. Nodes are objects
without a kubelet, so pods are made and stay Pending, but for those of Jobs that make certificates: their program is run
here, with their account's token. One cluster for all tests, started by the first; each test has namespaces of its own."""
import base64
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import urllib.request
import zlib

import yaml

import agent
import chart
import program
from agent import PORTS, check, wait_until
from chart import CHART, CI_VALUES, LINK, ROOT, equal
from rig import control_plane, kubeconfig, procs, settings, wait
from suite import add, test

INSTANCE = "app.kubernetes.io/instance"
NODES = {  # name: labels, taints
    "gpu-nfd": ({"feature.node.kubernetes.io/pci-10de.present": "true"}, [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]),
    "gpu-gke": ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, [{"key": "nvidia.com/gpu", "value": "present",
                                                                     "effect": "NoSchedule"}]),
    "gpu-reference": ({"nvidia.com/gpu.present": "true"}, []),
    "cpu": ({"kubernetes.io/os": "linux"}, []),
}
# Kinds of operators that are not installed here, by their own definitions: folder, group, plural.
FOREIGN = [("prometheus-operator", "monitoring.coreos.com", plural) for plural in ("podmonitors", "servicemonitors", "prometheusrules")] + \
    [("cert-manager", "cert-manager.io", plural) for plural in ("certificates", "issuers")] + \
    [("keda", "keda.sh", plural) for plural in ("clustertriggerauthentications", "scaledobjects", "scaledjobs")]
# What this suite needs of them besides the rig's flags; lists add up.
FLAGS = {"kube-apiserver": ["--allow-privileged=true"],
         "kube-controller-manager": ["--controllers=endpointslice-controller"]}


class Children(procs.Children):
    def start(self, name, argv, env=None):
        return super().start(name, [*argv, *FLAGS.get(name, [])], env)


class Cluster:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="kgs-chart-cluster-")
        work = pathlib.Path(self._folder.name)
        self._children = Children(work / "logs")
        tools = [pathlib.Path(os.environ[f"KGS_TOOL_{name}"]) for name in ("etcd", "kubernetes")]
        ports = settings.Ports(PORTS.stop, 10)  # beyond those that agents of other tests take by chance
        self._plane = control_plane.ControlPlane(work, ports, self._children, *tools)
        self._plane.start()
        self.api = self._plane.api
        self.kubeconfig = self._plane.admin_kubeconfig
        for name, (labels, taints) in NODES.items():
            self._add_node(name, labels, taints)
        self._add_kinds()
        self.jobs = Jobs(self)
        self.jobs.start()

    def _add_node(self, name, labels, taints):
        self.api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
        self.api.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})

    def _add_kinds(self):
        folder = pathlib.Path(os.environ["KGS_TOOL_crds"])
        files = [folder / name / f"{group}_{plural}.yaml" for name, group, plural in FOREIGN]
        self.kubectl("apply", "--server-side", *(w for f in files for w in ("-f", f)))
        for _, group, plural in FOREIGN:
            version = "v1alpha1" if group == "keda.sh" else "v1"
            wait.until(f"{plural} to be served", lambda p=f"/apis/{group}/{version}/{plural}": self.api.find(p), settings.PATIENCE_S)

    def namespace(self, name, level="privileged"):
        self.api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "labels": {"pod-security.kubernetes.io/enforce": level}}})

    def kubectl(self, *words, text=None):
        done = chart.run([chart.KUBECTL, *words], self.kubeconfig, text)
        check(done.returncode == 0, f"kubectl {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def helm(self, *words):
        return chart.helm(*words, kubeconfig=self.kubeconfig)

    def command(self, line):
        """A command line as a document writes it, in the project's root."""
        programs = pathlib.Path(self._folder.name) / "bin"
        with _lock:
            if not programs.exists():
                programs.mkdir()
                (programs / "helm").symlink_to(chart.HELM)
                (programs / "kubectl").symlink_to(chart.KUBECTL)
        env = chart.environment(self.kubeconfig)
        done = subprocess.run(["bash", "-c", line], cwd=ROOT, env={**env, "PATH": f"{programs}:{env['PATH']}"}, text=True,
                              capture_output=True, check=False)
        check(done.returncode == 0, f"{line}\n{done.stderr}")
        return done.stdout

    def objects(self, kind, namespace, selector=""):
        words = ["get", kind, "-n", namespace, "-o", "json"] + (["-l", selector] if selector else [])
        return json.loads(self.kubectl(*words))["items"]

    def run_pod(self, namespace, name, node, address, is_ready):
        """What a scheduler and a kubelet would say of a pod."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        self.api.create(f"{path}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                                            "target": {"kind": "Node", "name": node}})
        condition = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
        self.api.merge(f"{path}/status", {"status": {
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "startTime": "2026-01-01T00:00:00Z",
            "conditions": [condition]}})

    def account_kubeconfig(self, namespace, account):
        """A kubeconfig file with a token of a ServiceAccount, as its pods have it."""
        answer = self.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
        folder = pathlib.Path(self._folder.name)
        token = folder / f"{namespace}-{account}.token"
        token.write_text(answer["status"]["token"])
        return kubeconfig.write_token(folder / f"{namespace}-{account}.kubeconfig", self._plane.server,
                                      self._plane.authority.certificate, token, namespace)

    def pods_by_node(self, namespace):
        """Node to name of the DaemonSet's pods; they name their node in their affinity until they are bound."""
        found = {}
        for pod in self.objects("pods", namespace, "app.kubernetes.io/component=agent"):
            terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            found[terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]] = pod["metadata"]["name"]
        return found

    def stop(self):
        self.jobs.stop()
        self._children.stop_all()
        self._folder.cleanup()


class Jobs(threading.Thread):
    """The kubelet of pods that make certificates or probe for `helm test`: runs their command, says how it ended."""

    def __init__(self, c):
        super().__init__(daemon=True)
        self._cluster, self._over, self.said = c, threading.Event(), {}
        self.probed = {}  # namespace: (the Service's port here, the folder that is mounted)

    def run(self):
        while not self._over.wait(0.1):
            for pod in self._cluster.api.get("/api/v1/pods?labelSelector=app.kubernetes.io/component%20in%20(cert,test)")["items"]:
                if pod["status"].get("phase") == "Pending" and "deletionTimestamp" not in pod["metadata"]:
                    self._run_pod(pod)

    def _words(self, namespace, spec):
        words = spec["containers"][0]["args"]
        if words[0] != "probe":
            return [*words, f"--kubeconfig={self._cluster.account_kubeconfig(namespace, spec['serviceAccountName'])}"]
        port, mounted = self.probed[namespace]
        name = [f"--tls-server-name={words[1].rpartition(':')[0]}"] if "--tls" in words else []
        return ["probe", f"127.0.0.1:{port}", *mounted.here(words[2:]), *name]

    def _run_pod(self, pod):
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        done = subprocess.run([agent.PROGRAM, *self._words(namespace, pod["spec"])], capture_output=True, text=True, check=False,
                              env=program.environment(), timeout=60)
        self.said.setdefault(namespace, []).append(done.stdout + done.stderr)
        phase = "Failed" if done.returncode else "Succeeded"
        self._cluster.api.merge(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {"phase": phase}})

    def stop(self):
        self._over.set()
        self.join(30)


_lock = threading.RLock()
_made, _failed = [], []


def cluster():
    with _lock:
        check(not _failed, "the cluster did not come up: see the first test that asked for it")
        if not _made:
            _failed.append(True)
            _made.append(Cluster())
            _failed.clear()
        return _made[0]


def stop():
    if _made:
        _made[0].stop()


GPU_NODES = sorted(name for name in NODES if name.startswith("gpu-"))


# ---- the command lines of the documents ----

@test("helm install gpu-scaler deploy/helm/keda-gpu-scaler --namespace gpu-scaler --create-namespace")
def first_document():
    c = cluster()
    said = c.command("helm install gpu-scaler deploy/helm/keda-gpu-scaler --namespace gpu-scaler --create-namespace")
    check("keda-gpu-scaler.gpu-scaler.svc.cluster.local:6000" in said, said)
    ports = {p["name"]: p["port"] for p in c.api.get("/api/v1/namespaces/gpu-scaler/services/keda-gpu-scaler")["spec"]["ports"]}
    equal(ports, {"grpc": 6000, "metrics": 9090}, "the Service")
    pods = wait_until(lambda: len(found := c.pods_by_node("gpu-scaler")) == 3 and found, "pods on the GPU nodes")
    equal(sorted(pods), GPU_NODES, "nodes with an agent")
    c.command("helm uninstall gpu-scaler --namespace gpu-scaler")


@test("the other document: install with --set metrics[0].targetValue=85, look, upgrade to mockMode, rollback, uninstall")
def other_document():
    c = cluster()
    c.namespace("keda")
    c.command("helm install keda-gpu-scaler ./charts/keda-gpu-scaler --namespace keda --set nvmlHostMounts.enabled=true "
              "--set metrics[0].targetValue=85")
    path = "/apis/apps/v1/namespaces/keda/daemonsets/keda-gpu-scaler"
    container = c.api.get(path)["spec"]["template"]["spec"]["containers"][0]
    equal(container["securityContext"]["privileged"], True, "host mounts")
    config = yaml.safe_load(c.api.get("/api/v1/namespaces/keda/configmaps/keda-gpu-scaler")["data"]["hub.yaml"])
    equal([(m["name"], m["targetValue"]) for m in config["metrics"]], [("gpu_memory_used", 85), ("gpu_utilization", 70)], "metrics")

    def listed():
        lines = c.command("kubectl get pods -n keda -l app.kubernetes.io/name=keda-gpu-scaler").splitlines()[1:]
        names = [line.split()[0] for line in lines]
        return len(names) == 5 and names  # three agents, two hubs
    names = wait_until(listed, "the pods to be listed")
    equal(len([n for n in names if n.startswith("keda-gpu-scaler-") and "-hub-" not in n]), 3, f"the DaemonSet's pods in {names}")

    c.command("helm upgrade keda-gpu-scaler ./charts/keda-gpu-scaler --namespace keda --set mockMode.enabled=true")
    everywhere = wait_until(lambda: "cpu" in (found := c.pods_by_node("keda")) and found, "an agent on the CPU node")
    equal(sorted(everywhere), sorted(NODES), "nodes with simulated GPUs")
    c.command("helm rollback keda-gpu-scaler 1 --namespace keda")
    wait_until(lambda: "cpu" not in c.pods_by_node("keda"), "the agent to leave the CPU node")
    equal(c.api.get(path)["spec"]["template"]["spec"]["containers"][0]["securityContext"], container["securityContext"], "rolled back")
    c.command("helm uninstall keda-gpu-scaler --namespace keda")
    wait_until(lambda: not c.objects("all,cm,sa,role,rolebinding,pdb", "keda", f"{INSTANCE}=keda-gpu-scaler"), "all to be gone")
    for kind in ("clusterroles", "clusterrolebindings"):
        left = [o["metadata"]["name"] for o in c.objects(kind, "keda", f"{INSTANCE}=keda-gpu-scaler")]
        equal(left, [], f"{kind} left behind")


@test("kubectl port-forward svc/keda-gpu-scaler 9090:9090 would reach the port on which the pods show /metrics")
def forwarded_port():
    c = cluster()
    c.helm("install", "forward", CHART, "-n", "forward", "--create-namespace")
    service = c.api.get("/api/v1/namespaces/forward/services/keda-gpu-scaler")["spec"]
    [port] = [p for p in service["ports"] if p["port"] == 9090]
    selector = ",".join(f"{k}={v}" for k, v in service["selector"].items())
    pods = wait_until(lambda: c.objects("pods", "forward", selector), "pods behind the Service")
    for pod in pods:
        container = pod["spec"]["containers"][0]
        equal([p["containerPort"] for p in container["ports"] if p["name"] == port["targetPort"]], [9090], "the pods' port")
        check("--metrics-port=9090" in container["args"], container["args"])


def own_address():
    """An address of this machine that is not loopback, which endpoints may not have. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]


def install_workload(c, node):
    """A Deployment of one pod that runs on a node, and its ScaledObject."""
    c.namespace("mock-app")
    labels = {"app": "model"}
    c.api.create("/apis/apps/v1/namespaces/mock-app/deployments", {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "model"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "model", "image": "example.com/model:1"}]}}}})
    trigger = {"type": "external", "metadata": {"scalerAddress": "keda-gpu-scaler.mock.svc.cluster.local:9090",
                                                "metricName": "gpu_utilization"}}
    c.api.create("/apis/keda.sh/v1alpha1/namespaces/mock-app/scaledobjects", {
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "model"},
        "spec": {"scaleTargetRef": {"name": "model"}, "triggers": [trigger]}})
    [pod] = wait_until(lambda: c.objects("pods", "mock-app"), "the Deployment's pod")
    c.run_pod("mock-app", pod["metadata"]["name"], node, "192.0.2.10", True)


@test("mockMode, without a GPU: agent and hub as the chart starts them, with its rights, answer KEDA and show GPUs")
def mock_answers():
    c = cluster()
    ports = dict(zip(("grpc.port", "exporter.port", "probes.port"), (agent.free_port() for _ in range(3))))
    c.helm("install", "m", LINK, "-n", "mock", "--create-namespace", "--set", "mockMode.enabled=true",
           *(w for key, port in ports.items() for w in ("--set", f"{key}={port}")))
    rendered = chart.Objects(c.helm("get", "manifest", "m", "-n", "mock"))
    node = "gpu-gke"
    pods = wait_until(lambda: node in (found := c.pods_by_node("mock")) and found, "the DaemonSet's pods")
    c.run_pod("mock", pods[node], node, own_address(), False)  # not ready, and yet the hub hears it
    install_workload(c, node)
    flags = [f"--kubeconfig={c.account_kubeconfig('mock', 'keda-gpu-scaler-hub')}"]
    with program.Mounted(rendered) as mounted, program.running(rendered, mounted, keep_ports=True, node=node), \
            program.running(rendered, mounted, "Deployment", flags) as hub:
        def fleet():
            page = urllib.request.urlopen(f"http://127.0.0.1:{hub['metrics-port']}/metrics", timeout=10).read().decode()
            return page.count("\nkeda_gpu_scaler_fleet_gpu_utilization_ratio{") == 8
        program.await_probe(f"127.0.0.1:{hub['port']}")
        wait_until(fleet, "8 GPUs on the hub's /metrics")

        def answer():  # on the metrics port, as one of the documents has it
            done = subprocess.run([agent.PROGRAM, "call", f"127.0.0.1:{hub['metrics-port']}", "--name=model",
                                   "--namespace=mock-app", "-m", "metricName=gpu_utilization"], capture_output=True, text=True,
                                  check=False, env=program.environment(), timeout=60)
            said.append(done.stdout + done.stderr)
            return done.returncode == 0 and "gpu_utilization = 70" in done.stdout
        said = []
        try:
            wait_until(answer, "an answer for the workload")
        except agent.TestFailure as failure:
            raise agent.TestFailure(f"{failure}\n{said[-1]}") from None


# ---- what the server accepts ----

def is_accepted(values):
    c = cluster()
    name = "dry-" + (values.name.removesuffix("-values.yaml") if values else "default")
    c.namespace(name)
    words = ["template", "t", CHART, "-n", name, *(["-f", values] if values else [])]
    c.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", text=c.helm(*words))


add("the API server accepts the default values", is_accepted, None)
for values_file in CI_VALUES:
    add(f"the API server accepts {values_file.name}", is_accepted, values_file)


def manifest_is_accepted(path):
    c = cluster()
    with _lock:  # one namespace for all of them
        c.kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
    c.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", path)


for manifest in sorted((ROOT / "manifests").glob("*.yaml")):
    add(f"kubectl apply takes manifests/{manifest.name}", manifest_is_accepted, manifest)


def pod_security(level, pairs, is_admitted):
    """By pods, which Pod Security judges; workloads only get a warning."""
    c = cluster()
    name = f"psa-{level}-{zlib.crc32(str(pairs).encode())}"
    c.namespace(name, level)
    words = [w for p in pairs for w in ("--set", p)]
    rendered = chart.Objects(c.helm("template", "t", CHART, "-n", name, *words))
    for kind in ("DaemonSet", "Deployment", "Pod") + (("Job",) if rendered.find("Job") else ()):
        found = rendered.get(kind)
        spec = found["spec"] if kind == "Pod" else found["spec"]["template"]["spec"]
        pod = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": name}, "spec": spec})
        done = chart.run([chart.KUBECTL, "create", "--dry-run=server", "-f", "-"], c.kubeconfig, pod)
        wanted = is_admitted or kind != "DaemonSet"
        equal(done.returncode == 0, wanted, f"{kind} admitted at {level} ({done.stderr.strip()})")


for level, pairs, is_admitted in [
        ("restricted", ["agent.owners.enabled=false"], True), ("restricted", ["mockMode.enabled=true"], True),
        ("restricted", ["tls.mode=selfSigned", "agent.owners.enabled=false"], True),
        ("baseline", [], False), ("restricted", [], False), ("privileged", [], True),
        ("privileged", ["nvmlHostMounts.enabled=true"], True), ("privileged", ["agent.hostPID=true"], True),
        ("baseline", ["agent.owners.enabled=false", "agent.hostPID=true"], False)]:
    add(f"Pod Security {level}: {' '.join(pairs) or 'default'} {'passes' if is_admitted else 'is refused'}", pod_security, level,
        pairs, is_admitted)


# ---- life ----

@test("a release can be upgraded from each CI values file to the next, and back to the first revision")
def upgrades():
    c = cluster()
    c.namespace("upgrades")
    c.helm("install", "u", CHART, "-n", "upgrades")
    for path in CI_VALUES:
        c.helm("upgrade", "u", CHART, "-n", "upgrades", "-f", path, "--history-max", "0")
    c.helm("rollback", "u", "1", "-n", "upgrades")
    daemonset = c.api.get("/apis/apps/v1/namespaces/upgrades/daemonsets/keda-gpu-scaler")
    check("privileged" not in json.dumps(daemonset["spec"]), "rolled back, and still privileged")


@test("releases in two namespaces do not share an object, and one can go without the other")
def two_releases():
    c = cluster()
    for namespace in ("two-a", "two-b"):
        c.helm("install", "gpu-scaler", LINK, "-n", namespace, "--create-namespace")
    c.helm("uninstall", "gpu-scaler", "-n", "two-a")
    binding = c.api.get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/keda-gpu-scaler-two-b-gpu-scaler")
    equal(binding["subjects"][0]["namespace"], "two-b", "whose rights")
    c.api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/keda-gpu-scaler-two-b-gpu-scaler")
    c.helm("upgrade", "gpu-scaler", LINK, "-n", "two-b")


@test("a second release in one namespace is refused by Helm, and works with names of its own")
def same_namespace():
    c = cluster()
    c.helm("install", "one", CHART, "-n", "same", "--create-namespace")
    done = chart.run([chart.HELM, "install", "two", CHART, "-n", "same"], c.kubeconfig)
    check(done.returncode != 0 and "one" in done.stderr, done.stderr)
    c.helm("install", "three", CHART, "-n", "same", "--set", "fullnameOverride=three", "--set", "service.name=three")


@test("the hub's account may read what it needs and change nothing")
def hub_rights():
    c = cluster()
    c.helm("install", "rights", CHART, "-n", "rights", "--create-namespace")

    def may(verb, resource, namespace="default"):
        resource, _, subresource = resource.partition("/")
        done = chart.run([chart.KUBECTL, "auth", "can-i", verb, resource, f"--subresource={subresource}", "-n", namespace,
                          "--as=system:serviceaccount:rights:keda-gpu-scaler-hub"], c.kubeconfig)
        return done.stdout.strip() == "yes"
    for verb, resource, namespace, wanted in [
            ("watch", "pods", "default", True), ("list", "horizontalpodautoscalers.autoscaling", "default", True),
            ("get", "deployments.apps/scale", "default", True), ("list", "endpointslices.discovery.k8s.io", "rights", True),
            ("list", "endpointslices.discovery.k8s.io", "default", False), ("get", "secrets", "rights", False),
            ("delete", "pods", "default", False), ("patch", "deployments.apps/scale", "default", False),
            ("get", "deployments.apps", "default", False), ("get", "nodes", "default", False)]:
        equal(may(verb, resource, namespace), wanted, f"{verb} {resource} in {namespace}")


@test("RuntimeClass nvidia is used where the cluster has it, and only there", alone=True)
def runtime_class():
    c = cluster()
    path = "/apis/apps/v1/namespaces/runtime/daemonsets/keda-gpu-scaler"
    said = c.helm("install", "r", CHART, "-n", "runtime", "--create-namespace")
    check("there is no RuntimeClass nvidia" in said, said)
    check("runtimeClassName" not in c.api.get(path)["spec"]["template"]["spec"], "a class that does not exist")
    c.api.create("/apis/node.k8s.io/v1/runtimeclasses", {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"})
    said = c.helm("upgrade", "r", CHART, "-n", "runtime")
    equal(c.api.get(path)["spec"]["template"]["spec"]["runtimeClassName"], "nvidia", "the class that exists")
    check("RuntimeClass" not in said, said)
    for pair in ("mockMode.enabled=true", "nvmlHostMounts.enabled=true", "runtimeClassName="):
        c.helm("upgrade", "r", CHART, "-n", "runtime", "--set", pair)
        check("runtimeClassName" not in c.api.get(path)["spec"]["template"]["spec"], pair)
    c.api.delete("/apis/node.k8s.io/v1/runtimeclasses/nvidia")


@test("clusterLookups=false, rbac.create=false: installed with rights in the namespace alone")
def namespace_rights():
    c = cluster()
    c.namespace("tenant")
    c.kubectl("create", "-n", "tenant", "serviceaccount", "tenant")
    c.api.create("/apis/rbac.authorization.k8s.io/v1/namespaces/tenant/roles", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]})
    c.kubectl("create", "-n", "tenant", "rolebinding", "all", "--role=all", "--serviceaccount=tenant:tenant")
    mine = c.account_kubeconfig("tenant", "tenant")
    words = ["install", "t", CHART, "-n", "tenant", "--set", "rbac.create=false,tls.mode=selfSigned,"
             "tls.selfSigned.serviceAccount.create=false,tls.selfSigned.serviceAccount.name=tenant"]
    done = chart.run([chart.HELM, *words], mine)
    check(done.returncode != 0 and "forbidden" in done.stderr, f"the lookups are not what needs rights: {done.stderr}")
    chart.helm(*words, "--set", "clusterLookups=false", kubeconfig=mine)


# ---- warnings ----

def warns(pairs, word, level):
    c = cluster()
    namespace = f"warn-{zlib.crc32(str((pairs, level)).encode())}"
    c.namespace(namespace, level)
    said = c.helm("install", "w", CHART, "-n", namespace, *(w for p in pairs for w in ("--set", p)))
    warnings = [line for line in said.splitlines() if line.startswith("WARNING: ")]
    check(any(word in line for line in warnings), f"want {word!r} in {warnings}")
    c.helm("uninstall", "w", "-n", namespace)


for pairs, word, level in [
        ([], "enforces Pod Security level baseline", "baseline"), (["mockMode.enabled=true"], "simulated", "privileged"),
        (["hub.enabled=false"], "knows its own node only", "privileged"), (["hub.replicas=1"], "hub.replicas=1", "privileged"),
        (["nvmlHostMounts.enabled=true"], "privileged", "privileged"), (["runtimeClassName=kata"], "RuntimeClass kata", "privileged"),
        (["agent.owners.enabled=false"], "which pods hold which GPUs", "restricted"),
        (["podMonitor.enabled=true", "serviceMonitor.enabled=true"], "stored twice", "privileged"),
        (["tls.mode=selfSigned", "tls.clientCA.secretName=a"], "without TLS", "privileged"),
        (["engine.tls.insecure=true"], "whoever answers", "privileged"),
        (["engine.token.enabled=true", "engine.token.audience=a", "engine.token.plain=true"], "plain text", "privileged"),
        (["networkPolicy.enabled=true", "networkPolicy.egress.enabled=true", "networkPolicy.egress.engines.ports=null"],
         "cannot read pages", "privileged")]:
    add(f"warned: {' '.join(pairs) or level}", warns, pairs, word, level)


@test("no warning without a reason")
def no_warning():
    said = cluster().helm("install", "quiet", CHART, "-n", "quiet", "--create-namespace", "--set", "runtimeClassName=")
    check("WARNING" not in said, said)


@test("no node with a GPU label: the install says why no agent runs", alone=True)
def no_gpu_nodes():
    c = cluster()
    try:
        for name in GPU_NODES:
            c.api.delete(f"/api/v1/nodes/{name}")
        said = c.helm("install", "none", CHART, "-n", "none", "--create-namespace")
        check("no node carries a label of an NVIDIA GPU" in said, said)
    finally:
        for name in GPU_NODES:
            c._add_node(name, *NODES[name])  # pylint: disable=protected-access
