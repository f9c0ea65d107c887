"""The pages one by one: promtool, the reference parsers, negotiation, gzip, HEAD, HTTP/1.1 and HTTP/2."""
import gzip
import re
import subprocess

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

import cache
from agent import check
from scrape import AUTHORITY, CLIENT, agents, port_of
from suite import add, test

PROMETHEUS_3 = ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
                "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
                "text/plain;version=0.0.4;q=0.3,*/*;q=0.2")


def page(accept=None, path="/metrics", port=None):
    """(headers, body) of a page of the plaintext agent."""
    agent = agents()[0]
    status, headers, body = agent.get(path, port=port, headers={"Accept": accept} if accept else {})
    check(status == 200, f"status {status}")
    return headers, body


GOLDEN = cache.ROOT / "test" / "golden"


def promtool_findings(text):
    """What `promtool check metrics` says of a page, line by line, each once."""
    program = cache.go_programs("prometheus") / "promtool"
    result = subprocess.run([program, "check", "metrics"], input=text, capture_output=True, timeout=60, check=False)
    said = (result.stdout + result.stderr).decode()
    check(result.returncode in (0, 3), said)
    return set(said.splitlines())


def known_findings():
    return set((GOLDEN / "dcgm.promtool.txt").read_text().splitlines())


@test("promtool check metrics: our own families are clean, those of dcgm-exporter break the rules that they are known to")
def promtool():
    found = promtool_findings(page()[1])
    check(found and found <= known_findings(), "\n".join(sorted(found - known_findings())))


@test("promtool check metrics: findings of all families of dcgm-exporter are those of the golden list")
def promtool_dcgm():
    found = promtool_findings((GOLDEN / "dcgm.txt").read_bytes())
    check(found == known_findings(), "\n".join(sorted(found ^ known_findings())))


@test("the reference parser reads text 0.0.4")
def text_format():
    families = {family.name: family for family in text_parser.text_string_to_metric_families(page()[1].decode())}
    check(len(families) > 40, f"{len(families)} families")
    for family in families.values():
        check(family.documentation and family.type != "unknown", f"{family.name}: no HELP or TYPE")
        seen = [(s.name, tuple(sorted(s.labels.items()))) for s in family.samples]
        check(len(seen) == len(set(seen)), f"{family.name}: a series twice")


@test("the reference parser reads OpenMetrics 1.0, which is strict")
def openmetrics_format():
    headers, body = page("application/openmetrics-text;version=1.0.0")
    check(headers["content-type"].startswith("application/openmetrics-text; version=1.0.0"), headers["content-type"])
    check(body.endswith(b"# EOF\n"), "no # EOF at the end")
    families = list(openmetrics_parser.text_string_to_metric_families(body.decode()))
    check(len(families) > 40, f"{len(families)} families")


@test("both formats hold the same samples")
def same_samples():
    # The reference parser lets every counter of text end in _total; dcgm-exporter's do not, and in OpenMetrics are none.
    plain = {s.name.removesuffix("_total") if s.name.startswith("DCGM_") else s.name
             for f in text_parser.text_string_to_metric_families(page()[1].decode()) for s in f.samples}
    strict = {s.name for f in openmetrics_parser.text_string_to_metric_families(
        page("application/openmetrics-text")[1].decode()) for s in f.samples}
    check(plain == strict, f"{plain ^ strict}")


def negotiates(accept, want):
    got = page(accept)[0]["content-type"]
    check(got.startswith(want), got)


TEXT, OPEN = "text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0"
for accept, want in ((None, TEXT), ("*/*", TEXT), ("text/plain", TEXT), ("text/html", TEXT), (PROMETHEUS_3, OPEN),
                     ("application/openmetrics-text; version=1.0.0", OPEN), ("text/plain;version=0.0.4;q=0.9,"
                      "application/openmetrics-text;version=1.0.0;q=0.1", TEXT),
                     ("application/openmetrics-text;q=0,text/plain", TEXT),
                     ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
                      "text/plain;version=0.0.4;q=0.3", TEXT), ("garbage;;;,", TEXT)):
    add(f"Accept {accept!r} gives {want}", negotiates, accept, want)

# ---- curl ----


def curl(*words, version="--http1.1", target="metrics", path="/metrics"):
    """(status, headers in lower case, body) by curl. target: metrics, grpc, probe, tls-metrics or tls-grpc."""
    is_tls = target.startswith("tls-")
    port, scheme = port_of(is_tls, target.removeprefix("tls-")), "https" if is_tls else "http"
    tls = ["--cacert", AUTHORITY.certificate, "--cert", CLIENT[0], "--key", CLIENT[1]] if is_tls else []
    result = subprocess.run(["curl", "-sS", "-i", "--raw", "--noproxy", "*", "--max-time", "20", version, *tls, *words,
                             f"{scheme}://localhost:{port}{path}"], capture_output=True, timeout=60, check=False)
    check(result.returncode == 0, f"curl: {result.returncode}: {result.stderr.decode()}")
    head, _, body = result.stdout.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:] if ": " in line)}
    return int(lines[0].split()[1]), headers, body


def curl_gets(version, target):
    status, headers, body = curl(version=version, target=target)
    check(status == 200 and b"keda_gpu_scaler_build_info" in body, f"{status}: {body[:200]}")
    check(int(headers["content-length"]) == len(body), f"{headers}, {len(body)} bytes")
    check("Accept" in headers["vary"], f"{headers}")
    status, headers, zipped = curl("-H", "Accept-Encoding: gzip", version=version, target=target)
    check(headers.get("content-encoding") == "gzip" and len(zipped) < len(body) / 3, f"{headers}, {len(zipped)} bytes")
    check(b"keda_gpu_scaler_build_info" in gzip.decompress(zipped), "other content")
    check("content-encoding" not in curl("-H", "Accept-Encoding: gzip;q=0, br", version=version, target=target)[1],
          "gzip although refused")
    status, headers, rest = curl("-I", version=version, target=target)
    check(status == 200 and rest == b"" and int(headers["content-length"]) > 1000, f"HEAD: {status} {headers} {rest[:99]}")


for target in ("metrics", "grpc", "probe", "tls-metrics", "tls-grpc"):
    for version in ("--http1.1", "--http2" if target.startswith("tls") else "--http2-prior-knowledge"):
        add(f"curl {version} on {target}: GET, gzip, HEAD", curl_gets, version, target)


def curl_refused(version):
    for words, path, want in (([], "/nope", 404), (["-X", "DELETE"], "/metrics", 405),
                              (["-X", "OPTIONS"], "/metrics", 405), ([], "/metrics/../x", 404)):
        status, _, body = curl("--path-as-is", *words, version=version, path=path)
        check(status == want, f"{words} {path}: {status}, want {want}: {body[:100]}")


for version in ("--http1.1", "--http2-prior-knowledge"):
    add(f"curl {version}: unknown pages are 404, other methods 405", curl_refused, version)


@test("curl --http1.0 gets the page and the connection's end")
def http10():
    status, _, body = curl(version="--http1.0")
    check(status == 200 and b"build_info" in body, f"{status}")


@test("curl --http2 without prior knowledge (Upgrade: h2c) is answered over HTTP/1.1")
def upgrade():
    status, _, body = curl(version="--http2")
    check(status == 200 and b"build_info" in body, f"{status}")


@test("a hundred requests on one connection")
def keep_alive():
    agent = agents()[0]
    before = agent.metric("keda_gpu_scaler_connections_accepted_total")
    urls = [f"http://127.0.0.1:{agent.metrics_port}/livez"] * 100
    result = subprocess.run(["curl", "-sS", "--noproxy", "*", "--http1.1", *urls], capture_output=True, text=True,
                            timeout=60, check=False)
    check(result.stdout == "ok" * 100, result.stdout[-300:] + result.stderr)
    made = agent.metric("keda_gpu_scaler_connections_accepted_total") - before
    check(made < 60, f"{made} connections")  # others of this suite connect meanwhile


def health_page(path, words):
    text = page(path=path, port=agents()[0].probe_port)[1].decode()
    check(all(word in text for word in words), text)


for path, words in (("/livez", ["ok"]), ("/readyz", ["ok"]), ("/healthz", ["ok"]),
                    ("/readyz?verbose", ["[+]loop ok", "[+]serving ok", "[+]nvml ok", "readyz check passed"]),
                    ("/livez?verbose", ["livez check passed"]), ("/readyz/serving", ["ok"]),
                    ("/readyz?verbose&exclude=serving", ["readyz check passed"]),
                    ("/version", ['"version"', "keda-gpu-scaler"])):
    add(f"the page {path}", health_page, path, words)


@test("a check that does not exist is 404")
def unknown_check():
    status, _, _ = agents()[0].get("/readyz/nope", port=agents()[0].probe_port)
    check(status == 404, f"{status}")


@test("pages for people and probes: plain text, no sniffing")
def page_headers():
    headers, _ = page(path="/readyz?verbose")
    check(headers["content-type"] == "text/plain; charset=utf-8", f"{headers}")
    check(headers["x-content-type-options"] == "nosniff", f"{headers}")
    check(re.match(r"\d+$", headers["content-length"]), f"{headers}")
