# SPDX-License-Identifier: Apache-2.0
"""check_files.py FILE...: imports each recorded trace and compares all of it with the source.

An independent reading of the JSON (chrome_model.py) gives the number of events, their times to the
nanosecond, arguments, flows and tracks. Then the trace is exported, the export compared with the
source event by event, and imported again: all tables must be the same. Prints a line per file;
exits with 1 on a difference.
"""
import json
import multiprocessing
import os
import sys
import tempfile
from collections import Counter

import chrome_model
import tool
from chrome_model import Model, canonical, loads

KINDS = {"slice", "api_call", "gpu_op"}


def row_of_view(line):
    """A line of `view --json` as the model's tuple; a gpu_op without pid and tid."""
    row = loads(line)
    table = row["table"]
    args, beside = canonical(row["args"]) if "args" in row else "", canonical(row["beside"]) if "beside" in row else ""
    place = (row.get("pid"), row.get("tid"))
    if table in KINDS:
        identity = canonical(row["id"]) if "id" in row else None
        if table == "gpu_op":
            place = (None, None)
        return table, ("X", row["start"], row["duration"], *place, row.get("name"), row.get("category"),
                       (row.get("kind") if table == "slice" else "nested", identity), args, beside), row
    if table == "counter":
        more = (canonical(row["id"]) if "id" in row else None,)
        family = "C"
    elif table == "mark":
        more = (row.get("scope"), row.get("phase"), canonical(row["id"]) if "id" in row else None)
        family = "i"
    elif table == "sample":
        stack = tuple(frame["func"] for frame in row.get("stack", []))
        more, family = (stack, row.get("weight"), row.get("cpu")), "P"
    else:
        return table, None, row
    return table, (family, row["start"], 0, *place, row.get("name"), row.get("category"), more, args, beside), row


def without_gpu_place(rows, model):
    """The model's rows without the lanes of gpu_op rows, which view shows as device and stream."""
    place_free = Counter()
    for row, count in rows.items():
        if row[0] == "X" and is_gpu_op(row):
            row = (*row[:3], None, None, *row[5:])
        place_free[row] += count
    return place_free


def is_gpu_op(row):
    category = row[6]
    if category in chrome_model.GPU_OP:
        return True
    return category in chrome_model.SYNC and chrome_model.is_int((json.loads(row[8]) if row[8] else {}).get("stream"))


def check_view(faults, trace, model):
    rows, tables, durations = Counter(), Counter(), Counter()
    flows = arrows = 0
    places = set()
    for line in tool.run("view", trace, "--json").splitlines():
        table, row, columns = row_of_view(line)
        if table == "flow":
            flows += 1
        if row is None:
            continue
        rows[row] += 1
        tables[table] += 1
        arrows += columns.get("arrow", "none") != "none"
        if table in KINDS:
            durations[(table, columns.get("category"))] += columns["duration"]
        if table == "gpu_op":
            places.add((columns.get("device"), columns.get("stream")))
    faults.counters("rows", rows, without_gpu_place(model.rows, model))
    faults.equal("rows a table", dict(tables), dict(model.tables))
    faults.equal("duration a category, ns", dict(durations), dict(model.durations))
    faults.equal("flows", flows + arrows, sum(model.flows.values()))
    faults.equal("devices and streams", places, {place[:2] for place in model.gpu_places})
    return tables


def check_info(faults, trace, model):
    info = tool.info(trace)
    faults.equal("events", info["events"], model.events_in_all())
    faults.check(info["finished"] and info["damaged_bytes"] == 0, "the trace is not finished")
    if model.starts:
        faults.equal("time range", info["time_range_ns"], [min(model.starts), max(model.ends)])
    pids = {place[0] for place in model.places}
    faults.check(info["processes"] >= len(pids), f"{info['processes']} processes, but {len(pids)} pids")
    faults.check(info["threads"] >= len(model.places),
                 f"{info['threads']} threads, but {len(model.places)} pairs of pid and tid")
    devices = {place[0] for place in model.gpu_places}
    faults.check(info["devices"] >= len(devices), f"{info['devices']} devices, but {len(devices)} are used")
    faults.equal("streams", info["streams"], len(model.gpu_places))
    lost = sum(loss.get("count", 0) for loss in info["loss"])
    faults.equal("losses", lost, model.lost_ends)
    return info


def check_export(faults, exported, model):
    with open(exported, "rb") as file:
        other = Model(loads(file.read()))
    faults.counters("exported rows", other.rows, model.rows)
    faults.counters("exported flows", other.flows, model.flows)


def check_file(path):
    faults = tool.Faults()
    events = 0
    with tempfile.TemporaryDirectory() as folder:
        first, second, exported = (os.path.join(folder, name) for name in ("a.sbt", "b.sbt", "a.json"))
        try:
            model = Model(chrome_model.read_json(path))
            tool.run("import", "-q", path, "-o", first)
            tool.run("verify", "-q", first)
            events = check_info(faults, first, model)["events"]
            check_view(faults, first, model)
            tool.run("export", first, "-f", "chrome", "-o", exported)
            check_export(faults, exported, model)
            del model
            tool.run("import", "-q", exported, "-o", second)
            tool.run("verify", "-q", second)
            tool.compare_tables(faults, first, second, "import of the export")
        except RuntimeError as error:
            faults.append(str(error))
    return path, events, faults


def main():
    files = sorted(sys.argv[1:], key=os.path.getsize, reverse=True)
    failed = 0
    with multiprocessing.Pool(min(len(files), os.cpu_count() or 1)) as pool:
        for path, events, faults in pool.imap_unordered(check_file, files):
            print(f"{'differs' if faults else 'same'}: {os.path.basename(path)}, {events} events", flush=True)
            for fault in faults:
                print(f"    {fault}", flush=True)
            failed += bool(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
