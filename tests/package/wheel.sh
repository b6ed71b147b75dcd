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

# What a program pays that has the package and does not use it.
"$PYTHON" - "$TS_SOURCE/python/tracesmith.pth" <<'END'
import os, sys, time, timeit
for name in [name for name in os.environ if name.startswith(("TRACESMITH_", "PROBING_"))]:
    del os.environ[name]
line = open(sys.argv[1]).read()
times = timeit.repeat(lambda: exec(line), number=100, repeat=7, timer=time.process_time)
print("tracesmith.pth: %.3f ms of processor time, with %d variables" % (min(times) * 10, len(os.environ)))
END

# Editable: Python files of the checkout, and the tool of the build.
"$PYTHON" -m venv editable
editable/bin/pip install -q --no-index -e "$TS_SOURCE" -C build-dir="$TS_BUILD" || fail "pip install -e"
[ "$(editable/bin/python -c 'import tracesmith._startup as s, os; print(os.path.realpath(s.__file__))')" = "$TS_SOURCE/python/tracesmith/_startup.py" ] ||
	fail "an editable install has other files"
editable/bin/tracesmith record -o t.sbt -- editable/bin/python -c 'import tracesmith
with tracesmith.span("editable"): pass'
"$TRACESMITH" view -n editable --columns name t.sbt | grep -q editable || fail "no span of an editable install"
editable/bin/pip uninstall -qy tracesmith
[ -z "$(find editable -name '*tracesmith*')" ] || fail "an editable install leaves files"
echo "editable: ok"

[ -n "${TS_LONG:-}" ] || exit 0

"$TS_SOURCE/scripts/wheel" --out release 2>wheel.log || fail "scripts/wheel: $(tail -n 5 wheel.log)"
cat wheel.log
! grep -q 'LEFT OUT' wheel.log || fail "something is left out"
machine=$(uname -m)
native=$(echo release/*_"$machine".whl)
"$TS_SOURCE/scripts/check-wheel" "$native" "$PYTHON"
if "$PYTHON" -m auditwheel --version >/dev/null 2>&1; then
	for wheel in release/*.whl; do
		"$PYTHON" -m auditwheel show "$wheel" | tee audit
		grep -q 'constrains the platform tag to "manylinux_2_17_\|following platform tag:.*manylinux_2_17' audit || true
	done
else
	echo "skip: no auditwheel (PyPI)"
fi
