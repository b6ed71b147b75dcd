#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Output: JSON with every check once, the same in text, selected checks only, exit codes.
. "$TS_SOURCE/tests/cli/live.sh"

# The limit is for busy machines: a check that exceeds it is unknown.
code=0
"$TRACESMITH" doctor --limit 60 --json >all.json 2>err.txt || code=$?
[ ! -s err.txt ] || fail "it writes to standard error: $(cat err.txt)"
"$TRACESMITH" doctor --limit 60 >all.txt || [ $? -eq $code ] || fail "text and JSON end differently"
python3 - $code <<'PY'
import collections, json, re, sys
report = json.load(open("all.json"))
checks = report["checks"]
ids = [check["id"] for check in checks]
assert len(set(ids)) == len(ids), "an id comes twice"
assert report["doctor"] == 1
states = {"yes", "limited", "no", "absent", "unknown"}
keys = {"id", "group", "title", "state", "why", "fix", "fix_note", "used_by", "caution", "basic", "took_ns"}
for check in checks:
    assert set(check) == keys, check
    assert check["state"] in states and check["why"] and check["took_ns"] > 0, check
    for key in ("why", "fix", "fix_note"):
        assert not check[key] or "\n" not in check[key], check
    # Security consequences of a remedy are stated.
    if check["fix"] and re.search(r"sysctl|--cap-add|--pid=host|NVreg", check["fix"]):
        assert check["fix_note"], check
summary = collections.Counter(check["state"] for check in checks)
assert report["summary"] == {state: summary[state] for state in states}, report["summary"]
# Required members.
for name in ("agent live_directory shared_memory proc containers ptrace attach yama perf perf_hardware ebpf opencl "
             "opencl_devices opencl_layers opencl_recording cuda cuda_files cuda_recording cuda_replay cupti cuda_profilers gpu_counters mig mps disassembler source_lines nvml npu_smi amd duckdb python taskstats pressure").split():
    assert name in ids, name
basics = [check for check in checks if check["basic"]]
works = all(check["state"] in ("yes", "limited") for check in basics)
assert report["basics_work"] == works and int(sys.argv[1]) == (0 if works else 4)
assert works, [check for check in basics if check["state"] not in ("yes", "limited")]
print("basics:", " ".join(check["id"] for check in basics))
assert {check["id"] for check in checks if check["caution"]} == {"npu_smi", "amd", "mig", "mps"}

lines = open("all.txt").read().splitlines()
rows = {}
for line in lines[:lines.index("to fix")] if "to fix" in lines else lines:
    match = re.match(r"  (\w+) +(yes|limited|no|absent|unknown)(\*?) ", line)
    if match:
        assert match[1] not in rows, line
        rows[match[1]] = match[3]
assert list(rows) == ids, "text and JSON have other checks"
assert all(bool(rows[check["id"]]) == (check["used_by"] is None) for check in checks)
for line in lines[:lines.index("to fix")] if "to fix" in lines else []:
    assert len(line) <= 100, line
PY
tail -n 2 all.txt | sed -E 's/[0-9]+/N/g'

# Selected checks: by id, by group, in the table's order, each once.
chosen() { "$TRACESMITH" doctor --limit 60 --json "$@" | python3 -c '
import json, sys
print(*(check["id"] for check in json.load(sys.stdin)["checks"]))'; }
chosen yama agent agent
chosen cuda
chosen opencl mps opencl_layers
# Without a basic check nothing can fail.
TRACESMITH_LIVE_DIR=/no/such/folder t doctor --limit 60 clock | tail -n 1
t doctor agnet
t doctor frobnicate
t doctor --limit 0
t doctor --limit 2h
TRACESMITH_LIVE_DIR=/no/such/folder t doctor --limit 60500ms clock | tail -n 1
# A caller that ignores SIGCHLD, and one that closes the pipe.
(
	trap '' CHLD
	"$TRACESMITH" doctor --limit 60 agent >ignored.txt || fail "with SIGCHLD ignored: $(cat ignored.txt)"
)
"$TRACESMITH" doctor --limit 60 | head -n 1 >/dev/null
find live -type f | grep . && fail "files remain in the live directory"
echo 'all done'
