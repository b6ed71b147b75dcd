#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Single changes of what was captured: a replay finds each of them, and names the first command and
# the buffer that show it.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

# The same checks, whether each is read or many are copied first.
checks_of() { # trace
	rows_of "$1" command | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
for check in sorted([r["sequence"], r.get("object", 0), r.get("offset", 0), r["bytes"], r["details"]["hash"]]
                    for r in rows if r["kind"] == "check"):
    print(*check)'
}
for way in copy read; do
	TRACESMITH_OPENCL_CHECKS=$way record whole.sbt --replayable=checked --keep-contents 16M -- "$targets/opencl_mutants"
	checks_of whole.sbt >checks.$way
done
diff checks.read checks.copy || fail "copies have other checks than reads"
# Their numbers, in the order in which the program creates them.
read -r initial written filled copied mapped viewed pictured _ < <(rows_of whole.sbt object | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
buffers = [r["details"] for r in rows if r["kind"] == "memory"]
print(*sorted({b["number"] for b in buffers if "origin" not in b and "image" not in b}))')

mutate() { # which, change
	"$targets/mutate_stream" whole.sbt mutant.sbt "$1" "$2" >sequence 2>stderr || fail "$1 $2: $(cat stderr)"
}

mutants=0
found() { # what, which, change, the end of the command's name, number of the buffer
	mutate "$2" "$3"
	replay_json 1 mutant.sbt --check each --as u32
	report 'r["verdict"], r["command_text"], r["buffer"], r["bytes_differing"] > 0, r["values"], sep="\n"' >shown
	mapfile -t shown <shown
	[ "${shown[0]}" = "differs from recording" ] || fail "$1: $(cat replay.json)"
	case ${shown[1]} in *", $4") ;; *) fail "$1: not at '$4': $(cat replay.json)" ;; esac
	[ "${shown[2]}" = "memory $5" ] || fail "$1: not in memory $5: $(cat replay.json)"
	[ "${shown[3]}" = True ] || fail "$1: no bytes: $(cat replay.json)"
	case ${shown[4]} in *" recorded, "*" replayed") ;; *) fail "$1: no values: $(cat replay.json)" ;; esac
	mutants=$((mutants + 1))
}

# The copy alone changes nothing.
mutate launch:scale none
expect 0 verify -q mutant.sbt
replays "unchanged" mutant.sbt --check each --repeat 2

found "value of an argument" launch:scale flip:0 "launch of 'scale'" "$initial"
found "buffer of an argument" launch:sum "details:\"object\":$written/\"object\":$mapped" "launch of 'sum'" "$filled"
found "part of a buffer" launch:part 'details:"offset":512/"offset":0' "launch of 'part'" "$viewed"
found "global size" launch:scale 'details:"global":[256]/"global":[128]' "launch of 'scale'" "$initial"
found "local size" launch:turn 'details:"local":[16]/"local":[8]' "launch of 'turn'" "$written"
found "order of two launches" launch:scale swap "launch of 'twist'" "$initial"
found "bytes of a write" copy:1 flip:100 "copy to memory $written" "$written"
[ "$(report 'r["first_byte"], r["bytes_differing"]')" = "164 1" ] || fail "one bit of a write: $(cat replay.json)"
found "offset of a write" copy:1 to:4 "copy to memory $written" "$written"
found "size of a write" copy:1 shorten:4 "copy to memory $written" "$written"
found "pattern of a fill" fill:1 flip:2 "fill of memory $filled" "$filled"
found "source of a copy" copy:2 from:4 "copy of memory $filled to memory $copied" "$copied"
found "rectangle" copy:3 'details:"origin":[8,1,0]/"origin":[12,1,0]' "copy of memory $initial to memory $viewed" "$viewed"
found "initial contents" memory:1 flip:8 "launch of 'scale'" "$initial"
found "build option" module:1 details:FACTOR=5/FACTOR=6 "launch of 'scale'" "$initial"
found "kernel source" module:1 "text:+ 17/+ 18" "launch of 'scale'" "$initial"
# What is lost has no check of its own: the next command that needs it shows it.
found "lost copy" copy:2 lost "launch of 'tally'" "$copied"
found "lost write" copy:1 lost "launch of 'turn'" "$written"
found "lost host write" host_write:1 lost "launch of 'edit'" "$mapped"
if rows_of whole.sbt command | grep -q clEnqueueWriteImage; then
	picture=$(rows_of whole.sbt object | grep '"image"' | grep -o '"number":[0-9]*' | grep -o '[0-9]*' | sort -u)
	found "pixel of an image" copy:5 flip:10 "copy to memory $picture" "$picture"
	found "origin in an image" copy:5 'details:"origin":[8,1,0]/"origin":[12,1,0]' "copy to memory $picture" "$picture"
	found "sampler" launch:look details:clamp_to_edge/clamp "launch of 'look'" "$pictured"
	found "lost write of an image" copy:5 lost "launch of 'look'" "$pictured"
else
	echo "left out: images (this device has none)"
fi
# With one worker the consumer runs when it is submitted, long before its producer.
(
	export POCL_MAX_PTHREAD_COUNT=1
	wait=$(rows_of whole.sbt command | grep -o '"wait":\[[0-9]*\]' | tail -n 1)
	found "lost wait for another queue" launch:consume "details:$wait/\"wait\":[]" "launch of 'consume'" "$copied"
)
mutants=$((mutants + 1))

# A difference of one in words that are compared with their recorded contents.
mutate host_write:1 flip:0
replay_json 0 mutant.sbt --check each --as u32 --tolerance abs=1
[ "$(report 'r["verdict"]')" = "no difference in 1 run, equals recording within abs=1" ] || fail "tolerance: $(cat replay.json)"
replay_json 1 mutant.sbt --check each --as u32 --tolerance rel=0.001
echo "$mutants mutants found"
