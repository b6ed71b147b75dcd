/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses pid and tid for threads and streams. The real ones are used unless taken: two ranks of
 * one trace may share a pid.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "export/chrome/chrome_export.h"

/* Generated ids start here, beyond those of any system, plus the row's id. */
#define SYNTHETIC_PROCESS INT64_C(1000000000)
#define SYNTHETIC_DEVICE INT64_C(2000000000)
#define SYNTHETIC_MACHINE INT64_C(3000000000)
/* Flow ids stay below 2^53 for 8192 sources, the limit of JavaScript's numbers. */
#define SOURCE_SHIFT 40

/* Accepts any id, even of a crafted trace. */
static int64_t synthetic_id(int64_t first, int64_t id)
{
	return (int64_t)((uint64_t)first + (uint64_t)id);
}

static int add_track(struct ts_chrome_tracks *tracks, const struct ts_chrome_track *track,
		     struct ts_map *map, int64_t id)
{
	if (ts_grow_array((void **)&tracks->tracks, &tracks->capacity, tracks->count + 1,
			  sizeof(*track)) ||
	    ts_map_put(map, (uint64_t)id, tracks->count))
		return TS_ENOMEM;
	tracks->tracks[tracks->count++] = *track;
	return TS_OK;
}

/* Uses the number or text unless another row of the same owner has it; else generates one. */
static int choose(struct ts_pairmap *taken, uint64_t owner, int64_t number, int64_t text,
		  int64_t otherwise, struct ts_chrome_number *ret_number)
{
	/* Numbers and texts cannot collide: texts count down from the top. */
	uint64_t key = text ? ~(uint64_t)text : (uint64_t)number;
	bool is_new = false;

	if (text || number != TS_ABSENT) {
		if (!ts_pairmap_insert(taken, owner, key, &is_new))
			return TS_ENOMEM;
	}
	*ret_number = (struct ts_chrome_number){ .number = is_new ? number : otherwise,
						 .text = is_new ? text : 0 };
	return TS_OK;
}

static int add_sources(struct ts_chrome_export *x)
{
	size_t cursor = 0;
	uint64_t number = 0;
	int64_t id;

	while (ts_reader_entity_next(x->reader, TS_TABLE_SOURCE, &cursor, &id))
		if (ts_map_put(&x->tracks.sources, (uint64_t)id, number++))
			return TS_ENOMEM;
	return TS_OK;
}

int64_t ts_chrome_id_offset(const struct ts_chrome_export *x, int64_t process)
{
	const struct ts_process_row *row = ts_reader_entity(x->reader, TS_TABLE_PROCESS, process);
	uint64_t number = 0;

	if (row)
		ts_map_get(&x->tracks.sources, (uint64_t)row->source, &number);
	return (int64_t)((number & 8191) << SOURCE_SHIFT);
}

static int add_processes(struct ts_chrome_export *x, struct ts_pairmap *taken)
{
	const struct ts_process_row *process;
	size_t cursor = 0;
	int64_t id;

	while ((process = ts_reader_entity_next(x->reader, TS_TABLE_PROCESS, &cursor, &id))) {
		struct ts_chrome_track track = { 0 };

		if (choose(taken, 0, process->pid, process->pid_text,
			   synthetic_id(SYNTHETIC_PROCESS, id), &track.pid) ||
		    add_track(&x->tracks, &track, &x->tracks.processes, id))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int add_threads(struct ts_chrome_export *x, struct ts_pairmap *taken)
{
	const struct ts_thread_row *thread;
	size_t cursor = 0;
	int64_t id;

	while ((thread = ts_reader_entity_next(x->reader, TS_TABLE_THREAD, &cursor, &id))) {
		const struct ts_chrome_track *process =
			ts_chrome_track_of_process(x, thread->process);
		struct ts_chrome_track track = { .pid = { .number = SYNTHETIC_PROCESS } };

		if (process)
			track.pid = process->pid;
		if (choose(taken, (uint64_t)thread->process + 1, thread->tid, thread->tid_text,
			   synthetic_id(SYNTHETIC_PROCESS, id), &track.tid) ||
		    add_track(&x->tracks, &track, &x->tracks.threads, id))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int add_streams(struct ts_chrome_export *x)
{
	const struct ts_stream_row *stream;
	size_t cursor = 0;
	int64_t id;

	while ((stream = ts_reader_entity_next(x->reader, TS_TABLE_STREAM, &cursor, &id))) {
		struct ts_chrome_track track = {
			.pid = { .number = synthetic_id(SYNTHETIC_DEVICE, stream->device) },
			.tid = { .number = id },
		};

		if (!ts_chrome_track_of_thread(x, stream->thread) &&
		    add_track(&x->tracks, &track, &x->tracks.streams, id))
			return TS_ENOMEM;
	}
	return TS_OK;
}

int ts_chrome_devices_init(struct ts_chrome_export *x)
{
	const struct ts_device_row *device;
	struct ts_pairmap taken;
	size_t cursor = 0;
	int result = TS_OK;
	int64_t id;

	ts_pairmap_init(&taken);
	ts_map_init(&x->tracks.twins);
	while (!result &&
	       (device = ts_reader_entity_next(x->reader, TS_TABLE_DEVICE, &cursor, &id))) {
		bool is_new = false;

		if (!ts_pairmap_insert(&taken, (uint64_t)device->name, (uint64_t)device->number,
				       &is_new) ||
		    (!is_new && ts_map_put(&x->tracks.twins, (uint64_t)id, 1)))
			result = ts_error_set(x->err, TS_ENOMEM, "no memory");
	}
	ts_pairmap_release(&taken);
	return result;
}

int ts_chrome_tracks_init(struct ts_chrome_export *x)
{
	struct ts_pairmap taken;
	int result;

	ts_pairmap_init(&taken);
	ts_map_init(&x->tracks.processes);
	ts_map_init(&x->tracks.threads);
	ts_map_init(&x->tracks.streams);
	ts_map_init(&x->tracks.sources);
	result = add_sources(x);
	if (!result)
		result = add_processes(x, &taken);
	/* The machine is not a process: 0, unless a process has that pid. */
	if (!result)
		result = choose(&taken, 0, 0, 0, SYNTHETIC_MACHINE, &x->tracks.machine.pid);
	if (!result)
		result = add_threads(x, &taken);
	if (!result)
		result = add_streams(x);
	ts_pairmap_release(&taken);
	return result ? ts_error_set(x->err, TS_ENOMEM, "no memory") : ts_chrome_devices_init(x);
}

void ts_chrome_tracks_release(struct ts_chrome_tracks *tracks)
{
	free(tracks->tracks);
	ts_map_release(&tracks->processes);
	ts_map_release(&tracks->threads);
	ts_map_release(&tracks->streams);
	ts_map_release(&tracks->sources);
	ts_map_release(&tracks->twins);
}

static const struct ts_chrome_track *find(const struct ts_chrome_tracks *tracks,
					  const struct ts_map *map, int64_t id)
{
	uint64_t index;

	return ts_map_get(map, (uint64_t)id, &index) ? &tracks->tracks[index] : NULL;
}

const struct ts_chrome_track *ts_chrome_track_of_process(const struct ts_chrome_export *x,
							 int64_t id)
{
	return find(&x->tracks, &x->tracks.processes, id);
}

const struct ts_chrome_track *ts_chrome_track_of_thread(const struct ts_chrome_export *x,
							int64_t id)
{
	return find(&x->tracks, &x->tracks.threads, id);
}

const struct ts_chrome_track *ts_chrome_track_of_stream(const struct ts_chrome_export *x,
							int64_t id)
{
	const struct ts_stream_row *stream = ts_reader_entity(x->reader, TS_TABLE_STREAM, id);
	const struct ts_chrome_track *track = NULL;

	if (stream)
		track = ts_chrome_track_of_thread(x, stream->thread);
	return track ? track : find(&x->tracks, &x->tracks.streams, id);
}

struct ts_chrome_track ts_chrome_track_of_subject(const struct ts_chrome_export *x, int64_t process)
{
	const struct ts_chrome_track *track = ts_chrome_track_of_process(x, process);

	if (!track)
		return x->tracks.machine;
	/* The main thread, so that viewers do not have to create one. */
	return (struct ts_chrome_track){ .pid = track->pid, .tid = track->pid };
}

/* ---- names of counters ---- */

static void put_device_label(struct ts_chrome_export *x, int64_t id)
{
	const struct ts_device_row *device = ts_reader_entity(x->reader, TS_TABLE_DEVICE, id);
	struct ts_string model = ts_reader_string(x->reader, device ? device->name : 0);
	uint64_t is_twin;

	if (model.length)
		ts_text_append_json_bare(&x->out, model.data, model.length);
	else
		ts_text_append_str(&x->out, "device");
	if (device && device->number != TS_ABSENT)
		ts_text_printf(&x->out, " %lld", (long long)device->number);
	if (!device || device->number == TS_ABSENT ||
	    ts_map_get(&x->tracks.twins, (uint64_t)id, &is_twin))
		ts_text_printf(&x->out, " #%lld", (long long)id);
	ts_text_append_char(&x->out, ' ');
}

void ts_chrome_put_counter_name(struct ts_chrome_export *x, const struct ts_counter_row *counter)
{
	struct ts_string name = ts_reader_string(x->reader, counter->name);

	ts_text_append_char(&x->out, '"');
	if (counter->device && !counter->thread)
		put_device_label(x, counter->device);
	ts_text_append_json_bare(&x->out, name.data, name.length);
	ts_text_append_char(&x->out, '"');
}

void ts_chrome_put_number(struct ts_chrome_export *x, const struct ts_chrome_number *number)
{
	if (number->text)
		ts_json_row_string(x->reader, &x->out, number->text);
	else
		ts_text_append_int(&x->out, number->number);
}

void ts_chrome_put_track(struct ts_chrome_export *x, const struct ts_chrome_track *track)
{
	static const struct ts_chrome_track nowhere;

	if (!track)
		track = &nowhere;
	ts_text_append_str(&x->out, "\"pid\":");
	ts_chrome_put_number(x, &track->pid);
	ts_text_append_str(&x->out, ",\"tid\":");
	ts_chrome_put_number(x, &track->tid);
	ts_text_append_char(&x->out, ',');
}
