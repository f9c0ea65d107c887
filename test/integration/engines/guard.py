"""Which endpoints an agent asks, and which never: by the text of the URL, by the addresses that its host has when it is
connected to, and by what the operator allows and denies. Names are those of a hosts file of our own."""
import contextlib
import os
import pathlib
import ssl
import subprocess
import tempfile

from agent import PROGRAM, Agent, check, wait_until
from endpoints import code_of, of, scaler
from pages import PageServer, vllm
from scaler import Scaler, refused
from suite import Skip, add, test

HOSTS = """127.0.0.1 localhost bare-host
169.254.169.254 innocent.example mixed.example
127.0.0.1 mixed.example allowed.example
::ffff:169.254.169.254 mapped.example
fd00:ec2::254 six.example
100.100.100.200 cloud.example
127.0.0.1 vllm-deepseek.default vllm-deepseek.default.svc vllm-deepseek.default.svc.cluster.local
127.0.0.1 vllm.models.svc vllm.models.svc.cluster.local
"""
IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@contextlib.contextmanager
def agent_with_hosts(*flags, env=None):
    """An agent without GPUs for which HOSTS is /etc/hosts, and its client."""
    unshare = ["unshare", "--mount", "--propagation", "private", *([] if os.getuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*unshare, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        raise Skip("a mount namespace of its own is not to be had here")
    with tempfile.TemporaryDirectory(prefix="kgs-") as folder:
        hosts = pathlib.Path(folder) / "hosts"
        hosts.write_text(HOSTS)
        program = [*unshare, "--", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts, PROGRAM]
        with Agent(None, *flags, env=env, program=program) as agent, Scaler(agent.address) as client:
            yield client


def depth(url):
    return {"metricType": "vllm_queue_depth", "targetValue": "5", "vllmEndpoint": url}


# ---- by the text ----

for host in ("169.254.169.254", "169.254.1.1", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]",
             "[fe80::1%25eth0]", "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "192.0.0.192", "0.0.0.0",
             "[::]", "metadata.google.internal", "metadata.google.internal.", "metadata", "instance-data.ec2.internal",
             "kubernetes.default.svc", "user:secret@127.0.0.1", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376",
             "169.254.43518", "255.255.255.255", "224.0.0.1"):
    def is_refused(name):
        for call in (scaler().spec, scaler().value, scaler().active):
            with refused("INVALID_ARGUMENT", "vllmEndpoint"):
                call(depth(f"http://{name}/metrics"))
    add(f"B 65 http://{host}/ is refused by its text", is_refused, host)

for url in ("ftp://127.0.0.1/metrics", "file:///etc/passwd", "gopher://127.0.0.1/", "http://", "127.0.0.1:8000/metrics",
            "http://127.0.0.1:99999/metrics", "http://127.0.0.1:8000/a b", "http://127.0.0.1\\@169.254.169.254/"):
    def no_url(text):
        with refused("INVALID_ARGUMENT", "vllmEndpoint"):
            scaler().value(depth(text))
    add(f"B 65 {url} is refused", no_url, url)


@test("B 65 loopback and the cluster's addresses are asked")
def loopback():
    with PageServer(vllm(waiting=14)) as server:
        check(scaler().value(of(server)) == 14, "127.0.0.1")
        check(scaler().value(depth(server.url.replace("127.0.0.1", "localhost"))) == 14, "localhost")
    with PageServer(vllm(waiting=5), address="127.1.2.3") as server:
        check(scaler().value(of(server)) == 5, "127.1.2.3")


# ---- by the addresses ----


@test("B 65 a name that resolves to a metadata service is refused when it is connected to, in all forms")
def rebound():
    with agent_with_hosts() as client:
        for host in ("innocent.example", "mapped.example", "six.example", "cloud.example"):
            metadata = depth(f"http://{host}:80/metrics")
            check(client.spec(metadata)[1] == 5, "the spec needs no page")
            with refused("UNAVAILABLE", host):
                client.value(metadata)
            text = client.explain(metadata)
            check("link-local" in text or "metadata" in text, f"{host}: {text}")


@test("B 65 of a name with good and bad addresses only the good one is asked")
def mixed_addresses():
    with agent_with_hosts() as client, PageServer(vllm(waiting=14)) as server:
        got = client.value(depth(f"http://mixed.example:{server.port}/metrics"))
        check(got == 14, f"{got}")


@test("B 23 a bare name is a Service of the ScaledObject's namespace; elsewhere it stays as it is")
def bare_names():
    with PageServer(vllm(waiting=14)) as server:
        with agent_with_hosts(env=IN_CLUSTER) as client:
            check(client.value(depth(f"http://vllm-deepseek:{server.port}/metrics")) == 14, "in the namespace")
            check(client.value(depth(f"http://vllm.models.svc:{server.port}/metrics")) == 14, "a full name")
            check(client.value(depth(f"http://localhost:{server.port}/metrics")) == 14, "localhost")
            with refused("UNAVAILABLE"):
                client.value(depth(f"http://bare-host:{server.port}/metrics"))
        with agent_with_hosts() as client:
            check(client.value(depth(f"http://bare-host:{server.port}/metrics")) == 14, "outside of a cluster")


# ---- by the operator ----


@test("--endpoint-deny and --endpoint-allow: at connect, whatever the host's name; the reason is said")
def operator_ranges():
    with PageServer(vllm(waiting=14)) as one, PageServer(vllm(waiting=5), address="127.1.2.3") as other:
        with Agent(None, "--endpoint-deny=127.1.0.0/16") as agent, Scaler(agent.address) as client:
            check(client.value(of(one)) == 14, "127.0.0.1 is not denied")
            with refused("UNAVAILABLE", "127.1.2.3"):
                client.value(of(other))
            check("denied" in client.explain(of(other)) or "deny" in client.explain(of(other)), client.explain(of(other)))
        with Agent(None, "--endpoint-allow=127.1.0.0/16", "--endpoint-allow=10.0.0.0/8") as agent, \
                Scaler(agent.address) as client:
            check(client.value(of(other)) == 5, "127.1.2.3 is allowed")
            with refused("UNAVAILABLE"):
                client.value(of(one))
        flags = ("--endpoint-allow=127.0.0.0/8", "--endpoint-deny=127.1.2.3")
        with Agent(None, *flags) as agent, Scaler(agent.address) as client:
            check(client.value(of(one)) == 14 and code_of(client.value, of(other)) == "UNAVAILABLE", "deny beats allow")
        check(other.n >= 1 and all(path == "/metrics" for path, _ in other.requests), f"{other.requests}")


@test("no request has what it does not need: no proxy of the environment, no token, no cookie; a name of ours")
def plain_requests():
    env = {"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"}
    with PageServer(vllm(waiting=14)) as server, Agent(None, env=env) as agent, Scaler(agent.address) as client:
        check(client.value(of(server)) == 14, "no value")
        _, headers = server.requests[0]
        check("authorization" not in headers and "cookie" not in headers, f"{headers}")


# ---- TLS ----


def certificates(folder, name="127.0.0.1"):
    """(context of a server, PEM of its own certificate) for an address."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert,
                    "-subj", "/CN=test", "-addext", f"subjectAltName=IP:{name}"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert


@test("https: verified by --engine-ca-file, read again on SIGHUP; --engine-insecure does not verify")
def tls():
    with tempfile.TemporaryDirectory(prefix="kgs-") as name:
        folder = pathlib.Path(name)
        context, cert = certificates(folder)
        with PageServer(vllm(waiting=14), tls=context) as server:
            with Agent(None) as agent, Scaler(agent.address) as client, refused("UNAVAILABLE", "certificate"):
                client.value(of(server))
            with Agent(None, "--engine-insecure") as agent, Scaler(agent.address) as client:
                check(client.value(of(server)) == 14, "insecure")
            trusted = folder / "trusted.pem"
            (folder / "other").mkdir()
            trusted.write_bytes(certificates(folder / "other")[1].read_bytes())
            with Agent(None, f"--engine-ca-file={trusted}") as agent, Scaler(agent.address) as client:
                with refused("UNAVAILABLE", "certificate"):
                    client.value(of(server))
                trusted.write_bytes(cert.read_bytes())
                agent.signal(1)
                wait_until(lambda: code_of(client.value, of(server)) == "OK", "the new authority to be in use", 15)


@test("a certificate file that is not there ends the program at once, by name")
def no_files():
    for command, *flags in (("agent", "--engine-ca-file=/nowhere/ca.pem"), ("hub", "--engine-token-file=/nowhere/token"),
                            ("hub", "--engine-cert-file=/nowhere/c.pem", "--engine-key-file=/nowhere/k.pem")):
        done = subprocess.run([PROGRAM, command, "--port=0", "--metrics-port=0", "--probe-port=0", *flags],
                              capture_output=True, text=True, timeout=30, check=False)
        check(done.returncode in (1, 2) and "/nowhere/" in done.stdout + done.stderr, f"{done}")
