"""The bill of materials of the container image, as SPDX 2.3 JSON: the program and each Debian package that a file of the
image comes from. Knows the form only; rootfs.py knows what is inside. The same input gives the same bytes."""
import datetime
import hashlib
import json
import re
import urllib.parse

NAME = "keda-gpu-scaler"
UNKNOWN = "NOASSERTION"


def identifier(*words):
    """SPDX allows letters, digits, dots and hyphens."""
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(words))


def purl(package):
    quote = lambda text: urllib.parse.quote(text, safe="")  # noqa: E731
    return (f"pkg:deb/debian/{quote(package.name)}@{quote(package.version)}?arch={package.architecture}&distro=debian-12"
            f"&upstream={quote(package.source)}%40{quote(package.source_version)}")


def debian_package(package):
    entry = {
        "SPDXID": identifier("Package", package.name),
        "name": package.name,
        "versionInfo": package.version,
        "supplier": f"Organization: {package.maintainer}",
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": package.sha256}],
        "sourceInfo": f"built from Debian's source package {package.source} {package.source_version}; the checksum is the .deb's",
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": UNKNOWN,
        "licenseComments": f"in the image: /usr/share/doc/{package.name}/copyright",
        "copyrightText": UNKNOWN,
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl(package)}],
    }
    if package.homepage:
        entry["homepage"] = package.homepage
    return entry


def product(version, path, shown_as, name):
    return {
        "SPDXID": identifier("Package", name),
        "name": name,
        "versionInfo": version,
        "packageFileName": shown_as,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}],
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": UNKNOWN,
        "primaryPackagePurpose": "APPLICATION" if name == NAME else "LIBRARY",
    }


def document(image, packages):
    """image: arch, version, created (seconds), program and nvmlsim (paths). packages: Debian's, by rootfs.py."""
    whole = {
        "SPDXID": identifier("Image"),
        "name": f"{NAME}-image",
        "versionInfo": image.version,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": UNKNOWN,
        "copyrightText": UNKNOWN,
        "primaryPackagePurpose": "CONTAINER",
        "comment": f"linux/{image.arch}, files of Debian 12",
    }
    own = [product(image.version, image.program, f"/usr/bin/{NAME}", NAME),
           product(image.version, image.nvmlsim, f"/usr/lib/{NAME}/nvmlsim/libnvidia-ml.so.1", f"{NAME}-nvmlsim")]
    debian = [debian_package(p) for p in packages]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", whole["SPDXID"])]
    relations += [(whole["SPDXID"], "CONTAINS", p["SPDXID"]) for p in own + debian]
    body = {
        "packages": [whole, *own, *debian],
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(image.created, datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{NAME}-{image.version}-{image.arch}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{NAME}-{image.version}-{image.arch}-{digest}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": [f"Tool: {NAME}-image-sbom"]},
        **body,
    }
