#!/usr/bin/env python3
"""Turns a FileDescriptorSet into a C table for server reflection: each file's bytes, its imports, its symbols.

Usage: embed_descriptors.py SET.pb OUT.c
Reads the few fields it needs straight from the wire format (descriptor.proto), so that the build needs no Python package.
"""
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Yields (field number, bytes) of the length-delimited fields of one message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            _, at = varint(data, at)
        elif kind == 1:
            at += 8
        elif kind == 5:
            at += 4
        elif kind == 2:
            length, at = varint(data, at)
            yield tag >> 3, data[at:at + length]
            at += length
        else:
            raise SystemExit(f"unexpected wire type {kind}")


def texts(message, number):
    return [value.decode() for field, value in fields(message) if field == number]


def message_symbols(prefix, message):
    name = f"{prefix}.{texts(message, 1)[0]}"
    yield name
    for field, value in fields(message):
        if field == 3:
            yield from message_symbols(name, value)
        elif field == 4:
            yield f"{name}.{texts(value, 1)[0]}"
        elif field in (2, 8):
            yield f"{name}.{texts(value, 1)[0]}"


def file_symbols(package, file):
    for field, value in fields(file):
        if field == 4:
            yield from message_symbols(package, value)
        elif field == 5:
            yield f"{package}.{texts(value, 1)[0]}"
        elif field == 6:
            service = f"{package}.{texts(value, 1)[0]}"
            yield service
            for inner, method in fields(value):
                if inner == 2:
                    yield f"{service}.{texts(method, 1)[0]}"


def services(package, file):
    return [f"{package}.{texts(value, 1)[0]}" for field, value in fields(file) if field == 6]


def c_strings(values):
    return "".join(f'"{value}", ' for value in values) + "NULL"


def main():
    with open(sys.argv[1], "rb") as source:
        files = [value for number, value in fields(source.read()) if number == 1]
    out = ["/* Made by tools/embed_descriptors.py: do not edit. */", '#include "proto/proto.h"', ""]
    rows = []
    for index, file in enumerate(files):
        package = texts(file, 2)[0]
        body = ",".join(str(byte) for byte in file)
        out.append(f"static const unsigned char bytes_{index}[] = {{{body}}};")
        out.append(f"static const char *const imports_{index}[] = {{{c_strings(texts(file, 3))}}};")
        out.append(f"static const char *const symbols_{index}[] = {{{c_strings(file_symbols(package, file))}}};")
        out.append(f"static const char *const services_{index}[] = {{{c_strings(services(package, file))}}};")
        rows.append(f'    {{"{texts(file, 1)[0]}", bytes_{index}, sizeof(bytes_{index}), imports_{index}, '
                    f"symbols_{index}, services_{index}}},")
    out += ["", "const struct proto_file proto_files[] = {", *rows, "};"]
    out += ["const size_t proto_file_count = sizeof(proto_files) / sizeof(proto_files[0]);", ""]
    with open(sys.argv[2], "w", encoding="utf-8") as target:
        target.write("\n".join(out))


main()
