"""The calls of clients/README.md made by grpcio.

    client.py ADDRESS [-ca FILE -cert FILE -key FILE] [-hold N | -loop SECONDS]
"""
import concurrent.futures
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from agent import TestFailure, check  # noqa: E402  pylint: disable=wrong-import-position
from scaler import SERVICE_UNKNOWN, SERVING, Scaler, grpc, health_pb2, pb, refused  # noqa: E402  pylint: disable=wrong-import-position

GET_METRICS = "/externalscaler.ExternalScaler/GetMetrics"


def connect():
    flags = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    files = [pathlib.Path(flags[name]).read_bytes() if name in flags else None for name in ("-ca", "-key", "-cert")]
    credentials = grpc.ssl_channel_credentials(*files) if files[0] else None
    return Scaler(sys.argv[1], credentials), flags


scaler, FLAGS = connect()


def unary():
    check(scaler.value({}) == 60, "not 60")


def spec():
    check(scaler.spec({"targetValue": "42.25"}) == ("keda_gpu_metric", 42.25), "another spec")


def active():
    check(scaler.active({}) is True, "not active")


def stream_active():
    stream = scaler.stream_active({}, timeout=30)
    check(next(stream).result is True, "no true at once")
    stream.cancel()
    try:
        next(stream)
    except grpc.RpcError:
        pass
    check(stream.code() == grpc.StatusCode.CANCELLED, f"{stream.code()}")


def stream_spec():
    stream = scaler.stream_spec({}, timeout=30)
    check(len(next(stream).metricSpecs) == 1, "no spec at once")
    stream.cancel()


def deadline():
    with refused("DEADLINE_EXCEEDED"):
        for _ in scaler.stream_active({}, timeout=0.3):
            pass


def cancelled():
    streams = [scaler.stream_active({}) for _ in range(50)]
    for stream in streams:
        next(stream)
    for stream in streams:
        stream.cancel()
    unary()


def big():
    with refused("RESOURCE_EXHAUSTED"):
        scaler.value({"podSelector": "x" * 5_000_000})


def middling():
    with refused("INVALID_ARGUMENT", "podSelector"):
        scaler.value({"podSelector": "x" * 60_000})


def malformed():
    for data in (b"\xff\xff\xff", b"\x0a\x7f", b"\x08\x01\x0a"):
        with refused("INTERNAL"):
            scaler.channel.unary_unary(GET_METRICS)(data, timeout=30)
    unary()


def unknown():
    for method in ("/externalscaler.ExternalScaler/Nope", "/no.Such/Service", "/x"):
        with refused("UNIMPLEMENTED"):
            scaler.channel.unary_unary(method)(b"", timeout=30)


def compressed():
    request = pb.GetMetricsRequest(scaledObjectRef=scaler.ref({"podSelector": "x" * 200}))  # big enough to be zipped
    with refused("UNIMPLEMENTED"):
        scaler.stub.GetMetrics(request, compression=grpc.Compression.Gzip, timeout=30)


def utf8_text():
    with refused("INVALID_ARGUMENT", "médiane 中 100%"):
        scaler.value({"aggregation": "médiane 中 100%"})


def parallel():
    calls = [scaler.stub.GetMetrics.future(pb.GetMetricsRequest(scaledObjectRef=scaler.ref({})), timeout=30)
             for _ in range(500)]
    check(all(call.result().metricValues[0].metricValue == 60 for call in calls), "another value")


def two_messages():
    method = scaler.channel.stream_unary("/externalscaler.ExternalScaler/IsActive")
    with refused("UNIMPLEMENTED"):
        method(iter([b"", b""]), timeout=30)


def no_message():
    method = scaler.channel.stream_unary("/externalscaler.ExternalScaler/IsActive")
    with refused("UNIMPLEMENTED"):
        method(iter([]), timeout=30)


def extra_metadata():
    pairs = [("x-trace-bin", b"\x00\xff\x01"), ("x-plain", "a, b"), ("x-plain", "c")]
    scaler.stub.IsActive(scaler.ref({}), metadata=pairs, timeout=30)


def health():
    check(scaler.serving("") == SERVING, "Check says something else")
    with refused("NOT_FOUND"):
        scaler.serving("no.such.Service")
    check(len(scaler.health.List(health_pb2.HealthListRequest(), timeout=30).statuses) >= 3, "List is short")
    watch = scaler.watch("no.such.Service", timeout=30)
    check(next(watch).status == SERVICE_UNKNOWN, "Watch of an unknown service")
    watch.cancel()


CASES = {
    "unary call": unary, "spec with both fields": spec, "IsActive": active, "StreamIsActive, cancelled": stream_active,
    "StreamMetricSpec": stream_spec, "deadline of a stream": deadline, "50 streams cancelled at once": cancelled,
    "5 MB message": big, "60 kB message": middling, "malformed messages": malformed, "unknown methods": unknown,
    "gzip request": compressed, "UTF-8 error text": utf8_text, "500 parallel calls": parallel,
    "two messages to a unary method": two_messages, "no message to a unary method": no_message,
    "binary metadata": extra_metadata, "health: Check, List, Watch": health,
}


def hold(count):
    streams = [scaler.stream_active({}) for _ in range(count)]
    for stream in streams:
        next(stream)
    print("opened", flush=True)
    for stream in streams:
        try:
            list(stream)
        except grpc.RpcError:
            pass
        print("ended", stream.code().name)


def loop(seconds):
    calls = failures = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        calls += 1
        try:
            unary()
        except (grpc.RpcError, TestFailure) as error:
            failures += 1
            print("failure", str(error).replace("\n", " "))
        time.sleep(0.005)
    print("calls", calls, "failures", failures)


def main():
    if "-hold" in FLAGS:
        hold(int(FLAGS["-hold"]))
    elif "-loop" in FLAGS:
        loop(int(FLAGS["-loop"]))
    else:
        for name, function in CASES.items():
            try:
                function()
                print("ok  ", name)
            except (TestFailure, grpc.RpcError, concurrent.futures.TimeoutError) as error:
                text = str(error).replace("\n", " ")
                print(f"FAIL {name}: {text}")


main()
