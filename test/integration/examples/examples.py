"""The files of deploy/examples and the objects in them. It knows where they are and how their heads are written, and no
rule that they must obey."""
import pathlib
import re

import yaml

from cache import ROOT

FOLDER = ROOT / "deploy/examples"
DOCUMENTS = FOLDER / "documents"
OWN_TEXT = "# ---- the document's own text from here on ----\n"


class Example:
    """One file. head: its comment on top; objects: what kubectl would apply; values: what Helm would take instead."""

    def __init__(self, path):
        self.path, self.name = path, str(path.relative_to(FOLDER))
        self.text = path.read_text()
        self.head = re.match(r"(?:#.*\n)*", self.text)[0]
        self.error, found = None, []
        try:
            found = [thing for thing in yaml.safe_load_all(self.text) if thing]
        except yaml.YAMLError as error:
            self.error = error
        self.is_values = "-values" in path.name
        self.objects = [] if self.is_values else found
        self.is_document = path.parent == DOCUMENTS

    def says(self, word):
        """What stands behind `# word: ` in the head, up to the next word; None if it is not there."""
        match = re.search(rf"^# {word}: (.*\n(?:#   .*\n)*)", self.head, re.MULTILINE)
        return re.sub(r"\n#\s*", " ", match[1]).strip() if match else None

    def of_kind(self, *kinds):
        return [thing for thing in self.objects if thing["kind"] in kinds]


ALL = [Example(path) for path in sorted(FOLDER.rglob("*.yaml"))]


def external(scaled):
    """The metadata of an object's triggers that ask an external scaler."""
    return [t["metadata"] for t in scaled["spec"]["triggers"] if t["type"] in ("external", "external-push")]


def targets():
    """(namespace, kind, name) to object, of everything that the examples would create."""
    return {(thing["metadata"].get("namespace", "default"), thing["kind"], thing["metadata"]["name"]): thing
            for example in ALL for thing in example.objects}


def target_of(scaled):
    """(namespace, kind, name) of what a ScaledObject scales."""
    ref = scaled["spec"]["scaleTargetRef"]
    return scaled["metadata"].get("namespace", "default"), ref.get("kind", "Deployment"), ref["name"]


__all__ = ["ALL", "DOCUMENTS", "Example", "FOLDER", "OWN_TEXT", "ROOT", "external", "pathlib", "target_of", "targets"]
