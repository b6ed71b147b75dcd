#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage errors, and no terminal.
. "$TS_SOURCE/tests/cli/live.sh"

t top </dev/null
t top --json
t top --once -n 3
t top --once -d 0
t top --once -d 1ms
t top --once -d soon
t top -n 0
t top --once -p 12x
t top --once -p 4194304
t top --once -p 1 -a
t top --once --sort rss
t top --once --backends nosuch
t top --once --backends "a b"
t top extra
chmod 777 live
t top --once | sed "s#$(pwd -P)#HERE#"
t help top | head -3 | cut -c1-60
