/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the stand-ins for the driver and for CUPTI that starts recording itself, with the
 * backend loaded late: when it has used CUDA already, or (`early`) before. Then another tool uses
 * CUPTI, in a recording and after it, as torch.profiler does; or it has done so before
 * (`subscribed`). `late_work BACKEND TOOL used|early|subscribed FIRST SECOND THIRD`: three traces.
 * cuda/late.sh checks them.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/emit.h>

#include "cuda/device_support.h"
#include "cuda/late_tool.h"

static void fail(const char *what)
{
	printf("%s\n", what);
	exit(4);
}

static void start(const char *output)
{
	struct ts_start_options options = { .size = sizeof(options),
					    .output = output,
					    .backends = "cuda" };

	if (ts_start(&options))
		fail("it does not start");
	TS_INSTANT("recorded", "test");
}

static void stop(const char *output)
{
	printf("%s: %d\n", output, ts_stop(NULL, 0));
}

/* Another tool, in a library that is linked with CUPTI. */
static struct late_tool *tool;

static void load_tool(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	tool = library ? dlsym(library, "late_tool") : NULL;
	if (!tool)
		fail(dlerror());
}

static void await_redirection(void)
{
	void *theirs = dlsym(RTLD_DEFAULT, "cuptiActivityEnable");

	for (int i = 0; i < 20000 && tool->enable() == theirs; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (tool->enable() == theirs)
		fail("the tool's imports are not redirected");
}

static void profile(unsigned int first, unsigned int count)
{
	if (tool->start())
		fail("the other tool cannot start");
	launch(first, count);
	complete(ALL);
	printf("%u of %u\n", tool->stop(), count);
}

/* Until the backend has enabled what it records, or disabled it. */
static void await_kinds(bool on)
{
	for (int i = 0; i < 20000; i++) {
		if ((__atomic_load_n(&device->kinds[CUPTI_KIND_CONCURRENT_KERNEL],
				     __ATOMIC_ACQUIRE) != 0) == on)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	fail(on ? "kinds are not enabled" : "kinds stay enabled");
}

static void run(unsigned int first, unsigned int count)
{
	launch(first, count);
	complete(ALL);
	if (!stand_in_await(count, 2))
		fail("the helper does not read");
}

int main(int argc, char **argv)
{
	bool is_early = argc == 7 && !strcmp(argv[3], "early");
	bool is_subscribed = argc == 7 && !strcmp(argv[3], "subscribed");

	if (argc != 7)
		return 2;
	if (!is_early) {
		begin();
		load_tool(argv[2]);
		if (is_subscribed && tool->subscribe())
			fail("the other tool cannot subscribe");
		launch(1, 5);
		complete(ALL);
	}
	if (!dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))
		fail(dlerror());
	start(argv[4]);
	if (is_early)
		begin();
	await_kinds(true);
	run(101, 10);
	stop(argv[4]);
	launch(201, 5);
	complete(ALL);

	await_kinds(false);
	start(argv[5]);
	run(301, 20);
	stop(argv[5]);

	start(argv[6]);
	if (is_early)
		load_tool(argv[2]);
	await_redirection();
	if (!is_subscribed && tool->subscribe())
		fail("the other tool cannot subscribe");
	run(401, 3);
	profile(501, 7);
	await_kinds(true);
	run(601, 4);
	stop(argv[6]);
	await_kinds(false);
	profile(701, 6);
	return 0;
}
