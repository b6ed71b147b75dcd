/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that cannot be replayed; see work_kernels.cu. */
#include <cstdio>

extern "C" __global__ void prints(int n)
{
	printf("%d\n", n);
}

extern "C" __global__ void allocates(void **out)
{
	*out = malloc(16);
}

extern "C" __global__ void harmless(int *out)
{
	*out = 1;
}
