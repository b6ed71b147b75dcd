#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Hostile inputs: an exit code, a message that names the file and the byte, quickly and with little
# memory.
set -euo pipefail
. "$TS_SOURCE/tests/lib/crash.sh"
# Wall time: far above what they take, so that a busy machine does not fail.
limit_seconds=100

python3 - <<'END'
import gzip, random
random.seed(5)
event = '{"ph":"X","name":"e%d","ts":%d,"dur":1,"pid":1,"tid":1}'
good = '{"traceEvents":[' + ",".join(event % (i, i) for i in range(20000)) + "]}"
packed = gzip.compress(good.encode())
damaged = bytearray(packed)
damaged[len(damaged) // 2] ^= 0x40
middle = good.index("},{", len(good) // 2) + 1
files = {
    "good.json": good,
    "empty.json": "",
    "text.json": "hello world\n",
    "number.json": "42",
    "random.bin": random.randbytes(100000),
    "no_events.json": '{"traceEvents":{"a":1}}',
    "cut.json": good[:middle + 20],
    "cut.json.gz": packed[:len(packed) // 2],
    "damaged.json.gz": bytes(damaged),
    "head.json.gz": packed[:5],
    "syntax.json": good[:middle] + "@" + good[middle + 1:],
    "behind.json": good + "xyz",
    "nul.json": good[:middle] + "\0" + good[middle + 1:],
    "deep.json": good[:middle] + ',{"ph":"X","ts":1,"args":{"a":' + "[" * 1000000 + "]" * 1000000 + "}}]}",
    "deep_open.json": '{"traceEvents":' + "[" * 1000000,
    "types.json": '{"traceEvents":[{"ph":1,"ts":"x","pid":{},"tid":[],"name":7,"cat":9,"args":[1]},'
                  '{"ph":"X","name":"ok","ts":1,"dur":"2","pid":"a","tid":null},5,null,"x"],"stackFrames":[],"samples":{}}',
    "numbers.json": '{"traceEvents":[{"ph":"X","ts":1e400,"name":"a"},{"ph":"X","ts":' + "9" * 5000 + ',"name":"b"},'
                    '{"ph":"X","ts":1,"dur":-1e300,"name":"c","args":{"x":' + "9" * 100000 + ',"y":1e999,"z":0.'
                    + "0" * 100000 + "1}}]}",
}
for name, content in files.items():
    with open(name, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
END
cut=(cut.json cut.json.gz)
if command -v zstd >/dev/null; then
	zstd -qf good.json -o good.json.zst
	head -c $(($(stat -c %s good.json.zst) / 2)) good.json.zst >cut.json.zst
	cut+=(cut.json.zst)
else
	echo "left out: a truncated .zst (no zstd)"
fi
mkdir folder

# Nothing in these is usable: no trace remains.
for file in empty.json text.json number.json random.bin no_events.json folder absent.json head.json.gz deep_open.json; do
	expect 3 import -q $file -o out.sbt
	says "$file"
	[ ! -e out.sbt ] || fail "$file: a trace remains"
done

# These are usable up to the error: the trace is valid, and the message says where reading stopped.
for file in "${cut[@]}" damaged.json.gz syntax.json behind.json nul.json deep.json; do
	expect 3 import -q $file -o out.sbt
	says "$file" "byte "
	[ $file = cut.json.zst ] && [ ! -e out.sbt ] && continue
	expect 0 verify -q out.sbt
	[ "$(info_of out.sbt 'info["events"] > 1000 and len(info["loss"]) > 0')" = True ] ||
		fail "$file: the events before the error, or the loss, are missing"
	rm out.sbt
done

# These are JSON, and partly meaningless: that part is dropped, and counted.
for file in types.json numbers.json; do
	expect 0 import -q $file -o out.sbt
	says $file "lost"
	expect 0 verify -q out.sbt
	[ "$(info_of out.sbt 'info["events"] == 1 and len(info["loss"]) > 0')" = True ] || fail "$file: another number of events"
	rm out.sbt
done

# Outputs that cannot be written, or are the input itself.
expect 3 import -q good.json -o absent/out.sbt
says absent/out.sbt
expect 2 import -q good.json -o folder
says folder
cp good.json same.json
expect 2 import -q same.json -o same.json
cmp -s good.json same.json || fail "an import destroyed its input"
if [ "$(id -u)" -ne 0 ]; then
	mkdir -m 500 closed
	expect 3 import -q good.json -o closed/out.sbt
	says closed/out.sbt
fi

# Files that are not traces, for verbs that need one.
for file in empty.json text.json random.bin folder absent.json /dev/null; do
	for verb in info view verify; do
		expect 3 $verb $file
		says "$file"
	done
	expect 3 export $file -f chrome -o out.json
	says "$file"
	[ ! -e out.json ] || fail "$file: an export remains"
	expect 3 recover $file -o out.sbt
	says "$file"
	[ ! -e out.sbt ] || fail "$file: a trace remains"
done

# A trace full of chunk headers, and one whose few bytes stand for 52 million rows: quickly, and
# with little memory.
python3 - "$TS_SOURCE/tests/golden/v1.sbt" <<'END'
import sys
header = open(sys.argv[1], "rb").read()[:64]
open("magics.sbt", "wb").write(header + b"\x89SBTchk\n" * (1 << 19))
END
cp "$TS_SOURCE/tests/crash/many_rows.sbt" .
rss=200
is_sanitized && rss=4000
for trace in magics.sbt many_rows.sbt; do
	for verb in "info" "view --limit 3" "view --limit 3 --table frame,thread,clock_sync" verify \
		"export -f chrome -o /dev/null" "recover -q -o out.sbt"; do
		code=0
		# shellcheck disable=SC2086
		timeout $limit_seconds python3 "$TS_SOURCE/tests/lib/limited.py" --rss $rss "$TRACESMITH" $verb $trace \
			>/dev/null 2>stderr || code=$?
		[ $code -le 3 ] || fail "$verb $trace: exit code $code: $(head -c 2000 stderr)"
	done
done
