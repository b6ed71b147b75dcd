/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the stand-ins for the driver and for CUPTI that starts recording itself when it has
 * used CUDA already, with the backend loaded late: `late_work BACKEND OUT OUT`. cuda/late.sh checks
 * the traces.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tracesmith/emit.h>

#include "code/cuda/local/cupti_abi.h"
#include "cuda/stand_in.h"
#include "cuda/stand_in_cupti.h"

#define STREAM ((uintptr_t)0x7000)
#define LAUNCH_NUMBER 307
#define ALL 100000

int cuInit(unsigned int flags);
int cuLaunchKernel(uintptr_t function, unsigned int grid_x, unsigned int grid_y,
		   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
		   unsigned int block_z, unsigned int shared, uintptr_t stream, void **parameters,
		   void **extra);

static struct stand_in_cupti *device;

/* The driver was called: CUPTI reports it, and the device gets work. */
static void watch(int number, const uintptr_t *args)
{
	struct stand_in_work work = { .kind = CUPTI_KIND_CONCURRENT_KERNEL,
				      .number = LAUNCH_NUMBER,
				      .name = "_Z4worki" };

	if (number != LAUNCH_NUMBER)
		return;
	work.grid = (uint32_t)args[1];
	device->call(&work);
}

static void launch(unsigned int first, unsigned int count)
{
	struct timespec now;
	uint64_t ns;

	for (unsigned int i = 0; i < count; i++)
		cuLaunchKernel(1, first + i, 1, 1, 32, 1, 1, 0, STREAM, NULL, NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	device->complete(ALL, ns, ns + 1000);
}

static void record(const char *output, unsigned int first, unsigned int count)
{
	struct ts_start_options options = { .size = sizeof(options),
					    .output = output,
					    .backends = "cuda" };
	int rc = ts_start(&options);

	if (rc)
		exit(3);
	TS_INSTANT("recorded", "test");
	launch(first, count);
	if (!stand_in_await(count, 2)) {
		printf("the helper does not read\n");
		exit(4);
	}
	rc = ts_stop(NULL, 0);
	printf("%s: %d\n", output, rc);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	device = stand_in_cupti();
	stand_in_work(true);
	stand_in_watch(watch);
	if (cuInit(0))
		return 1;
	launch(1, 5);
	if (!dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) {
		printf("%s\n", dlerror());
		return 1;
	}
	record(argv[2], 101, 10);
	launch(201, 5);
	record(argv[3], 301, 20);
	return 0;
}
