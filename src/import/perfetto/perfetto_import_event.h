/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed track event, for the files that create rows from it. */
#ifndef TS_IMPORT_PERFETTO_PERFETTO_IMPORT_EVENT_H
#define TS_IMPORT_PERFETTO_PERFETTO_IMPORT_EVENT_H

#include "import/perfetto/perfetto_import.h"

/* Lists that an event has. */
#define TS_PERFETTO_EXTRA_INTEGER 1u
#define TS_PERFETTO_EXTRA_REAL 2u
#define TS_PERFETTO_FLOWS 4u

/* Fields of legacy events. */
struct ts_perfetto_legacy {
	int32_t phase;
	int64_t duration_us;
	uint64_t id, bind_id;
	uint32_t id_kind; /* LegacyEvent field of the id; 0: none */
	uint32_t scope;   /* string */
	uint32_t direction, instant_scope;
	int64_t pid, tid; /* TS_ABSENT: those of the track */
	bool has_duration, has_bind, enclosing;
};

struct ts_perfetto_event {
	const struct ts_proto_field *from;
	struct ts_perfetto_span span; /* start, name, category, stack, thread, thread times */
	uint32_t type;
	unsigned int lists;
	uint64_t track; /* uuid */
	size_t slot;    /* its track's index + 1 */
	struct ts_proto_field value, first_list;
	int64_t time_us, thread_time_us, instructions;
	bool has_track, has_delta, has_absolute, has_thread_delta, has_thread_absolute,
		has_instructions_delta, has_legacy;
	struct ts_perfetto_legacy legacy;
};

/* ---- perfetto_import_event.c ---- */

void ts_perfetto_add_instant(struct ts_perfetto *p, const struct ts_perfetto_event *event);

/* ---- perfetto_counter.c ---- */

int ts_perfetto_add_counter(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			    const struct ts_perfetto_event *event);
/* Counters whose values are in an event of another type. */
void ts_perfetto_add_extra(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			   struct ts_perfetto_event *event);

/* ---- perfetto_legacy.c ---- */

void ts_perfetto_add_flows(struct ts_perfetto *p, const struct ts_perfetto_event *event);
int ts_perfetto_add_legacy(struct ts_perfetto *p, struct ts_perfetto_event *event);

#endif
