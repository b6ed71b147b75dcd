#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the functions and objects that the public headers declare, one a line, sorted.

    public_symbols.py [--agent|--map] SOURCE [COMPILER]

Those of libtracesmith; with --agent, those of the agent, which its headers mark by an attribute.
Inline functions are not symbols. --map prints the linker's version script, cmake/libtracesmith.map.
"""
import pathlib
import re
import subprocess
import sys

# A declaration that names a function, or an object of the schema.
FUNCTION = re.compile(r"\b(ts_\w+)\s*\(")
OBJECT = re.compile(r"^extern\b.*\b(ts_\w+)$", re.S)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
MARK = re.compile(r'visibility\s*\(\s*"default"\s*\)')


def preprocess(source, header, compiler):
    text = f"#include <tracesmith/{header}>\n"
    command = compiler.split() + ["-E", "-P", "-x", "c", f"-I{source}/include", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def declarations(text):
    """Top-level declarations, without the bodies of structs and inline functions."""
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    depth, piece = 0, []
    for char in text:
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0 and re.search(r"\)\s*$", "".join(piece)):
                piece = []  # the body of a function
        elif depth == 0 and char == ";":
            yield " ".join("".join(piece).split())
            piece = []
        elif depth == 0:
            piece.append(char)


def symbols(source, compiler):
    """{name: is_agent}"""
    found = {}
    for header in sorted(p.name for p in pathlib.Path(source, "include/tracesmith").glob("*.h")):
        for declaration in declarations(preprocess(source, header, compiler)):
            marked = bool(MARK.search(declaration))
            plain = ATTRIBUTE.sub("", declaration).strip()
            if "typedef" in plain or re.search(r"\bstatic\b", plain):
                continue
            match = OBJECT.match(plain) or FUNCTION.search(plain)
            if match:
                found[match[1]] = found.get(match[1], False) or marked
    return found


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    agent, version_script = "--agent" in sys.argv[1:], "--map" in sys.argv[1:]
    found = symbols(arguments[0], arguments[1] if len(arguments) > 1 else "cc")
    names = sorted(name for name, marked in found.items() if marked == agent)
    if not version_script:
        print(*names, sep="\n")
        return
    print("# Written by tests/abi/public_symbols.py --map: what the public headers declare.")
    print("TRACESMITH_0 {\nglobal:")
    print(*(f"\t{name};" for name in names), sep="\n")
    print("local:\n\t*;\n};")


if __name__ == "__main__":
    main()
