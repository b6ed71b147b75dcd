# SPDX-License-Identifier: Apache-2.0
"""Triton kernels; Triton needs their source in a file."""
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(left, right, result, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(result + at, tl.load(left + at, mask=at < count) + tl.load(right + at, mask=at < count), mask=at < count)


def add(left, right):
    result = torch.empty_like(left)
    add_kernel[(triton.cdiv(left.numel(), 1024),)](left, right, result, left.numel(), BLOCK=1024)
    return result


@triton.jit
def multiply_kernel(left, right, result, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total += tl.dot(tl.load(left + rows[:, None] * K + (k + inner)[None, :]), tl.load(right + (k + inner)[:, None] * N + columns[None, :]))
    tl.store(result + rows[:, None] * N + columns[None, :], total)


def multiply(left, right):
    """Of matrices whose sizes are multiples of 64."""
    M, K, N = *left.shape, right.shape[1]
    result = torch.empty(M, N, device=left.device, dtype=torch.float32)
    multiply_kernel[(M // 64, N // 64)](left, right, result, M, N, K, BM=64, BN=64, BK=32)
    return result
