/* SPDX-License-Identifier: Apache-2.0 */
/* Images of a stream: sizes, regions and formats that do not fit are refused, by name. */
#include <unistd.h>

#include "base/memory.h"
#include "replay/plan/plan.h"
#include "replay/stream/stream_internal.h"
#include "unit/replay/replay_fixture.h"
#include "unit/runner.h"

static struct fixture_trace fixture;
static struct ts_reader *reader;
static char path[64];

#define FLAT \
	"\"image\":{\"type\":\"2d\",\"order\":\"rgba\",\"data\":\"unorm_int8\",\"size\":[5,4,1],\"element\":4}"
#define RECT(region, to) \
	"{\"rect\":{\"region\":" region ",\"to\":{\"origin\":" to ",\"row\":20,\"slice\":80}}}"

static void image(int64_t number, int64_t parent, int64_t bytes, const char *details)
{
	fixture_object(&fixture, TS_OBJECT_MEMORY, number, parent, NULL, bytes, 0, details);
}

/* Memory 10 is a buffer of 256 bytes, 20 an image of 5 x 4 pixels. */
static void begin(void)
{
	snprintf(path, sizeof(path), "/tmp/tracesmith-images-%d.sbt", getpid());
	fixture_open(&fixture, path);
	fixture_objects(&fixture);
	fixture_memory(&fixture, 10, NULL, 256);
	image(20, FIXTURE_CONTEXT, 80, FLAT);
}

static int load(struct ts_replay_stream **ret_stream, struct ts_error *err)
{
	fixture_close(&fixture);
	TS_CHECK_INT(ts_reader_open(&reader, path, err), 0);
	return ts_replay_stream_load(ret_stream, reader, 0, 0, err);
}

static void end(struct ts_replay_stream *stream)
{
	ts_replay_stream_free(stream);
	ts_reader_close(reader);
	unlink(path);
}

static uint32_t find(const struct ts_replay_stream *stream, uint64_t number)
{
	for (uint32_t i = 0; i < stream->object_count; i++)
		if (stream->objects[i].number == number)
			return i;
	return TS_REPLAY_NONE;
}

TS_TEST(images_that_cannot_be)
{
	static const struct {
		int64_t parent, bytes;
		const char *details, *why;
	} cases[] = {
#define LIKE(type, order, data, size, more)                                               \
	"\"image\":{\"type\":\"" type "\",\"order\":\"" order "\",\"data\":\"" data "\"," \
	"\"size\":" size "," more "}"
		{ FIXTURE_CONTEXT, 80, LIKE("4d", "rgba", "float", "[5,4,1]", "\"element\":4"),
		  "an image of unknown type or format: 4d rgba float" },
		{ FIXTURE_CONTEXT, 80, LIKE("2d", "cmyk", "float", "[5,4,1]", "\"element\":4"),
		  "an image of unknown type or format: 2d cmyk float" },
		{ FIXTURE_CONTEXT, 80, "\"image\":{}",
		  "an image of unknown type or format: ? ? ?" },
		{ FIXTURE_CONTEXT, 80,
		  LIKE("3d", "r", "float", "[4294967296,4294967296,4294967296]", "\"element\":4"),
		  "an image with invalid sizes" },
		{ FIXTURE_CONTEXT, 80, LIKE("2d", "r", "float", "[5,4,2]", "\"element\":4"),
		  "an image with invalid sizes" },
		{ FIXTURE_CONTEXT, 80, LIKE("2d", "r", "float", "[5,0,1]", "\"element\":4"),
		  "an image with invalid sizes" },
		{ FIXTURE_CONTEXT, 80, LIKE("2d", "r", "float", "[5,4,1]", "\"element\":17"),
		  "an image with invalid sizes" },
		{ FIXTURE_CONTEXT, 80,
		  LIKE("2d", "r", "float", "[5,4,1]", "\"element\":4,\"row\":16"),
		  "an image with invalid sizes" },
		{ FIXTURE_CONTEXT, 79, LIKE("2d", "r", "float", "[5,4,1]", "\"element\":4"),
		  "an image of 80 bytes, its memory has 79" },
		{ FIXTURE_CONTEXT, 96,
		  LIKE("2d", "r", "float", "[5,4,1]", "\"element\":4,\"row\":24"),
		  "an image in a buffer without the buffer" },
		{ FIXTURE_CONTEXT, 20, LIKE("1d_buffer", "r", "float", "[5,1,1]", "\"element\":4"),
		  "an image in a buffer without the buffer" },
		{ 10, 80, LIKE("3d", "r", "float", "[5,2,2]", "\"element\":4"),
		  "a view that is a 3d image" },
		{ 10, 400, LIKE("2d", "r", "float", "[10,10,1]", "\"element\":4"),
		  "it exceeds its parent" },
		{ 20, 40, "", "a view of a part of an image" },
		{ 20, 40, LIKE("2d", "r", "float", "[5,2,1]", "\"element\":4"),
		  "a view of a part of an image" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct ts_replay_stream *stream;
		struct ts_error err;

		begin();
		image(21, cases[i].parent, cases[i].bytes, cases[i].details);
		fixture_begin(&fixture, 1);
		fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");
		TS_CHECK_INT(load(&stream, &err), 0);
		TS_CHECK_STR(stream->objects[find(stream, 21)].unreplayable, cases[i].why);
		end(stream);
	}
}

static void expect_refused(const struct fixture_command *command, const char *message)
{
	struct ts_replay_stream *stream;
	struct ts_error err;

	begin();
	image(21, 10, 60, LIKE("1d_buffer", "rg", "unorm_int8", "[30,1,1]", "\"element\":2"));
	fixture_begin(&fixture, 1);
	fixture_command(&fixture, command);
	TS_CHECK_INT(load(&stream, &err), TS_EFORMAT);
	TS_CHECK_STR(err.message, message);
	ts_reader_close(reader);
	unlink(path);
}

TS_TEST(regions_outside_of_an_image)
{
	static const char *const rects[] = {
		RECT("[24,1,1]", "[0,0,0]"),
		RECT("[4,5,1]", "[0,0,0]"),
		RECT("[4,1,2]", "[0,0,0]"),
		RECT("[20,1,1]", "[4,0,0]"),
		RECT("[4,2,1]", "[0,3,0]"),
		RECT("[3,1,1]", "[0,0,0]"),
		RECT("[4,1,1]", "[2,0,0]"),
		RECT("[4,1,1]", "[9223372036854775804,0,0]"),
		RECT("[4,1,1]", "[0,0,9223372036854775807]"),
		"{\"rect\":{\"region\":[4,1,1],\"to\":{\"row\":24,\"slice\":96}}}",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(rects); i++) {
		struct fixture_command command = { .kind = TS_COMMAND_COPY,
						   .queue = FIXTURE_QUEUE,
						   .object = 20,
						   .other = 10,
						   .bytes = 4,
						   .details = rects[i] };

		/* The first two are larger than their pitches. */
		expect_refused(&command,
			       i < 2 ? "command 2, copy of memory 10 to memory 20: its rectangle "
				       "is invalid"
				     : "command 2, copy of memory 10 to memory 20: its region is "
				       "not inside its image");
	}
}

TS_TEST(commands_that_do_not_fit_their_image)
{
	expect_refused(&(struct fixture_command){ .kind = TS_COMMAND_COPY,
						  .queue = FIXTURE_QUEUE,
						  .object = 20,
						  .other = 10,
						  .bytes = 80 },
		       "command 2, copy of memory 10 to memory 20: it has no region of its image");
	/* Pixels of another size, and a buffer with gaps. */
	expect_refused(
		&(struct fixture_command){
			.kind = TS_COMMAND_COPY,
			.queue = FIXTURE_QUEUE,
			.object = 20,
			.other = 21,
			.bytes = 4,
			.details = "{\"rect\":{\"region\":[4,1,1],\"to\":{\"row\":20,"
				   "\"slice\":80},\"from\":{\"row\":60,\"slice\":60}}}" },
		"command 2, copy of memory 21 to memory 20: its region is not inside its "
		"image");
	expect_refused(
		&(struct fixture_command){
			.kind = TS_COMMAND_COPY,
			.queue = FIXTURE_QUEUE,
			.object = 20,
			.other = 10,
			.bytes = 8,
			.details = "{\"rect\":{\"region\":[4,2,1],\"to\":{\"row\":20,"
				   "\"slice\":80},\"from\":{\"row\":8,\"slice\":16}}}" },
		"command 2, copy of memory 10 to memory 20: its region is not inside its "
		"image");
	expect_refused(&(struct fixture_command){ .kind = TS_COMMAND_FILL,
						  .queue = FIXTURE_QUEUE,
						  .object = 20,
						  .bytes = 4,
						  .details = RECT("[4,1,1]", "[0,0,0]") },
		       "command 2, fill of memory 20: its colour has 0 bytes, not 16");
	expect_refused(&(struct fixture_command){ .kind = TS_COMMAND_FILL,
						  .queue = FIXTURE_QUEUE,
						  .object = 10,
						  .bytes = 4,
						  .details = RECT("[4,1,1]", "[0,0,0]") },
		       "command 2, fill of memory 10: it fills a rectangle of a buffer");
	expect_refused(&(struct fixture_command){ .kind = TS_COMMAND_HOST_WRITE,
						  .object = 20,
						  .bytes = 4,
						  .details = RECT("[4,1,1]", "[0,0,0]") },
		       "command 2, host write to memory 20: it writes 4 bytes, the trace holds 0");
}

/* All of an image is its range; a region that is all of it overwrites it. */
TS_TEST(ranges_of_images)
{
	struct ts_replay_stream *stream;
	struct ts_error err;

	begin();
	image(21, 10, 60,
	      LIKE("1d_buffer", "rg", "unorm_int8", "[30,1,1]", "\"element\":2") ",\"origin\":16");
	fixture_begin(&fixture, 1);
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_COPY,
						   .queue = FIXTURE_QUEUE,
						   .object = 20,
						   .other = 10,
						   .bytes = 80,
						   .details = RECT("[20,4,1]", "[0,0,0]") });
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_COPY,
						   .queue = FIXTURE_QUEUE,
						   .object = 20,
						   .other = 10,
						   .bytes = 8,
						   .details = RECT("[4,2,1]", "[8,1,0]") });
	fixture_step(&fixture, FIXTURE_QUEUE, 21, 64, "");
	TS_CHECK_INT(load(&stream, &err), 0);
	TS_CHECK(ts_replay_covers(&stream->commands[0]));
	TS_CHECK(!ts_replay_covers(&stream->commands[1]));
	TS_CHECK_INT(stream->commands[1].writes[0].bytes, 80);
	TS_CHECK_INT(stream->commands[1].reads[0].bytes, 8);
	TS_CHECK_INT(stream->commands[2].args[0].image, find(stream, 21));
	TS_CHECK_INT(stream->commands[2].args[0].memory, find(stream, 10));
	TS_CHECK_INT(stream->commands[2].writes[0].offset, 16);
	TS_CHECK_INT(stream->commands[2].writes[0].bytes, 60);
	end(stream);
}

TS_TEST(unknown_samplers)
{
	struct ts_replay_stream *stream;
	struct ts_error err;

	begin();
	fixture_begin(&fixture, 1);
	fixture_command(&fixture,
			&(struct fixture_command){
				.kind = TS_COMMAND_LAUNCH,
				.queue = FIXTURE_QUEUE,
				.object = FIXTURE_STEP,
				.details = "{\"global\":[1],\"args\":[{\"kind\":\"sampler\","
					   "\"addressing\":\"clamp\",\"filter\":\"cubic\"}]}" });
	TS_CHECK_INT(load(&stream, &err), 0);
	TS_CHECK_STR(stream->commands[0].unreplayable, "argument 0 is an unknown sampler");
	end(stream);
}
