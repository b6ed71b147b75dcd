#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks under real launchers: mpirun of Open MPI or MPICH, and torchrun. Both ways round: a recorder
# in each rank, and one recorder of the launcher. Those that are not installed are named and left out.
# TORCH_PYTHON: a Python with torch, if the default one has none.
. "$TS_SOURCE/tests/cli/live.sh"
unset RANK WORLD_SIZE LOCAL_RANK "${!SLURM_@}" "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}"
export TRACESMITH_BACKENDS=none

checked=0
leave_out() { echo "skip: $*" >&2; }

check() { # folder
	for rank in 0 1; do
		"$TRACESMITH" verify -q "$1/$rank.sbt"
		"$TRACESMITH" info "$1/$rank.sbt" | grep -q "^source .*, rank $rank of 2\$" ||
			fail "$1/$rank.sbt is of another rank: $("$TRACESMITH" info "$1/$rank.sbt" | grep ^source)"
		[ "$(rows "$1/$rank.sbt" -n tick)" -eq 7 ] || fail "$1/$rank.sbt has other events"
	done
	[ "$(find "$1" -type f | wc -l)" -eq 2 ] || fail "more files than ranks: $(ls "$1")"
	[ "$(grep -cE '^rank [01] of 2: .*nothing lost$' err.txt)" -eq 2 ] || fail "not a line a rank: $(cat err.txt)"
	checked=$((checked + 1))
}

# Of containers without shared memory or network between ranks only the launcher is needed.
mpi=(mpirun -n 2)
if mpirun --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
	mpi+=(--allow-run-as-root --oversubscribe)
fi
if ! command -v mpirun >/dev/null; then
	leave_out "there is no mpirun"
elif ! "${mpi[@]}" true >mpi.txt 2>&1; then
	leave_out "mpirun does not work here: $(head -1 mpi.txt)"
else
	"${mpi[@]}" "$TRACESMITH" record -o mpi/%r.sbt -- "$emit" instants:7 2>err.txt || fail "$(cat err.txt)"
	check mpi
	"$TRACESMITH" record -o of-mpi/%r.sbt -- "${mpi[@]}" "$emit" instants:7 2>err.txt || fail "$(cat err.txt)"
	check of-mpi
fi

torch=("${TORCH_PYTHON:-python3}" -m torch.distributed.run --nproc-per-node 2 --master-port 0 --no-python)
if [ -z "${TS_LONG:-}" ] && [ -z "${TORCH_PYTHON:-}" ]; then
	leave_out "torchrun needs seconds to start: set TS_LONG=1 or TORCH_PYTHON"
elif ! "${torch[0]}" -c 'import torch.distributed.run' 2>/dev/null; then
	leave_out "${torch[0]} has no torch"
else
	"${torch[@]}" "$TRACESMITH" record -o torch/%r.sbt -- "$emit" instants:7 2>err.txt || fail "$(cat err.txt)"
	check torch
	"$TRACESMITH" record -o of-torch/%r.sbt -- "${torch[@]}" "$emit" instants:7 2>err.txt || fail "$(cat err.txt)"
	check of-torch
fi

[ $checked -gt 0 ] || { echo "skip: no launcher of ranks can run here"; exit 77; }
