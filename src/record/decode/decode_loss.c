/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts for every event that is missing from the trace. Losses of a ring are summed up and
 * reported at intervals, so that a lagging recorder does not fill its trace with loss rows.
 */
#include "record/decode/decode_internal.h"

static const struct loss_text {
	const char *what, *reason;
	bool of_events;
} losses[LOSS_COUNT] = {
	[LOSS_DROPPED] = { "events", "ring full: the recorder lagged", true },
	[LOSS_OVERWRITTEN] = { "events", "overwritten before it was recorded", true },
	[LOSS_DISCARDED] = { "events", "disk full, or the recording reached its limit", true },
	[LOSS_WITHHELD] = { "events", "stored before --redact was in effect: they may have texts",
			    true },
	[LOSS_JOURNAL] = { "events", "the journal is damaged there", true },
	[LOSS_DAMAGED] = { "events", "the ring is damaged", true },
	[LOSS_UNKNOWN_EVENT] = { "events", "unknown kind of event", true },
	[LOSS_UNKNOWN_RECORD] = { "records", "unknown kind of record", false },
	[LOSS_END_ALONE] = { "events", "end without begin", true },
	[LOSS_TOO_DEEP] = { "events", "too many open spans", true },
	[LOSS_NO_TIME] = { "events", "a device command without a time", true },
	[LOSS_BAD_BLOB] = { "blobs", "its pieces are inconsistent", false },
	[LOSS_MISSING_BLOB] = { "blobs", "a command or an object refers to an incomplete blob",
				false },
	[LOSS_GONE_BLOB] = { "blobs", "their bytes in shared memory are gone", false },
	[LOSS_BAD_DETAILS] = { "details", "not a JSON object", false },
	[LOSS_MISSING_OBJECT] = { "objects", "a command or an object refers to an unknown object",
				  false },
	[LOSS_UNNAMED_FRAME] = { "frames", "the dictionary is full: their functions have no name",
				 false },
	[LOSS_TOO_MANY_STACKS] = { "frames", "too many different stacks for one file", false },
	[LOSS_MISSING_STACK] = { "stacks", "an event or a stack refers to a missing stack", false },
	[LOSS_LATE_TORCH_TIME] = { "device times", "came after the row was written", false },
	[LOSS_TOO_MANY_OBJECTS] = { "objects", "too many live objects", false },
};

static int64_t as_count(uint64_t count)
{
	return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

bool decode_has_lost_state(const struct ts_decoder *decoder, const struct decode_area *area)
{
	return decoder->lost_state && !area->has_state;
}

void decode_lose(struct ts_decoder *decoder, struct decode_ring *ring, enum decode_loss why,
		 uint64_t count, int64_t from_ns, int64_t to_ns)
{
	struct decode_lost *lost = &ring->lost[why];

	if (count == 0)
		return;
	if (lost->count == 0) {
		lost->first_ns = from_ns;
		lost->last_ns = to_ns;
	}
	lost->count = count > UINT64_MAX - lost->count ? UINT64_MAX : lost->count + count;
	lost->first_ns = TS_MIN(lost->first_ns, from_ns);
	lost->last_ns = TS_MAX(lost->last_ns, to_ns);
	ring->has_losses = true;
	if (losses[why].of_events)
		decoder->counts.lost += count;
	if (why == LOSS_DROPPED || why == LOSS_OVERWRITTEN)
		decoder->counts.lost_by_buffers += count;
}

void decode_lose_unknown(struct ts_decoder *decoder, struct decode_area *area)
{
	if (!area->has_unknown_loss)
		decode_loss_row(decoder, area->process, 0, losses[LOSS_JOURNAL].what,
				losses[LOSS_JOURNAL].reason, TS_ABSENT, decoder->now_ns,
				decoder->now_ns);
	area->has_unknown_loss = true;
}

void decode_loss_row(struct ts_decoder *decoder, const struct decode_process *process,
		     int64_t thread, const char *what, const char *reason, int64_t count,
		     int64_t from_ns, int64_t to_ns)
{
	struct ts_loss_row row = ts_loss_none;

	row.start = from_ns;
	row.duration = to_ns > from_ns ? to_ns - from_ns : 0;
	row.source = decode_source_of(decoder, process);
	row.process = process ? process->id : 0;
	row.thread = thread;
	row.what = decode_text(decoder, what);
	row.reason = decode_text(decoder, reason);
	row.count = count;
	ts_writer_add(decoder->writer, TS_TABLE_LOSS, &row, NULL);
}

void decode_report_ring(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_ring *ring)
{
	if (!ring->has_losses)
		return;
	if (ring->thread)
		decode_use_thread(decoder, area, ring->thread);
	for (int i = 0; i < LOSS_COUNT; i++) {
		struct decode_lost *lost = &ring->lost[i];

		if (lost->count)
			decode_loss_row(decoder, area->process, ring->thread ? ring->thread->id : 0,
					losses[i].what, losses[i].reason, as_count(lost->count),
					lost->first_ns, lost->last_ns);
		lost->count = 0;
	}
	ring->has_losses = false;
}

void decode_report_area(struct ts_decoder *decoder, struct decode_area *area)
{
	for (size_t i = 0; i < area->ring_count; i++)
		if (area->rings[i])
			decode_report_ring(decoder, area, area->rings[i]);
}

void decode_report_all(struct ts_decoder *decoder)
{
	for (size_t i = 0; i < decoder->area_count; i++)
		decode_report_area(decoder, decoder->areas[i]);
	if (decoder->damaged_bytes)
		decode_loss_row(decoder, NULL, 0, "bytes of the journal",
				"the journal is damaged there", as_count(decoder->damaged_bytes),
				decoder->now_ns, decoder->now_ns);
	if (decoder->damaged_blocks)
		decode_loss_row(decoder, NULL, 0, "blocks of the journal",
				"not valid at this point", as_count(decoder->damaged_blocks),
				decoder->now_ns, decoder->now_ns);
	decoder->damaged_bytes = decoder->damaged_blocks = 0;
}

void decode_loss_block(struct ts_decoder *decoder, const struct ts_block *block,
		       const struct ts_block_loss *loss)
{
	const struct decode_area *area = decode_find_area(decoder, block->area);
	const struct decode_process *process = area ? area->process : NULL;
	struct ts_loss_row row = ts_loss_none;
	uint64_t index;

	if (!process && loss->pid && ts_map_get(&decoder->pids, loss->pid, &index))
		process = decoder->processes[index];
	row.start = loss->first_counter ? decode_scale(decoder, loss->first_counter)
					: decoder->now_ns;
	row.duration = decode_scale(decoder, loss->last_counter) - row.start;
	row.duration = TS_MAX(row.duration, 0);
	row.source = decode_source_of(decoder, process);
	row.process = process ? process->id : 0;
	row.what = decode_fixed(decoder, loss->what, sizeof(loss->what));
	row.reason = decode_fixed(decoder, loss->reason, sizeof(loss->reason));
	row.count = loss->count < 0 ? TS_ABSENT : loss->count;
	ts_writer_add(decoder->writer, TS_TABLE_LOSS, &row, NULL);
	if (loss->count > 0 && strncmp(loss->what, "events", sizeof(loss->what)) == 0)
		decoder->counts.lost += (uint64_t)loss->count;
}

/* Reports a counter of a control block, without the part reported before. */
static void report_counter(struct ts_decoder *decoder, const struct decode_area *area,
			   uint64_t *reported, uint64_t count, const char *what, const char *reason,
			   const struct ts_block_end *end)
{
	int64_t to = decode_scale(decoder, end->ended_counter), from = to;
	/* How much of it is in the trace already was in the state. */
	bool is_unknown = decode_has_lost_state(decoder, area);

	if (count <= *reported)
		return;
	if (end->lost_first && area->about)
		from = TS_MIN(decode_time(decoder, area, end->lost_first), to);
	decode_loss_row(decoder, area->process, 0, what, reason,
			is_unknown ? TS_ABSENT : as_count(count - *reported), from, to);
	*reported = count;
}

void decode_end_losses(struct ts_decoder *decoder, struct decode_area *area,
		       const struct ts_block_end *end)
{
	uint64_t before = area->reported_nested + area->reported_no_ring;
	uint64_t no_ring = area->reported_no_ring;

	report_counter(decoder, area, &area->reported_nested, end->lost_nested, "events",
		       "emitted inside a signal handler that interrupted another emit, or the "
		       "process was forked inside the emit",
		       end);
	report_counter(decoder, area, &area->reported_no_ring, end->lost_no_ring, "events",
		       "no ring: the budget or shared memory was used up", end);
	report_counter(decoder, area, &area->reported_cut, end->strings_cut, "strings",
		       "the string was too long and was truncated", end);
	if (decode_has_lost_state(decoder, area))
		return;
	decoder->counts.lost += area->reported_nested + area->reported_no_ring - before;
	decoder->counts.lost_by_buffers += area->reported_no_ring - no_ring;
}
