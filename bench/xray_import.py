#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/xray_import.py BUILD [RECORDS]: measures the import of an XRay log (FDR) in records per
second; the peer is llvm-xray, in the same run on a tenth of the log.

BUILD/bench/xray_import generates the log. The best of three runs counts; CPU seconds are of all
threads.
"""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time


def best(command, records):
    rates = []
    for _ in range(3):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        rates.append((records / wall / 1e6, records / cpu / 1e6))
    return max(rate[0] for rate in rates), max(rate[1] for rate in rates)


def main():
    build, records = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20_000_000
    tool, maker = os.path.join(build, "tracesmith"), shutil.which("xray_import", path=build + "/bench:" + build) or build + "/bench_xray_import"
    with tempfile.TemporaryDirectory() as folder:
        log, tenth, out = (os.path.join(folder, name) for name in ("log", "tenth", "out"))
        subprocess.run([maker, log, str(records)], check=True)
        subprocess.run([maker, tenth, str(records // 10)], check=True)
        rows = [("tracesmith import", best([tool, "import", "-q", log, "-o", out], records))]
        if shutil.which("llvm-xray"):
            rows.append(("llvm-xray account -k", best(["llvm-xray", "account", "-k", tenth, "-o", out], records // 10)))
            rows.append(("llvm-xray convert --output-format=yaml",
                         best(["llvm-xray", "convert", "--output-format=yaml", tenth, "-o", out], records // 10)))
        else:
            print("not compared: no llvm-xray")
        print("| | M records/s | M records/s of CPU |\n|---|---|---|")
        for name, (wall, cpu) in rows:
            print("| %s | %.2f | %.2f |" % (name, wall, cpu))


main()
