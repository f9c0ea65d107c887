"""`cert`: files and Secrets, what is kept and what is made anew, and what TLS elsewhere makes of it."""
import base64
import pathlib
import re
import signal
import stat
import subprocess
import tempfile

from agent import Agent, check, wait_until
from calls import SCENARIO
from fake_kube import FakeKube
from program import fails, run, succeeds
from suite import add, test

NAMES = ("--name=gpu.ns.svc", "--name=127.0.0.1")
KEY = re.compile(r"PRIVATE KEY|MI[A-Za-z0-9+/]{30}")


def openssl(*words):
    return subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)


def verifies(folder, name, purpose="sslserver"):
    done = openssl("verify", "-x509_strict", "-purpose", purpose, "-CAfile", folder / "ca.crt", "-verify_hostname", name,
                   folder / "tls.crt")
    return done.returncode == 0


@test("cert --out-dir: four files, keys for their owner alone, a chain that OpenSSL's strict rules accept")
def _():
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent, "new")
        said = succeeds("cert", "--out-dir", folder, *NAMES)
        check(said.startswith("made: ") and not KEY.search(said), said)
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()}
        check(modes == {"ca.crt": 0o644, "ca.key": 0o600, "tls.crt": 0o644, "tls.key": 0o600}, str(modes))
        check(verifies(folder, "gpu.ns.svc") and verifies(folder, "gpu.ns.svc", "sslclient"), "it is not accepted")
        check(not verifies(folder, "other.svc"), "a name that is not there is accepted")
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        check(succeeds("cert", "--out-dir", folder, *NAMES).startswith("kept: "), "made again")
        check(before == {p.name: p.read_bytes() for p in folder.iterdir()}, "files changed")
        succeeds("cert", "--out-dir", folder, *NAMES, "--name=more.svc")
        check((folder / "ca.crt").read_bytes() == before["ca.crt"], "another authority for a new name")
        check(verifies(folder, "more.svc"), "the new name")


@test("cert: what ends soon is made anew by the same authority")
def _():
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent)
        succeeds("cert", "--out-dir", folder, *NAMES, "--validity=48h", "--renew-before=24h")
        first = (folder / "tls.crt").read_text()
        said = succeeds("cert", "--out-dir", folder, *NAMES, "--validity=96h", "--renew-before=72h")
        check(re.search("^made: .* by the same authority; why: it ends at ", said), said)
        check((folder / "tls.crt").read_text() != first, "the former certificate")


@test("cert: without its authority's key a new one is announced first, and both are trusted")
def _():
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent)
        succeeds("cert", "--out-dir", folder, *NAMES, "--validity=48h", "--renew-before=24h")
        (folder / "ca.key").unlink()
        said = succeeds("cert", "--out-dir", folder, *NAMES, "--validity=96h", "--renew-before=24h")
        check(said.startswith("kept: "), said)
        said = succeeds("cert", "--out-dir", folder, *NAMES, "--validity=96h", "--renew-before=72h")
        check(said.startswith("announced: "), said)
        check((folder / "ca.crt").read_text().count("BEGIN CERTIFICATE") == 2, "two authorities")
        check(verifies(folder, "gpu.ns.svc"), "the former certificate is not trusted any more")
        announced = (folder / "ca.crt").read_text()
        said = succeeds("cert", "--out-dir", folder, *NAMES, "--validity=96h", "--renew-before=72h")
        check(said.startswith("announced: ") and (folder / "ca.crt").read_text() == announced, said)
        said = succeeds("cert", "--out-dir", folder, *NAMES, "--validity=120h", "--renew-before=100h")
        check(said.startswith("made: "), said)
        check((folder / "ca.crt").read_text() == announced, "those who took it then do not trust the new certificate")
        check(verifies(folder, "gpu.ns.svc"), "the new certificate is not trusted")


@test("an agent serves what cert made and demands it of clients, and takes the next one up")
def _():
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent)
        succeeds("cert", "--out-dir", folder, *NAMES)
        mine = [f"--tls-ca={folder}/ca.crt", f"--tls-cert={folder}/tls.crt", f"--tls-key={folder}/tls.key"]
        flags = [f"--tls-cert={folder}/tls.crt", f"--tls-key={folder}/tls.key", f"--tls-client-ca={folder}/ca.crt"]
        with Agent(SCENARIO, *flags, wait=False) as agent:
            def asks(name):
                return run("probe", agent.address, *mine, f"--tls-server-name={name}").status == 0
            wait_until(lambda: asks("gpu.ns.svc"), "an answer")
            check(run("probe", agent.address, mine[0]).status != 0, "without a client's certificate")
            check(not asks("more.svc"), "a name that is not there")
            succeeds("cert", "--out-dir", folder, *NAMES, "--name=more.svc")
            agent.signal(signal.SIGHUP)
            wait_until(lambda: asks("more.svc"), "the next certificate")


for row in [
        ("no name", ("--out-dir=x",), "a certificate needs a --name"),
        ("a name that is none", ("--out-dir=x", "--name=a,DNS:b"), 'is no name for a certificate'),
        ("no place", ("--name=a",), "either --out-dir or --secret"),
        ("two places", ("--name=a", "--out-dir=x", "--secret=y"), "either --out-dir or --secret"),
        ("one Secret for both", ("--name=a", "--secret=y", "--ca-secret=y", "--kubeconfig=/dev/null"), "two Secrets"),
        ("renewed for ever", ("--name=a", "--out-dir=x", "--validity=24h", "--renew-before=24h"), "must be less than")]:
    add(f"cert: wrong usage: {row[0]}", lambda words, pattern: fails(2, pattern, arguments=("cert", *words)), *row[1:])


@test("cert: a folder that cannot be written is an error, and an authority's key that cannot be read is never replaced")
def _():
    fails(1, "cannot make the folder", arguments=("cert", "--out-dir=/proc/none", *NAMES))
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent)
        (folder / "ca.key").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
        fails(1, "PEM without a passphrase", arguments=("cert", "--out-dir", folder, *NAMES))
        check([p.name for p in folder.iterdir()] == ["ca.key"], "something was written")


# ---- Secrets ----

class Place:
    """A fake API server, and cert against it."""

    def __init__(self, kube):
        self.kube = kube
        self._folder = tempfile.TemporaryDirectory()
        self.config = pathlib.Path(self._folder.name, "config")
        kube.write_kubeconfig(self.config)

    def words(self, *more):
        return ("cert", f"--kubeconfig={self.config}", "--namespace=ns", "--secret=tls", "--timeout=5s", *NAMES, *more)

    def secret(self, name="tls"):
        found = self.kube.find("secrets", "ns", name)
        return found and {k: base64.b64decode(v).decode() for k, v in found["data"].items()}

    def writes(self):
        return self.kube.count("create") + self.kube.count("patch")


@test("cert --secret: two Secrets, the authority's key in its own; a second run writes nothing")
def _():
    with FakeKube(token="t") as kube:
        place = Place(kube)
        said = succeeds(*place.words())
        check(said.startswith("made: ") and not KEY.search(said), said)
        check(sorted(place.secret()) == ["ca.crt", "tls.crt", "tls.key"], str(sorted(place.secret())))
        check(sorted(place.secret("tls-ca")) == ["tls.crt", "tls.key"], str(sorted(place.secret("tls-ca"))))
        check(place.secret("tls-ca")["tls.key"] != place.secret()["tls.key"], "one key for both")
        whole = kube.find("secrets", "ns", "tls")
        check(whole["type"] == "kubernetes.io/tls" and
              whole["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}, str(whole["metadata"]))
        n = place.writes()
        check(succeeds(*place.words()).startswith("kept: ") and place.writes() == n, "written again")
        with tempfile.TemporaryDirectory() as folder:
            for name, text in place.secret().items():
                pathlib.Path(folder, name).write_text(text)
            check(verifies(pathlib.Path(folder), "gpu.ns.svc"), "it is not accepted")


@test("cert --secret: near its end it is made anew over the same Secret, whose other content stays")
def _():
    with FakeKube(token="t") as kube:
        place = Place(kube)
        succeeds(*place.words("--validity=48h", "--renew-before=24h"))
        whole = kube.find("secrets", "ns", "tls")
        whole["metadata"].update(labels={"team": "ml"})
        whole["data"]["mine"] = "eA=="
        kube.put(whole)
        first, authority = place.secret(), place.secret("tls-ca")
        check(succeeds(*place.words("--validity=96h", "--renew-before=72h")).startswith("made: "), "not renewed")
        second = kube.find("secrets", "ns", "tls")
        check(second["metadata"]["labels"] == {"team": "ml"} and second["data"]["mine"] == "eA==", str(second["metadata"]))
        check(place.secret()["tls.crt"] != first["tls.crt"] and place.secret("tls-ca") == authority, "which changed")


@test("cert --secret: a Secret of Helm's that is fit stays as it is, and is marked to outlive the release's next revision")
def _():
    with FakeKube(token="t") as kube:
        place = Place(kube)
        succeeds(*place.words())
        whole = kube.find("secrets", "ns", "tls")
        whole["metadata"]["annotations"] = {"meta.helm.sh/release-name": "gpu"}
        kube.put(whole)
        kube.delete("secrets", "ns", "tls-ca")  # Helm kept no key of its authority
        check(succeeds(*place.words()).startswith("kept: "), "made again")
        after = kube.find("secrets", "ns", "tls")
        check(after["data"] == whole["data"], "the content changed")
        check(after["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep", str(after["metadata"]))
        n = place.writes()
        succeeds(*place.words())
        check(place.writes() == n, "marked twice")


@test("cert --secret: who writes at the same time is not overwritten")
def _():
    with FakeKube(token="t") as kube:
        place, other = Place(kube), Place(kube)
        kube.fault(verb="create", path="secrets", times=1, status=409, message="already exists")
        succeeds(*place.words())
        mine = place.secret()
        check(succeeds(*other.words()).startswith("kept: ") and place.secret() == mine, "made again")
        kube.fault(verb="patch", status=409, message="the object has been modified")
        fails(1, "PATCH /api/v1/namespaces/ns/secrets/tls: 409: the object has been modified",
              arguments=other.words("--name=more.svc"))
        check(place.secret() == mine, "overwritten")


@test("cert --secret: what the API server refuses is said, with the right that is missing and no key")
def _():
    with FakeKube(token="t") as kube:
        place = Place(kube)
        kube.fault(verb="create", status=403, message='secrets is forbidden: cannot create resource "secrets"')
        result = fails(1, r'403: secrets is forbidden: cannot create resource "secrets"', arguments=place.words())
        check(not KEY.search(result.err), result.err)
        check(place.secret() is None and place.secret("tls-ca") is None, "something was written")
        kube.clear_faults()
        kube.fault(verb="get", hang=True)
        fails(124, "GET /api/v1/namespaces/ns/secrets/tls", arguments=place.words("--timeout=200ms"))
        kube.clear_faults()
    fails(1, "secrets/tls", arguments=place.words("--timeout=2s"))


@test("cert --secret over TLS: the API server is verified")
def _():
    with tempfile.TemporaryDirectory() as folder, FakeKube(token="t", tls_dir=folder + "/tls") as kube, \
            FakeKube(token="t", tls_dir=folder + "/other") as other:
        place = Place(kube)
        succeeds(*place.words())
        check(sorted(place.secret()) == ["ca.crt", "tls.crt", "tls.key"], "over TLS")
        other.ca_file = kube.ca_file
        stranger = Place(other)
        fails(1, "certificate", arguments=stranger.words())
        check(other.count("create") == 0, "sent to somebody else")
