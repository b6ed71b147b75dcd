#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The summary of a recording and `info` on its trace say the same.
. "$TS_SOURCE/tests/cli/live.sh"

agree() { # argument of record...
	"$TRACESMITH" record -q --json -o t.sbt "$@" >recorded 2>/dev/null
	"$TRACESMITH" info --json t.sbt >info
	python3 - recorded info <<'END'
import json, sys
recorded, info = (json.load(open(path)) for path in sys.argv[1:])
for key in ("events", "processes", "threads", "devices", "lost", "unknown_losses"):
    assert recorded[key] == info[key], (key, recorded, info)
print(recorded["processes"], recorded["lost"] > 0, recorded["unknown_losses"])
END
}
# Spans of two records, metrics, children, an exec, losses.
agree -- "$emit" instants:100 spans:10 counter:5 threads:2 fork instants:3
agree --backends none -- sh -c 'exec "$0" instants:5' "$emit"
agree --backends none --budget 64K -- "$emit" instants:100000
agree --backends none --max-size 64K -- "$emit" instants:100000
agree --sample-rate 0.001 -- true
