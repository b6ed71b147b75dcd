/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a journal: read block by block, decoded into a trace, with a decoder checkpoint and
 * restore halfway. Must not crash, leak, loop or use more memory than the file justifies, and the
 * resulting trace must be valid. The mutator fixes checksums, because random changes would never
 * get past them. The last area has a spool, to which records may refer.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#include "base/text.h"
#include "lib/fuzz_check.h"
#include "lib/journal_stamp.h"
#include "record/decode/decoder.h"

/* ---- decoding ---- */

struct run {
	struct memory_file *journal, *trace;
	struct ts_writer *writer;
	struct ts_decoder *decoder;
	struct ts_decoder *next; /* its state is being restored */
	struct ts_block_open open;
	uint64_t half;
	struct ts_spools *spools;
};

/* ---- the spool ---- */

static char spool_folder[64], spool_path[160];
static int spool_directory = -1;

static void remove_spool(void)
{
	if (spool_path[0])
		unlink(spool_path);
	spool_path[0] = 0;
}

static void remove_folder(void)
{
	remove_spool();
	rmdir(spool_folder);
}

static void make_folder(void)
{
	snprintf(spool_folder, sizeof(spool_folder), "/tmp/ts_fuzz_spool_XXXXXX");
	check(mkdtemp(spool_folder) != NULL, "cannot make a folder");
	spool_directory = open(spool_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(spool_directory >= 0, "cannot open a folder");
	atexit(remove_folder);
}

/* A spool of zeros. */
static void make_spool(const struct ts_live_control *control)
{
	struct ts_live_spool header = { .version = TS_SPOOL_VERSION,
					.header_bytes = TS_SPOOL_HEADER_BYTES,
					.area_id = control->area_id,
					.bytes = TS_SPOOL_LEAST };
	int fd;

	memcpy(header.magic, TS_SPOOL_MAGIC, sizeof(header.magic));
	remove_spool();
	snprintf(spool_path, sizeof(spool_path), "%s/%" PRIu32 "-%" PRIu64 "-%016" PRIx64 ".spool",
		 spool_folder, control->pid, control->start_time, control->area_id);
	fd = open(spool_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0 && pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
		      !ftruncate(fd, TS_SPOOL_HEADER_BYTES + TS_SPOOL_LEAST),
	      "cannot make a spool");
	close(fd);
}

static void window_closed(void *context, uint64_t area, const struct ts_block_window *opened,
			  const struct ts_block_window *closed)
{
}

static struct ts_decoder *new_decoder(struct run *run)
{
	struct ts_decoder_options options = { .window_closed = window_closed,
					      .spools = run->spools };
	struct ts_decoder *decoder;

	check(ts_decoder_new(&decoder, &options, NULL) == 0, "no memory for a decoder");
	ts_decoder_set_writer(decoder, run->writer, false, "fuzz");
	return decoder;
}

static int give_next(void *context, struct ts_block *block, const void *payload,
		     struct ts_error *err)
{
	struct run *run = context;

	return ts_decoder_block(run->next, block, payload, err);
}

/* Like a successor: a new decoder continues with the state of the old one. */
static void change_decoder(struct run *run)
{
	struct ts_block block = { .type = TS_BLOCK_OPEN, .bytes = sizeof(run->open) };
	struct ts_block_sink sink = { .append = give_next, .context = run };
	struct ts_decoder_counts before, after;

	check(ts_decoder_seal(run->decoder) == 0 && ts_writer_flush(run->writer) == 0,
	      "a sealed decoder has no rows that can be written");
	run->open.trace_bytes = ts_writer_bytes(run->writer);
	run->next = new_decoder(run);
	check(ts_decoder_block(run->next, &block, &run->open, NULL) == 0, "OPEN is refused");
	check(ts_decoder_save_state(run->decoder, &sink, NULL) == 0, "the state is refused");
	ts_decoder_counts(run->decoder, &before);
	ts_decoder_counts(run->next, &after);
	before.measured = before.lost_by_buffers = 0; /* each decoder counts its own */
	check(memcmp(&before, &after, sizeof(before)) == 0, "the state has other counts");
	ts_decoder_free(run->decoder);
	run->decoder = run->next;
	ts_spools_commit(run->spools, true);
	ts_spools_release(run->spools);
}

/* False if the journal cannot be used at all. */
static bool decode_block(struct run *run, const struct ts_block *block, struct ts_text *payload,
			 bool first)
{
	struct ts_error err = { 0 };

	/* Those of earlier versions are shorter. */
	if (first && block->type == TS_BLOCK_OPEN &&
	    ts_journal_take_open(payload->data, block->bytes, &run->open)) {
		run->open.trace_bytes = 0; /* there is no trace that it could belong to */
		memcpy(payload->data, &run->open, TS_MIN(block->bytes, sizeof(run->open)));
	}
	if (block->type == TS_BLOCK_AREA && block->bytes >= sizeof(struct ts_block_area))
		make_spool(&((const struct ts_block_area *)(const void *)payload->data)->control);
	if (ts_decoder_block(run->decoder, block, payload->data, &err) == 0)
		return true;
	check(err.code && err.message[0], "an error without a message");
	check(first, "a block is refused");
	return false;
}

static bool decode_journal(struct run *run)
{
	struct ts_text payload = { 0 };
	struct ts_block block;
	uint64_t offset = 0;
	bool good = true, first = true, changed = false;

	while (good) {
		uint64_t before = offset;
		int result = ts_journal_read(run->journal->fd, &offset, &block, &payload, NULL);

		if (result == TS_ENOTFOUND)
			break;
		check(result == 0 || result == TS_EFORMAT, "reading fails");
		check(offset > before, "reading does not go on");
		if (result) {
			ts_decoder_damage(run->decoder, offset - before);
			continue;
		}
		good = decode_block(run, &block, &payload, first);
		first = false;
		if (good && !changed && offset > run->half) {
			change_decoder(run);
			changed = true;
		}
	}
	ts_text_release(&payload);
	return good && !first;
}

static void print_finding(void *context, const struct ts_verify_finding *finding)
{
	fprintf(stderr, "chunk %llu: %s\n", (unsigned long long)finding->chunk, finding->message);
}

static void run_once(struct run *run)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	bool good;

	check(ts_writer_open(&run->writer, run->trace->path, &options, NULL) == 0,
	      "cannot make a trace");
	check(ts_spools_new(&run->spools, true, NULL) == 0 &&
		      ts_spools_add_directory(run->spools, spool_directory, NULL) == 0,
	      "no memory for spools");
	run->decoder = new_decoder(run);
	good = decode_journal(run);
	if (good) {
		check(ts_decoder_finish(run->decoder) == 0, "it does not come to its end");
		check(ts_writer_finish(run->writer, NULL) == 0, "the trace is not finished");
	}
	ts_decoder_free(run->decoder);
	ts_spools_free(run->spools);
	ts_writer_close(run->writer);
	remove_spool();
	if (good)
		check(ts_verify(run->trace->path, print_finding, NULL, NULL, NULL) == 0,
		      "the trace is incomplete");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct memory_file journal = { .fd = -1 }, trace = { .fd = -1 };
	struct run run = { .journal = &journal, .trace = &trace, .half = size / 2 };

	if (journal.fd < 0) {
		memory_file_open(&journal, "journal");
		memory_file_open(&trace, "trace");
		make_folder();
	}
	memory_file_set(&journal, data, size);
	run_once(&run);
	return 0;
}

/* ---- mutation ---- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	if (LLVMFuzzerMutate)
		size = LLVMFuzzerMutate(data, size, max_size);
	/* Sometimes a wrong checksum is to be tested. */
	if (seed % 16)
		journal_stamp(data, size);
	return size;
}
