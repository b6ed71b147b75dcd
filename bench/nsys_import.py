#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nsys_import.py [--rows MILLIONS] [--repeat N] [--keep FOLDER]: measures the import of Nsight
Systems exports.

Generates a database in the form of `nsys export --type sqlite` with Python's sqlite3: of 5 rows,
2 are CUDA calls, 1.5 kernels, 0.5 NVTX ranges, 0.5 OS runtime calls, the rest copies, fills and
synchronization. Then runs `tracesmith import` and two peers in turn on the same file. The peers
only read what the import reads: SQLite's shell, which scans and discards the same columns, and
Python, which fetches them as users' scripts do. Prints the best wall time of each and rows per
second.
"""
import argparse
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time

TOOL = os.environ.get("TRACESMITH", "tracesmith")
PID = (1 << 48) | (4242 << 24)

TABLES = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
    "CUPTI_ACTIVITY_KIND_KERNEL":
        "start end deviceId contextId streamId correlationId globalPid demangledName shortName mangledName launchType cacheConfig "
        "registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread "
        "localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig",
    "CUPTI_ACTIVITY_KIND_MEMCPY":
        "start end deviceId contextId streamId correlationId globalPid bytes copyKind deprecatedSrcId srcKind dstKind srcDeviceId "
        "srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress",
    "CUPTI_ACTIVITY_KIND_MEMSET":
        "start end deviceId contextId streamId correlationId globalPid value bytes graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION":
        "start end deviceId contextId streamId correlationId globalPid syncType eventId",
    "NVTX_EVENTS":
        "start end eventType rangeId category color text globalTid endGlobalTid textId domainId uint64Value int64Value doubleValue "
        "uint32Value int32Value floatValue jsonTextId jsonText",
    "OSRT_API": "start end eventClass globalTid nameId returnValue nestingLevel callchainId",
}
TEXTS = {"NVTX_EVENTS": {"text", "jsonText"}}


def rows_of(table, count):
    """Rows as of a training loop on one device: launches 5 us apart, 8 threads, 64 kernels, 2
    streams."""
    columns = len(TABLES[table].split())
    luck = random.Random(table)
    start = 1_000_000
    for i in range(count):
        noise = luck.getrandbits(30)
        start += 3000 + noise % 4001
        thread = PID | (4242 + i // 997 % 8)
        if table == "CUPTI_ACTIVITY_KIND_RUNTIME":
            yield (start, start + 2000 + noise % 3989, 0, thread, 1 + i, 100 + noise % 12, 0, None)
        elif table == "CUPTI_ACTIVITY_KIND_KERNEL":
            name = noise % 64
            yield (start + 9000, start + 12000 + noise % 50021, 0, 1, 7 + i % 2, 1 + i, PID, 200 + name, 300 + name, 400 + name, 0, 0,
                   32 + name % 7 * 16, 1 + noise % 1021, 1, 1, 128 << name % 3, 1, 1, 0, name * 512, 0, 134217728, i, 32768, None, 0)
        elif columns == 19 and table.endswith("MEMCPY"):
            yield (start, start + 8000 + noise % 9001, 0, 1, 7, 1 + i, PID, 4096 + i % 9 * 65536, 1 + i % 2, None, 1, 2) + (None,) * 7
        elif table.endswith("MEMSET"):
            yield (start, start + 1500 + noise % 997, 0, 1, 7, 1 + i, PID, 0, 4096, None, 2)
        elif table.endswith("SYNCHRONIZATION"):
            yield (start, start + 90000 + noise % 70001, 0, 1, 7, 1 + i, PID, 3, 0)
        elif table == "NVTX_EVENTS":
            text = None if i % 2 else f"step {i // 500}"
            yield (start, start + 400000 + noise % 300007, 59, None, None, None, text, thread, None, 500 + i % 40 if i % 2 else None, 0) + (None,) * 8
        else:
            yield (start, start + 30000 + noise % 40009, 27, thread, 600 + i * 3 % 20, 0, 0, 0)


def make(path, millions):
    parts = {"CUPTI_ACTIVITY_KIND_RUNTIME": 2.0, "CUPTI_ACTIVITY_KIND_KERNEL": 1.5, "CUPTI_ACTIVITY_KIND_MEMCPY": 0.25,
             "CUPTI_ACTIVITY_KIND_MEMSET": 0.15, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": 0.1, "NVTX_EVENTS": 0.5, "OSRT_API": 0.5}
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=OFF")
    database.execute("PRAGMA synchronous=OFF")
    database.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", (
        (i, f"void at::native::elementwise_kernel<{i}, 4, gpu_kernel_impl<float>>(int, float *)" if 200 <= i < 264 else
         f"cudaFunction{i}_v3020" if i < 200 else f"name{i}") for i in range(700)))
    total = 0
    for table, columns in TABLES.items():
        types = ", ".join(f'"{name}" {"TEXT" if name in TEXTS.get(table, ()) else "REAL" if "loat" in name or "double" in name else "INTEGER"}'
                          for name in columns.split())
        count = int(parts[table] / 5 * millions * 1e6)
        database.execute(f"CREATE TABLE {table} ({types})")
        database.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(columns.split()))})", rows_of(table, count))
        total += count
    database.commit()
    database.close()
    return total


def scan_with_shell(path):
    """Reads every column, returns one row."""
    for table, columns in TABLES.items():
        sums = ",".join(f'count("{name}")' for name in columns.split())
        subprocess.run(["sqlite3", "-readonly", path, f"SELECT {sums} FROM {table}"], check=True, stdout=subprocess.DEVNULL)


def scan_with_python(path):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    for table, columns in TABLES.items():
        names = ",".join(f'"{name}"' for name in columns.split())
        for _ in database.execute(f"SELECT {names} FROM {table}"):
            pass


def import_with_tool(path):
    subprocess.run([TOOL, "import", path, "-o", path + ".sbt"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=5, help="millions of rows (default 5)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", help="folder for the database, which is used again where it is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(options.keep or folder, f"nsys-{options.rows:g}M.sqlite")
        if not os.path.exists(path):
            make(path, options.rows)
        database = sqlite3.connect(path)
        rows = sum(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES)
        database.close()
        ways = {"tracesmith import": import_with_tool, "sqlite3 full scan": scan_with_shell, "Python sqlite3 fetch": scan_with_python}
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(options.repeat):
            for name, way in ways.items():
                begin = time.monotonic()
                way(path)
                best[name] = min(best[name], time.monotonic() - begin)
        print(f"{rows:,} rows, {os.path.getsize(path) / 2**20:.0f} MiB; trace {os.path.getsize(path + '.sbt') / 2**20:.1f} MiB")
        for name, seconds in best.items():
            print(f"{name:22} {seconds:7.2f} s  {rows / seconds / 1e6:6.2f} M rows/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
