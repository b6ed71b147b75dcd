# SPDX-License-Identifier: Apache-2.0
"""JAX and CuPy: kernels are counted and named as in a separate run with CUPTI alone.
check_frameworks.py jax|cupy
"""
import collections, sys

from common import *

JAX = """
import jax, jax.numpy as jnp
@jax.jit
def step(left, right):
    return jnp.tanh(left @ right) + 1.0
left = jnp.ones((256, 256)); right = jnp.ones((256, 256))
for _ in range(200):
    left = step(left, right)
print(float(left.sum()))
"""
CUPY = """
import cupy
left = cupy.ones((256, 256), dtype=cupy.float32)
for _ in range(100):
    left = cupy.tanh(left @ left) + 1
own = cupy.RawKernel('extern "C" __global__ void own_kernel(float *a) { a[threadIdx.x] += 1; }', "own_kernel")
for _ in range(50):
    own((1,), (32,), (left,))
print(float(left.sum()))
"""
# Otherwise chosen at run time, with kernels that differ from run to run.
SETTINGS = {"XLA_FLAGS": "--xla_gpu_autotune_level=0", "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_PLATFORMS": "cuda"}


def total_ns(trace):
    return sum(op["duration"] for op in trace.kernels())


def counted_ns(counted):
    return sum(entry[1] for entry in (counted or {}).values())


def again():
    theirs = oracle(command, 120, SETTINGS, name=name)
    return total_ns(record(name + "-again", command, env=SETTINGS)), counted_ns(theirs)


name = sys.argv[1] if len(sys.argv) > 1 else "jax"
module_or_skip(name)
command = [sys.executable, "-c", JAX if name == "jax" else CUPY]
first = run(command, 120, SETTINGS)
if first.returncode:
    skip(f"{name} does not run here: {first.stdout.strip()[-200:]}")
counted = oracle(command, 120, SETTINGS, name=name)
trace = record(name, command, env=SETTINGS)
check_complete(trace, name)
names = collections.Counter(op["name"] for op in trace.kernels())
expect(sum(names.values()) >= 150, f"{name}: {sum(names.values())} kernels")
if counted:
    compare_counts(names, {kernel: entry[0] for kernel, entry in counted.items()}, name)
    figures["time_percent"] = settle_times([(total_ns(trace), counted_ns(counted))], again, name)
answer, recorded = (output.strip().splitlines()[-1:] for output in (first.stdout, trace.output))
expect(answer == recorded, f"{name}: {answer} without us, {recorded} recorded")
figures["kernels"] = sum(names.values())
finish()
