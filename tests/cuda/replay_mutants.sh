#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Single changes of what was captured: a replay finds each of them, at that command.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

record whole.sbt --replayable=checked -- "$work" plain globals launch_kinds pinned graph_explicit streams
mutants=0
found() { # what, which, change
	"$targets/mutate_stream" whole.sbt mutant.sbt "$2" "$3" >sequence 2>stderr || fail "$1: $2 $3: $(cat stderr)"
	replay_json 1 mutant.sbt --check each
	[ "$(report 'r["verdict"]')" = "differs from recording" ] || fail "$1: $(cat replay.json)"
	[ "${4:-same}" != same ] || [ "$(report 'r["command"]')" = "$(cat sequence)" ] ||
		fail "$1: command $(report 'r["command"]') is named, not $(cat sequence): $(cat replay.json)"
	mutants=$((mutants + 1))
}

# The copy alone changes nothing.
"$targets/mutate_stream" whole.sbt mutant.sbt launch:fill none >sequence
replays "unchanged" mutant.sbt --check each --repeat 2
replays "unchanged" mutant.sbt

found "bytes from the host" copy:1 flip:5
found "a parameter" launch:fill flip:8
found "a pointer" launch:add flip:1
found "the grid" launch:write_shape 'details:"grid":[6,2,3]/"grid":[6,2,2]'
found "the pattern of a fill" fill:1 flip:0
found "offset of a fill" fill:1 to:4 other
found "a lost launch" launch:add lost other
found "the order of two launches" launch:fill swap other
echo "$mutants mutants are found"
