# SPDX-License-Identifier: Apache-2.0
"""Records a Python program: ``python3 -m tracesmith [-o FILE] [record options] [-m] program args``.

This is ``tracesmith record -o FILE -- python3 program args`` with this interpreter. It records more
than a recording from inside: device activity with its calls, stacks and metrics.
"""

from __future__ import annotations

import os
import sys

from .tool import find_tool

_USAGE = """\
usage: python3 -m tracesmith [OPTION...] SCRIPT [ARGUMENT...]
       python3 -m tracesmith [OPTION...] -m MODULE [ARGUMENT...]
       python3 -m tracesmith [OPTION...] -c CODE [ARGUMENT...]

Records a Python program, as `tracesmith record -- python3 SCRIPT` does.
OPTIONs are those of `tracesmith record`; write values as --name=VALUE. The
trace is -o FILE; default: the name of SCRIPT with the extension .sbt, in the
current directory.
"""


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Separates options of `tracesmith record` from arguments of the interpreter."""
    options: list[str] = []
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        if argument in ("-m", "-c") or not argument.startswith("-") or argument == "-":
            break
        at += 1
        if argument == "--":
            break
        options.append(argument)
        if argument == "-o" and at < len(arguments):
            options.append(arguments[at])
            at += 1
    return options, arguments[at:]


def _has_output(options: list[str]) -> bool:
    return any(
        option.startswith("--output") or (option.startswith("-o") and not option.startswith("--"))
        for option in options
    )


def _default_output(program: list[str]) -> str:
    if program[0] in ("-c", "-"):
        return "python.sbt"
    name = program[1] if program[0] == "-m" and len(program) > 1 else program[0]
    stem = os.path.splitext(os.path.basename(name))[0] if program[0] != "-m" else name
    return (stem or "python") + ".sbt"


def main() -> int:
    """Replaces this process with the recorder, which runs the program."""
    options, program = split(sys.argv[1:])
    if "-h" in options or "--help" in options:
        print(_USAGE, end="")
        return 0
    if not program or program in (["-m"], ["-c"]):
        print(_USAGE, end="", file=sys.stderr)
        return 2
    tool = find_tool()
    if tool is None:
        print(
            "tracesmith: the program 'tracesmith' was not found: install it, or set"
            " TRACESMITH_RECORDER to its path",
            file=sys.stderr,
        )
        return 4
    if not _has_output(options):
        options = ["-o", _default_output(program), *options]
    sys.stdout.flush()
    os.execv(tool, ["tracesmith", "record", *options, "--", sys.executable, *program])


if __name__ == "__main__":
    sys.exit(main())
