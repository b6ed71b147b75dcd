#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counters of every kind of subject: their values, and their graphs with gaps.
. "$TS_SOURCE/tests/cli/lib.sh"

"$TS_BUILD/tests/targets/make_counters" m.sbt
t info --counters m.sbt
LC_ALL=C.UTF-8 t info --counters m.sbt --name 'cpu*'
t info --counters m.sbt --name threads --name queue
t info --counters m.sbt --category device --device 1
t info --counters m.sbt --process train --name 'memory*'
t info --counters m.sbt --name nothing
# Several traces, one of them without counters.
echo '[]' >empty.json
quietly import empty.json -o empty.sbt
t info --counters empty.sbt m.sbt --name power_W
t info m.sbt --name x
t info --counters missing.sbt
t info --counters m.sbt --device x
# Counters of programs, as other tools write them.
make_trace t
t info --counters t.sbt
