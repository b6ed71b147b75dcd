# SPDX-License-Identifier: Apache-2.0
"""stragglers.py FOLDER: stragglers and clock offsets of recorded jobs.

Collectives of these jobs come one after the other, in the same order on all ranks: the k-th of one
rank is the k-th of all.
1. With unaligned clocks, every number equals that computed in Python.
2. Aligned, ranks of one machine must agree within the stated uncertainty, and the straggler is the
   one found in Python. HTA names none in the Megatron job: it looks for kernels whose names begin
   with "ncclKernel", and these are "ncclDevKernel_...".
3. A single rank has nothing to compare with, nor have ranks whose collectives are not on a device;
   a message says so.
4. In our own job (tests/data/real) one rank sleeps before each step: it is the straggler, and late
   by the time it slept.

Exits with 1 if anything differs.
"""
import decimal
import gzip
import json
import os
import statistics
import sys

import tool


def collectives(path):
    with gzip.open(path) as file:
        events = json.load(file, parse_float=decimal.Decimal)["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel" and e["name"].startswith("nccl")]
    return sorted((int(e["ts"] * 1000), int((e["ts"] + e["dur"]) * 1000), e["name"]) for e in kernels)


def expected(ranks):
    """Computed independently: for each rank the columns of the table `ranks`, in ns."""
    count = len(ranks)
    rows = [dict(last=0, lost=0, waited=0, lateness=[]) for _ in range(count)]
    for meeting in zip(*ranks):
        starts = [start for start, _, _ in meeting]
        first, last = min(starts), max(starts)
        for row, start in zip(rows, starts):
            row["lateness"].append(start - first)
        if last == first:
            continue
        for row, start in zip(rows, starts):
            row["waited"] += last - start
        blamed = rows[starts.index(last)]
        blamed["last"] += 1
        blamed["lost"] += sum(last - start for start in starts)
    return rows


def us(ns):
    return round(ns / 1000, 3)


def check_exact(faults, name, files, ranks):
    found = json.loads(tool.run("analyze", *files, "stragglers", "--json", "--no-align", "--all"))
    rows = expected(ranks)
    for row, ours in zip(rows, found["ranks"]):
        what = f"{name}: rank {ours['rank']}: "
        faults.equal(what + "collectives", ours["collectives"], len(ranks[0]))
        faults.equal(what + "times_last", ours["times_last"], row["last"])
        faults.equal(what + "lost_by_others_us", ours["lost_by_others_us"], us(row["lost"]))
        faults.equal(what + "waited_us", ours["waited_us"], us(row["waited"]))
        faults.equal(what + "median_lateness_us", ours["median_lateness_us"], us(int(statistics.median(row["lateness"]))))  # half a ns is truncated
        faults.equal(what + "max_lateness_us", ours["max_lateness_us"], us(max(row["lateness"])))
    spreads = sorted(us(max(s) - min(s)) for s in ([start for start, _, _ in m] for m in zip(*ranks)))
    faults.equal(f"{name}: spreads", sorted(c["spread_us"] for c in found["collectives"]), spreads)
    return rows


def check_clocks(faults, name, files, ranks):
    """Ranks of one machine: 0 is within the uncertainty, which is no larger than the distance of
    the ends of collectives."""
    found = json.loads(tool.run("align", "--dry-run", "--json", *files))["ranks"]
    faults.equal(f"{name}: ranks", len(found), len(ranks))
    for rank, clock in enumerate(found[1:], 1):
        what = f"{name}: clock of rank {rank}"
        apart = [a[1] - b[1] for a, b in zip(ranks[0], ranks[rank])]
        worst = max(abs(ns - statistics.median(apart)) for ns in apart) / 1000
        faults.check(clock["points"] == len(apart), f"{what}: {clock['points']} points")
        faults.check(abs(clock["offset_us"]) <= clock["uncertainty_us"], f"{what}: {clock}")
        faults.check(clock["uncertainty_us"] <= 2 * worst + 2, f"{what}: uncertainty {clock}, ends are {worst} us apart")
        faults.check(abs(clock["offset_us"] - statistics.median(apart) / 1000) <= clock["uncertainty_us"], f"{what}: {clock}")


def check_named(faults, name, files, rows):
    found = json.loads(tool.run("analyze", *files, "stragglers", "--json"))["ranks"]
    lost = sum(row["lost"] for row in rows)
    blamed = [rank for rank, row in enumerate(rows) if row["lost"] >= 1.5 * lost / len(rows)]
    named = [row["rank"] for row in found if row["verdict"] == "straggler"]
    faults.equal(f"{name}: stragglers", named, blamed)


def check_job(faults, name, files):
    ranks = [collectives(path) for path in files]
    faults.check(len({tuple(kernel[2] for kernel in rank) for rank in ranks}) == 1, f"{name}: ranks have different collectives")
    rows = check_exact(faults, name, files, ranks)
    check_clocks(faults, name, files, ranks)
    check_named(faults, name, files, rows)
    print(f"{name}: {len(ranks[0])} collectives of {len(ranks)} ranks")


def check_nothing(faults, what, *files):
    found = json.loads(tool.run("analyze", *files, "stragglers", "--json"))
    faults.equal(what, found, {"ranks": [], "collectives": []})


def check_files_of_others(faults, folder):
    for name, count in (("megatron_tp8", 4), ("dlrm", 3)):
        check_job(faults, name, [f"{folder}/pairs/{name}_r{rank}_kineto.json.gz" for rank in range(count)])
    check_nothing(faults, "one rank of two", f"{folder}/kineto/nccl_data.json.gz")


def check_own_job(faults, folder):
    with open(f"{folder}/facts.json", encoding="utf-8") as file:
        facts = json.load(file)["traces"]["kineto/nccl_ranks/rank0.json.gz"]
    files = [f"{folder}/kineto/nccl_ranks/rank{rank}.json.gz" for rank in range(facts["ranks"])]
    check_job(faults, "nccl_ranks", files)
    found = json.loads(tool.run("analyze", *files, "stragglers", "--json", "--all"))
    faults.equal("nccl_ranks: the rank that sleeps", [row["rank"] for row in found["ranks"] if row["verdict"] == "straggler"],
                 [facts["straggler"]])
    late = [row for row in found["collectives"] if row["name"] == "allreduce"]
    faults.equal("nccl_ranks: allreduces", len(late), facts["steps"])
    for row in late:
        faults.equal("nccl_ranks: last in an allreduce", row["last_rank"], facts["straggler"])
        apart = row["spread_us"] / facts["straggler_sleep_us"]
        faults.check(0.9 < apart < 1.1, f"nccl_ranks: late by {row['spread_us']} us, slept {facts['straggler_sleep_us']} us")
    check_nothing(faults, "one rank of four", files[0])
    check_nothing(faults, "gloo", *(f"{folder}/kineto/gloo_ranks/rank{rank}.json.gz" for rank in range(2)))


def main():
    folder = sys.argv[1]
    faults = tool.Faults()
    if os.path.isdir(f"{folder}/expected"):
        check_own_job(faults, folder)
    else:
        check_files_of_others(faults, folder)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
