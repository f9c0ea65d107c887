"""A kubelet's pod-resources server on a unix socket, by grpcio: it answers what the test puts into it."""
import concurrent.futures
import pathlib
import tempfile
import threading
import time

import cache

cache.stubs()

import grpc  # noqa: E402  pylint: disable=wrong-import-position
import podresources_pb2 as pb  # noqa: E402  pylint: disable=wrong-import-position
import podresources_pb2_grpc as pb_grpc  # noqa: E402  pylint: disable=wrong-import-position


def container(name, *ids, resource="nvidia.com/gpu", claims=(), cpu_ids=()):
    """One container; one ContainerDevices for each id, as the kubelet lists them. claims: (namespace, name, device)."""
    numa = pb.TopologyInfo(nodes=[pb.NUMANode(ID=0)])
    return pb.ContainerResources(
        name=name, cpu_ids=cpu_ids,
        devices=[pb.ContainerDevices(resource_name=resource, device_ids=[i], topology=numa) for i in ids],
        dynamic_resources=[pb.DynamicResource(claim_name=claim, claim_namespace=namespace, claim_resources=[
            pb.ClaimResource(driver_name="gpu.nvidia.com", pool_name="testnode", device_name=device,
                             cdi_devices=[pb.CDIDevice(name=f"k8s.gpu.nvidia.com/claim=0-{device}")])])
            for namespace, claim, device in claims])


def pod(namespace, name, *containers):
    return pb.PodResources(name=name, namespace=namespace, containers=containers)


class Kubelet(pb_grpc.PodResourcesListerServicer):
    """Serves from `path`. pods: what it lists; error: (code, text) instead; gate: cleared, calls wait; delay_s: how long an
    answer takes."""

    def __init__(self, *pods, start=True):
        self.folder = tempfile.TemporaryDirectory(prefix="kubelet-")
        self.path = pathlib.Path(self.folder.name) / "kubelet.sock"
        self.pods, self.error, self.calls, self.authorities = list(pods), None, 0, set()
        self.delay_s = 0
        self.gate = threading.Event()
        self.gate.set()
        self.server = None
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()

    def start(self):
        """Listen on a new socket."""
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2),
                                  options=[("grpc.max_send_message_length", 16 << 20)])
        pb_grpc.add_PodResourcesListerServicer_to_server(self, self.server)
        self.server.add_insecure_port(f"unix:{self.path}")
        self.server.start()

    def stop(self):
        """Stop and remove the socket."""
        self.gate.set()
        if self.server:
            self.server.stop(0).wait()
        self.server = None
        self.path.unlink(missing_ok=True)

    def List(self, request, context):  # pylint: disable=invalid-name
        self.calls += 1
        self.gate.wait()
        time.sleep(self.delay_s)
        if self.error:
            context.abort(*self.error)
        return pb.ListPodResourcesResponse(pod_resources=self.pods)
