#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The help of the verb, under both names.
. "$TS_SOURCE/tests/cli/lib.sh"

t stack --help
cmp <("$TRACESMITH" stack --help) <("$TRACESMITH" help backtrace) && echo the same
