/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on the stand-ins for the driver and for CUPTI, whose launches are work of a device. */
#ifndef TS_TESTS_CUDA_DEVICE_SUPPORT_H
#define TS_TESTS_CUDA_DEVICE_SUPPORT_H

#include <stdlib.h>
#include <time.h>

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
static inline void watch(int number, const uintptr_t *args)
{
	struct stand_in_work work = { .kind = CUPTI_KIND_CONCURRENT_KERNEL,
				      .number = LAUNCH_NUMBER,
				      .name = "_Z4worki" };

	if (number != LAUNCH_NUMBER)
		return;
	work.grid = (uint32_t)args[1];
	device->call(&work);
}

static inline void begin(void)
{
	device = stand_in_cupti();
	stand_in_work(true);
	stand_in_watch(watch);
	if (cuInit(0))
		exit(3);
}

static inline void launch(unsigned int first, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		cuLaunchKernel(1, first + i, 1, 1, 32, 1, 1, 0, STREAM, NULL, NULL);
}

static inline void complete(uint32_t count)
{
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	device->complete(count, ns, ns + 1000);
}

#endif
