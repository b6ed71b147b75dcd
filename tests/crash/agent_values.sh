#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every emitted value is stored unchanged: kinds, types, lengths, tracks, manual tracers, windows by
# step.
set -euo pipefail
. "$TS_SOURCE/tests/lib/agent.sh"

emit() { # environment or nothing, case, argument
	rm -rf "$TRACESMITH_LIVE_DIR"
	env "$@" >pid || fail "$*: exit code $?"
}
emit TRACESMITH_LIVE=1 "$targets/agent_values" strings
holds '[len(event.args["text"]) for event in one.events if event.name == "string"] == [0, 1, 3, 4, 5] + [8191] + [8192] * 3'
holds 'all(set(event.args["text"]) <= {"x"} for event in one.events if event.name == "string") and one.strings_cut == 2'
holds '[event.args for event in one.events[-3:]] == [{"text": ""}, {"text": b"\xff\xfe\x80 \xc3(".decode("utf-8", "surrogateescape")},
	{"a": "1", "b": 2, "c": "three", "d": 4.5, "e": True, "f": "", "g": -7, "h": "8"}]'
# Small rings hold shorter strings.
emit TRACESMITH_LIVE=1 TRACESMITH_BUDGET=200000 "$targets/agent_values" strings
holds 'one.total == 12 and 4000 < len(one.events[-4].args["text"]) <= 4096 and one.strings_cut == 4'
emit "TRACESMITH_AGENT=session=5;redact=1" "$targets/agent_values" strings
holds 'all(value == "" for event in one.events for value in event.args.values() if isinstance(value, str)) and one.command == [""]'

emit TRACESMITH_LIVE=1 "$targets/agent_values" kinds
holds '[(event.kind, event.name, event.track) for event in one.events] == [("span", "span_ns", None), ("span", "span_ms", None),
	("span", "span_since", None), ("span", "span_at", None), ("begin", "begin", None), ("end", "", None),
	("counter", "counter", None), ("instant", "instant_on", -3), ("span", "span_ns_on", 4), ("span", "span_ms_on", 5),
	("step", "", None)]'
holds '[event.duration for event in one.events[:2]] == [1500, 1500000] and one.events[2].ticks and one.events[3].start == 1000'
holds 'one.events[6].args == {"used": ABSENT, "load": 0.25} and one.events[9].duration == 0 and one.events[-1].number == 41'
holds 'one.thread_names == ["worker \u00e9", ""] and one.threads[0]["name"] == "agent_values" == one.name'

emit TRACESMITH_LIVE=1 "$targets/agent_values" dynamic
holds '[len(event.args) for event in one.events] == [32, 32, 0, 1, 2, 0, 1, 0] and one.events[1].track == 7'
holds 'list(one.events[0].args.items())[:5] == [("key0", 0), ("real", 2.5), ("text", "value"), ("yes", True), ("", "")]'
holds '(one.events[3].start, one.events[3].duration, one.events[3].track, one.events[3].name) == (100, 0, 9, "")'

# Values of other subjects, and devices; the latter also while events are off.
about='[event.subject for event in one.events if event.name == "about"] == [(1, 0, 0, 0), (2, 0, 1234567, 1 << 50), (3, 0x12345, 0, 0),
	(4, 0x12345, 1234567, 1 << 50)] and all(event.args == {"used": 5, "load": 0.5} and event.category == "m" for event in one.events)'
devices='(one.devices[0] == (0x12345, 1 << 40, "Maker", "Fast", "GPU-1", "0000:01:00.0") and len(one.devices) == 2 and
	one.devices[1][:3] == (7, ABSENT, "") and one.devices[1][4:] == ("", "") and 4000 < len(one.devices[1][3]) <= 8192 and
	one.strings_cut == 1)'
for case in about about_by_hand; do
	emit TRACESMITH_LIVE=1 TRACESMITH_RECORDER=/nonexistent "$targets/agent_values" $case 2>hints
	holds "$about and $devices"
done
emit TRACESMITH_LIVE=1 TRACESMITH_BUDGET=200000 "$targets/agent_values" about
holds "$about and $devices"
emit "TRACESMITH_AGENT=session=5;redact=1" "$targets/agent_values" about
holds "$about and $devices"
emit "TRACESMITH_AGENT=session=5;enabled=0" "$targets/agent_values" about
holds "one.total == 0 and $devices"
emit TRACESMITH_LIVE=1 "$targets/agent_values" about_off
[ ! -e "$TRACESMITH_LIVE_DIR" ] || fail "a disabled tracer has an area"

# Manual tracers have their own areas, and end independently.
emit TRACESMITH_LIVE=1 TRACESMITH_RECORDER=/nonexistent "$targets/agent_values" tracers 2>hints
holds 'sorted((os.path.basename(area.output), area.total) for area in areas) == [("", 3), ("first.sbt", 8), ("second.sbt", 3)]'
holds 'all(area.output in ("", os.getcwd() + "/" + os.path.basename(area.output)) and area.target_state == 2 for area in areas)'
[ "$(grep -c '^tracesmith: no recorder found' hints)" -eq 2 ] || fail "hints: $(cat hints)"

# Windows by step.
steps() { # settings, expected numbers of events
	emit "TRACESMITH_AGENT=session=5;$1" "$targets/agent_values" steps 10
	holds "one.numbers() == {1: $2} and [event.number for event in one.events if event.kind == 'step'] == $2 and one.steps == 10"
}
steps "enabled=1" "list(range(10))"
steps "enabled=0;steps=3-5" "[3, 4, 5]"
holds 'one.windows == [{"action": 1, "cause": 1, "step": 3}, {"action": 2, "cause": 1, "step": 6}]'
steps "enabled=0;steps=3-100;max_steps=2" "[3, 4]"
holds 'one.windows == [{"action": 1, "cause": 1, "step": 3}, {"action": 2, "cause": 2, "step": 5}]'
steps "enabled=1;max_steps=4" "[0, 1, 2, 3]"
emit "TRACESMITH_AGENT=session=5;enabled=0" "$targets/agent_values" steps 10
holds 'one.total == 0 and one.steps == 10 and one.step == 9 and one.rings == 0'

# Off.
for setting in A=b TRACESMITH_OUT= TRACESMITH_LIVE= TRACESMITH_LIVE=0 TRACESMITH_AGENT= TRACESMITH_AGENT=session=0; do
	emit "$setting" "$targets/agent_values" plain
	[ ! -e "$TRACESMITH_LIVE_DIR" ] || fail "$setting: there is a live directory"
done
