/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts, by kind, what the command stream lacks (docs/replay.md, 3.4), and emits the counts at the
 * end of a window and at exit: one row of `loss` per kind, not per call.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

#define KINDS 64u

struct kind {
	char what[96], reason[160];
	uint64_t count;
};

/* The last one counts everything that has no entry. */
static struct kind kinds[KINDS];
static size_t kind_count;
static pthread_mutex_t lost_lock = PTHREAD_MUTEX_INITIALIZER;

static struct kind *find_kind(const char *what, const char *reason)
{
	for (size_t i = 0; i < kind_count; i++) {
		if (strcmp(kinds[i].what, what) == 0 && strcmp(kinds[i].reason, reason) == 0)
			return &kinds[i];
	}
	if (kind_count == KINDS)
		return &kinds[KINDS - 1];
	if (kind_count == KINDS - 1) {
		what = "other OpenCL commands and memory";
		reason = "too many kinds to list";
	}
	snprintf(kinds[kind_count].what, sizeof(kinds[0].what), "%s", what);
	snprintf(kinds[kind_count].reason, sizeof(kinds[0].reason), "%s", reason);
	return &kinds[kind_count++];
}

void stream_lost(const char *what, const char *reason)
{
	char cut_what[sizeof(kinds[0].what)], cut_reason[sizeof(kinds[0].reason)];

	/* Truncated as they will be stored, so that the next of the kind is found. */
	snprintf(cut_what, sizeof(cut_what), "%s", what);
	snprintf(cut_reason, sizeof(cut_reason), "%s", reason);
	pthread_mutex_lock(&lost_lock);
	find_kind(cut_what, cut_reason)->count++;
	pthread_mutex_unlock(&lost_lock);
}

static const char *kind_of(const struct stream_memory *memory)
{
	if (memory->is_svm)
		return "SVM";
	return memory->image ? "image" : "buffer";
}

void stream_lost_memory(const char *what, const struct ocl_stream *memory, const char *why)
{
	char reason[sizeof(kinds[0].reason)];

	snprintf(reason, sizeof(reason), "memory %" PRIu64 " (%s of %" PRIu64 " bytes%s): %s",
		 memory->number, kind_of(&memory->as.memory), memory->as.memory.bytes,
		 memory->as.memory.area.host ? ", USE_HOST_PTR" : "", why);
	stream_lost(what, reason);
}

bool stream_lost_any(void)
{
	bool any = false;

	pthread_mutex_lock(&lost_lock);
	for (size_t i = 0; i < kind_count && !any; i++)
		any = kinds[i].count > 0;
	pthread_mutex_unlock(&lost_lock);
	return any;
}

void stream_lost_emit(void)
{
	pthread_mutex_lock(&lost_lock);
	for (size_t i = 0; i < kind_count; i++) {
		if (kinds[i].count)
			ts_accelerator_lost(kinds[i].what, kinds[i].count, kinds[i].reason);
		kinds[i].count = 0;
	}
	pthread_mutex_unlock(&lost_lock);
}

void stream_unhandled(const char *what)
{
	stream_lost(what, "it is not captured for replay");
}
