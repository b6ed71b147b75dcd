#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that `tracesmith record` starts can import the package without having it: every Python
# from 3.9; older ones, and what else looks at PYTHONPATH, work as before.
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"
unset PYTHONPATH TRACESMITH_INJECT
export TRACESMITH_BACKENDS=none
package=$TS_BUILD/python/tracesmith

fail() { echo "inject: $*" >&2; exit 1; }
record() { # command...; what it prints
	rm -f t.sbt
	"$TRACESMITH" record -o t.sbt -- "$@" 2>errors || fail "$*: exit code $?: $(cat errors)"
}
expect() { # what, output, expected
	[ "$2" = "$3" ] || fail "$1: '$2' instead of '$3'"
}

cat >where.py <<'END'
import os, sys
try:
    import tracesmith
    found = os.path.dirname(tracesmith.__file__)
except ImportError:
    found = "none"
print("%s %s" % (found, [entry for entry in sys.path if "inject" in entry]))
END

# The package is found, and the folder is not in the way.
expect "build's Python" "$(record "$PYTHON" where.py)" "$package []"
expect "child" "$(record "$PYTHON" -c 'import subprocess, sys; subprocess.check_call([sys.executable, "where.py"])')" "$package []"
expect "variable of the program" "$(record sh -c 'echo $PYTHONPATH')" "$package/inject"
expect "ends of PYTHONPATH" "$(PYTHONPATH=a::b: record sh -c 'echo $PYTHONPATH')" "$package/inject:a::b:"
expect "recording in a recording" "$(record "$TRACESMITH" record -o u.sbt -- sh -c 'echo $PYTHONPATH')" "$package/inject"
expect "switched off" "$(TRACESMITH_INJECT=0 record "$PYTHON" where.py)" "none []"
for option in -I -E; do
	expect "python $option" "$(record "$PYTHON" $option where.py)" "none []"
done
# Without site, nothing runs that could remove the folder, in which there is only sitecustomize.
expect "python -S" "$(record "$PYTHON" -S where.py)" "none ['$package/inject']"
expect "events" "$(record "$PYTHON" -c 'import tracesmith
with tracesmith.span("in the package"): pass'; "$TRACESMITH" view -n "in the package" --columns name t.sbt | grep -c "in the package")" 1

# Nothing else of the tool's folders can be imported.
for module in inject sitecustomize_of_nobody _startup tests; do
	expect "import $module" "$(record "$PYTHON" -c "
try:
    import $module; print('imported')
except ImportError: print('not there')")" "not there"
done

# A package that the program has wins, and so does its own sitecustomize; usercustomize works.
mkdir -p own/tracesmith
echo 'x = 1' >own/tracesmith/__init__.py
touch own/tracesmith/_startup.py
echo 'print("sitecustomize", __name__)' >own/sitecustomize.py
expect "own package" "$(PYTHONPATH=$PWD/own record "$PYTHON" where.py)" "sitecustomize sitecustomize
$PWD/own/tracesmith []"
expect "own sitecustomize is the module" "$(PYTHONPATH=$PWD/own record "$PYTHON" -c 'import sitecustomize; print(sitecustomize.__file__)')" "sitecustomize sitecustomize
$PWD/own/sitecustomize.py"
# Errors are as without us.
for body in 'raise ValueError("broken")' 'import no_such_module' 'import sitecustomize_of_nobody' 'raise SystemExit(3)'; do
	echo "$body" >own/sitecustomize.py
	without=0
	PYTHONPATH=$PWD/own "$PYTHON" -c 'print(1)' >said.without 2>errors.without || without=$?
	with=0
	PYTHONPATH=$PWD/own "$TRACESMITH" record -o t.sbt -- "$PYTHON" -c 'print(1)' >said.with 2>errors.with || with=$?
	expect "sitecustomize: $body" "$with $(cat said.with)" "$without $(cat said.without)"
	# Without lines of the recorder, and frames of our file.
	awk '/^t.sbt: |^tracesmith|: exit code |^ *$/ { next } /^  File / { ours = /inject.sitecustomize.py/ } /^[^ ]/ { ours = 0 } !ours' \
		errors.with | diff - errors.without >&2 || fail "sitecustomize: $body: other messages"
	rm -f t.sbt
done
rm own/sitecustomize.py

# What is broken of ours is one line, and the program runs.
echo 'raise RuntimeError("no\nluck")' >own/tracesmith/_startup.py
expect "broken package" "$(PYTHONPATH=$PWD/own record "$PYTHON" where.py)" "$PWD/own/tracesmith []"
expect "its message" "$(grep -c '^tracesmith: cannot start' errors)" 1

# Every interpreter of this machine; other programs.
for python in /usr/bin/python[23]* "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python; do
	[[ ${python##*/} =~ ^python[0-9.]*t?$ ]] && [ -x "$python" ] && [ ! -L "$python" ] || [ "${python##*/}" = python ] || continue
	minor=$("$python" -c 'import sys; print("%d%02d" % sys.version_info[:2])' 2>/dev/null) || continue
	if [ "$minor" -ge 309 ]; then
		expect "$python" "$(record "$python" where.py)" "$package []"
	else
		expect "$python" "$(record "$python" where.py)" "none []"
	fi
	echo "$python: ok"
done
if command -v perl >/dev/null; then
	expect perl "$(record perl -e 'print "ok\n"')" ok
fi

# What it costs: processor time of an interpreter that does nothing; printed only.
"$PYTHON" - "$package" <<'END'
import os, statistics, sys
python, package = sys.executable, sys.argv[1]
clean = {name: value for name, value in os.environ.items() if not name.startswith(("TRACESMITH_", "PYTHON"))}
ours = dict(clean, TRACESMITH_AGENT="", PYTHONPATH=package + "/inject")
def start(environment):
    pid = os.posix_spawn(python, [python, "-c", "pass"], environment)
    usage = os.wait4(pid, 0)[2]
    return (usage.ru_utime + usage.ru_stime) * 1e3
pairs = [(start(clean), start(ours)) for _ in range(31)]
print("start of Python: median %.1f ms, with the package offered +%.1f ms" % (
    statistics.median(a for a, _ in pairs), statistics.median(b - a for a, b in pairs)))
END
