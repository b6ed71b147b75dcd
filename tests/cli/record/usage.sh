#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage errors, and programs that cannot be started. Nothing is left behind.
. "$TS_SOURCE/tests/cli/live.sh"

t record
t record -o t.sbt
t record -p 1 -- true
t record -p x
t record -p 0
t record --resume none.sbt
t record --resume t.sbt -o u.sbt
t record -o - -- true
# Formats that only 'tracesmith export' writes; an unknown ending is part of the name.
for output in x.pftrace x.json.gz x.speedscope.json x.csv x.folded.gz; do
	t record -o $output -- touch started
done
t record --duration 0s -- true
t record --duration soon -- true
t record --duration 10 -- true
t record --autosave 0.5 -- true
t record --sample-interval 1 -- true
t record --sample-interval 2h -- true
t record --sample-rate 1e3 -- true
t record --sample-interval 1s --sample-rate 1 -- true
t record --max-size 5x -- true
t record --rotate 10 -- true
t record --rotate-keep 3 -- true
t record --on-full explode -- true
t record --window noon -- true
t record --budget 1M -p 1
t record --backends 'a;b' -- true
t record --backends host,pyhton -- true
t record --backends nothing-like-it -- true
t record --backends pyhton -p 1
t record --window nvtx: -- true
t record --window 'nvtx:a;b' -- true
t record --window nvtx:step -p 1
t record --window cuda-profiler-api --backends none -- true
t record --stacks some -- true
t record --stacks native --backends host -- true
t record --stacks all -p 1
t record --pc-sampling=3 -- true
t record --pc-sampling=14,quickly -- true
t record --pc-sampling --backends opencl -- true
t record --backends cuda -p 1
t record --replayable -p 1
t record --replayable --resume t.sbt
t record --replayable --redact -- true
t record --replayable=perhaps -- true
t record --snapshot-limit 1G -- true
t record --window-timeout 5s -- true
t record -o t.sbt -- no-such-program
t record -o t.sbt -- ./no-such-file
touch plain
t record -o t.sbt -- ./plain
t record -o t.sbt -- .
printf '#!/no/such/interpreter\n' >orphan
chmod +x orphan
t record -o t.sbt -- ./orphan
t record -o none/t.sbt -- true
TRACESMITH_AGENT_PATH=/none/agent.so t record -o t.sbt -- true
mkdir 'a b'
touch 'a b/agent.so'
TRACESMITH_AGENT_PATH='a b/agent.so' t record -o t.sbt -- true | sed "s#$(pwd -P)#HERE#"
t record -p 999999999
t record --backends none -p $$ | sed "s/$$/PID/g"
# An output that is no trace.
mkdir folder
echo 'print(1)' >train.sbt
for output in folder folder/ folder/new/ train.sbt; do
	t record -o $output -- touch started
done
cat train.sbt
[ ! -e started ] || fail "the program was started"
rm -r folder train.sbt
# Existing files stay if nothing was recorded.
echo precious >t.sbt
t record -o t.sbt -- no-such-program
cat t.sbt
rm t.sbt
ls
