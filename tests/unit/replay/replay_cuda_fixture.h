/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of CUDA (docs/cuda-replay.md, section 4), made row by row like those of OpenCL. */
#ifndef TS_TESTS_UNIT_REPLAY_REPLAY_CUDA_FIXTURE_H
#define TS_TESTS_UNIT_REPLAY_REPLAY_CUDA_FIXTURE_H

#include "replay_fixture.h"

#define CUDA_PAGE ((int64_t)2 << 20)
#define CUDA_ARENA 0x200000000000
#define CUDA_ARENA_BYTES ((int64_t)1 << 41)
#define CUDA_HOST 0x180000000000

enum {
	CUDA_DEVICE = 1,
	CUDA_CONTEXT,
	CUDA_STREAM,   /* blocking */
	CUDA_STREAM_2, /* blocking */
	CUDA_FREE,     /* non-blocking */
	CUDA_LEGACY,   /* the legacy default stream */
	CUDA_MODULE,
	CUDA_KERNEL,
	CUDA_MEMORY,      /* the arena: pages 0 to 3 are mapped */
	CUDA_HOST_MEMORY, /* 64 KiB at CUDA_HOST are mapped */
	CUDA_VARIABLE,    /* 64 bytes */
	CUDA_GRAPH,
	CUDA_NEXT /* the first number that is not used */
};

/* `details` without braces, after the number. */
static inline void cuda_memory(struct fixture_trace *fixture, int64_t number, int64_t parent,
			       int64_t address, int64_t bytes, const char *name,
			       const char *details)
{
	struct ts_object_row row = ts_object_none;
	char json[8200];

	snprintf(json, sizeof(json), "{\"number\":%" PRId64 ",%s}", number, details);
	row.id = fixture_id(fixture, number);
	row.process = fixture->process;
	row.kind = TS_OBJECT_MEMORY;
	row.parent = fixture_id(fixture, parent);
	row.name = fixture_text(fixture, name);
	row.address = address;
	row.bytes = bytes ? bytes : TS_ABSENT;
	row.created = fixture->now += 10;
	row.details = fixture_text(fixture, json);
	ts_writer_add(fixture->writer, TS_TABLE_OBJECT, &row, NULL);
}

static inline void cuda_stream(struct fixture_trace *fixture, int64_t number, const char *more)
{
	char details[128];

	snprintf(details, sizeof(details), "\"device\":1,\"index\":%" PRId64 ",\"priority\":0%s",
		 number, more);
	fixture_object(fixture, TS_OBJECT_STREAM, number, CUDA_CONTEXT, NULL, 0, 0, details);
}

static inline void cuda_objects(struct fixture_trace *fixture)
{
	static const char image[] = "\177ELF: an image";

	fixture_object(fixture, TS_OBJECT_DEVICE, CUDA_DEVICE, 0, "a GPU", 0, 0,
		       "\"platform\":\"cuda\",\"index\":0,\"compute\":[9,0],\"driver\":13000,"
		       "\"memory\":150000000000");
	fixture_object(fixture, TS_OBJECT_CONTEXT, CUDA_CONTEXT, CUDA_DEVICE, NULL, 0, 0,
		       "\"devices\":[1],\"primary\":true,\"flags\":0,\"limits\":[[0,1024]]");
	cuda_stream(fixture, CUDA_STREAM, ",\"flags\":0");
	cuda_stream(fixture, CUDA_STREAM_2, "");
	cuda_stream(fixture, CUDA_FREE, ",\"flags\":1");
	cuda_stream(fixture, CUDA_LEGACY, ",\"default\":\"legacy\"");
	fixture_object(fixture, TS_OBJECT_MODULE, CUDA_MODULE, CUDA_CONTEXT, NULL, 0,
		       fixture_blob(fixture, image, sizeof(image)),
		       "\"from\":\"cubin\",\"library\":true");
	fixture_object(fixture, TS_OBJECT_FUNCTION, CUDA_KERNEL, CUDA_MODULE, "kernel", 0, 0,
		       "\"params\":[[0,8],[8,4]],\"attributes\":[[8,65536]]");
	cuda_memory(fixture, CUDA_MEMORY, CUDA_DEVICE, CUDA_ARENA, CUDA_ARENA_BYTES, NULL,
		    "\"sparse\":true,\"space\":\"device\",\"mapped\":[[0,8388608]]");
	cuda_memory(fixture, CUDA_HOST_MEMORY, 0, 0, 0, NULL,
		    "\"sparse\":true,\"space\":\"host\",\"mapped\":[[26388279066624,65536,2]]");
	cuda_memory(fixture, CUDA_VARIABLE, CUDA_MODULE, 0x7f0000000000, 64, "variable",
		    "\"global\":true");
}

/* With so many pieces of a snapshot. */
static inline int64_t cuda_begin(struct fixture_trace *fixture, int64_t window, int64_t pieces)
{
	char details[80];

	snprintf(details, sizeof(details), "{\"window\":%" PRId64 ",\"pieces\":%" PRId64 "}",
		 window, pieces);
	return fixture_command(
		fixture, &(struct fixture_command){ .kind = TS_COMMAND_OPEN, .details = details });
}

static inline void cuda_piece(struct fixture_trace *fixture, int64_t sequence, int64_t memory,
			      int64_t offset, const void *content, int64_t bytes)
{
	fixture_command(fixture, &(struct fixture_command){
					 .kind = TS_COMMAND_CHECK,
					 .sequence = sequence,
					 .object = memory,
					 .offset = offset,
					 .bytes = bytes,
					 .blob = fixture_blob(fixture, content, (size_t)bytes),
					 .details = "{\"why\":\"open\"}" });
}

/* `more`: further members of details, with a leading comma. */
static inline int64_t cuda_launch(struct fixture_trace *fixture, int64_t queue, uint64_t pointer,
				  const char *more)
{
	uint64_t block[2] = { pointer, 7 };
	char details[512];

	snprintf(details, sizeof(details),
		 "{\"call\":\"cuLaunchKernel\",\"grid\":[4,2,1],\"block\":[32,1,1],\"shared\":0%s}",
		 more);
	return fixture_command(fixture, &(struct fixture_command){
						.kind = TS_COMMAND_LAUNCH,
						.queue = queue,
						.object = CUDA_KERNEL,
						.blob = fixture_blob(fixture, block, sizeof(block)),
						.details = details });
}

static inline int64_t cuda_record(struct fixture_trace *fixture, int64_t queue, int64_t event)
{
	char details[64];

	snprintf(details, sizeof(details), "{\"event\":%" PRId64 "}", event);
	return fixture_command(fixture, &(struct fixture_command){ .kind = TS_COMMAND_RECORD,
								   .queue = queue,
								   .details = details });
}

static inline int64_t cuda_wait(struct fixture_trace *fixture, int64_t queue, int64_t event)
{
	char details[64];

	snprintf(details, sizeof(details), "{\"wait\":[%" PRId64 "]}", event);
	return fixture_command(fixture, &(struct fixture_command){ .kind = TS_COMMAND_WAIT,
								   .queue = queue,
								   .details = details });
}

static inline void cuda_graph(struct fixture_trace *fixture, int64_t number, int64_t nodes)
{
	char details[64];

	snprintf(details, sizeof(details), "\"nodes\":%" PRId64, nodes);
	fixture_object(fixture, TS_OBJECT_GRAPH, number, CUDA_CONTEXT, NULL, 0, 0, details);
}

static inline int64_t cuda_launch_graph(struct fixture_trace *fixture, int64_t queue, int64_t graph)
{
	return fixture_command(
		fixture, &(struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
						    .queue = queue,
						    .object = graph,
						    .details = "{\"call\":\"cuGraphLaunch\"}" });
}

/* Hashes of pages: `count` pairs of offset and hash. No sequence: those of the end. */
static inline void cuda_pages(struct fixture_trace *fixture, int64_t sequence, int64_t memory,
			      const uint64_t (*pairs)[2], int64_t count, const char *why)
{
	char details[64];

	snprintf(details, sizeof(details), "{\"pages\":%" PRId64 ",\"why\":\"%s\"}", count, why);
	fixture_command(
		fixture,
		&(struct fixture_command){
			.kind = TS_COMMAND_CHECK,
			.sequence = sequence,
			.object = memory,
			.blob = count ? fixture_blob(fixture, pairs, (size_t)count * 16) : 0,
			.details = details });
}

#endif
