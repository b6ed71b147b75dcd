/* SPDX-License-Identifier: Apache-2.0 */
/* LLVM XRay logs (compiler-rt's xray runtime): the header, the clock, and error handling. */
#include "import/xray/xray.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct ts_loss_kind loss_time = { .what = "event",
					       .one = "record with a time beyond 292 years",
					       .many = "records with a time beyond 292 years" };

/* Is it a valid basic record? */
static bool is_basic_record(const char *p)
{
	uint16_t type = ts_xray_u16(p);

	return type == 1 || (type == 0 && (uint8_t)p[3] <= TS_XRAY_ENTRY_ARG);
}

int ts_xray_probe(const char *data, size_t bytes)
{
	uint16_t version, type;
	const char *first = data + TS_XRAY_HEADER_BYTES;

	if (bytes < TS_XRAY_HEADER_BYTES)
		return 0;
	version = ts_xray_u16(data);
	type = ts_xray_u16(data + 2);
	/*
	 * There is no magic: the following fields must be plausible too. No machine has a clock
	 * beyond 1 THz.
	 */
	if (version < 1 || version > 5 || type > 1 ||
	    ts_xray_u64(data + 8) > (uint64_t)TS_XRAY_NS * 1000)
		return 0;
	if (bytes < TS_XRAY_HEADER_BYTES + 16)
		return 1;
	if (type == 0)
		return version <= 3 && is_basic_record(first);
	return *first == (version >= 2 ? 0x0f : 0x01); /* buffer extents, new buffer */
}

/*
 * Frequencies of 1 GHz or less need a factor of more than 64 bits, those of 18.4 GHz and more
 * overflow its products.
 */
static bool has_factor(uint64_t frequency)
{
	return frequency > TS_XRAY_NS && frequency <= UINT64_MAX / TS_XRAY_NS;
}

bool ts_xray_time_far(struct ts_xray *x, uint64_t tsc, int64_t *ret_ns)
{
	uint64_t frequency = x->header.frequency ? x->header.frequency : TS_XRAY_NS;
	uint64_t seconds = tsc / frequency, rest = tsc % frequency, ns;

	ns = (uint64_t)((unsigned __int128)rest * TS_XRAY_NS / frequency);
	if (TS_UNLIKELY(seconds > (INT64_MAX - ns) / TS_XRAY_NS)) {
		ts_entities_add_loss(&x->entities, &loss_time, 1);
		return false;
	}
	*ret_ns = (int64_t)(seconds * TS_XRAY_NS + ns);
	/* The last second that fits an int64 may exceed it before its end. */
	if (has_factor(frequency) && seconds < INT64_MAX / TS_XRAY_NS)
		x->second = (struct ts_xray_second){
			.tsc = seconds * frequency,
			.length = frequency,
			.factor = (uint64_t)(((unsigned __int128)TS_XRAY_NS << 64) / frequency),
			.ns = (int64_t)(seconds * TS_XRAY_NS),
		};
	return true;
}

int ts_xray_out_of_memory(struct ts_xray *x)
{
	x->no_memory = true;
	return ts_error_set(x->err, TS_ENOMEM, "input '%s': out of memory", x->import->path);
}

/* ---- the header ---- */

static int read_header(struct ts_xray *x)
{
	struct ts_json *js = &x->import->stream.js;
	struct ts_xray_header *header = &x->header;
	size_t held;
	int rc = ts_import_need(x->import, TS_XRAY_HEADER_BYTES, &held, x->err);

	if (rc)
		return rc;
	if (held < TS_XRAY_HEADER_BYTES)
		return ts_import_cut(x->import, held, x->err);
	header->version = ts_xray_u16(js->next);
	header->type = ts_xray_u16(js->next + 2);
	header->constant_tsc = js->next[4] & 1;
	header->nonstop_tsc = js->next[4] & 2;
	header->frequency = ts_xray_u64(js->next + 8);
	header->buffer_bytes = ts_xray_u64(js->next + 16);
	if (header->type > 1)
		return ts_import_bad(x->import, 2,
				     "unknown XRay log type: neither 0 (basic) nor 1 (FDR)",
				     x->err);
	if (header->version < 1 || header->version > (header->type ? 5 : 3))
		return ts_error_set(
			x->err, TS_EFORMAT,
			"input '%s': XRay log version %u in %s mode is not supported (only 1 to %d): "
			"convert it with the llvm-xray that came with its compiler (llvm-xray convert "
			"--output-format=trace_event) and import that",
			x->import->path, header->version, header->type ? "FDR" : "basic",
			header->type ? 5 : 3);
	return TS_OK;
}

static void add_number_metadata(struct ts_xray *x, const char *key, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	ts_entities_meta(&x->entities, key, text, strlen(text));
}

static void add_header_metadata(struct ts_xray *x)
{
	const struct ts_xray_header *header = &x->header;
	const char *mode = header->type ? "\"fdr\"" : "\"basic\"";

	ts_entities_meta(&x->entities, "xray.mode", mode, strlen(mode));
	add_number_metadata(x, "xray.version", header->version);
	add_number_metadata(x, "xray.cycle_frequency", header->frequency);
	ts_entities_meta(&x->entities, "xray.constant_tsc", header->constant_tsc ? "true" : "false",
			 header->constant_tsc ? 4 : 5);
	ts_entities_meta(&x->entities, "xray.nonstop_tsc", header->nonstop_tsc ? "true" : "false",
			 header->nonstop_tsc ? 4 : 5);
	if (header->type)
		add_number_metadata(x, "xray.buffer_size", header->buffer_bytes);
}

/* ---- the file ---- */

static void add_note(struct ts_xray *x, const char *text)
{
	char *note = x->import->result.note;
	size_t used = strlen(note), size = sizeof(x->import->result.note);

	snprintf(note + used, size - used, "%s%s", used ? "; " : "", text);
}

static void add_notes(struct ts_xray *x)
{
	if (!x->header.frequency)
		add_note(x, "the log has no clock frequency: times are cycles, not ns");
	if (!x->names.elf && x->import->result.events)
		add_note(x, "functions are numbered; use --binary PROGRAM for their names");
}

static int read_file(struct ts_xray *x)
{
	int rc = read_header(x);

	if (!rc)
		rc = ts_xray_names_start(x);
	if (!rc)
		rc = ts_entities_start(&x->entities, x->import, x->err);
	if (rc)
		return rc;
	x->category = ts_writer_string(x->writer, "xray", 4);
	add_header_metadata(x);
	rc = x->header.type ? ts_xray_read_fdr(x) : ts_xray_read_basic(x);
	if (rc == TS_EFORMAT || rc == TS_ECANCELED)
		ts_entities_add_loss(&x->entities, &ts_loss_rest, 1);
	/* The first error counts; cleanup must not hide it. */
	if (rc != TS_ENOMEM && !ts_writer_status(x->writer, NULL)) {
		int end;

		x->err = rc ? NULL : x->err;
		end = ts_xray_end(x);
		ts_entities_finish(&x->entities);
		add_notes(x);
		rc = rc ? rc : end;
	}
	return rc;
}

int ts_xray_run(struct ts_import *import, struct ts_error *err)
{
	struct ts_xray *x = calloc(1, sizeof(*x));
	int rc;

	if (!x)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	x->import = import;
	x->writer = import->writer;
	x->err = err;
	rc = read_file(x);
	ts_xray_calls_release(x);
	ts_xray_names_release(x);
	ts_entities_release(&x->entities);
	ts_text_release(&x->payload);
	free(x);
	return rc;
}
