#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that read the stacks of Python programs: starts them, waits for their output, runs the
# tool.
. "$TS_SOURCE/tests/lib/crash.sh"
. "$TS_SOURCE/tests/lib/processes.sh"
targets=${targets:?}

# The interpreter itself, not a script that starts it.
# shellcheck disable=SC2034 # for those who source this
python=${PYTHON:-$(python3 -c 'import sys; print(sys.executable)')} || { echo "skip: no python3"; exit 77; }

shared=/dev/shm
[ -w $shared ] || shared=${TMPDIR:-/tmp}
work=$(mktemp -d "$shared/tracesmith-python.XXXXXX")
export TRACESMITH_LIVE_DIR=$work/live
unset TRACESMITH_OUT TRACESMITH_LIVE TRACESMITH_AGENT TRACESMITH_RECORDER TRACESMITH_BACKENDS
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

end_all() {
	kill_remembered
	rm -rf "$work"
}
trap end_all EXIT

# Waits until a command succeeds; with a generous limit for busy machines.
await() { # what, command...
	local what=$1 i
	shift
	for ((i = 0; i < 4800; i++)); do
		if "$@"; then
			return 0
		fi
		sleep 0.05
	done
	fail "waited in vain for: $what: $(tail -n 3 "$work"/*.err 2>/dev/null; head -c 1500 "$work/stack.json" 2>/dev/null)"
}
# Sets $pid.
says_ready() { # file
	[[ $(cat "$1" 2>/dev/null) =~ ready\ ([0-9]+) ]] || return 1
	pid=${BASH_REMATCH[1]}
}
is_gone() { ! kill -0 "$1" 2>/dev/null; }

# Starts a program that prints "ready PID"; sets $pid.
start_python() { # command...
	: >"$work/said"
	"$@" >"$work/said" 2>"$work/said.err" </dev/null &
	remember $!
	await "'$*' to be ready" says_ready "$work/said"
	remember "$pid"
}

# Kills it, and waits until it is gone.
stop_python() { # pid
	kill -CONT "$1" 2>/dev/null || true
	kill -KILL "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
	await "process $1 to be gone" is_gone "$1"
}

# A Python expression on `threads`, all threads that `stack --json` shows of $pid, and on
# `processes` is true.
stack_holds() { # expression, option...
	"$TRACESMITH" stack -p "$pid" --json "${@:2}" 2>"$work/stack.err" >"$work/stack.json" || return 1
	python3 - "$1" "$work/stack.json" <<'PY'
import json, sys

processes = [json.loads(line) for line in open(sys.argv[2])]
threads = [thread for process in processes for thread in process["threads"]]


def functions(thread):
    return [frame["func"].rsplit(".", 1)[-1] for frame in thread["frames"] if frame["frame_type"] == "python"]


sys.exit(0 if eval(sys.argv[1]) else 1)
PY
}

# The same with retries: a program prints "ready" before it reaches the place where it waits.
await_stack() { # expression, option...
	await "stacks where $1" stack_holds "$@"
}

# Records $pid until it exits.
start_recording() { # trace, option...
	rm -f "$1" "$1".*
	"$TRACESMITH" record -q -o "$1" -p "$pid" --backends python --python-interval 0.005 "${@:2}" 2>"$work/record.err" &
	recorder=$!
	remember $recorder
	await "the recording $1 to begin" has_begun "$1"
}
# The trace or its journal exists and grows.
has_begun() { [ -e "$1" ] || [ -e "$1.journal" ]; }
# Waits until more has been sampled.
await_samples() { # trace
	local before
	before=$(count_samples "$1")
	await "samples in $1" has_samples "$1" $((before + 20))
}
has_samples() { [ "$(count_samples "$1")" -ge "$2" ]; } # trace, at least
# The number of samples on disk so far, in the trace and its journal. Reads a copy; the recorder
# continues with the original.
count_samples() { # trace
	local copy=$work/copy
	rm -rf "$copy" && mkdir "$copy"
	cp "$1" "$1.journal" "$copy" 2>/dev/null || true
	"$TRACESMITH" recover "$copy/${1##*/}" -o "$copy/good.sbt" >/dev/null 2>&1 || { echo 0; return; }
	samples_of "$copy/good.sbt" | wc -l
}
end_recording() {
	wait "$recorder" || fail "record ended with $?: $(cat "$work/record.err")"
}

# A Python expression on `samples`, the sampled stacks of a trace, is true, and the trace is valid.
trace_holds() { # trace, expression
	"$TRACESMITH" verify "$1" >"$work/verify" 2>&1 || fail "$1: $(cat "$work/verify")"
	samples_of "$1" >"$work/samples"
	python3 - "$2" "$work/samples" <<'PY'
import json, sys

samples = [json.loads(line) for line in open(sys.argv[2])]


def functions(sample):
    return [frame["func"].rsplit(".", 1)[-1] for frame in sample.get("stack", [])]


if not eval(sys.argv[1]):
    stacks = {}
    for sample in samples:
        key = (sample.get("pid"), sample.get("tid"), " < ".join(functions(sample))[:100])
        stacks[key] = stacks.get(key, 0) + 1
    sys.exit(f"not so: {sys.argv[1]}; {len(samples)} samples:\n" + "\n".join(f"{count} {key}" for key, count in list(stacks.items())[:20]))
PY
}

# Sampled stacks of a trace, one JSON object per line.
samples_of() { # trace
	"$TRACESMITH" view "$1" --table sample --json
}
