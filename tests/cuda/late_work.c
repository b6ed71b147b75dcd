/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the stand-ins for the driver and for CUPTI that starts recording itself, with the
 * backend loaded late: when it has used CUDA already, or (`early`) before. Then another tool uses
 * CUPTI, in a recording and after it, as torch.profiler does; or it has done so before
 * (`subscribed`). `late_work BACKEND used|early|subscribed FIRST SECOND THIRD`: three traces.
 * cuda/late.sh checks them.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/emit.h>

#include "cuda/device_support.h"

#define CUPTI_FUNCTION(name, parameters) int cupti##name parameters;
CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION

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

/* ---- the other tool ---- */

static uint8_t their_buffer[65536];
static size_t their_bytes;

static void their_callback(void *data, uint32_t domain, uint32_t number, const void *what)
{
	(void)data, (void)domain, (void)number, (void)what;
}

static void their_requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	memset(their_buffer, 0, sizeof(their_buffer));
	*buffer = their_buffer;
	*bytes = sizeof(their_buffer);
	*most_records = 0;
}

static void their_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			    size_t valid)
{
	(void)context, (void)stream, (void)bytes;
	if (buffer != their_buffer)
		fail("it got another's buffer");
	their_bytes += valid;
}

static void profile(unsigned int first, unsigned int count)
{
	their_bytes = 0;
	if (cuptiActivityRegisterCallbacks(their_requested, their_completed) ||
	    cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL))
		fail("the other tool cannot start");
	launch(first, count);
	complete(ALL);
	if (cuptiActivityDisable(CUPTI_KIND_CONCURRENT_KERNEL) || cuptiActivityFlushAll(1))
		fail("the other tool cannot stop");
	printf("%u of %u\n", (unsigned int)(their_bytes / device->kernel_bytes), count);
}

int main(int argc, char **argv)
{
	bool is_early = argc == 6 && !strcmp(argv[2], "early");
	bool is_subscribed = argc == 6 && !strcmp(argv[2], "subscribed");
	void *subscriber = NULL;

	if (argc != 6)
		return 2;
	if (!is_early) {
		begin();
		if (is_subscribed && cuptiSubscribe(&subscriber, their_callback, NULL))
			fail("the other tool cannot subscribe");
		launch(1, 5);
		complete(ALL);
	}
	if (!dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))
		fail(dlerror());
	start(argv[3]);
	if (is_early)
		begin();
	await_kinds(true);
	run(101, 10);
	stop(argv[3]);
	launch(201, 5);
	complete(ALL);

	await_kinds(false);
	start(argv[4]);
	run(301, 20);
	stop(argv[4]);

	start(argv[5]);
	if (!is_subscribed && cuptiSubscribe(&subscriber, their_callback, NULL))
		fail("the other tool cannot subscribe");
	run(401, 3);
	profile(501, 7);
	await_kinds(true);
	run(601, 4);
	stop(argv[5]);
	await_kinds(false);
	profile(701, 6);
	return 0;
}
