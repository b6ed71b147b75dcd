#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage errors, and missing requirements.
. "$TS_SOURCE/tests/cli/live.sh"

t sniff --help
t sniff -p x
t sniff -p 999999999
t sniff -p 1 -i 0
t sniff -p 1 -i 0.00001
t sniff -p 1 -d never
t sniff -p $$ -o out.txt | sed "s/$$/PID/"
t sniff -p $$ -o no/such/folder/t.json | sed "s/$$/PID/"
t sniff -p 1 --autosave-interval 0
t sniff more
ls
