/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs that emit events and print how many, for comparison with the trace. Counts at the
 * emit, in memory that a forked child does not share.
 */
#ifndef AGENT_COUNT_H
#define AGENT_COUNT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tracesmith/emit.h>

static uint64_t emitted; /* by this process since its start */

static inline void emit_some(unsigned int count)
{
	static __thread int64_t number;

	for (unsigned int i = 0; i < count; i++) {
		TS_INSTANT("e", "count", TS_INT("n", number));
		number++;
		__atomic_fetch_add(&emitted, 1, __ATOMIC_RELAXED);
	}
}

/* Prints a line "PID COUNT" in one write; several of one process add up. */
static inline void print_emitted(void)
{
	char line[64];
	int bytes =
		snprintf(line, sizeof(line), "%d %llu\n", (int)getpid(),
			 (unsigned long long)__atomic_exchange_n(&emitted, 0, __ATOMIC_RELAXED));

	if (write(STDOUT_FILENO, line, (size_t)bytes) != bytes)
		_exit(9);
}

#endif
