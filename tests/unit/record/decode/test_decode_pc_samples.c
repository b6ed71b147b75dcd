/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled device instructions: rows of `sample` without a thread, over windows, files and
 * recorders.
 */
#include <tracesmith/sample.h>

#include "code/demangle.h"
#include "trace/extract.h"
#include "unit/record/decode/decode_support.h"

/* Entries of the target's dictionary, in this order. */
enum { SITE_WAIT = 1, CODE_KERNEL, CODE_PLAIN, CODE_COUNT = CODE_PLAIN };

static void start_device(struct fixture *fixture)
{
	TS_SCOPED(ts_text) dictionary = { 0 };

	start(fixture);
	put_site(&dictionary, TS_LIVE_SAMPLE, "pc", "wait", NULL, 0);
	put_site(&dictionary, TS_LIVE_CODE_DEVICE, "_Z5scalePfi", "cubin:1", NULL, 0);
	put_site(&dictionary, TS_LIVE_CODE_DEVICE, "plain", "cubin:1", NULL, 0);
	TS_CHECK_INT(put_dictionary(&fixture->sink, AREA, &dictionary, 0), 0);
}

static void put_instruction(struct fixture *fixture, uint64_t frame, uint64_t weight,
			    uint32_t correlation)
{
	struct {
		struct ts_live_sample sample;
		uint64_t count, frame;
	} fixed = { { correlation, TS_SAMPLE_ON_DEVICE, weight }, 1, frame };

	put_record(&fixture->ring, TS_LIVE_SAMPLE, TS_LIVE_FLAG_STACK, SITE_WAIT,
		   fixture->counter++, (const uint64_t *)(const void *)&fixed,
		   TS_LIVE_WORDS(fixed));
	fixture->events++;
}

static const struct ts_frame_row *frame_of(struct rows *rows, int64_t stack)
{
	const struct ts_stack_row *row = ts_reader_entity(rows->reader, TS_TABLE_STACK, stack);
	const struct ts_frame_row *frame;

	TS_CHECK(row != NULL && row->parent == 0);
	frame = ts_reader_entity(rows->reader, TS_TABLE_FRAME, row->frame);
	TS_CHECK(frame != NULL);
	return frame;
}

/* Samples without a known launch have no arguments. */
TS_TEST(an_instruction_is_of_no_thread)
{
	const struct ts_mapping_row *mapping;
	const struct ts_frame_row *frame;
	struct ts_sample_row row;
	struct fixture fixture;
	struct rows rows;

	start_device(&fixture);
	put_instruction(&fixture, ts_code_frame(CODE_KERNEL, 0x1230), 12345, 0);
	put_instruction(&fixture, ts_code_frame(CODE_PLAIN, 0), 1, 0);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).samples, 2);
	TS_CHECK_INT(counts(&fixture).lost, 0);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_SAMPLE);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.thread, 0);
	TS_CHECK_INT(row.weight, 12345);
	TS_CHECK_INT(row.shape, 0);
	TS_CHECK_STR(rows_text(&rows, row.name), "pc");
	TS_CHECK_STR(rows_text(&rows, row.state), "wait");
	frame = frame_of(&rows, row.stack);
	TS_CHECK_INT(frame->kind, TS_FRAME_INSTRUCTION);
	TS_CHECK_INT(frame->pc, 0x1230);
	TS_CHECK_INT(frame->line, TS_ABSENT);
	/* Without libstdc++ names stay mangled. */
	TS_CHECK_STR(rows_text(&rows, frame->name),
		     ts_can_demangle() ? "scale(float*, int)" : "_Z5scalePfi");
	mapping = ts_reader_entity(rows.reader, TS_TABLE_MAPPING, frame->mapping);
	TS_CHECK(mapping != NULL);
	TS_CHECK_STR(rows_text(&rows, mapping->path), "cubin:1");
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_STR(rows_text(&rows, frame_of(&rows, row.stack)->name), "plain");
	TS_CHECK_INT(frame_of(&rows, row.stack)->pc, 0);
	TS_CHECK_INT(frame_of(&rows, row.stack)->mapping, frame->mapping);
	rows_close(&rows);
}

/* The same number as its call. */
TS_TEST(its_launch)
{
	struct ts_api_call_row call;
	struct ts_sample_row row;
	struct fixture fixture;
	struct rows rows;

	start_device(&fixture);
	put_call(&fixture, "cuLaunchKernel", 10, 77, 0);
	put_instruction(&fixture, ts_code_frame(CODE_KERNEL, 16), 5, 77);
	drain(&fixture);
	succeed(&fixture);
	put_instruction(&fixture, ts_code_frame(CODE_KERNEL, 16), 6, 77);
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_API_CALL);
	TS_CHECK(rows_next(&rows, &call));
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_SAMPLE);
	for (int64_t weight = 5; weight <= 6; weight++) {
		TS_CHECK(rows_next(&rows, &row));
		TS_CHECK_INT(row.weight, weight);
		TS_CHECK_INT(rows_value(&rows, 0), call.correlation);
	}
	TS_CHECK(!rows_next(&rows, &row));
	rows_close(&rows);
}

/* A function that did not fit into the dictionary, and malformed frames, are counted and marked. */
TS_TEST(functions_without_names)
{
	struct ts_sample_row row;
	struct fixture fixture;
	struct rows rows;

	start_device(&fixture);
	put_instruction(&fixture, ts_code_frame(0, 16), 5, 0);
	put_instruction(&fixture, ts_code_frame(CODE_COUNT + 1, 16), 5, 0);
	put_instruction(&fixture, ts_code_frame(SITE_WAIT, 16), 5, 0);
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_SAMPLE);
	for (unsigned int i = 0; i < 3; i++) {
		TS_CHECK(rows_next(&rows, &row));
		TS_CHECK_STR(rows_text(&rows, frame_of(&rows, row.stack)->name),
			     "(name not stored)");
	}
	rows_close(&rows);
}

/* ---- code ---- */

static void put_code(struct fixture *fixture, uint64_t number, const char *name)
{
	put_blob(fixture, number, "code", 4);
	put_object(fixture, 10 + number, TS_OBJECT_MODULE, 0, TS_ABSENT, number, name, "");
}

/* An extract has the code of what was sampled in it, and no other. */
TS_TEST(code_of_a_part)
{
	struct ts_extract_filter filter = { .pid = PID, .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	const char *part = file_in_folder("part.sbt");
	struct ts_object_row row;
	struct fixture fixture;
	struct rows rows;
	uint64_t bytes = 0;

	start_device(&fixture);
	put_instruction(&fixture, ts_code_frame(CODE_KERNEL, 16), 5, 0);
	put_code(&fixture, 1, "cubin:1");
	put_code(&fixture, 2, "cubin:2");
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_OBJECT), 2);
	TS_CHECK_INT(ts_extract(fixture.path, part, &filter, NULL), 0);
	check_finished(part);
	rows = rows_open(part, TS_TABLE_OBJECT);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_STR(rows_text(&rows, row.name), "cubin:1");
	TS_CHECK_INT(ts_reader_blob_size(rows.reader, row.blob, &bytes, NULL), 0);
	TS_CHECK_INT(bytes, 4);
	TS_CHECK(!rows_next(&rows, &row));
	rows_close(&rows);
	/* Nothing of it before the sample. */
	filter.to_ns = 0;
	TS_CHECK_INT(ts_extract(fixture.path, part, &filter, NULL), 0);
	TS_CHECK_INT(count_rows(part, TS_TABLE_OBJECT), 0);
}
