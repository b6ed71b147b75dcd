#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The summary as JSON.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
kineto_json 1 >u.json
quietly import t.json u.json -o two.sbt
"$TRACESMITH" info --json t.sbt >t.info
python3 -m json.tool t.info >/dev/null
"$TRACESMITH" info --json t.sbt two.sbt >both.info
[ "$(head -n 1 both.info)" = "$(cat t.info)" ] || fail "several traces: several objects"
python3 - <<'PY'
import json, os
one, two = map(json.loads, open("both.info"))
for name, info in ("t.sbt", one), ("two.sbt", two):
    assert info["file"] == name and info["bytes"] == os.path.getsize(name)
    assert info["version"] == "1.0" and info["finished"] and info["damaged_bytes"] == 0
    tables = info["tables"]
    assert info["events"] == sum(tables.get(t, 0) for t in ("slice", "gpu_op", "api_call", "sample", "mark", "counter"))
    assert set(info["table_bytes"]) == set(tables) and sum(info["table_bytes"].values()) < info["bytes"]
    print(json.dumps({k: info[k] for k in ("events", "time_range_ns", "processes", "threads", "devices", "streams",
                                            "loss", "meta")}))
    print(json.dumps(info["sources"]))
print(json.dumps({t: n for t, n in one["tables"].items() if t != "string"}))
PY
# Only a header and an index.
echo '[]' >empty.json
"$TRACESMITH" import -q empty.json -o empty.sbt 2>/dev/null
"$TRACESMITH" info --json empty.sbt | python3 -c '
import json, sys
info = json.load(sys.stdin)
print(info["events"], info["time_range_ns"], info["loss"])'
