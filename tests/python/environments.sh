#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Unusual targets: other namespaces and roots, another user, a deleted program file, an unknown
# version, a program without Python.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"

cat >target.py <<'PY'
import sys, time


def waits():
    while True:
        time.sleep(0.05)


# The pid that others see: inside a namespace it has another.
print("ready", sys.argv[1] if len(sys.argv) > 1 else __import__("os").getpid(), flush=True)
waits()
PY
there="any(thread['main'] and 'waits' in functions(thread) for thread in threads)"

# ---- another user's: refused, naming the missing permission ----
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	start_python "$python" target.py
	chmod 755 . "$work"
	as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --)
	code=0
	cp "$TRACESMITH" "$work/tracesmith"
	"${as_nobody[@]}" "$work/tracesmith" stack -p "$pid" >stdout 2>stderr </dev/null || code=$?
	[ $code -eq 4 ] || fail "as nobody: exit code $code, expected 4: $(cat stdout stderr)"
	says CAP_SYS_PTRACE "$pid"
	[ "$(wc -l <stderr)" -le 2 ] || fail "as nobody: too many messages: $(cat stderr)"
	mkdir -m 777 "$work/nobody"
	code=0
	TRACESMITH_LIVE_DIR=$work/nobody "${as_nobody[@]}" timeout 300 "$work/tracesmith" sniff -p "$pid" -d 1 -o "$work/nobody/t.json" >stdout 2>stderr </dev/null || code=$?
	{ [ $code -ne 0 ] && [ $code -lt 124 ]; } || fail "sniff as nobody: exit code $code: $(cat stdout stderr)"
	says CAP_SYS_PTRACE
	stop_python "$pid"
else
	echo "left out: another user's process: needs root and setpriv"
fi

# ---- the program file is replaced, or deleted, while it runs ----
cp "$(realpath "$python")" python-copy
if ./python-copy -c 'import time' 2>/dev/null; then
	start_python ./python-copy target.py
	rm python-copy
	await_stack "$there"
	stop_python "$pid"
	cp "$(realpath "$python")" python-copy
	start_python ./python-copy target.py
	cp /bin/true python-new && mv python-new python-copy
	await_stack "$there"
	stop_python "$pid"
else
	echo "left out: a deleted program file: a copy of $python does not run"
fi

# ---- another pid and mount namespace, and another root ----
if [ "$(id -u)" = 0 ] && unshare --pid --mount --fork true 2>/dev/null; then
	# Only its parent knows its pid here: the child of unshare.
	inner_of() { pgrep -P "$1" | head -n 1; }
	in_namespace() { # command...
		: >"$work/said"
		unshare --pid --mount --fork --kill-child "$@" >"$work/said" 2>"$work/said.err" </dev/null &
		remember $!
		await "'$*' to be ready" says_ready "$work/said"
		pid=$(inner_of $!)
	}
	in_namespace "$python" target.py 1
	await_stack "$there"
	start_recording t.sbt
	await_samples t.sbt
	stop_python "$pid"
	end_recording
	trace_holds t.sbt "any('waits' in functions(sample) for sample in samples)"

	# A mount over the folder of the interpreter hides its file from us, and from itself.
	root=$(find "${PYTHON_VERSIONS:-$TS_SOURCE/build/python-versions}" -maxdepth 2 -name .complete 2>/dev/null | sort | tail -n 1) || true
	if [ -n "$root" ]; then
		root=${root%/.complete}
		inside=$(chroot "$root" mktemp -d /tmp/tracesmith-places.XXXXXX)
		cp target.py "$root$inside"
		interpreter=$(cd "$root" && ls usr/bin/python3.*[0-9] | tail -n 1)
		in_namespace chroot "$root" "/$interpreter" "$inside/target.py" 1
		await_stack "$there"
		stop_python "$pid"
		rm -rf "${root:?}$inside"
	else
		echo "left out: another root: scripts/python-versions has put none here"
	fi
else
	echo "left out: namespaces: not allowed here"
fi

# ---- no Python at all ----
sleep 60 &
remember $!
expect 3 stack -p $!
says "$!"

# ---- statically and dynamically linked: whichever is installed ----
while read -r name _ build command; do
	case $command in chroot*) continue ;; esac
	case $build in shared) kind=dynamic ;; release) kind=static ;; *) continue ;; esac
	[[ " ${kinds:-} " != *" $kind "* ]] || continue
	kinds="${kinds:-} $kind"
	start_python "$command" target.py
	await_stack "$there"
	stop_python "$pid"
	echo "$kind: $name" >>kinds
done < <("$TS_SOURCE/scripts/python-versions" --list 2>/dev/null)
