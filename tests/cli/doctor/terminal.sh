#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a terminal: colors, lines that fit, commands that can be copied nevertheless, pending checks.
. "$TS_SOURCE/tests/cli/live.sh"

python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: no pseudo-terminals"; exit 77; }
export PYTHONPATH=$TS_SOURCE/tests/lib PYTHONDONTWRITEBYTECODE=1
cat >look.py <<'PY'
import re, sys
import on_terminal
columns = int(sys.argv[1])
text = on_terminal.run(columns, sys.argv[2:])
if "--limit" in sys.argv:
    print("waiting:", re.findall(r"waiting for (\w+)", text)[:1])
text = re.sub(r"(\r\033\[K[^\r\n]*)+\r\033\[K", "", text)
print("colours:", sorted(set(re.findall(r"\033\[(\d+)m", text))) != [])
text = re.sub(r"\033\[\d+m", "", text)
assert "\033" not in text, text
for line in text.splitlines():
    assert len(line) <= columns, line
# The commands, as a shell reads them.
if "duckdb" in sys.argv:
    print("command:", *re.findall(r"^  \[1\]  (.*)", text.replace(" \\\n       ", " "), re.M))
PY
python3 look.py 60 "$TRACESMITH" doctor agent clock compression
python3 look.py 100 "$TRACESMITH" doctor agent clock compression
NO_COLOR=1 python3 look.py 60 "$TRACESMITH" doctor agent
# A path and a command that are longer than a line.
long=$PWD/live/$(printf 'a_rather_long_name/%.0s' 1 2 3 4 5 6 7 8)
(umask 077 && mkdir -p "$long")
TRACESMITH_LIVE_DIR=$long python3 look.py 60 "$TRACESMITH" doctor live_directory shared_memory >/dev/null
TRACESMITH_DUCKDB=/nonexistent "$TRACESMITH" doctor --json duckdb | python3 -c '
import json, sys
print("command:", json.load(sys.stdin)["checks"][0]["fix"])' >fix.txt
TRACESMITH_DUCKDB=/nonexistent python3 look.py 60 "$TRACESMITH" doctor duckdb | grep command >command.txt
diff fix.txt command.txt
# A check that takes longer than a second is named while it runs; on a busy machine it is given more
# time.
mkdir fake
printf '#!/bin/sh\nexec /bin/sleep 60\n' >fake/python3
chmod +x fake/python3
for limit in 2 20; do
	python3 look.py 60 "$(command -v env)" PATH="$PWD/fake:$PATH" "$TRACESMITH" doctor --limit $limit python >waiting.txt
	! grep -q 'waiting: .*python' waiting.txt || break
done
cat waiting.txt
