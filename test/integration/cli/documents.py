"""Do the documents say what the program does? Flags, limits, metrics, man pages, links."""
import re
import shutil
import subprocess

from agent import Agent, check
from cache import ROOT
from config import printed
from program import succeeds
from suite import add, test
from usage import COMMANDS, make_goldens

MAN_PAGES = {"agent": "keda-gpu-scaler-agent.8", "call": "keda-gpu-scaler-call.1", "cert": "keda-gpu-scaler-cert.1",
             "check": "keda-gpu-scaler-check.1", "demo": "keda-gpu-scaler-demo.1",
             "explain": "keda-gpu-scaler-explain.1", "get": "keda-gpu-scaler-get.1", "hub": "keda-gpu-scaler-hub.8",
             "gpu-metrics": "gpu-metrics.1", "probe": "keda-gpu-scaler-probe.1", "top": "keda-gpu-scaler-top.1", "version": "keda-gpu-scaler.1"}
FLAG = re.compile(r"^  (?:-(?P<letter>\w), |    )--(?P<name>[\w-]+)(?: (?P<metavar>\S+))? +(?P<text>.+)$", re.MULTILINE)


def document(name):
    return (ROOT / name).read_text()


def flags(command):
    """{name: (letter, metavar, default)} as --help shows them."""
    found = {}
    for match in FLAG.finditer(succeeds("help", command)):
        default = re.search(r"\(default (\S+)\)$", match["text"])
        found[match["name"]] = (match["letter"], match["metavar"], default and default[1])
    return found


def table_rows(text):
    """The cells of every row of every table, without their back quotes."""
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


# ---- configuration.md ----

def flag_rows(section):
    """{name: (metavar, default)} of the table in one section of docs/configuration.md."""
    rows = {}
    for cells in table_rows(document("docs/configuration.md").partition(f"\n## {section}\n")[2].partition("\n## ")[0]):
        match = re.fullmatch(r"`--([\w-]+)(?: (\S+))?`", cells[0])
        if match:
            rows[match[1]] = (match[2], cells[1].strip("`").replace("false", "") or None)
    return rows


def flags_are(rows, wanted):
    check(rows.keys() == wanted.keys(), f"missing {wanted.keys() - rows.keys()}, unknown {rows.keys() - wanted.keys()}")
    for name, want in wanted.items():
        check(rows[name] == want, f"--{name}: {rows[name]}, want {want}")


@test("docs/configuration.md has every flag of the agent and of the hub, with its value and default, and no other")
def configuration_flags():
    wanted = {command: {name: (metavar, default) for name, (_, metavar, default) in flags(command).items()}
              for command in ("agent", "hub")}
    flags_are(flag_rows("Flags of the agent"), wanted["agent"])
    both = {name: row for name, row in wanted["hub"].items() if name in wanted["agent"]}
    for name, row in both.items():
        check(row == wanted["agent"][name], f"--{name}: {row} of the hub, {wanted['agent'][name]} of the agent")
    own = {name: row for name, row in wanted["hub"].items() if name not in both}
    flags_are(flag_rows("Flags of the hub"), own)


@test("docs/configuration.md has every limit with its default and what it is of, and no other")
def configuration_limits():
    text = document("docs/configuration.md")
    table = text.partition("| limit | default | of what |\n|---|---|---|\n")[2].strip().splitlines()
    wanted = make_goldens.limit_rows()
    check(table == wanted, f"want {set(wanted) - set(table)}, not {set(table) - set(wanted)}; tools/make-goldens writes it")
    in_force = {name.removeprefix("limit "): value for name, (value, _) in printed().items() if name.startswith("limit ")}
    documented = {row.split("`")[1]: row.split("|")[2].strip() for row in table}
    check(in_force == documented, f"--print-config says {in_force}")


@test("docs/configuration.md names every environment variable that the program reads")
def configuration_environment():
    read = set()
    for path in (ROOT / "src").rglob("*.c"):
        read |= set(re.findall(r'(?:getenv|is_set)\("(\w+)"\)', path.read_text()))
    text = document("docs/configuration.md")
    missing = [name for name in sorted(read) if f"`{name}`" not in text]
    check(not missing and "NODE_NAME" in read, f"not named: {missing}")


@test("README.md and docs name no flag that there is not")
def no_unknown_flags():
    known = {name for command in COMMANDS for name in flags(command)} | {"help", "version", "name"}
    known |= {"enable-metrics", "max-num-seqs", "max-running-requests", "metrics", "metrics-config", "no-hooks",
              "with-parent"}  # of engines, of helm, of enginesim
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        others = r"(?:cosign|docker|helm|kubectl|podman|skopeo) "  # lines of shells, and in the text
        ours = re.sub(rf"^{others}.*$|`{others}[^`]*`|`--set [^`]*`", "", path.read_text().replace("\\\n", ""), flags=re.MULTILINE)
        for name in re.findall(r"--([a-z][a-z-]+)", ours):
            check(name in known, f"{path.name}: --{name}")


# ---- metrics.md ----

HUB_SECTIONS = ("The Kubernetes API", "Agents, as the hub sees them", "Workloads and GPUs, on the hub")


def documented_metrics(*sections):
    """{family: type} of the sections named, or of all."""
    text, rows = document("docs/metrics.md"), {}
    if sections:
        text = "".join(text.partition(f"\n## {section}\n")[2].partition("\n## ")[0] for section in sections)
    for cells in table_rows(text):
        match = re.fullmatch(r"`([A-Za-z_]+)`", cells[0])
        if match and cells[1] in ("gauge", "counter", "histogram"):
            rows[match[1]] = cells[1]
    return rows


def page_metrics(page):
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))


def same_metrics(page, what):
    rows, there = documented_metrics(), page_metrics(page)
    for name, kind in there.items():
        if not name.startswith("keda_gpu_scaler_test"):
            check(rows.get(name) == kind, f"{what}: {name} is a {kind}, docs/metrics.md says {rows.get(name)}")
    return there


SCENARIO = """gpus:
  - {board: H100, utilization: 40, nvlink_tx_kibps: 5}
  - {board: H100, mig: [{profile: 3g.40gb, utilization: 70}]}
  - {board: T4, utilization: 10}
events:
  - {at: 0.5, gpu: 0, xid: 79}
faults:
  - {fault: lost, gpu: 2, from: 1}
"""


@test("docs/metrics.md has every family of the golden pages and of a live agent with TLS, and no other")
def metrics():
    from calls import certificates
    there = same_metrics(document("test/golden/metrics.txt"), "golden")
    there |= same_metrics(document("test/golden/dcgm.txt"), "golden")
    folder = certificates()
    with Agent(SCENARIO, "--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server.key"),
               "--procfs=/proc") as agent:
        succeeds("call", agent.address, "--tls-ca", folder / "ca.pem")
        there |= same_metrics(agent.get("/metrics")[2].decode(), "live")
    missing = set(documented_metrics()) - set(there) - set(documented_metrics(*HUB_SECTIONS))  # these: test/integration/hub
    # appear only with what no simulated scenario here does
    check(missing <= {"keda_gpu_scaler_tls_reload_errors_total"}, f"documented and never seen: {missing}")


@test("docs/metrics.md names every label of a live page")
def metric_labels():
    text = document("docs/metrics.md")
    with Agent(SCENARIO) as agent:
        succeeds("call", agent.address)
        page = agent.get("/metrics")[2].decode()
    labels = set(re.findall(r'[{,](\w+)="', re.sub(r'"(?:[^"\\]|\\.)*"', '""', page))) - {"le"}
    missing = [name for name in sorted(labels) if f"`{name}`" not in text]
    check(not missing and "uuid" in labels, f"not named: {missing}")


@test("docs/compatibility.md maps onto metrics that there are")
def compatibility_metrics():
    names = set(re.findall(r"`((?:keda_gpu_scaler|grpc_server)_[a-z_]*[a-z])`", document("docs/compatibility.md")))
    unknown = names - set(documented_metrics())
    check(names and not unknown, f"not in docs/metrics.md: {unknown}")


@test("README.md, docs and man pages name no metric that there is not")
def no_unknown_metrics():
    known = set(documented_metrics())
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for name in re.findall(r"\b(keda_gpu_scaler_[a-z_]*[a-z])\b", path.read_text()):
            check(name in known or any(k.startswith(name) for k in known), f"{path.name}: {name}")


# ---- man pages ----

def man_flags(page):
    """{name: (letter, metavar, default)} of the tagged list items of an mdoc page."""
    found = {}
    items = re.split(r"^\.It ", document(f"man/{page}"), flags=re.MULTILINE)[1:]
    for item in items:
        head, _, body = item.partition("\n")
        match = re.match(r"Fl (?:(\w) , )?-([\w-]+)(?: Ar (.+))?$", head)
        if match:
            default = re.search(r"Default (\S+)\.$", body.split("\n.El")[0], re.MULTILINE)
            metavar = re.sub(r" Ns = Ns Ar ", "=", match[3]) if match[3] else None
            found[match[2]] = (match[1], metavar, default and default[1])
    return found


def man_page(command):
    wanted, written = flags(command), man_flags(MAN_PAGES[command])
    for name in ("help", "version"):
        written.pop(name, None)
    check(written.keys() == wanted.keys(), f"missing {wanted.keys() - written.keys()}, unknown {written.keys() - wanted.keys()}")
    for name, want in wanted.items():
        check(written[name] == want, f"--{name}: {written[name]}, --help says {want}")


for name in sorted(MAN_PAGES.keys() - {"version"}):
    add(f"{MAN_PAGES[name]} has every flag with its letter, value and default", man_page, name)


@test("keda-gpu-scaler(1) has every command, and every page an EXIT STATUS")
def man_commands():
    text = document("man/keda-gpu-scaler.1")
    for command in COMMANDS:
        check(f"\n.It Cm {command}" in text, f"{command} is missing")
    for page in MAN_PAGES.values():
        check("\n.Sh EXIT STATUS\n" in document(f"man/{page}"), f"{page} has no EXIT STATUS")


@test("keda-gpu-scaler-call(1) has every question, and --help too")
def man_questions():
    questions = re.search(r"it is one of (.*)$", __import__("program").run("call", "nope", "127.0.0.1:1").err.strip())[1]
    for question in questions.split(", "):
        check(f"\n.It Cm {question}\n" in document("man/keda-gpu-scaler-call.1"), f"{question} is not in the page")
        check(re.search(rf"\b{question}\b", succeeds("help", "call")), f"{question} is not in --help")


@test("keda-gpu-scaler.conf(5): its example is a file that is read")
def man_example():
    import config
    example = re.search(r"\.Bd -literal.*?\n(.*?)\.Ed", document("man/keda-gpu-scaler.conf.5"), re.DOTALL)[1]
    got = printed("--config", config.write("man.yaml", example))
    check(got["limit streams"][0] == "2000" and got["listen"][1] == "file", str(got))


@test("docs/configuration.md: its example is a file that is read")
def docs_example():
    import config
    example = re.search(r"```yaml\n(.*?)```", document("docs/configuration.md"), re.DOTALL)[1]
    got = printed("--config", config.write("docs.yaml", example))
    check(got["limit streams"][0] == "2000" and got["listen"][1] == "file", str(got))


@test("man pages: mandoc has nothing to remark")
def man_lint():
    check(shutil.which("mandoc"), "mandoc is not installed")
    pages = sorted(str(path) for path in (ROOT / "man").glob("*.[1-8]"))
    out = subprocess.run(["mandoc", "-Tlint", *pages], text=True, stdout=subprocess.PIPE, check=False).stdout
    remarks = [line for line in out.splitlines() if "referenced manual not found" not in line]  # they are not installed
    check(len(pages) >= 6 and not remarks, "\n".join(remarks))
    names = {path.rsplit("/", 1)[1] for path in pages}
    for page in pages:
        with open(page, encoding="utf-8") as file:
            for name, section in re.findall(r"^\.Xr (\S+) (\d)", file.read(), re.MULTILINE):
                check(f"{name}.{section}" in names, f"{page} refers to {name}({section})")


# ---- links ----

@test("every relative link in the documents leads to a file, every anchor to a heading")
def links():
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    pages += (ROOT / "docs").rglob("*.md")
    broken = []
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path) if path else page
            if not target.exists():
                broken.append(f"{page.relative_to(ROOT)}: {link}")
            elif anchor and target.suffix == ".md":
                headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
                anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
                if anchor not in anchors:
                    broken.append(f"{page.relative_to(ROOT)}: {link}: no such heading")
    check(not broken, "; ".join(broken))


@test("docs/README.md leads to every page, docs/internals has one for every module")
def index():
    text = document("docs/README.md")
    missing = [p.name for p in (ROOT / "docs").glob("*.md") if p.name != "README.md" and f"]({p.name})" not in text]
    modules = re.findall(r"^(\w+) +:", document("src/LAYERS"), re.MULTILINE)
    modules = [name for name in modules if (ROOT / "src" / name).is_dir() or (ROOT / name).is_dir()]
    missing += [f"internals/{name}.md" for name in modules if not (ROOT / f"docs/internals/{name}.md").exists()]
    check(len(modules) > 15 and not missing, f"missing: {missing}")
