/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes device work and allocations to the operators around them. */
#include <stdlib.h>

#include "analyze/memory_rows.h"
#include "analyze/operators/operators.h"
#include "base/memory.h"
#include "base/ns.h"

/* Device work belongs to the operator or span around its call; without one, to the call itself. */
static uint32_t issuer_of(const struct ts_host_tree *tree, uint32_t call)
{
	uint32_t node = call;

	while (node != TS_WORK_NONE && tree->nodes[node].kind == TS_HOST_CALL)
		node = tree->nodes[node].parent;
	return node == TS_WORK_NONE ? call : node;
}

static void add_commands(struct ts_operator_works *works, const struct ts_host_tree *tree)
{
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct ts_work_call *call;
		int64_t *device_ns;
		uint32_t command;

		if (tree->nodes[i].kind != TS_HOST_CALL)
			continue;
		call = &tree->work->calls[tree->nodes[i].index];
		device_ns = &works->nodes[issuer_of(tree, i)].device_ns;
		for (command = call->command; command != TS_WORK_NONE;
		     command = ts_work_next_of_call(tree->work, command)) {
			const struct ts_work_command *of = &tree->work->commands[command];

			*device_ns =
				ts_ns_add(*device_ns, TS_MAX(ts_ns_between(of->start, of->end), 0));
		}
	}
}

static int add_memory(struct ts_operator_works *works, const struct ts_host_tree *tree,
		      struct ts_error *err)
{
	struct ts_memory_rows memory = { 0 };
	int rc = ts_memory_rows_init(&memory, tree->work, err);

	for (size_t i = 0; !rc && i < memory.count; i++) {
		const struct ts_memory_row *row = &memory.rows[i];
		bool on_host = row->kind == TS_MEMORY_HOST;
		uint32_t node;
		int64_t *bytes;

		if (row->bytes == TS_ABSENT || row->thread == TS_WORK_NONE)
			continue;
		*(on_host ? &works->has_host_memory : &works->has_device_memory) = true;
		node = ts_host_tree_at(tree, row->thread, row->time);
		if (node == TS_WORK_NONE)
			continue;
		bytes = on_host ? &works->nodes[node].host_bytes : &works->nodes[node].device_bytes;
		*bytes = ts_ns_add(*bytes, row->bytes);
	}
	ts_memory_rows_release(&memory);
	return rc;
}

int ts_operator_works_init(struct ts_operator_works *works, const struct ts_host_tree *tree,
			   struct ts_error *err)
{
	int rc;

	*works = (struct ts_operator_works){ .nodes = calloc((size_t)tree->count + 1,
							     sizeof(*works->nodes)) };
	if (!works->nodes)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	add_commands(works, tree);
	rc = add_memory(works, tree, err);
	if (rc)
		ts_operator_works_release(works);
	return rc;
}

void ts_operator_works_release(struct ts_operator_works *works)
{
	free(works->nodes);
	*works = (struct ts_operator_works){ 0 };
}
