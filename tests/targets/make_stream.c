/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_stream OUT KIND: writes a replayable trace without a recorder. KIND:
 *	plain       two queues, two kernels, copies, checks that hold
 *	killed      the same without its end
 *	wrong       one check fails
 *	bad-hash    the bytes of a copy do not match their hash
 *	no-blob     the bytes of a copy are missing
 *	beyond      a copy exceeds its memory
 *	no-memory   an argument refers to unknown memory
 *	gap         a command is missing
 *	native      a command that cannot be replayed
 *	failed      the window could not be captured
 *	empty       a window without commands
 *	nothing     a trace without commands
 *	two         two windows
 *	processes   two processes
 *	bound       programs of which there are only binaries, a guessed argument
 *	unsupported kernels that do not build, have more work items than a device can run, or use a
 *	            part of memory at an odd place
 *	typed       kernels whose arguments have names, types, or neither
 *	contexts    two contexts, and a kernel that may access all memory of its own
 *	hostile     names and reasons with control characters
 *	cuda        sparse memory, graphs, settings, pages
 *	cuda-cut    the same, killed before all pieces of its memory were stored
 */
#include "../unit/replay/replay_cuda_fixture.h"

#define WORDS 64
#define BYTES (WORDS * 4)

/* The effect of step_ and mix_. */
static void step(uint32_t *v)
{
	for (int i = 0; i < WORDS; i++)
		v[i] = v[i] * 3 + 1;
}

static void mix(uint32_t *to, const uint32_t *from, uint32_t by)
{
	for (int i = 0; i < WORDS; i++)
		to[i] ^= from[i] + by;
}

static bool is(const char *kind, const char *name)
{
	return !strcmp(kind, name);
}

/* A copy to memory 10, valid or not. */
static void add_write(struct fixture_trace *fixture, const char *kind, const uint32_t *data)
{
	struct fixture_command command = { .kind = TS_COMMAND_COPY,
					   .queue = FIXTURE_QUEUE,
					   .object = 10,
					   .bytes = BYTES,
					   .details = "{\"call\":\"clEnqueueWriteBuffer\"}" };

	if (is(kind, "bad-hash")) {
		/* A row with a wrong hash of its bytes; its chunk is valid all the same. */
		uint32_t other[WORDS];

		memcpy(other, data, sizeof(other));
		other[3]++;
		command.blob = ts_writer_blob_piece(fixture->writer, 0, ts_hash64(other, BYTES),
						    BYTES, data, BYTES);
	} else {
		command.blob = is(kind, "no-blob") ? 4711 : fixture_blob(fixture, data, BYTES);
	}
	if (is(kind, "beyond"))
		command.offset = 4;
	fixture_command(fixture, &command);
}

/* The commands of a window; numbers in comments are their sequence numbers. */
static void add_window(struct fixture_trace *fixture, const char *kind, int64_t window)
{
	uint32_t a[WORDS], b[WORDS];
	int64_t at;

	for (int i = 0; i < WORDS; i++) {
		a[i] = (uint32_t)i * 7 + (uint32_t)window;
		b[i] = (uint32_t)i;
	}
	fixture_objects(fixture);
	fixture_memory(fixture, 10, NULL, BYTES);
	fixture_memory(fixture, 11, b, BYTES);
	fixture_begin(fixture, window); /* 1 */
	if (is(kind, "empty"))
		return;
	add_write(fixture, kind, a); /* 2 */
	if (is(kind, "gap"))
		fixture->sequence++;
	at = fixture_step(fixture, FIXTURE_QUEUE, 10, WORDS, ",\"event\":21"); /* 3 */
	step(a);
	fixture_check(fixture, at, 10, a, BYTES, "each");
	if (is(kind, "native"))
		fixture_command(
			fixture,
			&(struct fixture_command){
				.kind = TS_COMMAND_HOST,
				.queue = FIXTURE_QUEUE,
				.details =
					"{\"call\":\"clEnqueueNativeKernel\","
					"\"unreplayable\":\"native kernels are not captured\"}" });
	fixture_mix(fixture, FIXTURE_QUEUE_2, 11, is(kind, "no-memory") ? 99 : 10, 5, WORDS,
		    ",\"wait\":[21],\"event\":22"); /* 4 */
	mix(b, a, 5);
	fixture_step(fixture, FIXTURE_QUEUE_2, 11, WORDS, ""); /* 5 */
	step(b);
	at = fixture_read(fixture, FIXTURE_QUEUE_2, 11, 0, BYTES); /* 6 */
	if (is(kind, "wrong"))
		b[7]++;
	fixture_check(fixture, at, 0, b, BYTES, "read");
	if (is(kind, "killed"))
		return;
	fixture_check(fixture, fixture->sequence, 10, a, BYTES, "final");
	fixture_check(fixture, fixture->sequence, 11, b, BYTES, "final");
	fixture_finish(fixture, window,
		       is(kind, "failed") ? "the recorder could not store it" : NULL);
}

/* A launch whose raw arguments are `block`; `args` are the members of its list. */
static void add_typed_launch(struct fixture_trace *fixture, int64_t function, const char *args,
			     const void *block, size_t bytes)
{
	char details[1024];

	snprintf(details, sizeof(details),
		 "{\"call\":\"clEnqueueNDRangeKernel\",\"global\":[64,2],\"local\":[8,1],"
		 "\"offset\":[0,4],\"args\":[%s],\"wait\":[21],\"event\":22}",
		 args);
	fixture_command(fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
						   .queue = FIXTURE_QUEUE,
						   .object = function,
						   .blob = fixture_blob(fixture, block, bytes),
						   .details = details });
}

static void add_typed(struct fixture_trace *fixture)
{
	const struct {
		float a, vector[2];
		int32_t n;
		double real;
		uint64_t pointer;
		uint32_t rest[10];
	} block = { 2.5f, { 1, -0.5f }, -3, 1e300, 0x7fff12345678, { 1, 2, 3 } };

	fixture_objects(fixture);
	fixture_memory(fixture, 10, NULL, BYTES);
	fixture_object(fixture, TS_OBJECT_MEMORY, 11, FIXTURE_CONTEXT, NULL, 32, 0,
		       "\"image\":{\"type\":\"2d\",\"order\":\"rgba\",\"data\":\"unorm_int8\","
		       "\"size\":[4,2,1],\"element\":4,\"row\":16}");
	fixture_object(
		fixture, TS_OBJECT_FUNCTION, 30, FIXTURE_MODULE, "typed", 0, 0,
		"\"args\":5,\"parameters\":[{\"name\":\"x\",\"type\":\"float*\"},"
		"{\"name\":\"a\",\"type\":\"float\"},{\"name\":\"v\",\"type\":\"float2\"},"
		"{\"name\":\"n\",\"type\":\"int\"},{\"name\":\"local\",\"type\":\"uint*\"}]");
	fixture_object(fixture, TS_OBJECT_FUNCTION, 31, FIXTURE_MODULE, "untyped", 0, 0,
		       "\"args\":6");
	fixture_begin(fixture, 1);
	fixture_step(fixture, FIXTURE_QUEUE, 10, WORDS, ",\"event\":21");
	add_typed_launch(
		fixture, 30,
		"{\"kind\":\"memory\",\"object\":10,\"offset\":128,\"bytes\":64,"
		"\"access\":\"read\"},{\"kind\":\"bytes\",\"at\":0,\"size\":4},"
		"{\"kind\":\"bytes\",\"at\":4,\"size\":8},"
		"{\"kind\":\"bytes\",\"at\":12,\"size\":4},{\"kind\":\"local\",\"size\":64}",
		&block, sizeof(block));
	add_typed_launch(
		fixture, 31,
		"{\"kind\":\"memory\",\"object\":0},{\"kind\":\"bytes\",\"at\":0,\"size\":4},"
		"{\"kind\":\"bytes\",\"at\":12,\"size\":4},{\"kind\":\"bytes\",\"at\":16,"
		"\"size\":8},{\"kind\":\"bytes\",\"at\":24,\"size\":8},"
		"{\"kind\":\"bytes\",\"at\":32,\"size\":40}",
		&block, sizeof(block));
	fixture_finish(fixture, 1, NULL);
}

static void add_bound(struct fixture_trace *fixture)
{
	uint32_t blob = fixture_blob(fixture, "binary", 6);
	char details[96];

	fixture_objects(fixture);
	fixture_memory(fixture, 10, NULL, BYTES);
	snprintf(details, sizeof(details),
		 "\"from\":\"binary\",\"devices\":[1],\"binaries\":[{\"device\":1,\"blob\":%u}]",
		 (unsigned int)blob);
	for (int64_t module = 40; module < 60; module += 10) {
		fixture_object(fixture, TS_OBJECT_MODULE, module, FIXTURE_CONTEXT, NULL, 0, 0,
			       details);
		fixture_object(fixture, TS_OBJECT_FUNCTION, module + 1, module, "decode", 0, 0,
			       "\"args\":1");
		fixture_object(fixture, TS_OBJECT_FUNCTION, module + 2, module,
			       module == 40 ? "first" : "second", 0, 0, "\"args\":1");
	}
	fixture_begin(fixture, 1);
	fixture_step(fixture, FIXTURE_QUEUE, 10, WORDS, ",\"ambiguous\":true");
	fixture_finish(fixture, 1, NULL);
}

/* A launch on all of a memory, as step_. */
static int64_t add_launch(struct fixture_trace *fixture, int64_t function, int64_t memory,
			  const char *local)
{
	char details[512];

	snprintf(details, sizeof(details),
		 "{\"call\":\"clEnqueueNDRangeKernel\",\"global\":[%d],%s\"args\":"
		 "[{\"kind\":\"memory\",\"object\":%" PRId64 ",\"access\":\"both\"}]}",
		 WORDS, local, memory);
	return fixture_command(fixture, &(struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
								   .queue = FIXTURE_QUEUE,
								   .object = function,
								   .details = details });
}

static void add_unsupported(struct fixture_trace *fixture)
{
	static const char source[] = "kernel void broken(global uint *v) { this is no C }";
	uint32_t a[WORDS], b[WORDS];
	int64_t at;

	for (int i = 0; i < WORDS; i++)
		a[i] = b[i] = (uint32_t)i;
	fixture_objects(fixture);
	fixture_object(fixture, TS_OBJECT_MODULE, 30, FIXTURE_CONTEXT, NULL, 0,
		       fixture_blob(fixture, source, sizeof(source) - 1),
		       "\"from\":\"source\",\"options\":\"\",\"devices\":[1]");
	fixture_object(fixture, TS_OBJECT_FUNCTION, 31, 30, "broken", 0, 0, "\"args\":1");
	fixture_memory(fixture, 10, a, BYTES);
	fixture_memory(fixture, 11, b, BYTES);
	fixture_memory(fixture, 12, NULL, BYTES);
	fixture_memory(fixture, 13, NULL, BYTES);
	fixture_begin(fixture, 1);
	at = add_launch(fixture, FIXTURE_STEP, 10, ""); /* 2 */
	step(a);
	fixture_check(fixture, at, 10, a, BYTES, "each");
	at = add_launch(fixture, 31, 11, ""); /* 3, and 4 depends on it */
	fixture_check(fixture, at, 11, b, BYTES, "each");
	fixture_mix(fixture, FIXTURE_QUEUE, 12, 11, 5, WORDS, "");
	at = fixture_read(fixture, FIXTURE_QUEUE, 12, 0, BYTES); /* 5 */
	fixture_check(fixture, at, 0, b, BYTES, "read");
	fixture_write(fixture, FIXTURE_QUEUE, 11, 0, b, BYTES); /* 6: known again */
	add_launch(fixture, FIXTURE_STEP, 11, "");              /* 7 */
	step(b);
	at = fixture_read(fixture, FIXTURE_QUEUE, 11, 0, BYTES); /* 8 */
	fixture_check(fixture, at, 0, b, BYTES, "read");
	add_launch(fixture, FIXTURE_STEP, 13, "\"local\":[1048576],"); /* 9 */
	/* 10: the same kernel and sizes as 2 and 7, on a part that no device aligns so. */
	fixture_command(fixture,
			&(struct fixture_command){
				.kind = TS_COMMAND_LAUNCH,
				.queue = FIXTURE_QUEUE,
				.object = FIXTURE_STEP,
				.details = "{\"call\":\"clEnqueueNDRangeKernel\",\"global\":[64],"
					   "\"args\":[{\"kind\":\"memory\",\"object\":13,"
					   "\"offset\":4,\"bytes\":252,\"access\":\"both\"}]}" });
	fixture_check(fixture, fixture->sequence, 10, a, BYTES, "final");
	fixture_check(fixture, fixture->sequence, 11, b, BYTES, "final");
	fixture_check(fixture, fixture->sequence, 12, b, BYTES, "final");
	fixture_finish(fixture, 1, NULL);
}

static void add_contexts(struct fixture_trace *fixture)
{
	const uint32_t data[WORDS] = { 1, 2, 3 };

	fixture_objects(fixture);
	fixture_object(fixture, TS_OBJECT_CONTEXT, 20, 0, NULL, 0, 0, "\"devices\":[1]");
	fixture_object(fixture, TS_OBJECT_STREAM, 21, 20, NULL, 0, 0, "\"index\":2,\"device\":1");
	fixture_memory(fixture, 10, NULL, BYTES);
	fixture_memory(fixture, 11, NULL, BYTES);
	fixture_object(fixture, TS_OBJECT_MEMORY, 22, 20, NULL, BYTES, 0, "");
	fixture_begin(fixture, 1);
	fixture_write(fixture, 21, 22, 0, data, BYTES);
	fixture_step(fixture, FIXTURE_QUEUE, 10, WORDS, ",\"unknown\":true");
	fixture_finish(fixture, 1, NULL);
}

/* Sets the title of a terminal, and begins another line. */
#define CONTROL "\x1b]0;owned\x07\n\x1b[31mred"
#define CONTROL_JSON "\\u001b]0;owned\\u0007\\n\\u001b[31mred"

static void add_hostile(struct fixture_trace *fixture)
{
	fixture_objects(fixture);
	fixture_object(fixture, TS_OBJECT_FUNCTION, 30, FIXTURE_MODULE, "k" CONTROL, 0, 0,
		       "\"args\":1,\"parameters\":[{\"name\":\"" CONTROL_JSON
		       "\",\"type\":\"" CONTROL_JSON "\"}],\"unreplayable\":\"why " CONTROL_JSON
		       "\"");
	fixture_memory(fixture, 10, NULL, BYTES);
	fixture_memory(fixture, 11, NULL, BYTES);
	fixture_begin(fixture, 1);
	fixture_step(fixture, FIXTURE_QUEUE, 11, WORDS, "");
	add_launch(fixture, 30, 10, "");
	fixture_command(fixture, &(struct fixture_command){
					 .kind = TS_COMMAND_HOST,
					 .queue = FIXTURE_QUEUE_2,
					 .details = "{\"call\":\"call " CONTROL_JSON
						    "\",\"unreplayable\":\"" CONTROL_JSON "\"}" });
	fixture_finish(fixture, 1, NULL);
	fixture_begin(fixture, 2);
	fixture_finish(fixture, 2, "why " CONTROL_JSON);
}

/* ---- CUDA ---- */

static void add_cuda_copy(struct fixture_trace *fixture, int64_t queue, int64_t to,
			  int64_t to_offset, int64_t from, int64_t from_offset, int64_t bytes,
			  const char *details)
{
	fixture_command(fixture, &(struct fixture_command){ .kind = TS_COMMAND_COPY,
							    .queue = queue,
							    .object = to,
							    .offset = to_offset,
							    .other = from,
							    .other_offset = from_offset,
							    .bytes = bytes,
							    .details = details });
}

static void add_cuda_graph(struct fixture_trace *fixture)
{
	static const uint64_t block[2] = { CUDA_ARENA + 4096, 9 };

	cuda_graph(fixture, CUDA_GRAPH, 3);
	fixture_command(fixture,
			&(struct fixture_command){
				.kind = TS_COMMAND_LAUNCH,
				.queue = CUDA_GRAPH,
				.object = CUDA_KERNEL,
				.blob = fixture_blob(fixture, block, sizeof(block)),
				.details = "{\"node\":0,\"grid\":[8,1,1],\"block\":[64,1,1]}" });
	fixture_command(fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_FILL,
						   .queue = CUDA_GRAPH,
						   .object = CUDA_MEMORY,
						   .offset = 8192,
						   .bytes = 64,
						   .blob = fixture_blob(fixture, "\1", 1),
						   .details = "{\"node\":1,\"after\":[0]}" });
	fixture_command(fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_SYNC,
						   .queue = CUDA_GRAPH,
						   .details = "{\"node\":2,\"after\":[0,1]}" });
}

static void add_cuda_settings(struct fixture_trace *fixture)
{
	fixture_command(fixture,
			&(struct fixture_command){
				.kind = TS_COMMAND_SET,
				.object = CUDA_CONTEXT,
				.details = "{\"call\":\"cuCtxSetLimit\",\"what\":\"limit\","
					   "\"id\":0,\"value\":2048}" });
	fixture_command(fixture, &(struct fixture_command){
					 .kind = TS_COMMAND_SET,
					 .object = CUDA_KERNEL,
					 .details = "{\"call\":\"cuFuncSetAttribute\",\"what\":"
						    "\"attribute\",\"id\":8,\"value\":65536}" });
}

static void add_cuda(struct fixture_trace *fixture, bool is_cut)
{
	static const char content[4096] = "content";
	static const uint64_t pages[][2] = { { 0, 1 }, { 2 << 20, 2 } };
	int64_t open, last;

	cuda_objects(fixture);
	open = cuda_begin(fixture, 1, is_cut ? 3 : 2);
	cuda_piece(fixture, open, CUDA_MEMORY, 0, content, sizeof(content));
	add_cuda_settings(fixture);
	cuda_launch(
		fixture, CUDA_STREAM, CUDA_ARENA + 4096,
		",\"shared\":1024,\"cooperative\":true,"
		"\"attributes\":[[8,\"ffffffff\"],[4,\"020000000100000001000000\"],[99,\"00\"]]");
	cuda_launch(fixture, CUDA_LEGACY, 0x7f0000000010, "");
	cuda_piece(fixture, open, CUDA_VARIABLE, 0, content, 64);
	fixture_command(fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_ALLOC,
						   .object = CUDA_MEMORY,
						   .offset = 4 * CUDA_PAGE,
						   .bytes = CUDA_PAGE,
						   .details = "{\"call\":\"cuMemAlloc\"}" });
	add_cuda_copy(fixture, CUDA_STREAM, CUDA_MEMORY, 4 * CUDA_PAGE, CUDA_HOST_MEMORY, CUDA_HOST,
		      4096, "{\"call\":\"cuMemcpyHtoDAsync\"}");
	add_cuda_copy(fixture, CUDA_STREAM, CUDA_VARIABLE, 8, CUDA_MEMORY, 64, 16,
		      "{\"call\":\"cuMemcpyDtoDAsync\"}");
	add_cuda_graph(fixture);
	cuda_launch_graph(fixture, CUDA_STREAM, CUDA_GRAPH);
	cuda_record(fixture, CUDA_STREAM, 7);
	cuda_wait(fixture, CUDA_STREAM_2, 7);
	last = fixture_command(
		fixture, &(struct fixture_command){ .kind = TS_COMMAND_SYNC,
						    .object = CUDA_CONTEXT,
						    .details = "{\"call\":\"cuCtxSynchronize\","
							       "\"what\":\"context\"}" });
	cuda_pages(fixture, last, CUDA_MEMORY, pages, 2, "final");
	if (!is_cut)
		fixture_finish(fixture, 1, NULL);
}

int main(int argc, char **argv)
{
	struct fixture_trace fixture;
	const char *kind = argc > 2 ? argv[2] : "";

	if (argc != 3) {
		fprintf(stderr, "usage: make_stream OUT KIND\n");
		return 2;
	}
	fixture_open(&fixture, argv[1]);
	if (is(kind, "typed"))
		add_typed(&fixture);
	else if (is(kind, "bound"))
		add_bound(&fixture);
	else if (is(kind, "unsupported"))
		add_unsupported(&fixture);
	else if (is(kind, "contexts"))
		add_contexts(&fixture);
	else if (is(kind, "hostile"))
		add_hostile(&fixture);
	else if (is(kind, "cuda") || is(kind, "cuda-cut"))
		add_cuda(&fixture, is(kind, "cuda-cut"));
	else if (!is(kind, "nothing"))
		add_window(&fixture, kind, 1);
	if (is(kind, "two"))
		add_window(&fixture, kind, 2);
	if (is(kind, "processes")) {
		fixture_process(&fixture);
		fixture.generation = 1;
		add_window(&fixture, kind, 1);
	}
	fixture_close(&fixture);
	return 0;
}
