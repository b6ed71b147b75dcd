/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the trace does not contain, to the event. Losses of a ring are added up and told now and
 * then, so that a lagging recorder does not fill its trace with rows about it.
 */
#include "record/decode/decode_internal.h"

static const struct loss_text {
	const char *what, *reason;
	bool of_events;
} losses[LOSS_COUNT] = {
	[LOSS_DROPPED] = { "events", "ring full: the recorder lagged", true },
	[LOSS_OVERWRITTEN] = { "events", "overwritten before it was recorded", true },
	[LOSS_DISCARDED] = { "events", "disk full, or the recording reached its limit", true },
	[LOSS_DAMAGED] = { "events", "the ring is damaged", true },
	[LOSS_UNKNOWN_EVENT] = { "events", "unknown kind of event", true },
	[LOSS_UNKNOWN_RECORD] = { "records", "unknown kind of record", false },
	[LOSS_END_ALONE] = { "events", "end without begin", true },
	[LOSS_TOO_DEEP] = { "events", "too many open spans", true },
	[LOSS_NO_TIME] = { "events", "a device's command without any time", true },
	[LOSS_BAD_BLOB] = { "blobs", "its parts do not fit each other", false },
	[LOSS_MISSING_BLOB] = { "blobs", "a command or an object names one that is not whole",
				false },
	[LOSS_BAD_DETAILS] = { "details", "they are no JSON object", false },
	[LOSS_MISSING_OBJECT] = { "objects",
				  "a command or an object names one that was not described",
				  false },
	[LOSS_UNNAMED_FRAME] = { "frames", "the dictionary is full: their functions have no name",
				 false },
	[LOSS_TOO_MANY_STACKS] = { "frames", "more different stacks than a file keeps", false },
	[LOSS_MISSING_STACK] = { "stacks", "an event or a stack names one that is not there",
				 false },
	[LOSS_TOO_MANY_OBJECTS] = { "objects", "more live ones than can be followed", false },
};

static int64_t as_count(uint64_t count)
{
	return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

void encode_lose(struct ts_encoder *encoder, struct encode_ring *ring, enum encode_loss why,
		 uint64_t count, int64_t from_ns, int64_t to_ns)
{
	struct encode_lost *lost = &ring->lost[why];

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
		encoder->counts.lost += count;
}

void encode_loss_row(struct ts_encoder *encoder, const struct encode_process *process,
		     int64_t thread, const char *what, const char *reason, int64_t count,
		     int64_t from_ns, int64_t to_ns)
{
	struct ts_loss_row row = ts_loss_none;

	row.start = from_ns;
	row.duration = to_ns > from_ns ? to_ns - from_ns : 0;
	row.source = encoder->source;
	row.process = process ? process->id : 0;
	row.thread = thread;
	row.what = encode_text(encoder, what);
	row.reason = encode_text(encoder, reason);
	row.count = count;
	ts_writer_add(encoder->writer, TS_TABLE_LOSS, &row, NULL);
}

void encode_tell_ring(struct ts_encoder *encoder, struct encode_area *area,
		      struct encode_ring *ring)
{
	if (!ring->has_losses)
		return;
	if (ring->thread)
		encode_use_thread(encoder, area, ring->thread);
	for (int i = 0; i < LOSS_COUNT; i++) {
		struct encode_lost *lost = &ring->lost[i];

		if (lost->count)
			encode_loss_row(encoder, area->process, ring->thread ? ring->thread->id : 0,
					losses[i].what, losses[i].reason, as_count(lost->count),
					lost->first_ns, lost->last_ns);
		lost->count = 0;
	}
	ring->has_losses = false;
}

void encode_tell_area(struct ts_encoder *encoder, struct encode_area *area)
{
	for (size_t i = 0; i < area->ring_count; i++)
		if (area->rings[i])
			encode_tell_ring(encoder, area, area->rings[i]);
}

void encode_tell_all(struct ts_encoder *encoder)
{
	for (size_t i = 0; i < encoder->area_count; i++)
		encode_tell_area(encoder, encoder->areas[i]);
	if (encoder->damaged_bytes)
		encode_loss_row(encoder, NULL, 0, "bytes of the journal",
				"the journal is damaged there", as_count(encoder->damaged_bytes),
				encoder->now_ns, encoder->now_ns);
	if (encoder->damaged_blocks)
		encode_loss_row(encoder, NULL, 0, "blocks of the journal",
				"they make no sense where they stand",
				as_count(encoder->damaged_blocks), encoder->now_ns,
				encoder->now_ns);
	encoder->damaged_bytes = encoder->damaged_blocks = 0;
}

void encode_loss_block(struct ts_encoder *encoder, const struct ts_block *block,
		       const struct ts_block_loss *loss)
{
	const struct encode_area *area = encode_find_area(encoder, block->area);
	const struct encode_process *process = area ? area->process : NULL;
	struct ts_loss_row row = ts_loss_none;
	uint64_t place;

	if (!process && loss->pid && ts_map_get(&encoder->pids, loss->pid, &place))
		process = encoder->processes[place];
	row.start = loss->first_counter ? encode_scale(encoder, loss->first_counter)
					: encoder->now_ns;
	row.duration = encode_scale(encoder, loss->last_counter) - row.start;
	row.duration = TS_MAX(row.duration, 0);
	row.source = encoder->source;
	row.process = process ? process->id : 0;
	row.what = encode_fixed(encoder, loss->what, sizeof(loss->what));
	row.reason = encode_fixed(encoder, loss->reason, sizeof(loss->reason));
	row.count = loss->count < 0 ? TS_ABSENT : loss->count;
	ts_writer_add(encoder->writer, TS_TABLE_LOSS, &row, NULL);
	if (loss->count > 0 && strncmp(loss->what, "events", sizeof(loss->what)) == 0)
		encoder->counts.lost += (uint64_t)loss->count;
}

/* One counter of a control block; it may have been told in part before. */
static void tell_counter(struct ts_encoder *encoder, const struct encode_area *area, uint64_t *told,
			 uint64_t count, const char *what, const char *reason,
			 const struct ts_block_end *end)
{
	int64_t to = encode_scale(encoder, end->ended_counter), from = to;

	if (count <= *told)
		return;
	if (end->lost_first && area->about)
		from = TS_MIN(encode_time(encoder, area, end->lost_first), to);
	encode_loss_row(encoder, area->process, 0, what, reason, as_count(count - *told), from, to);
	*told = count;
}

void encode_end_losses(struct ts_encoder *encoder, struct encode_area *area,
		       const struct ts_block_end *end)
{
	uint64_t before = area->told_nested + area->told_no_ring;

	tell_counter(encoder, area, &area->told_nested, end->lost_nested, "events",
		     "emitted inside a signal handler that interrupted another emit", end);
	tell_counter(encoder, area, &area->told_no_ring, end->lost_no_ring, "events",
		     "no ring: the budget or shared memory was used up", end);
	tell_counter(encoder, area, &area->told_cut, end->strings_cut, "strings",
		     "the string was too long and was cut", end);
	encoder->counts.lost += area->told_nested + area->told_no_ring - before;
}
