#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/schema.md is up to date with schema.def.
set -eu
"$TS_BUILD/tests/targets/schema_doc" >schema.md
diff -u "$TS_SOURCE/docs/schema.md" schema.md || {
	echo "docs/schema.md is out of date: build/tests/targets/schema_doc > docs/schema.md"
	exit 1
}
