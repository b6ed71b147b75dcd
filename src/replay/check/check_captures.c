/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what is captured from a run: data read back, memory of recorded checks, with `each` what
 * every command writes, all written memory at the end, and the memory of --dump.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "replay/check/check.h"
#include "replay/plan/plan.h"
#include "replay/stream/stream_internal.h"

static const struct ts_replay_range everything_read = { TS_REPLAY_NONE, 0, 0 };

/* ---- one capture ---- */

int ts_replay_captures_add(struct ts_replay_checker *checker, uint32_t position,
			   const struct ts_replay_range *range, const char *why, size_t *ret_index)
{
	size_t grown = checker->capacity;
	uint64_t *start;

	if (checker->count && checker->captures[checker->count - 1].position != position)
		ts_pairmap_clear(&checker->starts);
	start = ts_pairmap_insert(&checker->starts, range->memory, range->offset, NULL);
	if (!start)
		return TS_ENOMEM;
	for (size_t i = *start; i; i = checker->expected[i - 1].earlier) {
		if (checker->captures[i - 1].range.bytes == range->bytes) {
			*ret_index = i - 1;
			return TS_OK;
		}
	}
	if (ts_grow_array((void **)&checker->captures, &checker->capacity, checker->count + 1,
			  sizeof(*checker->captures)) ||
	    ts_grow_array((void **)&checker->expected, &grown, checker->count + 1,
			  sizeof(*checker->expected)))
		return TS_ENOMEM;
	*ret_index = checker->count;
	checker->captures[checker->count] =
		(struct ts_replay_capture){ .position = position, .range = *range, .why = why };
	checker->expected[checker->count++] = (struct ts_replay_expected){ .earlier = *start };
	*start = checker->count;
	return TS_OK;
}

static int expect(struct ts_replay_checker *checker, uint32_t position,
		  const struct ts_replay_range *range, const struct ts_replay_check *check)
{
	size_t index;

	if (ts_replay_captures_add(checker, position, range, check->why, &index))
		return TS_ENOMEM;
	if (!checker->expected[index].is_recorded)
		checker->expectations++;
	checker->expected[index].is_recorded = true;
	checker->expected[index].hash = check->hash;
	checker->expected[index].blob = check->blob;
	return TS_OK;
}

bool ts_replay_can_see(const struct ts_replay_checker *checker, uint32_t memory)
{
	return !checker->replay->stream->objects[memory].unreplayable;
}

static bool is_unknown(const struct ts_replay_checker *checker, const void *what)
{
	return ts_replay_plan_is_unknown(&checker->replay->plan, what);
}

/* ---- after a command ---- */

static bool is_inside(const struct ts_replay_range *range, const struct ts_replay_range *ranges,
		      uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (ranges[i].memory == range->memory && ranges[i].offset <= range->offset &&
		    range->offset + range->bytes <= ranges[i].offset + ranges[i].bytes)
			return true;
	return false;
}

/* In a selection, only what the command reads or writes is comparable with the recording. */
static bool is_comparable(const struct ts_replay_checker *checker,
			  const struct ts_replay_command_info *command,
			  const struct ts_replay_range *range)
{
	return checker->replay->plan.is_complete || command->unknown_access ||
	       is_inside(range, command->writes, command->write_count) ||
	       is_inside(range, command->reads, command->read_count);
}

static int add_recorded(struct ts_replay_checker *checker, uint32_t position,
			const struct ts_replay_command_info *command)
{
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < command->check_count; i++) {
		const struct ts_replay_check *check = &command->checks[i];
		struct ts_replay_range range = check->range;

		if (range.memory == TS_REPLAY_NONE) {
			range = everything_read;
			range.bytes = command->bytes;
		} else if (!ts_replay_can_see(checker, range.memory) ||
			   !is_comparable(checker, command, &range)) {
			continue;
		}
		if (is_unknown(checker, check))
			checker->unknown++;
		else if (range.bytes)
			rc = expect(checker, position, &range, check);
	}
	return rc;
}

static int add_writes(struct ts_replay_checker *checker, uint32_t position, uint32_t index)
{
	const struct ts_replay_stream *stream = checker->replay->stream;
	const struct ts_replay_command_info *command = &stream->commands[index];
	size_t unused;
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < command->write_count; i++)
		if (command->writes[i].bytes &&
		    ts_replay_can_see(checker, command->writes[i].memory) &&
		    !is_unknown(checker, &command->writes[i]))
			rc = ts_replay_captures_add(checker, position, &command->writes[i], "each",
						    &unused);
	for (uint32_t i = 0; !rc && command->unknown_access && i < stream->object_count; i++) {
		struct ts_replay_range all_bytes = { i, 0, stream->objects[i].bytes };

		if (ts_replay_may_access(stream, index, i) && ts_replay_can_see(checker, i))
			rc = ts_replay_captures_add(checker, position, &all_bytes, "each", &unused);
	}
	return rc;
}

static int add_command(struct ts_replay_checker *checker, uint32_t position, uint32_t index)
{
	const struct ts_replay_command_info *command = &checker->replay->stream->commands[index];
	enum ts_replay_check_level level = checker->replay->options.check;
	struct ts_replay_range read = everything_read;
	size_t unused;
	int rc;

	if (checker->replay->plan.kept[index] == TS_REPLAY_ORDER || level == TS_REPLAY_CHECK_NONE)
		return TS_OK;
	rc = add_recorded(checker, position, command);
	read.bytes = command->bytes;
	if (!rc && command->kind == TS_COMMAND_COPY && command->object == TS_REPLAY_NONE &&
	    command->other != TS_REPLAY_NONE && read.bytes && !is_unknown(checker, command))
		rc = ts_replay_captures_add(checker, position, &read, "read", &unused);
	if (!rc && level == TS_REPLAY_CHECK_EACH)
		rc = add_writes(checker, position, index);
	return rc;
}

/* Checks of commands that do not run. */
static void count_skipped(struct ts_replay_checker *checker)
{
	const struct ts_replay_plan *plan = &checker->replay->plan;

	for (uint32_t i = 0; plan->skipped && i < checker->replay->stream->command_count; i++)
		if (plan->skipped[i])
			checker->unknown += checker->replay->stream->commands[i].check_count;
}

/* ---- at the end ---- */

/* Memory that commands of the plan may have written. */
static bool *find_written(const struct ts_replay *replay)
{
	const struct ts_replay_stream *stream = replay->stream;
	bool *written = calloc(stream->object_count + 1u, sizeof(*written));

	for (uint32_t i = 0; written && i < replay->plan.count; i++) {
		uint32_t index = replay->plan.order[i];
		const struct ts_replay_command_info *command = &stream->commands[index];

		if (replay->plan.kept[index] == TS_REPLAY_ORDER)
			continue;
		for (uint32_t j = 0; j < command->write_count; j++)
			written[command->writes[j].memory] = true;
		for (uint32_t j = 0; command->unknown_access && j < stream->object_count; j++)
			written[j] |= ts_replay_may_access(stream, index, j);
	}
	return written;
}

static int add_final(struct ts_replay_checker *checker)
{
	const struct ts_replay *replay = checker->replay;
	const struct ts_replay_stream *stream = replay->stream;
	TS_AUTO_FREE bool *written = find_written(replay);
	uint32_t last = replay->plan.order[replay->plan.count - 1];
	size_t unused;
	int rc = written ? TS_OK : TS_ENOMEM;

	for (uint32_t i = 0; !rc && i < stream->object_count; i++) {
		struct ts_replay_range all_bytes = { i, 0, stream->objects[i].bytes };

		if (written[i] && ts_replay_is_alive(stream, i, last) &&
		    ts_replay_can_see(checker, i) && !is_unknown(checker, &stream->objects[i]))
			rc = ts_replay_captures_add(checker, replay->plan.count, &all_bytes,
						    "final", &unused);
	}
	for (uint32_t i = 0; !rc && replay->plan.is_complete && i < stream->final_count; i++) {
		const struct ts_replay_check *check = &stream->final_checks[i];

		if (is_unknown(checker, check) ||
		    (replay->plan.skipped && !ts_replay_can_see(checker, check->range.memory)))
			checker->unknown++;
		else if (check->range.bytes && ts_replay_can_see(checker, check->range.memory) &&
			 ts_replay_is_alive(stream, check->range.memory, last))
			rc = expect(checker, replay->plan.count, &check->range, check);
	}
	return rc;
}

/* ---- pages ---- */

bool ts_replay_changes_memory(const struct ts_replay_command_info *command)
{
	/* A copy to memory of the host that no kernel can read changes nothing. */
	if (command->kind == TS_COMMAND_COPY)
		return command->object != TS_REPLAY_NONE;
	return command->kind == TS_COMMAND_LAUNCH || command->kind == TS_COMMAND_FILL ||
	       command->kind == TS_COMMAND_HOST_WRITE;
}

static bool has_pages(const struct ts_replay_check *checks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (checks[i].has_pages)
			return true;
	return false;
}

static int add_pages(struct ts_replay_checker *checker, uint32_t position, const char *why,
		     const struct ts_replay_check *checks, uint32_t check_count)
{
	size_t index = checker->count, grown = checker->capacity;

	if (ts_grow_array((void **)&checker->captures, &checker->capacity, index + 1,
			  sizeof(*checker->captures)) ||
	    ts_grow_array((void **)&checker->expected, &grown, index + 1,
			  sizeof(*checker->expected)))
		return TS_ENOMEM;
	checker->captures[index] = (struct ts_replay_capture){
		.position = position,
		.range.memory = TS_REPLAY_NONE,
		.why = why,
		.is_pages = true,
	};
	checker->expected[index] = (struct ts_replay_expected){ 0 };
	checker->expected[index].is_recorded = has_pages(checks, check_count);
	checker->expectations += checker->expected[index].is_recorded;
	checker->count++;
	return TS_OK;
}

/* Do all commands run that came before the last one? Else memory is not as it was recorded. */
static bool is_prefix(const struct ts_replay *replay)
{
	uint32_t last = replay->plan.count ? replay->plan.order[replay->plan.count - 1] : 0;

	for (uint32_t i = 0; i <= last && i < replay->stream->command_count; i++) {
		uint8_t kept = replay->plan.kept[i];

		if ((!kept || kept == TS_REPLAY_ORDER) &&
		    ts_replay_changes_memory(&replay->stream->commands[i]))
			return false;
	}
	return true;
}

static int add_command_pages(struct ts_replay_checker *checker, uint32_t position, bool is_prefix)
{
	const struct ts_replay *replay = checker->replay;
	uint32_t index = replay->plan.order[position];
	const struct ts_replay_command_info *command = &replay->stream->commands[index];

	bool is_checked = is_prefix && has_pages(command->checks, command->check_count);

	if (replay->options.check != TS_REPLAY_CHECK_EACH ||
	    replay->plan.kept[index] == TS_REPLAY_ORDER)
		return TS_OK;
	/* The check of a graph is that of its last node, which may be empty. */
	if (!is_checked && !ts_replay_changes_memory(command))
		return TS_OK;
	return add_pages(checker, position, "each", command->checks,
			 is_prefix ? command->check_count : 0);
}

static int add_final_pages(struct ts_replay_checker *checker)
{
	const struct ts_replay *replay = checker->replay;
	bool is_complete = replay->plan.is_complete && !replay->plan.skipped;

	checker->final_pages = (uint32_t)checker->count;
	return add_pages(checker, replay->plan.count, "final", replay->stream->final_checks,
			 is_complete ? replay->stream->final_count : 0);
}

/* ---- all captures ---- */

static int add_position(struct ts_replay_checker *checker, uint32_t position, bool is_prefix,
			struct ts_error *err)
{
	const struct ts_replay *replay = checker->replay;
	uint32_t index = replay->plan.order[position];

	if (checker->has_pages ? add_command_pages(checker, position, is_prefix)
			       : add_command(checker, position, index))
		return ts_replay_no_memory(err);
	/* Behind the last node of a graph. */
	if (replay->options.dump_at &&
	    replay->options.dump_at == replay->stream->commands[index].sequence &&
	    (position + 1 == replay->plan.count ||
	     replay->options.dump_at !=
		     replay->stream->commands[replay->plan.order[position + 1]].sequence))
		return ts_replay_captures_add_dump(checker, position, err);
	return TS_OK;
}

int ts_replay_captures_choose(struct ts_replay_checker *checker, struct ts_error *err)
{
	const struct ts_replay *replay = checker->replay;
	bool has_all = checker->has_pages && is_prefix(replay);
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < replay->plan.count; i++)
		rc = add_position(checker, i, has_all, err);
	if (!rc && replay->options.dump_at && checker->dump_capture == TS_REPLAY_NONE)
		rc = ts_error_set(err, TS_EINVAL,
				  "command %" PRIu64
				  " is not among the replayed commands (--list shows them)",
				  replay->options.dump_at);
	if (rc || replay->options.check == TS_REPLAY_CHECK_NONE)
		return rc;
	count_skipped(checker);
	if (checker->has_pages)
		return add_final_pages(checker) ? ts_replay_no_memory(err) : TS_OK;
	return replay->plan.count && add_final(checker) ? ts_replay_no_memory(err) : TS_OK;
}
