#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_traces.py OUT: records the traces of this folder. Needs an NVIDIA GPU, PyTorch and, for one
of them, JAX.

Each workload runs in its own processes and writes its traces below OUT, and what it knows
without the trace (steps, bytes it copied, the allocator's own peak) to OUT/facts/NAME.json.
Counts of the JSON are added here with Python's json alone; OUT/facts.json has all of it. A
workload that cannot run here is reported and left out. make_traces.py OUT NAME... runs only
those.
"""
import collections
import glob
import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import time

STEPS = 3  # recorded; HTA ignores the last one
RANKS, RANK_STEPS = 4, 6
STRAGGLER, STRAGGLER_SLEEP_S = 2, 0.04
PAUSES_S = (0.02, 0.05, 0.03, 0.08, 0.04, 0.06)  # of all ranks: no two steps are alike
LIMIT_S = 100


# ---- the workloads: each in its own process ----

def new_mlp(width=256):
    import torch
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(),
                               torch.nn.Linear(width, 10))


class Recording:
    """Steps under torch.profiler: one that is not recorded, one to warm up, STEPS that are."""

    def __init__(self, path, device=True, active=STEPS, **options):
        import torch
        from torch.profiler import ProfilerActivity, profile, schedule
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device else [])
        self.cuda = device
        self.torch, self.path, self.active = torch, path, active
        self.profile = profile(activities=activities, schedule=schedule(wait=1, warmup=1, active=active, repeat=1), **options)
        self.facts = {"steps": active}

    def run(self, step):
        torch = self.torch
        with self.profile:
            for number in range(2 + self.active):
                step(number)
                last = number == 1 + self.active
                if self.cuda:
                    torch.cuda.synchronize()
                if last and self.cuda:
                    self.facts["max_memory_allocated"] = torch.cuda.max_memory_allocated()
                    self.facts["max_memory_reserved"] = torch.cuda.max_memory_reserved()
                self.profile.step()
                if number == 1 and self.cuda:
                    torch.cuda.reset_peak_memory_stats()
        export(self.profile, self.path)
        self.facts["torch_table"] = device_table(self.profile)
        return self.facts


def device_table(profile):
    """From torch.profiler's own table: count and duration of device work."""
    rows = [row for row in profile.key_averages() if str(row.device_type).endswith("CUDA") and not getattr(row, "is_user_annotation", False)]
    return {"commands": sum(row.count for row in rows), "names": len(rows), "device_us": round(sum(row.self_device_time_total for row in rows), 3)}


def export(profile, path):
    """torch writes the JSON; the name inside it is that of the plain file, so that the trace
    contains no path of the machine."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    folder, name = os.path.split(os.path.abspath(path))
    before = os.getcwd()
    os.chdir(folder)
    profile.export_chrome_trace(name)
    os.chdir(before)
    pack(path)


def pack(path):
    with open(path, "rb") as plain, open(path + ".gz", "wb") as packed:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as out:
            shutil.copyfileobj(plain, out)
    os.unlink(path)


def train_mlp(out, path, device="cuda", width=256, batch=128, **options):
    """Copies its inputs to the device in each step, and reads the loss back."""
    import torch
    from torch.profiler import record_function
    recording = Recording(f"{out}/{path}", device == "cuda", **options)
    model = new_mlp(width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    inputs, labels = torch.randn(batch, width), torch.randint(0, 10, (batch,))
    if device == "cuda":
        inputs, labels = inputs.pin_memory(), labels.pin_memory()

    def step(_):
        with record_function("## load ##"):
            x, y = inputs.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        with record_function("## forward ##"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        with record_function("## backward ##"):
            loss.backward()
        with record_function("## optimizer ##"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        loss.item()

    facts = recording.run(step)
    if device == "cuda":
        facts["host_to_device"] = {"copies": 2 * STEPS, "bytes": STEPS * (inputs.nbytes + labels.nbytes)}
        facts["device_to_host"] = {"copies": STEPS, "bytes": 4 * STEPS}
    return facts


def mlp_train(out):
    return {"kineto/mlp_train.json.gz": train_mlp(out, "kineto/mlp_train.json", with_stack=True, profile_memory=True, record_shapes=True)}


def cpu_only(out):
    import torch
    torch.set_num_threads(1)
    return {"kineto/cpu_only.json.gz": train_mlp(out, "kineto/cpu_only.json", "cpu", 64, 16, record_shapes=True)}


def operator_table(profile, **options):
    """torch.profiler's own table of operators: calls, total and self us, total and self bytes, as
    a line of text, by name, or by name and shapes."""
    rows = {}
    for row in profile.key_averages(**options):
        key = row.key + (" " + json.dumps(row.input_shapes) if options else "")
        rows[key] = f"{row.count} {row.cpu_time_total:.3f} {row.self_cpu_time_total:.3f} {row.cpu_memory_usage} {row.self_cpu_memory_usage}"
    return rows


def cpu_train(out):
    """A small network without a device: data loader, shapes, memory."""
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    recording = Recording(f"{out}/kineto/cpu_train.json", False, record_shapes=True, profile_memory=True)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    images = torch.utils.data.TensorDataset(torch.randn(256, 3, 16, 16), torch.randint(0, 10, (256,)))
    batches = iter(torch.utils.data.DataLoader(images, batch_size=16, shuffle=True))

    def step(_):
        x, y = next(batches)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    facts = recording.run(step)
    facts.update(torch=torch.__version__, key_averages=operator_table(recording.profile),
                 key_averages_by_shape=operator_table(recording.profile, group_by_input_shape=True))
    return {"kineto/cpu_train.json.gz": facts}


def transformer_train(out):
    import torch
    from torch.profiler import record_function
    torch.manual_seed(0)
    recording = Recording(f"{out}/kineto/transformer_train.json", record_shapes=True, profile_memory=True, with_flops=True)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.1, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs = torch.randn(4, 64, 128, device="cuda")

    def step(_):
        with record_function("## forward ##"), torch.autocast("cuda", torch.bfloat16):
            loss = model(inputs).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return {"kineto/transformer_train.json.gz": recording.run(step)}


def cuda_graph(out):
    import torch
    recording = Recording(f"{out}/kineto/cuda_graph.json")
    model, static, source = new_mlp().cuda(), torch.randn(128, 256, device="cuda"), torch.randn(128, 256).pin_memory()
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = model(static).softmax(dim=1)

    def step(_):
        static.copy_(source, non_blocking=True)
        for _ in range(4):
            graph.replay()
        result.sum().item()

    facts = recording.run(step)
    facts.update(graph_launches=4 * STEPS, host_to_device={"copies": STEPS, "bytes": STEPS * source.nbytes})
    return {"kineto/cuda_graph.json.gz": facts}


def two_streams(out):
    """A product on one stream, further work on another, joined by events; synchronisations are
    recorded."""
    import torch
    from torch._C._profiler import _ExperimentalConfig
    recording = Recording(f"{out}/kineto/two_streams.json", experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True))
    matrix = torch.randn(1024, 1024, device="cuda")
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    ready, done = torch.cuda.Event(), torch.cuda.Event()

    def step(_):
        for _ in range(5):
            with torch.cuda.stream(first):
                produced = matrix @ matrix
                ready.record(first)
            with torch.cuda.stream(second):
                second.wait_event(ready)
                produced.mul(2).relu_()
                done.record(second)
            first.wait_event(done)
        done.synchronize()

    facts = recording.run(step)
    facts.update(events_recorded=10 * STEPS, stream_waits=10 * STEPS, event_synchronizations=STEPS)
    return {"kineto/two_streams.json.gz": facts}


def compiled(out):
    import torch
    recording = Recording(f"{out}/kineto/compiled.json", record_shapes=True)
    model = new_mlp().cuda()

    @torch.compile
    def loss_of(x):
        return torch.nn.functional.gelu(model(x)).softmax(dim=1).square().mean()

    inputs = torch.randn(128, 256, device="cuda")

    def step(_):
        model.zero_grad(set_to_none=True)
        loss_of(inputs).backward()

    return {"kineto/compiled.json.gz": recording.run(step)}


def execution_trace(out):
    """PyTorch's execution trace and the Kineto trace of the same steps."""
    import torch
    from torch.profiler import ExecutionTraceObserver
    os.makedirs(f"{out}/pairs", exist_ok=True)
    observer = ExecutionTraceObserver().register_callback(f"{out}/pairs/mlp_et.json")
    facts = train_mlp(out, "pairs/mlp_kineto.json", record_shapes=True, execution_trace_observer=observer)
    observer.unregister_callback()
    pack(f"{out}/pairs/mlp_et.json")
    with gzip.open(f"{out}/pairs/mlp_et.json.gz") as file:
        trace = json.load(file)
    facts["execution_trace"] = {"schema": trace["schema"], "nodes": len(trace["nodes"])}
    return {"pairs/mlp_kineto.json.gz": facts}


def memory_snapshot(out):
    import torch
    os.makedirs(f"{out}/memory", exist_ok=True)
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    model = new_mlp().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for number in range(4):
        inputs = torch.randn(64 << number, 256, device="cuda")
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    del inputs
    torch.cuda.synchronize()
    facts = {"max_memory_allocated": torch.cuda.max_memory_allocated(), "max_memory_reserved": torch.cuda.max_memory_reserved(),
             "memory_allocated": torch.cuda.memory_allocated(), "memory_reserved": torch.cuda.memory_reserved(),
             "allocations": torch.cuda.memory_stats()["allocation.all.allocated"], "frees": torch.cuda.memory_stats()["allocation.all.freed"]}
    torch.cuda.memory._dump_snapshot(f"{out}/memory/mlp_snapshot.pickle")
    pack(f"{out}/memory/mlp_snapshot.pickle")
    return {"memory/mlp_snapshot.pickle.gz": facts}


def jax_mlp(out):
    os.environ["XLA_FLAGS"] = "--xla_gpu_enable_command_buffer="  # kernels one by one, not as a graph
    import jax
    import jax.numpy as jnp
    key = jax.random.PRNGKey(0)
    weights = [jax.random.normal(jax.random.fold_in(key, i), (256, 256)) * 0.05 for i in range(3)]
    inputs = jax.random.normal(key, (128, 256))

    def loss_of(weights, x):
        for weight in weights:
            x = jax.nn.relu(x @ weight)
        return jnp.mean(x * x)

    @jax.jit
    def train_step(weights, x):
        return [w - 0.01 * g for w, g in zip(weights, jax.grad(loss_of)(weights, x))]

    weights = jax.block_until_ready(train_step(weights, inputs))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    with jax.profiler.trace(f"{out}/jax", profiler_options=options):
        for number in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                weights = jax.block_until_ready(train_step(weights, inputs))
    traces = glob.glob(f"{out}/jax/**/*.trace.json.gz", recursive=True)
    print([(os.path.basename(path), os.path.getsize(path)) for path in glob.glob(f"{out}/jax/**/*", recursive=True) if os.path.isfile(path)])
    os.makedirs(f"{out}/chrome", exist_ok=True)
    with gzip.open(traces[0]) as packed, open(f"{out}/chrome/jax_mlp.json", "wb") as plain:
        shutil.copyfileobj(packed, plain)
    pack(f"{out}/chrome/jax_mlp.json")
    shutil.rmtree(f"{out}/jax")
    return {"chrome/jax_mlp.json.gz": {"steps": STEPS, "jax": jax.__version__, "device": str(jax.devices()[0].device_kind)}}


# ---- ranks of one job, all on one GPU ----

def rank_of_job(out, backend, rank, ranks, store):
    """One rank of data parallel training. NCCL refuses two ranks on one GPU of one host: each rank
    claims to be its own host (NCCL_HOSTID), and they communicate over the loopback device."""
    import torch
    import torch.distributed as dist
    os.environ.update(NCCL_HOSTID=f"host{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", NCCL_NET="Socket", NCCL_MNNVL_ENABLE="0",
                      NCCL_NVLS_ENABLE="0", NCCL_CUMEM_ENABLE="0", GLOO_SOCKET_IFNAME="lo")
    torch.cuda.set_device(0)
    dist.init_process_group(backend, init_method="file://" + store, rank=rank, world_size=ranks)
    name = f"kineto/{backend}_ranks/rank{rank}.json"
    recording = Recording(f"{out}/{name}", active=RANK_STEPS, record_shapes=True)
    model = torch.nn.parallel.DistributedDataParallel(new_mlp().cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    inputs = torch.randn(128, 256, device="cuda")
    gathered = [torch.empty(1024, device="cuda") for _ in range(ranks)]

    def step(number):
        time.sleep(PAUSES_S[number % len(PAUSES_S)] + (STRAGGLER_SLEEP_S if rank == STRAGGLER % ranks else 0))
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        time.sleep(PAUSES_S[-1 - number % len(PAUSES_S)])
        dist.all_gather(gathered, torch.ones(1024, device="cuda"))

    facts = recording.run(step)
    facts.update(rank=rank, ranks=ranks, backend=backend, mps="CUDA_MPS_PIPE_DIRECTORY" in os.environ, straggler=STRAGGLER % ranks,
                 straggler_sleep_us=STRAGGLER_SLEEP_S * 1e6)
    if backend == "nccl":
        facts["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    dist.barrier()
    dist.destroy_process_group()
    return {name + ".gz": facts}


def start_mps(out):
    """Without the multi-process service the processes' kernels take turns in time slices of
    milliseconds, and never run concurrently."""
    if not shutil.which("nvidia-cuda-mps-control"):
        print("there is no nvidia-cuda-mps-control: ranks take turns")
        return False
    os.environ.update(CUDA_MPS_PIPE_DIRECTORY=f"{os.path.abspath(out)}/mps", CUDA_MPS_LOG_DIRECTORY=f"{os.path.abspath(out)}/mps")
    os.makedirs(f"{out}/mps", exist_ok=True)
    return subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False).returncode == 0


def stop_mps(out):
    subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", timeout=20, check=False)
    shutil.rmtree(f"{out}/mps", ignore_errors=True)
    for name in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
        os.environ.pop(name)


def ranks_of_job(out, backend, ranks):
    if start_mps(out):
        try:
            return run_ranks(out, backend, ranks)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"with the multi-process service: {error}; again without it")
        finally:
            stop_mps(out)
    return run_ranks(out, backend, ranks)


def run_ranks(out, backend, ranks):
    store = os.path.abspath(f"{out}/{backend}.store{time.monotonic_ns()}")
    processes = [subprocess.Popen([sys.executable, __file__, "--rank", out, backend, str(rank), str(ranks), store]) for rank in range(ranks)]
    until = time.monotonic() + LIMIT_S / 2 - 5
    try:
        codes = [process.wait(max(1, until - time.monotonic())) for process in processes]
    finally:
        for process in processes:
            process.kill()
    if any(codes):
        raise RuntimeError(f"exit codes {codes}")
    facts = {}
    for rank in range(ranks):
        facts.update(read_facts(f"{out}/facts/{backend}_rank{rank}.json"))
    return facts


def nccl_ranks(out):
    return ranks_of_job(out, "nccl", RANKS)


def gloo_ranks(out):
    return ranks_of_job(out, "gloo", 2)


WORKLOADS = [mlp_train, transformer_train, cuda_graph, two_streams, compiled, cpu_only, cpu_train, execution_trace, memory_snapshot, nccl_ranks,
             gloo_ranks, jax_mlp]


# ---- facts ----

def read_facts(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_facts(path, facts):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1, sort_keys=True)
        file.write("\n")


def count_events(path):
    """The contents of the JSON, counted with Python alone."""
    with gzip.open(path) as file:
        trace = json.load(file)
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    categories = collections.Counter(event["cat"] for event in events if "cat" in event)
    kernels = {event["name"] for event in events if event.get("cat") == "kernel"}
    return {"slices": len(events), "categories": categories, "kernel_names": len(kernels)}


def machine():
    import torch
    return {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
            "cuda": torch.version.cuda, "python": platform.python_version()}


def run_all(out, names):
    for workload in WORKLOADS:
        name = workload.__name__
        if names and name not in names:
            continue
        began = time.monotonic()
        try:
            code = subprocess.run([sys.executable, __file__, "--one", out, name], timeout=LIMIT_S, check=False).returncode
        except subprocess.TimeoutExpired:
            code = 124
        print(f"{name}: {'ok' if code == 0 else f'FAILED ({code})'}, {time.monotonic() - began:.1f} s", flush=True)
    facts = {"machine": machine(), "traces": {}}
    for path in sorted(glob.glob(f"{out}/facts/*.json")):
        for name, one in read_facts(path).items():
            if "/" in name and name.endswith(".json.gz"):
                one = {**one, "counted": count_events(f"{out}/{name}")}
            facts["traces"][name] = one
    write_facts(f"{out}/facts.json", facts)
    shutil.rmtree(f"{out}/facts", ignore_errors=True)


def main(arguments):
    if arguments[0] == "--one":
        out, name = arguments[1:]
        workload = {one.__name__: one for one in WORKLOADS}[name]
        write_facts(f"{out}/facts/{name}.json", workload(out))
    elif arguments[0] == "--rank":
        out, backend, rank, ranks, store = arguments[1:]
        write_facts(f"{out}/facts/{backend}_rank{rank}.json", rank_of_job(out, backend, int(rank), int(ranks), store))
    else:
        run_all(arguments[0], arguments[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
