"""The engine values at work: a hub as the chart starts it, against the real API server, reads a pod's page over TLS."""
import http.server
import ssl
import subprocess
import tempfile
import threading
import pathlib

import agent
import chart
import program
from agent import TestFailure, check, wait_until
from chart import CHART
from cluster import cluster, own_address
from suite import test

PAGE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m"} 0.5
"""
TOKEN = "token-of-the-hub"


class Pages(http.server.BaseHTTPRequestHandler):
    """A model server's page, behind a certificate and a token."""
    protocol_version = "HTTP/1.1"
    asked = []

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def do_GET(self):
        """The page, for those who have the token."""
        self.asked.append((self.path, self.headers.get("Authorization")))
        body = PAGE.encode() if self.headers.get("Authorization") == f"Bearer {TOKEN}" else b""
        self.send_response(200 if body else 401)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def make_files(folder, name):
    done = subprocess.run([agent.PROGRAM, "cert", f"--out-dir={folder}", f"--name={name}"], capture_output=True, text=True,
                          check=False, env=program.environment(), timeout=60)
    check(done.returncode == 0, done.stderr)
    return {key: (folder / key).read_text() for key in ("ca.crt", "tls.crt", "tls.key")}


def serve(folder, address):
    server = http.server.ThreadingHTTPServer((address, 0), Pages)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    context.load_verify_locations(folder / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def install_model(c, metadata, address):
    """A Deployment of one Ready pod with this address, and its ScaledObject."""
    c.namespace("engine-app")
    labels = {"app": "model"}
    c.api.create("/apis/apps/v1/namespaces/engine-app/deployments", {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "model"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "model", "image": "example.com/model:1"}]}}}})
    c.api.create("/apis/keda.sh/v1alpha1/namespaces/engine-app/scaledobjects", {
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "model"},
        "spec": {"scaleTargetRef": {"name": "model"}, "triggers": [{"type": "external", "metadata": metadata}]}})
    [pod] = wait_until(lambda: c.objects("pods", "engine-app"), "the Deployment's pod")
    c.run_pod("engine-app", pod["metadata"]["name"], "cpu", address, True)


@test("engine values: the hub trusts the pods' authority, shows its certificate and its token, and answers from the page")
def page_over_tls():
    c, address = cluster(), own_address()
    c.helm("install", "e", CHART, "-n", "engine", "--create-namespace", "--set", "engine.tls.secretName=engines,"
           "engine.tls.clientPair=true,engine.token.enabled=true,engine.token.audience=engines.example.com")
    rendered = chart.Objects(c.helm("get", "manifest", "e", "-n", "engine"))
    with tempfile.TemporaryDirectory() as folder, program.Mounted(rendered) as mounted:
        files = make_files(pathlib.Path(folder), address)
        server = serve(pathlib.Path(folder), address)
        mounted.put("engine-tls", files)
        mounted.put("engine-token", {"token": TOKEN})
        metadata = {"scalerAddress": "keda-gpu-scaler.engine.svc.cluster.local:6000", "metricType": "requests_in_flight",
                    "targetValue": "10", "enginePort": str(server.server_address[1]), "engineScheme": "https"}
        install_model(c, metadata, address)
        flags = [f"--kubeconfig={c.account_kubeconfig('engine', 'keda-gpu-scaler-hub')}"]
        question = [w for k, v in metadata.items() for w in ("-m", f"{k}={v}")]
        said = []
        try:
            with program.running(rendered, mounted, "Deployment", flags) as hub:
                def answer():
                    done = subprocess.run([agent.PROGRAM, "call", f"127.0.0.1:{hub['port']}", "--name=model",
                                           "--namespace=engine-app", *question], capture_output=True, text=True, check=False,
                                          env=program.environment(), timeout=60)
                    said.append(done.stdout + done.stderr)
                    return done.returncode == 0 and "keda_gpu_metric = 5\n" in done.stdout
                wait_until(answer, "3 running and 2 waiting")
        except TestFailure as failure:
            raise TestFailure(f"{failure}\n{said[-1:]}\n{Pages.asked[-1:]}") from None
        finally:
            server.shutdown()
        check(("/metrics", f"Bearer {TOKEN}") in Pages.asked, str(Pages.asked[-3:]))
