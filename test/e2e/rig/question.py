"""KEDA's questions without KEDA, where a scenario needs to see one answer and how long it took."""

import time


class Questions:
    """Calls to one address about one workload, with the metadata of its trigger."""

    def __init__(self, address, workload, metadata):
        import cache  # of the integration tests: the messages of proto/

        cache.stubs()
        import grpc
        import externalscaler_pb2 as messages
        import externalscaler_pb2_grpc as services

        self._grpc, self._messages = grpc, messages
        self._channel = grpc.insecure_channel(address)
        self._stub = services.ExternalScalerStub(self._channel)
        self._about = messages.ScaledObjectRef(name=workload.name, namespace=workload.namespace, scalerMetadata=metadata)

    def close(self):
        self._channel.close()

    def spec(self):
        """((name, target), seconds that the answer took)."""
        began = time.monotonic()
        spec = self._stub.GetMetricSpec(self._about, timeout=5).metricSpecs[0]
        return (spec.metricName, spec.targetSizeFloat), time.monotonic() - began

    def value(self):
        """(the value, "") or (None, "CODE: text")."""
        try:
            asked = self._messages.GetMetricsRequest(scaledObjectRef=self._about)
            return self._stub.GetMetrics(asked, timeout=5).metricValues[0].metricValueFloat, ""
        except self._grpc.RpcError as error:
            return None, f"{error.code().name}: {error.details()}"
