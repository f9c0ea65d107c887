"""What needs more than a list of calls: ends of streams, connection age, certificates, reflection, reload."""
import contextlib
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

import cache
import languages
from agent import PROGRAM, Agent, check, wait_until
from matrix import AUTHORITY, CLIENT, FOLDER, OTHER, SCENARIO, SERVER, STRANGER, agent_of, server_flags
from scaler import Scaler, grpc, read_spec, refused
from suite import add, test

# ---- ends of streams ----


def streams_end(language):
    with Agent(SCENARIO) as agent:
        client = languages.start(language, agent.address, "-hold", "100")
        check(client.stdout.readline().strip() == "opened", "the streams did not open")
        start = time.monotonic()
        agent.signal(signal.SIGTERM)
        check(agent.wait_exit() == 0, "the agent did not end with 0")
        check(time.monotonic() - start < 5, f"took {time.monotonic() - start:.1f} s")
        output = client.communicate(timeout=30)[0]
        check(output.count("ended OK") == 100, output)


for language in languages.LANGUAGES:
    add(f"{language}: 100 open streams end with OK on SIGTERM, within 5 s", streams_end, language)


def connection_ages(language):
    limits = ("--limit=connection_age_ms=700", "--limit=connection_age_grace_ms=2000")
    with Agent(SCENARIO, *limits) as agent:
        output = languages.run(language, agent.address, "-loop", "6")
        calls, failures = map(int, re.search(r"calls (\d+) failures (\d+)", output).groups())
        check(calls > 50 and failures == 0, output[-2000:])
        check(agent.metric("keda_gpu_scaler_connections_accepted_total") >= 4, "the connection was never renewed")


for language in languages.LANGUAGES:
    add(f"{language}: connections are renewed by age (GOAWAY) without a failed call", connection_ages, language)


@test("a stream ends with OK when its connection is too old")
def stream_ends_by_age():
    with Agent(SCENARIO, "--limit=connection_age_ms=1000") as agent, Scaler(agent.address) as scaler:
        stream = scaler.stream_active({}, timeout=30)
        check([m.result for m in stream] == [True] and stream.code() == grpc.StatusCode.OK, f"{stream.code()}")


# ---- TLS ----


def _secure(certificate=None, authority=None):
    """grpcio's credentials."""
    files = [(authority or AUTHORITY.certificate).read_bytes()]
    if certificate:
        files += [certificate[1].read_bytes(), certificate[0].read_bytes()]
    return grpc.ssl_channel_credentials(*files)


def _fails(address, credentials):
    with Scaler(address, credentials) as scaler, refused("UNAVAILABLE"):
        scaler.get_metrics({}, timeout=10)


@test("mTLS: a client without a certificate, and one of another authority, get nowhere")
def mutual_tls_refuses():
    _, address, _ = agent_of("mTLS")
    _fails(address, _secure())
    _fails(address, _secure(certificate=STRANGER))
    with Scaler(address, _secure(certificate=CLIENT)) as scaler:
        check(scaler.value({}) == 60, "no value with the right certificate")


@test("TLS: a client that trusts another authority, and one without TLS, get nowhere")
def tls_refuses():
    agent, address, _ = agent_of("TLS")
    _fails(address, _secure(authority=OTHER.certificate))
    _fails(agent.address, None)


@contextlib.contextmanager
def _handshake(port, alpn=None, highest=None):
    context = ssl.create_default_context(cafile=AUTHORITY.certificate)
    if alpn:
        context.set_alpn_protocols(alpn)
    if highest:
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.maximum_version = highest
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain, \
            context.wrap_socket(plain, server_hostname="localhost") as secure:
        yield secure


@test("TLS: ALPN selects h2, or http/1.1 where that is all the client has; without ALPN the first bytes decide")
def alpn():
    agent, _, _ = agent_of("TLS")
    for offer, want in ((["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), (["h2"], "h2"), (None, None)):
        with _handshake(agent.port, offer) as secure:
            check(secure.selected_alpn_protocol() == want, f"{offer}: {secure.selected_alpn_protocol()}")
            if want != "h2":
                secure.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                check(secure.recv(4096).startswith(b"HTTP/1.1 200"), f"{offer}: no answer over HTTP/1.1")


@test("TLS: 1.2 and 1.3 are spoken, 1.1 is not")
def tls_versions():
    agent, _, _ = agent_of("TLS")
    for version, name in ((ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
        with _handshake(agent.port, highest=version) as secure:
            check(secure.version() == name, f"{secure.version()}")
    with contextlib.suppress(ssl.SSLError, OSError):
        with _handshake(agent.port, highest=ssl.TLSVersion.TLSv1_1) as secure:
            check(False, f"{secure.version()} was spoken")


def _serial(port):
    with _handshake(port) as secure:
        return secure.getpeercert()["serialNumber"]


def _rotating_agent(folder):
    for source, name in zip(SERVER, ("tls.crt", "tls.key")):
        shutil.copy(source, f"{folder}/{name}")
    return Agent(SCENARIO, f"--tls-cert={folder}/tls.crt", f"--tls-key={folder}/tls.key")


def _put(folder, pair):
    for source, name in zip(pair, ("tls.key", "tls.crt")):
        shutil.copy(source, f"{folder}/{name}.new")
        shutil.move(f"{folder}/{name}.new", f"{folder}/{name}")


def rotate(by_signal):
    fresh = AUTHORITY.issue("rotate1" if by_signal else "rotate2", "/CN=server")
    with tempfile.TemporaryDirectory() as folder, _rotating_agent(folder) as agent, \
            Scaler(f"localhost:{agent.port}", _secure()) as scaler:
        old = _serial(agent.port)
        stream = scaler.stream_active({})
        next(stream)
        _put(folder, (fresh[1], fresh[0]))
        if by_signal:
            agent.signal(signal.SIGHUP)
        wait_until(lambda: _serial(agent.port) != old, "the new certificate", 40)
        check(stream.is_active(), "the open stream ended")
        check(scaler.value({}) == 60, "the old connection does not work")
        stream.cancel()
        # A key that does not belong to the certificate: the old pair stays, and that is shown.
        now = _serial(agent.port)
        _put(folder, (CLIENT[1], fresh[0]))
        agent.signal(signal.SIGHUP)
        wait_until(lambda: agent.metric("keda_gpu_scaler_tls_reload_errors_total") >= 1, "the error in the metrics")
        check(_serial(agent.port) == now, "the unfit files were taken")
        check(agent.metric("keda_gpu_scaler_tls_last_reload_successful") == 0, "the last reload is shown as good")
        _put(folder, (fresh[1], fresh[0]))
        agent.signal(signal.SIGHUP)
        wait_until(lambda: agent.metric("keda_gpu_scaler_tls_last_reload_successful") == 1, "a good reload")


add("TLS: rotated certificates are taken on SIGHUP, unfit ones refused", rotate, True)
add("TLS: rotated certificates are seen without a signal", rotate, False)


@test("TLS: files that are not there, or do not fit, stop the start with a reason")
def bad_tls_files():
    for flags, word in (((f"--tls-cert={FOLDER}/none.crt", f"--tls-key={SERVER[1]}"), "none.crt"),
                        ((f"--tls-cert={SERVER[0]}", f"--tls-key={CLIENT[1]}"), "key"),
                        ((f"--tls-cert={SERVER[0]}",), "tls-key")):
        result = subprocess.run([PROGRAM, "agent", "--listen=127.0.0.1:0", "--metrics-port=0", "--probe-port=0", *flags],
                                capture_output=True, text=True, timeout=30, check=False)
        text = result.stdout + result.stderr
        check(result.returncode in (1, 2) and word in text, f"{flags}: {result.returncode}: {text}")


# ---- reflection ----


def _grpcurl(*words):
    program = cache.go_programs("grpcurl") / "grpcurl"
    result = subprocess.run([program, "-plaintext", *words], capture_output=True, text=True, timeout=60, check=False)
    check(result.returncode == 0, f"{words}: {result.stdout}{result.stderr}")
    return result.stdout


@test("reflection through grpcurl: list, describe and call without any .proto file")
def reflection():
    agent, address, _ = agent_of("plaintext")
    services = _grpcurl(address, "list").split()
    for name in ("externalscaler.ExternalScaler", "grpc.health.v1.Health", "kedagpuscaler.v1.Node",
                 "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"):
        check(name in services, f"{name} is not in {services}")
    text = _grpcurl(address, "describe", "externalscaler.ExternalScaler")
    check(all(word in text for word in ("IsActive", "StreamIsActive", "GetMetricSpec", "StreamMetricSpec")), text)
    check("scalerMetadata" in _grpcurl(address, "describe", "externalscaler.ScaledObjectRef"), "no message")
    check("ScaledObjectRef" in _grpcurl(address, "describe", "kedagpuscaler.v1.Node.Explain") or
          "ExplainRequest" in _grpcurl(address, "describe", "kedagpuscaler.v1.Node.Explain"), "no imported file")
    request = json.dumps({"scaledObjectRef": {"name": "a", "namespace": "b", "scalerMetadata": {"targetValue": "5"}}})
    answer = json.loads(_grpcurl("-d", request, address, "externalscaler.ExternalScaler/GetMetrics"))
    check(answer["metricValues"][0]["metricValueFloat"] == 60, f"{answer}")
    wait_until(lambda: agent.metric("grpc_server_open_calls") == 0, "all calls to be over")


def reflects(version):
    cache.stubs()
    pb2 = __import__(f"reflection_{version}_pb2")
    stub = __import__(f"reflection_{version}_pb2_grpc").ServerReflectionStub(grpc.insecure_channel(
        agent_of("plaintext")[1]))
    requests = [pb2.ServerReflectionRequest(list_services=""),
                pb2.ServerReflectionRequest(file_containing_symbol="externalscaler.ExternalScaler.GetMetrics"),
                pb2.ServerReflectionRequest(file_by_filename="node.proto"),
                pb2.ServerReflectionRequest(file_containing_symbol="no.such.Symbol"),
                pb2.ServerReflectionRequest(file_containing_extension=pb2.ExtensionRequest(
                    containing_type="externalscaler.MetricSpec", extension_number=1)),
                pb2.ServerReflectionRequest(all_extension_numbers_of_type="externalscaler.MetricSpec")]
    answers = list(stub.ServerReflectionInfo(iter(requests), timeout=30))
    kinds = [answer.WhichOneof("message_response") for answer in answers]
    check(len(answers) == len(requests), f"{kinds}")
    check(kinds[:4] == ["list_services_response", "file_descriptor_response", "file_descriptor_response",
                        "error_response"], f"{kinds}")
    check(answers[3].error_response.error_code == 5, f"{answers[3]}")
    check(len(answers[2].file_descriptor_response.file_descriptor_proto) >= 1, "no file")
    check(answers[1].original_request == requests[1], "the request does not come back")
    check(kinds[4:] == ["error_response", "all_extension_numbers_response"], f"{kinds}")
    try:  # a request that asks nothing is refused, as grpc-go does
        list(stub.ServerReflectionInfo(iter([pb2.ServerReflectionRequest()]), timeout=30))
        check(False, "an empty request was answered")
    except grpc.RpcError as error:
        check(error.code() == grpc.StatusCode.INVALID_ARGUMENT, f"{error}")


for version in ("v1", "v1alpha"):
    add(f"reflection {version}: every kind of request on one stream", reflects, version)

# ---- reload ----


def _reload(agent, file, target, word="reloaded"):
    """Write the configuration in one step, ask for a reload and wait until the log tells of it."""
    seen = agent.log().count(f"msg={word}") + agent.log().count(f'msg="{word}')
    file.with_suffix(".new").write_text(f"metrics: [{{name: queue, targetValue: {target}}}]\n")
    file.with_suffix(".new").rename(file)
    agent.signal(signal.SIGHUP)
    wait_until(lambda: agent.log().count(f"msg={word}") + agent.log().count(f'msg="{word}') > seen, f"{word} in the log")


@test("StreamMetricSpec: a reload that changes a default sends the new spec, equal to GetMetricSpec")
def spec_follows_reload():
    file = FOLDER / "config.yaml"
    file.write_text("metrics: [{name: queue, targetValue: 40}]\n")
    with Agent(SCENARIO, f"--config={file}") as agent, Scaler(agent.address) as scaler:
        queue, other = {"metricName": "queue"}, {"metricName": "other"}
        stream, unchanged = scaler.stream_spec(queue), scaler.stream_spec(other)
        check(read_spec(next(stream)) == ("queue", 40), "not the configured target")
        check(read_spec(next(unchanged)) == ("other", 80), "not the default")
        _reload(agent, file, 50)
        check(read_spec(next(stream)) == ("queue", 50) == scaler.spec(queue), "not the new target")
        _reload(agent, file, 50)
        _reload(agent, file, "zero", "reload failed")
        check("config.yaml:1:" in agent.log(), "no line and column")
        check(scaler.spec(queue) == ("queue", 50), "a refused reload changed something")
        _reload(agent, file, 60)
        got = read_spec(next(stream))
        check(got == ("queue", 60), f"{got}: an unchanged or refused reload sent something")
        check(unchanged.is_active(), "the other stream ended")
        stream.cancel()
        unchanged.cancel()
