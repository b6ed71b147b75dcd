/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the plan: the steps in order, and its description for the report. */
#include "replay/plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "replay/stream/stream_internal.h"

bool ts_replay_covers(const struct ts_replay_command_info *command)
{
	if (command->unknown_access || command->unreplayable)
		return false;
	if (command->is_rect && !command->is_whole)
		return false;
	return command->kind == TS_COMMAND_COPY || command->kind == TS_COMMAND_FILL ||
	       command->kind == TS_COMMAND_HOST_WRITE;
}

bool ts_replay_is_root(const struct ts_replay_stream *stream, uint32_t object)
{
	const struct ts_replay_object_info *memory = &stream->objects[object];

	return memory->kind == TS_OBJECT_MEMORY &&
	       (memory->parent == TS_REPLAY_NONE ||
		stream->objects[memory->parent].kind != TS_OBJECT_MEMORY);
}

bool ts_replay_is_alive(const struct ts_replay_stream *stream, uint32_t memory, uint32_t command)
{
	const struct ts_replay_object_info *object = &stream->objects[memory];

	return ts_replay_is_root(stream, memory) &&
	       (object->created_by == TS_REPLAY_NONE || object->created_by <= command) &&
	       (object->freed_by == TS_REPLAY_NONE || object->freed_by > command);
}

bool ts_replay_is_sparse(const struct ts_replay_stream *stream, uint32_t object)
{
	return object != TS_REPLAY_NONE && stream->objects[object].flags & TS_REPLAY_SPARSE;
}

uint32_t *ts_replay_list_memory(const struct ts_replay_stream *stream, uint32_t *ret_count)
{
	uint32_t *list = ts_alloc_array(stream->object_count + 1u, sizeof(*list));

	*ret_count = 0;
	for (uint32_t i = 0; list && i < stream->object_count; i++)
		if (ts_replay_is_root(stream, i))
			list[(*ret_count)++] = i;
	return list;
}

bool ts_replay_may_access(const struct ts_replay_stream *stream, uint32_t command, uint32_t memory)
{
	const struct ts_replay_command_info *info = &stream->commands[command];
	uint32_t context = info->queue == TS_REPLAY_NONE ? TS_REPLAY_NONE
							 : stream->objects[info->queue].parent;

	if (!info->unknown_access || !ts_replay_is_alive(stream, memory, command))
		return false;
	/* CUDA: addresses are those of a process. */
	if (stream->objects[memory].flags & (TS_REPLAY_SPARSE | TS_REPLAY_GLOBAL))
		return true;
	/* A device sees its context only; a function of the host may have any pointer. */
	return context == TS_REPLAY_NONE || context == stream->objects[memory].parent ||
	       (info->kind != TS_COMMAND_LAUNCH && info->kind != TS_COMMAND_COPY);
}

/* ---- commands that cannot run ---- */

/* Commands on the lifetime of objects: harmless if nothing uses the object. */
bool ts_replay_is_lifetime(enum ts_command_kind kind)
{
	return kind == TS_COMMAND_ALLOC || kind == TS_COMMAND_FREE || kind == TS_COMMAND_LOAD;
}

static int check_replayable(const struct ts_replay_plan *plan,
			    const struct ts_replay_stream *stream, struct ts_error *err)
{
	for (uint32_t i = 0; i < stream->command_count; i++) {
		const struct ts_replay_command_info *command = &stream->commands[i];
		const char *what = plan->kept[i] == TS_REPLAY_INCLUDED
					   ? "needed, and cannot be replayed"
					   : "cannot be replayed";

		if (plan->kept[i] && command->unreplayable && !ts_replay_is_lifetime(command->kind))
			return ts_replay_command_error(
				stream, i, err, "%s: %s ('--skip-unsupported' goes on without it)",
				what, command->unreplayable);
	}
	return TS_OK;
}

/* Is anything left that was requested? */
static int check_left(const struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
		      struct ts_error *err)
{
	uint32_t first = TS_REPLAY_NONE;

	for (uint32_t i = 0; i < stream->command_count; i++) {
		const struct ts_replay_command_info *command = &stream->commands[i];

		if (plan->kept[i] == TS_REPLAY_REQUESTED &&
		    (command->read_count || command->write_count || command->unknown_access))
			return TS_OK;
		if (first == TS_REPLAY_NONE && plan->skipped[i] == TS_REPLAY_UNSUPPORTED)
			first = i;
	}
	if (first == TS_REPLAY_NONE)
		return TS_OK;
	ts_replay_command_error(stream, first, err, "cannot be replayed: %s",
				stream->commands[first].unreplayable);
	ts_error_prefix(err, "nothing is left to replay");
	return TS_EFORMAT;
}

static int skip(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
		struct ts_error *err)
{
	int rc = ts_replay_plan_skip(plan, stream, err);

	return rc ? rc : check_left(plan, stream, err);
}

static void count(struct ts_replay_plan *plan, const struct ts_replay_stream *stream)
{
	for (uint32_t i = 0; i < stream->command_count; i++) {
		plan->requested += plan->kept[i] == TS_REPLAY_REQUESTED;
		plan->included += plan->kept[i] == TS_REPLAY_INCLUDED;
	}
}

static int make(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
		const struct ts_replay_options *options, bool to_show, struct ts_error *err)
{
	int rc;

	*plan = (struct ts_replay_plan){ 0 };
	plan->kept = calloc(stream->command_count + 1u, 1);
	if (!plan->kept)
		return ts_replay_no_memory(err);
	rc = ts_replay_plan_select(plan, stream, options, err);
	if (!rc && !plan->is_complete)
		rc = ts_replay_plan_include(plan, stream, err);
	if (!rc && options->skip_unsupported)
		rc = skip(plan, stream, err);
	else if (!rc && !to_show)
		rc = check_replayable(plan, stream, err);
	if (!rc) {
		count(plan, stream);
		rc = ts_replay_plan_order(plan, stream, err);
	}
	if (rc)
		ts_replay_plan_release(plan);
	return rc;
}

int ts_replay_plan_make(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			const struct ts_replay_options *options, struct ts_error *err)
{
	return make(plan, stream, options, false, err);
}

int ts_replay_plan_make_to_show(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
				const struct ts_replay_options *options, struct ts_error *err)
{
	return make(plan, stream, options, true, err);
}

void ts_replay_plan_release(struct ts_replay_plan *plan)
{
	free(plan->kept);
	free(plan->order);
	free(plan->instead);
	free(plan->skipped);
	ts_map_release(&plan->unknown);
	*plan = (struct ts_replay_plan){ 0 };
}

/* ---- description ---- */

static const struct {
	enum ts_command_kind kind;
	const char *noun;
} kinds[] = {
	{ TS_COMMAND_COPY, "copy" },
	{ TS_COMMAND_FILL, "fill" },
	{ TS_COMMAND_LAUNCH, "launch" },
	{ TS_COMMAND_HOST_WRITE, "host write" },
};

static uint32_t count_kind(const struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			   enum ts_command_kind kind)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < stream->command_count; i++)
		number += plan->kept[i] == TS_REPLAY_INCLUDED && stream->commands[i].kind == kind;
	return number;
}

static void append_kinds(struct ts_text *text, const struct ts_replay_plan *plan,
			 const struct ts_replay_stream *stream)
{
	uint32_t numbers[TS_ARRAY_SIZE(kinds)], last = 0;

	for (size_t i = 0; i < TS_ARRAY_SIZE(kinds); i++) {
		numbers[i] = count_kind(plan, stream, kinds[i].kind);
		if (numbers[i])
			last = (uint32_t)i;
	}
	for (size_t i = 0; i < TS_ARRAY_SIZE(kinds); i++) {
		if (!numbers[i])
			continue;
		if (text->length)
			ts_text_append_str(text, i == last ? " and " : ", ");
		ts_text_append_str(text, TS_COUNTED(numbers[i], kinds[i].noun));
	}
}

void ts_replay_plan_text(const struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			 char *to, size_t bytes)
{
	TS_SCOPED(ts_text) text = { 0 };
	const char *between = " before it: ";

	*to = '\0';
	if (!plan->included)
		return;
	append_kinds(&text, plan, stream);
	for (uint32_t i = 0; i < stream->command_count; i++) {
		uint32_t last = i;

		/* Nodes of a graph have the number of their launch. */
		if (plan->kept[i] != TS_REPLAY_INCLUDED ||
		    (i && plan->kept[i - 1] == TS_REPLAY_INCLUDED &&
		     stream->commands[i - 1].sequence == stream->commands[i].sequence))
			continue;
		while (last + 1 < stream->command_count &&
		       plan->kept[last + 1] == TS_REPLAY_INCLUDED)
			last++;
		if (text.length + 64 > bytes) {
			ts_text_append_str(&text, ", ...");
			break;
		}
		ts_text_printf(&text, "%s%" PRIu64, between, stream->commands[i].sequence);
		if (stream->commands[last].sequence > stream->commands[i].sequence)
			ts_text_printf(&text, "-%" PRIu64, stream->commands[last].sequence);
		between = ", ";
		i = last;
	}
	snprintf(to, bytes, "%s", ts_text_cstr(&text));
}

/* ---- skipped commands ---- */

void ts_replay_plan_report(const struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			   struct ts_replay_report *report)
{
	size_t count = 0;

	report->skipped = plan->unsupported;
	report->dependent = plan->dependent;
	for (uint32_t i = 0; plan->skipped && i < stream->command_count &&
			     count < TS_ARRAY_SIZE(report->first_skipped);
	     i++) {
		struct ts_replay_skipped *skipped = &report->first_skipped[count];

		if (plan->skipped[i] != TS_REPLAY_UNSUPPORTED)
			continue;
		skipped->command = stream->commands[i].sequence;
		ts_replay_command_text(stream, i, skipped->text, sizeof(skipped->text));
		snprintf(skipped->reason, sizeof(skipped->reason), "%s",
			 stream->commands[i].unreplayable);
		count++;
	}
}
