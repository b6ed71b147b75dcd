#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Processes that use accelerators, with a fake npu-smi that names a process of the test.
. "$TS_SOURCE/tests/cli/lib.sh"

[ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ] ||
	{ echo "skip: in a pid namespace, where the pids of npu-smi are not used"; exit 77; }

mkdir bin
ln -s "$TS_SOURCE/tests/lib/fake_npu_smi.sh" bin/npu-smi
export PATH=$PWD/bin:$PATH FAKE_TABLE=$PWD/table FAKE_NPU_SMI=print
sleep 1000 &
program=$!
trap 'kill $program' EXIT
until grep -qx sleep /proc/$program/comm; do sleep 0.05; done
cat >table <<END
+--+
| npu-smi 23.0.0 Version: 23.0.0 |
+--+
| NPU Name | Health | Power(W) Temp(C) Hugepages-Usage(page) |
| Chip | Bus-Id | AICore(%) Memory-Usage(MB) HBM-Usage(MB) |
+==+
| 6 910B3 | OK | 90.1 40 0 / 0 |
| 0 | 0000:C1:00.0 | 0 0 / 0 900/ 65536 |
+==+
| NPU Chip | Process id | Process name | Process memory(MB) |
+==+
| 6 0 | $program | sleep | 512 |
| 6 0 | 2147483646 | gone | 7 |
+==+
END

# The machine may have other users.
"$TRACESMITH" ps --devices 2>/dev/null | grep -E "^ *(pid|$program) " | sed -E -e "s/ *$program/PID/" -e 's/ +/ /g' -e 's/^ //'
"$TRACESMITH" ps --devices --json 2>/dev/null | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
row, = [row for row in rows if row["pid"] == int(sys.argv[1])]
assert 2147483646 not in [row["pid"] for row in rows]
assert row.pop("start_time") == int(open("/proc/" + sys.argv[1] + "/stat").read().rsplit(")", 1)[1].split()[19])
row["pid"] = "PID"
print(row)' $program

# A failing tool is reported, and lists no processes.
for how in fail nothing grandchild; do
	export FAKE_NPU_SMI=$how
	echo "$how: $("$TRACESMITH" ps --devices --json 2>&1 | grep -c "\"pid\":$program,") $("$TRACESMITH" ps --devices --json 2>&1 >/dev/null | grep -o 'npu-smi [a-z].*' | sed 's/; [a-z]*:.*//' || true)"
done
t ps --devices --clean
t ps --devices --all
