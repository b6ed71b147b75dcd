# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of tables in Python for bench/run: gpu_op of 20 M rows, all columns, as Arrow and as a
DataFrame.

Peers: PyArrow reading the same rows from Parquet (zstd); and, for pandas, what scripts do with Chrome
JSON, that is json.load and a DataFrame of the kernels, on a hundredth of the rows, scaled. Wall
times are the best of several turns, in which we and the peer alternate: both use all cores.
"""
import json
import os
import subprocess

ROWS = 20_000_000
JSON_ROWS = 200_000
RUNS = 5

TURN = """
import json, sys, time
what, path, more = sys.argv[1:4]
start, cpu = time.perf_counter(), time.process_time()
if what == "parquet":
    import pyarrow.parquet
    start, cpu = time.perf_counter(), time.process_time()
    rows = pyarrow.parquet.read_table(path).num_rows
elif what == "json":
    import pandas
    start, cpu = time.perf_counter(), time.process_time()
    events = json.load(open(path))["traceEvents"]
    kernels = [{**event.pop("args", {}), **event} for event in events if event.get("cat") == "kernel"]
    rows = len(pandas.DataFrame(kernels))
elif what == "write":
    import pyarrow.parquet, tracesmith
    pyarrow.parquet.write_table(tracesmith.open(path).gpu_op.to_arrow(), more, compression="zstd")
    rows = 0
else:
    import pandas, pyarrow, tracesmith
    trace = tracesmith.open(path)
    table = trace.gpu_op(more.split(",")) if more else trace.gpu_op
    start, cpu = time.perf_counter(), time.process_time()
    rows = len(getattr(table, "to_" + what)())
print(json.dumps([rows, time.perf_counter() - start, time.process_time() - cpu]))
"""


def find_python(bench):
    """An interpreter with the packages, and what is missing if there is none."""
    built = os.path.join(bench.build, "python", "python")
    if not os.path.exists(built):
        return None, "the Python package was not built"
    with open(built, encoding="utf-8") as file:
        candidates = [os.path.join(bench.venv, "bin", "python"), file.read().strip()]
    environment = dict(os.environ, PYTHONPATH=os.path.join(bench.build, "python"))
    for python in candidates:
        command = [python, "-c", "import pandas, pyarrow.parquet, tracesmith.trace"]
        if os.path.exists(python) and subprocess.run(command, env=environment, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python, None
    return None, "pandas and pyarrow are not installed: bench/run --peers BUILD installs them from PyPI"


def turn(bench, python, what, path, more=""):
    environment = dict(os.environ, PYTHONPATH=os.path.join(bench.build, "python"))
    output = subprocess.run([python, "-c", TURN, what, path, more], env=environment, stdout=subprocess.PIPE, check=True).stdout
    return json.loads(output)


def alternate(ours, theirs, runs=RUNS):
    """The shortest wall and CPU times of both: [rows, wall, cpu]."""
    best = [None, None]
    for _ in range(runs):
        for place, measure in enumerate((ours, theirs)):
            figures = measure()
            best[place] = figures if best[place] is None else [figures[0], *map(min, figures[1:], best[place][1:])]
    return best


def measure_python_tables(bench, trace):
    python, reason = find_python(bench)
    if not python:
        bench.skip("gpu_op in Python", reason)
        return
    parquet, small, text = bench.path("arrow.parquet"), bench.path("arrow-small.sbt"), bench.path("arrow.json")
    turn(bench, python, "write", trace, parquet)
    ours, theirs = alternate(lambda: turn(bench, python, "arrow", trace), lambda: turn(bench, python, "parquet", parquet))
    bench.add("gpu_op to pyarrow, 20 M rows, all columns", ours[1], "s", None, "PyArrow reading Parquet", theirs[1], theirs[1] / ours[1])
    bench.add("the same, CPU", ours[2], "s", None, "PyArrow reading Parquet", theirs[2], theirs[2] / ours[2])
    bench.add("size of these rows", os.path.getsize(trace) / ROWS, "bytes/row", None, "Parquet, zstd", os.path.getsize(parquet) / ROWS,
              os.path.getsize(parquet) / os.path.getsize(trace))
    bench.program("write", small, "--rows", str(JSON_ROWS), "--table", "gpu_op")
    subprocess.run([bench.tool, "export", "-q", small, "-f", "chrome", "-o", text], check=True)
    ours, theirs = alternate(lambda: turn(bench, python, "pandas", trace), lambda: turn(bench, python, "json", text), 3)
    if (ours[0], theirs[0]) != (ROWS, JSON_ROWS):
        raise RuntimeError("rows are missing")
    scaled = theirs[1] * ROWS / JSON_ROWS
    bench.add("gpu_op to pandas, 20 M rows, all columns", ours[1], "s", None, "json.load and a DataFrame, 0.2 M rows, scaled", scaled,
              scaled / ours[1])
    ours = min((turn(bench, python, "pandas", trace, "start,duration,name") for _ in range(3)), key=lambda figures: figures[1])
    bench.add("gpu_op to pandas, 20 M rows, 3 columns", ours[1], "s", None)
    for path in parquet, small, text:
        os.unlink(path)


def measure_arrow(bench):
    trace = bench.path("arrow.sbt")
    bench.program("write", trace, "--rows", str(ROWS), "--table", "gpu_op")
    kept = bench.program("arrow", trace)
    # The file is in the page cache now, the memory of each process is fresh.
    fresh = min(bench.program("arrow", trace, "--runs", "1")["first_seconds"] for _ in range(RUNS))
    released = bench.program("arrow", trace, "--stream")
    if kept["rows"] != ROWS:
        raise RuntimeError("rows are missing")
    bench.add("gpu_op as Arrow, 20 M rows, all columns", kept["seconds"], "s", "<= 0.3")
    bench.add("the same, first stream of a process", fresh, "s", "<= 0.3")
    bench.add("the same, each batch released", released["seconds"], "s", None)
    measure_python_tables(bench, trace)
    os.unlink(trace)
