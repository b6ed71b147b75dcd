#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks of a job, by the environment that launchers set; and outputs named after them.
. "$TS_SOURCE/tests/cli/live.sh"
unset RANK WORLD_SIZE LOCAL_RANK "${!SLURM_@}" "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}"
export TRACESMITH_BACKENDS=none TRACESMITH_RECORDER=$TRACESMITH
host=$(uname -n)

# launch N COMMAND...: runs N ranks at the same time.
cat >launch <<'SH'
#!/bin/bash
size=$1
shift
for ((rank = 0; rank < size; rank++)); do
	RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$size "$@" &
done
wait
SH
chmod +x launch

# Ranks of the sources that have one, with the events of each file.
ranks_of() {
	for trace; do
		"$TRACESMITH" view "$trace" --table source --json |
			python3 -c '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(row["name"], "rank", row.get("rank"), "of", row.get("world_size"))'
	done
}
sizes() { sed -E -e 's/[0-9.]+ [KMG]?i?B/SIZE/g' -e "s/$host/HOST/g" -e "s#$emit#PROGRAM#g"; }

echo "== a recorder in each rank: a line each"
./launch 3 "$TRACESMITH" record -o job/%r.sbt -- "$emit" instants:5 2>err.txt
sort err.txt | sizes
ranks_of job/*.sbt
rows job/2.sbt -n tick

echo "== one recorder for a launcher: a trace for each rank"
"$TRACESMITH" record -o one/of-%r.sbt -- ./launch 3 "$emit" instants:5 fork instants:2 2>&1 | sizes
ls one
ranks_of one/*.sbt
for rank in 0 1 2; do
	"$TRACESMITH" verify -q one/of-$rank.sbt
	rows one/of-$rank.sbt -n tick
done
"$TRACESMITH" info one/of-1.sbt | grep '^source  *of'
echo "again, where traces are"
"$TRACESMITH" record -q --json -o one/of-%r.sbt -- ./launch 2 "$emit" instants:4 >out.json
python3 -c '
import json, os
report = json.load(open("out.json"))
print(report["ranks"], report["events"], report["files"], report["files_kept"], report["file"])
assert report["bytes"] == sum(os.path.getsize(file["file"]) for file in report["rank_files"]), report
for file in report["rank_files"]:
    print(file["file"], file["rank"], file["world_size"], file["events"], file["lost"])'
ls one
echo "a file that is no trace stays"
echo text >one/of-1.sbt
"$TRACESMITH" record -q -o one/of-%r.sbt -- ./launch 2 "$emit" instants:4 2>&1 | sizes
"$TRACESMITH" record -o one/of-%r.sbt -- ./launch 2 "$emit" instants:4 2>&1 | sizes
cat one/of-1.sbt
ls one | sizes
echo "text exports"
"$TRACESMITH" record -q -o text/%r.json -- ./launch 2 "$emit" instants:4
ls text
python3 -c '
import json
print(len([row for row in json.load(open("text/1.json")) if row.get("name") == "tick"]))'

echo "== without a pattern: one trace, which knows the ranks"
"$TRACESMITH" record -o all.sbt -- ./launch 2 "$emit" instants:5 2>&1 | sizes
ranks_of all.sbt | sort
"$TRACESMITH" view all.sbt -n tick | grep -o 'rank [0-9]*' | sort | uniq -c
echo "after a kill, they still are"
rm -f go made.*
"$TRACESMITH" record -q --autosave 20ms -o cut.sbt -- ./launch 2 sh -c '"$0" make:made.$RANK instants:5 await:go instants:5' "$emit" &
recorder=$!
await test -e made.0
await test -e made.1
enough() { copy_written cut.sbt && [ "$(rows copy/good.sbt -n tick)" -ge 10 ]; }
await enough
kill -9 $recorder
wait $recorder || true
"$TRACESMITH" record -q --resume cut.sbt &
recorder=$!
touch go
wait $recorder
"$TRACESMITH" verify -q cut.sbt
"$TRACESMITH" view cut.sbt -n tick | grep -o 'rank [0-9]*' | sort | uniq -c

echo "== analyses know the ranks"
work=$TS_BUILD/tests/targets/accelerator_work
cat >work <<SH
#!/bin/bash
exec "$work" launches:\$((RANK * 10 + 10)) collectives:5
SH
chmod +x work
"$TRACESMITH" record -q -o gpu/%r.sbt -- ./launch 2 ./work
./launch 2 "$TRACESMITH" record -q -o each/%r.sbt -- ./work
"$TRACESMITH" record -q -o gpu.sbt -- ./launch 2 ./work
for traces in "gpu/0.sbt gpu/1.sbt" "each/1.sbt each/0.sbt" gpu.sbt; do
	# shellcheck disable=SC2086
	"$TRACESMITH" analyze $traces kernels --json >kernels.json 2>/dev/null
	python3 -c '
import json
kernels = json.load(open("kernels.json"))["kernels"]
print(sorted((row["rank"], row["name"][:4], row["count"]) for row in kernels))'
done

echo "== a program with its own recorder"
# The trace is complete, and no recorder has it.
finished() { [ -s "$1" ] && [ ! -e "$1.journal" ] && flock -n -x "$1" true; }
TRACESMITH_OUT="own/%r-%q{WORLD_SIZE}.sbt" ./launch 2 "$emit" instants:5
await finished own/0-2.sbt
await finished own/1-2.sbt
ranks_of own/*.sbt
TRACESMITH_OUT=own/%r.sbt "$emit" instants:5 instants:5 2>&1
TRACESMITH_OUT=own/%x.sbt "$emit" instants:5 2>&1
ls own

echo "== other launchers"
SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 "$TRACESMITH" record --json -o slurm/%h-%r.sbt -- "$emit" instants:1 2>&1 |
	grep -oE '"rank":1,"world_size":4|^rank 1 of 4'
ls slurm | sizes
echo "a batch script is no rank"
SLURM_PROCID=0 SLURM_NTASKS=4 "$TRACESMITH" record -o batch.sbt -- "$emit" instants:1 2>&1 | sizes
# srun started torchrun: the rank of srun is a number of the node, and not one of the job.
cp launch torchrun
SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 "$TRACESMITH" record -o nodes/%r.sbt -- ./torchrun 2 "$emit" instants:1 2>&1 | sizes
ranks_of nodes/*.sbt
mkdir -p modules/torch/distributed
echo 'import subprocess, sys; subprocess.run(["./launch", *sys.argv[1:]], check=True)' >modules/torch/distributed/run.py
SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 PYTHONPATH=$PWD/modules "$TRACESMITH" record -q -o module/%r.sbt -- \
	python3 -u -X utf8 -m torch.distributed.run 2 "$emit" instants:1
ranks_of module/*.sbt
echo "a running process"
RANK=6 WORLD_SIZE=7 "$emit" make:there await:stop &
program=$!
await test -e there
"$TRACESMITH" record --backends host --duration 100ms -o running/%r-%p.sbt -p $program 2>&1 | sed -E -e "s/$program/PID/g" -e 's/[0-9,]+ events?/N events/' | sizes
touch stop
wait $program
ls running | sed "s/$program/PID/"
"$TRACESMITH" sniff -p $$ -d 0.01 -o sniffed-%p.sbt 2>/dev/null || true
[ -s sniffed-$$.sbt ] || fail "the output of sniff has another name"

echo "== what is wrong is said"
t record --backends host -o none/%r.sbt -p $$ | sed "s/$$/PID/"
t record -o none/%d.sbt -- true
t record -o 100%.sbt -- true
t record -o "none/%q{NOT_SET}.sbt" -- true
t record --rotate 1M -o none/%r.sbt -- true
t record -o none/trace.sbt -- true
"$TRACESMITH" record -o nobody/%r.sbt -- "$emit" instants:1 2>&1 | sizes
! [ -e none ] || fail "a folder was made for nothing"
RANK=0 WORLD_SIZE=2 "$TRACESMITH" record -o no/%r.sbt -- ./missing 2>&1 || echo "exit $?"
RANK=0 WORLD_SIZE=2 "$TRACESMITH" record -q -o lost.sbt --window steps:7-8 -- "$emit" instants:1 exit:3 2>&1 || echo "exit $?"
RANK=0 WORLD_SIZE=2 "$TRACESMITH" record -o exits.sbt -- "$emit" instants:1 exit:3 2>&1 | sizes || true
