/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of a recording: its own, and one for each rank that a process has and the recorder itself
 * does not have, as when the recorder has started a launcher.
 */
#include "record/decode/decode_internal.h"

static void write_row(struct ts_decoder *decoder, int64_t id, const struct ts_rank *rank)
{
	struct ts_source_row row = ts_source_none;

	row.id = id;
	row.name = decode_text(decoder, decoder->name ? decoder->name : "");
	row.format = decode_text(decoder, "tracesmith");
	row.clock = DECODE_CLOCK_OF_EVENTS;
	if (rank->launcher)
		row.rank = rank->rank;
	if (rank->launcher && rank->world_size >= 0)
		row.world_size = rank->world_size;
	ts_writer_add(decoder->writer, TS_TABLE_SOURCE, &row, NULL);
}

void decode_write_origin(struct ts_decoder *decoder)
{
	write_row(decoder, DECODE_SOURCE_OF_RECORDING, &decoder->open.rank);
}

bool decode_add_source(struct ts_decoder *decoder, const struct ts_rank *rank)
{
	if (decoder->source_count >= DECODE_SOURCES || !ts_rank_is_valid(rank))
		return false;
	if (ts_grow_array((void **)&decoder->sources, &decoder->source_capacity,
			  decoder->source_count + 1, sizeof(*decoder->sources))) {
		decode_no_memory(decoder);
		return false;
	}
	decoder->sources[decoder->source_count++] = (struct decode_source){ .rank = *rank };
	return true;
}

void decode_set_rank(struct ts_decoder *decoder, struct decode_process *process,
		     const struct ts_rank *rank)
{
	uint32_t source = 0;

	if (!ts_rank_is_valid(rank))
		return;
	if (!ts_rank_equals(rank, &decoder->open.rank)) {
		/* Newest first: processes of a rank start together. */
		for (source = (uint32_t)decoder->source_count; source; source--)
			if (ts_rank_equals(rank, &decoder->sources[source - 1].rank))
				break;
		if (!source && decode_add_source(decoder, rank))
			source = (uint32_t)decoder->source_count;
	}
	process->source = source;
}

int64_t decode_use_source(struct ts_decoder *decoder, uint32_t source)
{
	int64_t id = DECODE_SOURCE_OF_RECORDING + (int64_t)source;

	if (source && decoder->sources[source - 1].epoch != decoder->epoch) {
		decoder->sources[source - 1].epoch = decoder->epoch;
		write_row(decoder, id, &decoder->sources[source - 1].rank);
	}
	return id;
}

int64_t decode_source_of(struct ts_decoder *decoder, const struct decode_process *process)
{
	return decode_use_source(decoder, process ? process->source : 0);
}
