"""tls.mode selfSigned on the real API server: the Jobs' program runs with their account's token and their arguments, Helm
waits for its hook, and what comes out serves KEDA and goes between hub and agent."""
import base64
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import urllib.request

import agent
import chart
import program
from agent import check, wait_until
from chart import CHART, LINK, ROOT, equal
from cluster import cluster, own_address
from suite import test

NAME = "keda-gpu-scaler-tls"
SIGNED = ("--set", "tls.mode=selfSigned,mockMode.enabled=true")


def secret(namespace, name=NAME):
    """The texts of a Secret; None where there is none."""
    found = cluster().api.find(f"/api/v1/namespaces/{namespace}/secrets/{name}")
    return found and {k: base64.b64decode(v).decode() for k, v in found["data"].items()}


def said(namespace):
    """What the Jobs of a namespace printed, the newest last."""
    return cluster().jobs.said.get(namespace, [])


def verifies(texts, name):
    with tempfile.TemporaryDirectory() as folder:
        for key in ("ca.crt", "tls.crt"):
            pathlib.Path(folder, key).write_text(texts[key])
        done = subprocess.run(["openssl", "verify", "-CAfile", f"{folder}/ca.crt", "-verify_hostname", name, f"{folder}/tls.crt"],
                              capture_output=True, text=True, check=False)
    return done.returncode == 0


def run_cron(namespace, name):
    """A run of the CronJob, now; what it printed."""
    c, n = cluster(), len(said(namespace))
    c.kubectl("create", "job", name, "--from=cronjob/keda-gpu-scaler-cert", "-n", namespace)
    wait_until(lambda: len(said(namespace)) > n, "the Job to run")
    return said(namespace)[-1]


@test("tls.mode selfSigned: install makes the Secrets in a restricted namespace, an upgrade keeps them, a new name is taken up")
def life():
    c = cluster()
    c.namespace("signed", "restricted")
    notes = c.helm("install", "s", CHART, "-n", "signed", *SIGNED)
    first, authority = secret("signed"), secret("signed", NAME + "-ca")
    equal(sorted(first), ["ca.crt", "tls.crt", "tls.key"], "the Secret")
    check(len(said("signed")) == 1 and said("signed")[0].startswith("made: "), str(said("signed")))
    for name in ("keda-gpu-scaler.signed.svc.cluster.local", "keda-gpu-scaler-agents.signed.svc", "localhost"):
        check(verifies(first, name), f"{name} is not in the certificate")
    check("kubectl get secret keda-gpu-scaler-tls -n signed" in notes, notes)
    left = [o["metadata"]["name"] for o in c.objects("job,serviceaccount,role,rolebinding", "signed",
                                                     "app.kubernetes.io/component=cert")]
    equal(sorted(left), ["keda-gpu-scaler-cert"] * 3, "what stays after the hook: the CronJob's account and rights")

    c.helm("upgrade", "s", CHART, "-n", "signed", *SIGNED, "--set", "logLevel=debug")
    check(said("signed")[-1].startswith("kept: "), str(said("signed")))
    equal(secret("signed"), first, "after an upgrade")
    check(run_cron("signed", "now").startswith("kept: "), str(said("signed")))

    c.helm("upgrade", "s", CHART, "-n", "signed", *SIGNED, "--set", "tls.extraNames={gpu.example.com}")
    second = secret("signed")
    check(verifies(second, "gpu.example.com") and verifies(second, "keda-gpu-scaler.signed.svc"), "the new name")
    equal([second["ca.crt"], secret("signed", NAME + "-ca")], [first["ca.crt"], authority], "the authority")

    c.helm("uninstall", "s", "-n", "signed")
    equal(secret("signed"), second, "after uninstall: KEDA trusts this authority")
    c.helm("install", "again", CHART, "-n", "signed", *SIGNED)
    equal(secret("signed"), second, "installed again")


@test("tls.mode selfSigned: the CronJob renews what ends soon, with the authority that KEDA trusts")
def renewal():
    c = cluster()
    c.helm("install", "s", CHART, "-n", "renewed", "--create-namespace", *SIGNED, "--set", "tls.selfSigned.certificateDays=2")
    first = secret("renewed")
    c.helm("upgrade", "s", CHART, "-n", "renewed", *SIGNED, "--no-hooks")
    equal(secret("renewed"), first, "without hooks")
    check("by the same authority" in run_cron("renewed", "due"), str(said("renewed")))
    second = secret("renewed")
    check(second["tls.crt"] != first["tls.crt"] and second["tls.key"] != first["tls.key"], "not renewed")
    check(verifies({**second, "ca.crt": first["ca.crt"]}, "keda-gpu-scaler.renewed.svc"), "who has the former ca.crt is left behind")


HELMS = """{{- $ca := genCA "former authority" 3650 }}
{{- $names := include "keda-gpu-scaler.tlsNames" . | fromYamlArray }}
{{- $cert := genSignedCert "former" (list "127.0.0.1") $names 3650 $ca }}
apiVersion: v1
kind: Secret
metadata: {{- include "keda-gpu-scaler.metadata" (list . (include "keda-gpu-scaler.tlsSecret" .) "") | nindent 2 }}
type: kubernetes.io/tls
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
"""


@test("tls.mode selfSigned: a Secret that Helm itself made outlives the upgrade, and what KEDA trusts with it")
def migration():
    c = cluster()
    with tempfile.TemporaryDirectory() as folder:
        former = pathlib.Path(folder, "keda-gpu-scaler")
        shutil.copytree(ROOT / CHART, former, symlinks=False)
        (former / "templates/cert.yaml").write_text(HELMS)
        c.helm("install", "s", former, "-n", "former", "--create-namespace", *SIGNED)
    first = secret("former")
    check(verifies(first, "keda-gpu-scaler.former.svc"), "what Helm made")
    c.helm("upgrade", "s", CHART, "-n", "former", *SIGNED)
    equal(secret("former"), first, "after the upgrade")
    check(said("former")[-1].startswith("kept: "), str(said("former")))
    check(secret("former", NAME + "-ca") is None, "an authority that nobody needs yet")
    c.helm("upgrade", "s", CHART, "-n", "former", *SIGNED, "--set", "tls.extraNames={gpu.example.com}")
    second = secret("former")
    check(verifies(second, "gpu.example.com"), "the new name")
    equal(second["ca.crt"].count("BEGIN CERTIFICATE"), 2, "authorities that are trusted")


@test("the certificates' account may do its work in its namespace and no more")
def rights():
    c = cluster()
    c.helm("install", "s", CHART, "-n", "cert-rights", "--create-namespace", *SIGNED)

    def may(verb, resource, namespace="cert-rights"):
        done = chart.run([chart.KUBECTL, "auth", "can-i", verb, resource, "-n", namespace,
                          "--as=system:serviceaccount:cert-rights:keda-gpu-scaler-cert"], c.kubeconfig)
        return done.stdout.strip() == "yes"
    for verb, resource, wanted in [
            ("get", f"secrets/{NAME}", True), ("patch", f"secrets/{NAME}-ca", True), ("create", "secrets", True),
            ("get", "secrets/other", False), ("patch", "secrets/other", False), ("list", "secrets", False),
            ("watch", "secrets", False), ("delete", f"secrets/{NAME}", False), ("get", "pods", False)]:
        equal(may(verb, resource), wanted, f"{verb} {resource}")
    check(not may("get", f"secrets/{NAME}", "default"), "in another namespace")
    for account in ("keda-gpu-scaler", "keda-gpu-scaler-hub"):
        done = chart.run([chart.KUBECTL, "auth", "can-i", "get", f"secrets/{NAME}-ca", "-n", "cert-rights",
                          f"--as=system:serviceaccount:cert-rights:{account}"], c.kubeconfig)
        equal(done.stdout.strip(), "no", f"{account} reads the authority's key")
    pods = [chart.yaml.safe_dump(c.api.get(f"/apis/apps/v1/namespaces/cert-rights/{kind}")["items"])
            for kind in ("daemonsets", "deployments")]
    check(not any(f"{NAME}-ca" in text for text in pods), "a pod mounts the authority's key")


@test("tls.mode selfSigned: agent and hub start with the Job's certificates, trust each other, and answer KEDA over TLS")
def over_tls():
    c = cluster()
    ports = dict(zip(("grpc.port", "exporter.port", "probes.port"), (agent.free_port() for _ in range(3))))
    c.helm("install", "m", LINK, "-n", "tls", "--create-namespace", *SIGNED,
           *(w for key, port in ports.items() for w in ("--set", f"{key}={port}")))
    rendered = chart.Objects(c.helm("get", "manifest", "m", "-n", "tls"))
    node = "gpu-gke"
    pods = wait_until(lambda: node in (found := c.pods_by_node("tls")) and found, "the DaemonSet's pods")
    c.run_pod("tls", pods[node], node, own_address(), True)
    flags = [f"--kubeconfig={c.account_kubeconfig('tls', 'keda-gpu-scaler-hub')}"]
    with program.Mounted(rendered) as mounted:
        mounted.put("tls", secret("tls"))
        with program.running(rendered, mounted, keep_ports=True, node=node), \
                program.running(rendered, mounted, "Deployment", flags) as hub:
            words = (f"--tls-ca={mounted.path}/tls/ca.crt", "--tls-server-name=keda-gpu-scaler.tls.svc.cluster.local")
            program.await_probe(f"127.0.0.1:{hub['port']}", *words)

            def gpus():
                page = urllib.request.urlopen(f"http://127.0.0.1:{hub['metrics-port']}/metrics", timeout=10).read().decode()
                return page.count("\nkeda_gpu_scaler_fleet_gpu_utilization_ratio{") == 8
            wait_until(gpus, "8 GPUs of an agent that the hub reached over TLS")
            context = ssl.create_default_context(cafile=f"{mounted.path}/tls/ca.crt")
            context.verify_flags |= ssl.VERIFY_X509_STRICT
            context.set_alpn_protocols(["h2"])
            with socket.create_connection(("127.0.0.1", hub["port"]), 10) as plain, \
                    context.wrap_socket(plain, server_hostname="keda-gpu-scaler.tls.svc.cluster.local") as wrapped:
                equal(wrapped.selected_alpn_protocol(), "h2", "what KEDA's client insists on")
            done = subprocess.run([agent.PROGRAM, "call", "spec", f"127.0.0.1:{hub['port']}", *words, "-m", "metricName=gpu_utilization",
                                   "-m", "scope=cluster"], capture_output=True, text=True, check=False, env=program.environment(),
                                  timeout=60)
            check(done.returncode == 0 and "target" in done.stdout, done.stdout + done.stderr)
            equal(program.probe(f"127.0.0.1:{hub['port']}", words[0], "--tls-server-name=other.svc").returncode, 2, "another name")
            c.jobs.probed["tls"] = (hub["port"], mounted)
            check("Phase:          Succeeded" in c.helm("test", "m", "-n", "tls"), "helm test")
            equal([said("tls")[-1], c.objects("pods", "tls", "app.kubernetes.io/component=test")], ["SERVING\n", []],
                  "what the test's pod said, and what is left of it")
