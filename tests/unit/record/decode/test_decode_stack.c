/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks in the dictionary, modules and device functions: their rows, over recorders and files, and
 * hostile entries.
 */
#include <tracesmith/sample.h>

#include "code/demangle.h"
#include "trace/extract.h"

#include "unit/record/decode/decode_support.h"

/* Entries of the target's dictionary; stacks follow. */
enum {
	SITE_LAUNCH = 1,
	SITE_KERNEL,
	SITE_ALLOCATOR,
	CODE_PYTHON,
	MODULE_PROGRAM,
	MODULE_LIBRARY,
	FUNCTION_GEMM,
	FUNCTION_RELU,
	SITE_SAMPLE,
	FIRST_STACK
};

#define MANGLED "_Z4gemmPKfPfi"
/* Without libstdc++ names stay mangled. */
#define PLAIN (ts_can_demangle() ? "gemm(float const*, float*, int)" : MANGLED)

static void put_module(struct ts_text *dictionary, const char *path, const char *build_id,
		       uint64_t start, uint64_t bytes)
{
	struct ts_live_module module = { start, bytes };
	size_t at = dictionary->length;
	uint32_t size;

	put_site(dictionary, TS_LIVE_CODE_MODULE, path, build_id, NULL, 0);
	ts_text_append(dictionary, &module, sizeof(module));
	size = (uint32_t)(dictionary->length - at);
	memcpy(dictionary->data + at, &size, sizeof(size));
}

static void put_stack(struct ts_text *dictionary, uint32_t caller, uint64_t frame)
{
	struct ts_live_site site = { .bytes = sizeof(site) + sizeof(frame),
				     .kind = TS_LIVE_CODE_STACK,
				     .line = caller };

	ts_text_append(dictionary, &site, sizeof(site));
	ts_text_append(dictionary, &frame, sizeof(frame));
}

static uint64_t frame_of(uint32_t code, uint32_t position)
{
	return (uint64_t)code << 32 | position;
}

static void put_codes(struct ts_text *dictionary)
{
	put_site(dictionary, TS_LIVE_CALL, "cuLaunchKernel", "cuda", NULL, 0);
	put_site(dictionary, TS_LIVE_GPU_OP, MANGLED, "kernel", NULL, 0);
	put_site(dictionary, TS_LIVE_ALLOCATION, "cuMemAlloc_v2", "cuda", NULL, 0);
	put_site(dictionary, TS_LIVE_CODE_PYTHON, "train", "/a/train.py", NULL, 0);
	put_module(dictionary, "/bin/program", "00ff", 0x400000, 0x2000);
	put_module(dictionary, "/lib/libdo.so", "", 0x7f0000000000, 0x10000);
	put_site(dictionary, TS_LIVE_CODE_DEVICE, MANGLED, "cubin 1234", NULL, 0);
	put_site(dictionary, TS_LIVE_CODE_DEVICE, "relu", "cubin 1234", NULL, 0);
	put_site(dictionary, TS_LIVE_SAMPLE, "pc", "cuda", NULL, 0);
}

static void give_dictionary(struct fixture *fixture, struct ts_text *dictionary, uint64_t from)
{
	TS_CHECK_INT(put_dictionary(&fixture->sink, AREA, dictionary, from), 0);
}

static void put_launch(struct fixture *fixture, uint64_t correlation, uint64_t stack)
{
	uint64_t words[4] = { 100, correlation, 0, stack };

	put_record(&fixture->ring, TS_LIVE_CALL, TS_LIVE_FLAG_TICKS | TS_LIVE_FLAG_STACK_IS,
		   SITE_LAUNCH, fixture->counter++, words, 4);
	fixture->events++;
}

static void put_kernel(struct fixture *fixture, uint64_t correlation, uint32_t graph,
		       uint32_t stack, uint64_t node)
{
	struct {
		struct ts_live_gpu_op op;
		struct ts_live_gpu_op_more more;
	} fixed = {
		.op = { .correlation = correlation,
			.device_kind = ts_live_device_kind(0, TS_GPU_OP_KERNEL),
			.stream = 7,
			.context = 1,
			.queued = TS_ABSENT,
			.submitted = TS_ABSENT,
			.start = (int64_t)fixture->counter,
			.end = (int64_t)fixture->counter + 50,
			.bytes = TS_ABSENT },
		.more = { 32, 4096, graph, stack, node },
	};

	put_record(&fixture->ring, TS_LIVE_GPU_OP, TS_LIVE_FLAG_MORE, SITE_KERNEL,
		   fixture->counter++, (const uint64_t *)(const void *)&fixed,
		   TS_LIVE_WORDS(fixed));
	fixture->events++;
}

struct taken {
	uint32_t device, stream;
	uint64_t kind, address, stack;
	int64_t bytes, total, reserved;
};

static void put_taken(struct fixture *fixture, const struct taken *taken)
{
	struct {
		struct ts_live_allocation allocation;
		uint64_t stack;
	} fixed = {
		.allocation = { .device_kind = ts_live_device_kind(taken->device,
								   (unsigned int)taken->kind),
				.stream = taken->stream,
				.context = 1,
				.address = taken->address,
				.bytes = taken->bytes,
				.total = taken->total,
				.reserved = taken->reserved },
		.stack = taken->stack,
	};

	put_record(&fixture->ring, TS_LIVE_ALLOCATION, taken->stack ? TS_LIVE_FLAG_STACK_IS : 0,
		   SITE_ALLOCATOR, fixture->counter++, (const uint64_t *)(const void *)&fixed,
		   TS_LIVE_WORDS(fixed.allocation) + (taken->stack != 0));
	fixture->events++;
}

/* "train:3 program+0x10", outermost first; at most the innermost 32 frames. */
static const char *stack_text(struct rows *rows, int64_t stack)
{
	static char text[4096];
	char before[4096];

	text[0] = 0;
	for (int depth = 0; stack && depth < 32; depth++) {
		const struct ts_stack_row *row =
			ts_reader_entity(rows->reader, TS_TABLE_STACK, stack);
		const struct ts_frame_row *frame =
			row ? ts_reader_entity(rows->reader, TS_TABLE_FRAME, row->frame) : NULL;
		const struct ts_mapping_row *mapping;

		TS_CHECK(frame != NULL);
		mapping = frame->mapping
				  ? ts_reader_entity(rows->reader, TS_TABLE_MAPPING, frame->mapping)
				  : NULL;
		TS_CHECK(!frame->mapping || mapping);
		memcpy(before, text, strlen(text) + 1);
		if (frame->pc != TS_ABSENT)
			snprintf(text, sizeof(text), "%s%s+%lld%s%.3000s",
				 frame->name ? rows_text(rows, frame->name) : "",
				 mapping ? rows_text(rows, mapping->path) : "",
				 (long long)frame->pc, before[0] ? " " : "", before);
		else
			snprintf(text, sizeof(text), "%s:%lld%s%.3000s",
				 rows_text(rows, frame->name), (long long)frame->line,
				 before[0] ? " " : "", before);
		TS_CHECK(row->parent < stack);
		stack = row->parent;
	}
	return text;
}

static void start_stacks(struct fixture *fixture, struct ts_text *dictionary)
{
	start(fixture);
	put_codes(dictionary);
	put_stack(dictionary, 0, frame_of(CODE_PYTHON, 3));
	put_stack(dictionary, FIRST_STACK, frame_of(MODULE_PROGRAM, 0x10));
	put_stack(dictionary, FIRST_STACK + 1, frame_of(MODULE_LIBRARY, 0x20));
	give_dictionary(fixture, dictionary, 0);
}

/* ---- rows ---- */

TS_TEST(a_call_names_its_stack)
{
	const char *const texts[] = { "train:3 /bin/program+16 /lib/libdo.so+32",
				      "train:3 /bin/program+16" };
	TS_SCOPED(ts_text) dictionary = { 0 };
	const struct ts_frame_row *frame;
	const struct ts_mapping_row *mapping;
	const struct ts_stack_row *stack;
	struct ts_api_call_row call;
	struct fixture fixture;
	struct rows rows;

	start_stacks(&fixture, &dictionary);
	put_launch(&fixture, 0, FIRST_STACK + 2);
	put_launch(&fixture, 0, FIRST_STACK + 1);
	put_launch(&fixture, 0, 0);
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_API_CALL);
	for (int i = 0; i < 2; i++) {
		TS_CHECK(rows_next(&rows, &call));
		TS_CHECK_STR(stack_text(&rows, call.stack), texts[i]);
	}
	stack = ts_reader_entity(rows.reader, TS_TABLE_STACK, call.stack);
	frame = ts_reader_entity(rows.reader, TS_TABLE_FRAME, stack->frame);
	TS_CHECK_INT(frame->kind, TS_FRAME_NATIVE);
	TS_CHECK_INT(frame->name, 0);
	mapping = ts_reader_entity(rows.reader, TS_TABLE_MAPPING, frame->mapping);
	TS_CHECK_STR(rows_text(&rows, mapping->build_id), "00ff");
	TS_CHECK_INT(mapping->address, 0x400000);
	TS_CHECK_INT(mapping->bytes, 0x2000);
	TS_CHECK(ts_reader_entity(rows.reader, TS_TABLE_PROCESS, mapping->process) != NULL);
	TS_CHECK(rows_next(&rows, &call));
	TS_CHECK_INT(call.stack, 0);
	rows_close(&rows);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_SAMPLE), 0);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_MAPPING), 2);
	TS_CHECK_INT(losses_of(fixture.path, "stacks", ""), 0);
}

TS_TEST(a_kernel_has_registers_a_graph_and_a_name_as_people_write_it)
{
	TS_SCOPED(ts_text) dictionary = { 0 };
	struct ts_gpu_op_row row;
	struct fixture fixture;
	struct rows rows;

	start_stacks(&fixture, &dictionary);
	put_kernel(&fixture, 5, 9, FIRST_STACK + 1, UINT64_C(1) << 40);
	put_kernel(&fixture, 6, 0, 0, 0);
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_STR(rows_text(&rows, row.name), PLAIN);
	TS_CHECK_INT(row.registers, 32);
	TS_CHECK_INT(row.shared_bytes, 4096);
	TS_CHECK_INT(row.graph, 9);
	TS_CHECK_INT(row.graph_node, INT64_C(1) << 40);
	TS_CHECK_STR(stack_text(&rows, row.stack), "train:3 /bin/program+16");
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.graph, TS_ABSENT);
	TS_CHECK_INT(row.graph_node, TS_ABSENT);
	TS_CHECK_INT(row.stack, 0);
	rows_close(&rows);
}

TS_TEST(allocations_are_rows)
{
	struct taken taken = { .device = 2,
			       .stream = 5,
			       .address = UINT64_C(0x7f1200000000),
			       .bytes = 512,
			       .total = 1024,
			       .reserved = TS_ABSENT,
			       .stack = FIRST_STACK };
	TS_SCOPED(ts_text) dictionary = { 0 };
	const struct ts_stream_row *stream;
	struct ts_allocation_row row;
	struct fixture fixture;
	struct rows rows;
	uint64_t when;

	start_stacks(&fixture, &dictionary);
	when = fixture.counter;
	put_taken(&fixture, &taken);
	taken = (struct taken){ .device = TS_LIVE_DEVICE_MASK,
				.stream = UINT32_MAX,
				.kind = TS_ALLOCATION_FREE,
				.bytes = TS_ABSENT,
				.total = 0,
				.reserved = 7 };
	put_taken(&fixture, &taken);
	taken.kind = 2; /* these do not exist */
	put_taken(&fixture, &taken);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).events, 2);
	TS_CHECK_INT(counts(&fixture).lost, 1);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_ALLOCATION);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.start, 5000000000 + (int64_t)(when - STARTED));
	TS_CHECK_INT(row.kind, TS_ALLOCATION_ALLOC);
	TS_CHECK_INT(row.address, 0x7f1200000000);
	TS_CHECK_INT(row.bytes, 512);
	TS_CHECK_INT(row.total_bytes, 1024);
	TS_CHECK_INT(row.reserved_bytes, TS_ABSENT);
	TS_CHECK_STR(rows_text(&rows, row.pool), "cuMemAlloc_v2");
	TS_CHECK_STR(stack_text(&rows, row.stack), "train:3");
	TS_CHECK(row.thread != 0 && row.device != 0);
	stream = ts_reader_entity(rows.reader, TS_TABLE_STREAM, row.stream);
	TS_CHECK_INT(stream->number, 5);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.device, 0);
	TS_CHECK_INT(row.stream, 0);
	TS_CHECK_INT(row.kind, TS_ALLOCATION_FREE);
	TS_CHECK_INT(row.bytes, TS_ABSENT);
	TS_CHECK_INT(row.total_bytes, 0);
	TS_CHECK_INT(row.reserved_bytes, 7);
	rows_close(&rows);
}

/* Several functions share a module, which is a mapping. */
TS_TEST(instructions_of_devices_are_frames)
{
	TS_SCOPED(ts_text) dictionary = { 0 };
	uint64_t words[3] = { 0, 4, 0 };
	struct ts_sample_row row;
	struct fixture fixture;
	struct rows rows;

	start_stacks(&fixture, &dictionary);
	put_stack(&dictionary, 0, frame_of(FUNCTION_GEMM, 0x100));
	put_stack(&dictionary, 0, frame_of(FUNCTION_RELU, 0x30));
	give_dictionary(&fixture, &dictionary, dictionary.length - 48);
	for (uint64_t i = 3; i < 5; i++) {
		words[2] = FIRST_STACK + i;
		put_record(&fixture.ring, TS_LIVE_SAMPLE, TS_LIVE_FLAG_STACK_IS, SITE_SAMPLE,
			   fixture.counter++, words, 3);
		fixture.events++;
	}
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_SAMPLE);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_STR(stack_text(&rows, row.stack),
		     ts_can_demangle() ? "gemm(float const*, float*, int)cubin 1234+256"
				       : MANGLED "cubin 1234+256");
	TS_CHECK_INT(row.weight, 4);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_STR(stack_text(&rows, row.stack), "relucubin 1234+48");
	rows_close(&rows);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_MAPPING), 1);
}

/* ---- over recorders and files ---- */

#define STACKS 300u
#define LAUNCHES 3000u

/* The expected text of each stack. */
struct model {
	uint32_t callers[STACKS];
	uint64_t frames[STACKS];
};

static void model_text(const struct model *model, uint32_t stack, char *ret_text, size_t bytes)
{
	char before[4096];

	ret_text[0] = 0;
	for (int depth = 0; stack && depth < 32; depth++) {
		uint64_t frame = model->frames[stack - FIRST_STACK];
		uint32_t code = (uint32_t)(frame >> 32);

		memcpy(before, ret_text, strlen(ret_text) + 1);
		if (code == CODE_PYTHON)
			snprintf(ret_text, bytes, "train:%u%s%.3000s", (uint32_t)frame,
				 before[0] ? " " : "", before);
		else
			snprintf(ret_text, bytes, "%s+%u%s%.3000s",
				 code == MODULE_PROGRAM ? "/bin/program" : "/lib/libdo.so",
				 (uint32_t)frame, before[0] ? " " : "", before);
		stack = model->callers[stack - FIRST_STACK];
	}
}

/* The file begins with launch `number`; returns the number after its last. */
static uint32_t check_launches(const char *path, const struct model *model,
			       const uint32_t *launches, uint32_t number)
{
	struct rows rows = rows_open(path, TS_TABLE_API_CALL);
	struct ts_api_call_row call;
	char text[4096];

	while (rows_next(&rows, &call)) {
		model_text(model, launches[number++], text, sizeof(text));
		TS_CHECK_STR(stack_text(&rows, call.stack), text);
	}
	rows_close(&rows);
	return number;
}

TS_TEST(every_stack_is_the_one_that_was_given)
{
	static uint32_t launches[LAUNCHES];
	static struct model model;
	TS_SCOPED(ts_text) dictionary = { 0 };
	uint32_t stacks = 0, number = 0;
	uint64_t random = 88172645463325252, given = 0;
	const char *first;
	struct fixture fixture;

	start(&fixture);
	put_codes(&dictionary);
	first = fixture.path;
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (stacks < STACKS && (!stacks || random % 4 == 0)) {
			uint32_t code = CODE_PYTHON + (uint32_t)(random >> 8) % 3;

			model.callers[stacks] = stacks && random % 8
							? FIRST_STACK +
								  (uint32_t)(random >> 20) % stacks
							: 0;
			model.frames[stacks] = frame_of(code, 1 + (uint32_t)(random >> 40) % 5);
			put_stack(&dictionary, model.callers[stacks], model.frames[stacks]);
			stacks++;
		}
		launches[i] = FIRST_STACK + (uint32_t)(random >> 30) % stacks;
		put_launch(&fixture, 0, launches[i]);
		if (i % 100 == 0 || i == LAUNCHES - 1) {
			give_dictionary(&fixture, &dictionary, given);
			given = dictionary.length;
			drain(&fixture);
		}
		if (i == 1000 || i == 2500)
			succeed(&fixture);
		if (i == 2000) {
			TS_CHECK_INT(ts_decoder_seal(fixture.decoder), 0);
			TS_CHECK_INT(ts_writer_finish(fixture.writer, NULL), 0);
			ts_writer_close(fixture.writer);
			open_file(&fixture, "t2.sbt");
			TS_CHECK_INT(
				ts_decoder_set_writer(fixture.decoder, fixture.writer, true, "t2"),
				0);
		}
	}
	finish(&fixture);
	number = check_launches(first, &model, launches, 0);
	TS_CHECK_INT(number, 2001);
	TS_CHECK_INT(check_launches(fixture.path, &model, launches, number), LAUNCHES);
}

/* ---- hostile ---- */

TS_TEST(stacks_that_are_not_there_are_counted)
{
	const uint64_t stacks[] = { FIRST_STACK,
				    FIRST_STACK + 1,
				    FIRST_STACK + 2,
				    FIRST_STACK + 3,
				    SITE_LAUNCH,
				    MODULE_PROGRAM,
				    100,
				    UINT32_MAX,
				    UINT64_MAX };
	TS_SCOPED(ts_text) dictionary = { 0 };
	struct ts_api_call_row call;
	struct fixture fixture;
	struct rows rows;

	start(&fixture);
	put_codes(&dictionary);
	put_stack(&dictionary, FIRST_STACK, frame_of(CODE_PYTHON, 1));     /* its own caller */
	put_stack(&dictionary, FIRST_STACK + 2, frame_of(CODE_PYTHON, 2)); /* a later one */
	put_stack(&dictionary, MODULE_LIBRARY, frame_of(CODE_PYTHON, 3));  /* none */
	put_stack(&dictionary, FIRST_STACK, frame_of(FIRST_STACK, 4));     /* a stack as a frame */
	give_dictionary(&fixture, &dictionary, 0);
	for (size_t i = 0; i < TS_ARRAY_SIZE(stacks); i++)
		put_launch(&fixture, 0, stacks[i]);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).events, TS_ARRAY_SIZE(stacks));
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_API_CALL);
	for (int i = 1; i < 4; i++) {
		char text[32];

		snprintf(text, sizeof(text), "train:%d", i);
		TS_CHECK(rows_next(&rows, &call));
		TS_CHECK_STR(stack_text(&rows, call.stack), text);
	}
	TS_CHECK(rows_next(&rows, &call));
	TS_CHECK(strstr(stack_text(&rows, call.stack), "(name not stored)") != NULL);
	while (rows_next(&rows, &call))
		TS_CHECK_INT(call.stack, 0);
	rows_close(&rows);
	TS_CHECK_INT(losses_of(fixture.path, "stacks", ""), 3 + 5);
	TS_CHECK_INT(losses_of(fixture.path, "frames", "the dictionary is full"), 1);
}

TS_TEST(a_stack_without_end_is_cut)
{
	TS_SCOPED(ts_text) dictionary = { 0 };
	struct ts_api_call_row call;
	struct fixture fixture;
	struct rows rows;
	uint32_t depth = 0;
	int64_t stack;

	start(&fixture);
	put_codes(&dictionary);
	for (uint32_t i = 0; i < 20000; i++)
		put_stack(&dictionary, i ? FIRST_STACK + i - 1 : 0, frame_of(CODE_PYTHON, 1 + i));
	give_dictionary(&fixture, &dictionary, 0);
	put_launch(&fixture, 0, FIRST_STACK + 19999);
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_API_CALL);
	TS_CHECK(rows_next(&rows, &call));
	for (stack = call.stack; stack; depth++)
		stack = ((const struct ts_stack_row *)ts_reader_entity(rows.reader, TS_TABLE_STACK,
								       stack))
				->parent;
	TS_CHECK_INT(depth, 4096);
	rows_close(&rows);
	TS_CHECK_INT(losses_of(fixture.path, "frames", "too many different"), 20000 - 4096);
}

/* Any entry may be arbitrary: its rows are complete, and no other entry is affected. */
TS_TEST(random_dictionaries_are_survived)
{
	uint64_t random = 1234567891011;

	for (int round = 0; round < 300; round++) {
		struct taken taken = { .bytes = 1, .total = 1, .reserved = 1 };
		TS_SCOPED(ts_text) dictionary = { 0 };
		struct fixture fixture;

		start(&fixture);
		put_codes(&dictionary);
		for (int i = 0; i < 30; i++) {
			struct ts_live_site site;

			random = random * 6364136223846793005 + 1442695040888963407;
			site = (struct ts_live_site){ .bytes = 24 +
							       (uint32_t)(random >> 20) % 4 * 8,
						      .kind = (uint8_t)(38 + (random >> 30) % 9),
						      .fields = (random >> 40) % 16 == 0,
						      .name_bytes = (random >> 36) % 9,
						      .category_bytes = (random >> 52) % 7,
						      .line = (uint32_t)(random >> 56) % 45 };
			ts_text_append(&dictionary, &site, sizeof(site));
			for (uint32_t at = sizeof(site); at < site.bytes; at += 8) {
				uint64_t word = frame_of((uint32_t)(random >> (at % 50)) % 45, 5);

				if (random >> 60 == 3)
					word = random;
				ts_text_append(&dictionary, &word, sizeof(word));
			}
		}
		give_dictionary(&fixture, &dictionary, 0);
		for (uint64_t i = 0; i < 50; i++) {
			put_launch(&fixture, i, i);
			put_kernel(&fixture, i, 1, (uint32_t)i, i);
			taken.stack = i;
			put_taken(&fixture, &taken);
		}
		drain(&fixture);
		TS_CHECK(counts(&fixture).events + counts(&fixture).lost >= 150);
		succeed(&fixture);
		put_thread(&fixture.ring, fixture.counter++, 1, PID + 1, 0, "main");
		put_call(&fixture, "other", 1, 0, 0);
		drain_area(&fixture, OTHER_AREA);
		finish(&fixture);
		TS_CHECK(count_rows(fixture.path, TS_TABLE_API_CALL) >= 1);
	}
}

/* Truncated at any word, with a larger count. */
TS_TEST(records_that_are_cut_make_no_sense)
{
	struct taken taken = { .bytes = 1, .total = 1, .reserved = 1, .stack = FIRST_STACK };
	TS_SCOPED(ts_text) good = { 0 };
	size_t ends[3];

	for (int kind = 0; kind < 3; kind++) {
		TS_SCOPED(ts_text) dictionary = { 0 };
		struct fixture fixture;

		start_stacks(&fixture, &dictionary);
		drain(&fixture);
		if (kind == 0)
			put_launch(&fixture, 1, FIRST_STACK);
		else if (kind == 1)
			put_kernel(&fixture, 1, 1, FIRST_STACK, 1);
		else
			put_taken(&fixture, &taken);
		ts_text_append(&good, fixture.ring.data, fixture.ring.length);
		ends[kind] = good.length;
		drain(&fixture);
		finish(&fixture);
	}
	for (int kind = 0; kind < 3; kind++) {
		size_t from = kind ? ends[kind - 1] : 0;

		for (size_t words = 2; words < (ends[kind] - from) / 8; words++) {
			TS_SCOPED(ts_text) dictionary = { 0 };
			struct fixture fixture;
			uint16_t count = (uint16_t)words;

			start_stacks(&fixture, &dictionary);
			drain(&fixture);
			ts_text_append(&fixture.ring, good.data + from, words * 8);
			memcpy(fixture.ring.data, &count, sizeof(count));
			fixture.events = 1;
			drain(&fixture);
			TS_CHECK_INT(counts(&fixture).events + counts(&fixture).lost, 1);
			finish(&fixture);
		}
	}
}

/* ---- calls and their commands ---- */

#define MANY 1000000u

/* A million pending calls, with sparse numbers, and commands in another order. */
TS_TEST(a_million_calls_wait_for_their_commands)
{
	TS_SCOPED(ts_text) dictionary = { 0 };
	struct fixture fixture;

	start_stacks(&fixture, &dictionary);
	for (uint64_t i = 1; i <= MANY; i++) {
		put_launch(&fixture, i * 5, 0);
		if (i % 10000 == 0)
			drain(&fixture);
		if (i == MANY / 2)
			succeed(&fixture);
	}
	for (uint64_t i = MANY; i > 3; i--) {
		put_kernel(&fixture, i * 5, 0, 0, 0);
		if (i % 10000 == 0)
			drain(&fixture);
	}
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "gpu_op", "their call was recorded"), 3);
}

/* As when the command ring is drained first; then a successor continues. */
TS_TEST(commands_may_come_long_before_their_calls)
{
	TS_SCOPED(ts_text) dictionary = { 0 };
	struct fixture fixture;

	start_stacks(&fixture, &dictionary);
	for (uint64_t i = 1; i <= 200000; i++) {
		put_kernel(&fixture, i, 0, 0, 0);
		if (i % 10 == 0) /* of a graph */
			put_kernel(&fixture, i, 1, 0, 2);
		if (i % 10000 == 0)
			drain(&fixture);
	}
	succeed(&fixture);
	for (uint64_t i = 1; i <= 200007; i++) {
		put_launch(&fixture, i, 0);
		if (i % 10000 == 0)
			drain(&fixture);
	}
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "gpu_op", "their call was recorded"), 7);
}

/* Numbers far apart take bounded memory, and are counted all the same. */
TS_TEST(calls_without_end_take_bounded_memory)
{
	TS_SCOPED(ts_text) dictionary = { 0 };
	struct fixture fixture;

	start_stacks(&fixture, &dictionary);
	for (uint64_t i = 1; i <= 40000; i++) {
		put_launch(&fixture, i << 20, 0);
		if (i % 10000 == 0)
			drain(&fixture);
	}
	put_launch(&fixture, UINT64_MAX, 0);
	drain(&fixture);
	succeed(&fixture);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "gpu_op", "their call was recorded"), 40001);
}

/* ---- extracts ---- */

/*
 * Contents of a window: calls inside it with their stacks, kernels that they launched even if these
 * ran after it, samples of its process without a thread.
 */
TS_TEST(a_part_of_a_trace_has_what_its_calls_gave)
{
	const char *part = file_in_folder("part.sbt");
	TS_SCOPED(ts_text) dictionary = { 0 };
	uint64_t words[3] = { (uint64_t)TS_SAMPLE_ON_DEVICE << 32, 4, FIRST_STACK + 3 };
	struct ts_extract_filter filter = { .pid = PID, .from_ns = INT64_MIN };
	struct ts_api_call_row call;
	struct ts_sample_row sample;
	struct ts_gpu_op_row op;
	struct fixture fixture;
	struct rows rows;

	start_stacks(&fixture, &dictionary);
	put_stack(&dictionary, 0, frame_of(FUNCTION_RELU, 0x30));
	give_dictionary(&fixture, &dictionary, dictionary.length - 24);
	put_launch(&fixture, 1, FIRST_STACK + 2);
	put_record(&fixture.ring, TS_LIVE_SAMPLE, TS_LIVE_FLAG_STACK_IS, SITE_SAMPLE,
		   fixture.counter++, words, 3);
	fixture.events++;
	filter.to_ns = 5000000000 + (int64_t)fixture.counter - STARTED;
	fixture.counter += 10000;
	put_device_clock(&fixture, 0, fixture.counter, (int64_t)fixture.counter, 10);
	put_launch(&fixture, 2, FIRST_STACK);
	put_kernel(&fixture, 1, 3, FIRST_STACK + 1, 9);
	put_kernel(&fixture, 2, 0, 0, 0);
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(ts_extract(fixture.path, part, &filter, NULL), 0);
	check_finished(part);
	rows = rows_open(part, TS_TABLE_API_CALL);
	TS_CHECK(rows_next(&rows, &call));
	TS_CHECK_STR(stack_text(&rows, call.stack), "train:3 /bin/program+16 /lib/libdo.so+32");
	TS_CHECK(!rows_next(&rows, &call));
	rows_close(&rows);
	rows = rows_open(part, TS_TABLE_GPU_OP);
	TS_CHECK(rows_next(&rows, &op));
	TS_CHECK_INT(op.correlation, 1);
	TS_CHECK_STR(stack_text(&rows, op.stack), "train:3 /bin/program+16");
	TS_CHECK(!rows_next(&rows, &op));
	rows_close(&rows);
	rows = rows_open(part, TS_TABLE_SAMPLE);
	TS_CHECK(rows_next(&rows, &sample));
	TS_CHECK_STR(stack_text(&rows, sample.stack), "relucubin 1234+48");
	TS_CHECK_INT(sample.thread, 0);
	rows_close(&rows);
	/* None of it for another process. */
	filter.pid = PID + 1;
	filter.to_ns = INT64_MAX;
	TS_CHECK_INT(ts_extract(fixture.path, part, &filter, NULL), 0);
	TS_CHECK_INT(count_rows(part, TS_TABLE_API_CALL), 0);
	TS_CHECK_INT(count_rows(part, TS_TABLE_SAMPLE), 0);
	TS_CHECK_INT(count_rows(part, TS_TABLE_GPU_OP), 0);
}
