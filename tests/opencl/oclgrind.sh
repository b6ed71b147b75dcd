#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Oclgrind, a simulator of OpenCL devices: recordings are replayed on it and made on it, and it
# names the line of a race.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

command -v oclgrind >/dev/null || skip "no oclgrind (Debian: oclgrind)"
! is_sanitized || skip "its launcher preloads a library before the sanitizer's"
library=$(ls /usr/lib/oclgrind/liboclgrind-rt-icd.so /usr/local/lib/liboclgrind-rt-icd.so 2>/dev/null | head -n 1) || true
[ -n "$library" ] || skip "no liboclgrind-rt-icd.so"
shift=$targets/opencl_shift

# Both platforms, as in an installation with a file for each.
mkdir vendors
cp "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd vendors/
echo "$library" >vendors/oclgrind.icd

on_oclgrind() {
	case $(report 'r["device"]') in
	"opencl: Oclgrind Simulator "*) ;;
	*) fail "it ran on $(report 'r["device"]')" ;;
	esac
}
# The race detector names the kernel, the line and its text.
names_race() { # file
	grep -q 'Read-write data race' "$1" || fail "no race is reported: $(head -c 2000 "$1")"
	grep -q 'Kernel: shift' "$1" || fail "the kernel is not named"
	grep -A1 'At line 4 ' "$1" | grep -q 'to\[(i + 1) % get_global_size(0)\] = from\[i\];' ||
		fail "the line is not shown: $(grep -A1 'At line' "$1")"
}
names_no_race() { ! grep -q 'data race' "$1" || fail "a race is reported: $(head -c 2000 "$1")"; }

record race.sbt --replayable -- "$shift"
record fixed.sbt --replayable -- "$shift" --fixed

# As a device among others.
OCL_ICD_VENDORS=$PWD/vendors replays "as a device" race.sbt --device Oclgrind --check each --repeat 2
on_oclgrind
OCL_ICD_VENDORS=$PWD/vendors OCLGRIND_DATA_RACES=1 replays "with its detector" race.sbt --device Oclgrind
names_race stderr
OCL_ICD_VENDORS=$PWD/vendors OCLGRIND_DATA_RACES=1 replays "without a race" fixed.sbt --device Oclgrind
names_no_race stderr

# By its launcher, whose OpenCL takes the place of the loader.
under=("$(command -v oclgrind)" --data-races)
"${under[@]}" "$TRACESMITH" replay --json race.sbt --check each >replay.json 2>stderr || fail "oclgrind tracesmith replay: $(cat stderr)"
on_oclgrind
names_race stderr
"${under[@]}" "$TRACESMITH" replay --json fixed.sbt --check each >replay.json 2>stderr || fail "oclgrind tracesmith replay: $(cat stderr)"
names_no_race stderr

# Recorded on it: the same result, and a replay elsewhere.
"${under[@]}" "$TRACESMITH" record -q --replayable -o there.sbt -- "$shift" >printed 2>stderr || fail "oclgrind tracesmith record: $(cat stderr)"
diff <("$shift") printed || fail "another result"
names_race stderr
replays "recorded on it" there.sbt --check each
# Its functions call each other by name: such a call, made while the window is closed, is not one of
# the program, which waits until it is.
timeout -k 5 120 oclgrind "$TRACESMITH" record -q --replayable -o left.sbt -- "$shift" --leave >printed 2>stderr || fail "a program that releases nothing: exit code $?: $(cat stderr)"
"$TRACESMITH" view left.sbt --table api_call --name clRetain\* >retained
! grep clRetain retained || fail "calls of Oclgrind are recorded"
replays "recorded on it, nothing released" left.sbt --check each

# The other way around its library comes before ours: refused, with what to do.
expect 2 record --replayable -o no.sbt -- oclgrind "$shift"
says "'oclgrind' puts its own OpenCL before the recorded one" "oclgrind [OPTION...] tracesmith record [OPTION...] -- PROGRAM"
[ ! -e no.sbt ] || fail "a trace was written"
expect 0 record -q --backends host -o host.sbt -- oclgrind "$shift"

# The doctor finds it, or says how to get it.
doctor() { # PATH, text...
	local text
	PATH=$1 "$TRACESMITH" doctor opencl_oclgrind >doctor.log || true
	for text in "${@:2}"; do
		grep -qF -- "$text" doctor.log || fail "doctor does not say '$text': $(cat doctor.log)"
	done
}
doctor "$PATH" "/oclgrind: " "1 yes"
mkdir -p empty/bin
doctor "$PWD/empty/bin" "no oclgrind in PATH" "sudo apt install oclgrind" "1 absent"
printf '#!/bin/sh\n' >empty/bin/oclgrind
chmod +x empty/bin/oclgrind
doctor "$PWD/empty/bin" "its library cannot" "--reinstall oclgrind" "1 no"
echo "races are named"
