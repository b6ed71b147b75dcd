/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of speedscope: samples of stacks, or spans that open and close. */
#include <string.h>

#include "base/ns.h"
#include "import/import.h"
#include "import/speedscope/speedscope_import.h"

/* Rows between two checks for cancellation. */
#define ROWS_A_STEP 4096

static const struct ts_loss_kind loss_frame = {
	.what = "frame",
	.one = "frame that the file does not list",
	.many = "frames that the file does not list",
};
static const struct ts_loss_kind loss_weight = {
	.what = "sample",
	.one = "sample without a weight",
	.many = "samples without a weight",
};
static const struct ts_loss_kind loss_event = {
	.what = "event",
	.one = "event without a type, a frame or a time",
	.many = "events without a type, a frame or a time",
};
static const struct ts_loss_kind loss_close = {
	.what = "event",
	.one = "end of a span that has not begun",
	.many = "ends of spans that have not begun",
};
static const struct ts_loss_kind loss_crossed = {
	.what = "span",
	.one = "span that ended with another one around it",
	.many = "spans that ended with another one around them",
};

/* A profile being added. */
struct adding {
	struct ts_speedscope_import *s;
	unsigned int places; /* decimal places from its unit to ns */
	bool is_time;
	int64_t thread;
	int64_t now; /* time of the last event, or the end of the last sample */
};

/* ---- values ---- */

static void read_unit(const struct ts_json_string *unit, struct adding *adding)
{
	adding->is_time = true;
	if (ts_json_string_is(unit, "nanoseconds"))
		adding->places = 0;
	else if (ts_json_string_is(unit, "microseconds"))
		adding->places = 3;
	else if (ts_json_string_is(unit, "milliseconds"))
		adding->places = 6;
	else if (ts_json_string_is(unit, "seconds"))
		adding->places = 9;
	else
		adding->is_time = false;
}

/* A number in the profile's unit; *ret_has false: something else, or beyond int64. */
static int read_value(const struct adding *adding, struct ts_json *js, int64_t *ret_value,
		      bool *ret_has)
{
	struct ts_json before = *js;

	*ret_has = !ts_json_scan_decimal(js, adding->places, ret_value);
	if (*ret_has)
		return TS_OK;
	*js = before;
	return ts_json_skip(js);
}

/* The index of a frame; UINT64_MAX: none. */
static int read_frame_index(const struct adding *adding, struct ts_json *js, uint64_t *ret_frame)
{
	int64_t index = -1;
	int rc = ts_speedscope_scan_int(js, &index);

	*ret_frame = index >= 0 && (uint64_t)index < adding->s->frame_count ? (uint64_t)index
									    : UINT64_MAX;
	return rc;
}

static int count_row(struct adding *adding)
{
	struct ts_import *import = adding->s->import;
	int rc = ts_writer_status(adding->s->writer, adding->s->err);

	if (rc)
		return rc;
	if (++import->result.events % ROWS_A_STEP || !import->options.progress)
		return TS_OK;
	if (!import->options.progress(import->options.context, 0, 0))
		return TS_OK;
	adding->s->has_message = true;
	return ts_error_set(adding->s->err, TS_ECANCELED,
			    "input '%s': stopped; everything read so far is in the trace",
			    import->path);
}

/* ---- samples ---- */

/* Frames of a stack, outermost first. */
static int read_stack(struct adding *adding, struct ts_json *js, int64_t *ret_stack)
{
	struct ts_json_walk walk = { .open = '[', .skips_others = true };
	struct ts_speedscope_import *s = adding->s;
	uint32_t stack = 0;
	uint64_t frame;

	while (ts_json_walk_next(&walk, js)) {
		walk.rc = read_frame_index(adding, js, &frame);
		if (!walk.rc && frame == UINT64_MAX)
			ts_entities_add_loss(&s->entities, &loss_frame, 1);
		else if (!walk.rc)
			stack = ts_writer_stack(s->writer, stack, s->frames[frame].id);
	}
	*ret_stack = stack;
	return walk.rc;
}

static int add_sample(struct adding *adding, uint32_t name, int64_t stack, int64_t weight)
{
	struct ts_sample_row row = ts_sample_none;

	row.start = adding->is_time ? adding->now : 0;
	row.thread = adding->thread;
	row.name = name;
	row.weight = weight;
	row.stack = stack;
	adding->now = ts_ns_add(adding->now, weight);
	ts_writer_add(adding->s->writer, TS_TABLE_SAMPLE, &row, NULL);
	return count_row(adding);
}

/* Stacks and weights are lists of the same length. */
static int add_samples(struct adding *adding, struct ts_json samples, struct ts_json weights,
		       const char *type)
{
	struct ts_json_walk stacks = { .open = '[', .skips_others = true }, numbers = stacks;
	struct ts_speedscope_import *s = adding->s;
	uint32_t name = ts_import_string(s->import, type, strlen(type));

	while (samples.next && ts_json_walk_next(&stacks, &samples)) {
		int64_t stack, weight;
		bool has_weight = false;
		int rc = read_stack(adding, &samples, &stack);

		if (!rc && weights.next && ts_json_walk_next(&numbers, &weights))
			rc = read_value(adding, &weights, &weight, &has_weight);
		if (!rc)
			rc = numbers.rc;
		if (!rc && !has_weight)
			ts_entities_add_loss(&s->entities, &loss_weight, 1);
		else if (!rc)
			rc = add_sample(adding, name, stack, weight);
		stacks.rc = rc;
	}
	return stacks.rc;
}

/* ---- spans ---- */

struct event {
	bool begins, has_type, has_at;
	uint64_t frame;
	int64_t at;
};

static int read_event(struct adding *adding, struct ts_json *js, struct event *ret_event)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };
	struct ts_json_string type = { 0 };

	*ret_event = (struct event){ .frame = UINT64_MAX };
	while (ts_json_walk_next(&walk, js)) {
		if (ts_json_string_is(&walk.key, "frame"))
			walk.rc = read_frame_index(adding, js, &ret_event->frame);
		else if (ts_json_string_is(&walk.key, "at"))
			walk.rc = read_value(adding, js, &ret_event->at, &ret_event->has_at);
		else if (ts_json_string_is(&walk.key, "type"))
			walk.rc = ts_speedscope_scan_string(js, &type);
	}
	ret_event->begins = ts_json_string_is(&type, "O");
	ret_event->has_type = ret_event->begins || ts_json_string_is(&type, "C");
	return walk.rc;
}

/* Closes the innermost span. */
static int close_span(struct adding *adding, int64_t duration)
{
	struct ts_speedscope_import *s = adding->s;
	const struct ts_speedscope_open *open = &s->open[--s->open_count];
	struct ts_speedscope_frame *frame = &s->frames[open->frame];
	struct ts_slice_row row = ts_slice_none;

	frame->open_count--;
	ts_row_args_clear(&s->args);
	if (frame->file)
		ts_row_args_add(&s->args, s->file_key, TS_ARG_STRING, frame->file);
	if (frame->line != TS_ABSENT)
		ts_row_args_add(&s->args, s->line_key, TS_ARG_INT, frame->line);
	row.start = open->start;
	row.duration = duration;
	row.thread = adding->thread;
	row.name = frame->name;
	row.shape = ts_row_args_shape(&s->args, s->writer);
	ts_writer_add(s->writer, TS_TABLE_SLICE, &row, s->args.values);
	return count_row(adding);
}

static int begin_span(struct adding *adding, const struct event *event)
{
	struct ts_speedscope_import *s = adding->s;

	if (ts_grow_array((void **)&s->open, &s->open_capacity, s->open_count + 1,
			  sizeof(*s->open)))
		return ts_speedscope_no_memory(s);
	s->frames[event->frame].open_count++;
	s->open[s->open_count++] =
		(struct ts_speedscope_open){ .frame = event->frame, .start = event->at };
	return TS_OK;
}

/* Ends the span, and those inside it that have not ended. */
static int end_span(struct adding *adding, const struct event *event)
{
	struct ts_speedscope_import *s = adding->s;
	size_t depth = s->open_count;
	int rc = TS_OK;

	/* Without a search: the file may have any number of both. */
	if (!s->frames[event->frame].open_count) {
		ts_entities_add_loss(&s->entities, &loss_close, 1);
		return TS_OK;
	}
	while (s->open[depth - 1].frame != event->frame)
		depth--;
	if (s->open_count > depth)
		ts_entities_add_loss(&s->entities, &loss_crossed, s->open_count - depth);
	while (!rc && s->open_count >= depth) {
		int64_t duration = ts_ns_sub(event->at, s->open[s->open_count - 1].start);

		rc = close_span(adding, TS_MAX(duration, 0));
	}
	return rc;
}

static int add_spans(struct adding *adding, struct ts_json events)
{
	struct ts_speedscope_import *s = adding->s;
	struct ts_json_walk walk = { .open = '[', .skips_others = true };
	struct event event;
	int rc;

	s->open_count = 0;
	while (events.next && ts_json_walk_next(&walk, &events)) {
		rc = read_event(adding, &events, &event);
		if (!rc && (!event.has_type || !event.has_at || event.frame == UINT64_MAX))
			ts_entities_add_loss(&s->entities, &loss_event, 1);
		else if (!rc)
			rc = event.begins ? begin_span(adding, &event) : end_span(adding, &event);
		walk.rc = rc;
	}
	rc = walk.rc;
	/* Those did not end in the profile. */
	while (!rc && s->open_count)
		rc = close_span(adding, -1);
	return rc;
}

/* ---- a profile ---- */

int ts_speedscope_add_profile(struct ts_speedscope_import *s,
			      const struct ts_speedscope_profile *profile)
{
	struct adding adding = { .s = s };
	struct ts_json start = profile->start;
	uint32_t name = ts_speedscope_string(s, &profile->name);
	const char *type;
	bool has_start;
	int rc;

	adding.thread = ts_entities_thread(&s->entities, s->process, ++s->profile_count, TS_ABSENT);
	if (!adding.thread) {
		rc = ts_writer_status(s->writer, s->err);
		return rc ? rc : ts_speedscope_no_memory(s);
	}
	ts_entities_thread_row(&s->entities, adding.thread)->name = name;
	read_unit(&profile->unit, &adding);
	if (ts_json_string_is(&profile->type, "evented"))
		return add_spans(&adding, profile->events);
	if (start.next)
		read_value(&adding, &start, &adding.now, &has_start);
	type = adding.is_time                               ? "time/nanoseconds"
	       : ts_json_string_is(&profile->unit, "bytes") ? "memory/bytes"
							    : "samples/count";
	return add_samples(&adding, profile->samples, profile->weights, type);
}
