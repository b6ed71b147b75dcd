# SPDX-License-Identifier: Apache-2.0
"""dump_trace.py TRACE: prints everything that the tool shows of a trace, for comparison: `info`
without path and creation time, then the rows of every table, with the trace's own strings and
shapes. For long tables, the first rows and a hash of all.
"""
import hashlib
import json
import sys

import tool


def main():
    trace = sys.argv[1]
    info = tool.info(trace)
    for member in ("file", "created_ns"):
        del info[member]
    print(json.dumps(info, indent=1, ensure_ascii=False))
    for table in [*info["tables"], "shape"]:
        rows = tool.run("view", trace, "--json", "--table", table)
        lines = rows.splitlines(keepends=True)
        shown = lines if len(lines) <= 200 else lines[:100]
        print(f"== {table}: {len(lines)} rows, SHA-256 {hashlib.sha256(rows).hexdigest()}")
        sys.stdout.flush()
        sys.stdout.buffer.write(b"".join(shown))
        sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
