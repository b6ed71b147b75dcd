# SPDX-License-Identifier: Apache-2.0
"""Writes the line table of every code object of some modules, and the line of each instruction
according to this Python:

FORMAT FIRST_LINE TABLE_IN_HEX
OFFSET END LINE (0: none), of the instructions from one offset to another
...
(an empty line)

FORMAT is a number of enum ts_python_lines. tests/targets/python_lines.c compares them."""
import dis
import importlib
import sys
import types

MODULES = """argparse ast asyncio.base_events asyncio.tasks collections configparser copy csv ctypes.util
dataclasses datetime decimal difflib dis email.message enum fractions functools heapq html.parser http.client
inspect ipaddress json.decoder logging logging.handlers mailbox multiprocessing.pool optparse os pathlib pdb pickle
pickletools platform plistlib pprint pydoc random re shutil smtplib socket ssl statistics string subprocess tarfile
tempfile textwrap threading timeit tokenize traceback turtle typing unittest.case unittest.mock urllib.request uuid
weakref xml.dom.minidom zipfile""".split()

# Rare compiler output: long line jumps in both directions, much code in a line, no line at all.
ODD = [
    "def f(a, b):\n" + "\n" * 700 + "    return (a +\n" + "\n" * 400 + "  b)\n",
    "def g(x):\n    return (" + " + ".join("x[%d]" % i for i in range(2000)) + ")\n",
    "def h(x):\n    return [\n" + "".join("  x(%d),\n" % i for i in range(400)) + "    ][\n0](\nx)\n",
    "def k(x):\n    for i in x:\n        try:\n            with x as y:\n                yield i\n        finally:\n            del i\n",
    "async def m(x):\n    async with x as y:\n        async for z in y:\n            await z\n",
    "x = " + "lambda: " * 50 + "1",
    "match 1:\n  case 1: pass\n  case [a, *b]: print(a)\n  case {'x': y}:\n     print(y)\n",
]


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def lines_of(code):
    """Ranges of instructions that have the same line, as offset, end, line or 0."""
    size = len(code.co_code)
    if sys.version_info >= (3, 10):
        for start, end, line in code.co_lines():
            yield start, min(end, size), line or 0
        return
    starts = [(0, code.co_firstlineno)] + list(dis.findlinestarts(code)) + [(size, 0)]
    for (start, line), (end, _) in zip(starts, starts[1:]):
        yield start, end, line


def all_codes():
    for name in MODULES:
        try:
            module = importlib.import_module(name)
            with open(module.__file__, encoding="utf-8", errors="replace") as file:
                yield from codes(compile(file.read(), module.__file__, "exec"))
        except (ImportError, OSError, AttributeError, SyntaxError):
            continue
    for text in ODD:
        try:
            yield from codes(compile(text, "odd", "exec"))
        except SyntaxError:
            continue
    # A code object that begins elsewhere than it says.
    code = compile("def f():\n  x()\n  y()\n", "moved", "exec")
    if hasattr(code, "replace"):
        yield from codes(code.replace(co_firstlineno=100000))


def main():
    form = 0 if sys.version_info < (3, 10) else 1 if sys.version_info < (3, 11) else 2
    write = sys.stdout.write
    for code in all_codes():
        table = code.co_linetable if form else code.co_lnotab
        write("%d %d %s\n" % (form, code.co_firstlineno, table.hex() or "-"))
        for part in lines_of(code):
            write("%d %d %d\n" % part)
        write("\n")


main()
