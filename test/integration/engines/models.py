"""Workloads whose pods have a metrics page each, at an address of their own: 127.x.y.z, so that pod IPs are real."""
import contextlib
import itertools
import os
import threading

from agent import free_port
from cluster import ADDRESS, Cluster, make_deployment, make_hpa, make_pod, make_scaled_object
from pages import PageServer, vllm

_numbers = itertools.count()
_lock = threading.Lock()


def free_address():
    """A loopback address that no other test has."""
    with _lock:
        number = next(_numbers)
    return f"127.{64 + os.getpid() % 128}.{number // 250 + 1}.{number % 250 + 1}"


def trigger(metric="requests_waiting", target=5, **more):
    """Metadata of a trigger on a signal of the pods' pages, on the newest pages."""
    return {"scalerAddress": ADDRESS, "metricType": metric, "metricName": "load", "targetValue": str(target), "window": "0",
            "activationWindow": "0", **{key: str(value) for key, value in more.items()}}


class Model:
    """ns/name: a Deployment with these pages, one a pod; its HPA and ScaledObject. target: the HPA's; replicas: C."""

    def __init__(self, cluster, name, pages, metadata=None, ns="ml", target=None, replicas=None, port=None, **spec):
        self.cluster, self.ns, self.name = cluster, ns, name
        self.metadata = metadata or trigger()
        self.servers, self.port = {}, port or free_port()
        kube = cluster.kube
        kube.put(make_deployment(ns, name, len(pages) if replicas is None else replicas))
        kube.put(make_hpa(ns, name, target=target or self.metadata["targetValue"]))
        for number, page in enumerate(pages):
            self.add(f"{name}-{number}", page)
        kube.put(make_scaled_object(ns, name, self.metadata, **spec))

    def add(self, name, page, serves=True, **pod):
        """Another pod with this page; serves: else nothing listens at its address."""
        address = free_address()
        if serves:
            self.servers[name] = self.cluster.enter(PageServer(page, address=address, port=self.port))
        self.put(name, address, **pod)

    def put(self, name, address, ports=None, annotations=None, labels=None, node="node-0", gpus=1, **status):
        """The pod as the API has it."""
        pod = make_pod(self.ns, name, node, self.name, gpus=gpus, podIP=address, **status)
        ports = [{"name": "metrics", "containerPort": self.port}] if ports is None else ports
        pod["spec"]["containers"][0]["ports"] = ports
        pod["metadata"]["annotations"] = annotations or {}
        pod["metadata"]["labels"].update(labels or {})
        self.cluster.kube.put(pod)

    def server(self, number):
        return self.servers[f"{self.name}-{number}"]

    def play(self, *pages):
        """Other pages from now on."""
        for number, page in enumerate(pages):
            self.server(number).page = page

    def ask(self, hub):
        return hub.ask(self.ns, self.name)

    def kill(self, number):
        """The page is gone: its address refuses connections."""
        self.server(number).close()

    def revive(self, number, page):
        old = self.server(number)
        self.servers[f"{self.name}-{number}"] = self.cluster.enter(PageServer(page, address=old.address, port=self.port))


class Models(Cluster):
    """A cluster whose page servers end with it. Without nodes there is no agent and no GPU."""

    def enter(self, context):
        return self._stack.enter_context(context)


@contextlib.contextmanager
def one_model(*waiting, metadata=None, **keys):
    """A cluster with ml/llm, whose pods have vLLM's page with so many waiting requests each."""
    with Models() as cluster:
        yield Model(cluster, "llm", [vllm(waiting=one, running=4 if one else 0) for one in waiting], metadata, **keys)


__all__ = ["Model", "Models", "free_address", "one_model", "trigger"]
