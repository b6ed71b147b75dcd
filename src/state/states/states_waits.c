/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When each thread was inside a call that waits for a device: synchronisations and blocking copies.
 * One pass over the sorted calls; each name is classified once.
 */
#include <string.h>

#include "base/memory.h"
#include "state/states/states_internal.h"

enum { UNMET, WAITS, GOES_ON };

/* Only for copies does the name decide whether a call waits. */
static bool call_waits(const struct ts_work *work, const struct ts_work_call *call, uint8_t *names)
{
	if (call->kind != TS_API_COPY)
		return ts_api_is_sync((enum ts_api_kind)call->kind);
	if (names[call->name] == UNMET) {
		const char *name = ts_work_text(work, call->name);

		names[call->name] = ts_api_is_blocking(name, strlen(name)) ? WAITS : GOES_ON;
	}
	return names[call->name] == WAITS;
}

struct spans {
	struct ts_state_span *items;
	size_t count, capacity;
};

/* Appends to the spans of its thread, which begin at `first`; overlapping spans are merged. */
static int add_span(struct spans *spans, size_t first, const struct ts_work_call *call)
{
	struct ts_state_span *last = spans->count > first ? &spans->items[spans->count - 1] : NULL;
	int64_t before = last ? ts_ns_add(last->before, ts_ns_sub(last->end, last->start)) : 0;

	if (call->end <= call->start)
		return 0;
	if (last && call->start <= last->end) {
		last->end = TS_MAX(last->end, call->end);
		return 0;
	}
	if (ts_grow_array((void **)&spans->items, &spans->capacity, spans->count + 1,
			  sizeof(*spans->items)))
		return TS_ENOMEM;
	spans->items[spans->count++] =
		(struct ts_state_span){ .start = call->start, .end = call->end, .before = before };
	return 0;
}

static int collect(struct ts_state_waits *waits, const struct ts_work *work, uint8_t *names)
{
	struct spans spans = { 0 };
	int rc = 0;

	for (uint32_t t = 0; !rc && t < work->thread_count; t++) {
		const struct ts_work_thread *thread = &work->threads[t];
		const struct ts_work_call *calls = work->calls + thread->first_call;

		waits->first[t] = spans.count;
		for (uint32_t i = 0; !rc && i < thread->call_count; i++) {
			if (call_waits(work, &calls[i], names))
				rc = add_span(&spans, waits->first[t], &calls[i]);
		}
	}
	waits->first[work->thread_count] = spans.count;
	waits->spans = spans.items;
	return rc;
}

int ts_state_waits_init(struct ts_state_waits *waits, const struct ts_work *work)
{
	TS_AUTO_FREE uint8_t *names = calloc((size_t)ts_strmap_count(&work->names) + 1, 1);

	*waits = (struct ts_state_waits){
		.first = ts_alloc_array((size_t)work->thread_count + 1, sizeof(*waits->first)),
	};
	if (!names || !waits->first)
		return TS_ENOMEM;
	return collect(waits, work, names);
}

void ts_state_waits_release(struct ts_state_waits *waits)
{
	free(waits->spans);
	free(waits->first);
	*waits = (struct ts_state_waits){ 0 };
}
