"""KEDA's side of ExternalScaler over grpcio: calls with plain dictionaries, and what their answers must be."""
import contextlib
import math

import cache
from agent import PATIENCE_S, TestFailure, check

cache.stubs()

import grpc  # noqa: E402  pylint: disable=wrong-import-position
import externalscaler_pb2 as pb  # noqa: E402  pylint: disable=wrong-import-position
import externalscaler_pb2_grpc as pb_grpc  # noqa: E402  pylint: disable=wrong-import-position
import health_pb2  # noqa: E402  pylint: disable=wrong-import-position
import health_pb2_grpc  # noqa: E402  pylint: disable=wrong-import-position
import node_pb2  # noqa: E402  pylint: disable=wrong-import-position
import node_pb2_grpc  # noqa: E402  pylint: disable=wrong-import-position

SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


class Scaler:
    """Calls to one address; credentials: None for plaintext."""

    def __init__(self, address, credentials=None, options=()):
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1), *options]
        self.channel = grpc.secure_channel(address, credentials, options) if credentials else \
            grpc.insecure_channel(address, options)
        self.stub = pb_grpc.ExternalScalerStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)
        self.node = node_pb2_grpc.NodeStub(self.channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    @staticmethod
    def ref(metadata, name="workload"):
        return pb.ScaledObjectRef(name=name, namespace="default", scalerMetadata=metadata or {})

    def get_metrics(self, metadata=None, name="", timeout=PATIENCE_S):
        return self.stub.GetMetrics(pb.GetMetricsRequest(scaledObjectRef=self.ref(metadata), metricName=name),
                                    timeout=timeout)

    def value(self, metadata=None):
        """The value of GetMetrics: one, with both of its fields filled alike."""
        answer = self.get_metrics(metadata)
        check(len(answer.metricValues) == 1, f"want one value, got {answer}")
        one = answer.metricValues[0]
        check(math.isfinite(one.metricValueFloat) and 0 <= one.metricValueFloat <= 1e12, f"no sound value: {one}")
        check(abs(one.metricValue - one.metricValueFloat) <= 0.5, f"int and float differ: {one}")
        return one.metricValueFloat

    def spec(self, metadata=None):
        """(name, target) of GetMetricSpec: one spec, with both of its fields filled alike."""
        answer = self.stub.GetMetricSpec(self.ref(metadata), timeout=PATIENCE_S)
        return read_spec(answer)

    def active(self, metadata=None):
        return self.stub.IsActive(self.ref(metadata), timeout=PATIENCE_S).result

    def stream_active(self, metadata=None, timeout=None):
        return self.stub.StreamIsActive(self.ref(metadata), timeout=timeout)

    def stream_spec(self, metadata=None, timeout=None):
        return self.stub.StreamMetricSpec(self.ref(metadata), timeout=timeout)

    def serving(self, service=""):
        return self.health.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE_S).status

    def watch(self, service="", timeout=None):
        return self.health.Watch(health_pb2.HealthCheckRequest(service=service), timeout=timeout)

    def explain(self, metadata=None):
        """The text of the explanation."""
        return self.node.Explain(node_pb2.ExplainRequest(scaledObjectRef=self.ref(metadata)), timeout=PATIENCE_S).text


def read_spec(answer):
    check(len(answer.metricSpecs) == 1, f"want one spec, got {answer}")
    one = answer.metricSpecs[0]
    check(one.targetSize == max(1, round(one.targetSizeFloat)) and one.targetSizeFloat > 0, f"fields differ: {one}")
    return one.metricName, one.targetSizeFloat


@contextlib.contextmanager
def refused(code, *words):
    """The body must fail with this gRPC status (a name), and a text that has all of the words."""
    try:
        yield
    except grpc.RpcError as error:
        check(error.code().name == code, f"want {code}, got {error.code().name}: {error.details()}")
        missing = [word for word in words if word not in (error.details() or "")]
        check(not missing, f"the text lacks {missing}: {error.details()}")
        check(error.details(), "an error without a text")
        return
    raise TestFailure(f"want {code}, but the call succeeded")


def near(got, want, tolerance=0.02):
    """got is want, but for a share of it."""
    return abs(got - want) <= tolerance * abs(want)
