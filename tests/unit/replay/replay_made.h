/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes replayable traces row by row, like the recorder, for tests of src/replay and
 * targets/make_stream.c. Tests choose object numbers; their rows have other ids, as in real traces.
 */
#ifndef TS_TESTS_UNIT_REPLAY_REPLAY_MADE_H
#define TS_TESTS_UNIT_REPLAY_REPLAY_MADE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/writer.h>

#include "../../../src/base/local/hash.h"

/* Row of an object: any function of its number except the number itself. */
#define MADE_ID(number) ((number) ? (int64_t)(number) + 1000 : 0)

struct made_trace {
	struct ts_writer *writer;
	int64_t process;
	int64_t now;        /* ns; advances with each row */
	int64_t sequence;   /* of the last command */
	int64_t generation; /* of ids: each window has its own rows */
};

/* Columns of a command row; 0 is "none" for all but offsets, which are absent if `bytes` is 0. */
struct made_command {
	enum ts_command_kind kind;
	int64_t queue, object, offset, other, other_offset, bytes;
	uint32_t blob;
	int64_t correlation;
	int64_t sequence; /* of a check or close; 0: the next one */
	const char *details;
};

static inline int64_t made_text(struct made_trace *made, const char *text)
{
	return text ? ts_writer_string(made->writer, text, strlen(text)) : 0;
}

static inline void made_process(struct made_trace *made)
{
	struct ts_process_row process = ts_process_none;

	process.id = made->process = ts_writer_new_id(made->writer, TS_TABLE_PROCESS);
	process.pid = 4000 + process.id;
	process.name = made_text(made, "made");
	ts_writer_add(made->writer, TS_TABLE_PROCESS, &process, NULL);
	made->sequence = 0;
}

static inline void made_open(struct made_trace *made, const char *path)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_error err;

	*made = (struct made_trace){ .now = 1000000 };
	if (ts_writer_open(&made->writer, path, &options, &err)) {
		fprintf(stderr, "%s\n", err.message);
		abort();
	}
	made_process(made);
}

static inline void made_close(struct made_trace *made)
{
	struct ts_error err;

	if (ts_writer_finish(made->writer, &err)) {
		fprintf(stderr, "%s\n", err.message);
		abort();
	}
	ts_writer_close(made->writer);
}

static inline uint32_t made_blob(struct made_trace *made, const void *data, size_t bytes)
{
	return ts_writer_blob(made->writer, data, bytes);
}

static inline int64_t made_id(const struct made_trace *made, int64_t number)
{
	return number ? MADE_ID(number) + made->generation * 5000 : 0;
}

/* `details` without braces, after the number. */
static inline void made_object(struct made_trace *made, enum ts_object_kind kind, int64_t number,
			       int64_t parent, const char *name, int64_t bytes, uint32_t blob,
			       const char *details)
{
	struct ts_object_row row = ts_object_none;
	char json[8200];

	snprintf(json, sizeof(json), "{\"number\":%" PRId64 "%s%s}", number, *details ? "," : "",
		 details);
	row.id = made_id(made, number);
	row.process = made->process;
	row.kind = kind;
	row.parent = made_id(made, parent);
	row.name = made_text(made, name);
	row.bytes = bytes ? bytes : TS_ABSENT;
	row.blob = blob;
	row.created = made->now += 10;
	row.details = made_text(made, json);
	ts_writer_add(made->writer, TS_TABLE_OBJECT, &row, NULL);
}

static inline int64_t made_command(struct made_trace *made, const struct made_command *command)
{
	struct ts_command_row row = ts_command_none;
	bool has_own = command->kind != TS_COMMAND_CHECK && command->kind != TS_COMMAND_CLOSE;

	row.start = made->now += 1000;
	row.kind = command->kind;
	row.process = made->process;
	row.sequence = has_own ? ++made->sequence : command->sequence;
	row.queue = made_id(made, command->queue);
	row.object = made_id(made, command->object);
	row.other = made_id(made, command->other);
	row.blob = command->blob;
	row.correlation = command->correlation ? command->correlation : TS_ABSENT;
	row.details = made_text(made, command->details);
	if (command->bytes) {
		row.bytes = command->bytes;
		row.offset = command->offset;
		row.other_offset = command->other_offset;
	}
	ts_writer_add(made->writer, TS_TABLE_COMMAND, &row, NULL);
	return row.sequence;
}

/* ---- common cases ---- */

/*
 * Objects 1 device, 2 context, 3 and 4 queues in order, 5 module with source, 6 kernel "step", 7
 * kernel "mix".
 */
enum { MADE_DEVICE = 1, MADE_CONTEXT, MADE_QUEUE, MADE_QUEUE_2, MADE_MODULE, MADE_STEP, MADE_MIX };

static const char made_source[] =
	"kernel void step_(global uint *v) { size_t i = get_global_id(0); v[i] = v[i] * 3 + 1; }\n"
	"kernel void mix_(global uint *to, global const uint *from, uint by) {\n"
	"	size_t i = get_global_id(0); to[i] ^= from[i] + by;\n"
	"}\n";

static inline void made_objects(struct made_trace *made)
{
	uint32_t source = made_blob(made, made_source, sizeof(made_source) - 1);

	made_object(made, TS_OBJECT_DEVICE, MADE_DEVICE, 0, "a device", 0, 0,
		    "\"index\":0,\"platform\":\"made\",\"type\":\"cpu\"");
	made_object(made, TS_OBJECT_CONTEXT, MADE_CONTEXT, 0, NULL, 0, 0, "\"devices\":[1]");
	made_object(made, TS_OBJECT_STREAM, MADE_QUEUE, MADE_CONTEXT, NULL, 0, 0,
		    "\"index\":0,\"device\":1");
	made_object(made, TS_OBJECT_STREAM, MADE_QUEUE_2, MADE_CONTEXT, NULL, 0, 0,
		    "\"index\":1,\"device\":1");
	made_object(made, TS_OBJECT_MODULE, MADE_MODULE, MADE_CONTEXT, NULL, 0, source,
		    "\"from\":\"source\",\"options\":\"\",\"devices\":[1]");
	made_object(made, TS_OBJECT_FUNCTION, MADE_STEP, MADE_MODULE, "step_", 0, 0, "\"args\":1");
	made_object(made, TS_OBJECT_FUNCTION, MADE_MIX, MADE_MODULE, "mix_", 0, 0, "\"args\":3");
}

static inline void made_memory(struct made_trace *made, int64_t number, const void *content,
			       int64_t bytes)
{
	made_object(made, TS_OBJECT_MEMORY, number, MADE_CONTEXT, NULL, bytes,
		    content ? made_blob(made, content, (size_t)bytes) : 0,
		    "\"flags\":[\"read_write\"]");
}

static inline void made_begin(struct made_trace *made, int64_t window)
{
	char details[64];

	snprintf(details, sizeof(details), "{\"window\":%" PRId64 ",\"snapshot_bytes\":0}", window);
	made_command(made, &(struct made_command){ .kind = TS_COMMAND_OPEN, .details = details });
}

static inline void made_finish(struct made_trace *made, int64_t window, const char *failed)
{
	char details[160];

	snprintf(details, sizeof(details),
		 failed ? "{\"window\":%" PRId64 ",\"failed\":\"%s\"}" : "{\"window\":%" PRId64 "}",
		 window, failed);
	made_command(made, &(struct made_command){ .kind = TS_COMMAND_CLOSE,
						   .sequence = made->sequence,
						   .details = details });
	made->generation++;
}

static inline int64_t made_write(struct made_trace *made, int64_t queue, int64_t memory,
				 int64_t offset, const void *data, int64_t bytes)
{
	return made_command(
		made, &(struct made_command){ .kind = TS_COMMAND_COPY,
					      .queue = queue,
					      .object = memory,
					      .offset = offset,
					      .bytes = bytes,
					      .blob = made_blob(made, data, (size_t)bytes),
					      .details = "{\"call\":\"clEnqueueWriteBuffer\"}" });
}

static inline int64_t made_read(struct made_trace *made, int64_t queue, int64_t memory,
				int64_t offset, int64_t bytes)
{
	return made_command(
		made, &(struct made_command){
			      .kind = TS_COMMAND_COPY,
			      .queue = queue,
			      .other = memory,
			      .other_offset = offset,
			      .bytes = bytes,
			      .details = "{\"call\":\"clEnqueueReadBuffer\",\"blocking\":true}" });
}

/* step_ on memory of `words` words. `more`: further members of details, with a leading comma. */
static inline int64_t made_step(struct made_trace *made, int64_t queue, int64_t memory,
				int64_t words, const char *more)
{
	char details[512];

	snprintf(details, sizeof(details),
		 "{\"call\":\"clEnqueueNDRangeKernel\",\"global\":[%" PRId64
		 "],\"args\":[{\"kind\":\"memory\",\"object\":%" PRId64
		 ",\"offset\":0,\"bytes\":%" PRId64 ",\"access\":\"both\"}]%s}",
		 words, memory, words * 4, more);
	return made_command(made, &(struct made_command){ .kind = TS_COMMAND_LAUNCH,
							  .queue = queue,
							  .object = MADE_STEP,
							  .details = details });
}

/* mix_ from one memory to another. */
static inline int64_t made_mix(struct made_trace *made, int64_t queue, int64_t to, int64_t from,
			       uint32_t by, int64_t words, const char *more)
{
	char details[768];

	snprintf(details, sizeof(details),
		 "{\"call\":\"clEnqueueNDRangeKernel\",\"global\":[%" PRId64
		 "],\"args\":[{\"kind\":\"memory\",\"object\":%" PRId64
		 ",\"offset\":0,\"bytes\":%" PRId64 ",\"access\":\"both\"},"
		 "{\"kind\":\"memory\",\"object\":%" PRId64 ",\"offset\":0,\"bytes\":%" PRId64
		 ",\"access\":\"read\"},{\"kind\":\"bytes\",\"at\":0,\"size\":4}]%s}",
		 words, to, words * 4, from, words * 4, more);
	return made_command(made, &(struct made_command){ .kind = TS_COMMAND_LAUNCH,
							  .queue = queue,
							  .object = MADE_MIX,
							  .blob = made_blob(made, &by, sizeof(by)),
							  .details = details });
}

static inline void made_check(struct made_trace *made, int64_t sequence, int64_t memory,
			      const void *content, int64_t bytes, const char *why)
{
	char details[96];

	snprintf(details, sizeof(details), "{\"hash\":\"%016" PRIx64 "\",\"why\":\"%s\"}",
		 ts_hash64(content, (size_t)bytes), why);
	made_command(made, &(struct made_command){ .kind = TS_COMMAND_CHECK,
						   .sequence = sequence,
						   .object = memory,
						   .bytes = bytes,
						   .details = details });
}

#endif
