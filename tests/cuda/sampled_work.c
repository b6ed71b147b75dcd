/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the stand-ins for the driver and for CUPTI whose kernel is sampled: a context, a
 * module, launches from two functions. cuda/sampling.sh checks the trace. `sampled_work CUBIN
 * [kill]`.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "code/cuda/local/cupti_abi.h"
#include "cuda/stand_in.h"
#include "cuda/stand_in_cupti.h"
#include "cuda/stand_in_sampling.h"

#define KERNEL "_Z5scaleIfEvPT_PKS0_i"
#define STREAM ((uintptr_t)0x7000)
#define LAUNCH_NUMBER 307
#define ALL 100000

int cuInit(unsigned int flags);
int cuLaunchKernel(uintptr_t function, unsigned int grid_x, unsigned int grid_y,
		   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
		   unsigned int block_z, unsigned int shared, uintptr_t stream, void **parameters,
		   void **extra);

static struct stand_in_cupti *device;
static char image[1 << 20];
static size_t image_bytes;

static void watch(int number, const uintptr_t *args)
{
	struct stand_in_work work = { .kind = CUPTI_KIND_CONCURRENT_KERNEL,
				      .number = LAUNCH_NUMBER,
				      .name = KERNEL };

	if (number != LAUNCH_NUMBER)
		return;
	work.grid = (uint32_t)args[1];
	stand_in_sample(KERNEL, image, image_bytes, device->call(&work));
}

/* A context, then its module. */
static void begin(const char *path)
{
	struct cupti_module module = { .id = 1, .image = image };
	struct cupti_resource resource = { .context = (void *)0x1000 };
	FILE *file = fopen(path, "rb");

	if (!file)
		exit(3);
	image_bytes = module.bytes = fread(image, 1, sizeof(image), file);
	fclose(file);
	device = stand_in_cupti();
	stand_in_work(true);
	stand_in_watch(watch);
	if (cuInit(0))
		exit(3);
	device->resource(CUPTI_CONTEXT_CREATED, &resource);
	resource.descriptor = &module;
	device->resource(CUPTI_MODULE_LOADED, &resource);
}

static void complete(uint64_t duration)
{
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	device->complete(ALL, ns, ns + duration);
}

static void __attribute__((noinline)) launch(void)
{
	cuLaunchKernel(1, 1, 1, 1, 32, 1, 1, 0, STREAM, NULL, NULL);
	complete(1000);
}

static void __attribute__((noinline)) launch_often(void)
{
	for (volatile int i = 0; i < 30; i++)
		launch();
}

static void __attribute__((noinline)) launch_seldom(void)
{
	for (volatile int i = 0; i < 10; i++)
		launch();
}

/*
 * Samples are drained a few times a second, and stored with their code in the same pass of the
 * helper thread, or in the next.
 */
static bool are_taken(void)
{
	for (int i = 0; i < 4000 && stand_in_samples_left(); i++)
		usleep(5000);
	return !stand_in_samples_left() && stand_in_await(0, 5);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	begin(argv[1]);
	launch_often();
	launch_seldom();
	printf("period %u\n", stand_in_sampling_period());
	fflush(stdout);
	if (argc > 2 && are_taken())
		raise(SIGKILL);
	return 0;
}
