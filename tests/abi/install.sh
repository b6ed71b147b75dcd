#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs in C and C++ against the installed library, found by pkg-config: shared, static, and with
# the agent. What they print equals the tool's output, and what PyTorch measured itself.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }

command -v pkg-config >/dev/null || { echo "skip: pkg-config is not installed"; exit 77; }
if grep -q '^TRACESMITH_SANITIZE:[^=]*=.' "$TS_BUILD/CMakeCache.txt"; then
	echo "skip: a program without sanitizers cannot load a library with them"
	exit 77
fi
cmake --install "$TS_BUILD" --prefix "$PWD/prefix" >install.log || { cat install.log; exit 1; }
lib=$(dirname "$(find "$PWD/prefix" -name libtracesmith.a)")
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib
read -ra cflags < <(pkg-config --cflags tracesmith)
read -ra libs < <(pkg-config --libs tracesmith)
read -ra static_libs < <(pkg-config --libs --static tracesmith)
tests=$TS_SOURCE/tests/abi

readelf -d "$lib/libtracesmith.so" >dynamic
grep -q 'soname: \[libtracesmith.so.0\]' dynamic || fail "the soname"
strict=(-Wall -Wextra -Werror -pedantic)
cc -std=c11 -D_GNU_SOURCE "${strict[@]}" "${cflags[@]}" "$tests/use_library.c" -o shared "${libs[@]}"
cc -std=c11 -D_GNU_SOURCE "${strict[@]}" "${cflags[@]}" "$tests/use_library.c" -o static \
	"${static_libs[@]/#-ltracesmith/-l:libtracesmith.a}"
cc -static -std=c11 -D_GNU_SOURCE "${strict[@]}" "${cflags[@]}" "$tests/use_library.c" -o all_static \
	"${static_libs[@]}" 2>link.log || { cat link.log; exit 1; }
ldd static >needed
! grep libtracesmith needed || fail "the static program needs the shared library"
ldd shared >needed
grep -q "$lib/libtracesmith.so.0" needed || fail "the shared program does not use the library"
programs=(./shared ./static ./all_static)
for header in prefix/include/tracesmith/*.h; do
	echo "#include <tracesmith/${header##*/}>"
done >all.c
cc -std=c11 "${strict[@]}" "${cflags[@]}" -fsyntax-only all.c
if command -v c++ >/dev/null; then
	c++ -std=c++11 -x c++ "${strict[@]}" "${cflags[@]}" -fsyntax-only all.c
	c++ -std=c++17 -x c++ "${strict[@]}" "${cflags[@]}" "$tests/use_library.c" -o cxx -x none "${libs[@]}"
	programs+=(./cxx)
else
	echo "left out: there is no C++ compiler"
fi

data=$TS_SOURCE/tests/data/real/kineto
trace=$data/compiled.json.gz
{
	# From facts.json: what PyTorch measured.
	python3 - "$TS_SOURCE/tests/data/real/facts.json" <<-'END'
		import json, sys
		table = json.load(open(sys.argv[1]))["traces"]["kineto/compiled.json.gz"]["torch_table"]
		print("commands", table["commands"], "device_ns", round(table["device_us"] * 1000))
	END
	"$TRACESMITH" analyze "$trace" idle --wait 20us --steps all --json 2>notes
	for name in breakdown stragglers breakdown; do
		"$TRACESMITH" analyze "$data/nccl_ranks/rank0.json.gz" "$data/nccl_ranks/rank1.json.gz" $name --json 2>notes
	done
	"$TRACESMITH" diff "$trace" "$data/two_streams.json.gz" --json 2>notes || true
	echo "identical different"
	"$TRACESMITH" export -q "$trace" --format csv --table gpu_op -o -
	echo "all refused"
} >expected
for program in "${programs[@]}"; do
	{
		$program rows "$trace"
		$program analyze "$trace"
		$program ranks "$data/nccl_ranks/rank0.json.gz" "$data/nccl_ranks/rank1.json.gz" >ranks
		sed '$d' ranks
		$program diff "$trace" "$data/two_streams.json.gz"
		$program csv "$trace"
		$program errors "$trace"
	} >got
	diff expected got || fail "$program does not say what the tool says"
	$program state "$trace" >state
	$program edges "$trace" >edges
	python3 - "$TRACESMITH" "$trace" "$(cat state)" "$(cat edges)" "$(tail -n 1 ranks)" "$(head -n 1 expected)" <<-'END'
		import csv, json, subprocess, sys
		tool, trace, state, edges, ranks, facts = sys.argv[1:]

		def run(*arguments):
		    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=True).stdout

		def numbers(text):
		    words = text.split()
		    return dict(zip(words[::2], map(int, words[1::2])))

		state, edges, ranks, facts = map(numbers, (state, edges, ranks, facts))
		rows = list(csv.DictReader(run("state", trace, "--commands", "--csv").splitlines()))
		assert state["rows"] == len(rows), (state, len(rows))
		running = sum(float(r["duration_us"]) for r in rows if r["state"] == "running")
		assert abs(state["running_ns"] / 1000 - running) < 1, (state, running)
		assert state["commands"] == facts["commands"], (state, facts)
		assert state["running_ns"] == facts["device_ns"], (state, facts)
		lanes = json.loads(run("state", trace, "--json"))["lanes"]
		device = sum(lane["window_us"] for lane in lanes if lane["stream"] is None)
		assert abs(state["device_ns"] / 1000 - device) < 1, (state, device)
		all_edges = json.loads(run("state", trace, "--edges", "--json"))
		assert edges["edges"] == len(all_edges), (edges, len(all_edges))
		assert edges["launches"] == sum(edge["kind"] == "launch" for edge in all_edges) > 0
		assert ranks["idle_ns"] > 0
	END
done

# The examples, as a user builds them. A command is recorded by the tool in the prefix.
for example in library_idle library_record write_trace; do
	cc -std=c11 -D_GNU_SOURCE "${cflags[@]}" "$TS_SOURCE/examples/$example.c" -o $example "${libs[@]}"
done
./library_idle "$data"/nccl_ranks/rank?.json.gz >got
grep -q '^rank 3: idle' got && grep -q '^commands waited .* queue' got && grep -q '^1[.] ' got || fail "library_idle"
./library_record example.sbt sh -c 'exit 5' >got
grep -q '^recorded by process [1-9]' got && grep -q '^example.sbt: .* 0 lost, exit code 5$' got || fail "library_record"
"$TRACESMITH" verify -q example.sbt

# Both libraries in one program, in either order of linking.
read -ra emit_libs < <(pkg-config --libs tracesmith-emit)
for order in agent-first library-first; do
	both=("${emit_libs[@]}" "${libs[@]}")
	[ $order = agent-first ] || both=("${libs[@]}" "${emit_libs[@]}")
	cc -std=c11 -D_GNU_SOURCE "${strict[@]}" -Wno-pedantic "${cflags[@]}" "$tests/use_both.c" -o both "${both[@]}"
	mkdir -m 700 $order
	TRACESMITH_LIVE=1 TRACESMITH_LIVE_DIR=$PWD/$order ./both "$PWD/$order" >got
	printf '%s\n' "events 1001 lost 0 processes 1 spans 1000" recorded "exit 3, ended 1" refused >expected
	diff expected got || fail "$order"
done
