/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the stand-ins for the driver and for CUPTI that starts recording itself when it has
 * used CUDA already, with the backend loaded late: `late_work BACKEND OUT OUT`. cuda/late.sh checks
 * the traces.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <tracesmith/emit.h>

#include "cuda/device_support.h"

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
	complete(ALL);
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
	begin();
	launch(1, 5);
	complete(ALL);
	if (!dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) {
		printf("%s\n", dlerror());
		return 1;
	}
	record(argv[2], 101, 10);
	launch(201, 5);
	complete(ALL);
	record(argv[3], 301, 20);
	return 0;
}
