# SPDX-License-Identifier: Apache-2.0
"""pyopencl's arrays: arithmetic, slices, random numbers, copies, on two queues."""
import numpy
import pyopencl
import pyopencl.array
import pyopencl.clrandom

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
other = pyopencl.CommandQueue(context)

a = pyopencl.array.to_device(queue, numpy.arange(4096, dtype=numpy.float32))
b = pyopencl.array.zeros(queue, 4096, numpy.float32) + 3
c = (a * b + a / 2 - 1)[1000:3000].copy()
assert numpy.allclose(c.get(), (numpy.arange(4096) * 3.5 - 1)[1000:3000])

random = pyopencl.clrandom.PhiloxGenerator(context, seed=7).uniform(queue, 1000, numpy.float32)
assert 0 <= random.get().min() and random.get().max() <= 1

# A copy on the other queue, after this queue's commands.
d = pyopencl.array.empty(queue, 2000, numpy.float32)
done = pyopencl.enqueue_copy(other, d.data, c.data, wait_for=[pyopencl.enqueue_marker(queue)])
done.wait()
host = numpy.empty(2000, numpy.float32)
pyopencl.enqueue_copy(queue, host, d.data)
assert numpy.array_equal(host, c.get())

integers = pyopencl.array.arange(queue, 0, 10000, 1, dtype=numpy.int32)
integers *= 3
assert int(pyopencl.array.sum(integers).get()) == 3 * sum(range(10000))
