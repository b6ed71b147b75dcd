/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/replay/targets/cuda/target_cuda_support.h"

TS_TEST(kernels_write_what_they_wrote)
{
	struct cuda_target *target = cuda_target_start(0);
	uint32_t middle, end, pages;
	static uint32_t expected[PAGE / 4];

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(1), 100, 1000);
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(2), 5, 1000);
	cuda_target_add(target, CUDA_STREAM, ADDRESS(1), ADDRESS(1), ADDRESS(2), 1000);
	CUDA_TARGET_OPEN(target, .repeat = 1);
	middle = cuda_target_capture(target, 0, CUDA_MEMORY, PAGE, 4000);
	end = cuda_target_capture(target, UINT32_MAX, CUDA_MEMORY, PAGE, 4000);
	pages = cuda_target_capture_pages(target, UINT32_MAX);
	for (uint32_t i = 0; i < 1000; i++)
		expected[i] = 105 + 2 * i;
	for (unsigned int i = 0; i < 3; i++) {
		CUDA_TARGET_RUN(target, i);
		cuda_target_check_filled(target->content[middle], 100, 1000);
		TS_CHECK_MEM(target->content[end], expected, 4000);
		TS_CHECK(cuda_target_hash(target, pages, CUDA_MEMORY, PAGE) ==
			 ts_hash_page(expected, PAGE, NULL, 0));
	}
	TS_CHECK(target->times[0].start != TS_ABSENT);
	TS_CHECK(target->times[0].end <= target->times[2].end);
	cuda_target_stop(target);
}

TS_TEST(the_snapshot_is_restored)
{
	for (unsigned int repeat = 1; repeat < 3; repeat++) {
		struct cuda_target *target = cuda_target_start(2);
		static uint32_t content[3000];
		uint32_t before, after;

		for (uint32_t i = 0; i < 3000; i++)
			content[i] = 7 * i;
		/* Across two pages, at no multiple of anything. */
		cuda_piece(&target->trace, target->open, CUDA_MEMORY, (int64_t)PAGE - 5000, content,
			   12000);
		cuda_piece(&target->trace, target->open, VARIABLE_WORDS, 0, content, 128);
		cuda_target_fill(target, CUDA_STREAM, ADDRESS(3), 1, 10);
		cuda_target_fill(target, CUDA_STREAM, ADDRESS(1), 1, 10);
		/* With one run nothing is kept: the snapshot is read again. */
		CUDA_TARGET_OPEN(target, .repeat = repeat);
		before = cuda_target_capture(target, 0, CUDA_MEMORY, PAGE - 5000, 12000);
		after = cuda_target_capture(target, 0, VARIABLE_WORDS, 0, 128);
		for (unsigned int i = 0; i < 3; i++) {
			CUDA_TARGET_RUN(target, i);
			TS_CHECK_MEM(target->content[before], content, 12000);
			TS_CHECK_MEM(target->content[after], content, 128);
		}
		cuda_target_stop(target);
	}
}

/* More than are read at once, in any order of sizes. */
TS_TEST(many_pieces)
{
	enum { PIECES = 150 };
	struct cuda_target *target = cuda_target_start(PIECES);
	static uint32_t content[4 * PAGE / 4];
	uint64_t offset = 0;
	uint32_t captured;

	for (size_t i = 0; i < TS_ARRAY_SIZE(content); i++)
		content[i] = (uint32_t)(i * 2654435761u);
	for (int i = 0; i < PIECES; i++) {
		uint64_t bytes = i % 3 == 0 ? 100000 : i % 3 == 1 ? 4 : 52428;

		cuda_piece(&target->trace, target->open, CUDA_MEMORY, (int64_t)offset,
			   (char *)content + offset, (int64_t)bytes);
		offset += bytes;
	}
	TS_CHECK(offset < 4 * PAGE);
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(3) + PAGE - 40, 0, 1);
	CUDA_TARGET_OPEN(target, .repeat = 1);
	captured = cuda_target_capture(target, 0, CUDA_MEMORY, 0, offset);
	CUDA_TARGET_RUN(target, 0);
	TS_CHECK_MEM(target->content[captured], content, offset);
	CUDA_TARGET_RUN(target, 1);
	TS_CHECK_MEM(target->content[captured], content, offset);
	cuda_target_stop(target);
}

TS_TEST(each_command_has_the_pages_that_it_changed)
{
	struct cuda_target *target = cuda_target_start(0);
	uint32_t first, second, third, last;

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(1), 100, 1000);
	cuda_target_fill(target, CUDA_STREAM_2, ADDRESS(2), 5, 1000);
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(2), 5, 1000);
	CUDA_TARGET_OPEN(target, .check = TS_REPLAY_CHECK_EACH);
	first = cuda_target_capture_pages(target, 0);
	second = cuda_target_capture_pages(target, 1);
	third = cuda_target_capture_pages(target, 2);
	last = cuda_target_capture_pages(target, UINT32_MAX);
	CUDA_TARGET_RUN(target, 0);
	/* Four pages of the arena, two variables. */
	TS_CHECK_INT(target->page_counts[first], 6);
	TS_CHECK_INT(target->page_counts[second], 1);
	TS_CHECK(cuda_target_hash(target, second, CUDA_MEMORY, 2 * PAGE) != 0);
	TS_CHECK_INT(target->page_counts[third], 0);
	TS_CHECK_INT(target->page_counts[last], 6);
	cuda_target_stop(target);
}

TS_TEST(variables_that_moved_are_relocated)
{
	struct cuda_target *target = cuda_target_start(1);
	const uint64_t table[] = { 0x7f0000000008, 0x7f0000000010, 0x1234 };
	struct {
		uint64_t out, table;
		uint32_t count, padding;
	} params = { ADDRESS(2), ADDRESS(1), 2, 0 };
	struct ts_replay_report *report = calloc(1, sizeof(*report));
	static uint64_t expected[PAGE / 8];
	uint32_t out, memory, pages;

	memcpy(expected, table, sizeof(table));
	cuda_piece(&target->trace, target->open, CUDA_MEMORY, (int64_t)PAGE, table, sizeof(table));
	cuda_target_launch(target, CUDA_STREAM, KERNEL_READ_THROUGH_TABLE, &params,
			   sizeof(params) - 4, "");
	CUDA_TARGET_OPEN(target, .repeat = 2);
	out = cuda_target_capture(target, 0, CUDA_MEMORY, 2 * PAGE, 16);
	memory = cuda_target_capture(target, 0, CUDA_MEMORY, PAGE, sizeof(table));
	pages = cuda_target_capture_pages(target, UINT32_MAX);
	for (unsigned int i = 0; i < 2; i++) {
		CUDA_TARGET_RUN(target, i);
		/* The window has no content of the variables. */
		TS_CHECK_INT(((uint64_t *)target->content[out])[0], 0);
		TS_CHECK_MEM(target->content[memory], table, sizeof(table));
		TS_CHECK(cuda_target_hash(target, pages, CUDA_MEMORY, PAGE) ==
			 ts_hash_page(expected, PAGE, NULL, 0));
	}
	ts_replay_target_cuda.report(target->session, report);
	TS_CHECK_INT(report->relocated_words, 2);
	TS_CHECK_STR(report->relocated, "words (2)");
	free(report);
	cuda_target_stop(target);
}

/* A word that the driver sets when it loads the module; here it points to a variable. */
TS_TEST(addresses_of_functions_are_relocated)
{
	struct cuda_target *target = cuda_target_start(3);
	const uint64_t function = 0x7e0000001000, words[16] = { 0, 77 };
	const struct {
		uint64_t out, table;
		uint32_t count, padding;
	} params = { ADDRESS(2), ADDRESS(1), 1, 0 };
	struct ts_replay_report *report = calloc(1, sizeof(*report));
	uint32_t out;

	cuda_memory(&target->trace, 100, CUDA_MODULE, 0x7f0000001000, 8, "pointer",
		    "\"global\":true,\"functions\":[[0,\"rotate\"],[900,\"nothing\"]]");
	cuda_piece(&target->trace, target->open, 100, 0, &function, 8);
	cuda_piece(&target->trace, target->open, CUDA_MEMORY, (int64_t)PAGE, &function, 8);
	cuda_piece(&target->trace, target->open, VARIABLE_WORDS, 0, words, sizeof(words));
	cuda_target_launch(target, CUDA_STREAM, KERNEL_READ_THROUGH_TABLE, &params,
			   sizeof(params) - 4, "");
	CUDA_TARGET_OPEN(target, .repeat = 1);
	out = cuda_target_capture(target, 0, CUDA_MEMORY, 2 * PAGE, 8);
	CUDA_TARGET_RUN(target, 0);
	TS_CHECK_INT(*(uint64_t *)target->content[out], 77);
	ts_replay_target_cuda.report(target->session, report);
	TS_CHECK_STR(report->relocated, "rotate (2)");
	free(report);
	cuda_target_stop(target);
}

TS_TEST(copies_and_fills)
{
	struct cuda_target *target = cuda_target_start(0);
	uint32_t words[64], expected[50], read, content;
	const uint16_t pattern = 0x1234;

	for (uint32_t i = 0; i < 64; i++)
		words[i] = i * i;
	memcpy(expected, words + 1, sizeof(expected));
	for (int i = 0; i < 10; i++)
		memcpy((char *)expected + 100 + 2 * i, &pattern, 2);
	cuda_target_plain(target, (struct fixture_command){
					  .kind = TS_COMMAND_COPY,
					  .queue = CUDA_STREAM,
					  .object = CUDA_MEMORY,
					  .offset = 100,
					  .bytes = 256,
					  .blob = fixture_blob(&target->trace, words, 256) });
	cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_COPY,
							    .queue = CUDA_STREAM,
							    .object = CUDA_MEMORY,
							    .offset = 5000,
							    .other = CUDA_MEMORY,
							    .other_offset = 104,
							    .bytes = 200 });
	cuda_target_plain(target, (struct fixture_command){
					  .kind = TS_COMMAND_FILL,
					  .queue = CUDA_STREAM,
					  .object = CUDA_MEMORY,
					  .offset = 5100,
					  .bytes = 20,
					  .blob = fixture_blob(&target->trace, &pattern, 2) });
	cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_COPY,
							    .queue = CUDA_STREAM,
							    .other = CUDA_MEMORY,
							    .other_offset = 5000,
							    .bytes = 200,
							    .details = "{\"blocking\":true}" });
	CUDA_TARGET_OPEN(target, .repeat = 1);
	read = cuda_target_capture(target, 3, 0, 0, 200);
	content = cuda_target_capture(target, UINT32_MAX, CUDA_MEMORY, 5000, 200);
	CUDA_TARGET_RUN(target, 0);
	TS_CHECK_MEM(target->content[read], expected, 200);
	TS_CHECK_MEM(target->content[content], expected, 200);
	cuda_target_stop(target);
}

TS_TEST(memory_comes_and_goes)
{
	struct cuda_target *target = cuda_target_start(0);
	uint32_t content, gone, pages;

	cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_ALLOC,
							    .object = CUDA_MEMORY,
							    .offset = (int64_t)(8 * PAGE),
							    .bytes = (int64_t)(2 * PAGE) });
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(9), 3, 10);
	cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_SYNC,
							    .object = CUDA_CONTEXT,
							    .details = "{\"what\":\"free\"}" });
	cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_FREE,
							    .object = CUDA_MEMORY,
							    .offset = (int64_t)(8 * PAGE),
							    .bytes = (int64_t)PAGE });
	cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_FREE,
							    .object = CUDA_MEMORY,
							    .bytes = (int64_t)PAGE });
	CUDA_TARGET_OPEN(target, .repeat = 2);
	content = cuda_target_capture(target, 1, CUDA_MEMORY, 9 * PAGE, 40);
	gone = cuda_target_capture(target, 3, CUDA_MEMORY, 7 * PAGE, 3 * PAGE);
	pages = cuda_target_capture_pages(target, UINT32_MAX);
	for (unsigned int i = 0; i < 3; i++) {
		CUDA_TARGET_RUN(target, i);
		cuda_target_check_filled(target->content[content], 3, 10);
		TS_CHECK_INT(((uint32_t *)target->content[gone])[0], 0);
		cuda_target_check_filled((char *)target->content[gone] + 2 * PAGE, 3, 10);
		/* Pages 1 to 3, 9, and two variables. */
		TS_CHECK_INT(target->page_counts[pages], 6);
		TS_CHECK(!cuda_target_hash(target, pages, CUDA_MEMORY, 0));
		TS_CHECK(cuda_target_hash(target, pages, CUDA_MEMORY, 9 * PAGE) != 0);
	}
	cuda_target_stop(target);
}

TS_TEST(events_order_streams)
{
	struct cuda_target *target = cuda_target_start(0);
	uint32_t content;

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 1000);
	cuda_record(&target->trace, CUDA_STREAM, 1);
	cuda_wait(&target->trace, CUDA_STREAM_2, 1);
	cuda_target_add(target, CUDA_STREAM_2, ADDRESS(1), ADDRESS(0), ADDRESS(0), 1000);
	cuda_record(&target->trace, CUDA_STREAM_2, 1);
	cuda_wait(&target->trace, CUDA_STREAM, 1);
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 1000);
	CUDA_TARGET_OPEN(target, .repeat = 2);
	content = cuda_target_capture(target, UINT32_MAX, CUDA_MEMORY, PAGE, 4000);
	for (unsigned int i = 0; i < 20; i++) {
		CUDA_TARGET_RUN(target, i);
		for (uint32_t j = 0; j < 1000; j++)
			TS_CHECK_INT(((uint32_t *)target->content[content])[j], 2 * (1 + j));
	}
	cuda_target_stop(target);
}

TS_TEST(another_order)
{
	struct cuda_target *target = cuda_target_start(0);
	const uint32_t order[] = { 1, 0 };
	uint32_t content;

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	cuda_target_fill(target, CUDA_STREAM_2, ADDRESS(0), 2, 10);
	CUDA_TARGET_OPEN(target, .repeat = 1);
	content = cuda_target_capture(target, UINT32_MAX, CUDA_MEMORY, 0, 40);
	target->outcome.order = order;
	CUDA_TARGET_RUN(target, 0);
	cuda_target_check_filled(target->content[content], 1, 10);
	cuda_target_stop(target);
}

TS_TEST(host_memory_is_written_by_the_host)
{
	struct cuda_target *target = cuda_target_start(0);
	const uint32_t words[] = { 9, 8, 7, 6 };
	uint32_t content, copied;

	cuda_target_plain(target,
			  (struct fixture_command){
				  .kind = TS_COMMAND_HOST_WRITE,
				  .object = CUDA_HOST_MEMORY,
				  .offset = CUDA_HOST + 64,
				  .bytes = sizeof(words),
				  .blob = fixture_blob(&target->trace, words, sizeof(words)) });
	cuda_target_add(target, CUDA_STREAM, ADDRESS(0), CUDA_HOST + 64, CUDA_HOST + 64, 4);
	/* To host memory that is mapped. */
	cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_COPY,
							    .queue = CUDA_STREAM,
							    .object = CUDA_HOST_MEMORY,
							    .offset = CUDA_HOST,
							    .other = CUDA_MEMORY,
							    .bytes = 16 });
	CUDA_TARGET_OPEN(target, .repeat = 2);
	content = cuda_target_capture(target, UINT32_MAX, CUDA_MEMORY, 0, 16);
	copied = cuda_target_capture(target, UINT32_MAX, CUDA_HOST_MEMORY, CUDA_HOST, 16);
	for (unsigned int i = 0; i < 2; i++) {
		CUDA_TARGET_RUN(target, i);
		for (int j = 0; j < 4; j++)
			TS_CHECK_INT(((uint32_t *)target->content[content])[j], 2 * words[j]);
		TS_CHECK_MEM(target->content[copied], target->content[content], 16);
	}
	cuda_target_stop(target);
}

/* ---- graphs ---- */

static void node(struct cuda_target *target, int64_t graph, struct fixture_command command,
		 int number, const char *after, const char *more)
{
	char details[512];

	snprintf(details, sizeof(details), "{\"node\":%d,\"after\":[%s]%s}", number, after, more);
	command.queue = graph;
	command.details = details;
	fixture_command(&target->trace, &command);
}

/* Two fills, and a sum that waits for both; then a copy. */
static void make_graph(struct cuda_target *target, int64_t graph)
{
	struct fixture_trace *trace = &target->trace;
	const struct {
		uint64_t out;
		uint32_t value, count;
	} first = { ADDRESS(0), 1, 100 }, second = { ADDRESS(1), 2, 100 };
	const struct {
		uint64_t out, a, b;
		uint32_t count, padding;
	} sum = { ADDRESS(2), ADDRESS(0), ADDRESS(1), 100, 0 };
	static const char shape[] = ",\"grid\":[2,1,1],\"block\":[32,1,1],\"shared\":0";

	cuda_graph(trace, graph, 4);
	node(target, graph,
	     (struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
				       .object = KERNEL_FILL,
				       .blob = fixture_blob(trace, &first, sizeof(first)) },
	     0, "", shape);
	node(target, graph,
	     (struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
				       .object = KERNEL_FILL,
				       .blob = fixture_blob(trace, &second, sizeof(second)) },
	     1, "", shape);
	node(target, graph,
	     (struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
				       .object = KERNEL_ADD,
				       .blob = fixture_blob(trace, &sum, sizeof(sum) - 4) },
	     2, "0,1", shape);
	node(target, graph,
	     (struct fixture_command){ .kind = TS_COMMAND_COPY,
				       .object = CUDA_MEMORY,
				       .offset = (int64_t)(3 * PAGE),
				       .other = CUDA_MEMORY,
				       .other_offset = (int64_t)(2 * PAGE),
				       .bytes = 400 },
	     3, "2", "");
}

static void check_sum(const void *content)
{
	for (uint32_t i = 0; i < 100; i++)
		TS_CHECK_INT(((const uint32_t *)content)[i], 3 + 2 * i);
}

TS_TEST(graphs_run_as_graphs)
{
	struct cuda_target *target = cuda_target_start(0);
	uint32_t content;

	make_graph(target, GRAPH_1);
	cuda_launch_graph(&target->trace, CUDA_STREAM, GRAPH_1);
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(2), 9, 10);
	cuda_launch_graph(&target->trace, CUDA_STREAM, GRAPH_1);
	CUDA_TARGET_OPEN(target, .repeat = 2);
	TS_CHECK_INT(target->replay->plan.count, 9);
	content = cuda_target_capture(target, UINT32_MAX, CUDA_MEMORY, 3 * PAGE, 400);
	for (unsigned int i = 0; i < 3; i++) {
		CUDA_TARGET_RUN(target, i);
		check_sum(target->content[content]);
		/* The graph as a whole has times, its nodes have none. */
		TS_CHECK(target->outcome.untimed.start != TS_ABSENT);
		TS_CHECK(target->times[0].start == TS_ABSENT);
		TS_CHECK(target->times[4].start != TS_ABSENT);
	}
	cuda_target_stop(target);
}

TS_TEST(nodes_run_one_by_one_if_they_are_looked_at)
{
	struct cuda_target *target = cuda_target_start(0);
	uint32_t content, sum;

	make_graph(target, GRAPH_1);
	cuda_launch_graph(&target->trace, CUDA_STREAM, GRAPH_1);
	CUDA_TARGET_OPEN(target, .repeat = 1);
	sum = cuda_target_capture(target, 2, CUDA_MEMORY, 2 * PAGE, 400);
	content = cuda_target_capture(target, UINT32_MAX, CUDA_MEMORY, 3 * PAGE, 400);
	CUDA_TARGET_RUN(target, 0);
	check_sum(target->content[sum]);
	check_sum(target->content[content]);
	TS_CHECK(target->times[0].start != TS_ABSENT);
	cuda_target_stop(target);
}

TS_TEST(each_node_is_checked)
{
	struct cuda_target *target = cuda_target_start(0);
	uint32_t captures[4];

	make_graph(target, GRAPH_1);
	cuda_launch_graph(&target->trace, CUDA_STREAM, GRAPH_1);
	CUDA_TARGET_OPEN(target, .check = TS_REPLAY_CHECK_EACH);
	for (uint32_t i = 0; i < 4; i++)
		captures[i] = cuda_target_capture_pages(target, i);
	CUDA_TARGET_RUN(target, 0);
	TS_CHECK_INT(target->page_counts[captures[0]], 6);
	for (uint32_t i = 1; i < 4; i++) {
		TS_CHECK_INT(target->page_counts[captures[i]], 1);
		TS_CHECK_INT(target->pages[captures[i]][0].offset, i * PAGE);
	}
	cuda_target_stop(target);
}

/* ---- one kernel ---- */

TS_TEST(a_kernel_is_timed_on_the_same_memory)
{
	struct cuda_target *target = cuda_target_start(0);
	struct ts_replay_report *report = calloc(1, sizeof(*report));
	uint32_t content;

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 100);
	/* Adds to what it wrote before. */
	cuda_target_add(target, CUDA_STREAM, ADDRESS(0), ADDRESS(0), ADDRESS(0), 100);
	CUDA_TARGET_OPEN(target, .kernel = "add", .kernel_number = 1, .kernel_repeats = 5);
	content = cuda_target_capture(target, UINT32_MAX, CUDA_MEMORY, 0, 400);
	CUDA_TARGET_RUN(target, 0);
	for (uint32_t i = 0; i < 100; i++)
		TS_CHECK_INT(((uint32_t *)target->content[content])[i], 2 + 2 * i);
	ts_replay_target_cuda.report(target->session, report);
	TS_CHECK_INT(report->timed_runs, 5);
	TS_CHECK(report->timed_warm_low_ns <= report->timed_warm_ns &&
		 report->timed_warm_ns <= report->timed_warm_high_ns);
	TS_CHECK_STR(report->timed_clocks, "clocks unknown");
	free(report);
	cuda_target_stop(target);
}

/* ---- host memory ---- */

/* The program freed pinned memory and got more of it at the same address. */
TS_TEST(pinned_memory_of_another_size_at_the_same_address)
{
	const int64_t base = CUDA_HOST + ((int64_t)1 << 20), sizes[] = { 65536, 262144, 131072 };
	const struct fixture_command sync = { .kind = TS_COMMAND_SYNC,
					      .object = CUDA_CONTEXT,
					      .details = "{\"what\":\"context\"}" };
	struct cuda_target *target = cuda_target_start(0);
	uint32_t content;

	for (size_t i = 0; i < TS_ARRAY_SIZE(sizes); i++) {
		struct fixture_command range = { .kind = TS_COMMAND_ALLOC,
						 .object = CUDA_HOST_MEMORY,
						 .offset = base,
						 .bytes = sizes[i] };

		cuda_target_plain(target, range);
		cuda_target_fill(target, CUDA_STREAM, (uint64_t)(base + sizes[i]) - 4096, 7, 100);
		cuda_target_plain(target, sync);
		range.kind = TS_COMMAND_FREE;
		if (i + 1 < TS_ARRAY_SIZE(sizes))
			cuda_target_plain(target, range);
	}
	CUDA_TARGET_OPEN(target, .repeat = 1);
	content = cuda_target_capture(target, UINT32_MAX, CUDA_HOST_MEMORY,
				      (uint64_t)(base + sizes[2]) - 4096, 400);
	CUDA_TARGET_RUN(target, 0);
	cuda_target_check_filled(target->content[content], 7, 100);
	cuda_target_stop(target);
}

/* ---- little memory ---- */

TS_TEST(memory_that_does_not_fit_at_once)
{
	const int64_t half = (int64_t)(200 * PAGE);
	struct cuda_target *target;
	uint32_t contents[3];

	setenv("STAND_IN_MEMORY", "734003200", 1); /* 700 MiB */
	target = cuda_target_start(0);
	for (int64_t i = 0; i < 3; i++) {
		cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_ALLOC,
								    .object = CUDA_MEMORY,
								    .offset = (i + 1) * half,
								    .bytes = half });
		cuda_target_fill(target, CUDA_STREAM, CUDA_ARENA + (uint64_t)((i + 1) * half),
				 (uint32_t)i, 100);
		cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_FREE,
								    .object = CUDA_MEMORY,
								    .offset = (i + 1) * half,
								    .bytes = half });
	}
	CUDA_TARGET_OPEN(target, .repeat = 2);
	for (uint32_t i = 0; i < 3; i++)
		contents[i] = cuda_target_capture(target, 3 * i + 1, CUDA_MEMORY,
						  (uint64_t)((i + 1) * half), 400);
	for (unsigned int i = 0; i < 2; i++) {
		CUDA_TARGET_RUN(target, i);
		for (uint32_t j = 0; j < 3; j++)
			cuda_target_check_filled(target->content[contents[j]], j, 100);
	}
	cuda_target_stop(target);
}

/* What the window begins with is kept for later runs, but not where the commands need the room. */
TS_TEST(copies_of_memory_leave_room_for_the_commands)
{
	const int64_t part = (int64_t)(64 * PAGE), count = 9;
	struct cuda_target *target;
	uint32_t content;

	setenv("STAND_IN_MEMORY", "1266679808", 1); /* 1208 MiB */
	target = cuda_target_new();
	/* 44 MiB, and 1152 MiB later. */
	cuda_target_objects(target, STAND_IN_NAME,
			    "\"sparse\":true,\"space\":\"device\",\"mapped\":[[0,46137344]]",
			    cuda_target_image(target));
	target->open = cuda_begin(&target->trace, 1, 0);
	for (int64_t i = 0; i < count; i++)
		cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_ALLOC,
								    .object = CUDA_MEMORY,
								    .offset = (i + 1) * part,
								    .bytes = part });
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(64), 7, 100);
	CUDA_TARGET_OPEN(target, .repeat = 2);
	content = cuda_target_capture(target, UINT32_MAX, CUDA_MEMORY, (uint64_t)part, 400);
	for (unsigned int i = 0; i < 2; i++) {
		CUDA_TARGET_RUN(target, i);
		cuda_target_check_filled(target->content[content], 7, 100);
	}
	cuda_target_stop(target);
}

TS_TEST(settings_are_reset_before_each_run)
{
	struct cuda_target *target = cuda_target_start(0);

	cuda_target_plain(target,
			  (struct fixture_command){
				  .kind = TS_COMMAND_SET,
				  .object = CUDA_CONTEXT,
				  .details = "{\"what\":\"limit\",\"id\":0,\"value\":4096}" });
	cuda_target_plain(target,
			  (struct fixture_command){
				  .kind = TS_COMMAND_SET,
				  .object = KERNEL_FILL,
				  .details = "{\"what\":\"attribute\",\"id\":8,\"value\":65536}" });
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 3, 100);
	CUDA_TARGET_OPEN(target, .repeat = 2);
	CUDA_TARGET_RUN(target, 0);
	CUDA_TARGET_RUN(target, 1);
	cuda_target_stop(target);
}
