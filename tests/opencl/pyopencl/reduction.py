# SPDX-License-Identifier: Apache-2.0
"""pyopencl's reductions, which run in two stages through an internal buffer, and its memory pool.
"""
import numpy
import pyopencl
import pyopencl.array
import pyopencl.tools
from pyopencl.reduction import ReductionKernel

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
pool = pyopencl.tools.MemoryPool(pyopencl.tools.ImmediateAllocator(queue))

dot = ReductionKernel(context, numpy.int64, neutral="0", reduce_expr="a + b", map_expr="(long)x[i] * y[i]",
                      arguments="const int *x, const int *y")
largest = ReductionKernel(context, numpy.int32, neutral="-2147483647", reduce_expr="max(a, b)", map_expr="x[i]",
                          arguments="const int *x")
for count in (1, 100, 70000):
    values = (numpy.arange(count, dtype=numpy.int64) * 7919 % 10007).astype(numpy.int32)
    x = pyopencl.array.to_device(queue, values, allocator=pool)
    y = pyopencl.array.to_device(queue, values[::-1].copy(), allocator=pool)
    assert int(dot(x, y).get()) == int((values.astype(numpy.int64) * values[::-1]).sum())
    assert int(largest(x).get()) == int(values.max())
