#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fake npu-smi, used through a link of that name in PATH. FAKE_NPU_SMI selects its behavior;
# FAKE_TABLE is a file with its output; FAKE_LOG, if set, gets a line per call: pid and arguments.
[ -z "${FAKE_LOG:-}" ] || echo "$$ $*" >>"$FAKE_LOG"
[ "$*" = info ] || exit 215

case ${FAKE_NPU_SMI:-print} in
print) cat "$FAKE_TABLE" ;;
hang) # only SIGKILL ends it
	trap '' TERM INT HUP
	cat "$FAKE_TABLE"
	while :; do sleep 1000; done
	;;
fail)
	echo 'dcmi module initialize failed. ret is -8005'
	exit 187
	;;
fail_behind_table)
	cat "$FAKE_TABLE"
	exit 1
	;;
nothing) ;;
none) echo 'There is no NPU card on this server.' ;;
endless)
	cat "$FAKE_TABLE"
	while :; do echo '| 0     910B3               | OK            | 1.0         1                 0    / 0             |'; done
	;;
drip) # occasional lines, without end
	while read -r line; do
		echo "$line"
		sleep 0.02
	done < <(while :; do cat "$FAKE_TABLE"; done)
	;;
grandchild) # which keeps the pipe open
	sleep 1000 &
	[ -z "${FAKE_LOG:-}" ] || echo "$! grandchild" >>"$FAKE_LOG"
	cat "$FAKE_TABLE"
	;;
locale) # in the caller's language
	if [ "${LC_ALL:-}" = C ] && [ -z "${LANGUAGE:-}" ]; then cat "$FAKE_TABLE"; else cat "${FAKE_TABLE%/*}/bad-locale.txt"; fi
	;;
killed) kill -SEGV $$ ;;
esac
