#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Output files: none is written through a symbolic link or into a file of another user, whichever
# verb writes it and under whatever name; and only the owner may read them, unless --mode says so.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

cat >t.json <<'JSON'
{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 20},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 2, "dur": 3, "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 6, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": 7}}]}
JSON
"$TRACESMITH" import -q t.json -o t.sbt
head -c 500 t.sbt >cut.sbt
run=(record -q --backends none)
emit=("$emitter" --oracle "$oracle" --count 10)

# ---- links and files of others ----

# Each line: the name that is taken, and the verb that would write it.
writers() {
	cat <<'LINES'
out.json export -q t.sbt -f chrome -o out.json
out.json.part export -q t.sbt -f chrome -o out.json
out/slice.csv export -q t.sbt -f csv -o out/
out.sbt import -q t.json -o out.sbt
out.sbt.part import -q t.json -o out.sbt
out.sbt recover -q cut.sbt -o out.sbt
out.sbt.part recover -q cut.sbt -o out.sbt
out.sbt align -q t.sbt -o out.sbt
out.sbt.part align -q t.sbt -o out.sbt
out.sbt replay -q t.sbt --target emulator -o out.sbt
out.sbt.part replay -q t.sbt --target emulator -o out.sbt
out.sbt RECORD -o out.sbt
out.sbt.journal RECORD -o out.sbt
out.sbt.journal.new RECORD -o out.sbt
out.sbt.reserve RECORD -o out.sbt
out.json RECORD -o out.json
out.json.sbt RECORD -o out.json
out.json.part RECORD -o out.json
LINES
}

# Runs one of them; it must refuse to write, and name the file.
refuses() { # reason, name, argument...
	local reason=$1 name=$2
	shift 2
	if [ "$1" = RECORD ]; then
		shift
		expect 3 "${run[@]}" "$@" -- "${emit[@]}"
	else
		expect 3 "$@"
	fi
	says "'$name' $reason"
}

kinds=(link)
[ "$(id -u)" != 0 ] || kinds+=(stranger)
while read -r name arguments; do
	for kind in "${kinds[@]}"; do
		mkdir out
		if [ "$kind" = link ]; then
			kept=t.json
			cp $kept precious
			ln -s "$PWD/precious" "$name"
			reason="is a symbolic link"
		else
			# A trace: other files are refused for that.
			kept=t.sbt
			cp $kept precious
			cp $kept "$name"
			chmod 666 "$name"
			chown 54321 "$name"
			reason="belongs to user 54321"
		fi
		# shellcheck disable=SC2086
		refuses "$reason" "$name" $arguments
		cmp -s $kept "$name" && cmp -s $kept precious || fail "$arguments: '$name' was written"
		[ "$kind" != link ] || [ -L "$name" ] || fail "$arguments: the link '$name' is gone"
		checks=$((checks + 1))
		rm -rf out out.*
	done
done < <(writers)

# A recorder that a program started has nobody to tell: its log is not written.
echo precious >precious
ln -s precious none.sbt.log
expect 3 record --detached --area 1-1-missing -o none.sbt
[ "$(cat precious)" = precious ] && [ -L none.sbt.log ] || fail "the log was written through a link"
rm none.sbt.log
ln precious none.sbt.log
expect 3 record --detached --area 1-1-missing -o none.sbt
[ "$(cat precious)" = precious ] || fail "the log was written into a file with another name"
# A file with another name is not written in place; a complete file replaces only one name.
cp t.sbt precious
ln precious out.sbt
refuses "has another name" out.sbt RECORD -o out.sbt
cmp -s t.sbt precious || fail "a recording was written into a file with another name"
expect 0 import -q t.json -o out.sbt
cmp -s t.sbt precious && [ "$(stat -c %h out.sbt)" = 1 ] || fail "an import was written into a file with another name"
rm out.sbt
# A pipe is written, never replaced; descriptors are the caller's.
mkfifo out.pipe
cat out.pipe >piped.json &
# Refused until the reader has opened it.
wait_until 60 "$TRACESMITH" export -q t.sbt -o out.pipe 2>/dev/null || fail "a pipe is not written"
wait $!
for verb in "align -q t.sbt" "replay -q t.sbt --target emulator"; do
	# shellcheck disable=SC2086
	expect 3 $verb -o out.pipe
	says "'out.pipe' is not a regular file"
	[ -p out.pipe ] || fail "$verb: the pipe is gone"
done
"$TRACESMITH" export -q t.sbt -o out.json
cmp out.json piped.json || fail "a pipe: $(cat piped.json)"
(echo first; "$TRACESMITH" export -q t.sbt -o /dev/stdout; "$TRACESMITH" export -q t.sbt -o >(cat >shell.json)) >written
wait_until 60 cmp -s out.json shell.json || fail "a pipe of the shell: $(cat shell.json)"
cmp <(echo first; cat out.json) written || fail "/dev/stdout: $(cat written)"
rm -rf out.* none.* written piped.json shell.json
checks=$((checks + 1))

# ---- a failure keeps the earlier file ----

python3 - >big.json <<'PYTHON'
import json, random
random.seed(1)
print(json.dumps([{"ph": "X", "name": "op%d" % random.randrange(10**9), "pid": 1, "tid": 1, "ts": random.random() * 1e9,
                   "dur": random.random() * 1e6} for i in range(20000)]))
PYTHON
"$TRACESMITH" import -q big.json -o big.sbt
head -c $(($(stat -c %s big.sbt) - 100)) big.sbt >big-cut.sbt
while read -r name arguments; do
	mkdir kept
	cp t.sbt "kept/$name"
	# A file size limit, in 1024-byte units, simulates a full disk.
	code=0
	# shellcheck disable=SC2086
	(trap '' XFSZ; ulimit -f 64; exec "$TRACESMITH" $arguments) >stdout 2>stderr || code=$?
	[ $code -eq 3 ] || fail "$arguments: exit code $code: $(cat stderr)"
	cmp -s t.sbt "kept/$name" || fail "$arguments: $name was changed: $(cat stderr)"
	[ ! -e "kept/$name.part" ] || fail "$arguments: the part was left"
	rm -rf kept
	checks=$((checks + 1))
done <<'LINES'
out.json export -q big.sbt -f chrome -o kept/out.json
slice.csv export -q big.sbt -f csv -o kept/
out.sbt import -q big.json -o kept/out.sbt
out.sbt recover -q big-cut.sbt -o kept/out.sbt
out.sbt align -q big.sbt -o kept/out.sbt
out.sbt replay -q big.sbt --target emulator -o kept/out.sbt
LINES
# Bad input is such a failure, too.
cp t.sbt kept.sbt
(head -c 3000 big.json; echo "}}]") >bad.json
expect 3 import -q bad.json -o kept.sbt
says "'kept.sbt' is as it was before"
cmp t.sbt kept.sbt
# So is another process that writes the file.
exec 8>>kept.sbt
flock 8
expect 3 import -q t.json -o kept.sbt
says "another process is writing 'kept.sbt'"
cmp t.sbt kept.sbt
exec 8>&-
# What a killed process left is replaced.
echo rest >kept.sbt.part
expect 0 import -q big.json -o kept.sbt
! cmp -s t.sbt kept.sbt && [ ! -e kept.sbt.part ] || fail "the rest of a killed process: not replaced"
expect 0 verify -q kept.sbt
rm -f kept.* big* bad.json
checks=$((checks + 1))

# ---- permissions ----

# What each verb writes, with these arguments and this umask.
modes() { # umask, argument...
	umask "$1"
	shift
	"$TRACESMITH" import -q t.json -o m.import.sbt "$@"
	"$TRACESMITH" export -q m.import.sbt -o m.export.json "$@"
	"$TRACESMITH" recover -q cut.sbt -o m.recover.sbt "$@"
	"$TRACESMITH" align -q m.import.sbt -o m.align.sbt "$@" >/dev/null
	"$TRACESMITH" replay -q m.import.sbt --target emulator -o m.replay.sbt "$@" >/dev/null
	"$TRACESMITH" export -q m.import.sbt -f csv -o m.folder/ "$@"
	# The files beside a trace exist while the program runs; its umask is not ours to change.
	"$TRACESMITH" "${run[@]}" -o m.record.sbt "$@" -- sh -c 'stat -c "%a %n" m.record.sbt*; umask' >beside
	"$TRACESMITH" "${run[@]}" -o m.record.json --rotate 1M "$@" -- "${emit[@]}"
	stat -c '%a %n' m.* m.folder/*
}
expect_modes() { # mode, mode of the folder, umask, argument...
	local file=$1 folder=$2
	shift 2
	rm -rf m.* beside
	(modes "$@") >all
	[ "$(wc -l <all)" -ge 9 ] || fail "files are missing: $(cat all)"
	! grep -vE "^$file |^$folder m.folder$" all || fail "$*: not $file"
	[ "$(head -n -1 beside)" = "$(printf "$file m.record.sbt%s\n" "" .journal .reserve)" ] ||
		fail "$*: while it records: $(cat beside)"
	[ "$(tail -n 1 beside)" = "$1" ] || fail "$*: the program has the umask $(tail -n 1 beside)"
	checks=$((checks + 1))
}
expect_modes 600 700 0022
expect_modes 640 750 0077 --mode 0640
expect_modes 640 750 0027 --mode umask

# From the environment, as a recorder gets it that a program starts; an option takes precedence.
mode_of() { stat -c %a "$1"; }
export TRACESMITH_MODE=0644
expect 3 record --detached --area 1-1-missing -o m.sbt
[ "$(mode_of m.sbt.log)" = 644 ] || fail "TRACESMITH_MODE: the log has the mode $(mode_of m.sbt.log)"
expect 0 export -q t.sbt -o m.json
[ "$(mode_of m.json)" = 644 ] || fail "TRACESMITH_MODE: $(mode_of m.json)"
expect 0 export -q t.sbt -o m.json --mode 0660
[ "$(mode_of m.json)" = 660 ] || fail "--mode does not take precedence: $(mode_of m.json)"
export TRACESMITH_MODE=readable
expect 0 export -q t.sbt -o m.json
says "TRACESMITH_MODE: 'readable' is neither a mode"
[ "$(mode_of m.json)" = 600 ] || fail "a wrong TRACESMITH_MODE: $(mode_of m.json)"
unset TRACESMITH_MODE
expect 2 export t.sbt -o m.json --mode 0440
says "option '--mode': '0440' is neither a mode"
echo "$checks checks"
