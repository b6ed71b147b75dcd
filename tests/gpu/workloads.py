# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs to record: workloads.py NAME[,NAME...] [--profile] [--repeat N] [--out FILE].
Each is set up and warmed up, then run N times between two synchronizations. FILE gets one JSON
object per line: name, start and end of each repetition (CLOCK_REALTIME, ns), and with --profile
the counts of torch.profiler: {kernel: [count, ns]}, copies and fills. Does not depend on
TraceSmith: the work is the same with and without it.
"""
import argparse, json, os, sys, tempfile, time, traceback

import torch
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


# ---- workloads: each returns a function to repeat ----

class Mlp:
    """36 launches per step."""

    def __init__(self, width=256):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)]
        self.model = torch.nn.Sequential(*layers).to(DEVICE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.inputs = torch.randn(128, width, device=DEVICE)
        self.labels = torch.randint(0, 10, (128,), device=DEVICE)

    def train_step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(self.inputs), self.labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def train_steps(self, count):
        for _ in range(count):
            loss = self.train_step()
        return loss


class Transformer(Mlp):
    """Forward and backward of a small encoder."""

    def __init__(self, width=512, layers=4):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True)
        self.model = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(DEVICE)
        self.inputs = torch.randn(8, 256, width, device=DEVICE)

    def train_step(self):
        for parameter in self.model.parameters():
            parameter.grad = None
        loss = self.model(self.inputs).square().mean()
        loss.backward()
        return loss


def mlp():
    work = Mlp()
    return lambda: work.train_steps(20)


def transformer():
    work = Transformer()
    return lambda: work.train_steps(5)


def compiled():
    torch.manual_seed(0)
    first, second = torch.randn(512, 512, device=DEVICE), torch.randn(512, 512, device=DEVICE)

    @torch.compile
    def fused(left, right):
        return (F.gelu(left @ right) * 2 + right.sin()).sum(dim=1)

    return lambda: [fused(first, second) for _ in range(50)]


def triton_add():
    import triton_kernels
    left, right = torch.ones(1 << 16, device=DEVICE), torch.ones(1 << 16, device=DEVICE)
    return lambda: [triton_kernels.add(left, right) for _ in range(100)]


class Graph:
    def __init__(self):
        self.model = Mlp().model
        self.inputs = torch.randn(128, 256, device=DEVICE)
        with torch.no_grad():
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.model(self.inputs)
            torch.cuda.current_stream().wait_stream(side)
            self.capture_graph()

    def capture_graph(self):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.output = F.relu(self.model(self.inputs))

    def replay_graph(self, count):
        for _ in range(count):
            self.graph.replay()


def graph():
    work = Graph()
    return lambda: work.replay_graph(50)


def streams():
    matrix = torch.randn(512, 512, device=DEVICE)
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    ready, done = torch.cuda.Event(), torch.cuda.Event()

    def both():
        for _ in range(30):
            with torch.cuda.stream(first):
                produced = matrix @ matrix
                ready.record()
            with torch.cuda.stream(second):
                ready.wait()
                (produced * 2).relu_()
                done.record()
            first.wait_event(done)

    return both


def convolution():
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3)).to(DEVICE)
    images = torch.randn(16, 16, 64, 64, device=DEVICE)

    def steps():
        for _ in range(10):
            model.zero_grad(set_to_none=True)
            model(images).mean().backward()

    return steps


def copies():
    host, pinned = torch.ones(1 << 20), torch.ones(1 << 20).pin_memory() if DEVICE == "cuda" else torch.ones(1 << 20)
    device = torch.empty(1 << 20, device=DEVICE)

    def move():
        for _ in range(20):
            device.copy_(host)
            device.copy_(pinned, non_blocking=True)
            pinned.copy_(device, non_blocking=True)
            torch.zeros(1 << 18, device=DEVICE)
            synchronize()

    return move


WORKLOADS = {
    "mlp": mlp, "transformer": transformer, "compile": compiled, "triton": triton_add, "graph": graph, "streams": streams, "convolution": convolution,
    "copies": copies,
}


# ---- repeating them ----

def counted(profile):
    """The device activity of torch.profiler: kernels by name, copies and fills; and the number of
    calls of each function of the runtime and the driver."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profile.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    kernels, others, calls = {}, {}, {}
    for event in events:
        if event.get("cat") in ("cuda_runtime", "cuda_driver"):
            calls[event["name"]] = calls.get(event["name"], 0) + 1
            continue
        if event.get("cat") == "kernel":
            entry = kernels.setdefault(event["name"], [0, 0])
        elif event.get("cat") in ("gpu_memcpy", "gpu_memset"):
            entry = others.setdefault(event["cat"], [0, 0])
        else:
            continue
        entry[0] += 1
        entry[1] += round(event["dur"] * 1000)
    return {"kernels": kernels, "others": others, "calls": calls}


def make_profile():
    from torch.profiler import ProfilerActivity, profile
    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA] if DEVICE == "cuda" else [ProfilerActivity.CPU]
    return profile(activities=kinds)


def repeat_once(work, is_profiled):
    synchronize()
    time.sleep(0.02)
    begin = time.clock_gettime_ns(time.CLOCK_REALTIME)
    if is_profiled:
        with make_profile() as profile:
            work()
            synchronize()
    else:
        work()
        synchronize()
    end = time.clock_gettime_ns(time.CLOCK_REALTIME)
    time.sleep(0.02)
    found = {"begin_ns": begin, "end_ns": end}
    return {**found, **counted(profile)} if is_profiled else found


def run_workload(name, options, out):
    work = WORKLOADS[name]()
    for _ in range(2):
        work()
    synchronize()
    row = {"name": name, "repetitions": [repeat_once(work, options.profile) for _ in range(options.repeat)]}
    print(json.dumps(row), file=out, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", default="/dev/stdout")
    options = parser.parse_args()
    failed = 0
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    with open(options.out, "w") as out:
        for name in options.names.split(","):
            try:
                run_workload(name, options, out)
            except Exception:
                traceback.print_exc()
                print(json.dumps({"name": name, "error": traceback.format_exc()[-300:]}), file=out, flush=True)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
