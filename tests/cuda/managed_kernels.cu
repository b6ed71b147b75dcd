/* SPDX-License-Identifier: Apache-2.0 */
/* A module with a managed variable, which cannot be replayed; see work_kernels.cu. */
__managed__ int managed;

extern "C" __global__ void uses_managed(int n)
{
	managed += n;
}
