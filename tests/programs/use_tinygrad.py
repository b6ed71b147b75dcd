# SPDX-License-Identifier: Apache-2.0
# tinygrad: a small network learns XOR; its first outputs and gradients are compared with numpy.
import numpy
from tinygrad import Context, Tensor, nn

random = numpy.random.default_rng(3)
inputs = numpy.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=numpy.float32)
targets = numpy.array([[0], [1], [1], [0]], dtype=numpy.float32)
w1 = random.standard_normal((2, 8)).astype(numpy.float32)
w2 = random.standard_normal((8, 1)).astype(numpy.float32)

a, b = Tensor(w1).is_param_(), Tensor(w2).is_param_()
optimizer = nn.optim.SGD([a, b], lr=0.1)
losses = []
with Context(TRAINING=1):
    for step in range(12):
        optimizer.zero_grad()
        hidden = (Tensor(inputs) @ a).relu()
        error = hidden @ b - Tensor(targets)
        loss = (error * error).mean()
        loss.backward()
        if step == 0:
            h = numpy.maximum(inputs @ w1, 0)
            e = h @ w2 - targets
            assert numpy.allclose(loss.numpy(), (e * e).mean(), rtol=1e-4), "loss"
            assert numpy.allclose(b.grad.numpy(), h.T @ e * 2 / 4, atol=1e-4), "gradient"
        optimizer.step()
        losses.append(loss.item())
assert losses[-1] < losses[0], losses

c = random.standard_normal((33, 65)).astype(numpy.float32)
d = random.standard_normal((65, 17)).astype(numpy.float32)
assert numpy.allclose((Tensor(c) @ Tensor(d)).numpy(), c @ d, atol=1e-3), "matrix product"
print("losses", losses[0], losses[-1])
