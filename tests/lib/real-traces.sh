#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For scripts over recorded traces: skip where there are none, and name them.

real_data=${TRACESMITH_REAL_DATA:-$TS_SOURCE/../shared/real-traces}

need_real_data() {
	[ -d "$real_data" ] || { echo "skip: there are no recorded traces in '$real_data'"; exit 77; }
}

# All files of these folders, a NUL behind each; under sanitizers only the small ones.
real_files() { # folder...
	local folder limit=()
	case $TS_BUILD in *san*) limit=(-size -500k) ;; esac
	for folder in "$@"; do
		[ ! -d "$real_data/$folder" ] || find "$real_data/$folder" -type f "${limit[@]}" -print0
	done
}

# As real_files, less the largest, which take longer than all others together: those are looked at where TS_REAL_FULL is set. What is left out is printed.
quick_real_files() { # folder...
	local file
	while IFS= read -r -d '' file; do
		if [ -z "${TS_REAL_FULL:-}" ] && [ "$(stat -c %s "$file")" -gt 1000000 ]; then
			echo "left out without TS_REAL_FULL: ${file##*/}" >&2
		else
			printf '%s\0' "$file"
		fi
	done < <(real_files "$@")
}
