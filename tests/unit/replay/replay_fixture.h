/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes replayable traces row by row, like the recorder, for tests of src/replay and
 * targets/make_stream.c. Tests choose object numbers; their rows have other ids, as in real traces.
 */
#ifndef TS_TESTS_UNIT_REPLAY_REPLAY_FIXTURE_H
#define TS_TESTS_UNIT_REPLAY_REPLAY_FIXTURE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/writer.h>

#include "../../../src/base/local/hash.h"

/* Row of an object: any function of its number except the number itself. */
#define FIXTURE_ID(number) ((number) ? (int64_t)(number) + 1000 : 0)

struct fixture_trace {
	struct ts_writer *writer;
	int64_t process;
	int64_t now;        /* ns; advances with each row */
	int64_t sequence;   /* of the last command */
	int64_t generation; /* of ids: each window has its own rows */
};

/* Columns of a command row; 0 is "none" for all but offsets, which are absent if `bytes` is 0. */
struct fixture_command {
	enum ts_command_kind kind;
	int64_t queue, object, offset, other, other_offset, bytes;
	uint32_t blob;
	int64_t correlation;
	int64_t sequence; /* of a check or close; 0: the next one */
	const char *details;
};

static inline int64_t fixture_text(struct fixture_trace *fixture, const char *text)
{
	return text ? ts_writer_string(fixture->writer, text, strlen(text)) : 0;
}

static inline void fixture_process(struct fixture_trace *fixture)
{
	struct ts_process_row process = ts_process_none;

	process.id = fixture->process = ts_writer_new_id(fixture->writer, TS_TABLE_PROCESS);
	process.pid = 4000 + process.id;
	process.name = fixture_text(fixture, "made");
	ts_writer_add(fixture->writer, TS_TABLE_PROCESS, &process, NULL);
	fixture->sequence = 0;
}

static inline void fixture_open(struct fixture_trace *fixture, const char *path)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_error err;

	*fixture = (struct fixture_trace){ .now = 1000000 };
	if (ts_writer_open(&fixture->writer, path, &options, &err)) {
		fprintf(stderr, "%s\n", err.message);
		abort();
	}
	fixture_process(fixture);
}

static inline void fixture_close(struct fixture_trace *fixture)
{
	struct ts_error err;

	if (ts_writer_finish(fixture->writer, &err)) {
		fprintf(stderr, "%s\n", err.message);
		abort();
	}
	ts_writer_close(fixture->writer);
}

static inline uint32_t fixture_blob(struct fixture_trace *fixture, const void *data, size_t bytes)
{
	return ts_writer_blob(fixture->writer, data, bytes);
}

static inline int64_t fixture_id(const struct fixture_trace *fixture, int64_t number)
{
	return number ? FIXTURE_ID(number) + fixture->generation * 5000 : 0;
}

/* `details` without braces, after the number. */
static inline void fixture_object(struct fixture_trace *fixture, enum ts_object_kind kind,
				  int64_t number, int64_t parent, const char *name, int64_t bytes,
				  uint32_t blob, const char *details)
{
	struct ts_object_row row = ts_object_none;
	char json[8200];

	snprintf(json, sizeof(json), "{\"number\":%" PRId64 "%s%s}", number, *details ? "," : "",
		 details);
	row.id = fixture_id(fixture, number);
	row.process = fixture->process;
	row.kind = kind;
	row.parent = fixture_id(fixture, parent);
	row.name = fixture_text(fixture, name);
	row.bytes = bytes ? bytes : TS_ABSENT;
	row.blob = blob;
	row.created = fixture->now += 10;
	row.details = fixture_text(fixture, json);
	ts_writer_add(fixture->writer, TS_TABLE_OBJECT, &row, NULL);
}

static inline int64_t fixture_command(struct fixture_trace *fixture,
				      const struct fixture_command *command)
{
	struct ts_command_row row = ts_command_none;
	bool has_identity = command->kind != TS_COMMAND_CHECK && command->kind != TS_COMMAND_CLOSE;

	row.start = fixture->now += 1000;
	row.kind = command->kind;
	row.process = fixture->process;
	row.sequence = has_identity ? ++fixture->sequence : command->sequence;
	row.queue = fixture_id(fixture, command->queue);
	row.object = fixture_id(fixture, command->object);
	row.other = fixture_id(fixture, command->other);
	row.blob = command->blob;
	row.correlation = command->correlation ? command->correlation : TS_ABSENT;
	row.details = fixture_text(fixture, command->details);
	if (command->bytes) {
		row.bytes = command->bytes;
		row.offset = command->offset;
		row.other_offset = command->other_offset;
	}
	ts_writer_add(fixture->writer, TS_TABLE_COMMAND, &row, NULL);
	return row.sequence;
}

/* ---- common cases ---- */

/*
 * Objects 1 device, 2 context, 3 and 4 queues in order, 5 module with source, 6 kernel "step", 7
 * kernel "mix".
 */
enum {
	FIXTURE_DEVICE = 1,
	FIXTURE_CONTEXT,
	FIXTURE_QUEUE,
	FIXTURE_QUEUE_2,
	FIXTURE_MODULE,
	FIXTURE_STEP,
	FIXTURE_MIX
};

static const char fixture_source[] =
	"kernel void step_(global uint *v) { size_t i = get_global_id(0); v[i] = v[i] * 3 + 1; }\n"
	"kernel void mix_(global uint *to, global const uint *from, uint by) {\n"
	"	size_t i = get_global_id(0); to[i] ^= from[i] + by;\n"
	"}\n";

static inline void fixture_objects(struct fixture_trace *fixture)
{
	uint32_t source = fixture_blob(fixture, fixture_source, sizeof(fixture_source) - 1);

	fixture_object(fixture, TS_OBJECT_DEVICE, FIXTURE_DEVICE, 0, "a device", 0, 0,
		       "\"index\":0,\"platform\":\"made\",\"type\":\"cpu\"");
	fixture_object(fixture, TS_OBJECT_CONTEXT, FIXTURE_CONTEXT, 0, NULL, 0, 0,
		       "\"devices\":[1]");
	fixture_object(fixture, TS_OBJECT_STREAM, FIXTURE_QUEUE, FIXTURE_CONTEXT, NULL, 0, 0,
		       "\"index\":0,\"device\":1");
	fixture_object(fixture, TS_OBJECT_STREAM, FIXTURE_QUEUE_2, FIXTURE_CONTEXT, NULL, 0, 0,
		       "\"index\":1,\"device\":1");
	fixture_object(fixture, TS_OBJECT_MODULE, FIXTURE_MODULE, FIXTURE_CONTEXT, NULL, 0, source,
		       "\"from\":\"source\",\"options\":\"\",\"devices\":[1]");
	fixture_object(fixture, TS_OBJECT_FUNCTION, FIXTURE_STEP, FIXTURE_MODULE, "step_", 0, 0,
		       "\"args\":1");
	fixture_object(fixture, TS_OBJECT_FUNCTION, FIXTURE_MIX, FIXTURE_MODULE, "mix_", 0, 0,
		       "\"args\":3");
}

static inline void fixture_memory(struct fixture_trace *fixture, int64_t number,
				  const void *content, int64_t bytes)
{
	fixture_object(fixture, TS_OBJECT_MEMORY, number, FIXTURE_CONTEXT, NULL, bytes,
		       content ? fixture_blob(fixture, content, (size_t)bytes) : 0,
		       "\"flags\":[\"read_write\"]");
}

static inline void fixture_begin(struct fixture_trace *fixture, int64_t window)
{
	char details[64];

	snprintf(details, sizeof(details), "{\"window\":%" PRId64 ",\"snapshot_bytes\":0}", window);
	fixture_command(fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_OPEN, .details = details });
}

static inline void fixture_finish(struct fixture_trace *fixture, int64_t window, const char *failed)
{
	char details[160];

	snprintf(details, sizeof(details),
		 failed ? "{\"window\":%" PRId64 ",\"failed\":\"%s\"}" : "{\"window\":%" PRId64 "}",
		 window, failed);
	fixture_command(fixture, &(struct fixture_command){ .kind = TS_COMMAND_CLOSE,
							    .sequence = fixture->sequence,
							    .details = details });
	fixture->generation++;
}

static inline int64_t fixture_write(struct fixture_trace *fixture, int64_t queue, int64_t memory,
				    int64_t offset, const void *data, int64_t bytes)
{
	return fixture_command(fixture, &(struct fixture_command){
						.kind = TS_COMMAND_COPY,
						.queue = queue,
						.object = memory,
						.offset = offset,
						.bytes = bytes,
						.blob = fixture_blob(fixture, data, (size_t)bytes),
						.details = "{\"call\":\"clEnqueueWriteBuffer\"}" });
}

static inline int64_t fixture_read(struct fixture_trace *fixture, int64_t queue, int64_t memory,
				   int64_t offset, int64_t bytes)
{
	return fixture_command(
		fixture,
		&(struct fixture_command){
			.kind = TS_COMMAND_COPY,
			.queue = queue,
			.other = memory,
			.other_offset = offset,
			.bytes = bytes,
			.details = "{\"call\":\"clEnqueueReadBuffer\",\"blocking\":true}" });
}

/* step_ on memory of `words` words. `more`: further members of details, with a leading comma. */
static inline int64_t fixture_step(struct fixture_trace *fixture, int64_t queue, int64_t memory,
				   int64_t words, const char *more)
{
	char details[512];

	snprintf(details, sizeof(details),
		 "{\"call\":\"clEnqueueNDRangeKernel\",\"global\":[%" PRId64
		 "],\"args\":[{\"kind\":\"memory\",\"object\":%" PRId64
		 ",\"offset\":0,\"bytes\":%" PRId64 ",\"access\":\"both\"}]%s}",
		 words, memory, words * 4, more);
	return fixture_command(fixture, &(struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
								   .queue = queue,
								   .object = FIXTURE_STEP,
								   .details = details });
}

/* mix_ from one memory to another. */
static inline int64_t fixture_mix(struct fixture_trace *fixture, int64_t queue, int64_t to,
				  int64_t from, uint32_t by, int64_t words, const char *more)
{
	char details[768];

	snprintf(details, sizeof(details),
		 "{\"call\":\"clEnqueueNDRangeKernel\",\"global\":[%" PRId64
		 "],\"args\":[{\"kind\":\"memory\",\"object\":%" PRId64
		 ",\"offset\":0,\"bytes\":%" PRId64 ",\"access\":\"both\"},"
		 "{\"kind\":\"memory\",\"object\":%" PRId64 ",\"offset\":0,\"bytes\":%" PRId64
		 ",\"access\":\"read\"},{\"kind\":\"bytes\",\"at\":0,\"size\":4}]%s}",
		 words, to, words * 4, from, words * 4, more);
	return fixture_command(
		fixture, &(struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
						    .queue = queue,
						    .object = FIXTURE_MIX,
						    .blob = fixture_blob(fixture, &by, sizeof(by)),
						    .details = details });
}

static inline void fixture_check_blob(struct fixture_trace *fixture, int64_t sequence,
				      int64_t memory, const void *content, int64_t bytes,
				      const char *why, uint32_t blob)
{
	char details[96];

	snprintf(details, sizeof(details), "{\"hash\":\"%016" PRIx64 "\",\"why\":\"%s\"}",
		 ts_hash64(content, (size_t)bytes), why);
	fixture_command(fixture, &(struct fixture_command){ .kind = TS_COMMAND_CHECK,
							    .sequence = sequence,
							    .object = memory,
							    .bytes = bytes,
							    .blob = blob,
							    .details = details });
}

/* A hash only. */
static inline void fixture_check(struct fixture_trace *fixture, int64_t sequence, int64_t memory,
				 const void *content, int64_t bytes, const char *why)
{
	fixture_check_blob(fixture, sequence, memory, content, bytes, why, 0);
}

#endif
