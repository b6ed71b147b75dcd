/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves explicit wait lists: rows name correlation ids, and command numbers are final only after
 * sorting. Traces without wait lists cost nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "state/work/work_internal.h"

/* Commands by (trace, row), and by (rank, correlation). */
struct numbers {
	struct ts_pairmap rows, correlations;
};

static int number_commands(struct numbers *numbers, const struct ts_work *work)
{
	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];
		bool is_new;
		uint64_t *slot;

		if (ts_pairmap_put(&numbers->rows, work->ranks[command->rank].trace, command->row,
				   i))
			return TS_ENOMEM;
		if (command->correlation == TS_ABSENT)
			continue;
		/* Several commands of a call cannot be told apart: use the first. */
		slot = ts_pairmap_insert(&numbers->correlations, command->rank,
					 (uint64_t)command->correlation, &is_new);
		if (!slot)
			return TS_ENOMEM;
		if (is_new)
			*slot = i;
	}
	return TS_OK;
}

static int compare_waits(const void *a_, const void *b_)
{
	const struct ts_work_wait *a = a_, *b = b_;

	return a->command != b->command ? TS_COMPARE(a->command, b->command)
					: TS_COMPARE(a->on, b->on);
}

/* The dependency may be outside the selected range, or not in the trace. */
static void resolve(struct ts_work *work, const struct numbers *numbers)
{
	uint32_t count = 0;

	for (size_t i = 0; i < work->load->wait_count; i++) {
		const struct ts_pending_wait *pending = &work->load->waits[i];
		uint64_t command, on;

		if (!ts_pairmap_get(&numbers->rows, pending->trace, pending->row, &command) ||
		    !ts_pairmap_get(&numbers->correlations, work->commands[command].rank,
				    (uint64_t)pending->correlation, &on) ||
		    command == on)
			continue;
		work->waits[count++] = (struct ts_work_wait){ (uint32_t)command, (uint32_t)on };
	}
	ts_sort(work->waits, count, sizeof(*work->waits), compare_waits);
	for (uint32_t i = 0; i < count; i++)
		if (i == 0 || compare_waits(&work->waits[i - 1], &work->waits[i]) != 0)
			work->waits[work->wait_count++] = work->waits[i];
}

int ts_work_resolve_waits(struct ts_work *work)
{
	struct numbers numbers = { 0 };
	int code;

	if (work->load->wait_count == 0)
		return TS_OK;
	if (work->load->wait_count >= TS_WORK_NONE)
		return TS_ENOMEM;
	work->waits = ts_alloc_array(work->load->wait_count, sizeof(*work->waits));
	if (!work->waits)
		return TS_ENOMEM;
	code = number_commands(&numbers, work);
	if (!code)
		resolve(work, &numbers);
	ts_pairmap_release(&numbers.rows);
	ts_pairmap_release(&numbers.correlations);
	return code;
}
