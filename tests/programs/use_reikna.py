# SPDX-License-Identifier: Apache-2.0
# reikna: matrix product, reduction, FFT and random numbers, compared with numpy.
import numpy
from reikna import cluda
from reikna.algorithms import PureParallel, Reduce, Scan, Transpose, predicate_sum
from reikna.core import Annotation, Parameter
from reikna.fft import FFT
from reikna.linalg import MatrixMul

api = cluda.ocl_api()
thread = api.Thread.create()
random = numpy.random.default_rng(7)
a = random.random((48, 40), dtype=numpy.float32)
b = random.random((40, 56), dtype=numpy.float32)


def run(computation, output_shape, output_dtype, *inputs):
    output = thread.array(output_shape, output_dtype)
    compiled = computation.compile(thread)
    compiled(output, *[thread.to_device(value) for value in inputs])
    return output.get()


product = run(MatrixMul(a, b), (48, 56), numpy.float32, a, b)
assert numpy.allclose(product, a @ b, rtol=1e-4), "matrix product"

total = run(Reduce(a, predicate_sum(numpy.float32)), (), numpy.float32, a)
assert numpy.allclose(total, a.sum(), rtol=1e-4), "sum"

turned = run(Transpose(a), (40, 48), numpy.float32, a)
assert (turned == a.T).all(), "transpose"

numbers = numpy.arange(1000, dtype=numpy.int32)
sums = run(Scan(numbers, predicate_sum(numpy.int32)), (1000,), numpy.int32, numbers)
assert (sums == numpy.cumsum(numbers)).all(), "scan"

waves = (random.random((3, 128)) + 1j * random.random((3, 128))).astype(numpy.complex64)
transform = FFT(waves, axes=(1,)).compile(thread)
on_device = thread.to_device(waves)
transform(on_device, on_device)
assert numpy.allclose(on_device.get(), numpy.fft.fft(waves), atol=1e-3), "FFT"
print("all equal")
