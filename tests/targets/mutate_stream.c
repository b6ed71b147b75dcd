/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate_stream IN OUT WHICH CHANGE: copies the command stream of a recording with one change. The
 * result is a valid trace with right hashes of all blobs: only its meaning differs. WHICH is a
 * command or object, counted from 1 among its kind: launch:scale, copy:2, fill:1, module:1,
 * memory:1. CHANGE:
 *	none            nothing
 *	flip:N          a bit of byte N of its blob
 *	text:OLD/NEW    in its blob (source)
 *	details:OLD/NEW in its details
 *	to:N, from:N    destination or source is N bytes further on
 *	shorten:N       N bytes fewer
 *	lost            a marker takes its place, and its checks are gone
 *	swap            takes the place of the next launch, and that its own
 * Prints its sequence number (that of an object: 0). Exit code 1: nothing was changed.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

struct mutation {
	char which[64];   /* launch */
	const char *name; /* scale, or a number */
	const char *change, *argument;
	int met;                     /* rows of that kind so far */
	int64_t sequence, exchanged; /* of the changed command; swap: of the other one */
	int64_t object;              /* id of the changed object */
	bool is_done;
};

static struct ts_reader *reader;
static struct ts_writer *writer;
static struct mutation mutation;

static void fail(const char *what, const struct ts_error *err)
{
	fprintf(stderr, "mutate_stream: %s: %s\n", what, err ? err->message : mutation.which);
	exit(1);
}

static bool is_change(const char *name)
{
	return !strcmp(mutation.change, name);
}

/* ---- texts and blobs ---- */

/* The first OLD becomes NEW; the caller frees the result. */
static char *replace(const char *text, size_t length, size_t *ret_length)
{
	const char *slash = strchr(mutation.argument, '/'), *at = NULL;
	size_t old = slash ? (size_t)(slash - mutation.argument) : 0;
	size_t added = slash ? strlen(slash + 1) : 0;
	char *result = calloc(1, length + added + 1);

	if (old)
		at = memmem(text, length, mutation.argument, old);
	if (!at || !result)
		fail("no such text", NULL);
	memcpy(result, text, (size_t)(at - text));
	memcpy(result + (at - text), slash + 1, added);
	memcpy(result + (at - text) + added, at + old, length - (size_t)(at - text) - old);
	*ret_length = length - old + added;
	mutation.is_done = true;
	return result;
}

static int64_t copy_text(int64_t id, bool is_details)
{
	struct ts_string text = ts_reader_string(reader, id);
	size_t length = text.length;
	char *changed;
	int64_t copy;

	if (!id)
		return 0;
	if (!is_details)
		return ts_writer_string(writer, text.data, length);
	changed = replace(text.data, length, &length);
	copy = ts_writer_string(writer, changed, length);
	free(changed);
	return copy;
}

static int64_t copy_blob(int64_t id, bool is_changed)
{
	struct ts_error err;
	uint64_t bytes, at = strtoull(mutation.argument, NULL, 10);
	char *data, *changed;
	size_t length;
	int64_t copy;

	if (!id)
		return 0;
	if (ts_reader_blob_size(reader, id, &bytes, &err))
		fail("a blob", &err);
	data = malloc(bytes + 1);
	if (!data || ts_reader_blob_read(reader, id, 0, data, bytes, &err))
		fail("a blob", &err);
	length = bytes;
	if (is_changed && is_change("flip") && at < bytes) {
		data[at] ^= 1;
		mutation.is_done = true;
	} else if (is_changed && is_change("text")) {
		changed = replace(data, length, &length);
		free(data);
		data = changed;
	} else if (is_changed && is_change("shorten")) {
		length -= at;
	}
	copy = ts_writer_blob(writer, data, length);
	free(data);
	return copy;
}

/* ---- rows ---- */

/* Is this the row to change? */
static bool is_it(const char *kind, const char *name)
{
	if (mutation.is_done || !kind || strcmp(kind, mutation.which) != 0)
		return false;
	return !strcmp(mutation.name, name) || strtol(mutation.name, NULL, 10) == ++mutation.met;
}

static void copy_object(struct ts_object_row *row)
{
	struct ts_string name = ts_reader_string(reader, row->name);
	struct ts_string details = ts_reader_string(reader, row->details);
	/* It has another row when it is destroyed. */
	bool is_changed = row->id == mutation.object ||
			  is_it(ts_enum_name("object_kind", (int)row->kind), name.data);

	if (is_changed)
		mutation.object = row->id;
	if (strstr(details.data, "\"blob\""))
		fail("binaries of programs are not copied", NULL);
	row->name = copy_text(row->name, false);
	row->details = copy_text(row->details, is_changed && is_change("details"));
	row->blob = copy_blob(row->blob, is_changed);
	ts_writer_add(writer, TS_TABLE_OBJECT, row, NULL);
}

static void change_columns(struct ts_command_row *row)
{
	int64_t by = strtoll(mutation.argument, NULL, 10);

	mutation.sequence = row->sequence;
	if (is_change("to"))
		row->offset += by;
	else if (is_change("from"))
		row->other_offset += by;
	else if (is_change("shorten"))
		row->bytes -= by;
	else if (is_change("lost"))
		row->kind = TS_COMMAND_RECORD;
	else if (!is_change("none") && !is_change("swap"))
		return;
	mutation.is_done = true;
}

/* Sequence numbers of a swap, which find_swap() has found. */
static int64_t sequence_of(const struct ts_command_row *row)
{
	bool is_check = row->kind == TS_COMMAND_CHECK;

	if (!mutation.exchanged || is_check)
		return row->sequence;
	return row->sequence == mutation.sequence    ? mutation.exchanged
	       : row->sequence == mutation.exchanged ? mutation.sequence
						     : row->sequence;
}

static const char *name_of(const struct ts_command_row *row)
{
	const struct ts_object_row *object = ts_reader_entity(reader, TS_TABLE_OBJECT, row->object);

	return object ? ts_reader_string(reader, object->name).data : "";
}

static void copy_command(struct ts_command_row *row)
{
	bool is_changed = !is_change("swap") &&
			  is_it(ts_enum_name("command_kind", (int)row->kind), name_of(row));

	/* Checks follow their command. */
	if (is_change("lost") && mutation.is_done && row->kind == TS_COMMAND_CHECK &&
	    row->sequence == mutation.sequence)
		return;
	if (is_changed)
		change_columns(row);
	row->sequence = sequence_of(row);
	row->thread = 0;
	row->details = copy_text(row->details, is_changed && is_change("details"));
	row->blob = copy_blob(row->blob, is_changed);
	if (is_changed && is_change("lost"))
		row->object = row->other = row->blob = 0;
	ts_writer_add(writer, TS_TABLE_COMMAND, row, NULL);
}

static void find_swap(struct ts_command_row *row)
{
	if (is_it(ts_enum_name("command_kind", (int)row->kind), name_of(row)))
		change_columns(row);
	else if (mutation.is_done && !mutation.exchanged && row->kind == TS_COMMAND_LAUNCH)
		mutation.exchanged = row->sequence;
}

static void copy_process(const struct ts_process_row *from)
{
	struct ts_process_row row = ts_process_none;

	row.id = from->id;
	row.pid = from->pid;
	ts_writer_add(writer, TS_TABLE_PROCESS, &row, NULL);
}

/* ---- the trace ---- */

union row {
	struct ts_process_row process;
	struct ts_object_row object;
	struct ts_command_row command;
};

static void each_row(uint16_t table, void (*visit)(union row *row))
{
	struct ts_batch *batch;
	struct ts_error err;

	if (ts_batch_new(&batch, reader, &err))
		fail("a batch", &err);
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != table)
			continue;
		if (ts_batch_read(batch, i, TS_MASK_ALL, &err))
			fail("a chunk", &err);
		for (uint32_t j = 0; j < batch->rows; j++) {
			union row row;

			ts_batch_row(batch, j, &row);
			visit(&row);
		}
	}
	ts_batch_free(batch);
}

static void visit_process(union row *row)
{
	copy_process(&row->process);
}

static void visit_object(union row *row)
{
	copy_object(&row->object);
}

static void visit_command(union row *row)
{
	copy_command(&row->command);
}

static void visit_swap(union row *row)
{
	find_swap(&row->command);
}

static void parse(char *which, char *change)
{
	char *name = strchr(which, ':'), *argument = strchr(change, ':');

	if (!name)
		fail("WHICH is KIND:NAME", NULL);
	snprintf(mutation.which, sizeof(mutation.which), "%.*s", (int)(name - which), which);
	mutation.name = name + 1;
	mutation.change = change;
	mutation.argument = argument ? argument + 1 : "";
	if (argument)
		*argument = '\0';
}

int main(int argc, char **argv)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_error err;

	if (argc != 5) {
		fprintf(stderr, "usage: mutate_stream IN OUT WHICH CHANGE\n");
		return 2;
	}
	parse(argv[3], argv[4]);
	if (ts_reader_open(&reader, argv[1], &err) ||
	    ts_writer_open(&writer, argv[2], &options, &err))
		fail(argv[1], &err);
	if (is_change("swap"))
		each_row(TS_TABLE_COMMAND, visit_swap);
	each_row(TS_TABLE_PROCESS, visit_process);
	each_row(TS_TABLE_OBJECT, visit_object);
	each_row(TS_TABLE_COMMAND, visit_command);
	if (ts_writer_finish(writer, &err))
		fail(argv[2], &err);
	ts_writer_close(writer);
	ts_reader_close(reader);
	if (!mutation.is_done)
		fail("nothing was changed", NULL);
	printf("%" PRId64 "\n", mutation.sequence);
	return 0;
}
