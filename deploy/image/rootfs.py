#!/usr/bin/env python3
"""rootfs.py: lay out the file system of the container image: the program, the shared libraries that it loads, certificates
and a few files of /etc. Takes Debian packages apart and runs nothing of them, so it works for any architecture and needs no
root. Decides what is inside; how it becomes an image is deploy/image/build's, what is told about it sbom.py's.

A package is kept if the program, the simulated NVML or a kept library loads a library of it. Of a kept package come its
shared libraries and its copyright file: no program, so no shell, and none of the plugins that libraries would only load
when configured to (character sets, Kerberos, SASL, OpenSSL engines).
"""
import argparse
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import sbom

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
MERGED = ("bin", "lib", "lib64", "sbin")  # links into /usr, as in every Debian 12
# Kept whoever loads them: NVIDIA's library wants the first, and glibc opens the second by itself when a thread is cancelled.
ALWAYS = ("libc6", "libgcc-s1", "base-files", "ca-certificates")
NVMLSIM = "usr/lib/keda-gpu-scaler/nvmlsim/libnvidia-ml.so.1"  # the build's CLI_NVMLSIM_DIR
UID = 65532
ETC = {
    "etc/passwd": f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{UID}:{UID}:nonroot:/:/sbin/nologin\n"
                  "nobody:x:65534:65534:nobody:/:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nnonroot:x:{UID}:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    # The container toolkit adds a file there for NVIDIA's libraries and makes /etc/ld.so.cache.
    "etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
}
LINKS = {
    "usr/bin/gpu-metrics": "keda-gpu-scaler",
    "usr/lib/ssl/certs": "/etc/ssl/certs",                              # where OpenSSL looks by itself
    "usr/lib/ssl/cert.pem": "/etc/ssl/certs/ca-certificates.crt",
    "var/run": "/run",
}
FOLDERS = ("dev", "etc", "proc", "run", "sys", "tmp", "var/lib", "var/tmp")


class Package:
    """One .deb: its fields, and its files unpacked into a folder of their own."""

    def __init__(self, deb, folder):
        self.deb, self.path = deb, folder / deb.name
        make_links(self.path)
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", self.path], input=data, check=True)
        self.control = subprocess.run(["dpkg-deb", "-f", deb], stdout=subprocess.PIPE, text=True, check=True).stdout
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", self.control, re.M))
        self.name, self.version, self.architecture = fields["Package"], fields["Version"], fields["Architecture"]
        self.source = fields.get("Source", self.name).split()[0]
        self.source_version = (re.findall(r"\((.*)\)", fields.get("Source", "")) or [self.version])[0]
        self.maintainer, self.homepage = fields["Maintainer"], fields.get("Homepage")
        self.sha256 = hashlib.sha256(deb.read_bytes()).hexdigest()

    def libraries(self, triplet):
        return [p for p in (self.path / "usr/lib" / triplet).glob("*.so*")]

    def copyright_owner(self):
        """The package whose folder holds the copyright file: some link to another's."""
        place = self.path / "usr/share/doc" / self.name
        return place.readlink().name if place.is_symlink() else self.name


def make_links(root):
    root.mkdir(parents=True)
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")


def needed(path):
    """The libraries that an ELF file names: DT_NEEDED."""
    text = subprocess.run(["readelf", "-dW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def choose(packages, programs, triplet):
    """The packages that are needed, by name."""
    providers = {library.name: (package, library) for package in packages for library in package.libraries(triplet)}
    kept = {p.name: p for p in packages if p.name in ALWAYS}
    look = list(programs) + [library for p in kept.values() for library in p.libraries(triplet) if not library.is_symlink()]
    seen = set()
    while look:
        for soname in needed(look.pop()):
            if soname in seen:
                continue
            seen.add(soname)
            if soname not in providers:
                raise SystemExit(f"rootfs.py: no package in deploy/image/packages brings {soname}")
            package, library = providers[soname]
            kept[package.name] = package
            look.append(library)
    by_name = {p.name: p for p in packages}
    for package in list(kept.values()):
        kept[package.copyright_owner()] = by_name[package.copyright_owner()]
    return [kept[name] for name in sorted(kept)]


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def copy_package(package, root, triplet):
    wanted = [f"usr/lib/{triplet}/*.so*", "usr/lib64/*.so*", "usr/lib/ld-linux-*.so*", "etc/ld.so.conf.d/*"]
    if package.name == "base-files":
        wanted += ["etc/debian_version", "etc/os-release", "usr/lib/os-release", "usr/share/common-licenses/*"]
    for pattern in wanted:
        for path in package.path.glob(pattern):
            copy(path, root / path.relative_to(package.path))
    doc = package.path / "usr/share/doc" / package.name
    copy(doc if doc.is_symlink() else doc / "copyright", root / doc.relative_to(package.path) / ("" if doc.is_symlink() else "copyright"))
    # What scanners of images without dpkg read: Debian's own fields, one file a package.
    write(root / "var/lib/dpkg/status.d" / package.name, package.control)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def copy_product(arguments, root):
    for source, target, mode in ((arguments.program, "usr/bin/keda-gpu-scaler", 0o755), (arguments.nvmlsim, NVMLSIM, 0o644)):
        copy(source, root / target)
        (root / target).chmod(mode)
    for scenario in sorted((ROOT / "nvmlsim/scenarios").glob("*.yaml")):
        copy(scenario, root / "usr/share/keda-gpu-scaler/scenarios" / scenario.name)
    copy(ROOT / "LICENSE", root / "usr/share/doc/keda-gpu-scaler/LICENSE")


def make_certificates(package, root):
    """The bundle as update-ca-certificates makes it of all that Mozilla trusts."""
    certificates = sorted((package.path / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    write(root / "etc/ssl/certs/ca-certificates.crt", "".join(c.read_text().rstrip("\n") + "\n" for c in certificates))


def set_modes(root):
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", choices=TRIPLETS, required=True)
    parser.add_argument("--debs", type=pathlib.Path, required=True, help="folder of .deb files")
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--nvmlsim", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--created", type=int, required=True, help="seconds since the epoch")
    parser.add_argument("--sbom", type=pathlib.Path, required=True, help="file to write")
    parser.add_argument("root", type=pathlib.Path, help="folder to make")
    arguments = parser.parse_args()
    root, triplet = arguments.root, TRIPLETS[arguments.arch]
    if root.exists():
        shutil.rmtree(root)
    make_links(root)
    with tempfile.TemporaryDirectory() as work:
        packages = [Package(deb, pathlib.Path(work)) for deb in sorted(arguments.debs.glob("*.deb"))]
        kept = choose(packages, [arguments.program, arguments.nvmlsim], triplet)
        for package in kept:
            copy_package(package, root, triplet)
        make_certificates(next(p for p in kept if p.name == "ca-certificates"), root)
    for name, text in ETC.items():
        write(root / name, text)
    for name, target in LINKS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    copy_product(arguments, root)
    document = json.dumps(sbom.document(arguments, kept), indent=2) + "\n"
    arguments.sbom.write_text(document)
    write(root / "usr/share/keda-gpu-scaler/sbom.spdx.json", document)
    set_modes(root)


if __name__ == "__main__":
    main()
