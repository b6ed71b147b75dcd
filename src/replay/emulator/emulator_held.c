/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that began far later than their latencies explain, on an idle device: a driver compiles
 * a kernel when it is launched for the first time (and again for another size of work-groups),
 * allocates memory at its first use, or lost the processor. Called by emulator_observe.c.
 */
#include <stdlib.h>

#include "base/ns.h"
#include "replay/emulator/emulator_internal.h"

#define CLOSE_NS 50000 /* a command that begins so soon after another one ended waited for it */

struct candidate {
	int64_t start;
	int64_t held_ns;
	int64_t busy; /* last end of the commands of its device that began before it */
	uint32_t device, command;
};

struct candidates {
	struct candidate *list;
	size_t count, capacity;
	int rc;
};

static int compare_candidates(const void *a_, const void *b_)
{
	const struct candidate *a = a_, *b = b_;

	if (a->device != b->device)
		return TS_COMPARE(a->device, b->device);
	return a->start != b->start ? TS_COMPARE(a->start, b->start)
				    : TS_COMPARE(a->command, b->command);
}

/* By how much a command began later than after its latencies; 0: it is not held. */
static int64_t held_time(const struct ts_emulator_observed *observed, const struct ts_graph *graph,
			 uint32_t c)
{
	const struct ts_work_command *command = &graph->work->commands[c];
	const struct ts_emulator_latency *latency;
	int64_t ready, base, late;

	/* Most commands need no closer look. */
	if (command->issued == TS_ABSENT ||
	    ts_ns_sub(command->start, command->issued) <= TS_EMULATOR_HELD_NS)
		return 0;
	ready = ts_emulator_ready(graph, c);
	if (ready != INT64_MIN && ts_ns_sub(command->start, ready) <= TS_EMULATOR_HELD_NS)
		return 0;
	latency = &observed->latencies[command->stream][ts_emulator_class(graph, c)];
	base = ts_emulator_launched(graph, c, latency);
	if (ready != INT64_MIN)
		base = TS_MAX(base, ts_ns_add(ready, latency->next_ns));
	late = ts_ns_sub(command->start, base);
	return late > latency->most_ns ? late : 0;
}

static void find_candidates(struct candidates *candidates,
			    const struct ts_emulator_observed *observed,
			    const struct ts_graph *graph)
{
	const struct ts_work *work = graph->work;

	for (uint32_t c = 0; c < work->command_count && !candidates->rc; c++) {
		int64_t held_ns = held_time(observed, graph, c);

		if (held_ns == 0)
			continue;
		candidates->rc = ts_grow_array((void **)&candidates->list, &candidates->capacity,
					       candidates->count + 1, sizeof(*candidates->list));
		if (candidates->rc)
			return;
		candidates->list[candidates->count++] = (struct candidate){
			.start = work->commands[c].start,
			.held_ns = held_ns,
			.busy = INT64_MIN,
			.device = work->streams[work->commands[c].stream].device,
			.command = c,
		};
	}
	ts_sort(candidates->list, candidates->count, sizeof(*candidates->list), compare_candidates);
}

/* The first candidate of the device that began after `start`, if any, else the one behind. */
static size_t first_after(const struct candidates *candidates, uint32_t device, int64_t start)
{
	size_t low = 0, high = candidates->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct candidate *at = &candidates->list[middle];

		if (at->device < device || (at->device == device && at->start <= start))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Notes for each candidate until when its device was busy. */
static void find_busy(struct candidates *candidates, const struct ts_work *work)
{
	for (uint32_t c = 0; c < work->command_count; c++) {
		const struct ts_work_command *command = &work->commands[c];
		uint32_t device = work->streams[command->stream].device;
		size_t at;

		if (ts_emulator_resource(command) == TS_WORK_NONE)
			continue;
		at = first_after(candidates, device, command->start);
		if (at < candidates->count && candidates->list[at].device == device)
			candidates->list[at].busy = TS_MAX(candidates->list[at].busy, command->end);
	}
	for (size_t i = 1; i < candidates->count; i++)
		if (candidates->list[i].device == candidates->list[i - 1].device)
			candidates->list[i].busy =
				TS_MAX(candidates->list[i].busy, candidates->list[i - 1].busy);
}

int ts_emulator_observe_held(struct ts_emulator_observed *observed, const struct ts_graph *graph)
{
	struct candidates candidates = { 0 };

	find_candidates(&candidates, observed, graph);
	if (!candidates.rc && candidates.count) {
		find_busy(&candidates, graph->work);
		observed->held_ns =
			calloc((size_t)graph->work->command_count + 1, sizeof(*observed->held_ns));
		candidates.rc = observed->held_ns ? TS_OK : TS_ENOMEM;
	}
	for (size_t i = 0; i < candidates.count && !candidates.rc; i++) {
		const struct candidate *candidate = &candidates.list[i];

		if (candidate->busy == INT64_MIN ||
		    ts_ns_sub(candidate->start, candidate->busy) > CLOSE_NS)
			observed->held_ns[candidate->command] = candidate->held_ns;
	}
	free(candidates.list);
	return candidates.rc;
}
