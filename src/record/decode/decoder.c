/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder: takes blocks in journal order and dispatches each by its type. */
#include "record/decode/decoder.h"

#include <stdio.h>
#include <stdlib.h>

#include "record/decode/decode_internal.h"

int decode_no_memory(struct ts_decoder *decoder)
{
	decoder->failure = TS_ENOMEM;
	return TS_ENOMEM;
}

/* ---- lifecycle ---- */

/* Ids of the trace are not used again, also if the journal has lost how far they went. */
static void know_faults(struct ts_decoder *decoder, const struct ts_decoder_faults *faults)
{
	decoder->is_damaged = faults->is_torn;
	decoder->next_process += faults->used_ids[TS_TABLE_PROCESS];
	decoder->next_thread += faults->used_ids[TS_TABLE_THREAD];
	decoder->next_device += faults->used_ids[TS_TABLE_DEVICE];
	decoder->next_stream += faults->used_ids[TS_TABLE_STREAM];
	decoder->next_object += faults->used_ids[TS_TABLE_OBJECT];
}

bool decode_has_rows(const struct ts_decoder *decoder)
{
	const struct ts_decoder_faults *faults = decoder->options.faults;

	return decoder->open.trace_bytes && !(faults && faults->lost_rows);
}

int ts_decoder_new(struct ts_decoder **ret_decoder, const struct ts_decoder_options *options,
		   struct ts_error *err)
{
	struct ts_decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (options)
		decoder->options = *options;
	decoder->epoch = 1;
	decoder->host = 1;
	decoder->next_process = decoder->next_thread = decoder->next_device = 1;
	decoder->next_stream = decoder->next_object = 1;
	decoder->next_clock = DECODE_FIRST_DEVICE_CLOCK;
	if (decoder->options.faults)
		know_faults(decoder, decoder->options.faults);
	ts_hash_key_draw(&decoder->blob_key);
	*ret_decoder = decoder;
	return TS_OK;
}

static void free_details(struct decode_area *area)
{
	free(TS_STEAL(area->about));
	ts_text_release(&area->dictionary);
	free(TS_STEAL(area->sites));
	area->site_count = area->site_capacity = 0;
	for (size_t i = 0; i < area->thread_count; i++)
		decode_disown_thread(area->threads[i]);
	free(TS_STEAL(area->threads));
	area->thread_count = area->thread_capacity = area->track_count = 0;
	ts_map_release(&area->serials);
	ts_map_release(&area->tracks);
	free(TS_STEAL(area->devices));
	area->device_count = area->device_capacity = 0;
	decode_free_accelerator(area);
	decode_free_channel(area);
	ts_pairmap_release(&area->steps);
	free(TS_STEAL(area->windows));
	area->window_count = area->window_capacity = 0;
	for (size_t i = 0; i < area->ring_count; i++)
		if (area->rings[i])
			area->rings[i]->thread = NULL;
}

static void free_area(struct decode_area *area)
{
	free_details(area);
	for (size_t i = 0; i < area->ring_count; i++) {
		decode_free_torch(area->rings[i]);
		free(area->rings[i]);
	}
	free(area->rings);
	free(area);
}

void ts_decoder_free(struct ts_decoder *decoder)
{
	if (!decoder)
		return;
	for (size_t i = 0; i < decoder->area_count; i++)
		free_area(decoder->areas[i]);
	free(decoder->areas);
	ts_map_release(&decoder->area_index);
	decode_free_seen(decoder);
	for (size_t i = 0; i < decoder->process_count; i++)
		decode_free_process(decoder->processes[i]);
	free(decoder->processes);
	ts_map_release(&decoder->pids);
	for (size_t i = 0; i < decoder->device_count; i++)
		free(decoder->devices[i]);
	free(decoder->devices);
	ts_map_release(&decoder->uuids);
	free(decoder->closed);
	free(decoder->points);
	free(decoder->sources);
	ts_pairmap_release(&decoder->shapes);
	ts_pairmap_release(&decoder->blob_rows);
	ts_pairmap_release(&decoder->device_modules);
	ts_pairmap_release(&decoder->plain_names);
	free(decoder->path);
	ts_text_release(&decoder->scratch);
	free(decoder->name);
	free(decoder);
}

/* Ids of strings and shapes are valid in one file only: forget them for a new one. */
static void forget_ids(struct ts_decoder *decoder)
{
	for (size_t i = 0; i < decoder->area_count; i++)
		for (size_t k = 0; k < decoder->areas[i]->site_count; k++)
			decoder->areas[i]->sites[k].resolved = false;
	ts_pairmap_clear(&decoder->shapes);
	ts_pairmap_clear(&decoder->blob_rows);
	ts_pairmap_clear(&decoder->plain_names);
	decode_samples_move(decoder);
}

/* Every file must contain the facts of an area. */
static void repeat_facts(struct ts_decoder *decoder)
{
	for (size_t i = 0; i < decoder->area_count; i++) {
		decode_channel_moves(decoder, decoder->areas[i]);
		decode_facts(decoder, decoder->areas[i]);
	}
}

int ts_decoder_set_writer(struct ts_decoder *decoder, struct ts_writer *writer, bool fresh,
			  const char *name)
{
	decoder->writer = writer;
	ts_writer_set_clock(writer, DECODE_CLOCK_OF_EVENTS);
	if (name) {
		free(decoder->name);
		decoder->name = strdup(name);
	}
	if (!fresh)
		return TS_OK;
	decoder->epoch++;
	decoder->point_count = 0; /* clocks used in the new file add theirs again */
	forget_ids(decoder);
	if (decoder->opened) {
		decode_preamble(decoder);
		repeat_facts(decoder);
	}
	return ts_writer_status(writer, NULL);
}

void ts_decoder_hold(struct ts_decoder *decoder, bool held)
{
	decoder->held = held;
	if (!held && decoder->writer)
		decode_report_closed(decoder);
}

void ts_decoder_damage(struct ts_decoder *decoder, uint64_t bytes)
{
	decoder->damaged_bytes += bytes;
	decoder->is_damaged = true;
	decoder->lost_state |= decoder->in_state;
}

void ts_decoder_counts(const struct ts_decoder *decoder, struct ts_decoder_counts *ret_counts)
{
	*ret_counts = decoder->counts;
}

/* ---- areas ---- */

struct decode_area *decode_find_area(struct ts_decoder *decoder, uint64_t id)
{
	uint64_t index;

	return ts_map_get(&decoder->area_index, id, &index) ? decoder->areas[index] : NULL;
}

struct decode_area *decode_add_area(struct ts_decoder *decoder, uint64_t id)
{
	struct decode_area *area = decode_find_area(decoder, id);

	if (area)
		return area;
	area = calloc(1, sizeof(*area));
	if (!area ||
	    ts_grow_array((void **)&decoder->areas, &decoder->area_capacity,
			  decoder->area_count + 1, sizeof(struct decode_area *)) ||
	    ts_map_put(&decoder->area_index, id, decoder->area_count)) {
		free(area);
		decode_no_memory(decoder);
		return NULL;
	}
	area->id = id;
	decoder->areas[decoder->area_count++] = area;
	return area;
}

struct decode_ring *decode_get_ring(struct ts_decoder *decoder, struct decode_area *area,
				    uint32_t ring)
{
	size_t count = area->ring_count;

	if (ring < count && area->rings[ring])
		return area->rings[ring];
	if (ring >= TS_LIVE_RING_LIMIT)
		return NULL;
	if (ts_grow_array((void **)&area->rings, &area->ring_capacity, (size_t)ring + 1,
			  sizeof(struct decode_ring *))) {
		decode_no_memory(decoder);
		return NULL;
	}
	for (; count <= ring; count++)
		area->rings[count] = NULL;
	area->ring_count = count;
	area->rings[ring] = calloc(1, sizeof(struct decode_ring));
	if (!area->rings[ring])
		decode_no_memory(decoder);
	return area->rings[ring];
}

/* Drops the oldest ended areas. */
static void forget_areas(struct ts_decoder *decoder)
{
	size_t kept = 0, drop = decoder->ended_count - DECODE_ENDED_AREAS / 2;

	ts_map_clear(&decoder->area_index);
	for (size_t i = 0; i < decoder->area_count; i++) {
		struct decode_area *area = decoder->areas[i];

		if (area->ended && drop) {
			free_area(area);
			decoder->ended_count--;
			drop--;
			continue;
		}
		decoder->areas[kept] = area;
		if (ts_map_put(&decoder->area_index, area->id, kept++))
			decode_no_memory(decoder);
	}
	decoder->area_count = kept;
}

static struct decode_process *process_of(struct ts_decoder *decoder,
					 const struct ts_block_area *about)
{
	const struct ts_live_control *control = &about->control;
	uint64_t pid = about->pid ? about->pid : control->pid;
	struct decode_process *process =
		decode_get_process(decoder, pid, control->start_time, control->image, false);

	if (process)
		return process;
	/* The process may have been seen before it had an area. */
	process = decode_get_process(decoder, pid, control->start_time, 0, false);
	if (!process)
		process = decode_find_external(decoder, pid);
	if (!process) {
		process = decode_add_process(decoder, pid);
		if (!process)
			return NULL;
		process->id = decoder->next_process++;
	}
	decode_know_process(decoder, process);
	process->image = control->image;
	process->parent = about->parent ? about->parent : control->parent;
	process->start_time = control->start_time;
	return process;
}

int decode_set_about(struct ts_decoder *decoder, struct decode_area *area,
		     const struct ts_block_area *about)
{
	int64_t started = decode_scale(decoder, decoder->open.started_counter);

	if (!area->about)
		area->about = malloc(sizeof(*about));
	if (!area->about)
		return decode_no_memory(decoder);
	*area->about = *about;
	if (area->ended)
		decoder->ended_count--;
	area->ended = false;
	area->native = about->control.clock == decoder->open.clock;
	area->of_recorder = about->control.role == TS_LIVE_RECORDER;
	area->bound_ns =
		TS_MIN(started, decode_time(decoder, area, about->control.created.counter));
	if (about->control.since)
		decode_begin_area(area, decode_time(decoder, area, about->control.since));
	area->process = process_of(decoder, about);
	if (!area->process)
		return TS_ENOMEM;
	area->process->of_recorder = area->of_recorder;
	/* The recorder's own measurements are of all ranks. */
	if (!area->of_recorder)
		decode_set_rank(decoder, area->process, &about->control.rank);
	return decoder->failure;
}

static int area_block(struct ts_decoder *decoder, const struct ts_block *block,
		      const struct ts_block_area *about)
{
	struct decode_area *area = decode_add_area(decoder, block->area);
	struct decode_process *process;

	if (!area || decode_set_about(decoder, area, about))
		return decoder->failure;
	process = area->process;
	decoder->now_ns = TS_MAX(decoder->now_ns, decode_scale(decoder, about->seen_counter));
	if (process->epoch == decoder->epoch && process->name)
		return TS_OK;
	process->ended = false;
	process->start_ns = decode_time(decoder, area, about->control.created.counter);
	decode_set_process_texts(decoder, process, about->control.name, sizeof(about->control.name),
				 about->control.command, sizeof(about->control.command));
	if (!area->of_recorder)
		decode_write_process(decoder, process);
	decode_area_anchor(decoder, area);
	return TS_OK;
}

static void report_outside(struct ts_decoder *decoder, struct decode_area *area)
{
	char count[24];

	if (area->outside == area->reported_outside)
		return;
	snprintf(count, sizeof(count), "%llu", (unsigned long long)area->outside);
	decode_meta(decoder, area->process ? area->process->id : 0, "outside_windows", count);
	area->reported_outside = area->outside;
}

/* True if the process has another area that has not ended. */
static bool has_other_area(const struct ts_decoder *decoder, const struct decode_area *area)
{
	for (size_t i = 0; i < decoder->area_count; i++)
		if (decoder->areas[i] != area && decoder->areas[i]->process == area->process &&
		    !decoder->areas[i]->ended)
			return true;
	return false;
}

/* Completes everything of an area that still waits for more data. */
static void settle_area(struct ts_decoder *decoder, struct decode_area *area)
{
	decode_open_spans(decoder, area);
	decode_write_torch(decoder, area);
	decode_open_windows(decoder, area);
	decode_report_calls(decoder, area);
	decode_report_area(decoder, area);
	report_outside(decoder, area);
}

static int end_block(struct ts_decoder *decoder, const struct ts_block *block,
		     const struct ts_block_end *end)
{
	struct decode_area *area = decode_find_area(decoder, block->area);
	struct decode_process *process = area ? area->process : NULL;

	if (!area || area->ended)
		return TS_OK;
	decoder->now_ns = TS_MAX(decoder->now_ns, decode_scale(decoder, end->ended_counter));
	settle_area(decoder, area);
	decode_end_losses(decoder, area, end);
	if (end->target_state == TS_LIVE_DISABLED && end->message[0])
		decode_loss_row(decoder, process, 0, "events", "the agent disabled itself",
				TS_ABSENT, decoder->now_ns, decoder->now_ns);
	decode_closed_wait(decoder, area, true);
	if (process && !has_other_area(decoder, area)) {
		/* If the recorder only left, the process has not ended. */
		if (end->reason != 2)
			process->end_ns = decode_scale(decoder, end->ended_counter);
		if (end->exit_status != TS_ABSENT)
			process->exit_status = end->exit_status;
		if (!area->of_recorder || process->epoch == decoder->epoch)
			decode_end_process(decoder, process);
	}
	area->ended = true;
	free_details(area);
	ts_spools_end(decoder->options.spools, area->id);
	if (++decoder->ended_count > DECODE_ENDED_AREAS)
		forget_areas(decoder);
	return decode_report_closed(decoder);
}

static int process_block(struct ts_decoder *decoder, const struct ts_block *block,
			 const struct ts_block_process *about)
{
	struct decode_process *process =
		decode_get_process(decoder, about->pid, about->start_time, 0, true);
	struct ts_rank rank = { 0 };

	if (block->bytes >= sizeof(*about))
		rank = about->rank;
	if (!process)
		process = decode_find_external(decoder, about->pid);
	if (!process) {
		process = decode_add_process(decoder, about->pid);
		if (!process)
			return decoder->failure;
		process->id = decoder->next_process++;
	}
	decode_know_process(decoder, process);
	process->start_time = about->start_time;
	if (!process->parent)
		process->parent = about->parent;
	decode_set_rank(decoder, process, &rank);
	if (process->start_ns == TS_ABSENT && about->seen_counter)
		process->start_ns = decode_scale(decoder, about->seen_counter);
	if (about->ended_counter)
		process->end_ns = decode_scale(decoder, about->ended_counter);
	if (about->exit_status != TS_ABSENT)
		process->exit_status = about->exit_status;
	if (!process->name)
		decode_set_process_texts(decoder, process, about->name, sizeof(about->name),
					 about->command, sizeof(about->command));
	if (about->ended_counter)
		decode_end_process(decoder, process);
	else
		decode_write_process(decoder, process);
	return TS_OK;
}

static int dictionary_block(struct ts_decoder *decoder, const struct ts_block *block,
			    const void *payload)
{
	struct decode_area *area = decode_add_area(decoder, block->area);

	if (!area)
		return decoder->failure;
	if (area->ended)
		return TS_OK;
	if (block->from != area->dictionary.length || block->to != block->from + block->bytes)
		decoder->damaged_blocks++;
	else
		decode_add_sites(decoder, area, payload, block->bytes);
	area->dictionary_end = TS_MAX(area->dictionary_end, block->to);
	return decoder->failure;
}

static int ring_block(struct ts_decoder *decoder, const struct ts_block *block, const void *payload)
{
	struct decode_area *area = decode_add_area(decoder, block->area);

	if (!area)
		return decoder->failure;
	return decode_ring_block(decoder, area, block, payload);
}

static int clock_block(struct ts_decoder *decoder, const struct ts_block_clock *clock)
{
	ts_spools_tick(decoder->options.spools);
	decode_add_anchor(decoder, clock);
	decode_report_all(decoder);
	decode_closed_wait(decoder, NULL, false);
	return decode_report_closed(decoder);
}

static int window_block(struct ts_decoder *decoder, const struct ts_block *block,
			const struct ts_block_window *window)
{
	struct decode_area *area = decode_find_area(decoder, block->area);

	if (area && area->about && !area->ended)
		decode_window_block(decoder, area, window);
	return decode_report_closed(decoder);
}

/* ---- blocks ---- */

static int open_block(struct ts_decoder *decoder, const struct ts_block *block, const void *payload,
		      struct ts_error *err)
{
	struct ts_block_open open;

	if (block->type != TS_BLOCK_OPEN || !ts_journal_take_open(payload, block->bytes, &open))
		return ts_error_set(err, TS_EFORMAT, "the file is not a journal");
	if (!ts_rank_is_valid(&open.rank))
		open.rank = (struct ts_rank){ 0 };
	if (open.version > TS_JOURNAL_VERSION)
		return ts_error_set(err, TS_EVERSION,
				    "the journal has version %u, newer than this program, which "
				    "reads up to %u",
				    open.version, TS_JOURNAL_VERSION);
	if (!open.counter_mult || open.trace_start_ns < 0 ||
	    open.trace_start_ns > DECODE_LATEST_NS || open.started_monotonic_ns < 0 ||
	    open.started_monotonic_ns > DECODE_LATEST_NS ||
	    (open.clock != TS_LIVE_CLOCK_COUNTER && open.clock != TS_LIVE_CLOCK_MONOTONIC))
		return ts_error_set(err, TS_EFORMAT, "the first block of the journal is damaged");
	decoder->open = open;
	decoder->opened = decoder->in_state = true;
	decoder->now_ns = decode_scale(decoder, open.started_counter);
	if (decoder->options.faults && decoder->options.faults->lost_state_bytes)
		ts_decoder_damage(decoder, decoder->options.faults->lost_state_bytes);
	if (!decode_has_rows(decoder))
		decode_preamble(decoder);
	return TS_OK;
}

/* Minimum payload size of blocks that hold a struct. */
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
		return TS_BLOCK_PROCESS_LEAST;
	case TS_BLOCK_EXPORT:
		return sizeof(struct ts_block_export);
	default:
		return 0;
	}
}

static bool may_be_state(unsigned int type)
{
	return type == TS_BLOCK_STATE || type == TS_BLOCK_AREA || type == TS_BLOCK_DICTIONARY ||
	       type == TS_BLOCK_CLOCK;
}

static int take_block(struct ts_decoder *decoder, const struct ts_block *block, const void *payload)
{
	decoder->in_state &= may_be_state(block->type);
	switch (block->type) {
	case TS_BLOCK_RING:
		return ring_block(decoder, block, payload);
	case TS_BLOCK_DICTIONARY:
		return dictionary_block(decoder, block, payload);
	case TS_BLOCK_AREA:
		return area_block(decoder, block, payload);
	case TS_BLOCK_END:
		return end_block(decoder, block, payload);
	case TS_BLOCK_CLOCK:
		return clock_block(decoder, payload);
	case TS_BLOCK_WINDOW:
		return window_block(decoder, block, payload);
	case TS_BLOCK_PROCESS:
		return process_block(decoder, block, payload);
	case TS_BLOCK_LOSS:
		decode_loss_block(decoder, block, payload);
		return TS_OK;
	case TS_BLOCK_EXPORT:
		decode_closed_exported(decoder, payload);
		return TS_OK;
	case TS_BLOCK_STATE:
		return decode_load_state(decoder, block, payload);
	case TS_BLOCK_CLOSE:
	case TS_BLOCK_ROTATE:
		return TS_OK;
	default:
		decoder->damaged_blocks++;
		return TS_OK;
	}
}

int ts_decoder_block(struct ts_decoder *decoder, const struct ts_block *block, const void *payload,
		     struct ts_error *err)
{
	int result = TS_OK;

	if (!decoder->opened)
		result = open_block(decoder, block, payload, err);
	else if (block->bytes < least_bytes(block->type))
		decoder->damaged_blocks++;
	else if (take_block(decoder, block, payload) == TS_ENOMEM || decoder->failure)
		result = ts_error_set(err, TS_ENOMEM, "no memory to decode the recording");
	return result ? result : ts_writer_status(decoder->writer, err);
}

int ts_decoder_seal(struct ts_decoder *decoder)
{
	for (size_t i = 0; i < decoder->area_count; i++)
		decode_write_torch(decoder, decoder->areas[i]);
	decode_assume_points(decoder);
	decode_report_all(decoder);
	return ts_writer_status(decoder->writer, NULL);
}

int ts_decoder_finish(struct ts_decoder *decoder)
{
	for (size_t i = 0; i < decoder->area_count; i++)
		settle_area(decoder, decoder->areas[i]);
	decode_write_points(decoder, true);
	decode_report_all(decoder);
	decode_closed_wait(decoder, NULL, true);
	decode_report_closed(decoder);
	return ts_writer_status(decoder->writer, NULL);
}
