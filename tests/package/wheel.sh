#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The wheel of this build: installed without network, tried (scripts/check-wheel), the same bytes
# each time; and an editable install. TS_LONG=1: the wheels of a release, for both architectures, in
# Debian 11 and under qemu.
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"
unset PYTHONPATH TRACESMITH_RECORDER
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

fail() { echo "wheel: $*" >&2; exit 1; }
skip() { echo "skip: $*"; exit 77; }
if grep -q '^TRACESMITH_SANITIZE:STRING=.' "$TS_BUILD/CMakeCache.txt"; then
	skip "extension modules of a build with sanitizers need its run-time library in the interpreter"
fi
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || skip "no virtual environments (Debian: python3-venv)"
build() { "$PYTHON" "$TS_SOURCE/packaging/tracesmith_build.py" --build "$TS_BUILD" --out "$1"; }

wheel=$(build first)
cmp "$wheel" "$(build second)" || fail "the same build gives another wheel"
"$TS_SOURCE/scripts/check-wheel" "$wheel" "$PYTHON"

# An environment may serve several Pythons: the tool takes the libraries of its own build.
ids=two/lib/python3.%s/site-packages/tracesmith/lib
mkdir -p two/bin
ln "$TRACESMITH" two/bin/ 2>/dev/null || cp "$TRACESMITH" two/bin/
for minor in 1 2 3; do
	# shellcheck disable=SC2059 # the pattern
	at=$(printf "$ids" $minor)
	mkdir -p "$at"
	ln -s "$TS_BUILD/libtracesmith-agent.so" "$at/"
	echo 0123456789abcdef >"$at/build-id"
done
libraries() { two/bin/tracesmith doctor --json libraries | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["checks"][0]["why"])'; }
[[ $(libraries) == "the libraries in '"*" belong to another build than this tool; reinstall them: "* ]] || fail "other builds only: $(libraries)"
"$PYTHON" - "$wheel" "${ids/\%s/2}/build-id" <<'END'
import sys, zipfile
open(sys.argv[2], "wb").write(zipfile.ZipFile(sys.argv[1]).read("tracesmith/lib/build-id"))
END
rm "${ids/\%s/2}/libtracesmith-agent.so" && cp "$TS_BUILD/libtracesmith-agent.so" "${ids/\%s/2}/"
[[ $(libraries) == "$PWD/${ids/\%s/2};"* ]] || fail "one of three builds: $(libraries)"
# Also in a sandbox that forbids process_vm_readv, which elsewhere reads files safely.
"$PYTHON" - two/bin/tracesmith doctor --json libraries >sandboxed <<'END'
import ctypes, os, platform, struct, sys
number = {"x86_64": 310, "aarch64": 270}[platform.machine()]
code = b"".join(struct.pack("HBBI", *line) for line in ((0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50026), (6, 0, 0, 0x7FFF0000)))
buffer = ctypes.create_string_buffer(code)
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert not libc.prctl(38, ctypes.c_ulong(1), 0, 0, 0)
assert not libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(Filter(4, ctypes.addressof(buffer))), 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
END
grep -q "$PWD/${ids/\%s/2};" sandboxed || fail "without process_vm_readv: $(cat sandboxed)"
rm -r two

# What a program pays that has the package and does not use it.
"$PYTHON" - "$TS_SOURCE/python/tracesmith.pth" <<'END'
import os, sys, time, timeit
for name in [name for name in os.environ if name.startswith(("TRACESMITH_", "PROBING_"))]:
    del os.environ[name]
line = open(sys.argv[1]).read()
times = timeit.repeat(lambda: exec(line), number=100, repeat=7, timer=time.process_time)
print("tracesmith.pth: %.3f ms of processor time, with %d variables" % (min(times) * 10, len(os.environ)))
END

# pip builds again where it built before, unless what that was configured with is gone: a CMake of
# PyPI, which pip has for one installation, or the Python of an environment.
"$PYTHON" - "$TS_SOURCE" <<'END'
import os, pathlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/packaging")
import tracesmith_build as backend
backend.ROOT = pathlib.Path.cwd().resolve()
os.makedirs("fake")
pathlib.Path("fake/cmake").write_text('#!/bin/sh\necho "$1" >>ran\n')
os.chmod("fake/cmake", 0o755)
os.environ["PATH"] = os.path.abspath("fake") + ":" + os.environ["PATH"]
def expect(what, programs, expected):
    build = backend.build_folder(None)
    build.mkdir(parents=True, exist_ok=True)
    build.joinpath("CMakeCache.txt").write_text("".join("%s:FILEPATH=%s\n" % program for program in programs))
    backend.run_build(build)
    ran = pathlib.Path("ran").read_text().split()
    os.unlink("ran")
    assert ran == expected, "%s: %s" % (what, ran)
expect("second build", [("CMAKE_MAKE_PROGRAM", "/bin/sh"), ("Python3_EXECUTABLE", sys.executable)], ["--build"])
expect("no Ninja", [("CMAKE_MAKE_PROGRAM", "/nowhere/ninja"), ("Python3_EXECUTABLE", sys.executable)], ["-S", "--build"])
expect("no Python", [("CMAKE_MAKE_PROGRAM", "/bin/sh"), ("Python3_EXECUTABLE", "/nowhere/python")], ["-S", "--build"])
END

# Editable: Python files of the checkout, and the tool of the build.
"$PYTHON" -m venv editable
editable/bin/pip install -q --no-index -e "$TS_SOURCE" --config-settings build-dir="$TS_BUILD" || fail "pip install -e"
[ "$(editable/bin/python -c 'import tracesmith._startup as s, os; print(os.path.realpath(s.__file__))')" = "$TS_SOURCE/python/tracesmith/_startup.py" ] ||
	fail "an editable install has other files"
editable/bin/tracesmith record -o t.sbt -- editable/bin/python -c 'import tracesmith
with tracesmith.span("editable"): pass'
"$TRACESMITH" view -n editable --columns name t.sbt | grep -q editable || fail "no span of an editable install"
editable/bin/pip uninstall -qy tracesmith
[ -z "$(find editable -name '*tracesmith*')" ] || fail "an editable install leaves files"
echo "editable: ok"

[ -n "${TS_LONG:-}" ] || exit 0

# --- the wheels of a release

"$TS_SOURCE/scripts/wheel" --out release 2>wheel.log || fail "scripts/wheel: $(tail -n 5 wheel.log)"
cat wheel.log
! grep -q 'LEFT OUT' wheel.log || fail "something is left out"
case $(uname -m) in
x86_64) native=x86_64 other=aarch64 other_debian=arm64 ;;
*) native=aarch64 other=x86_64 other_debian=amd64 ;;
esac
"$TS_SOURCE/scripts/check-wheel" release/*_$native.whl "$PYTHON"
auditwheel=$(command -v auditwheel) || {
	"$PYTHON" -m venv audit
	audit/bin/pip install -q auditwheel >pip.log 2>&1 && auditwheel=audit/bin/auditwheel || true
}
if [ -n "$auditwheel" ]; then
	for wheel in release/*.whl; do
		"$auditwheel" show "$wheel" >shown
		grep -q '"manylinux_2_17_' shown || fail "auditwheel: $(cat shown)"
	done
	echo "auditwheel: manylinux_2_17"
else
	echo "not checked by auditwheel, which cannot be installed from PyPI: $(tail -n 1 pip.log)"
fi

# pip of this Python installs for another one: the wheels have no step that runs there.
install_into() { # folder, machine
	editable/bin/pip install -q --no-index --no-deps --platform "manylinux_2_17_$2" --only-binary :all: --target "$1" release/*_"$2".whl
}
cat >spans.py <<'END'
import tracesmith
with tracesmith.span("a span", "check", number=1):
    pass
END

# Debian 11: glibc 2.31 and Python 3.9.
root=$TS_SOURCE/build/python-versions/bullseye
if [ -e "$root/.complete" ] && [ "$(id -u)" = 0 ]; then
	rm -rf "$root/tmp/check"
	install_into "$root/tmp/check" $native
	cp spans.py "$root/tmp/check/"
	cat >"$root/tmp/check/run.sh" <<'END'
set -e
unset TRACESMITH_LIVE_DIR
mount -t proc proc /proc
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
cd /tmp/check
bin/tracesmith record -o t.sbt -- python3.9 spans.py
bin/tracesmith view -n "a span" --columns name t.sbt
PYTHONPATH=/tmp/check python3.9 -c 'import tracesmith
print([row.name for row in tracesmith.open("t.sbt").slice])'
END
	output=$(unshare --mount chroot "$root" sh /tmp/check/run.sh) || fail "Debian 11: $output"
	[ "$(tail -n 1 <<<"$output")" = "['a span']" ] || fail "Debian 11: $output"
	rm -rf "$root/tmp/check"
	echo "Debian 11: ok"
else
	echo "not tried in Debian 11: no $root (scripts/python-versions bullseye, as root)"
fi

# The other machine, emulated: its tool, and its extension modules in its Python.
if command -v qemu-$other >/dev/null && dpkg --print-foreign-architectures 2>/dev/null | grep -qx $other_debian; then
	mkdir python
	minor=$(apt-cache depends python3-minimal:$other_debian | sed -n 's/.*Depends: \(python3\.[0-9]*\)-minimal.*/\1/p')
	(cd python && apt-get -q -o APT::Sandbox::User=root download "$minor-minimal:$other_debian" "lib$minor-minimal:$other_debian" \
		"lib$minor-stdlib:$other_debian" "libexpat1:$other_debian" "zlib1g:$other_debian" >apt.log 2>&1 &&
		for file in *.deb; do dpkg-deb -x "$file" root; done) || fail "no Python for $other: $(tail -n 3 python/apt.log)"
	install_into "$PWD/foreign" $other
	emulate() {
		QEMU_LD_PREFIX=/ qemu-$other -E "LD_LIBRARY_PATH=$PWD/python/root/lib/$other-linux-gnu:$PWD/python/root/usr/lib/$other-linux-gnu" "$@"
	}
	"$TRACESMITH" record -o here.sbt -- editable/bin/python -c 'print(1)' >/dev/null
	[ "$(emulate foreign/bin/tracesmith --version)" = "$("$TRACESMITH" --version)" ] || fail "$other: --version"
	emulate foreign/bin/tracesmith info --json here.sbt >there.json
	"$TRACESMITH" info --json here.sbt | diff - there.json || fail "$other: info differs"
	output=$(PYTHONPATH=$PWD/foreign emulate "python/root/usr/bin/$minor" -c 'import sys, tracesmith
assert not tracesmith.is_enabled()
with tracesmith.span("a span"): pass
print(sys.version_info[:2], len(list(tracesmith.open("here.sbt").process)) > 0)') || fail "$other: $output"
	echo "$other under qemu: $output"
else
	echo "not tried on $other: no qemu-$other, or no packages of $other_debian (make cross installs both)"
fi
