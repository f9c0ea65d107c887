#!/usr/bin/env python3
"""check_layers.py [--symbols BUILD]: hold the code to src/LAYERS.

Without arguments: quoted includes against the rows, private headers, header cycles, own header first, foreign headers
against their fences. With --symbols: what the static libraries in BUILD need from each other (nm) against the rows.
"""
import functools
import pathlib
import re
import subprocess
import sys

import csource

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)
# Headers beside MODULE/MODULE.h that others may include: nvml's ABI, which the simulation shares.
PUBLIC_EXTRAS = {("nvml", "abi.h"): ("nvmlsim",)}


# Modules beside src/: simulations, whose headers others do not include.
SIMULATIONS = ("nvmlsim", "enginesim")


class Layers:
    """The parsed table: rows and fences."""

    def __init__(self):
        self.rows, self.fences, self.findings = {}, [], []
        for number, line in enumerate((csource.ROOT / "src" / "LAYERS").read_text().splitlines(), 1):
            left, separator, right = line.split("#")[0].partition(":")
            if not left.strip():
                continue
            words = left.split()
            if not separator or len(words) > 2 or (len(words) == 2 and words[0] != "fence"):
                self.findings.append(f"src/LAYERS:{number}: want `module : modules` or `fence header : modules`")
            elif words[0] == "fence":
                self.fences.append((words[1], right.split()))
            else:
                self.add_row(words[0], right.split(), number)

    def add_row(self, module, needs, number):
        for need in needs:
            if need != "*" and need not in self.rows:
                self.findings.append(f"src/LAYERS:{number}: {module} names {need}, which has no row above it")
        self.rows[module] = set(self.rows) if needs == ["*"] else set(needs)

    def allowed(self, module):
        return ", ".join(sorted(self.rows[module])) or "no other module"


def module_of(path):
    """The module a source belongs to: src/MODULE/... or a simulation of its own folder"""
    parts = path.relative_to(csource.ROOT).parts
    return parts[1] if parts[0] == "src" else parts[0]


@functools.cache
def public_headers(module):
    """MODULE.h and what it includes of its own module: base/base.h is made of the headers beside it."""
    path = csource.ROOT / "src" / module / f"{module}.h"
    text = path.read_text(errors="replace") if path.exists() else ""
    return {path.name} | {h.split("/")[1] for kind, h in INCLUDE.findall(text) if h.startswith(module + "/")}


def quoted(layers, path, header, place):
    """Findings about one quoted include."""
    own = module_of(path)
    if header.endswith(".pb-c.h") and (own == "proto" or "proto" in layers.rows[own]):
        return []
    module, slash, rest = header.partition("/")
    if not slash:
        return [] if own in SIMULATIONS else [f'{place}: "{header}", write "{own}/{header}"']
    if module == own:
        folder = csource.ROOT if own in SIMULATIONS else csource.ROOT / "src"
        return [] if (folder / header).exists() else [f'{place}: "{header}" does not exist']
    if module not in layers.rows:
        return [f'{place}: "{header}" is of no module in src/LAYERS']
    if module not in layers.rows[own]:
        return [f'{place}: {own} may not use {module} ("{header}"); allowed: {layers.allowed(own)}']
    if rest not in public_headers(module) and own not in PUBLIC_EXTRAS.get((module, rest), ()):
        return [f'{place}: "{header}" is private to {module}; include "{module}/{module}.h"']
    return []


def foreign(layers, path, header, place):
    """Findings about one include in angle brackets."""
    own = module_of(path)
    return [f"{place}: <{header}> is fenced to {', '.join(modules) or 'nobody'}"
            for prefix, modules in layers.fences if header.startswith(prefix) and own not in modules]


def own_header_first(path, includes):
    """NAME.c includes NAME.h of its module before anything else, so that each header proves to stand alone."""
    if path.suffix != ".c" or not includes:
        return []
    own = path.with_suffix(".h")
    first = includes[0][1]
    if own.exists() and first not in (own.name, f"{module_of(path)}/{own.name}"):
        return [f'{csource.name(path)}:1: the first include is {first}, want its own header {own.name}']
    return []


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def header_cycle(graph):
    """One cycle of headers that include each other, as a list of names, or None."""
    done, path = set(), []

    def visit(header):
        if header in path:
            return path[path.index(header):] + [header]
        if header in done:
            return None
        done.add(header)
        path.append(header)
        for inner in graph.get(header, ()):
            cycle = visit(inner)
            if cycle:
                return cycle
        path.pop()
        return None

    for header in sorted(graph):
        cycle = visit(header)
        if cycle:
            return cycle
    return None


def check_includes(layers):
    findings, graph = [], {}
    for path in csource.files("src", *SIMULATIONS):
        own = module_of(path)
        if own not in layers.rows:
            findings.append(f"{csource.name(path)}:1: {own} has no row in src/LAYERS")
            continue
        text = path.read_text(errors="replace")
        matches = list(INCLUDE.finditer(text))
        includes = [m.groups() for m in matches]
        findings += own_header_first(path, includes)
        for match in matches:
            place = f"{csource.name(path)}:{line_of(text, match.start())}"
            check = quoted if match[1] == '"' else foreign
            findings += check(layers, path, match[2], place)
        if path.suffix == ".h":
            key = f"{own}/{path.name}"
            graph[key] = [h if "/" in h else f"{own}/{h}" for kind, h in includes if kind == '"']
    cycle = header_cycle(graph)
    if cycle:
        findings.append(f"{cycle[0]}: headers include each other: {' -> '.join(cycle)}")
    return findings


def read_symbols(library):
    """(defined: {symbol}, undefined: {symbol: object file}) of one static library."""
    output = subprocess.run(["nm", "-A", "-g", "-P", str(library)], capture_output=True, text=True, check=True).stdout
    defined, undefined = set(), {}
    for line in output.splitlines():
        match = re.match(r".*?\[?([^\[\]/:]+\.o)\]?: (\S+) (\w)", line)
        if not match:
            continue
        if match[3] == "U":
            undefined[match[2]] = match[1]
        elif match[3] not in "wv":
            defined.add(match[2])
    return defined, undefined


def check_symbols(layers, build):
    """Every undefined symbol that another module defines must be of a module on the row."""
    findings, owner, needs = [], {}, {}
    for module in layers.rows:
        names = (f"libkgs_{module}.a", f"lib{module}.a")
        for library in sorted(p for name in names for p in pathlib.Path(build).rglob(name)):
            defined, needs[module] = read_symbols(library)
            for symbol in sorted(defined):
                if owner.setdefault(symbol, module) != module and not symbol.startswith("__"):
                    findings.append(f"{library.name}: {symbol} is defined in {owner[symbol]} too")
    if not needs:
        return [f"{build}: no libkgs_*.a there; build first"]
    for module, undefined in needs.items():
        for symbol, where in sorted(undefined.items()):
            other = owner.get(symbol, module)
            if other != module and other not in layers.rows[module]:
                findings.append(f"{module} ({where}): needs {symbol} of {other}; allowed: {layers.allowed(module)}")
    return findings


def main():
    layers = Layers()
    findings = layers.findings
    if sys.argv[1:2] == ["--symbols"]:
        findings += check_symbols(layers, csource.ROOT / sys.argv[2])
    else:
        findings += check_includes(layers)
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
