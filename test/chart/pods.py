"""The pods: what they may, where they run, what they are given. Pod Security itself is judged by the API server in
cluster.py."""
import chart
from agent import check
from chart import equal, template, with_set
from suite import add, test

RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def security(rendered, kind="DaemonSet"):
    pod = rendered.pod(kind)
    return pod["securityContext"], pod["containers"][0]["securityContext"]


@test("the agent with owners: uid 0 to reach the kubelet's socket, and nothing besides")
def with_owners():
    rendered = template()
    pod, container = security(rendered)
    equal([pod["runAsUser"], pod["seccompProfile"]["type"]], [0, "RuntimeDefault"], "pod")
    equal(container, RESTRICTED, "container")
    [volume] = [v for v in rendered.pod("DaemonSet")["volumes"] if "hostPath" in v]
    equal(volume["hostPath"], {"path": "/var/lib/kubelet/pod-resources", "type": "Directory"}, "the folder, not the socket")
    [mount] = [m for m in rendered.container("DaemonSet")["volumeMounts"] if m["name"] == "pod-resources"]
    equal(mount["readOnly"], True, "mounted read-only")
    for key in ("hostPID", "hostNetwork", "hostIPC"):
        check(not rendered.pod("DaemonSet").get(key), key)


@test("the agent without owners, and the hub, are ordinary users")
def without_owners():
    for rendered, kind in ((with_set("agent.owners.enabled=false"), "DaemonSet"), (template(), "Deployment")):
        pod, container = security(rendered, kind)
        equal([pod["runAsUser"], pod["runAsNonRoot"]], [65532, True], kind)
        equal(container, RESTRICTED, kind)
    check("--pod-resources=" in with_set("agent.owners.enabled=false").args("DaemonSet"), "it looks for the socket")


def is_privileged(pairs):
    _, container = security(with_set(*pairs))
    equal(container.get("privileged"), True, "privileged")
    check("allowPrivilegeEscalation" not in container, "the API server refuses this beside privileged")


for pairs in (["nvmlHostMounts.enabled=true"], ["securityContext.privileged=true", "securityContext.runAsUser=0"]):
    add(f"privileged only when asked: {pairs[0]}", is_privileged, pairs)


@test("nvmlHostMounts: the host's /usr where the program looks for drivers, or the library that is named")
def host_mounts():
    found = with_set("nvmlHostMounts.enabled=true")
    mounts = {m["mountPath"]: m.get("readOnly", False) for m in found.container("DaemonSet")["volumeMounts"]}
    equal([mounts.get("/run/nvidia/driver/usr"), mounts.get("/dev/nvidiactl")], [True, False], "mounts")
    check(not any(a.startswith("--nvml-library") for a in found.args("DaemonSet")), "a library is named")
    named = with_set("nvmlHostMounts.enabled=true", "nvmlHostMounts.nvmlLib=/opt/libnvidia-ml.so.1")
    check("--nvml-library=/opt/libnvidia-ml.so.1" in named.args("DaemonSet"), "--nvml-library")
    check("/run/nvidia/driver/usr" not in str(named.pod("DaemonSet")), "/usr is mounted all the same")


@test("nvmlHostMounts.driverDir: where the program looks for such a folder")
def driver_dir():
    for folder, place, has_usr in (("/home/kubernetes/bin/nvidia", "/usr/local/nvidia", True),
                                   ("/run/nvidia/driver", "/run/nvidia/driver", False)):
        rendered = with_set("nvmlHostMounts.enabled=true", f"nvmlHostMounts.driverDir={folder}")
        mounts = {m["name"]: m["mountPath"] for m in rendered.container("DaemonSet")["volumeMounts"]}
        equal([mounts["driver"], "host-usr" in mounts], [place, has_usr], folder)
        check(f'"{place}/' in (chart.ROOT / "src/nvml/library.c").read_text(), f"the program does not look in {place}")


@test("processes: hostPID reads its own /proc, hostProc the host's, read-only; both with the kubelet's logs")
def processes():
    check("procfs" not in str(template().args("DaemonSet")), "on by default")
    for pair, path in (("agent.hostPID=true", "/proc"), ("agent.hostProc=true", "/host/proc")):
        rendered = with_set(pair)
        check(f"--procfs={path}" in rendered.args("DaemonSet"), pair)
        equal(rendered.pod("DaemonSet").get("hostPID", False), path == "/proc", pair)
        mounts = {m["mountPath"]: m["readOnly"] for m in rendered.container("DaemonSet")["volumeMounts"]}
        equal([mounts["/var/log/pods"], mounts["/var/log/containers"]], [True, True], pair)
        equal(mounts.get("/host/proc"), None if path == "/proc" else True, pair)


@test("migMonitor adds SYS_ADMIN to the agent and tells the container toolkit")
def mig_monitor():
    rendered = with_set("agent.migMonitor=true", "agent.owners.enabled=false")
    pod, container = security(rendered)
    equal([pod["runAsUser"], container["capabilities"]], [0, {"drop": ["ALL"], "add": ["SYS_ADMIN"]}], "rights")
    equal(rendered.env("DaemonSet")["NVIDIA_MIG_MONITOR_DEVICES"], "all", "environment")


def labels_of(rendered):
    affinity = rendered.pod("DaemonSet").get("affinity") or {}
    terms = affinity.get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return [t["matchExpressions"][0]["key"] for t in terms.get("nodeSelectorTerms", [])]


@test("agents go where NFD, GFD or a cloud says GPU, and past the usual taint")
def placement():
    rendered = template()
    for key in ("nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present", "cloud.google.com/gke-accelerator",
                "k8s.amazonaws.com/accelerator", "kubernetes.azure.com/accelerator"):
        check(key in labels_of(rendered), key)
    equal(rendered.pod("DaemonSet")["tolerations"], [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
          "tolerations")
    check("nodeSelector" not in rendered.pod("DaemonSet"), "a node selector")
    for kind in ("DaemonSet", "Deployment"):
        check("priorityClassName" not in rendered.pod(kind), f"{kind}: a priority class")
        check("runtimeClassName" not in rendered.pod(kind), f"{kind}: a RuntimeClass that nobody has seen")


@test("nodes that the user chose need none of these labels")
def own_placement():
    equal(labels_of(with_set("nodeSelector.gpu=yes")), [], "with nodeSelector")
    equal(with_set("affinity.nodeAffinity.x=1").pod("DaemonSet")["affinity"],
          {"nodeAffinity": {"x": 1}}, "with affinity")


@test("mockMode: simulated GPUs, no affinity, no RuntimeClass, no host, an ordinary user")
def mock():
    rendered = with_set("mockMode.enabled=true", "runtimeClassName=nvidia", "nvmlHostMounts.enabled=true",
                        "agent.hostPID=true", "agent.migMonitor=true")
    pod, (context, container) = rendered.pod("DaemonSet"), security(rendered)
    equal([pod.get("affinity"), pod.get("runtimeClassName"), pod.get("hostPID")], [None, None, None], "placement")
    equal([context["runAsUser"], container], [65532, RESTRICTED], "security")
    equal([v for v in pod["volumes"] if "hostPath" in v], [], "host paths")
    check("--nvml-library=/usr/lib/keda-gpu-scaler/nvmlsim/libnvidia-ml.so.1" in rendered.args("DaemonSet"), "library")
    path = rendered.env("DaemonSet")["NVMLSIM_SCENARIO"]
    [mount] = [m for m in rendered.container("DaemonSet")["volumeMounts"] if m["name"] == "scenario"]
    equal(path, mount["mountPath"] + "/" + list(rendered.get("ConfigMap", "keda-gpu-scaler-scenario")["data"])[0], "scenario")


@test("mockMode: a scenario as a map replaces the built-in one")
def mock_map():
    rendered = with_set("mockMode.enabled=true", "mockMode.scenario.gpus[0].board=T4")
    text = rendered.get("ConfigMap", "keda-gpu-scaler-scenario")["data"]["scenario.yaml"]
    equal(chart.yaml.safe_load(text), {"gpus": [{"board": "T4"}]}, "scenario")


def probe_kind(pair, kind):
    for workload in ("DaemonSet", "Deployment"):
        container = with_set(pair).container(workload)
        for probe, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
            wanted = {"httpGet": {"path": path, "port": "health"}} if kind == "httpGet" else {"grpc": {"port": 8081}}
            check(wanted.items() <= container[probe].items(), f"{workload}: {container[probe]}")


add("probes: http by default", probe_kind, "logLevel=info", "httpGet")
add("probes: grpc on the probe port, which never has TLS", probe_kind, "probes.type=grpc", "grpc")


@test("probes.enabled=false: no probe and no port")
def no_probes():
    rendered = with_set("probes.enabled=false")
    for kind in ("DaemonSet", "Deployment"):
        container = rendered.container(kind)
        check("livenessProbe" not in container and "--probe-port=0" in container["args"], kind)
        check("health" not in [p["name"] for p in container["ports"]], kind)


@test("a change of configuration restarts the pods that read it")
def checksums():
    def sums(*pairs):
        rendered = with_set(*pairs)
        return [rendered.get(k)["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
                for k in ("DaemonSet", "Deployment")]
    before, agents, both = sums(), sums("agent.config.drain-timeout=2s"), sums("metrics[0].targetValue=85")
    check(before[0] != agents[0] and before[1] == agents[1], "agent.config")
    check(before[0] != both[0] and before[1] != both[1], "metrics")


@test("the pods' selectors stay as they are, whatever the values")
def selectors():
    # Never to be changed: an upgrade from a release of before would be refused.
    name = "keda-gpu-scaler"
    wanted = {kind: {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": "g", "app.kubernetes.io/component": component}
              for kind, component in (("DaemonSet", "agent"), ("Deployment", "hub"))}
    for path in chart.CI_VALUES:
        for o in template("-f", path).all:
            if o["kind"] in ("DaemonSet", "Deployment"):
                equal(o["spec"]["selector"], {"matchLabels": wanted[o["kind"]]}, f"{path.name}: {o['kind']}")
                labels = o["spec"]["template"]["metadata"]["labels"]
                check(o["spec"]["selector"]["matchLabels"].items() <= labels.items(), f"{path.name}: the pods' labels")


@test("the reference's values arrive where the reference's chart put them")
def reference():
    rendered = template("-f", chart.ROOT / chart.CHART / "ci/reference-values.yaml")
    pod, container = rendered.pod("DaemonSet"), rendered.container("DaemonSet")
    equal([container["image"], container["imagePullPolicy"]], ["registry.example.com/gpu/keda-gpu-scaler:v0.6.0", "Always"],
          "image")
    equal(pod["imagePullSecrets"], [{"name": "registry"}], "pull secrets")
    equal([pod["serviceAccountName"], pod["runtimeClassName"], pod["nodeSelector"]],
          ["gpu-reader", "nvidia", {"nvidia.com/gpu.present": "true"}], "pod")
    equal(container["resources"], {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}},
          "resources")
    equal([container["securityContext"]["privileged"], container["securityContext"]["runAsUser"]], [True, 0], "security")
    equal([container["livenessProbe"]["grpc"], container["readinessProbe"]["grpc"]], [{"port": 8082}] * 2, "probes")
    for flag in ("--port=6000", "--metrics-port=9400", "--probe-port=8082", "--log-level=debug", "--health-check-interval=10s"):
        check(flag in container["args"], flag)
    ports = {p["name"]: (p["port"], p["targetPort"]) for p in rendered.get("Service", "keda-gpu-scaler")["spec"]["ports"]}
    equal(ports, {"grpc": (6001, "grpc"), "metrics": (9400, "metrics")}, "Service")
    test_pod = rendered.get("Pod")["spec"]["containers"][0]
    check("keda-gpu-scaler.gpu.svc:6001" in test_pod["args"], "helm test asks another port than the Service's")
    equal(rendered.get("DaemonSet")["spec"]["template"]["metadata"]["annotations"]["example.com/team"], "ml", "annotations")
