#!/usr/bin/env python3
"""check_sizes.py: the walls of the code: lines a function and a file, parameters, nesting.

Exceptions stand in tools/size-exceptions, one a line: `FILE FUNCTION LINES # reason`.
"""
import re
import sys

import csource

FOREIGN = re.compile(r"\(nghttp2_session \*")  # callbacks: nghttp2 dictates their parameters
FUNCTION_LINES, FILE_LINES, PARAMETERS, NESTING = 100, 800, 6, 4


def exceptions():
    """{(file, function): allowed lines}; a line without a reason is a finding of its own."""
    allowed, findings = {}, []
    path = csource.ROOT / "tools" / "size-exceptions"
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.match(r"(\S+)\s+(\w+)\s+(\d+)\s+#\s*\S", line)
        if match:
            allowed[match[1], match[2]] = int(match[3])
        else:
            findings.append(f"tools/size-exceptions:{number}: want `FILE FUNCTION LINES # reason`")
    return allowed, findings


def check_file(path, allowed, used):
    """Findings of one file."""
    name, text = csource.name(path), path.read_text(errors="replace")
    findings, lines = [], text.count("\n")
    if lines > FILE_LINES:
        findings.append(f"{name}:{FILE_LINES + 1}: the file has {lines} lines, at most {FILE_LINES} are allowed")
    for function in csource.functions(text):
        place = f"{name}:{function.line}: {function.name}()"
        limit = allowed.get((name, function.name), FUNCTION_LINES)
        if function.lines > FUNCTION_LINES:
            used.add((name, function.name))
        if function.lines > limit:
            findings.append(f"{place} has {function.lines} lines, at most {limit} are allowed")
        if function.parameters > PARAMETERS and not FOREIGN.search(function.header):
            findings.append(f"{place} has {function.parameters} parameters, at most {PARAMETERS} are allowed")
        deepest = csource.Nesting(function.body).deepest
        if deepest > NESTING:
            findings.append(f"{place} nests {deepest} deep, at most {NESTING} is allowed")
    return findings


def main():
    allowed, findings = exceptions()
    used = set()
    for path in csource.files("src", "nvmlsim", "enginesim", "test"):
        findings += check_file(path, allowed, used)
    for name, function in sorted(set(allowed) - used):
        findings.append(f"tools/size-exceptions: {name} {function} no longer needs its exception")
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
