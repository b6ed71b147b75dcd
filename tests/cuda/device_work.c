/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the stand-ins for the driver and for CUPTI, whose launches produce device activity.
 * cuda/device.sh checks the trace against its known work. `device_work threads | killed | profiler
 * | found | exit`.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/cuda/local/cupti_abi.h"
#include "cuda/device_support.h"

#define THREADS 4
#define LAUNCHES 1000 /* per thread */

#define CUPTI_FUNCTION(name, parameters) int cupti##name parameters;
CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION

/* ---- four threads on one stream, each launch with its own grid ---- */

static void *launch_many(void *thread)
{
	char name[16];

	snprintf(name, sizeof(name), "launcher-%u", (unsigned int)(uintptr_t)thread);
	pthread_setname_np(pthread_self(), name);
	launch((unsigned int)(uintptr_t)thread * 10000 + 1, LAUNCHES);
	return NULL;
}

static int run_threads(void)
{
	pthread_t threads[THREADS];

	begin();
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, launch_many, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	complete(ALL);
	return 0;
}

/* ---- killed: 600 of 1000 were complete, and were read ---- */

static int run_killed(void)
{
	begin();
	launch(1, 1000);
	complete(600); /* enough for 8 full buffers, which are returned */
	if (!stand_in_await(600, 2))
		return 1;
	kill(getpid(), SIGKILL);
	return 1;
}

/* ---- another tool in the same program ---- */

static uint32_t theirs;

static void ignored(void *data, uint32_t domain, uint32_t number, const void *what)
{
	(void)data, (void)domain, (void)number, (void)what;
}

static void their_requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	*bytes = 4096;
	*buffer = calloc(1, *bytes);
	*most_records = 0;
}

static void their_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			    size_t valid)
{
	void *record = NULL;

	(void)context, (void)stream, (void)bytes;
	while (!cuptiActivityGetNextRecord(buffer, valid, &record))
		theirs++;
	free(buffer);
}

static int run_profiler(void)
{
	void *subscriber;

	begin();
	launch(1, 10);
	if (cuptiSubscribe(&subscriber, ignored, NULL) ||
	    cuptiActivityRegisterCallbacks(their_requested, their_completed))
		return 1;
	complete(ALL);
	if (cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL) ||
	    cuptiActivityEnable(CUPTI_KIND_RUNTIME))
		return 1;
	launch(1001, 20);
	complete(ALL);
	cuptiActivityDisable(CUPTI_KIND_CONCURRENT_KERNEL);
	cuptiActivityDisable(CUPTI_KIND_RUNTIME);
	cuptiActivityFlushAll(0);
	launch(2001, 10);
	complete(ALL);
	printf("theirs %u\n", theirs);
	return 0;
}

/*
 * dlsym() does not return the library's own function: the subscriber is ours, though there is one.
 */
static int run_found(void)
{
	int (*subscribe)(void **, cupti_callback, void *);
	void *library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD), *subscriber = NULL;

	begin();
	if (!library)
		return 1;
	subscribe = (int (*)(void **, cupti_callback, void *))dlsym(library, "cuptiSubscribe");
	printf("subscribed %d\n", subscribe ? subscribe(&subscriber, ignored, NULL) : -1);
	return 0;
}

/* Exits with incomplete work. */
static int run_exit(void)
{
	begin();
	launch(1, 10);
	complete(7);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} ways[] = {
		{ "threads", run_threads }, { "killed", run_killed }, { "profiler", run_profiler },
		{ "found", run_found },     { "exit", run_exit },
	};

	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, argv[1]))
			return ways[i].run();
	return 2;
}
