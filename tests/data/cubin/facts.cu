/* SPDX-License-Identifier: Apache-2.0 */
/* Variables, and kernels that can and cannot be replayed; see test_cubin_symbols.c. */
#include <cassert>
#include <cstdio>

#ifdef WITH_MANAGED
__managed__ int managed = 3;
#endif
__constant__ int table[16];
__device__ float weights[100] = { 1, 2, 3 };
__device__ int counter;

struct wide {
	char bytes[5];
	double number;
};

__device__ int *last;
__device__ __noinline__ int makes(int i)
{
	last = (int *)malloc(i);
	return i;
}
__device__ __noinline__ int adds(int i)
{
	return i + 1;
}
typedef int (*function)(int);
__device__ function functions[2] = { makes, adds };

extern "C" {
__global__ void plain(float *x, int n, char c, struct wide w)
{
	int i = threadIdx.x;

	x[i] = table[i & 15] + weights[i] + c + n + w.bytes[2] + w.number;
	atomicAdd(&counter, 1);
}
__global__ void calls(int *x)
{
	*x = makes(*x);
}
#ifdef WITH_POINTERS
__global__ void points(int *x, int i)
{
	*x = functions[i](*x);
}
#endif
__global__ void allocates(int **x)
{
	*x = (int *)malloc(4);
}
__global__ void frees(int *x)
{
	free(x);
}
__global__ void prints(int i)
{
	printf("%d\n", i);
}
__global__ void asserts(int *x)
{
	assert(*x);
}
#ifdef WITH_LAUNCHES
__global__ void launches(int *x)
{
	asserts<<<1, 1>>>(x);
}
#endif
#ifdef WITH_LARGE
struct large {
	char bytes[20000];
};
__global__ void takes_much(int i, struct large l, double d)
{
	table[0] + l.bytes[i] + d > 3 ? counter = 1 : 0;
}
#endif
}
