"""What is in the images, and what they say of themselves."""
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import tempfile

from agent import check
from cache import ROOT
from image import LOADERS, NATIVE, NVMLSIM, OUT, TRIPLETS, UID, VERSION, Archive, image
from suite import add, test

MIB = 1 << 20
SHELLS = ("sh", "bash", "dash", "busybox", "apt-get", "dpkg", "perl", "python3", "curl", "openssl", "ldconfig")


@test("the index names one image for each architecture, the same as in their own archives")
def index():
    whole = Archive(OUT / f"keda-gpu-scaler-{VERSION}.tar")
    listed = {entry["platform"]["architecture"]: entry["digest"] for entry in whole.top["manifests"]}
    check(listed == {arch: image(arch).digest for arch in TRIPLETS}, f"{listed}")
    check(whole.name == image(NATIVE).name and whole.name.endswith(f"/keda-gpu-scaler:{VERSION}"), whole.name)
    for digest in listed.values():
        manifest = whole.json(digest)
        for part in [manifest["config"], *manifest["layers"]]:
            whole.blob(part["digest"])


def tells(arch):
    one = image(arch)
    check((one.description["architecture"], one.description["os"]) == (arch, "linux"), f"{one.description}")
    check(one.config["User"] == f"{UID}:{UID}", one.config["User"])
    check(one.config["Entrypoint"] == ["/usr/bin/keda-gpu-scaler"] and not one.config.get("Cmd"), f"{one.config}")
    check("NVIDIA_VISIBLE_DEVICES=all" in one.config["Env"] and "NVIDIA_DRIVER_CAPABILITIES=utility" in one.config["Env"] and
          "NVIDIA_DISABLE_REQUIRE=true" in one.config["Env"], f"{one.config['Env']}")
    labels = one.config["Labels"]
    check(labels["org.opencontainers.image.version"] == VERSION and
          labels["org.opencontainers.image.created"] == one.description["created"], f"{labels}")
    for key, value in labels.items():
        check(value and one.top["annotations"].get(key) == value, f"{key}: {value!r}, annotation {one.top['annotations'].get(key)!r}")
    users = (one.root / "etc/passwd").read_text()
    check(f":x:{UID}:{UID}:" in users and f":x:{UID}:" in (one.root / "etc/group").read_text(), users)


def is_small_and_harmless(arch):
    one = image(arch)
    triplet = TRIPLETS[arch]
    allowed = {"usr/bin/keda-gpu-scaler", f"usr/lib/{triplet}/libc.so.6",
               f"usr/lib/{triplet}/{pathlib.Path(LOADERS[arch]).name}"}
    for member in one.members:
        name = member.name.removeprefix("./").rstrip("/")
        check((member.uid, member.gid) == (0, 0), f"{name} belongs to {member.uid}:{member.gid}")
        check(member.isfile() or member.isdir() or member.issym(), f"{name} is neither file, folder nor link")
        check(not member.mode & 0o6000, f"{name} is setuid or setgid")
        if member.issym():
            continue
        check(not member.mode & 0o002 or member.mode & 0o1000, f"anyone may write {name}")
        if member.isfile() and member.mode & 0o111:
            check(name in allowed, f"{name} can be run")
    names = {pathlib.Path(m.name).name for m in one.members if not m.isdir()}
    check(not names & set(SHELLS), f"{names & set(SHELLS)}")
    unpacked = sum(m.size for m in one.members)
    print(f"     {arch}: {one.size() / MIB:.1f} MiB to pull, {unpacked / MIB:.1f} MiB unpacked, {len(one.members)} files")
    check(one.size() < 14 * MIB and unpacked < 36 * MIB, f"{one.size()} bytes, {unpacked} unpacked")


def readelf(flag, path):
    return subprocess.run(["readelf", flag, path], stdout=subprocess.PIPE, text=True, check=True).stdout


def loads(arch):
    """The loader of the image itself finds everything, in the image: names and versions of symbols."""
    one = image(arch)
    for file in ("/usr/bin/keda-gpu-scaler", NVMLSIM):
        header = readelf("-h", one.root / file.lstrip("/"))
        check({"amd64": "X86-64", "arm64": "AArch64"}[arch] in header and "DYN" in header, f"{file}: {header}")
        check(".symtab" not in readelf("-SW", one.root / file.lstrip("/")), f"{file} is not stripped")
        status, output = one.run("/" + LOADERS[arch], "--list", file, entrypoint=False)
        check(status == 0 and "not found" not in output, f"{file}: {status}\n{output}")
        paths = re.findall(r"=> (\S+)|^\s*(/\S+) \(", output, re.M)
        check(len(paths) >= 3, output)
    for library in one.root.glob(f"usr/lib/{TRIPLETS[arch]}/*.so*"):
        for wanted in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-dW", library)):
            check((one.root / "usr/lib" / TRIPLETS[arch] / wanted).exists(), f"{library.name} needs {wanted}")


def nothing_too_much(arch):
    """Each package of Debian's is there for a library that is loaded, or is one of the four that always are."""
    one = image(arch)
    _, output = one.run("/" + LOADERS[arch], "--list", "/usr/bin/keda-gpu-scaler", entrypoint=False)
    loaded = set(re.findall(r"/([^/ ]+) \(0x", output))
    for library in one.root.glob(f"usr/lib/{TRIPLETS[arch]}/lib*.so*"):
        owner = any(library.resolve() == (library.parent / name).resolve() for name in loaded)
        # libc6 and libgcc-s1 are whole, for NVIDIA's library; libbrotlienc comes with its neighbours.
        check(owner or re.match(r"lib(c|m|dl|rt|anl|nsl|util|mvec|pthread|resolv|nss_\w+|thread_db|BrokenLocale|memusage|pcprofile|"
                                r"c_malloc_debug|gcc_s|brotlienc)[.]", library.name), f"nobody loads {library.name}")


def certificates(arch):
    """Where OpenSSL and curl look by themselves."""
    one = image(arch)
    bundle = one.root / "etc/ssl/certs/ca-certificates.crt"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(bundle)
    check(context.cert_store_stats()["x509_ca"] > 100, f"{context.cert_store_stats()}")
    check(os.readlink(one.root / "usr/lib/ssl/cert.pem") == "/etc/ssl/certs/ca-certificates.crt", "cert.pem")


def bill(arch):
    """SPDX 2.3: the fields that it demands, every package of the image and no other, the program as it is."""
    one = image(arch)
    text = one.sbom_path.read_text()
    check((one.root / "usr/share/keda-gpu-scaler/sbom.spdx.json").read_text() == text, "the one in the image is another")
    document = json.loads(text)
    check((document["spdxVersion"], document["dataLicense"], document["SPDXID"]) ==
          ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"), text[:300])
    check(re.match(r"https://\S+[0-9a-f]{64}$", document["documentNamespace"]) and document["name"], text[:600])
    check(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", document["creationInfo"]["created"]) and
          all(re.match(r"(Tool|Organization|Person): \S", c) for c in document["creationInfo"]["creators"]), f"{document['creationInfo']}")
    ids = [p["SPDXID"] for p in document["packages"]]
    check(len(ids) == len(set(ids)) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids), f"{ids}")
    for relation in document["relationships"]:
        check({relation["spdxElementId"], relation["relatedSpdxElement"]} <= {*ids, "SPDXRef-DOCUMENT"}, f"{relation}")
    described = [r["relatedSpdxElement"] for r in document["relationships"] if r["relationshipType"] == "DESCRIBES"]
    contained = [r["relatedSpdxElement"] for r in document["relationships"] if r["relationshipType"] == "CONTAINS"]
    check(len(described) == 1 and sorted(contained + described) == sorted(ids), f"{described} {contained}")
    debian = {}
    for package in document["packages"]:
        check(package["name"] and package["downloadLocation"] and package["filesAnalyzed"] is False and package["versionInfo"] and
              package["licenseDeclared"] and package["licenseConcluded"] and package["copyrightText"], f"{package}")
        for total in package.get("checksums", ()):
            check(total["algorithm"] == "SHA256" and re.fullmatch("[0-9a-f]{64}", total["checksumValue"]), f"{package}")
        for reference in package.get("externalRefs", ()):
            check(reference["referenceLocator"].startswith(f"pkg:deb/debian/{package['name'].replace('+', '%2B')}@"), f"{package}")
            debian[package["name"]] = package["versionInfo"]
    inside = {}
    for path in (one.root / "var/lib/dpkg/status.d").iterdir():
        inside[path.name] = re.search(r"^Version: (.*)$", path.read_text(), re.M)[1]
        check((one.root / "usr/share/doc" / path.name / "copyright").exists(), f"no copyright file of {path.name}")
    check(debian == inside, f"{debian} {inside}")
    program = next(p for p in document["packages"] if p["name"] == "keda-gpu-scaler")
    own = subprocess.run(["sha256sum", one.root / "usr/bin/keda-gpu-scaler"], stdout=subprocess.PIPE, text=True, check=True)
    check(program["checksums"][0]["checksumValue"] == own.stdout.split()[0] and program["versionInfo"] == VERSION, f"{program}")


for architecture in TRIPLETS:
    for sentence, function in (
            ("the configuration: user, entry point, NVIDIA's variables, annotations", tells),
            ("one program, no shell, nothing setuid or writable, all of root's, small", is_small_and_harmless),
            ("the image's own loader finds every library in it", loads),
            ("no library that nobody loads", nothing_too_much),
            ("certificates where OpenSSL and curl look", certificates),
            ("the bill of materials is SPDX 2.3 and names what is inside", bill)):
        add(f"{architecture}: {sentence}", function, architecture)


@test("what the chart says of the image is so: its name, the simulated library")
def chart():
    values = (ROOT / "deploy/helm/keda-gpu-scaler/values.yaml").read_text()
    named = [re.search(rf"^image:\n(?:  .*\n)*?  {key}: \"?([^\s\"]+)", values, re.M)[1] for key in ("registry", "repository")]
    check("/".join(named) + f":{VERSION}" == image(NATIVE).name, f"{named}, the image is {image(NATIVE).name}")
    library = re.search(r"^mockMode:\n(?:  .*\n)*?  library: \"?([^\s\"]+)", values, re.M)[1]
    check((image(NATIVE).root / library.lstrip("/")).is_file(), f"no {library} in the image")


@test("the same sources in another folder give the same digest, from what the image says of itself", alone=True)
def reproducible():
    one = image(NATIVE)
    labels = one.config["Labels"]
    epoch = subprocess.run(["date", "-d", one.description["created"], "+%s"], stdout=subprocess.PIPE, text=True, check=True)
    with tempfile.TemporaryDirectory(prefix="kgs-again-") as folder:
        source = pathlib.Path(folder) / "elsewhere"
        files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, stdout=subprocess.PIPE,
                               text=True, check=True).stdout.split("\0")
        for name in filter(None, files):
            if os.path.lexists(ROOT / name):
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, source / name, follow_symlinks=False)
        environment = {**os.environ, "OUT": f"{folder}/out", "DEBS": str((OUT / "debs").resolve()),
                       "SOURCE_DATE_EPOCH": epoch.stdout.strip(), "REVISION": labels["org.opencontainers.image.revision"]}
        done = subprocess.run([source / "deploy/image/build", NATIVE], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        check(done.returncode == 0, done.stdout[-2000:])
        again = Archive(pathlib.Path(folder) / "out" / one.path.name)
        check(again.digest == one.digest, f"{again.digest}, was {one.digest}")
