/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends clock_sync rows to finished traces. Old points of a clock are moved by its estimate, so
 * that what bent its time before still does; where it drifts, two more hold the ends of what was
 * recorded, since beyond the last point only an offset counts.
 */
#include "state/clocks/clock_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracesmith/writer.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/output.h"
#include "model/clockmap.h"
#include "trace/trace_append.h"
#include "trace/trace_totals.h"

#define COPY_BYTES ((size_t)1 << 20)
/* Methods of rows that `align` has written begin with this. */
#define OUR_METHOD "collectives"

int ts_clock_store_check(const char *path, const struct ts_reader *reader, bool in_place,
			 struct ts_error *err)
{
	int rc = ts_trace_append_check(path, reader, ", or only show the result with --dry-run",
				       err);

	if (!rc && in_place)
		rc = ts_output_check(path, err);
	if (!rc && in_place && access(path, W_OK))
		rc = ts_error_errno(
			err, errno,
			"cannot write trace '%s' (write a new trace with -o, or only show the "
			"result with --dry-run)",
			path);
	return rc;
}

/* ---- what is there ---- */

/* A clock as it is in the file. */
struct known_clock {
	int64_t generation; /* highest */
	bool ours;          /* its points came from an earlier alignment */
	int64_t from, to;   /* trace time of its chunks; from > to: none */
};

struct store {
	struct ts_reader *reader;
	const struct ts_clock_store_entry *clocks;
	struct known_clock *known;
	size_t count;
	struct ts_map indices; /* clock to index in clocks and known */
	struct ts_clockmap map;
	struct ts_writer *writer;
	size_t stored;
};

static void note_row(struct store *store, const struct ts_clock_sync_row *row)
{
	struct ts_string method = ts_reader_string(store->reader, row->method);
	struct known_clock *known;
	uint64_t index;

	if (!ts_map_get(&store->indices, (uint64_t)row->clock, &index))
		return;
	known = &store->known[index];
	if (row->generation < known->generation)
		return;
	known->generation = row->generation;
	known->ours = method.length >= strlen(OUR_METHOD) &&
		      !memcmp(method.data, OUR_METHOD, strlen(OUR_METHOD));
}

static int read_points(struct store *store, struct ts_error *err)
{
	TS_AUTO(ts_batch) batch = NULL;
	size_t count = ts_reader_chunk_count(store->reader);
	int rc = ts_batch_new(&batch, store->reader, err);

	for (size_t i = 0; i < count && !rc; i++) {
		if (ts_reader_chunk(store->reader, i)->table != TS_TABLE_CLOCK_SYNC)
			continue;
		rc = ts_batch_read(batch, i, TS_MASK_ALL, err);
		for (uint32_t r = 0; !rc && r < batch->rows; r++) {
			struct ts_clock_sync_row row;

			ts_batch_row(batch, r, &row);
			note_row(store, &row);
			rc = ts_clockmap_add(&store->map, &row);
			if (rc)
				ts_error_set(err, rc, "no memory");
		}
	}
	ts_clockmap_seal(&store->map);
	return rc;
}

static void find_ranges(struct store *store)
{
	size_t count = ts_reader_chunk_count(store->reader);

	for (size_t i = 0; i < count; i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(store->reader, i);
		int64_t end = chunk->max_end == INT64_MAX ? chunk->max_start : chunk->max_end;

		struct known_clock *known;
		uint64_t index;

		if (chunk->min_start == TS_ABSENT ||
		    !ts_map_get(&store->indices, chunk->clock, &index))
			continue;
		known = &store->known[index];
		known->from = TS_MIN(known->from, chunk->min_start);
		known->to = TS_MAX(known->to, end);
	}
}

/* ---- new points ---- */

/* Differences wrap instead of overflowing: times of a hostile file may be anything. */
static int64_t plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static void add_point(struct store *store, size_t i, int64_t time, int64_t before)
{
	const struct ts_clock_estimate *estimate = &store->clocks[i].estimate;
	struct ts_clock_sync_row row = ts_clock_sync_none;

	row.clock = store->clocks[i].clock;
	row.time = time;
	row.reference = ts_clock_estimate_apply(estimate, before);
	row.uncertainty_ns = estimate->uncertainty_ns;
	row.method = ts_writer_string(store->writer, estimate->method, strlen(estimate->method));
	row.generation = plus(store->known[i].generation, 1);
	ts_writer_add(store->writer, TS_TABLE_CLOCK_SYNC, &row, NULL);
}

/*
 * The ends of what was recorded, in the clock's own time: beyond its points that is an offset away.
 */
static void add_ends(struct store *store, size_t i, const struct ts_clock_point *first,
		     const struct ts_clock_point *last)
{
	const struct known_clock *known = &store->known[i];

	if (known->from < first->reference)
		add_point(store, i, plus(first->time, minus(known->from, first->reference)),
			  known->from);
	if (known->to > last->reference)
		add_point(store, i, plus(last->time, minus(known->to, last->reference)), known->to);
}

static void add_points(struct store *store, size_t i)
{
	const struct ts_clock *clock = ts_clockmap_find(&store->map, store->clocks[i].clock);
	const struct ts_clock_estimate *estimate = &store->clocks[i].estimate;
	struct ts_clock_point identity = { .time = estimate->epoch, .reference = estimate->epoch };
	const struct ts_clock_point *points = &identity;
	size_t count = 1;

	if (clock && clock->count) {
		points = clock->points;
		count = clock->count;
	}
	for (size_t k = 0; k < count; k++)
		add_point(store, i, points[k].time, points[k].reference);
	if (estimate->drift_ppb != 0)
		add_ends(store, i, &points[0], &points[count - 1]);
}

static bool is_within(const struct ts_clock_estimate *estimate, int64_t time)
{
	int64_t moved = minus(ts_clock_estimate_apply(estimate, time), time);

	return moved <= estimate->uncertainty_ns && moved >= -estimate->uncertainty_ns;
}

/* Was it aligned, and is its remaining error within the uncertainty? */
static bool is_settled(const struct store *store, size_t i)
{
	const struct known_clock *known = &store->known[i];
	const struct ts_clock_estimate *estimate = &store->clocks[i].estimate;

	return known->ours && is_within(estimate, known->from) && is_within(estimate, known->to);
}

/* ---- the file ---- */

static void add_all_points(void *context, struct ts_writer *writer)
{
	struct store *store = context;

	store->writer = writer;
	for (size_t i = 0; i < store->count; i++)
		if (!is_settled(store, i))
			add_points(store, i);
}

static int start_store(struct store *store, struct ts_error *err)
{
	int rc = TS_OK;

	ts_map_init(&store->indices);
	ts_clockmap_init(&store->map);
	store->known = calloc(TS_MAX(store->count, 1), sizeof(*store->known));
	if (!store->known)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	for (size_t i = 0; i < store->count && !rc; i++) {
		store->known[i] = (struct known_clock){ .from = INT64_MAX, .to = INT64_MIN };
		rc = ts_map_put(&store->indices, store->clocks[i].clock, i);
	}
	if (rc)
		ts_error_set(err, rc, "no memory");
	return rc;
}

int ts_clock_store_append(const char *path, struct ts_reader *reader,
			  const struct ts_clock_store_entry *clocks, size_t count,
			  size_t *ret_stored, struct ts_error *err)
{
	struct store store = { .reader = reader, .clocks = clocks, .count = count };
	int rc = start_store(&store, err);

	*ret_stored = 0;
	if (!rc)
		rc = read_points(&store, err);
	if (!rc)
		find_ranges(&store);
	for (size_t i = 0; i < count && !rc; i++)
		store.stored += !is_settled(&store, i);
	if (!rc && store.stored)
		rc = ts_trace_append_rows(path, reader, false, add_all_points, &store, err);
	if (!rc)
		*ret_stored = store.stored;
	ts_clockmap_release(&store.map);
	ts_map_release(&store.indices);
	free(store.known);
	return rc;
}

/* ---- copies ---- */

static int copy_bytes(int from, int to, const char *name, int (*is_canceled)(void),
		      struct ts_error *err)
{
	TS_AUTO_FREE char *buffer = malloc(COPY_BYTES);
	int rc = buffer ? TS_OK : ts_error_set(err, TS_ENOMEM, "no memory");

	while (!rc) {
		ssize_t bytes = ts_read_some(from, buffer, COPY_BYTES);

		if (bytes < 0)
			return ts_error_errno(err, errno, "cannot read '%s'", name);
		if (!bytes)
			break;
		rc = ts_write_all(to, buffer, (size_t)bytes, err);
		if (!rc && is_canceled && is_canceled())
			rc = ts_error_set(err, TS_ECANCELED, "stopped");
	}
	return rc;
}

int ts_clock_store_copy(const char *from, const char *to, int (*is_canceled)(void),
			struct ts_error *err)
{
	TS_AUTO_FD int in = ts_io_open(from, O_RDONLY, 0);
	TS_AUTO_FD int out = -1;
	int rc;

	if (in < 0)
		return ts_error_errno(err, errno, "cannot read trace '%s'", from);
	rc = ts_output_create(to, 0, &out, err);
	if (rc)
		return rc;
	rc = copy_bytes(in, out, from, is_canceled, err);
	if (rc)
		unlink(to);
	return rc;
}
