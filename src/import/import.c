/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a file, detects its format and runs the importer. Contains the table of importers. */
#include "import/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "base/text.h"
#include "trace/trace_totals.h"

/* Probed in this order: more specific formats first. */
static const struct ts_importer importers[] = {
	{ .name = "nsys",
	  .doc = "Nsight Systems: nsys export --type sqlite",
	  .probe = ts_sqlite_probe,
	  .run = ts_sqlite_run },
	{ .name = "rocpd",
	  .doc = "rocprofv3 database (rocpd, AMD ROCm)",
	  .probe = ts_sqlite_probe,
	  .run = ts_sqlite_run },
	{ .name = "rocprof",
	  .doc = "rocprofv3 JSON (AMD ROCm)",
	  .probe = ts_rocprof_probe,
	  .run = ts_rocprof_run },
	{ .name = "rocprof-csv",
	  .doc = "rocprofv3 CSV: kernel, copy, API and marker traces (AMD ROCm)",
	  .probe = ts_rocprof_csv_probe,
	  .run = ts_rocprof_csv_run },
	{ .name = "xray",
	  .doc = "LLVM XRay log, basic or FDR mode; use --binary for names",
	  .probe = ts_xray_probe,
	  .run = ts_xray_run },
	{ .name = "torch-memory",
	  .doc = "PyTorch memory snapshot (torch.cuda.memory._dump_snapshot)",
	  .probe = ts_torch_memory_probe,
	  .run = ts_torch_memory_run },
	{ .name = "pprof",
	  .doc = "pprof profile (profile.proto): Go, gperftools, py-spy and others",
	  .probe = ts_pprof_probe,
	  .run = ts_pprof_run },
	{ .name = "perfetto",
	  .doc = "Perfetto protobuf, also from export -f perfetto",
	  .probe = ts_perfetto_probe,
	  .run = ts_perfetto_run },
	{ .name = "speedscope",
	  .doc = "speedscope JSON, also from export -f speedscope",
	  .probe = ts_speedscope_probe,
	  .run = ts_speedscope_run },
	{ .name = "kineto",
	  .doc = "PyTorch profiler (Kineto) JSON",
	  .probe = ts_kineto_probe,
	  .run = ts_chrome_run },
	{ .name = "chrome",
	  .doc = "Chrome trace-event JSON, also from export -f chrome",
	  .probe = ts_chrome_probe,
	  .run = ts_chrome_run },
	/* Text without a magic: probed last. */
	{ .name = "perf",
	  .doc = "Linux perf: output of perf script",
	  .probe = ts_perf_probe,
	  .run = ts_perf_run },
	{ .name = "folded",
	  .doc = "folded stacks (flame graphs), also from export -f folded",
	  .probe = ts_folded_probe,
	  .run = ts_folded_run },
};

const struct ts_importer *ts_importer_list(size_t *ret_count)
{
	*ret_count = TS_ARRAY_SIZE(importers);
	return importers;
}

int ts_import_refill(struct ts_import *import, const char *keep, struct ts_error *err)
{
	int rc = ts_writer_status(import->writer, err);

	if (!rc)
		rc = ts_input_stream_refill(&import->stream, keep, err);
	if (!rc && import->options.progress) {
		uint64_t done = 0, total = 0;

		import->position(import, &done, &total);
		if (import->options.progress(import->options.context, done, total))
			rc = ts_error_set(err, TS_ECANCELED,
					  "input '%s': stopped at byte %" PRIu64
					  "; everything read so far is in the trace",
					  import->path, import->stream.offset);
	}
	return rc;
}

int ts_import_need(struct ts_import *import, size_t bytes, size_t *ret_held, struct ts_error *err)
{
	const struct ts_json *js = &import->stream.js;
	int rc = TS_OK;

	while (!rc && (size_t)(js->end - js->next) < bytes && !js->last)
		rc = ts_import_refill(import, js->next, err);
	*ret_held = (size_t)(js->end - js->next);
	return rc;
}

uint32_t ts_import_string(struct ts_import *import, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (TS_LIKELY((unsigned char)text[i] < 0x80))
			continue;
		ts_text_clear(&import->scratch);
		ts_utf8_sanitize(&import->scratch, text, length);
		text = ts_text_cstr(&import->scratch);
		length = import->scratch.length;
		break;
	}
	return ts_writer_string(import->writer, text, length);
}

static const char *what_is_kept(const struct ts_import *import)
{
	return import->result.events ? "everything before it was kept; to get the rest, " : "";
}

int ts_import_bad(const struct ts_import *import, uint64_t at, const char *reason,
		  struct ts_error *err)
{
	return ts_error_set(err, TS_EFORMAT,
			    "input '%s': byte %" PRIu64 ": %s; %screate the file again",
			    import->path, at, reason, what_is_kept(import));
}

int ts_import_cut(const struct ts_import *import, uint64_t at, struct ts_error *err)
{
	return ts_error_set(err, TS_EFORMAT,
			    "input '%s': byte %" PRIu64
			    ": the file is truncated; %swrite or copy it again",
			    import->path, at, what_is_kept(import));
}

static int refuse(struct ts_import *import, struct ts_error *err)
{
	const struct ts_json *js = &import->stream.js;
	size_t shown = TS_MIN((size_t)(js->end - js->next), (size_t)16);
	struct ts_text begin;
	int rc;

	if (shown == 0)
		return ts_error_set(err, TS_EFORMAT,
				    "input '%s': the file is empty; nothing to import",
				    import->path);
	ts_text_init(&begin);
	for (size_t i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)js->next[i];

		if (c >= ' ' && c < 0x7f)
			ts_text_append_char(&begin, (char)c);
		else
			ts_text_printf(&begin, "\\x%02x", c);
	}
	rc = ts_error_set(
		err, TS_EFORMAT,
		"input '%s': unknown format "
		"('tracesmith import --list' shows all, --format forces one); the file begins with \"%s\"",
		import->path, ts_text_cstr(&begin));
	ts_text_release(&begin);
	return rc;
}

static int run(struct ts_import *import, struct ts_error *err)
{
	const struct ts_json *js = &import->stream.js;
	int rc = ts_import_refill(import, js->next, err);

	import->result.format = "unknown";
	if (rc)
		return rc;
	for (size_t i = 0; i < TS_ARRAY_SIZE(importers); i++) {
		if (import->options.format
			    ? !strcmp(import->options.format, importers[i].name)
			    : importers[i].probe(js->next, (size_t)(js->end - js->next))) {
			import->result.format = importers[i].name;
			rc = importers[i].run(import, err);
			/* Importers that read the file elsewhere set this themselves. */
			if (!import->result.bytes)
				import->result.bytes =
					ts_input_stream_at(&import->stream, js->next);
			return rc;
		}
	}
	if (import->options.format)
		return ts_error_set(err, TS_EINVAL, "import: unknown format '%s'",
				    import->options.format);
	return refuse(import, err);
}

static int run_source(struct ts_import *import, const struct ts_input_stream_source *source,
		      size_t capacity, const struct ts_import_options *options,
		      struct ts_import_result *ret_result, struct ts_error *err)
{
	int rc;

	/* Callers built against another version have a shorter or longer struct. */
	if (options)
		memcpy(&import->options, options, TS_MIN(options->size, sizeof(*options)));
	ts_writer_cuts(import->writer, &import->cuts);
	rc = ts_input_stream_init(&import->stream, source, import->path, capacity, err);
	if (!rc)
		rc = run(import, err);
	if (!rc)
		rc = ts_writer_status(import->writer, err);
	ts_input_stream_release(&import->stream);
	ts_text_release(&import->scratch);
	if (ret_result)
		*ret_result = import->result;
	return rc;
}

/* ---- files ---- */

static int read_input(void *context, void *buffer, size_t bytes, size_t *ret_bytes,
		      struct ts_error *err)
{
	return ts_input_read(context, buffer, bytes, ret_bytes, err);
}

static void file_position(struct ts_import *import, uint64_t *ret_done, uint64_t *ret_total)
{
	const struct ts_input *input = import->position_context;
	int64_t size = ts_input_size(input);

	*ret_done = ts_input_position(input);
	*ret_total = size < 0 ? 0 : (uint64_t)size;
}

static bool is_plain_file(struct ts_import *import)
{
	return ts_input_is_plain_file(import->position_context);
}

/* Rows of all tables but those that every import adds. */
static uint64_t count_rows(const struct ts_writer *writer)
{
	static const uint64_t always = TS_TABLE_BIT(TS_TABLE_SOURCE) |
				       TS_TABLE_BIT(TS_TABLE_STRING) |
				       TS_TABLE_BIT(TS_TABLE_SHAPE) | TS_TABLE_BIT(TS_TABLE_META) |
				       TS_TABLE_BIT(TS_TABLE_LOSS) |
				       TS_TABLE_BIT(TS_TABLE_CLOCK_SYNC);
	uint64_t rows = 0;

	for (unsigned int table = 0; table < TS_TABLE_COUNT; table++)
		if (!(always & TS_TABLE_BIT(table)))
			rows += ts_writer_rows(writer, (enum ts_table_id)table);
	return rows;
}

/* Some formats accept nearly anything, and would make an empty trace of it: all of it is lost. */
static int refuse_nothing(const struct ts_import *import, struct ts_error *err)
{
	return ts_error_set(err, TS_EFORMAT,
			    "input '%s': nothing in it is an event (read as %s, %s); "
			    "'tracesmith import --list' shows what can be imported",
			    import->path, import->result.format, import->result.note);
}

int ts_import_file(struct ts_writer *writer, const char *path,
		   const struct ts_import_options *options, struct ts_import_result *ret_result,
		   struct ts_error *err)
{
	struct ts_import import = { .writer = writer,
				    .path = path,
				    .position = file_position,
				    .is_plain_file = is_plain_file };
	struct ts_input_stream_source source = { .read = read_input };
	TS_AUTO(ts_input) input = NULL;
	uint64_t before;
	int rc;

	if (!writer || !path)
		return ts_error_set(err, TS_EINVAL, "import: no writer or no path");
	import.result.format = "unknown";
	if (ret_result)
		*ret_result = import.result;
	rc = ts_input_open(&input, path, err);
	if (rc)
		return rc;
	source.context = input;
	import.position_context = input;
	before = count_rows(writer);
	rc = run_source(&import, &source, 0, options, ret_result, err);
	if (!rc && !import.result.events && import.result.note[0] && count_rows(writer) == before)
		rc = refuse_nothing(&import, err);
	return rc;
}

/* ---- memory ---- */

struct memory {
	const char *data;
	size_t bytes, at, step;
};

static int read_memory(void *context, void *buffer, size_t bytes, size_t *ret_bytes,
		       struct ts_error *err)
{
	struct memory *memory = context;
	size_t count = TS_MIN(TS_MIN(bytes, memory->step), memory->bytes - memory->at);

	if (count)
		memcpy(buffer, memory->data + memory->at, count);
	memory->at += count;
	*ret_bytes = count;
	return TS_OK;
}

static void memory_position(struct ts_import *import, uint64_t *ret_done, uint64_t *ret_total)
{
	const struct memory *memory = import->position_context;

	*ret_done = memory->at;
	*ret_total = memory->bytes;
}

int ts_import_memory(struct ts_writer *writer, const char *name, const void *data, size_t bytes,
		     size_t step, size_t capacity, const struct ts_import_options *options,
		     struct ts_import_result *ret_result, struct ts_error *err)
{
	struct memory memory = { .data = data, .bytes = bytes, .step = step ? step : bytes };
	struct ts_input_stream_source source = { .read = read_memory, .context = &memory };
	struct ts_import import = { .writer = writer,
				    .path = name,
				    .position = memory_position,
				    .position_context = &memory };

	return run_source(&import, &source, capacity, options, ret_result, err);
}
