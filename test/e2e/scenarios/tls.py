"""TLS and client certificates, as KEDA gets them from a TriggerAuthentication."""

import subprocess

from rig import certs, settings
from rig.scenario import scenario

from .common import is_close, trigger


def _authority(context):
    folder = context.cluster.work / f"{context.name}-pki"
    return certs.Authority(folder, "scaler-ca")


@scenario("TLS by TriggerAuthentication: caCert, a renewed certificate; the wrong authority is refused")
def tls_with_ca(context):
    authority, other = _authority(context), certs.Authority(context.cluster.work / f"{context.name}-pki", "other-ca")
    agent = context.agent([80, 80], tls=authority.issue("agent", "/CN=agent"))
    good, bad = context.workload(replicas=1, name="good"), context.workload(replicas=5, name="bad")
    good.authenticate("scaler-tls", caCert=authority.certificate.read_text())
    good.authenticate("other-tls", caCert=other.certificate.read_text())
    bad.scale(trigger(agent, scalerAddress=agent.tls_address), authentication="other-tls")
    good.scale(trigger(agent, scalerAddress=agent.tls_address), authentication="scaler-tls")
    context.until("2 replicas at a sum of 160, read over TLS",
                  lambda v: v.ready == "True" and v.replicas == 2 and is_close(v.value, 160), of=good)
    context.until("Ready=False with the wrong authority", lambda v: v.ready == "False" and not v.hpa, of=bad)
    context.expect(bad.view().replicas == 5, "no scaling over an untrusted connection")

    context.note("the certificate is renewed, SIGHUP")
    renewed = authority.issue("renewed", "/CN=agent")
    agent.rotate(renewed)
    agent.reload()
    context.wait_for("new connections to get the renewed certificate",
                     lambda: agent.served_certificate().strip() == renewed[0].read_text().strip(), 20)
    context.holds("KEDA goes on reading", lambda v: v.replicas == 2 and v.scaling_active == "ValidMetricFound", 4, of=good)


@scenario("mutual TLS by TriggerAuthentication; a trigger without the client's certificate is refused")
def mutual_tls(context):
    authority = _authority(context)
    agent = context.agent([80, 80], tls=authority.issue("agent", "/CN=agent"), client_authority=authority.certificate)
    certificate, key = authority.issue("keda-client", "/CN=keda-operator")
    good, bad = context.workload(replicas=1, name="good"), context.workload(replicas=5, name="bad")
    ca = authority.certificate.read_text()
    good.authenticate("full", caCert=ca, tlsClientCert=certificate.read_text(), tlsClientKey=key.read_text())
    good.authenticate("half", caCert=ca)
    bad.scale(trigger(agent, scalerAddress=agent.tls_address), authentication="half")
    good.scale(trigger(agent, scalerAddress=agent.tls_address), kind="external-push", authentication="full")
    context.until("2 replicas at a sum of 160, read over mutual TLS",
                  lambda v: v.ready == "True" and v.replicas == 2 and is_close(v.value, 160), of=good)
    context.until("Ready=False without a client certificate", lambda v: v.ready == "False" and not v.hpa, of=bad)
    context.expect(bad.view().replicas == 5, "no scaling without a connection")


@scenario("certificates that `cert` makes and renews: KEDA goes on with the authority and the pair that it was given")
def own_certificates(context):
    folder = context.cluster.work / f"{context.name}-cert"
    pair = (folder / "tls.crt", folder / "tls.key")

    def make(hours, before):
        done = subprocess.run([settings.PROGRAM, "cert", "--out-dir", folder, "--name=localhost", f"--validity={hours}h",
                               f"--renew-before={before}h"], capture_output=True, text=True, check=True)
        context.note(done.stdout.partition("; why")[0].strip())
        return done.stdout
    make(48, 24)
    agent = context.agent([80, 80], tls=pair, client_authority=folder / "ca.crt")
    workload = context.workload(replicas=1)
    workload.authenticate("own", caCert=(folder / "ca.crt").read_text(), tlsClientCert=pair[0].read_text(),
                          tlsClientKey=pair[1].read_text())
    workload.scale(trigger(agent, scalerAddress=agent.tls_address), authentication="own")
    context.until("2 replicas at a sum of 160, read over mutual TLS",
                  lambda v: v.ready == "True" and v.replicas == 2 and is_close(v.value, 160), of=workload)
    context.expect("by the same authority" in make(96, 72), "renewed by the authority that is there")
    agent.rotate(pair)
    agent.reload()
    context.wait_for("the agent to take the renewed pair", lambda: '"msg":"reloaded"' in agent.log_text(), 20)
    agent.stop()  # so that KEDA opens a new connection
    agent.gpus.set([60, 60])
    agent.start()
    context.until("the new sum of 120, read over a new connection", lambda v: v.replicas == 2 and is_close(v.value, 120),
                  of=workload)
