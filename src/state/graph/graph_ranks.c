/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives: no member ends before the last one has started. One edge from the last starter to
 * the end of every other member expresses that with as many edges as commands.
 */
#include "state/collectives/collectives.h"
#include "state/graph/graph_build.h"

static uint32_t last_to_begin(const struct ts_work *work, const uint32_t *members, uint32_t count)
{
	uint32_t last = members[0];

	for (uint32_t i = 1; i < count; i++) {
		if (work->commands[members[i]].start > work->commands[last].start)
			last = members[i];
	}
	return last;
}

static void add_match(struct ts_graph_build *build, const struct ts_collectives *collectives,
		      const struct ts_collective_match *match)
{
	const uint32_t *members = collectives->members + match->first;
	unsigned int flags = TS_EDGE_FROM_START | TS_EDGE_TO_END;
	uint32_t last;

	if (match->count < 2)
		return;
	if (match->by_order)
		flags |= TS_EDGE_INFERRED;
	last = last_to_begin(build->work, members, match->count);
	for (uint32_t i = 0; i < match->count; i++)
		ts_graph_add(build, last, members[i], TS_EDGE_COLLECTIVE, flags);
}

void ts_graph_add_ranks(struct ts_graph_build *build)
{
	TS_AUTO(ts_collectives) collectives = NULL;

	if (build->work->rank_count < 2)
		return;
	build->rc = ts_collectives_new(&collectives, build->work, NULL);
	for (uint32_t i = 0; !build->rc && i < collectives->match_count; i++)
		add_match(build, collectives, &collectives->matches[i]);
}
