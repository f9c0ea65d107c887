#!/usr/bin/env python3
"""check_banned.py: functions that are not called here, and calls that only some modules may make."""
import re
import sys

import csource

# Nowhere: no bound, no error, or a lock and a locale behind the back. What to use instead.
BANNED = {
    "strcpy": "str_copy or buf_append_str", "strcat": "buf_append_str", "sprintf": "snprintf or buf_printf",
    "vsprintf": "vsnprintf", "stpcpy": "str_copy", "strncpy": "str_copy", "strncat": "buf_append", "gets": "fgets",
    "strtok": "str_cut", "strtok_r": "str_cut", "atoi": "num_parse_i64", "atol": "num_parse_i64",
    "atoll": "num_parse_i64", "atof": "num_parse_double", "rand": "getrandom", "random": "getrandom",
    "localtime": "time_format_rfc3339", "gmtime": "gmtime_r", "ctime": "time_format_rfc3339",
    "asctime": "time_format_rfc3339", "strerror": "err_set_errno", "system": "posix_spawn", "popen": "posix_spawn",
    "alloca": "mem_new_array", "tmpnam": "mkstemp", "mktemp": "mkstemp",
}
# Product code only: {function: (the places that may call it, why)}.
FENCED = {
    ("time", "gettimeofday", "clock_gettime", "timespec_get", "clock"):
        (("src/base/",), "the clock belongs to base: take `now` as a parameter or call time_mono_ns"),
    ("malloc", "calloc", "realloc", "reallocarray", "strdup", "strndup", "asprintf", "vasprintf"):
        (("src/base/alloc.c", ), "allocate with mem_*, which has an answer to out-of-memory"),
    ("exit", "_exit", "_Exit", "quick_exit"):
        (("src/agent/", "src/cli/"), "only programs exit; return an error"),
    ("printf", "vprintf", "puts", "putchar", "perror"):
        (("src/cli/",), "only programs print; return text or an error"),
    ("nanosleep", "usleep", "sleep"):
        (("src/gpu/", "nvmlsim/"), "only threads that may block sleep"),
    ("setlocale",): ((), "numbers are read and written in the C locale"),
}
CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")


def fences():
    """FENCED by single function."""
    return {function: rule for functions, rule in FENCED.items() for function in functions}


def check_file(path, fenced):
    name = csource.name(path)
    findings = []
    code = csource.blank(path.read_text(errors="replace"))
    for match in CALL.finditer(code):
        function = match[1]
        line = code.count("\n", 0, match.start()) + 1
        if function in BANNED:
            findings.append(f"{name}:{line}: {function}() is banned, use {BANNED[function]}")
        elif function in fenced and not name.startswith("test/"):
            places, why = fenced[function]
            if not name.startswith(places):
                findings.append(f"{name}:{line}: {function}() is not for this place: {why}")
    return findings


def main():
    fenced = fences()
    findings = [f for path in csource.files("src", "nvmlsim", "enginesim", "test") for f in check_file(path, fenced)]
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
