/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoder: takes blocks in the order of the journal and hands each to the file that knows its
 * kind.
 */
#include "record/decode/decoder.h"

#include <stdio.h>
#include <stdlib.h>

#include "record/decode/decode_internal.h"

int encode_no_memory(struct ts_encoder *encoder)
{
	encoder->failure = TS_ENOMEM;
	return TS_ENOMEM;
}

/* ---- from new to free ---- */

int ts_encoder_new(struct ts_encoder **ret_encoder, const struct ts_encoder_options *options,
		   struct ts_error *err)
{
	struct ts_encoder *encoder = calloc(1, sizeof(*encoder));

	if (!encoder)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (options)
		encoder->options = *options;
	encoder->epoch = 1;
	encoder->source = encoder->host = 1;
	encoder->next_process = encoder->next_thread = encoder->next_device = 1;
	encoder->next_stream = encoder->next_object = 1;
	encoder->next_clock = ENCODE_FIRST_DEVICE_CLOCK;
	ts_map_draw_seed_();
	encoder->blob_key = ts_hash_mix64(ts_map_seed_);
	*ret_encoder = encoder;
	return TS_OK;
}

static void free_details(struct encode_area *area)
{
	free(TS_STEAL(area->about));
	ts_text_release(&area->dictionary);
	free(TS_STEAL(area->sites));
	area->site_count = area->site_capacity = 0;
	for (size_t i = 0; i < area->thread_count; i++)
		encode_disown_thread(area->threads[i]);
	free(TS_STEAL(area->threads));
	area->thread_count = area->thread_capacity = area->track_count = 0;
	ts_map_release(&area->serials);
	ts_map_release(&area->tracks);
	free(TS_STEAL(area->devices));
	area->device_count = area->device_capacity = 0;
	encode_free_accelerator(area);
	encode_free_channel(area);
	ts_pairmap_release(&area->steps);
	free(TS_STEAL(area->windows));
	area->window_count = area->window_capacity = 0;
	for (size_t i = 0; i < area->ring_count; i++)
		if (area->rings[i])
			area->rings[i]->thread = NULL;
}

static void free_area(struct encode_area *area)
{
	free_details(area);
	for (size_t i = 0; i < area->ring_count; i++)
		free(area->rings[i]);
	free(area->rings);
	free(area);
}

void ts_encoder_free(struct ts_encoder *encoder)
{
	if (!encoder)
		return;
	for (size_t i = 0; i < encoder->area_count; i++)
		free_area(encoder->areas[i]);
	free(encoder->areas);
	ts_map_release(&encoder->area_places);
	encode_free_seen(encoder);
	for (size_t i = 0; i < encoder->process_count; i++)
		encode_free_process(encoder->processes[i]);
	free(encoder->processes);
	ts_map_release(&encoder->pids);
	for (size_t i = 0; i < encoder->device_count; i++)
		free(encoder->devices[i]);
	free(encoder->devices);
	ts_map_release(&encoder->uuids);
	free(encoder->closed);
	free(encoder->points);
	ts_pairmap_release(&encoder->shapes);
	ts_pairmap_release(&encoder->blob_rows);
	ts_pairmap_release(&encoder->device_modules);
	ts_pairmap_release(&encoder->plain_names);
	free(encoder->path);
	ts_text_release(&encoder->scratch);
	free(encoder->name);
	free(encoder);
}

/* Ids of strings and shapes are those of a file: none is known in a new one. */
static void forget_ids(struct ts_encoder *encoder)
{
	for (size_t i = 0; i < encoder->area_count; i++)
		for (size_t k = 0; k < encoder->areas[i]->site_count; k++)
			encoder->areas[i]->sites[k].resolved = false;
	ts_pairmap_clear(&encoder->shapes);
	ts_pairmap_clear(&encoder->blob_rows);
	ts_pairmap_clear(&encoder->plain_names);
	encode_samples_move(encoder);
}

/* What an area has said once is to be found in every file. */
static void repeat_facts(struct ts_encoder *encoder)
{
	for (size_t i = 0; i < encoder->area_count; i++) {
		encode_channel_moves(encoder, encoder->areas[i]);
		encode_facts(encoder, encoder->areas[i]);
	}
}

int ts_encoder_set_writer(struct ts_encoder *encoder, struct ts_writer *writer, bool fresh,
			  const char *name)
{
	encoder->writer = writer;
	ts_writer_set_clock(writer, ENCODE_CLOCK_OF_EVENTS);
	if (name) {
		free(encoder->name);
		encoder->name = strdup(name);
	}
	if (!fresh)
		return TS_OK;
	encoder->epoch++;
	encoder->point_count = 0; /* those of clocks that are used here come again */
	forget_ids(encoder);
	if (encoder->opened) {
		encode_preamble(encoder);
		repeat_facts(encoder);
	}
	return ts_writer_status(writer, NULL);
}

void ts_encoder_hold(struct ts_encoder *encoder, bool held)
{
	encoder->held = held;
	if (!held && encoder->writer)
		encode_closed_tell(encoder);
}

void ts_encoder_damage(struct ts_encoder *encoder, uint64_t bytes)
{
	encoder->damaged_bytes += bytes;
}

void ts_encoder_counts(const struct ts_encoder *encoder, struct ts_encoder_counts *ret_counts)
{
	*ret_counts = encoder->counts;
}

/* ---- areas ---- */

struct encode_area *encode_find_area(struct ts_encoder *encoder, uint64_t id)
{
	uint64_t place;

	return ts_map_get(&encoder->area_places, id, &place) ? encoder->areas[place] : NULL;
}

struct encode_area *encode_add_area(struct ts_encoder *encoder, uint64_t id)
{
	struct encode_area *area = encode_find_area(encoder, id);

	if (area)
		return area;
	area = calloc(1, sizeof(*area));
	if (!area ||
	    ts_grow_array((void **)&encoder->areas, &encoder->area_capacity,
			  encoder->area_count + 1, sizeof(struct encode_area *)) ||
	    ts_map_put(&encoder->area_places, id, encoder->area_count)) {
		free(area);
		encode_no_memory(encoder);
		return NULL;
	}
	area->id = id;
	encoder->areas[encoder->area_count++] = area;
	return area;
}

struct encode_ring *encode_get_ring(struct ts_encoder *encoder, struct encode_area *area,
				    uint32_t ring)
{
	size_t count = area->ring_count;

	if (ring < count && area->rings[ring])
		return area->rings[ring];
	if (ring >= TS_LIVE_RING_LIMIT)
		return NULL;
	if (ts_grow_array((void **)&area->rings, &area->ring_capacity, (size_t)ring + 1,
			  sizeof(struct encode_ring *))) {
		encode_no_memory(encoder);
		return NULL;
	}
	for (; count <= ring; count++)
		area->rings[count] = NULL;
	area->ring_count = count;
	area->rings[ring] = calloc(1, sizeof(struct encode_ring));
	if (!area->rings[ring])
		encode_no_memory(encoder);
	return area->rings[ring];
}

/* Drops the oldest of those that have ended. */
static void forget_areas(struct ts_encoder *encoder)
{
	size_t kept = 0, drop = encoder->ended_count - ENCODE_ENDED_AREAS / 2;

	ts_map_clear(&encoder->area_places);
	for (size_t i = 0; i < encoder->area_count; i++) {
		struct encode_area *area = encoder->areas[i];

		if (area->ended && drop) {
			free_area(area);
			encoder->ended_count--;
			drop--;
			continue;
		}
		encoder->areas[kept] = area;
		if (ts_map_put(&encoder->area_places, area->id, kept++))
			encode_no_memory(encoder);
	}
	encoder->area_count = kept;
}

static struct encode_process *process_of(struct ts_encoder *encoder,
					 const struct ts_block_area *about)
{
	const struct ts_live_control *control = &about->control;
	uint64_t pid = about->pid ? about->pid : control->pid;
	struct encode_process *process =
		encode_get_process(encoder, pid, control->start_time, control->image, false);

	if (process)
		return process;
	/* One that was seen before it had an area. */
	process = encode_get_process(encoder, pid, control->start_time, 0, false);
	if (!process)
		process = encode_find_stranger(encoder, pid);
	if (!process) {
		process = encode_add_process(encoder, pid);
		if (!process)
			return NULL;
		process->id = encoder->next_process++;
	}
	encode_know_process(encoder, process);
	process->image = control->image;
	process->parent = about->parent ? about->parent : control->parent;
	process->start_time = control->start_time;
	return process;
}

int encode_set_about(struct ts_encoder *encoder, struct encode_area *area,
		     const struct ts_block_area *about)
{
	int64_t started = encode_scale(encoder, encoder->open.started_counter);

	if (!area->about)
		area->about = malloc(sizeof(*about));
	if (!area->about)
		return encode_no_memory(encoder);
	*area->about = *about;
	if (area->ended)
		encoder->ended_count--;
	area->ended = false;
	area->native = about->control.clock == encoder->open.clock;
	area->of_recorder = about->control.role == TS_LIVE_RECORDER;
	area->bound_ns =
		TS_MIN(started, encode_time(encoder, area, about->control.created.counter));
	area->process = process_of(encoder, about);
	if (area->process)
		area->process->of_recorder = area->of_recorder;
	return area->process ? TS_OK : TS_ENOMEM;
}

static int area_block(struct ts_encoder *encoder, const struct ts_block *block,
		      const struct ts_block_area *about)
{
	struct encode_area *area = encode_add_area(encoder, block->area);
	struct encode_process *process;

	if (!area || encode_set_about(encoder, area, about))
		return encoder->failure;
	process = area->process;
	encoder->now_ns = TS_MAX(encoder->now_ns, encode_scale(encoder, about->seen_counter));
	if (process->epoch == encoder->epoch && process->name)
		return TS_OK;
	process->ended = false;
	process->start_ns = encode_time(encoder, area, about->control.created.counter);
	encode_set_process_texts(encoder, process, about->control.name, sizeof(about->control.name),
				 about->control.command, sizeof(about->control.command));
	if (!area->of_recorder)
		encode_write_process(encoder, process);
	encode_area_anchor(encoder, area);
	return TS_OK;
}

static void tell_outside(struct ts_encoder *encoder, struct encode_area *area)
{
	char count[24];

	if (area->outside == area->told_outside)
		return;
	snprintf(count, sizeof(count), "%llu", (unsigned long long)area->outside);
	encode_meta(encoder, area->process ? area->process->id : 0, "outside_windows", count);
	area->told_outside = area->outside;
}

/* True where another area of the process is still at work. */
static bool has_other_area(const struct ts_encoder *encoder, const struct encode_area *area)
{
	for (size_t i = 0; i < encoder->area_count; i++)
		if (encoder->areas[i] != area && encoder->areas[i]->process == area->process &&
		    !encoder->areas[i]->ended)
			return true;
	return false;
}

/* Everything of an area that still waits for something. */
static void settle_area(struct ts_encoder *encoder, struct encode_area *area)
{
	encode_open_spans(encoder, area);
	encode_open_windows(encoder, area);
	encode_tell_calls(encoder, area);
	encode_tell_area(encoder, area);
	tell_outside(encoder, area);
}

static int end_block(struct ts_encoder *encoder, const struct ts_block *block,
		     const struct ts_block_end *end)
{
	struct encode_area *area = encode_find_area(encoder, block->area);
	struct encode_process *process = area ? area->process : NULL;

	if (!area || area->ended)
		return TS_OK;
	encoder->now_ns = TS_MAX(encoder->now_ns, encode_scale(encoder, end->ended_counter));
	settle_area(encoder, area);
	encode_end_losses(encoder, area, end);
	if (end->target_state == TS_LIVE_DISABLED && end->message[0])
		encode_loss_row(encoder, process, 0, "events", "the agent switched itself off",
				TS_ABSENT, encoder->now_ns, encoder->now_ns);
	encode_closed_wait(encoder, area, true);
	if (process && !has_other_area(encoder, area)) {
		/* A process that we only leave has not ended. */
		if (end->reason != 2)
			process->end_ns = encode_scale(encoder, end->ended_counter);
		if (end->exit_status != TS_ABSENT)
			process->exit_status = end->exit_status;
		if (!area->of_recorder || process->epoch == encoder->epoch)
			encode_end_process(encoder, process);
	}
	area->ended = true;
	free_details(area);
	if (++encoder->ended_count > ENCODE_ENDED_AREAS)
		forget_areas(encoder);
	return encode_closed_tell(encoder);
}

static int process_block(struct ts_encoder *encoder, const struct ts_block_process *about)
{
	struct encode_process *process =
		encode_get_process(encoder, about->pid, about->start_time, 0, true);

	if (!process)
		process = encode_find_stranger(encoder, about->pid);
	if (!process) {
		process = encode_add_process(encoder, about->pid);
		if (!process)
			return encoder->failure;
		process->id = encoder->next_process++;
	}
	encode_know_process(encoder, process);
	process->start_time = about->start_time;
	if (!process->parent)
		process->parent = about->parent;
	if (process->start_ns == TS_ABSENT && about->seen_counter)
		process->start_ns = encode_scale(encoder, about->seen_counter);
	if (about->ended_counter)
		process->end_ns = encode_scale(encoder, about->ended_counter);
	if (about->exit_status != TS_ABSENT)
		process->exit_status = about->exit_status;
	if (!process->name)
		encode_set_process_texts(encoder, process, about->name, sizeof(about->name),
					 about->command, sizeof(about->command));
	if (about->ended_counter)
		encode_end_process(encoder, process);
	else
		encode_write_process(encoder, process);
	return TS_OK;
}

static int dictionary_block(struct ts_encoder *encoder, const struct ts_block *block,
			    const void *payload)
{
	struct encode_area *area = encode_add_area(encoder, block->area);

	if (!area)
		return encoder->failure;
	if (area->ended)
		return TS_OK;
	if (block->from != area->dictionary.length || block->to != block->from + block->bytes)
		encoder->damaged_blocks++;
	else
		encode_add_sites(encoder, area, payload, block->bytes);
	area->dictionary_end = TS_MAX(area->dictionary_end, block->to);
	return encoder->failure;
}

static int ring_block(struct ts_encoder *encoder, const struct ts_block *block, const void *payload)
{
	struct encode_area *area = encode_add_area(encoder, block->area);

	if (!area)
		return encoder->failure;
	return encode_ring_block(encoder, area, block, payload);
}

static int clock_block(struct ts_encoder *encoder, const struct ts_block_clock *clock)
{
	encode_add_anchor(encoder, clock);
	encode_tell_all(encoder);
	encode_closed_wait(encoder, NULL, false);
	return encode_closed_tell(encoder);
}

static int window_block(struct ts_encoder *encoder, const struct ts_block *block,
			const struct ts_block_window *window)
{
	struct encode_area *area = encode_find_area(encoder, block->area);

	if (area && area->about && !area->ended)
		encode_window_block(encoder, area, window);
	return encode_closed_tell(encoder);
}

/* ---- blocks ---- */

static int open_block(struct ts_encoder *encoder, const struct ts_block *block, const void *payload,
		      struct ts_error *err)
{
	struct ts_block_open open;

	if (block->type != TS_BLOCK_OPEN || block->bytes < sizeof(open))
		return ts_error_set(err, TS_EFORMAT, "the journal does not begin as one");
	memcpy(&open, payload, sizeof(open));
	if (open.version > TS_JOURNAL_VERSION)
		return ts_error_set(err, TS_EVERSION,
				    "the journal is of version %u, newer than this program, which "
				    "reads up to %u",
				    open.version, TS_JOURNAL_VERSION);
	if (!open.counter_mult || open.trace_start_ns < 0 ||
	    open.trace_start_ns > ENCODE_LATEST_NS || open.started_monotonic_ns < 0 ||
	    open.started_monotonic_ns > ENCODE_LATEST_NS ||
	    (open.clock != TS_LIVE_CLOCK_COUNTER && open.clock != TS_LIVE_CLOCK_MONOTONIC))
		return ts_error_set(err, TS_EFORMAT, "the journal begins with a bad block");
	encoder->open = open;
	encoder->opened = true;
	encoder->now_ns = encode_scale(encoder, open.started_counter);
	if (open.trace_bytes == 0)
		encode_preamble(encoder);
	return TS_OK;
}

/* Payloads that are a struct. */
static size_t least_bytes(unsigned int type)
{
	switch (type) {
	case TS_BLOCK_AREA:
		return sizeof(struct ts_block_area);
	case TS_BLOCK_CLOCK:
		return sizeof(struct ts_block_clock);
	case TS_BLOCK_END:
		return sizeof(struct ts_block_end);
	case TS_BLOCK_WINDOW:
		return sizeof(struct ts_block_window);
	case TS_BLOCK_LOSS:
		return sizeof(struct ts_block_loss);
	case TS_BLOCK_PROCESS:
		return sizeof(struct ts_block_process);
	case TS_BLOCK_EXPORT:
		return sizeof(struct ts_block_export);
	default:
		return 0;
	}
}

static int take_block(struct ts_encoder *encoder, const struct ts_block *block, const void *payload)
{
	switch (block->type) {
	case TS_BLOCK_RING:
		return ring_block(encoder, block, payload);
	case TS_BLOCK_DICTIONARY:
		return dictionary_block(encoder, block, payload);
	case TS_BLOCK_AREA:
		return area_block(encoder, block, payload);
	case TS_BLOCK_END:
		return end_block(encoder, block, payload);
	case TS_BLOCK_CLOCK:
		return clock_block(encoder, payload);
	case TS_BLOCK_WINDOW:
		return window_block(encoder, block, payload);
	case TS_BLOCK_PROCESS:
		return process_block(encoder, payload);
	case TS_BLOCK_LOSS:
		encode_loss_block(encoder, block, payload);
		return TS_OK;
	case TS_BLOCK_EXPORT:
		encode_closed_exported(encoder, payload);
		return TS_OK;
	case TS_BLOCK_STATE:
		return encode_load_state(encoder, block, payload);
	case TS_BLOCK_CLOSE:
	case TS_BLOCK_ROTATE:
		return TS_OK;
	default:
		encoder->damaged_blocks++;
		return TS_OK;
	}
}

int ts_encoder_block(struct ts_encoder *encoder, const struct ts_block *block, const void *payload,
		     struct ts_error *err)
{
	int result = TS_OK;

	if (!encoder->opened)
		result = open_block(encoder, block, payload, err);
	else if (block->bytes < least_bytes(block->type))
		encoder->damaged_blocks++;
	else if (take_block(encoder, block, payload) == TS_ENOMEM || encoder->failure)
		result = ts_error_set(err, TS_ENOMEM, "no memory to encode the recording");
	return result ? result : ts_writer_status(encoder->writer, err);
}

int ts_encoder_seal(struct ts_encoder *encoder)
{
	encode_assume_points(encoder);
	encode_tell_all(encoder);
	return ts_writer_status(encoder->writer, NULL);
}

int ts_encoder_finish(struct ts_encoder *encoder)
{
	for (size_t i = 0; i < encoder->area_count; i++)
		settle_area(encoder, encoder->areas[i]);
	encode_tell_points(encoder, true);
	encode_tell_all(encoder);
	encode_closed_wait(encoder, NULL, true);
	encode_closed_tell(encoder);
	return ts_writer_status(encoder->writer, NULL);
}
