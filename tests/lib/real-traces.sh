#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For scripts over recorded traces. There are two directories with the same subdirectories: our own
# in tests/data/real, always present, and third-party ones in $TRACESMITH_REAL_DATA, if available.

real_data=${TRACESMITH_REAL_DATA:-$TS_SOURCE/../shared/real-traces}
real_folders=("$TS_SOURCE/tests/data/real")
[ ! -d "$real_data" ] || real_folders+=("$real_data")

# For tests of what we cannot record ourselves.
need_files_of_others() { # what, subfolder
	[ -d "$real_data/$2" ] || { echo "skip: no $1 in '$real_data'"; exit 77; }
}

# All files of these subdirectories, each followed by a NUL. Files above 1 MB take longer
# than all others together: they need TS_LONG or TS_REAL_FULL. Under sanitizers only small ones.
real_files() { # subfolder...
	local folder subfolder file limit=1000000
	case $TS_BUILD in *san*) limit=500000 ;; esac
	[ -z "${TS_REAL_FULL:-}${TS_LONG:-}" ] || limit=1000000000
	for folder in "${real_folders[@]}"; do
		for subfolder in "$@"; do
			[ -d "$folder/$subfolder" ] || continue
			find "$folder/$subfolder" -type f -size "-${limit}c" -print0
			while IFS= read -r file; do
				echo "left out without TS_LONG: $file" >&2
			done < <(find "$folder/$subfolder" -type f -size "+$((limit - 1))c" -printf '%f\n')
		done
	done
}

# As real_files, but only Kineto traces, in order; pairs/ also holds execution traces.
kineto_files() { # subfolder...
	real_files "$@" | grep -z -v -E '/pairs/[^/]*(_et(_plus)?\.json|\.et)\.gz$' | sort -z
}
