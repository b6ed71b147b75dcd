/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches commands of several ranks that form one collective: by process group and sequence number
 * where the trace has them, else by the order of equal operations on communicating streams, checked
 * for plausibility.
 */
#ifndef TS_STATE_COLLECTIVES_COLLECTIVES_H
#define TS_STATE_COLLECTIVES_COLLECTIVES_H

#include "state/work/work.h"

struct ts_collective_match {
	uint32_t name;         /* of the operation or kernel */
	uint32_t group;        /* process group; 0: unknown */
	int64_t sequence;      /* in its group, or index among equal operations */
	uint32_t first, count; /* of members */
	bool by_order;         /* inferred from order, not recorded in the trace */
	bool together; /* ends nowhere before all ranks have arrived: allreduce, not broadcast */
};

struct ts_collectives {
	struct ts_collective_match *matches; /* by first start */
	uint32_t *members;                   /* commands, at most one per rank, by rank */
	uint32_t match_count, member_count;
	uint64_t unmatched; /* collective commands without a partner */
};

/* A single rank has no matches. */
int ts_collectives_new(struct ts_collectives **ret_collectives, const struct ts_work *work,
		       struct ts_error *err);
void ts_collectives_free(struct ts_collectives *collectives);
TS_DEFINE_AUTO(ts_collectives, ts_collectives_free);

#endif
