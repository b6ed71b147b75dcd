/* SPDX-License-Identifier: Apache-2.0 */
/* Made lines.cubin: nvcc -arch=sm_90 -lineinfo -cubin, in the folder /example. Its lines are what tests expect. */
#include "inner.h"

__device__ __forceinline__ float middle(float a)
{
	return inner(a, a + 1.0f)
		+ inner(a * 2, 3.0f);
}

template <class T> __global__ void scale(T *to, const T *from, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] = middle(from[i]);
}

__device__ __noinline__ float called(float a)
{
	return a * 3;
}

extern "C" __global__ void plain(float *to)
{
	to[threadIdx.x] = called(to[threadIdx.x]);
}

template __global__ void scale<float>(float *, const float *, int);
