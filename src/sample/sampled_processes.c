/* SPDX-License-Identifier: Apache-2.0 */
/* The list of sampled processes, shared by the metrics and the Python sampler. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sample/sampled_processes.h"

static bool is_equal(const struct ts_sampled_process *a, const struct ts_sampled_process *b)
{
	return a->pid == b->pid && a->start_time == b->start_time &&
	       a->interval_ns == b->interval_ns;
}

static bool is_same_list(const struct ts_sampled_processes *list,
			 const struct ts_sampled_process *items, size_t count)
{
	if (count != list->count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_equal(&list->items[i], &items[i]))
			return false;
	return true;
}

int ts_sampled_processes_set(struct ts_sampled_processes *list,
			     const struct ts_sampled_process *items, size_t count,
			     bool *ret_changed, struct ts_error *err)
{
	struct ts_sampled_process *copy;

	*ret_changed = false;
	if (is_same_list(list, items, count))
		return TS_OK;
	copy = ts_alloc_array(count, sizeof(*copy));
	if (!copy)
		return ts_error_set(err, TS_ENOMEM, "no memory to sample %zu processes", count);
	if (count)
		memcpy(copy, items, count * sizeof(*copy));
	free(list->items);
	list->items = copy;
	list->count = count;
	*ret_changed = true;
	return TS_OK;
}

void ts_sampled_processes_release(struct ts_sampled_processes *list)
{
	free(list->items);
	*list = (struct ts_sampled_processes){ 0 };
}
