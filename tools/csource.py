"""Reading C sources for the checkers: which files there are, comments and strings blanked, functions found."""
import os
import pathlib
import re

ROOT = pathlib.Path(os.environ.get("CHECK_ROOT") or pathlib.Path(__file__).resolve().parent.parent)
FUNCTION_NAME = re.compile(r"\b(?!__attribute__\b)(\w+)\s*\(")
TOKEN = re.compile(r"\w+|[{}();:?]|[^\s\w]")


def files(*folders, suffixes=(".c", ".h")):
    """All C files under the folders of the project, sorted."""
    found = []
    for folder in folders:
        found += [p for p in (ROOT / folder).rglob("*") if p.suffix in suffixes and p.is_file()]
    return sorted(found)


def name(path):
    """How findings name a file: relative to the root."""
    return str(path.relative_to(ROOT))


def blank(text):
    """The text with comments, strings and characters blanked out, line breaks kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def blank_preprocessor(text):
    """The text without directives and macro bodies, line breaks kept."""
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.M)


class Function:
    """One function definition: name, line numbers, number of parameters, body text."""

    def __init__(self, header, header_at, body_at, body, text):
        match = FUNCTION_NAME.search(header)
        self.name = match.group(1)
        start = header_at + len(header) - len(header.lstrip())
        self.line = text.count("\n", 0, start) + 1
        self.lines = text.count("\n", start, body_at + len(body)) + 1
        self.header = header
        self.parameters = count_parameters(header[match.end():])
        self.body = body


def count_parameters(rest):
    """Number of parameters in the text after the opening parenthesis of a parameter list."""
    depth, commas, first = 1, 0, ""
    for c in rest:
        depth += (c == "(") - (c == ")")
        if depth == 0:
            break
        commas += c == "," and depth == 1
        first += c
    return 0 if first.strip() in ("", "void") else commas + 1


def functions(text):
    """The function definitions of a C source."""
    code = blank_preprocessor(blank(text))
    found, depth, last, opened = [], 0, 0, 0
    for match in re.finditer(r"[{};]", code):
        c, at = match.group(), match.start()
        if c == "{":
            if depth == 0:
                opened = at
            depth += 1
        elif c == "}":
            depth -= 1
            header = code[last:opened]
            if depth == 0 and "=" not in header and FUNCTION_NAME.search(header):
                found.append(Function(header, last, opened, code[opened:at + 1], code))
            if depth == 0:
                last = at + 1
        elif depth == 0:
            last = at + 1
    return found


class Nesting:
    """How deep the control statements of a function body nest, with or without braces."""

    def __init__(self, body):
        self.tokens = TOKEN.findall(body)
        self.at = 0
        self.deepest = 0
        self.statement(0)

    def peek(self, offset=0):
        at = self.at + offset
        return self.tokens[at] if at < len(self.tokens) else ""

    def skip_group(self, opening, closing):
        depth = 0
        while self.at < len(self.tokens):
            depth += (self.peek() == opening) - (self.peek() == closing)
            self.at += 1
            if depth == 0:
                return

    def inner(self, depth):
        self.deepest = max(self.deepest, depth + 1)
        self.statement(depth + 1)

    def statement(self, depth):
        token = self.peek()
        if token == "{":
            self.at += 1
            while self.peek() not in ("}", ""):
                self.statement(depth)
            self.at += 1
        elif token in ("if", "for", "while", "switch"):
            self.at += 1
            self.skip_group("(", ")")
            self.inner(depth)
            if token == "if" and self.peek() == "else":
                self.at += 1
                if self.peek() == "if":
                    self.statement(depth)
                else:
                    self.inner(depth)
        elif token == "do":
            self.at += 1
            self.inner(depth)
            self.expression(depth)
        elif token in ("case", "default") or (self.peek(1) == ":" and re.match(r"\w", token)):
            while self.peek() not in (":", ""):
                self.at += 1
            self.at += 1
        else:
            self.expression(depth)

    def expression(self, depth):
        """Up to the semicolon; a macro that acts as a loop, name(...) {, counts as one."""
        is_call = re.match(r"[a-z_]\w*$", self.peek()) and self.peek(1) == "("
        if is_call:
            self.at += 1
            self.skip_group("(", ")")
            if self.peek() == "{":
                self.inner(depth)
                return
        while self.peek() not in (";", ""):
            if self.peek() == "{":
                self.skip_group("{", "}")
            elif self.peek() == "(":
                self.skip_group("(", ")")
            elif self.peek() == "}":
                return
            else:
                self.at += 1
        self.at += 1
