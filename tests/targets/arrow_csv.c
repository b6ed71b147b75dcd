/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	arrow_csv TRACE TABLE [FROM TO]
 *
 * Prints a table that it reads as an Arrow stream as CSV, all columns, every text in quotes. For
 * comparisons with `tracesmith export -f csv`.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tracesmith/arrow.h>

#include "lib/arrow_check.h"

static void put_text(struct ts_text *out, const char *text, size_t length)
{
	ts_text_append_char(out, '"');
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '"')
			ts_text_append_char(out, '"');
		/* As in CSV of the tool. */
		if (text[i])
			ts_text_append_char(out, text[i]);
		else
			ts_text_append_str(out, "\xef\xbf\xbd");
	}
	ts_text_append_char(out, '"');
}

static void put_bytes(struct ts_text *out, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		ts_text_printf(out, "%02x", (unsigned char)bytes[i]);
}

static void put_double(struct ts_text *out, int64_t bits)
{
	double real;

	memcpy(&real, &bits, sizeof(real));
	if (isnan(real))
		ts_text_append_str(out, "NaN");
	else if (isinf(real))
		ts_text_append_str(out, real < 0 ? "-inf" : "inf");
	else
		ts_text_append_double(out, real);
}

static void put_cell(struct ts_text *out, const struct ArrowSchema *schema,
		     const struct ArrowArray *array, int64_t row)
{
	struct arrow_cell cell = arrow_cell(schema, array, row);

	if (cell.is_null)
		return;
	if (schema->dictionary || strchr("uU", schema->format[0]))
		put_text(out, cell.text, cell.length);
	else if (schema->format[0] == 'Z')
		put_bytes(out, cell.text, cell.length);
	else if (schema->format[0] == 'g')
		put_double(out, cell.integer);
	else if (schema->format[0] == 'b')
		ts_text_append_str(out, cell.integer ? "true" : "false");
	else
		ts_text_append_int(out, cell.integer);
}

static void flush(struct ts_text *out)
{
	fwrite(out->data, 1, out->length, stdout);
	ts_text_clear(out);
}

static int print(struct ArrowArrayStream *stream)
{
	TS_SCOPED(ts_text) out = { 0 };
	struct ArrowSchema schema;
	struct ArrowArray batch;
	int result = stream->get_schema(stream, &schema);

	for (int64_t i = 0; !result && i < schema.n_children; i++)
		ts_text_printf(&out, "%s%s", i ? "," : "", schema.children[i]->name);
	ts_text_append_char(&out, '\n');
	while (!result && !(result = stream->get_next(stream, &batch)) && batch.release) {
		const char *fault = arrow_fault(&schema, &batch);

		if (fault) {
			fprintf(stderr, "arrow_csv: %s\n", fault);
			return 1;
		}
		for (int64_t row = 0; row < batch.length; row++) {
			for (int64_t i = 0; i < schema.n_children; i++) {
				ts_text_append_str(&out, i ? "," : "");
				put_cell(&out, schema.children[i], batch.children[i], row);
			}
			ts_text_append_char(&out, '\n');
		}
		flush(&out);
		batch.release(&batch);
	}
	flush(&out);
	if (result)
		fprintf(stderr, "arrow_csv: %s\n", stream->get_last_error(stream));
	schema.release(&schema);
	return result ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct ts_arrow_options options = { .size = sizeof(options),
					    .flags = TS_ARROW_ALL_COLUMNS };
	struct ArrowArrayStream stream;
	struct ts_reader *reader;
	struct ts_error err;
	int rc;

	if (argc != 3 && argc != 5) {
		fputs("usage: arrow_csv TRACE TABLE [FROM TO]\n", stderr);
		return 2;
	}
	if (argc == 5) {
		options.from = strtoll(argv[3], NULL, 10);
		options.to = strtoll(argv[4], NULL, 10);
	}
	if (ts_reader_open(&reader, argv[1], &err) ||
	    ts_arrow_stream(&stream, &reader, 1, argv[2], &options, &err)) {
		fprintf(stderr, "arrow_csv: %s\n", err.message);
		return 1;
	}
	rc = print(&stream);
	stream.release(&stream);
	ts_reader_close(reader);
	return rc;
}
