/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a recording while it goes on. Bytes move from rings to the journal, and from there to
 * chunks; what is read in that order may be there twice, but is never missing, and positions tell
 * what is there twice. snapshot_cut.c reads, this file decodes what it has read.
 */
#include "record/recording/snapshot.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tracesmith/schema.h>
#include <tracesmith/writer.h>

#include "base/memory.h"
#include "base/temporary.h"
#include "base/text.h"
#include "live/area.h"
#include "live/area_spool.h"
#include "record/decode/decoder.h"
#include "record/loop/counter_clock.h"
#include "record/recording/checkpoint_internal.h"
#include "record/recording/salvage.h"
#include "record/recording/snapshot_cut.h"
#include "sbt/continued.h"

/* What takes more than this is decoded into a file in $TMPDIR, not into memory. */
#define MEMORY_BYTES (UINT64_C(64) << 20)
/* The trace is read once: speed counts, not size. */
#define LEVEL 1

struct snapshot {
	const struct ts_snapshot_source *source;
	struct ts_snapshot_cut *cut;
	struct sbt_continued file;
	struct ts_writer *writer;
	struct ts_decoder *decoder;
	struct ts_text payload;
	struct ts_error *err;
};

/* ---- blocks ---- */

static int decode(struct snapshot *snapshot, const struct ts_block *block, const void *payload)
{
	return ts_decoder_block(snapshot->decoder, block, payload, snapshot->err);
}

/* As a sink. */
static int decode_block(void *context, struct ts_block *block, const void *payload,
			struct ts_error *err)
{
	(void)err;
	return decode(context, block, payload);
}

static int decode_open(struct snapshot *snapshot)
{
	const struct ts_block_open *open = &snapshot->cut->open;
	const struct ts_block block = { .type = TS_BLOCK_OPEN, .bytes = sizeof(*open) };

	return decode(snapshot, &block, open);
}

/* The blocks of a recording's journal, as its recorder decodes them. */
static int decode_journal(struct snapshot *snapshot)
{
	struct ts_snapshot_cut *cut = snapshot->cut;
	uint64_t offset = 0;
	int rc = TS_OK;

	while (!rc && offset < cut->journal_end) {
		uint64_t from = offset;
		struct ts_block block;

		rc = ts_journal_read(cut->journal_fd, &offset, &block, &snapshot->payload,
				     snapshot->err);
		if (rc == TS_EFORMAT) {
			ts_decoder_damage(snapshot->decoder, offset - from);
			rc = TS_OK;
		} else if (!rc) {
			rc = decode(snapshot, &block, snapshot->payload.data);
		}
	}
	/* It does not end earlier than before. */
	return rc == TS_ENOTFOUND ? ts_error_set(snapshot->err, TS_EIO, "journal '%s.journal': %s",
						 snapshot->source->name, "it became shorter")
				  : rc;
}

/* The part of a block that the journal does not have; false: it has all of it. */
static bool trim(const struct ts_snapshot_cut *cut, struct ts_block *block, const char **payload)
{
	const struct ts_area_positions *area = ts_positions_find(&cut->positions, block->area);
	uint64_t known = 0;

	if (area && block->type == TS_BLOCK_DICTIONARY) {
		known = area->dictionary;
		if (block->to <= known)
			return false;
	} else if (area && block->type == TS_BLOCK_RING && block->ring < area->ring_count &&
		   area->rings[block->ring].known) {
		known = area->rings[block->ring].position;
		if (block->flags & TS_RING_START || block->to < known ||
		    (block->bytes && block->to == known))
			return false;
	} else if (area && block->type == TS_BLOCK_AREA) {
		return !area->announced;
	}
	if (block->from >= known || !block->bytes)
		return true;
	/* Both count whole records. */
	if ((known - block->from) % 8)
		return false;
	/* The journal also knows which thread goes on here. */
	if (block->flags & TS_RING_THREAD)
		*payload += sizeof(struct ts_live_thread_record);
	*payload += known - block->from;
	block->bytes = (uint32_t)(block->to - known);
	block->flags &= (uint16_t)~TS_RING_THREAD;
	block->from = known;
	return true;
}

static int decode_tail(struct snapshot *snapshot, struct ts_journal *journal)
{
	uint64_t offset = 0, end = ts_journal_bytes(journal);
	int rc = TS_OK;

	while (!rc && offset < end) {
		struct ts_block block;
		const char *payload;

		rc = ts_journal_read(ts_journal_fd(journal), &offset, &block, &snapshot->payload,
				     snapshot->err);
		payload = snapshot->payload.data;
		if (!rc && trim(snapshot->cut, &block, &payload))
			rc = decode(snapshot, &block, payload);
	}
	return rc;
}

/* Loss counters, and spans that are still open. */
static int decode_ends(struct snapshot *snapshot)
{
	struct ts_block_sink sink = { decode_block, snapshot };
	struct ts_snapshot_cut *cut = snapshot->cut;
	int rc = TS_OK;

	for (size_t i = 0; i < cut->area_count && !rc; i++)
		rc = ts_salvage_end(&sink, &cut->areas[i].control, cut->areas[i].pid,
				    snapshot->err);
	return rc;
}

/* Areas that the journal of a killed recorder knows, and that no longer exist. */
static int decode_gone(struct snapshot *snapshot)
{
	const struct ts_snapshot_cut *cut = snapshot->cut;
	struct ts_block_loss loss = { .count = TS_ABSENT,
				      .what = "events",
				      .reason = TS_RECORDING_AREA_GONE };
	int rc = TS_OK;

	loss.first_counter = loss.last_counter = cut->open.started_counter;
	for (size_t i = 0; i < cut->positions.count && !rc; i++) {
		const struct ts_area_positions *area = &cut->positions.areas[i];
		const struct ts_block block = { .type = TS_BLOCK_LOSS,
						.bytes = sizeof(loss),
						.area = area->area };

		if (!area->ended && !ts_snapshot_cut_has(cut, area->area))
			rc = decode(snapshot, &block, &loss);
	}
	return rc;
}

/* So that all events lie between two anchors. */
static int decode_anchor(struct snapshot *snapshot)
{
	const struct ts_block_open *open = &snapshot->cut->open;
	const struct ts_clocks clocks = { .kind = (enum ts_live_clock)open->clock,
					  .mult = open->counter_mult };
	const struct ts_block block = { .type = TS_BLOCK_CLOCK,
					.bytes = sizeof(struct ts_block_clock) };
	struct ts_block_clock clock;

	ts_clocks_anchor(&clocks, &clock);
	return decode(snapshot, &block, &clock);
}

static int decode_all(struct snapshot *snapshot)
{
	struct ts_snapshot_cut *cut = snapshot->cut;
	/* It is unknown whether a killed one ran during this boot. */
	bool is_running = cut->journal_fd < 0 || snapshot->source->recorder;
	int rc = cut->journal_fd < 0 ? decode_open(snapshot) : decode_journal(snapshot);

	if (!rc)
		rc = decode_tail(snapshot, cut->preambles);
	if (!rc)
		rc = decode_tail(snapshot, cut->rings);
	if (!rc)
		rc = decode_ends(snapshot);
	if (!rc)
		rc = is_running ? decode_anchor(snapshot) : decode_gone(snapshot);
	if (!rc && ts_decoder_finish(snapshot->decoder))
		rc = ts_writer_status(snapshot->writer, snapshot->err);
	return rc ? rc : ts_writer_finish(snapshot->writer, snapshot->err);
}

/* ---- the trace ---- */

static int open_scratch(struct snapshot *snapshot)
{
	const struct ts_snapshot_cut *cut = snapshot->cut;
	uint64_t bytes = cut->journal_end + ts_journal_bytes(cut->rings) + cut->spooled_bytes;

	if (bytes <= MEMORY_BYTES)
		snapshot->file.fd = memfd_create("tracesmith", MFD_CLOEXEC);
	return snapshot->file.fd >= 0 ? TS_OK
				      : ts_temporary_open(&snapshot->file.fd, snapshot->err);
}

static int open_writer(struct snapshot *snapshot)
{
	const struct ts_block_open *open = &snapshot->cut->open;
	const struct ts_writer_options options = { .size = sizeof(options),
						   .level = LEVEL,
						   .trace_id = open->trace_id };
	struct ts_writer_ids ids;
	char path[64];

	static_assert(sizeof(ids.next) == sizeof(open->next_ids), "as many as OPEN has");
	memcpy(ids.next, open->next_ids, sizeof(ids.next));
	if (snapshot->file.base_bytes)
		return sbt_writer_continue(&snapshot->writer, &snapshot->file, &ids, &options,
					   snapshot->err);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", snapshot->file.fd);
	return ts_writer_open(&snapshot->writer, path, &options, snapshot->err);
}

static int open_decoder(struct snapshot *snapshot, struct ts_spools *spools)
{
	const struct ts_decoder_options options = {
		.faults = &snapshot->cut->faults,
		.is_snapshot = snapshot->source->recorder != 0,
		.spools = spools,
	};
	const char *slash = strrchr(snapshot->source->name, '/');
	int rc = ts_decoder_new(&snapshot->decoder, &options, snapshot->err);

	if (!rc && ts_decoder_set_writer(snapshot->decoder, snapshot->writer, false,
					 slash ? slash + 1 : snapshot->source->name))
		rc = ts_writer_status(snapshot->writer, snapshot->err);
	return rc;
}

static int write_trace(struct snapshot *snapshot)
{
	TS_AUTO(ts_spools) spools = NULL;
	int rc = ts_salvage_spools(&spools, snapshot->err);

	if (!rc && snapshot->source->directory_fd >= 0)
		rc = ts_spools_add_directory(spools, snapshot->source->directory_fd, snapshot->err);
	if (!rc)
		rc = open_scratch(snapshot);
	if (!rc)
		rc = open_writer(snapshot);
	if (!rc)
		rc = open_decoder(snapshot, spools);
	if (!rc)
		rc = decode_all(snapshot);
	ts_decoder_free(TS_STEAL(snapshot->decoder));
	ts_writer_close(TS_STEAL(snapshot->writer));
	return rc;
}

static int open_cut(struct ts_reader **ret_reader, const struct ts_snapshot_source *source,
		    struct ts_snapshot_cut *cut, struct ts_error *err)
{
	struct snapshot snapshot = { .source = source,
				     .cut = cut,
				     .file = { .path = source->name,
					       .base_fd = cut->trace_fd,
					       .base_bytes = cut->open.trace_bytes,
					       .fd = -1 },
				     .err = err };
	int rc = write_trace(&snapshot);

	if (!rc)
		rc = sbt_reader_open_continued(ret_reader, &snapshot.file, err);
	if (snapshot.file.fd >= 0)
		close(snapshot.file.fd);
	ts_text_release(&snapshot.payload);
	return rc;
}

/* ---- snapshots ---- */

int ts_snapshot_recording(struct ts_reader **ret_reader, const struct ts_snapshot_source *source,
			  struct ts_error *err)
{
	struct ts_error unused_err = { 0 };
	struct ts_snapshot_cut cut;
	int rc;

	err = err ? err : &unused_err;
	rc = ts_snapshot_cut_recording(&cut, source, err);
	if (!rc)
		rc = open_cut(ret_reader, source, &cut, err);
	/* The bytes that they refer to are released when a checkpoint has them. */
	if (!rc && cut.spooled_bytes && source->recorder && !source->accept_gaps &&
	    !ts_snapshot_cut_is_current(&cut)) {
		ts_reader_close(*ret_reader);
		rc = ts_error_set(err, TS_EBUSY, "trace '%s': a checkpoint was made meanwhile",
				  source->name);
	}
	ts_snapshot_cut_release(&cut);
	return rc;
}

int ts_snapshot_areas(struct ts_reader **ret_reader, const struct ts_snapshot_source *source,
		      struct ts_error *err)
{
	struct ts_error unused_err = { 0 };
	struct ts_snapshot_cut cut;
	int rc;

	err = err ? err : &unused_err;
	rc = ts_snapshot_cut_areas(&cut, source, err);
	if (!rc)
		rc = open_cut(ret_reader, source, &cut, err);
	ts_snapshot_cut_release(&cut);
	return rc;
}
