# SPDX-License-Identifier: Apache-2.0
"""Builds wheels of the Python package, with nothing but the standard library, CMake and a compiler.

pip calls the functions of PEP 517 and PEP 660 at the end (`pip install .`, `pip install -e .`,
`python3 -m build`). scripts/wheel, which cross-compiles the wheels of a release, runs

    python3 packaging/tracesmith_build.py --build DIR --platform TAG [--notices FILE] [--out DIR]

A wheel has the tool as a script, the libraries in tracesmith/lib/, and extension modules for one
interpreter or, with the stable ABI, for all. The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NAME = "tracesmith"
SUMMARY = "Records what a program does on its GPUs and NPUs, analyzes it, and replays it"
# pandas reads tables through pyarrow.
EXTRAS = {"arrow": ["pyarrow"], "pandas": ["pandas", "pyarrow"], "polars": ["polars"], "torch": ["torch"]}
CLASSIFIERS = [
    "Development Status :: 4 - Beta",
    "Intended Audience :: Developers",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: C",
    "Programming Language :: Python :: 3",
    "Programming Language :: Python :: Free Threading",
    "Topic :: Software Development :: Debuggers",
    "Topic :: System :: Monitoring",
    "Typing :: Typed",
]
# Written next to the libraries; the tool looks for its own build id there.
BUILD_ID_FILE = "build-id"


class BuildError(Exception):
    """What is missing, and what to do; shown without a traceback where possible."""


# ---- metadata ----


def version() -> str:
    match = re.search(r"project\(tracesmith VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert match, "CMakeLists.txt names no version"
    stated = re.search(r'__version__ = "([^"]*)"', (ROOT / "python/tracesmith/__init__.py").read_text())
    if not stated or stated[1] != match[1]:
        raise BuildError(f"python/tracesmith/__init__.py does not have version {match[1]} of CMakeLists.txt")
    return match[1]


def metadata(licences: list[str]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {NAME}",
        f"Version: {version()}",
        f"Summary: {SUMMARY}",
        "License-Expression: Apache-2.0",
        *(f"License-File: {file}" for file in licences),
        "Keywords: profiler,tracing,gpu,npu,cuda,opencl,pytorch",
        "Requires-Python: >=3.9",
        *(f"Classifier: {text}" for text in CLASSIFIERS),
    ]
    for extra, packages in EXTRAS.items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {package}; extra == "{extra}"' for package in packages)]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / "README.md").read_text()]
    return "\n".join(lines)


def entry_points() -> str:
    """Plug-ins of other packages, if this package has any."""
    file = ROOT / "python/entry_points.txt"
    return file.read_text() if file.exists() else ""


# ---- files ----


def python_files() -> list[Path]:
    """Relative to python/, without what is not part of the package (tests, sources of modules)."""
    folder = ROOT / "python"
    wanted = ("*.py", "*.pyi", "py.typed")
    files = [file for pattern in wanted for file in (folder / NAME).rglob(pattern)]
    files += [*folder.glob("*.py"), folder / f"{NAME}.pth"]
    return sorted(file.relative_to(folder) for file in files)


def build_id(program: Path) -> str:
    """The GNU build id of an ELF file, in hexadecimal."""
    data = program.read_bytes()
    offset, size, count = (struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54))
    for header in range(offset, offset + size * count, size):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", data, header)
        end = at + length
        while kind == 4 and at + 12 <= end:  # PT_NOTE
            name, value, note = struct.unpack_from("<III", data, at)
            start = at + 12 + (name + 3) // 4 * 4
            if note == 3 and data[at + 12 : at + 16] == b"GNU\0":
                return data[start : start + value].hex()
            at = start + (value + 3) // 4 * 4
    raise BuildError(f"{program} has no build id: link it with -Wl,--build-id")


def needed_versions(data: bytes) -> set[str]:
    """Versions of symbols that an ELF file takes from other libraries, such as GLIBC_2.17."""
    table, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQI", data, table + i * size) for i in range(count)]
    found = set()
    for _, kind, _, _, at, _, link in sections:
        names = sections[link][4]
        while kind == 0x6FFFFFFE:  # SHT_GNU_verneed
            _, entries, _, first, following = struct.unpack_from("<HHIII", data, at)
            entry = at + first
            for _ in range(entries):
                name, next_entry = struct.unpack_from("<II", data, entry + 8)
                found.add(data[names + name : data.index(0, names + name)].decode())
                entry += next_entry
            if not following:
                break
            at += following
    return found


def oldest_glibc(files: dict[str, bytes]) -> tuple[int, int]:
    """The oldest glibc that has every version of a symbol that the files need."""
    versions = [(2, 0)]
    for data in files.values():
        if data.startswith(b"\x7fELF"):
            matches = [re.match(r"GLIBC_(\d+)\.(\d+)", name) for name in needed_versions(data)]
            versions += [(int(match[1]), int(match[2])) for match in matches if match]
    return max(versions)


def stage(build: Path, into: Path) -> None:
    """Installs the compiled parts: bin/tracesmith, tracesmith/lib/*.so, tracesmith/_*.so."""
    command = ["cmake", "--install", str(build), "--component", "wheel", "--prefix", str(into)]
    strip = not (build / "CMakeCache.txt").read_text().count("TRACESMITH_ZIG:")  # which links with -s
    subprocess.run(command + (["--strip"] if strip else []), check=True, stdout=subprocess.DEVNULL)


def compiled_files(folder: Path) -> dict[str, bytes]:
    """Contents by path in the wheel. Libraries have the name by which others link them."""
    files: dict[str, bytes] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_symlink() or not file.is_file():
            continue
        path = file.relative_to(folder).as_posix()
        path = re.sub(r"(\.so\.\d+)\.\d[\d.]*$", r"\1", path)
        files[path] = file.read_bytes()
    modules = [path for path in files if re.match(rf"{NAME}/_\w+\..*so$", path)]
    if not modules:
        raise BuildError(
            "the extension modules were not built: Python's headers are missing (Debian: python3-dev)"
        )
    return files


def python_tag(files: dict[str, bytes]) -> str:
    """Every Python 3 if there are modules for the stable ABI, else the one they were built for."""
    names = [path.rsplit("/", 1)[-1] for path in files if path.endswith(".so")]
    if all(f"{name.split('.')[0]}.abi3.so" in names for name in names if name.startswith("_")):
        return "py3-none"
    build = next(match for match in (re.search(r"\.cpython-(\d+)(\w*)-", name) for name in names) if match)
    return f"cp{build[1]}-cp{build[1]}{build[2]}"


# ---- archives ----


def archive_time() -> int:
    """Seconds since 1970 of every file: SOURCE_DATE_EPOCH, or the earliest time that a zip can hold."""
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)


def write_wheel(path: Path, files: dict[str, bytes], tag: str) -> None:
    """Adds RECORD; the files are sorted, as the order is part of the archive's bytes."""
    info = f"{NAME}-{version()}.dist-info"
    python, abi, platforms = tag.split("-")
    tags = "".join(f"Tag: {python}-{abi}-{platform}\n" for platform in platforms.split("."))
    files = dict(files)
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    licences = sorted(path.rsplit("/", 1)[-1] for path in files if path.startswith(f"{info}/licenses/"))
    files[f"{info}/METADATA"] = metadata(licences).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\n{tags}".encode()
    if entry_points():
        files[f"{info}/entry_points.txt"] = entry_points().encode()
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in sorted(files.items())
    )
    moment = time.gmtime(archive_time())[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in [*sorted(files.items()), (f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode())]:
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            is_program = data.startswith(b"\x7fELF") or data.startswith(b"#!")
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            archive.writestr(entry, data)


def assemble(build: Path, out: Path, platform: str, notices: Path | None = None) -> Path:
    """Writes the wheel of a finished build and returns its path."""
    with tempfile.TemporaryDirectory() as name:
        stage(build, Path(name))
        files = compiled_files(Path(name))
        identity = build_id(Path(name) / "bin/tracesmith")
    for match in (re.fullmatch(r"manylinux_(\d+)_(\d+)_\w+", part) for part in platform.split(".")):
        if match and oldest_glibc(files) > (int(match[1]), int(match[2])):
            raise BuildError("a file needs glibc %d.%d" % oldest_glibc(files) + f", which {platform} does not promise")
    data = f"{NAME}-{version()}.data"
    files[f"{data}/scripts/tracesmith"] = files.pop("bin/tracesmith")
    files[f"{NAME}/lib/{BUILD_ID_FILE}"] = f"{identity}\n".encode()
    for file in python_files():
        files[file.as_posix()] = (ROOT / "python" / file).read_bytes()
    for file in sorted((ROOT / "include/tracesmith").glob("*")):
        files[f"{NAME}/include/tracesmith/{file.name}"] = file.read_bytes()
    for file in sorted((ROOT / "docs/man").glob("*.1")):
        files[f"{data}/data/share/man/man1/{file.name}"] = file.read_bytes()
    if notices:
        files[f"{NAME}-{version()}.dist-info/licenses/THIRD-PARTY-NOTICES"] = notices.read_bytes()
    tag = f"{python_tag(files)}-{platform}"
    path = out / f"{NAME}-{version()}-{tag}.whl"
    out.mkdir(parents=True, exist_ok=True)
    write_wheel(path, files, tag)
    return path


def native_platform() -> str:
    return re.sub(r"[-.]", "_", sysconfig.get_platform())


# ---- building ----


def default_build() -> Path:
    """A folder for each kind of interpreter: also with or without the GIL, and for each machine."""
    name = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    return (ROOT / f"build/pip-{name}").resolve()


def is_configured(build: Path) -> bool:
    """False, too, if a program that it was configured with is gone: a CMake that pip had from PyPI
    for one installation, or the Python of a virtual environment."""
    cache = build / "CMakeCache.txt"
    if not cache.exists():
        return False
    names = "CMAKE_COMMAND|CMAKE_MAKE_PROGRAM|Python3_EXECUTABLE"
    programs = re.findall(rf"^(?:{names}):\w+=(.*)$", cache.read_text(), re.MULTILINE)
    return build != default_build() or all(shutil.which(program) for program in programs)


def run_build(build: Path) -> None:
    """Configures the build if that was not done, and builds what the package needs."""
    commands = [["cmake", "--build", str(build), "--parallel", "--target", "package-parts"]]
    if not is_configured(build):
        (build / "CMakeCache.txt").unlink(missing_ok=True)
        configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-DTRACESMITH_TESTS=OFF"]
        configure += ["-G", "Ninja"] if shutil.which("ninja") else []
        configure += [f"-DPython3_EXECUTABLE={sys.executable}", *os.environ.get("CMAKE_ARGS", "").split()]
        commands.insert(0, configure)
    for command in commands:
        if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
            raise BuildError(f"'{' '.join(command)}' failed: see above, and docs/install.md for what it needs")


def build_folder(settings: dict[str, Any] | None) -> Path:
    """pip install . --config-settings build-dir=build takes a build that exists, for the same Python."""
    return Path((settings or {}).get("build-dir", default_build())).resolve()


# ---- PEP 517 and PEP 660, called by pip ----


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Nothing if CMake is installed, so that this works without network."""
    return [] if shutil.which("cmake") else ["cmake>=3.22", "ninja"]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    build = build_folder(config_settings)
    run_build(build)
    return assemble(build, Path(wheel_directory), native_platform()).name


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Refers to the checkout: Python files take effect at once, C files after the next build."""
    build = build_folder(config_settings)
    run_build(build)
    startup = (ROOT / f"python/{NAME}.pth").read_text()
    script = f"#!/bin/sh\nexec '{build}/tracesmith' \"$@\"\n"
    files = {
        f"{NAME}.pth": f"{build}/python\n{startup}".encode(),
        f"{NAME}-{version()}.data/scripts/tracesmith": script.encode(),
    }
    tag = f"py3-none-{native_platform()}"
    path = Path(wheel_directory) / f"{NAME}-{version()}-{tag}.whl"
    write_wheel(path, files, tag)
    return path.name


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """The files that git tracks, without tests."""
    name = f"{NAME}-{version()}"
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        contents = {path: (ROOT / path).read_bytes() for path in sorted(listing.decode().split("\0")) if path}
        contents["PKG-INFO"] = metadata(["LICENSE"]).encode()
        for path, data in contents.items():
            if path.startswith("tests/"):
                continue
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mtime = len(data), archive_time()
            entry.mode = 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return f"{name}.tar.gz"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", type=Path, required=True, help="a build directory with its parts built")
    parser.add_argument("--platform", default=native_platform(), help="such as manylinux_2_17_x86_64")
    parser.add_argument("--notices", type=Path, help="licences of libraries that are linked statically")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    arguments = parser.parse_args()
    try:
        path = assemble(arguments.build, arguments.out, arguments.platform, arguments.notices)
    except BuildError as error:
        print(f"tracesmith_build: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
