# SPDX-License-Identifier: Apache-2.0
"""check_ranks.py FILE...: imports all files into one trace, like the ranks of a job.

Each becomes a source with its own clock; pids and devices of two files are always distinct. The
trace must have the events of all files, and its export, imported again, the same tables.
"""
import os
import sys

import tool


def main():
    files, faults = sys.argv[1:], tool.Faults()
    tables = {}
    for path in files:
        tool.run("import", "-q", path, "-o", "one.sbt")
        one = tool.info("one.sbt")
        for name, rows in one["tables"].items():
            tables[name] = tables.get(name, 0) + rows
        for name in ("events", "processes", "threads", "devices", "streams"):
            tables[name + " in all"] = tables.get(name + " in all", 0) + one[name]
    tool.run("import", "-q", *files, "-o", "job.sbt")
    tool.run("verify", "-q", "job.sbt")
    job = tool.info("job.sbt")
    faults.equal("sources", [source["name"] for source in job["sources"]], [os.path.basename(path) for path in files])
    faults.check(len({source["clock"] for source in job["sources"]}) == len(files), "two sources share a clock")
    for name, rows in job["tables"].items():
        if name not in tool.OWN_TABLES:
            faults.equal(f"rows of {name}", rows, tables[name])
    for name in ("events", "processes", "threads", "devices", "streams"):
        faults.equal(name, job[name], tables[name + " in all"])
    tool.run("export", "job.sbt", "-f", "chrome", "-o", "job.json")
    tool.run("import", "-q", "job.json", "-o", "again.sbt")
    tool.run("verify", "-q", "again.sbt")
    tool.compare_tables(faults, "job.sbt", "again.sbt", "import of the export")
    print(f"{'differs' if faults else 'same'}: {len(files)} files, {job['events']} events")
    for fault in faults:
        print(f"    {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
