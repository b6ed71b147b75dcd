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
 */
#include "../unit/replay/replay_made.h"

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
static void add_write(struct made_trace *made, const char *kind, const uint32_t *data)
{
	struct made_command command = { .kind = TS_COMMAND_COPY,
					.queue = MADE_QUEUE,
					.object = 10,
					.bytes = BYTES,
					.details = "{\"call\":\"clEnqueueWriteBuffer\"}" };

	if (is(kind, "bad-hash")) {
		/* A row with a wrong hash of its bytes; its chunk is valid all the same. */
		uint32_t other[WORDS];

		memcpy(other, data, sizeof(other));
		other[3]++;
		command.blob = ts_writer_blob_piece(made->writer, 0, ts_hash64(other, BYTES), BYTES,
						    data, BYTES);
	} else {
		command.blob = is(kind, "no-blob") ? 4711 : made_blob(made, data, BYTES);
	}
	if (is(kind, "beyond"))
		command.offset = 4;
	made_command(made, &command);
}

/* The commands of a window; numbers in comments are their sequence numbers. */
static void add_window(struct made_trace *made, const char *kind, int64_t window)
{
	uint32_t a[WORDS], b[WORDS];
	int64_t at;

	for (int i = 0; i < WORDS; i++) {
		a[i] = (uint32_t)i * 7 + (uint32_t)window;
		b[i] = (uint32_t)i;
	}
	made_objects(made);
	made_memory(made, 10, NULL, BYTES);
	made_memory(made, 11, b, BYTES);
	made_begin(made, window); /* 1 */
	if (is(kind, "empty"))
		return;
	add_write(made, kind, a); /* 2 */
	if (is(kind, "gap"))
		made->sequence++;
	at = made_step(made, MADE_QUEUE, 10, WORDS, ",\"event\":21"); /* 3 */
	step(a);
	made_check(made, at, 10, a, BYTES, "each");
	if (is(kind, "native"))
		made_command(
			made,
			&(struct made_command){
				.kind = TS_COMMAND_HOST,
				.queue = MADE_QUEUE,
				.details =
					"{\"call\":\"clEnqueueNativeKernel\","
					"\"unreplayable\":\"native kernels are not captured\"}" });
	made_mix(made, MADE_QUEUE_2, 11, is(kind, "no-memory") ? 99 : 10, 5, WORDS,
		 ",\"wait\":[21],\"event\":22"); /* 4 */
	mix(b, a, 5);
	made_step(made, MADE_QUEUE_2, 11, WORDS, ""); /* 5 */
	step(b);
	at = made_read(made, MADE_QUEUE_2, 11, 0, BYTES); /* 6 */
	if (is(kind, "wrong"))
		b[7]++;
	made_check(made, at, 0, b, BYTES, "read");
	if (is(kind, "killed"))
		return;
	made_check(made, made->sequence, 10, a, BYTES, "final");
	made_check(made, made->sequence, 11, b, BYTES, "final");
	made_finish(made, window, is(kind, "failed") ? "the recorder could not store it" : NULL);
}

int main(int argc, char **argv)
{
	struct made_trace made;
	const char *kind = argc > 2 ? argv[2] : "";

	if (argc != 3) {
		fprintf(stderr, "usage: make_stream OUT KIND\n");
		return 2;
	}
	made_open(&made, argv[1]);
	if (!is(kind, "nothing"))
		add_window(&made, kind, 1);
	if (is(kind, "two"))
		add_window(&made, kind, 2);
	if (is(kind, "processes")) {
		made_process(&made);
		made.generation = 1;
		add_window(&made, kind, 1);
	}
	made_close(&made);
	return 0;
}
