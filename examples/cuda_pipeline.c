/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small CUDA program in two streams: each step uploads numbers in one and mixes them into a sum
 * in the other; events enforce the order. Needs NVIDIA's driver only, neither toolkit nor headers.
 * Try
 *
 *	tracesmith record --replayable --window steps:10-14 -o t.sbt -- build/examples/cuda_pipeline
 *	tracesmith replay t.sbt --check each --repeat 3
 *	tracesmith replay t.sbt --kernel 'mix#2' --repeat 20
 *
 * --race leaves out the event between upload and kernel: the program still ends with the right
 * result nearly always, and replay says that it need not.
 *
 * Prints a checksum, which is the same in each run. Exit code 77 without a device.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/emit.h>

enum { COUNT = 1 << 16, THREADS = 256, NO_DEVICE = 77 };

/* prepare: numbers[i] = numbers[i] * 5 + step; mix: sum[i] = sum[i] * 3 + numbers[i] */
static const char code[] = ".version 7.0\n"
			   ".target sm_75\n"
			   ".address_size 64\n"
			   ".visible .entry prepare(.param .u64 numbers, .param .u32 step)\n"
			   "{\n"
			   "	.reg .u32 %r<8>;\n"
			   "	.reg .u64 %rd<4>;\n"
			   "	mov.u32 %r0, %ctaid.x;\n"
			   "	mov.u32 %r1, %ntid.x;\n"
			   "	mov.u32 %r2, %tid.x;\n"
			   "	mad.lo.u32 %r3, %r0, %r1, %r2;\n"
			   "	ld.param.u64 %rd0, [numbers];\n"
			   "	cvta.to.global.u64 %rd0, %rd0;\n"
			   "	mad.wide.u32 %rd1, %r3, 4, %rd0;\n"
			   "	ld.param.u32 %r4, [step];\n"
			   "	ld.global.u32 %r5, [%rd1];\n"
			   "	mad.lo.u32 %r6, %r5, 5, %r4;\n"
			   "	st.global.u32 [%rd1], %r6;\n"
			   "	ret;\n"
			   "}\n"
			   ".visible .entry mix(.param .u64 sum, .param .u64 numbers)\n"
			   "{\n"
			   "	.reg .u32 %r<8>;\n"
			   "	.reg .u64 %rd<4>;\n"
			   "	mov.u32 %r0, %ctaid.x;\n"
			   "	mov.u32 %r1, %ntid.x;\n"
			   "	mov.u32 %r2, %tid.x;\n"
			   "	mad.lo.u32 %r3, %r0, %r1, %r2;\n"
			   "	ld.param.u64 %rd0, [sum];\n"
			   "	cvta.to.global.u64 %rd0, %rd0;\n"
			   "	mad.wide.u32 %rd1, %r3, 4, %rd0;\n"
			   "	ld.param.u64 %rd2, [numbers];\n"
			   "	cvta.to.global.u64 %rd2, %rd2;\n"
			   "	mad.wide.u32 %rd3, %r3, 4, %rd2;\n"
			   "	ld.global.u32 %r4, [%rd1];\n"
			   "	ld.global.u32 %r5, [%rd3];\n"
			   "	mad.lo.u32 %r6, %r4, 3, %r5;\n"
			   "	st.global.u32 [%rd1], %r6;\n"
			   "	ret;\n"
			   "}\n";

static struct {
	int (*init)(unsigned int flags);
	int (*device_get)(int *device, int number);
	int (*context_retain)(void **context, int device);
	int (*context_set)(void *context);
	int (*synchronize)(void);
	int (*module_load)(void **module, const void *image);
	int (*module_function)(void **function, void *module, const char *name);
	int (*memory_allocate)(uint64_t *address, size_t bytes);
	int (*memory_free)(uint64_t address);
	int (*upload)(uint64_t to, const void *from, size_t bytes, void *stream);
	int (*download)(void *to, uint64_t from, size_t bytes);
	int (*fill)(uint64_t to, unsigned int value, size_t count);
	int (*launch)(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		      unsigned int block_x, unsigned int block_y, unsigned int block_z,
		      unsigned int shared_bytes, void *stream, void **parameters, void **extra);
	int (*stream_create)(void **stream, unsigned int flags);
	int (*stream_wait)(void *stream, void *event, unsigned int flags);
	int (*event_create)(void **event, unsigned int flags);
	int (*event_record)(void *event, void *stream);
} cuda;

static void check(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: error %d\n", what, result);
	exit(1);
}

static void find_driver(void)
{
	static const struct {
		const char *name;
		void *to;
	} calls[] = {
		{ "cuInit", &cuda.init },
		{ "cuDeviceGet", &cuda.device_get },
		{ "cuDevicePrimaryCtxRetain", &cuda.context_retain },
		{ "cuCtxSetCurrent", &cuda.context_set },
		{ "cuCtxSynchronize", &cuda.synchronize },
		{ "cuModuleLoadData", &cuda.module_load },
		{ "cuModuleGetFunction", &cuda.module_function },
		{ "cuMemAlloc_v2", &cuda.memory_allocate },
		{ "cuMemFree_v2", &cuda.memory_free },
		{ "cuMemcpyHtoDAsync_v2", &cuda.upload },
		{ "cuMemcpyDtoH_v2", &cuda.download },
		{ "cuMemsetD32_v2", &cuda.fill },
		{ "cuLaunchKernel", &cuda.launch },
		{ "cuStreamCreate", &cuda.stream_create },
		{ "cuStreamWaitEvent", &cuda.stream_wait },
		{ "cuEventCreate", &cuda.event_create },
		{ "cuEventRecord", &cuda.event_record },
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		void *found = library ? dlsym(library, calls[i].name) : NULL;

		if (!found) {
			fprintf(stderr, "no CUDA driver\n");
			exit(NO_DEVICE);
		}
		/* POSIX guarantees equal representation of both kinds of pointers. */
		memcpy(calls[i].to, &found, sizeof(found));
	}
}

struct pipeline {
	void *prepare, *mix;
	void *uploading, *computing; /* streams */
	void *uploaded, *computed;   /* events */
	uint64_t numbers, sum;
	int has_race;
};

static void launch(void *function, void *stream, void **parameters)
{
	check(cuda.launch(function, COUNT / THREADS, 1, 1, THREADS, 1, 1, 0, stream, parameters,
			  NULL),
	      "cuLaunchKernel");
}

static void open_pipeline(struct pipeline *pipeline)
{
	const unsigned int non_blocking = 1, without_times = 2;
	void *module, *context;
	int device;

	find_driver();
	if (cuda.init(0) || cuda.device_get(&device, 0)) {
		fprintf(stderr, "no CUDA device\n");
		exit(NO_DEVICE);
	}
	check(cuda.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
	check(cuda.context_set(context), "cuCtxSetCurrent");
	check(cuda.module_load(&module, code), "cuModuleLoadData");
	check(cuda.module_function(&pipeline->prepare, module, "prepare"), "cuModuleGetFunction");
	check(cuda.module_function(&pipeline->mix, module, "mix"), "cuModuleGetFunction");
	check(cuda.stream_create(&pipeline->uploading, non_blocking), "cuStreamCreate");
	check(cuda.stream_create(&pipeline->computing, non_blocking), "cuStreamCreate");
	check(cuda.event_create(&pipeline->uploaded, without_times), "cuEventCreate");
	check(cuda.event_create(&pipeline->computed, without_times), "cuEventCreate");
	check(cuda.memory_allocate(&pipeline->numbers, COUNT * 4), "cuMemAlloc");
	check(cuda.memory_allocate(&pipeline->sum, COUNT * 4), "cuMemAlloc");
	check(cuda.fill(pipeline->sum, 1, COUNT), "cuMemsetD32");
	check(cuda.synchronize(), "cuCtxSynchronize");
}

static void run_step(struct pipeline *pipeline, uint32_t step)
{
	static uint32_t host[COUNT];
	void *prepare[] = { &pipeline->numbers, &step };
	void *mix[] = { &pipeline->sum, &pipeline->numbers };

	for (uint32_t i = 0; i < COUNT; i++)
		host[i] = i * (step + 1);
	check(cuda.stream_wait(pipeline->uploading, pipeline->computed, 0), "cuStreamWaitEvent");
	check(cuda.upload(pipeline->numbers, host, sizeof(host), pipeline->uploading),
	      "cuMemcpyHtoDAsync");
	launch(pipeline->prepare, pipeline->uploading, prepare);
	check(cuda.event_record(pipeline->uploaded, pipeline->uploading), "cuEventRecord");
	if (!pipeline->has_race)
		check(cuda.stream_wait(pipeline->computing, pipeline->uploaded, 0),
		      "cuStreamWaitEvent");
	launch(pipeline->mix, pipeline->computing, mix);
	check(cuda.event_record(pipeline->computed, pipeline->computing), "cuEventRecord");
}

static uint32_t checksum(const struct pipeline *pipeline)
{
	static uint32_t host[COUNT];
	uint32_t hash = 0;

	check(cuda.synchronize(), "cuCtxSynchronize");
	check(cuda.download(host, pipeline->sum, sizeof(host)), "cuMemcpyDtoH");
	for (uint32_t i = 0; i < COUNT; i++)
		hash = (hash ^ host[i]) * 16777619u;
	return hash;
}

int main(int argc, char **argv)
{
	struct pipeline pipeline = { 0 };
	long steps = 20;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--race")) {
			pipeline.has_race = 1;
		} else if (!strcmp(argv[i], "--steps") && i + 1 < argc) {
			steps = strtol(argv[++i], NULL, 10);
		} else {
			fprintf(stderr, "usage: cuda_pipeline [--steps N] [--race]\n");
			return 2;
		}
	}
	open_pipeline(&pipeline);
	for (long step = 0; step < steps; step++) {
		TS_STEP(step);
		run_step(&pipeline, (uint32_t)step);
	}
	printf("checksum %08x\n", checksum(&pipeline));
	check(cuda.memory_free(pipeline.numbers), "cuMemFree");
	check(cuda.memory_free(pipeline.sum), "cuMemFree");
	return 0;
}
