/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the test programs in this folder. work_kernels.fatbin is made of it by
 * work_kernels.sh, with code for sm_90 and PTX, and is loaded on real devices and on the stand-in
 * driver (driver/kernels.c has the same in C). A thread takes elements at the grid's distance.
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define EACH(n) for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += gridDim.x * blockDim.x)
#define KERNEL extern "C" __global__ void

__device__ u64 words[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
__device__ u64 sums[16];
__constant__ u32 factors[4] = { 10, 20, 30, 40 };
__device__ u64 *pointer = &words[1];

KERNEL add(u32 *out, const u32 *a, const u32 *b, u32 n)
{
	EACH(n)
		out[i] = a[i] + b[i];
}

KERNEL saxpy(float *y, const float *x, float a, u32 n)
{
	EACH(n)
		y[i] = __fadd_rn(__fmul_rn(a, x[i]), y[i]);
}

KERNEL fill(u32 *out, u32 value, u32 n)
{
	EACH(n)
		out[i] = value + i;
}

__device__ static u32 mixed(u32 x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

KERNEL mix(u32 *out, const u32 *in, u32 seed, u32 n)
{
	EACH(n)
		out[i] = mixed(in[i] ^ mixed(out[i] + seed + i));
}

KERNEL copy_through_pointer(u32 **table, u32 n)
{
	EACH(n)
		table[0][i] = table[1][i] + 1;
}

KERNEL use_global(u64 *out, u32 n)
{
	EACH(n)
		out[i] = words[i % 16] + factors[i % 4] + i;
}

KERNEL add_to_global(const u64 *in)
{
	EACH(16) {
		words[i] += in[i];
		sums[i] += words[i];
	}
}

KERNEL global_address_to_memory(u64 **out, u32 n)
{
	EACH(n)
		out[i] = &words[i % 16];
}

KERNEL read_through_table(u64 *out, const u64 *const *table, u32 n)
{
	EACH(n)
		out[i] = *table[i];
}

KERNEL read_through_global(u64 *out)
{
	if (!threadIdx.x && !blockIdx.x)
		*out = *pointer;
}

KERNEL count_up(u32 *counter, u32 *out, u32 n)
{
	EACH(n)
		out[i] = atomicAdd(counter, 1);
}

KERNEL nondeterministic(u64 *out, u32 n)
{
	u64 now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	EACH(n)
		out[i] = now + i;
}

KERNEL spin_until_host(const volatile u32 *flag, u32 *out)
{
	while (!*flag)
		;
	*out = *flag;
}

KERNEL write_own_address(u64 *out, u32 n)
{
	EACH(n)
		out[i] = (u64)&out[i];
}

struct pair {
	u32 first;
	u64 second;
};

KERNEL take_structure(u64 *out, struct pair pair, unsigned char more)
{
	if (!threadIdx.x && !blockIdx.x)
		*out = pair.first * 3ull + pair.second + more;
}

KERNEL write_shape(u32 *out)
{
	if (!threadIdx.x && !blockIdx.x && !threadIdx.y && !blockIdx.y) {
		out[0] = gridDim.x * gridDim.y * gridDim.z * blockDim.x * blockDim.y * blockDim.z;
		out[1] = blockDim.x * blockDim.y * blockDim.z;
	}
}
