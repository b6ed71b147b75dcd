/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifetime of struct ts_work, and lookups that need only its sort order. Loading is in work_load.c
 * and its neighbours.
 */
#include "state/work/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/ns.h"
#include "state/work/work_internal.h"

int ts_work_new(struct ts_work **ret_work, const struct ts_work_options *options,
		struct ts_error *err)
{
	struct ts_work *work = calloc(1, sizeof(*work));

	if (!work)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	work->options = *options;
	ts_strmap_init(&work->names, 0);
	work->load = calloc(1, sizeof(*work->load));
	if (!work->load || ts_strmap_intern(&work->names, "", 0, NULL) == TS_STRMAP_NONE) {
		ts_work_free(work);
		return ts_error_set(err, TS_ENOMEM, "no memory");
	}
	*ret_work = work;
	return TS_OK;
}

static void free_load(struct ts_work_load *load)
{
	if (!load)
		return;
	ts_batch_free(load->batch);
	free(load->facts);
	ts_arena_release(&load->far);
	ts_map_release(&load->far_facts);
	ts_map_release(&load->ranks);
	ts_map_release(&load->devices);
	ts_map_release(&load->streams);
	ts_map_release(&load->threads);
	ts_map_release(&load->clock_ranks);
	ts_pairmap_release(&load->lanes);
	ts_map_release(&load->flow_starts);
	free(load->waits);
	free(load->windows);
	free(load);
}

void ts_work_free(struct ts_work *work)
{
	if (!work)
		return;
	free_load(work->load);
	free(work->readers);
	free(work->ranks);
	free(work->devices);
	free(work->streams);
	free(work->threads);
	free(work->steps);
	free(work->gaps);
	free(work->commands);
	free(work->calls);
	free(work->syncs);
	free(work->waits);
	free(work->collectives);
	free(work->slices);
	free(work->flows);
	free(work->next_of_call);
	ts_strmap_release(&work->names);
	ts_arena_release(&work->arena);
	free(work);
}

int ts_work_finish(struct ts_work *work, struct ts_error *err)
{
	int code = ts_work_choose_ranks(work);

	if (!code)
		code = ts_work_number(work);
	if (!code)
		code = ts_work_sort(work);
	if (!code)
		code = ts_work_join(work);
	if (!code)
		code = ts_work_select_range(work);
	if (!code)
		code = ts_work_validate(work);
	if (!code)
		code = ts_work_resolve_waits(work);
	free_load(work->load);
	work->load = NULL;
	return code ? ts_error_set(err, code, "out of memory while loading the trace") : TS_OK;
}

/* ---- questions ---- */

const char *ts_work_text(const struct ts_work *work, uint32_t name)
{
	const char *text = ts_strmap_text(&work->names, name, NULL);

	return text ? text : "";
}

uint32_t ts_work_find_text(const struct ts_work *work, const char *text)
{
	uint32_t id = ts_strmap_find(&work->names, text, strlen(text));

	return id == TS_STRMAP_NONE ? 0 : id;
}

struct start_key {
	int64_t start;
	uint32_t command;
};

static int compare_starts(const void *a_, const void *b_)
{
	const struct start_key *a = a_, *b = b_;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->command < b->command ? -1 : a->command > b->command;
}

uint32_t *ts_work_commands_by_start(const struct ts_work *work, uint32_t rank)
{
	const struct ts_work_rank *of = &work->ranks[rank];
	TS_AUTO_FREE struct start_key *keys = ts_alloc_array(of->command_count, sizeof(*keys));
	uint32_t *order = ts_alloc_array(of->command_count, sizeof(*order));

	if (!keys || !order) {
		free(order);
		return NULL;
	}
	for (uint32_t i = 0; i < of->command_count; i++) {
		keys[i].command = of->first_command + i;
		keys[i].start = work->commands[of->first_command + i].start;
	}
	if (of->stream_count > 1)
		ts_sort(keys, of->command_count, sizeof(*keys), compare_starts);
	for (uint32_t i = 0; i < of->command_count; i++)
		order[i] = keys[i].command;
	return order;
}

uint32_t ts_work_slice_at(const struct ts_work *work, uint32_t thread, int64_t time)
{
	const struct ts_work_thread *of = &work->threads[thread];
	uint32_t low = 0, high = of->slice_count, found;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->slices[of->first_slice + middle].start <= time)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return TS_WORK_NONE;
	found = of->first_slice + low - 1;
	while (found != TS_WORK_NONE && work->slices[found].end <= time)
		found = work->slices[found].parent;
	return found;
}

int64_t ts_work_unrecorded_ns(const struct ts_work *work, uint32_t rank)
{
	const struct ts_work_rank *of = &work->ranks[rank];
	int64_t sum = 0;

	for (uint32_t i = 0; i < work->gap_count; i++) {
		int64_t from = TS_MAX(work->gaps[i].start, of->from);
		int64_t to = TS_MIN(work->gaps[i].end, of->to);

		if (work->gaps[i].trace == of->trace && from < to)
			sum = ts_ns_add(sum, ts_ns_between(from, to));
	}
	return sum;
}

bool ts_work_leaves_out_last_step(const struct ts_work *work, uint32_t rank)
{
	const struct ts_work_options *options = &work->options;

	return options->from_step == TS_ABSENT && options->to_step == TS_ABSENT &&
	       options->from == TS_ABSENT && options->to == TS_ABSENT &&
	       work->ranks[rank].steps_in_trace > work->ranks[rank].step_count;
}

uint32_t ts_work_step_at(const struct ts_work *work, uint32_t rank, int64_t time)
{
	uint32_t first = work->ranks[rank].first_step, low = first;
	uint32_t high = first + work->ranks[rank].step_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->steps[middle].start <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low > first && time < work->steps[low - 1].end ? low - 1 : TS_WORK_NONE;
}

struct ts_work_begin *ts_work_begins(const struct ts_work *work)
{
	struct ts_work_begin *begins = calloc((size_t)work->rank_count + 1, sizeof(*begins));

	for (uint32_t i = 0; begins && i < work->rank_count; i++)
		begins[i] = (struct ts_work_begin){ INT64_MAX, INT64_MAX };
	for (uint32_t i = 0; begins && i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];
		struct ts_work_begin *begin = &begins[call->rank];

		begin->first_call = TS_MIN(begin->first_call, call->start);
		if (call->correlation > 0)
			begin->lowest_correlation =
				TS_MIN(begin->lowest_correlation, call->correlation);
	}
	for (uint32_t i = 0; begins && i < work->rank_count; i++)
		if (begins[i].lowest_correlation == INT64_MAX)
			begins[i].lowest_correlation = INT64_MIN;
	return begins;
}

uint32_t ts_work_call_before(const struct ts_work *work, uint32_t thread, int64_t time)
{
	const struct ts_work_thread *of = &work->threads[thread];
	uint32_t low = 0, high = of->call_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->calls[of->first_call + middle].start <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? of->first_call + low - 1 : TS_WORK_NONE;
}
