#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For scripts over recorded traces. There are two directories with the same subdirectories: our own
# in tests/data/real, always present, and third-party ones in $TRACESMITH_REAL_DATA, if available.

real_data=${TRACESMITH_REAL_DATA:-$TS_SOURCE/../shared/real-traces}
real_folders=("$TS_SOURCE/tests/data/real")
[ ! -d "$real_data" ] || real_folders+=("$real_data")

# For tests of what we cannot record ourselves.
need_files_of_others() { # what, subfolder
	[ -d "$real_data/$2" ] || { echo "skip: there are no $1 in '$real_data'"; exit 77; }
}

# All files of these subdirectories, each followed by a NUL; under sanitizers only the small ones.
real_files() { # subfolder...
	local folder subfolder limit=()
	case $TS_BUILD in *san*) limit=(-size -500k) ;; esac
	for folder in "${real_folders[@]}"; do
		for subfolder in "$@"; do
			[ ! -d "$folder/$subfolder" ] || find "$folder/$subfolder" -type f "${limit[@]}" -print0
		done
	done
}

# As real_files, but only Kineto traces, in order; pairs/ also holds execution traces.
kineto_files() { # subfolder...
	real_files "$@" | grep -z -v -E '/pairs/[^/]*(_et(_plus)?\.json|\.et)\.gz$' | sort -z
}

# Drops the largest files, which take longer than all others together, unless TS_REAL_FULL or
# TS_LONG is set; prints what is dropped. quick_bytes: the largest that stays.
quick_files() {
	local file
	while IFS= read -r -d '' file; do
		if [ -z "${TS_REAL_FULL:-}${TS_LONG:-}" ] && [ "$(stat -c %s "$file")" -gt "${quick_bytes:-1000000}" ]; then
			echo "left out without TS_LONG: ${file##*/}" >&2
		else
			printf '%s\0' "$file"
		fi
	done
}
