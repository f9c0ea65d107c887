"""Whom we speak to and as whom: TLS, tokens, certificates, the files of a pod, and the server's clock."""
import json
import pathlib
import tempfile
import time

from client import Client, FakeKube, check, pod
from agent import wait_until
from suite import test


@test("a pod's token and authority are used, and a token that is replaced is read again")
def _():
    with tempfile.TemporaryDirectory() as folder, FakeKube(token="first", tls_dir=folder + "/tls") as kube:
        kube.put(pod("p"))
        variables = kube.write_service_account(folder + "/account", ns="gpu")
        with Client(env={**variables, "SERVICE_ACCOUNT_DIR": folder + "/account"}) as client:
            client.until(f"^ready https://127.0.0.1:{kube.port} gpu$")
            client.watch()
            client.until("^synced")
            wait_until(lambda: client.metric("requests,watch,2xx"), "the watch to be open")
            kube.token = "second"
            pathlib.Path(folder, "account", "token").write_text("second", encoding="utf-8")
            client.say("skip 11")  # since the last look at the files; the next without a 401 is at 30 s
            kube.cut_connections()
            client.until("^failed 0 UNAVAILABLE")
            client.say("skip 1")
            client.until("^failed 0 UNAUTHENTICATED")
            for _ in range(5):
                client.ask("now", "^now")
            kube.put(pod("q"))
            client.say("skip 4")
            client.until("^changed 0 a/q")
            check(client.metric("credential_errors") == 0, "an error was counted")


@test("a token file that is gone keeps the last token, and is counted")
def _():
    with tempfile.TemporaryDirectory() as folder, FakeKube(token="first") as kube:
        token = pathlib.Path(folder, "token")
        token.write_text("first\n", encoding="utf-8")
        with Client(config=kube.kubeconfig(tokenFile=token)) as client:
            client.watch()
            client.until("^synced")
            token.unlink()
            client.say("skip 31")
            for _ in range(100):
                if client.metric("credential_errors"):
                    break
                client.say("skip 1")
            check(client.metric("credential_errors") >= 1, "no error was counted")
            kube.put(pod("p"))
            client.until("^changed 0 a/p", skipping=True)


@test("a server that the authority did not sign is not trusted")
def _():
    with tempfile.TemporaryDirectory() as folder, FakeKube(token="t", tls_dir=folder + "/one") as kube, \
            FakeKube(tls_dir=folder + "/two") as other:
        config = json.loads(kube.kubeconfig())
        config["clusters"][0]["cluster"]["server"] = other.url
        with Client(config=json.dumps(config)) as client:
            client.watch()
            client.until("^failed 0 UNAVAILABLE GET /api/v1/pods: .*certificate")
        check(other.requests == [], "it was asked all the same")
        config["clusters"][0]["cluster"] = {"server": other.url, "insecure-skip-tls-verify": True}
        with Client(config=json.dumps(config)) as client:
            client.watch()
            client.until("^synced")


@test("a client certificate is shown")
def _():
    with tempfile.TemporaryDirectory() as folder, FakeKube(token="t", tls_dir=folder) as kube:
        files = {"client_certificate": f"{folder}/client.pem", "client_key": f"{folder}/client.key"}
        with Client(config=kube.kubeconfig(**files)) as client:
            client.watch()
            client.until("^synced")
        with Client(config=kube.kubeconfig(token="wrong")) as client:
            client.watch()
            client.until("^failed 0 UNAUTHENTICATED GET /api/v1/pods: 401: Unauthorized$")


@test("the server's clock is known from its answers, and runs on between them")
def _():
    with FakeKube() as kube, Client(kube) as client:
        kube.skew_s = -86400
        client.say("now")
        client.until('^what is "now"')
        client.watch()
        client.until("^synced")
        now = float(client.ask("now", "^now").split()[1])
        check(abs(now - (time.time() - 86400)) < 5, f"{now}")
        client.say("skip 20")
        check(float(client.ask("now", "^now").split()[1]) >= now + 20, "it stands still")


@test("what cannot be used is refused at once")
def _():
    client = Client(config='{"current-context": "x"}')
    client.until('^refused INVALID_ARGUMENT .*: there is no context "x" with a cluster$')
    client.process.wait(20)
    client = Client(env={"KUBERNETES_SERVICE_HOST": ""})
    client.until("^refused INVALID_ARGUMENT no way to the Kubernetes API")
    client.process.wait(20)
