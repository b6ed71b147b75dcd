/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dictionaries of single batches. A dictionary that all batches share costs a consumer its length
 * in each batch. That is little for names of kernels, but far too much if nearly every row has a
 * distinct string: then each batch has a dictionary of only the strings in its rows.
 */
#include <string.h>

#include "arrow/arrow_source.h"
#include "base/map.h"

/* Texts of a batch: which of the shared dictionary they are, in order of first use. */
struct local {
	struct ts_map positions;
	uint32_t *shared; /* by position */
	uint32_t count;
	uint64_t bytes;
};

static uint32_t length_of(const int32_t *offsets, uint32_t index)
{
	return (uint32_t)(offsets[index + 1] - offsets[index]);
}

static bool is_null(const struct ts_arrow_data *data, uint32_t row)
{
	return data->validity && !(((const uint8_t *)data->validity)[row / 8] >> (row % 8) & 1);
}

/* Replaces indices; those of nulls stay 0. */
static int number_texts(struct local *local, const struct ts_arrow_data *data, uint32_t rows,
			const int32_t *offsets, int32_t *ret_indices)
{
	const int32_t *indices = data->values;

	for (uint32_t row = 0; row < rows; row++) {
		uint64_t *slot;
		bool is_new;

		ret_indices[row] = 0;
		if (is_null(data, row))
			continue;
		slot = ts_map_insert(&local->positions, (uint64_t)indices[row], &is_new);
		if (!slot)
			return TS_ENOMEM;
		if (is_new) {
			*slot = local->count;
			local->shared[local->count++] = (uint32_t)indices[row];
			local->bytes += length_of(offsets, (uint32_t)indices[row]);
		}
		ret_indices[row] = (int32_t)*slot;
	}
	return TS_OK;
}

/* Their bytes are part of the shared ones, of which there are less than 2 GiB. */
static void copy_texts(const struct local *local, const int32_t *offsets, const char *text,
		       int32_t *ret_offsets, char *ret_text)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < local->count; i++) {
		uint32_t length = length_of(offsets, local->shared[i]);

		ret_offsets[i] = (int32_t)at;
		memcpy(ret_text + at, text + offsets[local->shared[i]], length);
		at += length;
	}
	ret_offsets[local->count] = (int32_t)at;
}

static int make_local(struct ts_arrow_worker *worker, struct local *local,
		      struct ts_arrow_data *data, const int32_t *offsets, const char *text)
{
	uint32_t rows = worker->batch->rows;
	int32_t *indices = ts_arrow_worker_alloc(worker, rows * sizeof(*indices)), *ends;
	char *bytes;

	local->shared = ts_arrow_worker_alloc(worker, rows * sizeof(*local->shared));
	if (!indices || !local->shared || number_texts(local, data, rows, offsets, indices))
		return ts_arrow_no_memory(worker);
	ends = ts_arrow_worker_alloc(worker, (local->count + (size_t)1) * sizeof(*ends));
	bytes = ts_arrow_worker_alloc(worker, local->bytes + 1);
	if (!ends || !bytes)
		return ts_arrow_no_memory(worker);
	copy_texts(local, offsets, text, ends, bytes);
	data->values = indices;
	data->local_count = local->count;
	data->local_offsets = ends;
	data->local_text = bytes;
	return TS_OK;
}

int ts_arrow_make_local(struct ts_arrow_worker *worker, size_t field)
{
	struct ts_arrow_dictionary *dictionary = &worker->source->dictionaries[field];
	struct ts_arrow_kept kept = { 0 };
	struct local local = { .count = 0 };
	const void *offsets, *text;
	uint32_t count;
	int result;

	if (ts_arrow_dictionary_get(dictionary, &kept, &count, &offsets, &text))
		result = ts_arrow_no_memory(worker);
	else
		result = count <= TS_ARROW_SHARED_TEXTS
				 ? TS_OK
				 : make_local(worker, &local, &worker->batch->data[field], offsets,
					      text);
	ts_map_release(&local.positions);
	ts_arrow_kept_release(&kept);
	return result;
}
