# SPDX-License-Identifier: Apache-2.0
"""The steps of tests/gpu/run.sh, which has built everything: runs them, each with a time limit,
prints a row for each as it ends, and writes results.json.
"""
import argparse, concurrent.futures, datetime, json, os, shutil, signal, subprocess, sys, threading, time

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
BUILD, TOOL, WORK = (os.environ[name] for name in ("TS_GPU_BUILD", "TRACESMITH", "TS_GPU_WORK"))
LOG_BYTES = 200_000
REPLAY_SECONDS = 300  # rows that have not started by then are left out
LEAST_SECONDS = 20  # minimum to start a step
printing = threading.Lock()


class Step:
    def __init__(self, name, group, command, limit, is_alone=False):
        self.name, self.group, self.command, self.limit, self.is_alone = name, group, command, limit, is_alone


def check(name, *arguments, limit=120, is_alone=False, title=None):
    return Step(title or name, "checks", [sys.executable, os.path.join(HERE, f"check_{name}.py"), *arguments], limit, is_alone)


def package_test(name, limit):
    """A test of the Python package, with a PyTorch that has CUDA."""
    settings = ["env", f"TS_BUILD={BUILD}", f"TORCH_PYTHON={sys.executable}"]
    script = os.path.join(SOURCE, f"tests/package/{name}.sh")
    return Step(f"package_{name}", "checks", [*settings, os.path.join(SOURCE, "scripts/run-test-script"), script], limit, True)


def package_bench(name, *arguments, limit=300):
    return Step(name, "bench", ["env", f"PYTHONPATH={BUILD}/python", sys.executable, os.path.join(SOURCE, f"bench/{name}.py"), *arguments], limit, True)


def steps(is_quick, out, rows):
    """Benchmarks have the GPU to themselves."""
    quick = ["--quick"] if is_quick else []
    bench = [sys.executable, os.path.join(SOURCE, "bench/cuda.py"), "--tool", TOOL, "--launches", os.path.join(BUILD, "gpu/launches"), "--out", out, "--work", WORK]
    only_cupti = os.path.join(BUILD, "gpu/libcupti_only.so")
    bench += ["--cupti-only", only_cupti] if os.path.exists(only_cupti) else []
    found = [
        Step("doctor", "checks", [TOOL, "doctor", "cuda"], 60),
        check("joins", *(["1000"] if is_quick else [])),
        check("kill", "1" if is_quick else "3"),
        check("processes", *quick),
        check("stacks", *quick, limit=240),
        check("profiler"),
        check("late"),
        check("modules"),
        check("windows"),
        check("wheel", limit=300),
        *(package_test(name, 300) for name in ("torch", "windows", "record")),
        check("nvtx"),
        check("memory"),
        check("nccl", limit=150),
        check("counts", *(["mlp", "graph"] if is_quick else []), limit=400, is_alone=True),
        check("launches", "100000" if is_quick else "1000000", is_alone=True),
        check("frameworks", "jax", limit=200, is_alone=True, title="jax"),
        check("frameworks", "cupy", limit=200, is_alone=True, title="cupy"),
        check("same_stacks", "10000" if is_quick else "100000", limit=180, is_alone=True),
        check("sampling", *quick, limit=200, is_alone=True),
        check("instructions", limit=200, is_alone=True),
        check("replay", "--out", out, "--limit", str(REPLAY_SECONDS), *(["--rows", rows] if rows else []), *quick, limit=REPLAY_SECONDS + 60, is_alone=True),
        Step("cuda", "bench", bench + (["--generations", "1", "--rounds", "6", "--only", "launches,mlp"] if is_quick else []), 560, True),
    ]
    replay = [sys.executable, os.path.join(SOURCE, "bench/cuda_replay.py"), "--tool", TOOL, "--launches", os.path.join(BUILD, "gpu/launches"), "--out", out, "--work", WORK]
    program = os.path.join(BUILD, "gpu/replay_program")
    replay += ["--program", program] if os.path.exists(program) else []
    spool = os.path.join(BUILD, "bench/live/spool")
    replay += ["--spool", spool] if os.path.exists(spool) else []
    replay += ["--cupti-only", only_cupti] if os.path.exists(only_cupti) else []
    found.append(Step("cuda_replay", "bench", replay + (["--generations", "2", "--rounds", "4", "--recordings", "1"] if is_quick else []), 560, True))
    found += [package_bench("torch_modules", "--device", "cuda"), package_bench("python_emit", "--rounds", "9")]
    found.append(Step("arrow", "bench", [sys.executable, os.path.join(SOURCE, "bench/run"), "--arrow", BUILD], 200, True))
    # Programs that print their measurements.
    for name in ("unwind", "cuda_join"):
        program = os.path.join(BUILD, "bench", name)
        if os.path.exists(program):
            found.append(Step(name, "bench", [program], 120, True))
    return found


# ---- running one ----

def run_step(step, out, deadline):
    left = deadline - time.monotonic()
    if left < LEAST_SECONDS:
        row = {"name": step.name, "group": step.group, "state": "skipped", "seconds": 0, "figures": {}, "problems": ["no time was left for it"]}
        show(row)
        return row
    log, start = os.path.join(out, step.name + ".log"), time.monotonic()
    work = os.path.join(WORK, step.name)
    os.makedirs(work, exist_ok=True)
    with open(log, "wb") as file:
        process = subprocess.Popen(step.command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                                   env={**os.environ, "TS_GPU_WORK": work}, cwd=work)
        try:
            code = process.wait(min(step.limit, left))
        except subprocess.TimeoutExpired:
            code = 124
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = open(log, errors="replace").read()
    row = result_of(step, code, text, time.monotonic() - start)
    with open(log, "w") as file:
        file.write(text[-LOG_BYTES:])
    shutil.rmtree(work, ignore_errors=True)
    show(row)
    return row


def result_of(step, code, text, seconds):
    lines = text.strip().splitlines() or [""]
    row = {"name": step.name, "group": step.group, "seconds": round(seconds, 1), "exit_code": code, "figures": {}, "problems": []}
    row["state"] = "ok" if code == 0 else "skipped" if code == 77 else "FAILED"
    result = next((line for line in reversed(lines) if line.startswith("result: ")), None)
    if result:
        try:
            row.update(json.loads(result[len("result: "):]))
        except ValueError:
            pass
    elif code == 0 and lines[-1].startswith("{"):
        row["figures"] = json.loads(lines[-1])
    if row["state"] == "ok" and row.get("missed"):
        row["state"] = "missed"
    if code == 124:
        row["problems"].append(f"did not end within {seconds:.0f} s")
    if code and not row["problems"]:
        row["problems"].append(lines[-1][:300])
    if not row["figures"] and code == 0:
        row["output"] = lines[-12:]
    return row


def show(row):
    """A row; below a benchmark's row a line for each of its figures."""
    words = [f"{key} {value}" for key, value in row["figures"].items()]
    lines = []
    remarks = row.get("missed", []) + ["skipped: " + text for text in row.get("left_out", [])]
    if row["name"] == "replay":
        lines = row.get("lines", [])
        words = [f"{key} {value}" for key, value in row["figures"].items()] + row.get("missed", [])
    elif row["state"] in ("FAILED", "skipped"):
        words = row["problems"] + remarks
    elif row["group"] == "bench":
        lines = row.get("lines") or words or row.get("output", [])
        words = remarks
    else:
        words = remarks + (words[:7] or row.get("output", [])[-1:])
    with printing:
        print(f"{row['name']:<14} {row['state']:<9} {row['seconds']:>6.1f} s  {'; '.join(map(str, words))[:400]}", flush=True)
        for line in lines:
            print("    " + str(line)[:230], flush=True)


# ---- the machine ----

def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def describe_machine():
    gpu = (output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines() or [""])[0].split(", ")
    versions = output(sys.executable, "-c", "import torch; print(torch.__version__, torch.version.cuda)").split() or ["none"]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "machine": f"{os.uname().machine}, {os.cpu_count()} cores",
        "system": next((line.split("=", 1)[1].strip('"\n') for line in open("/etc/os-release") if line.startswith("PRETTY_NAME=")), "?"),
        "gpu": gpu[0], "driver": gpu[1] if len(gpu) > 1 else "?",
        "cuda": (output(os.path.join(os.environ.get("cuda", "/usr/local/cuda"), "bin/nvcc"), "--version").splitlines() or ["?"])[-1],
        "torch": " ".join(versions), "python": sys.version.split()[0],
        "commit": output("git", "-C", SOURCE, "rev-parse", "--short", "HEAD") or "?",
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", default="")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--limit", type=float, default=3600)
    options = parser.parse_args()
    deadline = time.monotonic() + options.limit
    machine = describe_machine()
    os.environ["TS_GPU_MACHINE"] = json.dumps(machine)
    print("; ".join(f"{key} {value}" for key, value in machine.items()), flush=True)
    chosen = [word for word in options.only.split(",") if word]
    found = [step for step in steps(options.quick, options.out, options.rows) if not chosen or step.name in chosen or step.group in chosen]
    if not found:
        sys.exit(f"no step is called {options.only}")
    rows = []

    def store():
        with open(os.path.join(options.out, "results.json"), "w") as file:
            json.dump({"machine": machine, "steps": rows}, file, indent=1)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_step, step, options.out, deadline) for step in found if not step.is_alone]):
            rows.append(done.result())
            store()
    for step in found:
        if step.is_alone:
            rows.append(run_step(step, options.out, deadline))
            store()
    states = [row["state"] for row in rows]
    print(f"{states.count('ok')} ok, {states.count('missed')} ok but for a figure that misses its bar, {states.count('FAILED')} failed, {states.count('skipped')} skipped")
    sys.exit(1 if "FAILED" in states else 0)


main()
