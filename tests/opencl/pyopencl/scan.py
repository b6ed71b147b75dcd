# SPDX-License-Identifier: Apache-2.0
"""pyopencl's scans, which launch several kernels with local memory."""
import numpy
import pyopencl
import pyopencl.array
from pyopencl.scan import GenericScanKernel

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)

compact = GenericScanKernel(
    context, numpy.int32, arguments="const int *in, int *out, int *count",
    input_expr="(in[i] % 3) == 0 ? 1 : 0", scan_expr="a + b", neutral="0",
    output_statement="""
        if (prev_item != item) out[item - 1] = in[i];
        if (i + 1 == N) *count = item;
        """)
for count in (10, 1000, 40000):
    values = (numpy.arange(count, dtype=numpy.int64) * 31 % 1013).astype(numpy.int32)
    x = pyopencl.array.to_device(queue, values)
    out = pyopencl.array.zeros_like(x)
    found = pyopencl.array.zeros(queue, 1, numpy.int32)
    compact(x, out, found)
    wanted = values[values % 3 == 0]
    assert int(found.get()[0]) == len(wanted)
    assert numpy.array_equal(out.get()[:len(wanted)], wanted)
