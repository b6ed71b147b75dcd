/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of a replay and the text of a difference (docs/replay.md, section 6.4). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "replay/check/check.h"
#include "replay/stream/stream_internal.h"

/* ---- location ---- */

/* The memory of a capture, and the offset of its first byte. */
static uint32_t memory_of(const struct ts_replay_checker *checker, uint32_t capture,
			  uint64_t *ret_offset)
{
	const struct ts_replay *replay = checker->replay;
	const struct ts_replay_capture *what = &checker->captures[capture];
	const struct ts_replay_command_info *command;

	*ret_offset = what->range.offset;
	if (what->range.memory != TS_REPLAY_NONE)
		return what->range.memory;
	command = &replay->stream->commands[replay->plan.order[what->position]];
	/* Offsets in a rectangle count its packed bytes, as copied to the host. */
	*ret_offset = command->is_rect ? 0 : command->other_offset;
	return command->other;
}

static const char *position_text(const struct ts_replay_checker *checker, uint32_t capture,
				 char *buffer, size_t bytes)
{
	const struct ts_replay *replay = checker->replay;
	uint32_t position = checker->captures[capture].position;

	if (position < replay->plan.count)
		return ts_replay_command_text(replay->stream, replay->plan.order[position], buffer,
					      bytes);
	snprintf(buffer, bytes, "the end");
	return buffer;
}

static void set_command(const struct ts_replay *replay, uint32_t position,
			struct ts_replay_report *report)
{
	const struct ts_replay_stream *stream = replay->stream;
	const struct ts_replay_command_info *command =
		&stream->commands[replay->plan.order[position]];

	report->command = command->sequence;
	if (command->kind == TS_COMMAND_LAUNCH && command->object != TS_REPLAY_NONE)
		snprintf(report->kernel, sizeof(report->kernel), "%s",
			 stream->objects[command->object].demangled);
}

static void set_position(const struct ts_replay_checker *checker, uint32_t capture,
			 struct ts_replay_report *report)
{
	const struct ts_replay *replay = checker->replay;
	const struct ts_replay_stream *stream = replay->stream;
	uint32_t position = checker->captures[capture].position, memory;
	uint64_t offset;

	report->differs = true;
	memory = memory_of(checker, capture, &offset);
	report->buffer_number = memory == TS_REPLAY_NONE ? 0 : stream->objects[memory].number;
	snprintf(report->buffer, sizeof(report->buffer), "memory %" PRIu64, report->buffer_number);
	position_text(checker, capture, report->command_text, sizeof(report->command_text));
	if (position >= replay->plan.count)
		return;
	set_command(replay, position, report);
}

/* ---- difference ---- */

/* What the two sides of a difference are. */
struct sides {
	const char *expected, *actual;
};
static const struct sides runs = { "in one run", "in another" };
static const struct sides kernels = { "with the recorded kernels", "with the replacements" };
static const struct sides recording = { "recorded", "replayed" };

static void set_values(const struct ts_replay_checker *checker, uint64_t value, const void *a,
		       const void *b, const struct sides *sides, struct ts_replay_report *report)
{
	const struct ts_value_type *type = checker->type;
	char x[TS_VALUE_BYTES], y[TS_VALUE_BYTES];
	uint64_t at = value * type->bytes;

	snprintf(report->values, sizeof(report->values), "%s %" PRIu64 ": %s %s, %s %s", type->name,
		 value, ts_value_format(type, (const char *)a + at, x), sides->expected,
		 ts_value_format(type, (const char *)b + at, y), sides->actual);
}

static void set_bytes(const struct ts_replay_checker *checker, uint32_t capture, const void *a,
		      const void *b, const struct sides *sides, struct ts_replay_report *report)
{
	uint64_t bytes = checker->captures[capture].range.bytes, offset;
	struct ts_value_difference difference =
		ts_value_compare(checker->type, &checker->replay->options.tolerance, a, b, bytes);

	memory_of(checker, capture, &offset);
	report->has_bytes = true;
	report->first_byte = offset + difference.first_byte;
	report->bytes_differing = difference.bytes;
	if (checker->type && (difference.first_value + 1) * checker->type->bytes <= bytes)
		set_values(checker, difference.first_value, a, b, sides, report);
}

/* ---- pages ---- */

/* "command 17, launch of 'saxpy' (stream 7)" */
static const char *race_text(const struct ts_replay_checker *checker, uint32_t position,
			     char *buffer, size_t bytes)
{
	const struct ts_replay_stream *stream = checker->replay->stream;
	uint32_t index = checker->replay->plan.order[position];
	uint32_t queue = stream->commands[index].queue;
	size_t length;

	ts_replay_command_text(stream, index, buffer, bytes);
	length = strlen(buffer);
	if (queue != TS_REPLAY_NONE)
		snprintf(buffer + length, bytes - length, " (stream %" PRIu64 ")",
			 stream->objects[queue].index);
	return buffer;
}

/* Which command, and where its first differing page is. */
static void set_pages(const struct ts_replay_checker *checker, uint32_t position,
		      const struct ts_replay_page_difference *difference,
		      struct ts_replay_report *report)
{
	const struct ts_replay *replay = checker->replay;
	const struct ts_replay_stream *stream = replay->stream;
	const struct ts_replay_object_info *memory = &stream->objects[difference->first.memory];
	bool is_variable = memory->flags & TS_REPLAY_GLOBAL;

	report->differs = report->has_pages = true;
	report->buffer_number = memory->number;
	report->pages_differing = difference->pages;
	report->address = memory->address + difference->first.offset;
	if (is_variable)
		snprintf(report->buffer, sizeof(report->buffer), "variable '%.50s'", memory->shown);
	else
		snprintf(report->buffer, sizeof(report->buffer), "memory %" PRIu64, memory->number);
	snprintf(report->command_text, sizeof(report->command_text), "the end");
	if (position >= replay->plan.count)
		return;
	ts_replay_command_text(stream, replay->plan.order[position], report->command_text,
			       sizeof(report->command_text));
	set_command(replay, position, report);
}

/* The bytes that differ in the first page, if both contents are known. */
static void set_page_bytes(const struct ts_replay_checker *checker,
			   const struct ts_replay_page_difference *pages, const struct sides *sides,
			   struct ts_replay_report *report)
{
	const struct ts_replay_cause *cause = &checker->cause;
	const struct ts_value_type *type = checker->type;
	uint64_t bytes = checker->replay->stream->objects[pages->first.memory].bytes;
	struct ts_value_difference difference;
	char x[TS_VALUE_BYTES], y[TS_VALUE_BYTES];
	uint64_t at;

	if (!cause->one || !cause->another)
		return;
	bytes = TS_MIN(TS_REPLAY_PAGE, bytes - pages->first.offset);
	difference = ts_value_compare(type, NULL, cause->one, cause->another, bytes);
	if (!difference.bytes)
		return;
	report->has_bytes = true;
	report->first_byte = pages->first.offset + difference.first_byte;
	report->bytes_differing = difference.bytes;
	report->address += difference.first_byte;
	if (!type || (difference.first_value + 1) * type->bytes > bytes)
		return;
	at = difference.first_value * type->bytes;
	snprintf(report->values, sizeof(report->values), "%s at 0x%" PRIx64 ": %s %s, %s %s",
		 type->name, report->address - difference.first_byte + at,
		 ts_value_format(type, (const char *)cause->one + at, x), sides->expected,
		 ts_value_format(type, (const char *)cause->another + at, y), sides->actual);
}

static void pages_vary(const struct ts_replay_checker *checker, struct ts_replay_report *report)
{
	const struct ts_replay_cause *cause = &checker->cause;
	static const struct sides orders = { "in one order", "in the other" };
	bool is_race = cause->other != TS_REPLAY_NONE;

	report->verdict = TS_REPLAY_NONDETERMINISTIC;
	snprintf(report->verdict_text, sizeof(report->verdict_text), "nondeterministic");
	set_pages(checker, cause->position, &cause->difference, report);
	set_page_bytes(checker, &cause->difference, is_race ? &orders : &runs, report);
	if (is_race) {
		race_text(checker, cause->position, report->command_text,
			  sizeof(report->command_text));
		race_text(checker, cause->other, report->other_command_text,
			  sizeof(report->other_command_text));
		report->other_command =
			checker->replay->stream->commands[checker->replay->plan.order[cause->other]]
				.sequence;
	}
	report->varying_runs = checker->varying_runs + (checker->reordered_differs ? 1 : 0);
	report->extra_runs = cause->runs;
	if (cause->note[0])
		snprintf(report->note, sizeof(report->note), "%s", cause->note);
}

static void pages_differ(const struct ts_replay_checker *checker, struct ts_replay_report *report)
{
	set_pages(checker, checker->captures[checker->differs].position, &checker->page_difference,
		  report);
	set_page_bytes(checker, &checker->page_difference, &recording, report);
	report->extra_runs = checker->cause.runs;
}

/* ---- verdicts ---- */

static void nondeterministic(const struct ts_replay_checker *checker,
			     struct ts_replay_report *report)
{
	uint32_t capture = checker->varies;
	const void *other = checker->content[capture] ? checker->content[capture]
						      : checker->fetched;

	report->verdict = TS_REPLAY_NONDETERMINISTIC;
	snprintf(report->verdict_text, sizeof(report->verdict_text), "nondeterministic");
	set_position(checker, capture, report);
	if (other)
		set_bytes(checker, capture, other, checker->varying, &runs, report);
}

/* The last check before the first difference. */
static uint32_t last_equal(const struct ts_replay_checker *checker)
{
	for (uint32_t i = checker->differs; i-- > 0;)
		if (checker->expected[i].is_recorded)
			return i;
	return TS_REPLAY_NONE;
}

static void differs(const struct ts_replay_checker *checker, struct ts_replay_report *report)
{
	uint32_t capture = checker->differs, before = last_equal(checker);
	char from[100], to[100];

	report->verdict = TS_REPLAY_DIFFERS;
	snprintf(report->verdict_text, sizeof(report->verdict_text), "differs from recording");
	if (checker->has_pages)
		pages_differ(checker, report);
	else
		set_position(checker, capture, report);
	position_text(checker, capture, to, sizeof(to));
	if (before == TS_REPLAY_NONE)
		snprintf(report->between, sizeof(report->between),
			 "no matching check before the first difference, at %s", to);
	else
		snprintf(report->between, sizeof(report->between), "equal at %s; different at %s",
			 position_text(checker, before, from, sizeof(from)), to);
	if (checker->has_pages)
		return;
	if (checker->recorded)
		set_bytes(checker, capture, checker->recorded, checker->differing, &recording,
			  report);
	else if (checker->expected[capture].content)
		set_bytes(checker, capture, checker->expected[capture].content, checker->differing,
			  &kernels, report);
	else if (ts_value_tolerance_is_set(&checker->replay->options.tolerance) && !*report->note)
		snprintf(
			report->note, sizeof(report->note),
			"this check has a hash only, so no tolerance applies: record with '--keep-contents'");
}

/* "equals recording in 812 of 840 checks", and why not in all of them. */
static void append_equality(const struct ts_replay_checker *checker,
			    const struct ts_replay_report *report, struct ts_text *text)
{
	const char *tolerance = checker->replay->options.tolerance.text;
	uint32_t unknown = checker->unknown, compared = checker->expectations;
	char number[TS_FORMAT_BYTES], other[TS_FORMAT_BYTES];

	if (!compared && !unknown) {
		ts_text_append_str(text, "nothing recorded to compare with");
	} else if (!compared) {
		ts_text_printf(text, "nothing to compare with: %s depend%s",
			       TS_COUNTED(unknown, "check"), unknown == 1 ? "s" : "");
	} else {
		ts_text_append_str(text, "equals recording");
		if (checker->near && tolerance)
			ts_text_printf(text, " within %s", tolerance);
		if (unknown)
			ts_text_printf(text, " in %s of %s; %s depend%s",
				       ts_format_count(number, sizeof(number), compared),
				       TS_COUNTED((uint64_t)compared + unknown, "check"),
				       ts_format_count(other, sizeof(other), unknown),
				       unknown == 1 ? "s" : "");
	}
	if (unknown)
		ts_text_append_str(text, " on ");
	else if (report->skipped)
		ts_text_append_str(text, "; ");
	if (report->skipped)
		ts_text_append_str(text, TS_COUNTED(report->skipped, "skipped command"));
}

static void agrees(const struct ts_replay_checker *checker, struct ts_replay_report *report)
{
	TS_SCOPED(ts_text) text = { 0 };

	report->verdict = checker->expectations ? TS_REPLAY_EQUAL : TS_REPLAY_AGREES;
	if (!checker->expectations && report->runs == 1)
		ts_text_append_str(&text, "ran once, ");
	else
		ts_text_printf(&text, "no difference in %s, ", TS_COUNTED(report->runs, "run"));
	append_equality(checker, report, &text);
	snprintf(report->verdict_text, sizeof(report->verdict_text), "%s", ts_text_cstr(&text));
}

static void count_checks(const struct ts_replay_checker *checker, struct ts_replay_report *report)
{
	report->checks = checker->expectations;
	report->compared_ranges = (uint32_t)checker->count;
	/* What is only shown is not compared. */
	if (checker->has_pages && checker->dump_capture != TS_REPLAY_NONE)
		report->compared_ranges--;
	report->near_checks = checker->near;
	report->different_checks = checker->different;
	report->unknown_checks = checker->unknown;
	for (size_t i = 0; i < checker->count; i++)
		report->kept_checks += checker->expected[i].is_recorded &&
				       checker->expected[i].blob.id;
}

/* A dump of unknown bytes is what the other commands left there. */
static void note_dump(const struct ts_replay_checker *checker, struct ts_replay_report *report)
{
	const struct ts_replay *replay = checker->replay;
	uint32_t memory;

	if (checker->dump_capture == TS_REPLAY_NONE || checker->has_pages)
		return;
	memory = checker->captures[checker->dump_capture].range.memory;
	if (ts_replay_plan_is_unknown(&replay->plan, &replay->stream->objects[memory]))
		snprintf(report->note, sizeof(report->note),
			 "memory %" PRIu64
			 " depends on skipped commands: some of its content is unknown",
			 replay->stream->objects[memory].number);
}

void ts_replay_verdict(const struct ts_replay_checker *checker, struct ts_replay_report *report)
{
	count_checks(checker, report);
	note_dump(checker, report);
	if (checker->replay->options.check == TS_REPLAY_CHECK_NONE) {
		report->verdict = TS_REPLAY_RAN;
		snprintf(report->verdict_text, sizeof(report->verdict_text),
			 "ran, nothing was compared");
	} else if (checker->has_pages &&
		   (checker->varies != TS_REPLAY_NONE || checker->reordered_differs)) {
		pages_vary(checker, report);
	} else if (checker->varies != TS_REPLAY_NONE) {
		nondeterministic(checker, report);
	} else if (checker->differs != TS_REPLAY_NONE) {
		differs(checker, report);
	} else {
		agrees(checker, report);
	}
}
