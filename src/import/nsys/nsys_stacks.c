/* SPDX-License-Identifier: Apache-2.0 */
/* Call stacks and samples. A stack is a group of rows with one id, innermost function first. */
#include <stdlib.h>
#include <string.h>

#include "import/nsys/nsys.h"

static const struct ts_loss_kind apart = {
	.what = "frame",
	.one = "frame outside its stack or beyond depth 4096",
	.many = "frames outside their stacks or beyond depth 4096"
};

#define MOST_FRAMES 4096

enum { ID, SYMBOL, MODULE, ADDRESS, DEPTH, KERNEL_MODE };

static const char *const columns[] = { "id",         "symbol",     "module",
				       "originalIP", "stackDepth", "kernelMode" };

struct chain {
	int64_t id;
	size_t count;
	struct level {
		int64_t depth;
		uint32_t frame;
	} levels[MOST_FRAMES];
};

/* The binary of a frame. Several processes may share it; the file does not name one. */
static int64_t mapping_of(struct ts_nsys *n, int64_t module)
{
	struct ts_mapping_row row = ts_mapping_none;
	uint64_t id;

	if (!ts_nsys_text(n, module))
		return 0;
	if (ts_map_get(&n->modules, (uint64_t)module, &id))
		return (int64_t)id;
	row.path = ts_nsys_string(n, module);
	id = (uint64_t)ts_writer_new_id(n->writer, TS_TABLE_MAPPING);
	if (ts_map_put(&n->modules, (uint64_t)module, id) ||
	    ts_writer_add(n->writer, TS_TABLE_MAPPING, &row, NULL))
		return 0;
	return (int64_t)id;
}

static uint32_t read_frame(struct ts_nsys *n, const struct ts_sqlite_query *query)
{
	struct ts_frame_row row = ts_frame_none;

	row.name = ts_nsys_string(n, ts_sqlite_int(query, SYMBOL));
	row.mapping = mapping_of(n, ts_sqlite_int(query, MODULE));
	row.kind = ts_sqlite_int(query, KERNEL_MODE) > 0 ? TS_FRAME_KERNEL : TS_FRAME_NATIVE;
	/* Addresses are virtual, not offsets: they only distinguish frames without a name. */
	if (!row.name)
		row.pc = ts_sqlite_int(query, ADDRESS);
	return ts_writer_frame(n->writer, &row);
}

static int outermost_first(const void *one, const void *other)
{
	const struct level *a = one, *b = other;

	return (a->depth < b->depth) - (a->depth > b->depth);
}

/* Creates the stack of the collected rows. */
static int close_chain(struct ts_nsys *n, struct chain *chain, struct ts_nsys_chains *chains)
{
	uint32_t stack = 0;
	bool is_new;
	uint64_t *slot;

	if (!chain->count)
		return TS_OK;
	slot = ts_map_insert(&chains->stacks, (uint64_t)chain->id, &is_new);
	if (!slot)
		return TS_ENOMEM;
	if (is_new) {
		qsort(chain->levels, chain->count, sizeof(*chain->levels), outermost_first);
		for (size_t i = 0; i < chain->count; i++)
			stack = ts_writer_stack(n->writer, stack, chain->levels[i].frame);
		*slot = stack;
		chains->last = TS_MAX(chains->last, chain->id);
	} else {
		ts_entities_add_loss(n->entities, &apart, chain->count);
	}
	chain->count = 0;
	return TS_OK;
}

static int read_chains(struct ts_nsys *n, const char *name, struct ts_nsys_chains *chains,
		       struct chain *chain)
{
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, name);
	struct ts_sqlite_query query;
	int end, rc;

	if (!table)
		return TS_OK;
	table->is_taken = true;
	chain->count = 0;
	chain->id = 0;
	rc = ts_sqlite_select(n->db, &query, table->name, columns, TS_ARRAY_SIZE(columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t id = ts_sqlite_int(&query, ID);

		rc = id != chain->id ? close_chain(n, chain, chains) : TS_OK;
		chain->id = id;
		if (!rc && chain->count == MOST_FRAMES)
			ts_entities_add_loss(n->entities, &apart, 1);
		else if (!rc)
			chain->levels[chain->count++] =
				(struct level){ .depth = ts_sqlite_int(&query, DEPTH),
						.frame = read_frame(n, &query) };
	}
	ts_sqlite_end(&query);
	end = close_chain(n, chain, chains);
	return rc ? rc : end;
}

bool ts_nsys_find_stack(const struct ts_nsys_chains *chains, int64_t chain, int64_t *ret_stack)
{
	uint64_t stack;

	if (chain == TS_ABSENT ||
	    !ts_map_get(&chains->stacks, (uint64_t)chain + (uint64_t)chains->offset, &stack))
		return false;
	*ret_stack = (int64_t)stack;
	return true;
}

/*
 * Chains have ids from 1. By the documentation events refer to them by id, in some versions with 0
 * for no chain; 2022.2 counts from 0. The schema is the same: only the rows tell. Each chain
 * belongs to one event, so if chains are counted from 0, one event refers to 0, one to the last id
 * less one, and none to the last id.
 */
static int find_offset(struct ts_nsys *n, struct ts_nsys_chains *chains, const char *const *tables,
		       size_t count)
{
	static const char *const chain_column[] = { "callchainId" };
	int64_t zeros = 0, last = 0;
	struct ts_sqlite_query query;
	uint64_t stack;
	int rc = TS_OK;

	if (chains->last < 1 || ts_map_get(&chains->stacks, 0, &stack))
		return TS_OK;
	for (size_t i = 0; !rc && i < count; i++) {
		rc = ts_sqlite_select(n->db, &query, tables[i], chain_column, 1, n->err);
		while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
			int64_t chain = ts_sqlite_int(&query, 0);

			zeros += chain == 0;
			last = TS_MAX(last, chain);
			rc = TS_OK;
		}
		ts_sqlite_end(&query);
	}
	chains->offset = zeros == 1 && last == chains->last - 1;
	return rc;
}

int ts_nsys_read_stacks(struct ts_nsys *n)
{
	static const char *const cuda[] = { "CUPTI_ACTIVITY_KIND_RUNTIME",
					    "CUPTI_ACTIVITY_KIND_DRIVER" };
	static const char *const osrt[] = { "OSRT_API" };
	struct chain *chain = malloc(sizeof(*chain));
	int rc;

	if (!chain)
		return TS_ENOMEM;
	rc = read_chains(n, "CUDA_CALLCHAINS", &n->cuda_chains, chain);
	if (!rc)
		rc = find_offset(n, &n->cuda_chains, cuda, TS_ARRAY_SIZE(cuda));
	if (!rc)
		rc = read_chains(n, "OSRT_CALLCHAINS", &n->osrt_chains, chain);
	if (!rc)
		rc = find_offset(n, &n->osrt_chains, osrt, TS_ARRAY_SIZE(osrt));
	if (!rc)
		rc = read_chains(n, "SAMPLING_CALLCHAINS", &n->sample_chains, chain);
	free(chain);
	return rc;
}

/* ---- samples ---- */

/* "Running": labels from the table of newer versions; older ones use the same numbers. */
static const char *thread_state(int64_t state)
{
	static const char *const states[] = {
		NULL,         "running",     "interruptible", "uninterruptible",
		"stopped",    "terminated",  "unscheduled",   "waiting",
		"os runtime", "initialized", "transition"
	};

	return state > 0 && state < (int64_t)TS_ARRAY_SIZE(states) ? states[state] : NULL;
}

int ts_nsys_read_samples(struct ts_nsys *n)
{
	enum { SAMPLE_ID, START, CPU, STATE, THREAD, CYCLES };
	static const char *const sample_columns[] = { "id",          "start",     "cpu",
						      "threadState", "globalTid", "cpuCycles" };
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, "COMPOSITE_EVENTS");
	uint32_t name = ts_nsys_literal(n, "nsys");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	int rc;

	if (!table)
		return TS_OK;
	table->is_taken = true;
	ts_nsys_args_add(n, &args, "cpuCycles", CYCLES, NULL);
	rc = ts_sqlite_select(n->db, &query, table->name, sample_columns,
			      TS_ARRAY_SIZE(sample_columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		struct ts_sample_row row = ts_sample_none;
		const char *state = thread_state(ts_sqlite_int(&query, STATE));
		int64_t id = ts_sqlite_int(&query, SAMPLE_ID), none;

		rc = TS_OK;
		row.start = ts_sqlite_int(&query, START);
		if (!ts_nsys_span(n, row.start, TS_ABSENT, &none))
			continue;
		row.thread = ts_nsys_thread(n, ts_sqlite_int(&query, THREAD));
		ts_nsys_find_stack(&n->sample_chains, id, &row.stack);
		row.weight = 1;
		row.cpu = ts_sqlite_int(&query, CPU);
		row.name = name;
		row.state = state ? ts_nsys_literal(n, state) : 0;
		row.shape = ts_nsys_args_read(n, &args, &query);
		ts_nsys_add_event(n, TS_TABLE_SAMPLE, &row, args.values);
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}
