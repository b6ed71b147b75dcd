/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of collectives share: what a name means, and how two ranks' sequences are laid
 * beside each other.
 */
#ifndef TS_STATE_COLLECTIVES_COLLECTIVES_INTERNAL_H
#define TS_STATE_COLLECTIVES_COLLECTIVES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

/* What the name of an operation or of its kernel says. */
struct ts_collective_name {
	uint64_t token; /* equal for equal operations, whatever algorithm and protocol do them */
	bool together;  /* ends nowhere before all have come: allreduce, not broadcast */
	bool sized;     /* all ranks give equally many elements */
	bool pair;      /* between two ranks: send or receive, no collective */
};
void ts_collective_name(const char *name, size_t length, struct ts_collective_name *ret_name);

/* A collective command, as far as it matters for finding its partners. */
struct ts_collective_item {
	int64_t start, end;
	int64_t sequence; /* TS_ABSENT: unsaid */
	uint64_t lane;    /* items of other lanes are never partners */
	uint64_t token;   /* nor those of other tokens */
	uint32_t command, rank;
	uint32_t occurrence; /* among those of its rank with the same sequence */
	bool together;
	bool timed;
};

/*
 * Lays the sequence b beside a; both are ordered by start. Either may lack some, at its ends or
 * inside, and their clocks may differ. ret_partner[i] is the place in b of a[i]'s partner, or
 * UINT32_MAX. *ret_matched is 0 where nothing plausible was found: then times say that these are
 * not the same operations. O((n + m) log (n + m)).
 */
int ts_collective_align(const struct ts_collective_item *a, size_t n,
			const struct ts_collective_item *b, size_t m, uint32_t *ret_partner,
			size_t *ret_matched, struct ts_error *err);

#endif
