# SPDX-License-Identifier: Apache-2.0
"""Images of pyopencl: one with the contents of an array, one that a kernel writes through a sampler,
a copy to the host, and a map.
"""
import numpy
import pyopencl

SOURCE = """
kernel void blur(read_only image2d_t from, write_only image2d_t to, sampler_t sampler) {
	int2 at = (int2)(get_global_id(0), get_global_id(1)); float4 sum = 0;
	for (int y = -1; y <= 1; y++) for (int x = -1; x <= 1; x++)
		sum += read_imagef(from, sampler, at + (int2)(x, y));
	write_imagef(to, at, sum / 9.0f);
}
"""
WIDTH, HEIGHT = 80, 60
context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
program = pyopencl.Program(context, SOURCE).build()

pixels = numpy.random.RandomState(1).randint(0, 256, (HEIGHT, WIDTH, 4)).astype(numpy.uint8)
source = pyopencl.image_from_array(context, pixels, 4, norm_int=True)
format_ = pyopencl.ImageFormat(pyopencl.channel_order.RGBA, pyopencl.channel_type.UNORM_INT8)
target = pyopencl.Image(context, pyopencl.mem_flags.READ_WRITE, format_, shape=(WIDTH, HEIGHT))
sampler = pyopencl.Sampler(context, False, pyopencl.addressing_mode.CLAMP_TO_EDGE, pyopencl.filter_mode.NEAREST)
program.blur(queue, (WIDTH, HEIGHT), None, source, target, sampler)

result = numpy.empty_like(pixels)
pyopencl.enqueue_copy(queue, result, target, origin=(0, 0), region=(WIDTH, HEIGHT))
padded = numpy.pad(pixels.astype(numpy.float64), ((1, 1), (1, 1), (0, 0)), mode="edge")
expected = sum(padded[y:y + HEIGHT, x:x + WIDTH] for y in range(3) for x in range(3)) / 9
assert numpy.abs(result - expected).max() <= 1, "the result"
mapped = pyopencl.enqueue_map_image(queue, target, pyopencl.map_flags.READ, (0, 0), (WIDTH, HEIGHT),
                                    (HEIGHT, WIDTH, 4), numpy.uint8)[0]
assert (mapped == result).all(), "the mapped image"
mapped.base.release(queue)
queue.finish()
