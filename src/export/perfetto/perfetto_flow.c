/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows. Those between calls and what they caused are part of the spans. A row of `flow` is a point
 * on a thread: it is attached to the span that begins there, or becomes an instant.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "export/perfetto/perfetto_export.h"

enum { EVENT_FLOW = 47, EVENT_LAST_FLOW = 48 };

static uint64_t mix(uint64_t a, uint64_t b)
{
	return ts_hash_mix64(a ^ (ts_hash_mix64(b) + 0x9e3779b97f4a7c15u));
}

static uint64_t source_of_process(struct ts_pf_export *x, int64_t process)
{
	return (uint64_t)ts_chrome_id_offset(&x->chrome, process);
}

uint64_t ts_pf_arrow(struct ts_pf_export *x, int64_t process, int64_t correlation)
{
	/* Consecutive calls usually belong to one process. */
	if (!x->has_arrow_process || process != x->arrow_process) {
		x->arrow_source = source_of_process(x, process);
		x->arrow_process = process;
		x->has_arrow_process = true;
	}
	return mix((uint64_t)correlation, x->arrow_source) | 1;
}

/* Identified by id, name and category in a source. */
static uint64_t flow_id(struct ts_pf_export *x, const struct ts_flow_row *flow, int64_t process)
{
	uint64_t id = flow->id != TS_ABSENT ? (uint64_t)flow->id : ~(uint64_t)flow->id_json;

	id = mix(mix(id, (uint64_t)flow->name), (uint64_t)flow->category);
	/* Even, to be disjoint from flows of calls. */
	return mix(id, source_of_process(x, process)) & ~UINT64_C(1);
}

static unsigned char *put_id(unsigned char *to, bool is_last, uint64_t id)
{
	to = ts_pf_tag(to, is_last ? EVENT_LAST_FLOW : EVENT_FLOW, TS_PROTO_FIXED64);
	return ts_pf_fixed64(to, id);
}

unsigned char *ts_pf_put_arrow(unsigned char *to, uint64_t id)
{
	return put_id(to, false, id);
}

/* ---- points that wait for a span ---- */

size_t ts_pf_flow_max_bytes(const struct ts_pf_flows *flows)
{
	return flows->rows.length + flows->count * 16;
}

unsigned char *ts_pf_put_flow_ids(unsigned char *to, const struct ts_pf_flows *flows)
{
	for (size_t i = 0; i < flows->count; i++)
		to = put_id(to, flows->flows[i].is_last, flows->flows[i].id);
	return to;
}

void ts_pf_flows_done(struct ts_pf_flows *flows)
{
	flows->count = 0;
	ts_text_clear(&flows->rows);
}

/* A flow that ends at the next span waits for it. */
bool ts_pf_flows_fit(const struct ts_pf_flows *flows, int64_t start)
{
	return flows->time == start || flows->wait;
}

void ts_pf_flows_free(struct ts_pf_flows *flows)
{
	if (!flows)
		return;
	free(flows->flows);
	ts_text_release(&flows->rows);
	free(flows);
}

static int add(struct ts_pf_flows *flows, const struct ts_flow_row *flow, uint64_t id)
{
	bool waits = flow->kind == TS_FLOW_END && !flow->enclosing;

	if (ts_grow_array((void **)&flows->flows, &flows->capacity, flows->count + 1,
			  sizeof(*flows->flows)))
		return TS_ENOMEM;
	flows->wait = (!flows->count || flows->wait) && waits;
	flows->time = flow->start;
	flows->flows[flows->count++] =
		(struct ts_pf_flow){ .id = id, .is_last = flow->kind == TS_FLOW_END };
	return TS_OK;
}

int ts_pf_put_flow(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	const struct ts_table_info *table = cursor->merge.batch->table;
	const struct ts_pf_shape *shape;
	struct ts_pf_group *group;
	struct ts_pf_flows *flows;
	struct ts_flow_row flow;
	unsigned char *begin, *to;

	ts_batch_row(cursor->merge.batch, cursor->merge.row, &flow);
	shape = ts_pf_shape(x, table, flow.shape);
	group = ts_pf_thread_group(x, flow.thread);
	if (!group || !shape)
		return TS_ENOMEM;
	if (!group->flows)
		group->flows = calloc(1, sizeof(*group->flows));
	flows = group->flows;
	if (!flows)
		return TS_ENOMEM;
	/* Points with another time, and more than a viewer draws at one. */
	if (flows->count &&
	    (!ts_pf_flows_fit(flows, flow.start) || flows->count >= TS_PF_MAX_FLOWS) &&
	    ts_pf_put_flows(x, group))
		return TS_ENOMEM;
	if (!ts_text_reserve(&flows->rows, ts_pf_row_max_bytes(cursor, shape)))
		return TS_ENOMEM;
	begin = (unsigned char *)flows->rows.data + flows->rows.length;
	to = ts_pf_put_native_row(x, begin, cursor, shape, 0, 0);
	flows->rows.length += (size_t)(to - begin);
	if (!flows->count)
		flows->name = flow.name;
	return add(flows, &flow, flow_id(x, &flow, group->process));
}
