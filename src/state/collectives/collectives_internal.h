/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the collectives files: parsed operation names, and alignment of two ranks' sequences.
 */
#ifndef TS_STATE_COLLECTIVES_COLLECTIVES_INTERNAL_H
#define TS_STATE_COLLECTIVES_COLLECTIVES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

/* Parsed name of an operation or its kernel. */
struct ts_collective_name {
	uint64_t token; /* equal for equal operations, whatever the algorithm and protocol */
	bool together;  /* ends nowhere before all ranks have arrived: allreduce, not broadcast */
	bool sized;     /* all ranks contribute equally many elements */
	bool pair;      /* point to point: send or receive */
};
void ts_collective_name(const char *name, size_t length, struct ts_collective_name *ret_name);

/* A collective command, reduced to what matching needs. */
struct ts_collective_item {
	int64_t start, end;
	int64_t sequence; /* TS_ABSENT: unsaid */
	uint64_t lane;    /* items of different lanes are never partners */
	uint64_t token;   /* nor those with different tokens */
	uint32_t command, rank;
	uint32_t occurrence; /* among those of its rank with the same sequence number */
	bool together;
	bool timed;
};

/*
 * Aligns sequence b with a; both are sorted by start. Either may lack items, and their clocks may
 * differ. ret_partner[i] is the index in b of a[i]'s partner, or UINT32_MAX. *ret_matched is 0 if
 * nothing plausible was found: the times show that these are not the same operations. O((n + m) log
 * (n + m)).
 */
int ts_collective_align(const struct ts_collective_item *a, size_t n,
			const struct ts_collective_item *b, size_t m, uint32_t *ret_partner,
			size_t *ret_matched, struct ts_error *err);

#endif
