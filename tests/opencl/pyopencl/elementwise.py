# SPDX-License-Identifier: Apache-2.0
"""pyopencl's element-wise kernels, with arguments of several types."""
import numpy
import pyopencl
import pyopencl.array
from pyopencl.elementwise import ElementwiseKernel

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
count = 5000

combine = ElementwiseKernel(
    context, "float a, const float *x, short b, const int *y, double *out", "out[i] = a * x[i] + b * y[i]", "combine")
x = numpy.linspace(0, 1, count, dtype=numpy.float32)
y = numpy.arange(count, dtype=numpy.int32)
out = pyopencl.array.empty(queue, count, numpy.float64)
for step in range(5):
    combine(numpy.float32(step), pyopencl.array.to_device(queue, x), numpy.int16(step + 1),
            pyopencl.array.to_device(queue, y), out)
    assert numpy.allclose(out.get(), step * x + (step + 1) * y)
