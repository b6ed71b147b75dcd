/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with the CUDA runtime linked statically (libcudart_static.a), like many deployed ones:
 * it finds the driver by dlsym() from inside itself. Makes N launches of one kernel, and a copy and
 * a fill per hundred. Declares prototypes itself, because NVIDIA's headers need C++.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct dim3 {
	unsigned int x, y, z;
};

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);
int cudaMemset(void *pointer, int value, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaDeviceSynchronize(void);
int cudaGetDeviceCount(int *count);
int cudaLibraryLoadData(void **library, const void *code, void *options, void **values,
			unsigned int count, void *library_options, void **library_values,
			unsigned int library_count);
int cudaLibraryGetKernel(void **kernel, void *library, const char *name);
int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
		     size_t shared_bytes, void *stream);

static const char source[] = ".version 7.0\n"
			     ".target sm_75\n"
			     ".address_size 64\n"
			     ".visible .entry count_up(.param .u64 where)\n"
			     "{\n"
			     "	.reg .u64 %where;\n"
			     "	.reg .u32 %old;\n"
			     "	ld.param.u64 %where, [where];\n"
			     "	cvta.to.global.u64 %where, %where;\n"
			     "	atom.global.add.u32 %old, [%where], 1;\n"
			     "	ret;\n"
			     "}\n";

static void check(int code, const char *what)
{
	if (code) {
		fprintf(stderr, "%s gave %d\n", what, code);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000, sum = 0;
	struct dim3 one = { 1, 1, 1 };
	void *library, *kernel, *memory;
	void *arguments[] = { &memory };
	uint32_t counted = 0;
	int devices = 0;

	if (cudaGetDeviceCount(&devices) || !devices) {
		fprintf(stderr, "skip: no CUDA device\n");
		return 77;
	}
	check(cudaLibraryLoadData(&library, source, NULL, NULL, 0, NULL, NULL, 0),
	      "cudaLibraryLoadData");
	check(cudaLibraryGetKernel(&kernel, library, "count_up"), "cudaLibraryGetKernel");
	check(cudaMalloc(&memory, 4096), "cudaMalloc");
	for (long i = 0; i < count; i++) {
		if (i % 100 == 0)
			check(cudaMemset(memory, 0, 4096), "cudaMemset");
		check(cudaLaunchKernel(kernel, one, one, arguments, 0, NULL), "cudaLaunchKernel");
		if (i % 100 == 99) {
			check(cudaMemcpy(&counted, memory, sizeof(counted), 2), "cudaMemcpy");
			sum += counted;
		}
	}
	check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	check(cudaFree(memory), "cudaFree");
	printf("%ld\n", sum);
	return 0;
}
