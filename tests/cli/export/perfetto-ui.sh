#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Perfetto reads our exports: the trace_processor of its UI counts spans, instants, arrows,
# counters, stacks and GPU stages, and reports no errors.
set -euo pipefail
. "$TS_SOURCE/tests/lib/perfetto_ui.sh"
find_perfetto_ui

# Must not occur in any of them.
faults="select name, value from stats where value > 0 and severity in ('error', 'data_loss')"

python3 "$TS_SOURCE/tests/cli/export/perfetto_ui.py" make made.json
"$TRACESMITH" import -q made.json -o made.sbt
"$TRACESMITH" export -q made.sbt -f perfetto -o made.pftrace
perfetto_query made.pftrace "$faults" \
	"select s.name, s.ts, s.dur, s.depth, t.tid, p.pid from slice s join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid) order by s.ts, s.depth, s.name" \
	"select a.name, b.name from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id order by 1, 2" \
	"select t.name, t.unit, c.ts, c.value from counter c join counter_track t on c.track_id = t.id order by 1, 3" \
	"select s.name, s.ts, s.dur, t.name from gpu_slice s join track t on s.track_id = t.id order by s.ts, s.name" \
	"select extract_arg(arg_set_id, 'debug.step'), extract_arg(arg_set_id, 'debug.path'), extract_arg(arg_set_id, 'debug.share') from slice where name = 'outer'" \
	"select count(*) from slice" >made.answers
"$TRACESMITH" export -q made.sbt -f perfetto --no-gpu-stages -o plain.pftrace
perfetto_query plain.pftrace "$faults" "select count(*) from gpu_slice" >plain.answers
python3 "$TS_SOURCE/tests/cli/export/perfetto_ui.py" check made.answers plain.answers
