# SPDX-License-Identifier: Apache-2.0
"""Plain pyopencl: maps, rectangles, sub-buffers, user events, a program from its binary, an
out-of-order queue.
"""
import numpy
import pyopencl
from pyopencl import mem_flags

SOURCE = """
kernel void scale(global int *data, int factor) { data[get_global_id(0)] *= factor; }
"""
context = pyopencl.create_some_context(interactive=False)
properties = pyopencl.command_queue_properties
queue = pyopencl.CommandQueue(context)
free = pyopencl.CommandQueue(context, properties=properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)

built = pyopencl.Program(context, SOURCE).build()
binary = built.get_info(pyopencl.program_info.BINARIES)
again = pyopencl.Program(context, context.devices, binary).build()

host = numpy.arange(1024, dtype=numpy.int32)
buffer = pyopencl.Buffer(context, mem_flags.READ_WRITE | mem_flags.COPY_HOST_PTR, hostbuf=host)
part = buffer.get_sub_region(2048, 1024)
go = pyopencl.UserEvent(context)
first = built.scale(free, (256,), None, part, numpy.int32(3), wait_for=[go])
second = again.scale(free, (1024,), None, buffer, numpy.int32(2), wait_for=[first])
go.set_status(pyopencl.command_execution_status.COMPLETE)
second.wait()

mapped, event = pyopencl.enqueue_map_buffer(queue, buffer, pyopencl.map_flags.READ | pyopencl.map_flags.WRITE, 0, (1024,),
                                            numpy.int32)
with mapped.base:
    expected = host * 2
    expected[512:768] *= 3
    assert numpy.array_equal(mapped, expected)
    mapped[:16] = 7

block = numpy.zeros((4, 8), dtype=numpy.int32)
pyopencl.enqueue_copy(queue, block, buffer, buffer_origin=(16, 2), host_origin=(0, 0), region=(32, 4),
                      buffer_pitches=(128,), host_pitches=(32,))
expected[:16] = 7
assert numpy.array_equal(block, expected.reshape(-1, 32)[2:6, 4:12])
