"""How a hub is started, told, looked at and ended: sources of agents, certificates, signals, pages, `get` and `explain`."""
import contextlib
import json
import pathlib
import re
import signal
import subprocess
import tempfile

from cache import ROOT
from cluster import LOAD, PROGRAM, SERVICE_NS, Cluster, check, free_port, grpc, load, make_scaled_object, refused, wait_until, web
from fake_kube import make_certificates
from suite import test


def slice_of(name, agents, ports=None, service="agents", ns=SERVICE_NS, terminating=()):
    """An EndpointSlice: {number of a node: its address}."""
    endpoints = [{"addresses": ["127.0.0.1"], "nodeName": f"node-{number}",
                  "conditions": {"ready": False, "terminating": number in terminating}} for number in agents]
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"namespace": ns, "name": name, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4", "endpoints": endpoints,
            "ports": ports or [{"name": "grpc", "port": next(iter(agents.values()), 1), "protocol": "TCP"}]}


@test("agents are found by EndpointSlices, ready or not; one that goes is missing, one that comes is asked")
def slices():
    with web(40, 60, 80) as cluster:
        ports = {node.number: node.agent.port for node in cluster.nodes}
        for number in (0, 1):
            cluster.kube.put(slice_of(f"agents-{number}", {number: ports[number]},
                                      [{"name": "metrics", "port": 1}, {"name": "grpc", "port": ports[number]}]))
        cluster.kube.put(slice_of("others", {7: 1}, service="others"))
        hub = cluster.hub(agents=[f"service:{SERVICE_NS}/agents"])
        ask = hub.ask("ml", "web")
        ask.until(150)
        check(set(hub.states()) == {f"127.0.0.1:{ports[i]}" for i in (0, 1)}, f"{hub.states()}")
        cluster.kube.put(slice_of("agents-2", {2: ports[2]}))
        ask.until(180)
        cluster.kube.put(slice_of("agents-2", {2: ports[2]}, terminating=[2]))
        ask.until(150)
        is_up = [f"127.0.0.1:{ports[i]}" for i in (0, 1)]
        check(sorted(a for a, state in hub.states().items() if state == "up") == sorted(is_up), f"{hub.states()}")
        check(hub.states()[f"127.0.0.1:{ports[2]}"] == "connecting", f"{hub.states()}")
        cluster.kube.delete("endpointslices", SERVICE_NS, "agents-1")
        wait_until(lambda: list(hub.states().values()).count("up") == 1, "one agent to be left up")
        ask.stays(150, 1)


@test("the port of an agents' Service may be named or a number; a Service without such a port has no agents")
def slice_ports():
    with web(40) as cluster:
        port = cluster.nodes[0].agent.port
        cluster.kube.put(slice_of("a", {0: 1}, [{"name": "grpc", "port": 1}, {"name": "rpc", "port": port}]))
        for where in ("agents:rpc", f"agents:{port}"):
            cluster.hub(agents=[f"service:{SERVICE_NS}/{where}"]).ask("ml", "web").until(40)
        hub = cluster.hub(agents=[f"service:{SERVICE_NS}/agents:nothing"])
        check(hub.states() == {}, f"{hub.states()}")
        hub.ask("ml", "web").until("UNAVAILABLE")


@test("EndpointSlices that may not be read leave a hub that says so, after its ten seconds")
def slices_denied():
    with web(40) as cluster:
        cluster.kube.fault(path="endpointslices", status=403)
        hub = cluster.hub(agents=[f"service:{SERVICE_NS}/agents"], wait=False)
        wait_until(lambda: "endpointslices" in hub.log(), "a word in the log")
        hub.wait_ready()
        hub.ask("ml", "web").until("UNAVAILABLE")
        cluster.kube.clear_faults()
        cluster.kube.put(slice_of("a", {0: cluster.nodes[0].agent.port}))
        hub.ask("ml", "web").until(40, patience_s=60)  # the pause between tries has grown


@test("agents are found by every address of a DNS name")
def dns():
    with web(40) as cluster:
        port = cluster.nodes[0].agent.port
        hub = cluster.hub(agents=[f"dns:localhost:{port}"], wait=False)
        hub.ask("ml", "web").until(40)
        check(hub.states().get(f"127.0.0.1:{port}") == "up", f"{hub.states()}")


@test("a name that no name server knows is no fleet without agents: it is asked again")
def dns_unknown():
    with web(40) as cluster:
        hub = cluster.hub(agents=["dns:no-such-host.invalid:6000"], wait=False)
        wait_until(lambda: "no-such-host.invalid" in hub.log(), "a word in the log")
        check(not hub.is_ready(), "ready without having heard of any agent")
        hub.wait_ready()
        hub.ask("ml", "web").until("UNAVAILABLE")


@test("agents that demand a certificate are asked with one; without it they are refused, and the hub says why")
def mutual_tls():
    with tempfile.TemporaryDirectory(prefix="kgs-") as folder, Cluster([40]) as cluster:
        make_certificates(pathlib.Path(folder), "127.0.0.1")
        node = cluster.nodes[0]
        node.flags += [f"--tls-cert={folder}/server.pem", f"--tls-key={folder}/server.key", f"--tls-client-ca={folder}/ca.pem"]
        cluster.workload("web", {"web-0": (0, 0)})
        cluster.start_agents()
        good = ["--agents-tls", f"--agents-tls-ca={folder}/ca.pem", f"--agents-tls-cert={folder}/client.pem",
                f"--agents-tls-key={folder}/client.key"]
        hub = cluster.hub(*good)
        hub.ask("ml", "web").until(40)
        node.agent.signal(signal.SIGHUP)
        hub.signal(signal.SIGHUP)
        wait_until(lambda: hub.log().count("reloaded") or "reload" in hub.log() or hub.is_ready(), "the hub to go on")
        hub.ask("ml", "web").stays(40, 1)
        for flags in (good[:2], ["--agents-tls", *good[2:]], []):  # no certificate; the system's CAs; plaintext
            other = cluster.hub(*flags, wait=False)
            wait_until(lambda other=other: other.log().count("agent is not up"), f"a reason in the log with {flags}")
            check(list(other.states().values()) == ["connecting"], f"{other.states()}")
            check(other.api("nodes")["nodes"][0]["reason"], "no reason")
        named = cluster.hub(*good, "--agents-tls-server-name=elsewhere", wait=False)
        wait_until(lambda: named.log().count("agent is not up"), "a reason in the log")


@test("the pages of the API are JSON, with the fleet, the workloads and why each gets what it gets")
def pages():
    with web(40, 60, 80) as cluster:
        hub = cluster.hub("--hub-name=hub-a")
        hub.ask("ml", "web").until(180)
        nodes = hub.api("nodes")
        check(nodes["hub"] == "hub-a" and [n["name"] for n in nodes["nodes"]] == ["node-0", "node-1", "node-2"], f"{nodes}")
        for node in nodes["nodes"]:
            check(node["state"] == "up" and node["gpus"] == 2 and node["holders"] == 2 and node["heardSecondsAgo"] < 5, f"{node}")
        gpus = hub.api("gpus")["gpus"]
        check([g["utilizationPercent"] for g in gpus] == [40, 99, 60, 99, 80, 99], f"{gpus}")
        check([h["pod"] for g in gpus for h in g["holders"]] == ["web-0", "train-0", "web-1", "train-1", "web-2", "train-2"], f"{gpus}")
        row = hub.api("workloads")["workloads"][0]
        check((row["namespace"], row["name"], row["specReplicas"], row["pods"]) == ("ml", "web", 3, 3), f"{row}")
        check(row["triggers"][0]["value"] == 180 and row["triggers"][0]["active"], f"{row}")
        one = hub.api("workloads/ml/web")
        check(one["triggers"][0]["value"] == 180 and len(one["triggers"][0]["pods"]) == 3, f"{one}")
        for path in ("workloads/ml/nothing", "workloads/ml", "workloads/", "nothing"):
            check(hub.get(f"/api/v1/{path}")[0] == 404, path)
        check("web-1" in hub.text("workloads/ml/web") and "node-2" in hub.text("gpus"), hub.text("gpus"))
        check(hub.get("/version", port=hub.probe_port)[0] == 200, "/version")


@test("/metrics shows agents, workloads, decisions, the API and the GPUs, as many as it is told to")
def metrics():
    with web(40, 60, 80) as cluster:
        hub, few, none = cluster.hub(), cluster.hub("--shown-gpus=2"), cluster.hub("--shown-gpus=0")
        hub.ask("ml", "web").until(180)
        name = "keda_gpu_scaler_fleet_gpu_utilization_ratio"
        wait_until(lambda: len(hub.page().get(name, {})) == 6, "six GPUs")
        seen = {re.search(r'node="([^"]*)".*gpu="0"', text)[1]: value for text, value in hub.page()[name].items() if 'gpu="0"' in text}
        check(seen == {"node-0": 0.4, "node-1": 0.6, "node-2": 0.8}, f"{seen}")
        wait_until(lambda: len(few.page().get(name, {})) == 2, "two GPUs")
        check(not none.page().get(name), "shown all the same")
        check(hub.metric("keda_gpu_scaler_workloads") == 1, "workloads")
        with contextlib.suppress(grpc.RpcError):
            hub.ask("ml", "nobody").value(LOAD)
        for reason in ("known", "refused"):
            check(hub.metric("keda_gpu_scaler_decisions_total", f'reason="{reason}"') >= 1, f"decisions: {reason}")
        check(hub.metric("keda_gpu_scaler_fleet_agents", 'state="up"') == 3, f"{hub.page().get('keda_gpu_scaler_fleet_agents')}")
        cluster.nodes[0].agent.process.kill()
        wait_until(lambda: len(hub.page().get(name, {})) == 4, "the readings of a dead agent to go", 20)


@test("docs/metrics.md has every family and label of a hub's page, and no other of the hub")
def documented():
    sections = ("The Kubernetes API", "Agents, as the hub sees them", "Workloads and GPUs, on the hub")
    text = (ROOT / "docs/metrics.md").read_text()
    ours = "".join(text.partition(f"\n## {section}\n")[2].partition("\n## ")[0] for section in sections)
    row = re.compile(r"^\| `(\w+)` \| (gauge|counter|histogram) \|", re.MULTILINE)
    rows, wanted = dict(row.findall(text)), dict(row.findall(ours))
    parts = {"mig": [{"profile": "3g.40gb", "memory_used_mib": 1000}]}
    with Cluster([40, parts]) as cluster:
        cluster.workload("web", {"web-0": (0, 0)})
        cluster.start_agents()
        hub = cluster.hub()
        hub.ask("ml", "web").until(40)
        cluster.kube.cut_connections()
        wait_until(lambda: hub.metric("keda_gpu_scaler_kube_watch_restarts_total"), "a watch to be begun again")
        page = hub.get("/metrics")[2].decode()
    there = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    unknown = {name: kind for name, kind in there.items() if rows.get(name) != kind}
    check(not unknown and wanted.items() <= there.items(), f"not in the document: {unknown}; not there: {wanted.keys() - there.keys()}")
    labels = set(re.findall(r'[{,](\w+)="', re.sub(r'"(?:[^"\\]|\\.)*"', '""', page))) - {"le"}
    missing = [name for name in sorted(labels) if f"`{name}`" not in text]
    check(not missing and "mig_profile" in labels, f"labels that are not named: {missing}")


@test("`metrics:` entries are shown for each node, as its own agent would show them")
def entries():
    text = ("metrics: [{name: gpu_utilization, aggregation: avg}, {name: memory_used_mib, aggregation: sum}, "
            "{name: gpu_memory_free, aggregation: min}, {name: other, gpuIndex: 1}]\n")
    gpus = [{"utilization": 30, "memory_used_mib": 1000}, {"utilization": 70, "memory_used_mib": 40000}]
    names = {"gpu_utilization", "memory_used_mib", "gpu_memory_free", "other"}
    with tempfile.TemporaryDirectory(prefix="kgs-") as folder, Cluster(gpus, [{"utilization": 90, "memory_used_mib": 500}]) as cluster:
        path = pathlib.Path(folder) / "both.yaml"
        path.write_text(text)
        for node in cluster.nodes:
            node.flags.append(f"--config={path}")
        cluster.start_agents()
        hub = cluster.hub(f"--config={path}")

        def same():
            page, wanted = hub.page(), {}
            for node in cluster.nodes:
                there = node.agent.page()
                wanted.update({(name, f'node="{node.name}"'): there[name][""] for name in names & there.keys()})
            seen = {(name, label): value for name in names for label, value in page.get(name, {}).items()}
            close = seen.keys() == wanted.keys() and all(abs(seen[key] - wanted[key]) < 0.1 for key in wanted)
            return close and wanted[("gpu_utilization", 'node="node-0"')] == 50 and len(wanted) == 7
        wait_until(same, "the same on both")
        path.write_text("metrics: []\n")
        hub.signal(signal.SIGHUP)
        wait_until(lambda: not names & hub.page().keys(), "no families without entries")
        none = cluster.hub("--shown-gpus=0", f"--config={path}")
        check(not names & none.page().keys(), "shown all the same")


def command(hub, *arguments):
    """(status, stdout, stderr) of the program."""
    done = subprocess.run([PROGRAM, *arguments, *([f"--hub=127.0.0.1:{hub.metrics_port}"] if hub else [])], capture_output=True,
                          text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


@test("`get` and `explain` show what a hub knows as text and JSON; typos are answered with what is meant")
def commands():
    with web(40, 60, 80) as cluster:
        hub = cluster.hub()
        hub.ask("ml", "web").until(180)
        for kind, word in (("nodes", "node-1"), ("gpus", "ml/web-1"), ("workloads", "ml/web")):
            status, out, err = command(hub, "get", kind)
            check(status == 0 and word in out and not err, f"{kind}: {status} {out} {err}")
            status, out, err = command(hub, "get", kind, "-o", "json")
            check(status == 0 and kind in json.loads(out), f"{kind}: {status} {out} {err}")
        row = command(hub, "get", "workloads")[1].splitlines()[1]
        check(row.split() == ["ml/web", "load", "3", "180", "50", "yes"], row)
        status, out, err = command(hub, "explain", "ml/web")
        check(status == 0 and "value    180 %" in out and "web-2 on node-2" in out, f"{status} {out} {err}")
        status, out, err = command(hub, "explain", "ml/web", "--output=json")
        check(status == 0 and json.loads(out)["triggers"][0]["value"] == 180, f"{status} {out} {err}")
        for arguments, want, word in ((("get", "node"), 2, "did you mean nodes?"), (("get",), 2, "nodes, gpus or workloads"),
                                      (("explain", "web"), 2, "NAMESPACE/NAME"), (("explain",), 2, "NAMESPACE/NAME"),
                                      (("explain", "ml/web/x"), 2, "NAMESPACE/NAME"), (("explain", "ml/wbe"), 1, "no ScaledObject"),
                                      (("explain", "ml/../nodes"), 2, "NAMESPACE/NAME"),
                                      (("get", "nodes", "--output=yaml"), 2, "output")):
            status, out, err = command(hub, *arguments)
            check(status == want and word in err and not out, f"{arguments}: {status} {out!r} {err!r}")
    status, out, err = command(None, "get", "nodes", f"--hub=127.0.0.1:{free_port()}")
    check(status == 1 and "port-forward" in err, f"{status} {out} {err}")


@test("a trigger whose metadata is refused is shown with the reason, and one that was changed as it is now")
def refused_triggers():
    with web(40, 60, 80, metadata=load(targetVale=50)) as cluster:
        hub = cluster.hub()
        ask = hub.ask("ml", "web")
        with refused("INVALID_ARGUMENT", "targetVale", "targetValue"):
            ask.value(load(targetVale=50))
        for page in (hub.api("workloads")["workloads"][0], hub.api("workloads/ml/web")):
            check(not page["triggers"] and "did you mean" in page["refused"][0], f"{page}")
        for path in ("workloads", "workloads/ml/web"):
            check("targetVale" in hub.text(path), hub.text(path))
        for target in (50, 60):
            cluster.kube.put(make_scaled_object("ml", "web", load(targetValue=target)))
            wait_until(lambda: [t["target"] for t in hub.api("workloads")["workloads"][0]["triggers"]] == [target], f"target {target}")
        check(hub.api("workloads/ml/web")["refused"] == [], "refused no longer")


@test("SIGHUP reads the file again: targets change, and each trigger is shown once; a wrong file changes nothing")
def reload():
    with web(40, 60, 80, metadata=(keys := {k: v for k, v in LOAD.items() if k != "targetValue"})) as cluster, \
            tempfile.TemporaryDirectory(prefix="kgs-") as folder:
        path = pathlib.Path(folder) / "hub.yaml"
        path.write_text("metrics: [{name: load, targetValue: 50}]\n")
        hub = cluster.hub(f"--config={path}")
        ask = hub.ask("ml", "web")
        check(ask.spec(keys) == ("load", 50), f"{ask.spec(keys)}")
        ask.until(180, keys)
        path.write_text("metrics: [{name: load, targetValue: 70}]\n")
        hub.signal(signal.SIGHUP)
        wait_until(lambda: ask.spec(keys) == ("load", 70), "the new target")
        ask.answer(keys)
        shown = [t["target"] for t in hub.api("workloads/ml/web")["triggers"]]
        check(shown == [70], f"{shown}")
        path.write_text("metrics: [{name: load, targetValue: many}]\n")
        hub.signal(signal.SIGHUP)
        wait_until(lambda: "the old configuration stays" in hub.log(), "a refusal in the log")
        check(ask.spec(keys) == ("load", 70), f"{ask.spec(keys)}")


@test("SIGTERM makes a hub not ready at once; it drains and ends with 0")
def drain():
    with web(40) as cluster:
        hub = cluster.hub("--shutdown-delay=2s")
        ask = hub.ask("ml", "web")
        ask.until(40)
        hub.signal(signal.SIGTERM)
        wait_until(lambda: not hub.is_ready(), "not ready")
        check(ask.answer() == 40, "not answered while it drains")
        check(hub.wait_exit() == 0, hub.log()[-2000:])


@test("a hub may be ended at any moment of its start")
def ended_early():
    with web(40, 60) as cluster:
        for number in (0, 1):
            cluster.kube.put(slice_of(f"agents-{number}", {number: cluster.nodes[number].agent.port}))
        cluster.kube.fault(verb="list", path="horizontal", delay_s=0.2)
        where = [f"service:{SERVICE_NS}/agents", f"dns:localhost:{cluster.nodes[0].agent.port}", cluster.nodes[1].agent.address]
        for pages in (0, 1, 2, 4, 8, 16, 32, 64, 128):
            hub = cluster.hub("--drain-timeout=1s", agents=where, wait=False)
            for _ in range(pages):
                hub.get("/metrics")
                hub.ask("ml", "web").answer()
            hub.stop()


def ends_at_once(status, word, *flags, text=None):
    """The hub does not start, and says why."""
    with tempfile.TemporaryDirectory(prefix="kgs-") as folder:
        path = pathlib.Path(folder) / "kubeconfig"
        if text is not None:
            path.write_text(text)
        flags = [flag.replace("PATH", str(path)) for flag in flags]
        done = subprocess.run([PROGRAM, "hub", "--port=0", "--metrics-port=0", "--probe-port=0", *flags], capture_output=True,
                              text=True, check=False, timeout=60, env={"PATH": "/usr/bin:/bin"})
        check(done.returncode == status and word in done.stderr, f"{flags}: {done.returncode} {done.stderr}")


CONFIG = json.dumps({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                     "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
                     "users": [{"name": "u", "user": {"exec": {"command": "aws"}}}]})


@test("a hub with a wrong configuration ends at once and says what is wrong")
def wrong_configuration():
    ends_at_once(2, "KUBERNETES_SERVICE_HOST")
    ends_at_once(1, "/nowhere", "--kubeconfig=/nowhere")
    ends_at_once(2, "current-context", "--kubeconfig=PATH", text="{}")
    ends_at_once(2, "exec", "--kubeconfig=PATH", text=CONFIG)
    good = CONFIG.replace('"exec": {"command": "aws"}', '"token": "t"')
    for where in ("service:", "service:a/b/c", "service:a:", "service:a:0", "service:a:70000", "dns:host", "host", "dns:",
                  ":6000", "service:ns/", "service:/a"):
        ends_at_once(2, "--agents", "--kubeconfig=PATH", f"--agents={where}", text=good)
    ends_at_once(2, "--hpa-tolerance", "--kubeconfig=PATH", "--hpa-tolerance=2", text=good)
    ends_at_once(2, "--agents-tls", "--kubeconfig=PATH", "--agents-tls-ca=/x", text=good)
    ends_at_once(2, "--agents-tls-key", "--kubeconfig=PATH", "--agents-tls", "--agents-tls-cert=/x", text=good)
    ends_at_once(1, "/nowhere", "--kubeconfig=PATH", "--agents-tls", "--agents-tls-ca=/nowhere", text=good)
