#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# JSON: lanes add up, intervals partition time, and the input is reproduced.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/cli/state.sh"

state_json >t.json
"$TRACESMITH" state t.json --json >lanes.json
"$TRACESMITH" state t.json --json --intervals >intervals.json
"$TRACESMITH" state t.json --json --commands >commands.json
"$TRACESMITH" state t.json --csv >lanes.csv
python3 - <<'PY'
import csv, json
found = json.load(open("lanes.json"), parse_float=str)
us = lambda text: round(float(text) * 1000)
lanes = {lane["stream"]: lane for lane in found["lanes"]}
assert list(lanes) == [None, 7, 20, 21], list(lanes)
for lane in lanes.values():
    window = us(lane["window_us"])
    assert window == 215000, lane
    assert sum(us(lane[f"{state}_us"]) for state in ("running", "wait", "dispatch_pending", "idle")) == window
    for state in "wait", "idle":
        assert sum(us(value) for key, value in lane.items() if key.startswith(state + "_") and key != state + "_us") == us(lane[state + "_us"]), lane
seven = lanes[7]
assert us(seven["running_us"]) == 110001 and seven["commands"] == 4, seven
assert us(seven["wait_queue_us"]) == 1999, seven
assert us(seven["idle_dependency_us"]) == 130000 - 92000 and us(seven["idle_host_bound_us"]) == 30000, seven
assert us(seven["idle_launch_missing_us"]) == 10000, seven
# The second copy had to wait for the first, of another stream, until 140; 2 us more are usual.
assert us(lanes[21]["wait_copy_engine_us"]) == 142000 - 40000, lanes[21]
assert us(lanes[None]["running_us"]) == 120000 + 10000 + 30000 + 10000, lanes[None]
counts = {row["what"]: row["count"] for row in found["counts"]}
assert counts["commands_without_call"] == 1 and counts["calls_without_command"] == 1 and counts["violations"] == 0, counts
assert len(found["latencies"]) == 1, found

rows = json.load(open("intervals.json"), parse_float=str)
for stream, lane in lanes.items():
    at, totals = 10000, {}
    for row in (row for row in rows if row["stream"] == stream):
        assert row["start_ns"] == at and us(row["duration_us"]) > 0, row
        at += us(row["duration_us"])
        totals[row["state"]] = totals.get(row["state"], 0) + us(row["duration_us"])
    assert at == 225000, (stream, at)
    assert all(total == us(lane[f"{state}_us"]) for state, total in totals.items()), (totals, lane)

order = ["dispatch_pending", "wait", "running"]
commands = json.load(open("commands.json"), parse_float=str)
for number in 1, 2, 3, 4, 6, 99:
    mine = [row for row in commands if row["correlation"] == number]
    assert [order.index(row["state"]) for row in mine] == sorted(order.index(row["state"]) for row in mine), mine
    assert all(a["start_ns"] + us(a["duration_us"]) == b["start_ns"] for a, b in zip(mine, mine[1:])), mine
assert [row["state"] for row in commands if row["correlation"] == 99] == ["running"]
assert {row["name"] for row in commands if row["correlation"] == 99} == {'no launch, "here"'}

for row, lane in zip(csv.DictReader(open("lanes.csv")), found["lanes"]):
    assert {key: "" if value is None else str(value) for key, value in lane.items()} == row, row
PY
