/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight data recorder mode: buffers, each of one thread, in memory order. The runtime reuses them,
 * so a thread's oldest buffer may follow its newest: buffers are indexed first, then read per
 * thread in time order. This needs random access.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "import/common/spool.h"
#include "import/xray/xray.h"
#include "import/xray/xray_window.h"

#define FUNCTION_BYTES 8u
#define METADATA_BYTES 16u
/* Interval between progress reports. */
#define TICK_BYTES ((uint64_t)4 << 20)
/* What a buffer starts with: new buffer, wall clock, pid, CPU. */
#define PREAMBLE_BYTES (4 * METADATA_BYTES)

enum metadata {
	NEW_BUFFER = 0,
	END_OF_BUFFER = 1,
	NEW_CPU = 2,
	TSC_WRAP = 3,
	WALL_CLOCK = 4,
	CUSTOM_EVENT = 5,
	CALL_ARGUMENT = 6,
	BUFFER_EXTENTS = 7,
	TYPED_EVENT = 8,
	PROCESS_ID = 9,
};

/* Log versions in which the format changed. */
#define HAS_EXTENTS 2
#define HAS_EVENT_CPU 4
#define HAS_EVENT_DELTA 5

static const struct ts_loss_kind loss_buffer = { .what = "buffer",
						 .one = "damaged end of a buffer",
						 .many = "damaged ends of buffers" };
static const struct ts_loss_kind loss_thread = { .what = "buffer",
						 .one = "buffer without a thread id",
						 .many = "buffers without a thread id" };
static const struct ts_loss_kind loss_padding = { .what = "byte",
						  .one = "byte between buffers",
						  .many = "bytes between buffers" };
static const struct ts_loss_kind loss_event = { .what = "event",
						.one = "event larger than 32 MiB",
						.many = "events larger than 32 MiB" };

struct buffer {
	uint64_t at, bytes;      /* of its records */
	int64_t pid, tid;        /* pid TS_ABSENT: not said */
	uint64_t wall_us, tsc;   /* when it began */
	uint64_t number;         /* in the file */
	bool has_thread, is_cut; /* the file ends in it */
};

struct fdr {
	struct ts_xray *x;
	struct ts_spool spool;
	struct ts_window window;
	struct buffer *buffers;
	size_t count, capacity;
	/* while a buffer is read */
	struct ts_xray_thread *thread;
	uint64_t tsc;
	uint16_t cpu;
	bool is_over;            /* its end was said */
	uint64_t done, reported; /* bytes of buffers read, and at the last progress report */
};

static int tick(struct fdr *fdr, uint64_t done)
{
	struct ts_import *import = fdr->x->import;

	fdr->reported = done;
	if (ts_writer_status(import->writer, fdr->x->err))
		return ts_writer_status(import->writer, NULL);
	if (import->options.progress &&
	    import->options.progress(import->options.context, done, fdr->spool.bytes))
		return ts_error_set(fdr->x->err, TS_ECANCELED,
				    "input '%s': stopped after %" PRIu64
				    " bytes of its buffers; everything read so far is in the trace",
				    import->path, done);
	return TS_OK;
}

/* ---- the list of buffers ---- */

/* Reads the first records of a buffer. */
static void read_preamble(struct buffer *buffer, const char *p, size_t bytes)
{
	for (; bytes >= METADATA_BYTES; p += METADATA_BYTES, bytes -= METADATA_BYTES) {
		if (!(p[0] & 1))
			return;
		switch ((uint8_t)p[0] >> 1) {
		case NEW_BUFFER:
			if (buffer->has_thread)
				return;
			buffer->tid = (int32_t)ts_xray_u32(p + 1);
			buffer->has_thread = true;
			break;
		case WALL_CLOCK: /* the runtime writes microseconds although the format says ns */
			buffer->wall_us = ts_xray_u64(p + 1) * 1000000 + ts_xray_u32(p + 9);
			break;
		case PROCESS_ID:
			buffer->pid = (int32_t)ts_xray_u32(p + 1);
			break;
		case NEW_CPU:
			buffer->tsc = ts_xray_u64(p + 3);
			return;
		default:
			return;
		}
	}
}

static int list_buffer(struct fdr *fdr, uint64_t at, uint64_t bytes)
{
	struct buffer *buffer;
	const char *p;
	size_t held;
	int rc = ts_window_get(&fdr->window, at, PREAMBLE_BYTES, &p, &held, fdr->x->err);

	if (rc)
		return rc;
	if (ts_grow_array((void **)&fdr->buffers, &fdr->capacity, fdr->count + 1,
			  sizeof(*fdr->buffers)))
		return ts_xray_out_of_memory(fdr->x);
	buffer = &fdr->buffers[fdr->count];
	*buffer =
		(struct buffer){ .at = at, .bytes = bytes, .pid = TS_ABSENT, .number = fdr->count };
	fdr->count++;
	if (bytes > fdr->spool.bytes - at) {
		buffer->bytes = fdr->spool.bytes - at;
		buffer->is_cut = true;
	}
	read_preamble(buffer, p, (size_t)TS_MIN((uint64_t)held, buffer->bytes));
	return TS_OK;
}

/* Buffers preceded by their size; anything may be between them. */
static int list_by_extents(struct fdr *fdr)
{
	uint64_t at = TS_XRAY_HEADER_BYTES, padding = 0, bytes;
	int rc = TS_OK;

	while (!rc && at < fdr->spool.bytes) {
		const char *p;
		size_t held;

		rc = ts_window_get(&fdr->window, at, METADATA_BYTES, &p, &held, fdr->x->err);
		if (rc || !held)
			break;
		if ((uint8_t)p[0] != (BUFFER_EXTENTS << 1 | 1)) {
			at++;
			if (++padding % TICK_BYTES == 0)
				rc = tick(fdr, 0);
			continue;
		}
		if (held < METADATA_BYTES) {
			ts_entities_add_loss(&fdr->x->entities, &loss_padding, padding);
			return ts_import_cut(fdr->x->import, at, fdr->x->err);
		}
		at += METADATA_BYTES;
		bytes = ts_xray_u64(p + 1);
		if (bytes)
			rc = list_buffer(fdr, at, bytes);
		if (rc || (fdr->count && fdr->buffers[fdr->count - 1].is_cut))
			break;
		at += bytes;
		if (fdr->count % 1024 == 0)
			rc = tick(fdr, 0);
	}
	if (padding)
		ts_entities_add_loss(&fdr->x->entities, &loss_padding, padding);
	return rc;
}

/* Version 1: all of one size, given in the header, with garbage after their end record. */
static int list_by_size(struct fdr *fdr)
{
	uint64_t bytes = fdr->x->header.buffer_bytes, all = fdr->spool.bytes;
	int rc = TS_OK;

	if (bytes < PREAMBLE_BYTES || bytes > all)
		bytes = all - TS_XRAY_HEADER_BYTES;
	for (uint64_t at = TS_XRAY_HEADER_BYTES; !rc && at < all; at += bytes)
		rc = list_buffer(fdr, at, TS_MIN(bytes, all - at));
	return rc;
}

/* By thread, then in the order in which buffers were filled. */
static int compare_buffers(const void *left, const void *right)
{
	const struct buffer *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->wall_us != b->wall_us)
		return a->wall_us < b->wall_us ? -1 : 1;
	if (a->tsc != b->tsc)
		return a->tsc < b->tsc ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* ---- records ---- */

/* Relation to other clocks: once per log. */
static void note_clock(struct fdr *fdr, const struct buffer *buffer)
{
	struct ts_xray *x = fdr->x;
	struct ts_clock_sync_row row = ts_clock_sync_none;
	char json[96];
	int64_t time;

	if (x->has_clock_sync || !buffer->tsc || !ts_xray_time(x, buffer->tsc, &time))
		return;
	x->has_clock_sync = true;
	/* The record called wall clock contains CLOCK_MONOTONIC. */
	snprintf(json, sizeof(json), "{\"time\":%" PRId64 ",\"monotonic_us\":%" PRIu64 "}", time,
		 buffer->wall_us);
	ts_entities_meta(&x->entities, "xray.monotonic", json, strlen(json));
	/*
	 * An emulated TSC is the time of day in ns: a cycle counter since boot cannot be later than
	 * 2001.
	 */
	if (x->header.frequency != TS_XRAY_NS || time < (int64_t)TS_XRAY_NS * TS_XRAY_NS)
		return;
	row.clock = x->entities.clock;
	row.time = row.reference = time;
	row.method = ts_import_string(x->import, "emulated TSC", 12);
	ts_writer_add(x->writer, TS_TABLE_CLOCK_SYNC, &row, NULL);
}

/*
 * A custom or typed event followed by its bytes; *ret_bytes: total size. 0: not complete in this
 * buffer.
 */
static int read_event(struct fdr *fdr, uint64_t at, const char *p, uint64_t left,
		      uint64_t *ret_bytes)
{
	struct ts_xray *x = fdr->x;
	bool is_typed = (uint8_t)p[0] >> 1 == TYPED_EVENT;
	uint32_t size = ts_xray_u32(p + 1);
	uint16_t version = x->header.version, cpu = fdr->cpu;
	int32_t type = -1;
	uint64_t tsc;
	size_t held;
	int rc;

	*ret_bytes = 0;
	if (!size || size > INT32_MAX || size > left - METADATA_BYTES)
		return TS_OK;
	if (is_typed || version >= HAS_EVENT_DELTA) {
		fdr->tsc += (uint64_t)(int64_t)(int32_t)ts_xray_u32(p + 5);
		tsc = fdr->tsc;
		type = is_typed ? ts_xray_u16(p + 9) : -1;
	} else {
		tsc = ts_xray_u64(p + 5);
		cpu = version >= HAS_EVENT_CPU ? ts_xray_u16(p + 13) : cpu;
	}
	*ret_bytes = METADATA_BYTES + (uint64_t)size;
	if (size > TS_IMPORT_MAX_STRING / 2) {
		ts_entities_add_loss(&x->entities, &loss_event, 1);
		return TS_OK;
	}
	rc = ts_window_get(&fdr->window, at + METADATA_BYTES, size, &p, &held, x->err);
	if (rc || held < size)
		return rc ? rc : ts_import_cut(x->import, at + held, x->err);
	return ts_xray_event(x, fdr->thread, type, cpu, tsc, p, size);
}

/* *ret_bytes 0: damaged. */
static int read_metadata(struct fdr *fdr, uint64_t at, const char *p, uint64_t left,
			 uint64_t *ret_bytes)
{
	struct ts_xray *x = fdr->x;

	*ret_bytes = METADATA_BYTES;
	switch ((uint8_t)p[0] >> 1) {
	case NEW_BUFFER:
		/* Only if buffer sizes are unknown can another buffer begin inside. */
		if (fdr->is_over) {
			fdr->thread = ts_xray_thread(x, TS_ABSENT, (int32_t)ts_xray_u32(p + 1));
			fdr->is_over = false;
		}
		return fdr->thread ? TS_OK : ts_xray_out_of_memory(x);
	case END_OF_BUFFER:
		fdr->is_over = true;
		if (x->header.version >= HAS_EXTENTS)
			*ret_bytes = 0;
		return TS_OK;
	case NEW_CPU:
		fdr->cpu = ts_xray_u16(p + 1);
		fdr->tsc = ts_xray_u64(p + 3);
		return TS_OK;
	case TSC_WRAP:
		fdr->tsc = ts_xray_u64(p + 1);
		return TS_OK;
	case WALL_CLOCK:
	case PROCESS_ID:
	case BUFFER_EXTENTS:
		return TS_OK;
	case CALL_ARGUMENT:
		return ts_xray_argument(x, fdr->thread, ts_xray_u64(p + 1));
	case CUSTOM_EVENT:
	case TYPED_EVENT:
		return read_event(fdr, at, p, left, ret_bytes);
	default:
		*ret_bytes = 0;
		return TS_OK;
	}
}

/* Function records up to the next other or incomplete record; *ret_bytes: their size. */
static int read_functions(struct fdr *fdr, const char *p, size_t held, uint64_t *ret_bytes)
{
	const char *begin = p, *end = p + held - held % FUNCTION_BYTES;
	int rc = TS_OK;

	while (p < end && !(p[0] & 1) && !rc) {
		uint32_t word = ts_xray_u32(p);

		if (TS_UNLIKELY((word >> 1 & 7) > TS_XRAY_ENTRY_ARG))
			break;
		fdr->tsc += ts_xray_u32(p + 4);
		rc = ts_xray_function(fdr->x, fdr->thread, word >> 1 & 7, word >> 4, fdr->cpu,
				      fdr->tsc);
		p += FUNCTION_BYTES;
	}
	*ret_bytes = (uint64_t)(p - begin);
	return rc;
}

/* Records from `at` on until the window ends; *ret_bytes 0: damaged. */
static int read_some(struct fdr *fdr, uint64_t at, uint64_t left, uint64_t *ret_bytes)
{
	const char *p;
	size_t held;
	int rc = ts_window_get(&fdr->window, at, METADATA_BYTES, &p, &held, fdr->x->err);

	*ret_bytes = 0;
	held = (size_t)TS_MIN((uint64_t)held, left);
	if (rc || !held)
		return rc;
	if (!(p[0] & 1))
		return read_functions(fdr, p, held, ret_bytes);
	if (held < METADATA_BYTES)
		return TS_OK;
	return read_metadata(fdr, at, p, left, ret_bytes);
}

static int read_buffer(struct fdr *fdr, const struct buffer *buffer)
{
	struct ts_xray *x = fdr->x;
	bool has_size = x->header.version >= HAS_EXTENTS || x->header.buffer_bytes;
	uint64_t done = 0, step;
	int rc = TS_OK;

	if (!buffer->has_thread) {
		ts_entities_add_loss(&x->entities, &loss_thread, 1);
		return buffer->is_cut ? ts_import_cut(x->import, fdr->spool.bytes, x->err) : TS_OK;
	}
	fdr->thread = ts_xray_thread(x, buffer->pid, buffer->tid);
	if (!fdr->thread)
		return ts_xray_out_of_memory(x);
	fdr->tsc = 0;
	fdr->cpu = 0;
	fdr->is_over = false;
	note_clock(fdr, buffer);
	while (!rc && done < buffer->bytes && !(fdr->is_over && has_size)) {
		rc = read_some(fdr, buffer->at + done, buffer->bytes - done, &step);
		if (rc || !step)
			break;
		done += step;
		fdr->done += step;
		if (fdr->done - fdr->reported >= TICK_BYTES)
			rc = tick(fdr, fdr->done);
	}
	if (rc || fdr->is_over || (done == buffer->bytes && !buffer->is_cut))
		return rc;
	/* The rest is unknown: later exits cannot belong to calls that are open now. */
	rc = ts_xray_break(x, fdr->thread);
	if (!rc && buffer->is_cut)
		return ts_import_cut(x->import, buffer->at + done, x->err);
	ts_entities_add_loss(&x->entities, &loss_buffer, 1);
	return rc;
}

/* ---- the file ---- */

/* A truncated buffer does not prevent reading those of other threads. */
static int read_buffers(struct fdr *fdr)
{
	struct ts_error cut = { .code = 0 };
	int rc = TS_OK;

	for (size_t i = 0; i < fdr->count && !rc; i++) {
		const struct buffer *buffer = &fdr->buffers[i];

		rc = read_buffer(fdr, buffer);
		if (rc == TS_EFORMAT && buffer->is_cut) {
			cut.code = rc;
			if (fdr->x->err)
				cut = *fdr->x->err;
			rc = TS_OK;
		}
	}
	if (!rc && cut.code) {
		if (fdr->x->err)
			*fdr->x->err = cut;
		rc = cut.code;
	}
	return rc;
}

int ts_xray_read_fdr(struct ts_xray *x)
{
	struct fdr fdr = { .x = x };
	struct ts_error late = { .code = 0 };
	int rc = ts_spool_open(&fdr.spool, x->import, x->err), listed;

	if (rc)
		return rc;
	ts_spool_hide(&fdr.spool);
	x->import->result.bytes = fdr.spool.bytes;
	ts_window_init(&fdr.window, fdr.spool.fd, x->import->path);
	listed = x->header.version >= HAS_EXTENTS ? list_by_extents(&fdr) : list_by_size(&fdr);
	if (listed == TS_EFORMAT && x->err)
		late = *x->err;
	if (!listed || listed == TS_EFORMAT) {
		if (fdr.count)
			qsort(fdr.buffers, fdr.count, sizeof(*fdr.buffers), compare_buffers);
		rc = read_buffers(&fdr);
	}
	if (listed && !rc) {
		rc = listed;
		if (late.code)
			*x->err = late;
	}
	if (!rc && fdr.spool.damage.code)
		rc = ts_error_set(x->err, fdr.spool.damage.code, "%s", fdr.spool.damage.message);
	ts_window_release(&fdr.window);
	ts_spool_close(&fdr.spool);
	free(fdr.buffers);
	return rc;
}
