#!/usr/bin/env python3
"""bench_kube.py PORT WORKLOADS AGENTS AGENT_PORT [PODS]: a Kubernetes API server for figures: thousands of ScaledObjects
with an HPA, a /scale and PODS (16) pods each, and the agents' EndpointSlices, all made up from their numbers. One thread, and no
more of the API than a hub asks for: lists in pages, watches that stay open with bookmarks. Each 15 s every HPA and
every second ScaledObject is told again with another status, as the real ones are. It says `ready` when it listens.

The pods are on the GPUs of `crowd PORT FIRST COUNT WORKLOADS`: pod p of all is on GPU p % 8 of agent p / 8.
"""
import asyncio
import email.utils
import json
import resource
import sys
import time
import urllib.parse

GPUS, TEAMS, SLICE, PERIOD_S = 8, 50, 100, 15
STEPS = 50  # a second, in which things change
VARIANTS = 20  # of targets: triggers differ in text, as people's do
BOOKMARK_S = 60
ADDRESS = "keda-gpu-scaler.gpu-scaler.svc:6000"
STARTED = "2026-01-01T00:00:00Z"


def namespace_of(workload):
    return f"team-{workload % TEAMS}"


def name_of(workload):
    return f"llama-{workload:05d}"


def metric_of(workload):
    return f"load-{workload % VARIANTS}"


def metadata_of(workload):
    """What KEDA sends with each question about it."""
    return {"scalerAddress": ADDRESS, "metricType": "gpu_utilization", "metricName": metric_of(workload),
            "targetValue": f"{75 + workload % VARIANTS / 10:g}", "window": "15s"}


def meta(name, **more):
    return {"name": name, "uid": f"uid-{name}", "creationTimestamp": STARTED, **more}


class Objects:
    """The objects of each kind by number."""

    def __init__(self, workloads, agents, port, pods):
        self.workloads, self.agents, self.port, self.n_pods, self.version = workloads, agents, port, pods, 1000
        self.kinds = {"scaledobjects": ("keda.sh/v1alpha1", "ScaledObject", workloads, self.scaled_object),
                      "scaledjobs": ("keda.sh/v1alpha1", "ScaledJob", 0, None),
                      "horizontalpodautoscalers": ("autoscaling/v2", "HorizontalPodAutoscaler", workloads, self.hpa),
                      "endpointslices": ("discovery.k8s.io/v1", "EndpointSlice", -(-agents // SLICE), self.slice)}

    def scaled_object(self, w):
        name = name_of(w)
        return {"metadata": meta(name, namespace=namespace_of(w), resourceVersion=str(self.version),
                                 finalizers=["finalizer.keda.sh"], labels={"scaledobject.keda.sh/name": name}),
                "spec": {"scaleTargetRef": {"name": name}, "pollingInterval": 30, "minReplicaCount": 1,
                         "maxReplicaCount": 64, "triggers": [{"type": "external", "metadata": metadata_of(w)}]},
                "status": {"hpaName": f"keda-hpa-{name}", "lastActiveTime": STARTED, "scaleTargetKind": "apps/v1.Deployment",
                           "externalMetricNames": [f"s0-{metric_of(w)}"], "originalReplicaCount": 1,
                           "conditions": [{"type": kind, "status": "True", "message": "ScaledObject is defined correctly",
                                           "reason": "ScaledObjectReady"} for kind in ("Ready", "Active")]}}

    def hpa(self, w):
        name = name_of(w)
        metric = {"type": "External", "external": {
            "metric": {"name": f"s0-{metric_of(w)}", "selector": {"matchLabels": {"scaledobject.keda.sh/name": name}}},
            "target": {"type": "AverageValue", "averageValue": metadata_of(w)["targetValue"]}}}
        current = {"type": "External", "external": {**metric["external"], "current": {
            "averageValue": f"{70000 + (w + self.version) % 9000}m", "value": "0"}}}
        return {"metadata": meta(f"keda-hpa-{name}", namespace=namespace_of(w), resourceVersion=str(self.version)),
                "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                         "minReplicas": 1, "maxReplicas": 64, "metrics": [metric],
                         "behavior": {"scaleDown": {"stabilizationWindowSeconds": 300, "selectPolicy": "Max",
                                                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}}},
                "status": {"desiredReplicas": self.n_pods, "currentReplicas": self.n_pods, "currentMetrics": [current],
                           "conditions": [{"type": kind, "status": "True", "lastTransitionTime": STARTED,
                                           "reason": "ReadyForNewScale", "message": "recommended size matches current size"}
                                          for kind in ("AbleToScale", "ScalingActive", "ScalingLimited")]}}

    def slice(self, number):
        endpoints = [{"addresses": [f"127.1.{a // 250}.{a % 250 + 1}"], "nodeName": f"node-{a:05d}-0",
                      "conditions": {"ready": True}, "targetRef": {"kind": "Pod", "name": f"agent-{a:05d}"}}
                     for a in range(number * SLICE, min((number + 1) * SLICE, self.agents))]
        return {"metadata": meta(f"agents-{number}", namespace="gpu-scaler", resourceVersion=str(self.version),
                                 labels={"kubernetes.io/service-name": "keda-gpu-scaler-agents"}),
                "addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": "grpc", "port": self.port}]}

    def pod(self, w, replica):
        name = f"{name_of(w)}-{replica}"
        env = [{"name": f"SETTING_{i}", "value": f"value-of-{i}-for-{name}"} for i in range(8)]
        resources = {"limits": {"nvidia.com/gpu": "1", "memory": "64Gi"}, "requests": {"cpu": "8", "nvidia.com/gpu": "1"}}
        container = {"name": "server", "image": "registry.example/llama-server:4.1.2", "env": env, "resources": resources,
                     "ports": [{"containerPort": 8000, "name": "http"}], "imagePullPolicy": "IfNotPresent",
                     "volumeMounts": [{"name": "weights", "mountPath": "/weights"}]}
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": STARTED, "lastProbeTime": None}
                      for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")]
        return {"metadata": meta(name, namespace=namespace_of(w), resourceVersion="1000",
                                 labels={"app": name_of(w), "pod-template-hash": "7d9c5b6f4"}),
                "spec": {"nodeName": f"node-{(replica * self.workloads + w) // GPUS:05d}-0", "containers": [container],
                         "serviceAccountName": "default", "schedulerName": "default-scheduler",
                         "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                         "volumes": [{"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}]},
                "status": {"phase": "Running", "podIP": "10.0.0.1", "startTime": STARTED, "conditions": conditions,
                           "containerStatuses": [{"name": "server", "ready": True, "restartCount": 0, "started": True,
                                                  "state": {"running": {"startedAt": STARTED}}}]}}

    def pods(self, selector):
        w = int(selector.rpartition("-")[2])
        return [self.pod(w, replica) for replica in range(self.n_pods)]


def encode(thing):
    return json.dumps(thing, separators=(",", ":")).encode()


def page(objects, kind, query):
    """A page of a list."""
    version, name, n, make = objects.kinds[kind]
    at = int(query.get("continue", 0))
    end = min(n, at + int(query.get("limit", n)))
    more = {"continue": str(end)} if end < n else {}
    return {"kind": f"{name}List", "apiVersion": version, "metadata": {"resourceVersion": str(objects.version), **more},
            "items": [make(i) for i in range(at, end)]}


def answer(objects, path, query):
    """What a GET that is no watch gets; None: there is no such thing."""
    words = path.strip("/").split("/")
    if words[-1] == "scale":
        return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": words[-2]},
                "spec": {"replicas": objects.n_pods},
                "status": {"replicas": objects.n_pods, "selector": f"app={words[-2]}"}}
    if words[-1] == "pods":
        return {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": str(objects.version)},
                "items": objects.pods(query["labelSelector"])}
    if words[-1] in objects.kinds:
        return page(objects, words[-1], query)
    if path == "/apis/apps/v1":
        return {"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [
            {"name": f"deployments{sub}", "kind": kind, "namespaced": True, "verbs": ["get"]}
            for sub, kind in (("", "Deployment"), ("/scale", "Scale"))]}
    return None


class Server:
    """What all connections share."""

    def __init__(self, objects):
        self.objects = objects
        self.watches = {}  # kind: those that watch it
        self.due = [set() for _ in range(BOOKMARK_S * STEPS)]  # watches by when their bookmarks are

    def tell(self, kind, number):
        """One object again, to those that watch its kind."""
        version, name, _, make = self.objects.kinds[kind]
        event = encode({"type": "MODIFIED", "object": {"kind": name, "apiVersion": version, **make(number)}})
        for connection in self.watches.get(kind, ()):
            connection.event(event)

    def open(self, connection, kind):
        self.watches.setdefault(kind, set()).add(connection)
        self.due[connection.number % len(self.due)].add(connection)

    def close(self, connection, kind):
        self.watches[kind].discard(connection)
        self.due[connection.number % len(self.due)].discard(connection)

    async def live(self):
        """A part of what changes and of the bookmarks that are due, many times a second."""
        n, step, began = self.objects.workloads, 0, time.monotonic()
        each = n / PERIOD_S / STEPS
        while True:
            step += 1
            await asyncio.sleep(max(0, began + step / STEPS - time.monotonic()))
            self.objects.version += 1
            for w in range(int((step - 1) * each), int(step * each)):
                self.tell("horizontalpodautoscalers", w % n)
                if w % 2 == (w // n) % 2:
                    self.tell("scaledobjects", w % n)
            for connection in self.due[step % len(self.due)]:
                connection.bookmark()


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive. A watch has the connection until the client ends it, or its time is up."""
    n = 0

    def __init__(self, server):
        self.server, self.transport, self.input, self.kind, self.end = server, None, b"", None, None
        Connection.n += 1
        self.number = Connection.n

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, exc):
        self.forget()

    def forget(self):
        """It watches no more."""
        if self.kind:
            self.server.close(self, self.kind)
            self.end.cancel()
        self.kind = None

    def data_received(self, data):
        self.input += data
        while b"\r\n\r\n" in self.input:
            head, _, self.input = self.input.partition(b"\r\n\r\n")
            self.request(head.split(b" ", 2)[1].decode())

    def request(self, target):
        parts = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(parts.query))
        date = email.utils.formatdate(usegmt=True)
        if query.get("watch") == "1":
            self.transport.write(f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: application/json\r\n"
                                 "Transfer-Encoding: chunked\r\n\r\n".encode())
            self.kind = parts.path.rpartition("/")[2]
            self.server.open(self, self.kind)
            self.end = asyncio.get_running_loop().call_later(int(query.get("timeoutSeconds", 300)), self.finish)
            return
        found = answer(self.server.objects, parts.path, query)
        body = encode(found or {"kind": "Status", "code": 404, "message": "there is none"})
        self.transport.write(f"HTTP/1.1 {'200 OK' if found else '404 Not Found'}\r\nDate: {date}\r\n"
                             f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def event(self, line):
        self.transport.write(b"%x\r\n%s\n\r\n" % (len(line) + 1, line))

    def bookmark(self):
        self.event(encode({"type": "BOOKMARK", "object": {"metadata": {
            "resourceVersion": str(self.server.objects.version)}}}))

    def finish(self):
        self.forget()
        self.transport.write(b"0\r\n\r\n")


async def serve(port, workloads, agents, agent_port, pods=16):
    loop = asyncio.get_running_loop()
    server = Server(Objects(int(workloads), int(agents), int(agent_port), int(pods)))
    listener = await loop.create_server(lambda: Connection(server), "127.0.0.1", int(port), backlog=4096)
    print("ready", flush=True)
    await asyncio.gather(server.live(), listener.serve_forever())


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(serve(*sys.argv[1:]))
