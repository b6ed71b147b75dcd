/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any rows as a command stream: loaded, planned, as a whole and in parts, up to where a target
 * would run it. A line is a row, numbers and then details:
 *
 *	O kind number parent bytes blob details an object; blob: bytes of its content; its address
 *	is number << 40
 *	C kind sequence queue object offset other other_offset bytes blob details a command;
 *	sequence 0: the next one
 *
 * Whatever is loaded must be sound: every range inside of its memory, every index in its array.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tracesmith/writer.h>

#include "replay/describe/describe.h"
#include "replay/plan/plan.h"
#include "replay/replay.h"
#include "replay/stream/stream_internal.h"
#include "replay/summary/replay_facts.h"
#include "trace/object_details.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_LINES 400
#define MOST_BLOB 4096

static struct ts_writer *writer;
static int64_t sequence, now;

static void demand(bool condition)
{
	if (!condition)
		abort();
}

/* ---- rows ---- */

/* Takes `count` numbers off the line; the rest is text. */
static const char *take(const char *line, int64_t *numbers, int count)
{
	for (int i = 0; i < count; i++) {
		char *end;

		numbers[i] = strtoll(line, &end, 10);
		line = end;
	}
	while (*line == ' ')
		line++;
	return line;
}

static int64_t add_blob(int64_t bytes)
{
	static const uint8_t content[MOST_BLOB];

	/* A negative number is an unmapped id. */
	if (bytes < 0)
		return bytes < -MOST_BLOB ? INT64_MAX : -bytes;
	if (bytes == 0 || bytes > MOST_BLOB)
		return 0;
	return ts_writer_blob(writer, content, (size_t)bytes);
}

static void add_object(const char *line)
{
	struct ts_object_row row = ts_object_none;
	int64_t numbers[5];
	const char *details = take(line, numbers, 5);
	char json[600];

	if (*details == '{')
		snprintf(json, sizeof(json), "%s", details);
	else
		snprintf(json, sizeof(json), "{\"number\":%lld%s}", (long long)numbers[1], details);
	row.kind = numbers[0];
	row.id = numbers[1];
	row.parent = numbers[2];
	row.bytes = numbers[3];
	row.blob = add_blob(numbers[4]);
	row.process = 1;
	row.address = (int64_t)((uint64_t)numbers[1] << 40);
	row.name = ts_writer_string(writer, "k", 1);
	row.created = now++;
	row.details = ts_writer_string(writer, json, strlen(json));
	ts_writer_add(writer, TS_TABLE_OBJECT, &row, NULL);
}

static void add_command(const char *line)
{
	struct ts_command_row row = ts_command_none;
	int64_t numbers[9];
	const char *details = take(line, numbers, 9);

	row.start = now++;
	row.kind = numbers[0];
	row.sequence = numbers[1] ? numbers[1] : ++sequence;
	row.queue = numbers[2];
	row.object = numbers[3];
	row.offset = numbers[4];
	row.other = numbers[5];
	row.other_offset = numbers[6];
	row.bytes = numbers[7];
	row.blob = add_blob(numbers[8]);
	row.process = 1;
	row.details = ts_writer_string(writer, details, strlen(details));
	ts_writer_add(writer, TS_TABLE_COMMAND, &row, NULL);
}

static void add_lines(char *text)
{
	char *save, *line = strtok_r(text, "\n", &save);

	for (int i = 0; line && i < MOST_LINES; i++, line = strtok_r(NULL, "\n", &save)) {
		if (line[0] == 'O')
			add_object(line + 1);
		else if (line[0] == 'C')
			add_command(line + 1);
	}
}

/* ---- invariants ---- */

static void check_ranges(const struct ts_replay_stream *stream,
			 const struct ts_replay_range *ranges, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		demand(ranges[i].memory < stream->object_count);
		demand(stream->objects[ranges[i].memory].kind == TS_OBJECT_MEMORY);
		demand(ranges[i].offset <= stream->objects[ranges[i].memory].bytes);
		demand(ranges[i].bytes <=
		       stream->objects[ranges[i].memory].bytes - ranges[i].offset);
	}
}

static void check_command(const struct ts_replay_stream *stream, uint32_t index)
{
	const struct ts_replay_command_info *command = &stream->commands[index];

	check_ranges(stream, command->reads, command->read_count);
	check_ranges(stream, command->writes, command->write_count);
	demand(command->ready >= index && command->ready < stream->command_count);
	for (uint32_t i = 0; i < command->check_count; i++)
		demand(!command->checks[i].blob.id || command->checks[i].has_pages ||
		       command->checks[i].blob.bytes == (command->checks[i].range.bytes
								 ? command->checks[i].range.bytes
								 : command->bytes));
	for (uint32_t i = 0; i < command->wait_count; i++)
		demand(command->waits[i] < index);
	for (uint32_t i = 0; i < command->user_wait_count; i++)
		demand(command->user_waits[i] < stream->object_count);
	demand(command->implicit_waits <= command->wait_count);
	if (command->graph != TS_REPLAY_NONE) {
		demand(stream->objects[command->graph].kind == TS_OBJECT_GRAPH);
		demand(command->graph_first + command->node == index &&
		       command->graph_first + TS_MAX(command->graph_nodes, 1u) <=
			       stream->command_count);
		for (uint32_t i = 0; i < command->node_after_count; i++)
			demand(command->node_after[i] < command->node);
	}
	demand(command->queue == TS_REPLAY_NONE ||
	       (command->queue < stream->object_count &&
		stream->objects[command->queue].kind == TS_OBJECT_STREAM));
	if (command->unreplayable)
		return;
	for (uint32_t i = 0; i < command->arg_count; i++)
		demand(command->args[i].kind != TS_REPLAY_ARG_BYTES ||
		       command->args[i].size <= command->blob.bytes);
}

/* What is mapped is sorted and disjoint, and so are the pieces. */
static void check_memory(const struct ts_replay_object_info *memory)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < memory->mapping_count && !memory->unreplayable; i++) {
		const struct ts_replay_mapping *one = &memory->mappings[i];

		demand(one->offset >= end || memory->flags & TS_REPLAY_HOST);
		demand(one->offset <= memory->bytes && one->bytes <= memory->bytes - one->offset);
		end = one->offset + one->bytes;
	}
	end = 0;
	for (uint32_t i = 0; i < memory->piece_count; i++) {
		const struct ts_replay_piece *one = &memory->pieces[i];

		demand(one->offset >= end || memory->unreplayable);
		demand(one->offset <= memory->bytes && one->bytes <= memory->bytes - one->offset);
		demand(one->blob.bytes == one->bytes);
		end = one->offset + one->bytes;
	}
}

static void check_plan(const struct ts_replay *replay)
{
	const struct ts_replay_plan *plan = &replay->plan;

	for (uint32_t i = 0; i < plan->count; i++) {
		demand(plan->order[i] < replay->stream->command_count &&
		       plan->kept[plan->order[i]]);
		demand(i == 0 || plan->order[i] > plan->order[i - 1]);
		/* What cannot be replayed keeps the order at most. */
		demand(!replay->stream->commands[plan->order[i]].unreplayable ||
		       plan->kept[plan->order[i]] == TS_REPLAY_ORDER ||
		       ts_replay_is_lifetime(replay->stream->commands[plan->order[i]].kind));
	}
	for (uint32_t i = 0; i < replay->capture_count; i++)
		demand(replay->captures[i].position <= plan->count &&
		       (i == 0 ||
			replay->captures[i].position >= replay->captures[i - 1].position));
}

/* ---- one input ---- */

/* Runs nothing. Supports one object and one command less each time, until nothing is left. */
static int refuse(struct ts_replay *replay, struct ts_replay_session **ret_session,
		  struct ts_error *err)
{
	const struct ts_replay_stream *stream = replay->stream;
	uint32_t object = 0, command = 0;

	(void)ret_session;
	check_plan(replay);
	ts_error_set(err, TS_ECAP, "not here");
	while (object < stream->object_count && stream->objects[object].unreplayable)
		object++;
	while (command < stream->command_count && stream->commands[command].unreplayable)
		command++;
	demand(object == stream->object_count || ts_replay_reject_object(replay, object, err));
	if (command < stream->command_count && !stream->commands[command].unreplayable)
		ts_replay_reject_command(replay, command, err);
	return TS_ECAP;
}

static const struct ts_replay_target target = {
	.name = "none", .needs = TS_REPLAY_NEEDS_STREAM, .can = TS_REPLAY_CAN_ALL, .open = refuse
};

static void try_options(struct ts_reader *reader, struct ts_replay_options options)
{
	struct ts_replay *replay = NULL;
	struct ts_error err = { 0 };
	int rc;

	options.target = &target;
	options.repeat = 1;
	options.check = TS_REPLAY_CHECK_EACH;
	rc = ts_replay_open(&replay, reader, &options, &err);
	if (rc) {
		demand(err.code == rc && err.message[0]);
		return;
	}
	for (uint32_t i = 0; i < replay->stream->object_count; i++)
		check_memory(&replay->stream->objects[i]);
	for (uint32_t i = 0; i < replay->stream->command_count; i++)
		check_command(replay->stream, i);
	check_plan(replay);
	if (options.skip_unsupported) {
		struct ts_replay_report report;

		demand(ts_replay_run(replay, &report, &err) == err.code && err.code);
	}
	ts_replay_close(replay);
}

/* Descriptions are one line of text, and JSON, whatever the trace holds. */
static void try_list(struct ts_reader *reader)
{
	const struct ts_replay_options options = { 0 };
	struct ts_text text = { 0 }, out = { 0 };
	struct ts_replay *replay;
	struct ts_error err;

	if (ts_replay_open_to_show(&replay, reader, &options, &err))
		return;
	for (uint32_t i = 0; i < replay->stream->object_count; i++) {
		ts_replay_describe_object(replay->stream, i, &out);
		ts_replay_describe_object_json(replay->stream, i, &out);
	}
	for (uint32_t i = 0; i < replay->stream->command_count; i++) {
		ts_text_clear(&text);
		ts_replay_describe_command(replay->stream, i, &text);
		demand(strchr(ts_text_cstr(&text), '('));
		ts_text_clear(&text);
		ts_text_clear(&out);
		ts_text_append_char(&text, '{');
		ts_replay_describe_command_json(replay->stream, i, &text);
		text.length--;
		ts_text_append_char(&text, '}');
		demand(ts_object_details_check(text.data, text.length, &out));
	}
	ts_text_release(&text);
	ts_text_release(&out);
	ts_replay_close(replay);
}

static void ignore_fact(void *context, enum ts_replay_fact kind, const char *text)
{
	demand(context && kind <= TS_REPLAY_FACT_DETAIL && text[0]);
}

static void try_summary(struct ts_reader *reader)
{
	struct ts_text text = { 0 }, out = { 0 };
	struct ts_replay_facts *facts;
	struct ts_error err;

	if (ts_replay_facts_load(&facts, reader, &err))
		abort();
	ts_replay_facts_say(facts, true, ignore_fact, &text);
	ts_replay_facts_json(facts, &text);
	demand(ts_object_details_check(text.data, text.length, &out));
	ts_text_release(&text);
	ts_text_release(&out);
	ts_replay_facts_free(facts);
}

static void try_all(const char *path)
{
	struct ts_reader *reader;
	struct ts_error err;

	if (ts_reader_open(&reader, path, &err))
		abort();
	try_options(reader, (struct ts_replay_options){ 0 });
	try_options(reader, (struct ts_replay_options){ .kernel = "*" });
	try_options(reader, (struct ts_replay_options){ .from = "4", .to = "6" });
	try_options(reader, (struct ts_replay_options){ .streams = "3", .from = "3ns" });
	try_options(reader,
		    (struct ts_replay_options){ .dump_at = 3, .dump_memory = 10, .window = 1 });
	try_options(reader, (struct ts_replay_options){ .skip_unsupported = true });
	try_options(reader, (struct ts_replay_options){ .kernel = "*", .skip_unsupported = true });
	try_list(reader);
	try_summary(reader);
	ts_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1, .level = 1 };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[40], *text = malloc(size + 1);
	struct ts_error err;

	if (fd < 0 || !text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	sequence = 0;
	now = 1;
	if (ts_writer_open(&writer, path, &options, &err))
		abort();
	add_lines(text);
	if (ts_writer_finish(writer, &err))
		abort();
	ts_writer_close(writer);
	try_all(path);
	close(fd);
	free(text);
	return 0;
}
