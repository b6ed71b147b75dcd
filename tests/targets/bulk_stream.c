/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command stream with large blobs, and the check of its trace: every command whose call returned
 * is there, once and in order, with its content.
 *
 *	bulk_stream write ORACLE COUNT     writes COUNT copies; ORACLE has how many calls returned
 *	bulk_stream check ORACLE TRACE     prints how many are in the trace
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tracesmith/reader.h>
#include <tracesmith/replay.h>

#define MOST_BYTES ((size_t)2 << 20)

struct oracle {
	uint64_t returned;
	uint64_t is_done;
	uint64_t pid;
};

static int complain(const char *what, uint64_t number)
{
	fprintf(stderr, "bulk_stream: %s %" PRIu64 "\n", what, number);
	return 1;
}

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return value ^ value >> 27;
}

/* Some pass through the ring, most through the spool; some repeat, some compress. */
static size_t make_content(uint64_t number, uint64_t *words)
{
	size_t bytes = number % 5 == 0 ? 8 + mix(number) % 20000
				       : 32768 + mix(number) % MOST_BYTES / 2;
	uint64_t seed = number % 7 == 0 ? 7 : number;

	for (size_t i = 0; i < (bytes + 7) / 8; i++)
		words[i] = number % 3 == 0 ? seed + i / 512 : mix(seed * 1000003 + i);
	return bytes;
}

/* ---- writing ---- */

static struct oracle *map_oracle(const char *path, int flags)
{
	int fd = open(path, flags, 0600);
	void *mapped;

	if (fd < 0 || ((flags & O_CREAT) && ftruncate(fd, sizeof(struct oracle))))
		exit(complain("cannot open the oracle", 0));
	mapped = mmap(NULL, sizeof(struct oracle), PROT_READ | (flags & O_RDWR ? PROT_WRITE : 0),
		      MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		exit(complain("cannot map the oracle", 0));
	return mapped;
}

static uint64_t put(unsigned int kind, uint64_t blob, const char *details)
{
	struct ts_replay_command command = { .size = sizeof(command),
					     .kind = kind,
					     .offset = INT64_MIN,
					     .other_offset = INT64_MIN,
					     .bytes = INT64_MIN,
					     .blob = blob,
					     .details = details };

	return ts_replay_command(&command);
}

static int write_stream(struct oracle *oracle, uint64_t count)
{
	uint64_t *words = malloc(MOST_BYTES);
	char details[64];

	if (!words || !ts_replay_lock())
		return complain("nobody records", 0);
	put(TS_COMMAND_OPEN, 0, "{\"window\":1}");
	ts_replay_unlock();
	oracle->pid = (uint64_t)getpid();
	for (uint64_t i = 1; i <= count; i++) {
		size_t bytes = make_content(i, words);
		uint64_t blob, sequence;

		snprintf(details, sizeof(details), "{\"i\":%" PRIu64 "}", i);
		if (!ts_replay_lock())
			return complain("broken before", i);
		blob = ts_replay_blob(words, bytes);
		sequence = put(TS_COMMAND_COPY, blob, details);
		ts_replay_unlock();
		if (!blob || !sequence)
			return complain("broken at", i);
		__atomic_store_n(&oracle->returned, i, __ATOMIC_RELEASE);
	}
	if (!ts_replay_lock())
		return complain("broken after", count);
	put(TS_COMMAND_CLOSE, 0, "{\"window\":1}");
	ts_replay_unlock();
	__atomic_store_n(&oracle->is_done, 1, __ATOMIC_RELEASE);
	return 0;
}

/* ---- checking ---- */

struct check {
	struct ts_reader *reader;
	uint64_t copies, lost;
	int64_t blobs[65536]; /* by number of the copy */
};

static int take_command(struct check *check, const struct ts_command_row *row)
{
	const char *details = ts_reader_string(check->reader, row->details).data;
	uint64_t number = strncmp(details, "{\"i\":", 5) ? 0 : strtoull(details + 5, NULL, 10);

	if (row->kind != TS_COMMAND_COPY)
		return 0;
	if (number != ++check->copies || number >= 65536)
		return complain("not the next copy:", number);
	check->blobs[number] = row->blob;
	return 0;
}

static int take_loss(struct check *check, const struct ts_loss_row *row)
{
	const char *what = ts_reader_string(check->reader, row->what).data;

	if (strcmp(what, "blobs") != 0 && strcmp(what, "commands") != 0)
		return 0;
	check->lost += row->count > 0 ? (uint64_t)row->count : 0;
	fprintf(stderr, "%s: %s\n", what, ts_reader_string(check->reader, row->reason).data);
	return 0;
}

static int take_chunk(struct check *check, struct ts_batch *batch, size_t chunk)
{
	unsigned int table = ts_reader_chunk(check->reader, chunk)->table;
	int code = 0;

	if (table != TS_TABLE_COMMAND && table != TS_TABLE_LOSS)
		return 0;
	if (ts_batch_read(batch, chunk, TS_MASK_ALL, NULL))
		return complain("cannot read chunk", chunk);
	for (uint32_t i = 0; i < batch->rows && !code; i++) {
		union {
			struct ts_command_row command;
			struct ts_loss_row loss;
		} row;

		ts_batch_row(batch, i, &row);
		code = table == TS_TABLE_COMMAND ? take_command(check, &row.command)
						 : take_loss(check, &row.loss);
	}
	return code;
}

static int check_content(const struct check *check, uint64_t number, uint64_t *words, char *back)
{
	size_t bytes = make_content(number, words);
	uint64_t found = 0;

	if (!check->blobs[number])
		return complain("no content of copy", number);
	if (ts_reader_blob_size(check->reader, check->blobs[number], &found, NULL) ||
	    found != bytes ||
	    ts_reader_blob_read(check->reader, check->blobs[number], 0, back, bytes, NULL))
		return complain("damaged or cut content of copy", number);
	return memcmp(back, words, bytes) ? complain("other content of copy", number) : 0;
}

static int check_trace(const struct oracle *oracle, const char *path)
{
	uint64_t *words = malloc(MOST_BYTES), missing = 0;
	struct check *check = calloc(1, sizeof(*check));
	char *back = malloc(MOST_BYTES);
	struct ts_error err = { 0 };
	struct ts_batch *batch;
	int code = 0;

	if (!words || !check || !back || ts_reader_open(&check->reader, path, &err) ||
	    ts_batch_new(&batch, check->reader, &err))
		return complain(err.message, 0);
	for (size_t i = 0; i < ts_reader_chunk_count(check->reader) && !code; i++)
		code = take_chunk(check, batch, i);
	for (uint64_t i = 1; i <= check->copies && !code; i++) {
		/* What is counted as lost may lack its content. */
		if (!check->blobs[i])
			missing++;
		else
			code = check_content(check, i, words, back);
	}
	if (!code && check->copies < oracle->returned)
		code = complain("a call returned that is not there:", check->copies + 1);
	/* Each copy has its own blob. A blob may be lost without its command being there. */
	if (!code && missing > check->lost)
		code = complain("contents missing and not counted:", missing - check->lost);
	printf("copies %" PRIu64 " missing %" PRIu64 " lost %" PRIu64 "\n", check->copies, missing,
	       check->lost);
	return code;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "write"))
		return write_stream(map_oracle(argv[2], O_RDWR | O_CREAT | O_TRUNC),
				    strtoull(argv[3], NULL, 10));
	if (argc == 4 && !strcmp(argv[1], "check"))
		return check_trace(map_oracle(argv[2], O_RDONLY), argv[3]);
	fprintf(stderr, "usage: bulk_stream write|check ORACLE COUNT|TRACE\n");
	return 2;
}
