/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lttng [--threads N] [--rounds N]: measures the cost of an LTTng-UST tracepoint with an integer
 * and a string of 7 characters, in ns, in rounds like bench/emit.c. Prints one JSON line. The
 * session must exist already: `is_on` says whether it records the event.
 */
#include "../rounds.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_probe.h"

#define BATCH 2048

static __attribute__((noinline)) void run_event(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		lttng_ust_tracepoint(tracesmith_bench, token, i, "decoded");
}

int main(int argc, char **argv)
{
	static const struct subject subjects[] = { { .name = "counter", .run = run_counter },
						   { .name = "event", .run = run_event } };

	if (read_round_arguments(argc, argv, 1)) {
		fputs("usage: lttng [--threads N] [--rounds N]\n", stderr);
		return 2;
	}
	printf("{\"bench\":\"lttng\",\"is_on\":%s",
	       lttng_ust_tracepoint_enabled(tracesmith_bench, token) ? "true" : "false");
	if (measure_subjects(subjects, 2, BATCH))
		return 1;
	puts("}");
	return 0;
}
