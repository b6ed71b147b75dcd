# SPDX-License-Identifier: Apache-2.0
"""align_job.py FOLDER COUNT RANK:SKEW_NS:DRIFT_PPM...: writes Kineto JSON of ranks with known clock
errors.

Collectives happen at true times; each rank records them by its own clock. From the middle on, rank
1 is last in all of them.
"""
import json
import os
import random
import sys

START = 1_700_000_000_000_000_000


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    ranks = [(int(r), int(skew), float(ppm)) for r, skew, ppm in (word.split(":") for word in sys.argv[3:])]
    dice = random.Random(5)
    os.makedirs(folder, exist_ok=True)
    events = {rank: [] for rank, _, _ in ranks}
    time = START
    for number in range(count):
        time += dice.randrange(500_000, 3_000_000)
        late = 400_000 if number >= count // 2 else 0
        starts = {rank: time + dice.randrange(20_000) + (late if rank == 1 else 0) for rank, _, _ in ranks}
        done = max(starts.values()) + 60_000 + dice.randrange(40_000)
        for rank, skew, ppm in ranks:
            def reading(true, skew=skew, ppm=ppm):
                return true + skew + int((true - START) * ppm / 1e6)
            start, end = reading(starts[rank]), reading(done + dice.randrange(8_000))
            issued = start - 20_000
            events[rank].append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100 + rank, "tid": 1,
                                 "ts": issued, "dur": 5_000, "args": {"correlation": number + 1}})
            events[rank].append({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclWork*)",
                                 "pid": rank, "tid": 24, "ts": start, "dur": end - start,
                                 "args": {"device": rank, "stream": 24, "correlation": number + 1}})
        time = done
    write(folder, events)


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03}"


def write(folder, events):
    for rank, rank_events in events.items():
        # Numbers with three decimals, as Kineto writes them.
        text = json.dumps({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": len(events)},
                           "traceEvents": []})[:-3]
        rows = []
        for event in rank_events:
            ts, dur = event.pop("ts"), event.pop("dur")
            rows.append(json.dumps(event)[:-1] + f', "ts": {us(ts)}, "dur": {us(dur)}}}')
        with open(f"{folder}/rank{rank}.json", "w", encoding="utf-8") as file:
            file.write(text + "[" + ",\n".join(rows) + "]}\n")


if __name__ == "__main__":
    main()
