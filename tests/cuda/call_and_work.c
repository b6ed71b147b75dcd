/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small program on the stand-in for the driver, in which calls succeed. cuda/work.sh checks the
 * trace against its known work. `call_and_work [fork_first | fork_later | behind | abandon]`.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/stand_in.h"

#define LAUNCHES 100
#define STREAM ((uintptr_t)0x7000)
#define OTHER_STREAM ((uintptr_t)0x7100)

int cuInit(unsigned int flags);
int cuMemAlloc_v2(uintptr_t *address, size_t bytes);
int cuMemAllocPitch_v2(uintptr_t *address, size_t *pitch, size_t width, size_t height,
		       unsigned int element);
int cuMemAllocAsync(uintptr_t *address, size_t bytes, uintptr_t stream);
int cuMemFreeAsync(uintptr_t address, uintptr_t stream);
int cuMemFree_v2(uintptr_t address);
int cuMemAllocHost_v2(void **address, size_t bytes);
int cuMemFreeHost(void *address);
int cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags);
int cuMemCreate(uint64_t *handle, size_t bytes, const void *properties, uint64_t flags);
int cuMemRelease(uint64_t handle);
int cuLaunchKernel(uintptr_t function, unsigned int grid_x, unsigned int grid_y,
		   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
		   unsigned int block_z, unsigned int shared, uintptr_t stream, void **parameters,
		   void **extra);
int cuEventQuery(uintptr_t event);
int cuStreamQuery(uintptr_t stream);
int cuStreamSynchronize(uintptr_t stream);
int cuStreamDestroy_v2(uintptr_t stream);
int cuStreamBeginCapture_v2(uintptr_t stream, int mode);
int cuTexRefSetMipmapLevelBias(void *texture, float bias);
int cuStreamEndCapture(uintptr_t stream, uintptr_t *graph);

static void launch(int count)
{
	for (int i = 0; i < count; i++)
		cuLaunchKernel(1, (unsigned int)i + 1, 1, 1, 32, 1, 1, 0, STREAM, NULL, NULL);
}

static void use_memory(void)
{
	uintptr_t first = 0, second = 0, third = 0, pooled = 0;
	int properties[8] = { 1, 0, 1, 0 }; /* pinned, on device 0 */
	static char registered[4096];
	uint64_t handle = 0;
	void *host = NULL;
	size_t pitch = 0;

	cuMemAlloc_v2(&first, 1000);
	cuMemAlloc_v2(&second, 2000);
	cuMemFree_v2(first);
	cuMemAllocPitch_v2(&third, &pitch, 100, 10, 4);
	cuMemAllocAsync(&pooled, 700, STREAM);
	cuMemFreeAsync(pooled, STREAM);
	cuMemAllocHost_v2(&host, 4096);
	cuMemHostRegister_v2(registered, sizeof(registered), 0);
	cuMemFreeHost(host);
	cuMemCreate(&handle, 1 << 21, properties, 0);
	cuMemRelease(handle);
	cuMemFree_v2(0);
	cuMemFree_v2(0x123450000); /* never submitted */
}

static void capture(void)
{
	uintptr_t graph = 0;

	cuStreamBeginCapture_v2(STREAM, 0);
	launch(5);
	cuStreamEndCapture(STREAM, &graph);
}

/*
 * One of two captures ends with its stream. The stand-in does not notice, and still reports streams
 * as capturing.
 */
static int abandon(void)
{
	uintptr_t graph = 0, captured = 0, given = 0;

	cuStreamBeginCapture_v2(OTHER_STREAM, 0);
	cuStreamBeginCapture_v2(STREAM, 0);
	cuStreamDestroy_v2(OTHER_STREAM);
	cuMemAllocAsync(&captured, 600, STREAM);
	cuStreamEndCapture(STREAM, &graph);
	cuMemAllocAsync(&given, 500, STREAM);
	return 0;
}

static void poll_often(void)
{
	for (int i = 0; i < 50; i++)
		cuEventQuery(0x8000);
	cuStreamQuery(STREAM);
	cuEventQuery(0x8000);
	cuStreamSynchronize(STREAM);
}

static int child(bool begins)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		if (begins)
			cuInit(0);
		launch(7);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* Calls seen by a library that is preloaded after ours. */
static int behind(void)
{
	long *launches = dlsym(RTLD_DEFAULT, "behind_launches");
	long *parents = dlsym(RTLD_DEFAULT, "behind_parents");
	pid_t parent = getppid();

	launch(3);
	if (!launches || !parents || parent <= 0)
		return 1;
	printf("behind: %ld launches, %ld parents\n", *launches, *parents);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int status = 0;

	stand_in_work(true);
	if (!strcmp(what, "fork_first"))
		status = child(true);
	if (cuInit(0))
		return 2;
	if (!strcmp(what, "fork_later"))
		status = child(false);
	if (!strcmp(what, "behind"))
		return behind();
	if (!strcmp(what, "abandon"))
		return abandon();
	launch(LAUNCHES);
	use_memory();
	capture();
	poll_often();
	for (int i = 0; i < 3; i++)
		if (cuTexRefSetMipmapLevelBias((void *)5, 2.5f) != 250)
			return 4;
	return status ? 3 : 0;
}
