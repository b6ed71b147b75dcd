/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing two works: verdicts, when a test is made, totals for different numbers of steps, joined
 * names.
 */
#include "analyze/compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#include "unit/runner.h"

#define MOST 4096

/* A handmade work: one rank, one device, one stream, one thread. */
struct fixture {
	struct ts_work work;
	struct ts_work_rank ranks[2];
	struct ts_work_device device;
	struct ts_work_stream stream;
	struct ts_work_thread thread;
	struct ts_work_step steps[64];
	struct ts_work_command commands[MOST];
	struct ts_work_call calls[MOST];
	struct ts_work_slice slices[MOST];
	int64_t now;
};

static struct fixture fixture[2];

static struct fixture *make(int which)
{
	struct fixture *m = &fixture[which];

	memset(m, 0, sizeof(*m));
	m->work = (struct ts_work){ .ranks = m->ranks,
				    .devices = &m->device,
				    .streams = &m->stream,
				    .threads = &m->thread,
				    .steps = m->steps,
				    .commands = m->commands,
				    .calls = m->calls,
				    .slices = m->slices,
				    .rank_count = 1,
				    .device_count = 1,
				    .stream_count = 1,
				    .thread_count = 1 };
	m->device.stream_count = 1;
	ts_strmap_init(&m->work.names, 0);
	ts_strmap_intern(&m->work.names, "", 0, NULL);
	return m;
}

static uint32_t name_of(struct fixture *m, const char *name)
{
	return ts_strmap_intern(&m->work.names, name, strlen(name), NULL);
}

static void add_step(struct fixture *m, int64_t number)
{
	m->now += 1000000;
	m->steps[m->work.step_count++] =
		(struct ts_work_step){ .number = number, .start = m->now, .end = m->now + 1000000 };
	m->ranks[0].step_count++;
}

static struct ts_work_command *add_kernel(struct fixture *m, const char *name, int64_t ns)
{
	struct ts_work_command *command = &m->commands[m->work.command_count++];

	*command = (struct ts_work_command){
		.start = m->now,
		.end = m->now + ns,
		.name = name_of(m, name),
		.kind = TS_GPU_OP_KERNEL,
		.step = m->work.step_count ? m->work.step_count - 1 : TS_WORK_NONE,
	};
	m->stream.command_count = m->work.command_count;
	m->now += ns;
	return command;
}

static void add_slice(struct fixture *m, const char *name, enum ts_slice_class class, int64_t ns)
{
	m->slices[m->work.slice_count++] = (struct ts_work_slice){ .start = m->now,
								   .end = m->now + ns,
								   .name = name_of(m, name),
								   .parent = TS_WORK_NONE,
								   .class = (uint8_t) class };
	m->thread.slice_count = m->work.slice_count;
	m->now += ns;
}

static void add_call(struct fixture *m, const char *name, int64_t ns)
{
	m->calls[m->work.call_count++] = (struct ts_work_call){ .start = m->now,
								.end = m->now + ns,
								.name = name_of(m, name) };
	m->now += ns;
}

static struct ts_result result;
static bool differs;

static void compare(const struct ts_compare_options *options)
{
	struct ts_error err;

	ts_result_init(&result, 0);
	TS_CHECK_INT(
		ts_compare(&fixture[0].work, &fixture[1].work, options, &result, &differs, &err),
		0);
}

static void compare_all(void)
{
	compare(&(struct ts_compare_options){ 0 });
}

static void done(void)
{
	ts_result_release(&result);
	ts_strmap_release(&fixture[0].work.names);
	ts_strmap_release(&fixture[1].work.names);
}

static const struct ts_result_table *table_named(const char *name)
{
	const struct ts_result_table *table = result.tables;

	while (table && strcmp(table->name, name) != 0)
		table = table->next;
	TS_CHECK(table);
	return table;
}

static size_t column_of(const struct ts_result_table *table, const char *key)
{
	for (size_t i = 0; i < table->column_count; i++) {
		if (!strcmp(table->columns[i].key, key))
			return i;
	}
	ts_test_fail(__FILE__, __LINE__, "there is no column '%s'", key);
}

static const struct ts_cell *cell_at(const struct ts_result_table *table, size_t row,
				     const char *key)
{
	TS_CHECK(row < ts_result_rows(table));
	return &table->cells[row * table->column_count + column_of(table, key)];
}

/* A cell in the list of changes, by the row's name. */
static const struct ts_cell *change(const char *name, const char *key)
{
	const struct ts_result_table *table = table_named("changes");

	for (size_t i = 0; i < ts_result_rows(table); i++) {
		if (!strcmp(cell_at(table, i, "name")->text, name))
			return cell_at(table, i, key);
	}
	ts_test_fail(__FILE__, __LINE__, "there is no name '%s'", name);
}

static void check_verdict(const char *name, const char *verdict, const char *significance)
{
	const struct ts_cell *cell = change(name, "significance");

	TS_CHECK_STR(change(name, "verdict")->text, verdict);
	TS_CHECK_STR(cell->none ? NULL : cell->text, significance);
}

/* ---- verdicts ---- */

TS_TEST(one_sample_is_called_so)
{
	struct fixture *a = make(0), *b = make(1);

	add_kernel(a, "same", 100);
	add_kernel(b, "same", 100);
	add_kernel(a, "slow", 100);
	add_kernel(b, "slow", 150);
	add_kernel(a, "fast", 100);
	add_kernel(b, "fast", 50);
	add_kernel(a, "gone", 70);
	add_kernel(b, "new", 80);
	add_kernel(a, "often", 10);
	add_kernel(b, "often", 10);
	add_kernel(b, "often", 10);
	compare_all();
	TS_CHECK(differs);
	check_verdict("same", "unchanged", "one sample");
	check_verdict("slow", "slower", "one sample");
	check_verdict("fast", "faster", "one sample");
	check_verdict("often", "more", "one sample");
	check_verdict("gone", "gone", NULL);
	check_verdict("new", "added", NULL);
	TS_CHECK_INT(change("slow", "change_us")->integer, 50);
	TS_CHECK(change("slow", "change_pct")->real == 50);
	TS_CHECK(change("slow", "p")->none);
	TS_CHECK(change("new", "change_pct")->none);
	TS_CHECK_INT(change("often", "total_b_us")->integer, 20);
	TS_CHECK_INT(change("often", "mean_b_us")->integer, 10);
	/* The largest change in time comes first. */
	TS_CHECK_STR(cell_at(table_named("changes"), 0, "name")->text, "new");
	TS_CHECK_STR(cell_at(table_named("changes"), 5, "name")->text, "same");
	done();
}

TS_TEST(equal_works_do_not_differ)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		add_kernel(m, "k", 100);
		add_slice(m, "op", TS_SLICE_OP, 30);
		add_call(m, "cudaLaunchKernel", 4);
	}
	compare_all();
	TS_CHECK(!differs);
	done();
}

TS_TEST(instances_are_tested_from_five_on)
{
	struct fixture *a = make(0), *b = make(1);

	for (int i = 0; i < 4; i++) {
		add_kernel(a, "four", 100 + i);
		add_kernel(b, "four", 200 + i);
	}
	for (int i = 0; i < 50; i++) {
		add_kernel(a, "clear", 1000 + i);
		add_kernel(b, "clear", 1100 + i);
		add_kernel(a, "noise", 1000 + i * 37 % 50);
		add_kernel(b, "noise", 1001 + i * 13 % 50);
	}
	compare_all();
	check_verdict("four", "slower", "one sample");
	check_verdict("clear", "slower", "p < 0.0001 (instances)");
	TS_CHECK_STR(change("noise", "verdict")->text, "unchanged");
	TS_CHECK_STR(change("noise", "test")->text, "Mann-Whitney U, instances");
	TS_CHECK(change("noise", "p")->real > 0.05);
	TS_CHECK_INT(change("noise", "samples_a")->integer, 50);
	done();
}

/* One in fifty takes a hundred times as long: the sum triples, but by chance. */
TS_TEST(large_changes_by_chance_are_unclear)
{
	struct fixture *a = make(0), *b = make(1);

	for (int i = 0; i < 50; i++) {
		add_kernel(a, "k", 1000 + i);
		add_kernel(b, "k", i == 20 ? 100000 : 1000 + i);
	}
	compare_all();
	TS_CHECK_STR(change("k", "verdict")->text, "unclear");
	TS_CHECK(!differs);
	done();
}

/* Ten times as many, each as long as before: the test of durations must not hide that. */
TS_TEST(more_instances_are_told_although_none_is_slower)
{
	struct fixture *a = make(0), *b = make(1);

	for (int i = 0; i < 10; i++)
		add_kernel(a, "k", 100 + i);
	for (int i = 0; i < 100; i++)
		add_kernel(b, "k", 100 + i % 10);
	compare_all();
	TS_CHECK_STR(change("k", "verdict")->text, "more");
	TS_CHECK_STR(change("k", "count_change")->text, "+");
	done();
}

TS_TEST(steps_are_tested_from_three_on)
{
	static const int64_t noise[] = { 3, -2, 5, 0 };

	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		for (int step = 0; step < 4; step++) {
			add_step(m, 100 * (i + 1) + step);
			add_slice(m, i ? "ProfilerStep#7" : "ProfilerStep#8", TS_SLICE_ANNOTATION,
				  900);
			add_kernel(m, "slow", 1000 + 200 * i + noise[step]);
			add_kernel(m, "same", 1000 + noise[(step + i) % 4]);
		}
	}
	compare_all();
	check_verdict("slow", "slower", "p < 0.0001 (steps)");
	TS_CHECK_STR(change("slow", "test")->text, "Welch t, steps");
	TS_CHECK_INT(change("slow", "samples_a")->integer, 4);
	TS_CHECK_STR(change("same", "verdict")->text, "unchanged");
	/* Step numbers are not part of names. */
	TS_CHECK_STR(change("ProfilerStep", "verdict")->text, "unchanged");
	TS_CHECK_INT(change("ProfilerStep", "count_a")->integer, 4);
	done();
}

TS_TEST(what_is_in_no_step_is_one_sample)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		add_kernel(m, "before", 100 + i);
		for (int step = 0; step < 3; step++) {
			add_step(m, step);
			add_kernel(m, "k", 100 + step);
		}
	}
	compare_all();
	check_verdict("before", "slower", "one sample");
	TS_CHECK_STR(change("k", "test")->text, "Welch t, steps");
	done();
}

/* A longer recording of the same work is not slower. */
TS_TEST(unlike_numbers_of_steps_are_compared_by_step)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		for (int step = 0; step < 1 + i; step++) {
			add_step(m, step);
			add_kernel(m, "k", 100);
		}
	}
	compare_all();
	TS_CHECK(!differs);
	TS_CHECK_INT(change("k", "change_us")->integer, 0);
	TS_CHECK_STR(change("k", "count_change")->text, "=");
	TS_CHECK_INT(change("k", "total_b_us")->integer, 200);
	TS_CHECK(result.notes);
	done();
}

/* Ranks that have a step with the same number are one sample of it. */
TS_TEST(ranks_share_steps)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		m->work.rank_count = 2;
		for (int step = 0; step < 6; step++) {
			add_step(m, step / 2);
			add_kernel(m, "k", 100 + step + 50 * i);
		}
		m->ranks[0].step_count = m->ranks[1].step_count = 0;
	}
	compare_all();
	TS_CHECK_INT(change("k", "samples_a")->integer, 3);
	TS_CHECK_STR(change("k", "verdict")->text, "slower");
	done();
}

TS_TEST(threshold_makes_small_changes_none)
{
	struct fixture *a = make(0), *b = make(1);

	add_kernel(a, "k", 1000);
	add_kernel(b, "k", 1040);
	compare(&(struct ts_compare_options){ .threshold = 5 });
	TS_CHECK(!differs);
	ts_result_release(&result);
	compare(&(struct ts_compare_options){ .threshold = 3 });
	TS_CHECK(differs);
	done();
}

TS_TEST(untimed_commands_count_without_time)
{
	struct fixture *a = make(0), *b = make(1);

	add_kernel(a, "k", 100);
	add_kernel(a, "k", 0)->flags = TS_COMMAND_UNTIMED;
	add_kernel(b, "k", 100);
	add_kernel(b, "never", 0)->flags = TS_COMMAND_UNTIMED;
	compare_all();
	TS_CHECK_INT(change("k", "count_a")->integer, 2);
	TS_CHECK_INT(change("k", "mean_a_us")->integer, 100);
	TS_CHECK(change("never", "mean_b_us")->none);
	done();
}

/* ---- sides and names ---- */

TS_TEST(sides_are_counted_apart)
{
	struct fixture *a = make(0), *b = make(1);
	const struct ts_result_table *counts;

	add_kernel(a, "k", 10);
	add_slice(a, "op", TS_SLICE_OP, 10);
	add_slice(a, "op", TS_SLICE_ANNOTATION, 10);
	add_slice(a, "on device", TS_SLICE_GPU_ANNOTATION, 10);
	add_call(a, "cudaLaunchKernel", 3);
	add_call(b, "cudaLaunchKernel", 3);
	add_call(b, "cudaLaunchKernel", 3);
	compare_all();
	counts = table_named("counts");
	TS_CHECK_STR(cell_at(counts, 0, "device")->text, "gpu");
	TS_CHECK_INT(cell_at(counts, 0, "gone")->integer, 1);
	TS_CHECK_INT(cell_at(counts, 0, "count_down")->integer, 1);
	TS_CHECK_STR(cell_at(counts, 1, "device")->text, "cpu");
	TS_CHECK_INT(cell_at(counts, 1, "names")->integer, 3);
	TS_CHECK_INT(cell_at(counts, 1, "count_up")->integer, 1);
	TS_CHECK_INT(cell_at(counts, 1, "count_down")->integer, 2);
	ts_result_release(&result);
	compare(&(struct ts_compare_options){ .sides = TS_COMPARE_GPU });
	TS_CHECK_INT(ts_result_rows(table_named("changes")), 1);
	TS_CHECK_INT(ts_result_rows(table_named("counts")), 1);
	done();
}

TS_TEST(short_names_join_what_arguments_tell_apart)
{
	struct fixture *a = make(0), *b = make(1);

	add_kernel(a, "void gemm<4, float>(float*)", 10);
	add_kernel(b, "void gemm<8, half>(half*)", 10);
	compare(&(struct ts_compare_options){ .short_names = true });
	TS_CHECK(!differs);
	TS_CHECK_INT(change("gemm", "count_a")->integer, 1);
	ts_result_release(&result);
	compare_all();
	TS_CHECK(differs);
	done();
}

static void check_short(int line, const char *name, const char *expected)
{
	char buffer[256];
	size_t length = ts_compare_short_name(name, strlen(name), buffer);

	if (length != strlen(expected) || memcmp(buffer, expected, length) != 0)
		ts_test_fail(__FILE__, line, "'%s' became '%.*s'", name, (int)length, buffer);
}
#define CHECK_SHORT(name, expected) check_short(__LINE__, name, expected)

TS_TEST(short_names)
{
	CHECK_SHORT("aten::mm", "aten::mm");
	CHECK_SHORT("void a::b<c<d>, (e)1>::f<4>(g const*, int)", "a::b::f");
	CHECK_SHORT("void (anonymous namespace)::k<1>(int)", "(anonymous namespace)::k");
	CHECK_SHORT("f(decltype(x->y))", "f");
	CHECK_SHORT("graph_0x7f00aB12_run", "graph_0_run");
	CHECK_SHORT("a)b>c", "a)b>c");
	/* Nothing would be left, so the name stays. */
	CHECK_SHORT("<lambda>", "<lambda>");
	CHECK_SHORT("", "");
	CHECK_SHORT("void ", "void ");
	CHECK_SHORT("never<closed", "never");
}

/* ---- summary ---- */

TS_TEST(summary_has_totals)
{
	struct fixture *a = make(0), *b = make(1);
	const struct ts_result_table *summary;

	add_kernel(a, "k", 100);
	a->now -= 60; /* the next one overlaps */
	add_kernel(a, "k", 100);
	add_slice(a, "outer", TS_SLICE_OP, 50);
	a->now -= 50;
	add_slice(a, "inner", TS_SLICE_OP, 20);
	a->now -= 20;
	add_slice(a, "note", TS_SLICE_ANNOTATION, 90);
	add_kernel(b, "k", 300);
	a->ranks[0].rows_to = 1000;
	b->ranks[0].rows_to = 1500;
	compare_all();
	summary = table_named("summary");
	TS_CHECK_INT(cell_at(summary, 0, "device_busy_us")->integer, 140);
	TS_CHECK_INT(cell_at(summary, 0, "operator_us")->integer, 50);
	TS_CHECK_INT(cell_at(summary, 0, "operators")->integer, 2);
	TS_CHECK(cell_at(summary, 0, "step_us")->none);
	TS_CHECK_INT(cell_at(summary, 2, "device_busy_us")->integer, 160);
	TS_CHECK_INT(cell_at(summary, 2, "commands")->integer, -1);
	TS_CHECK_INT(cell_at(summary, 2, "span_us")->integer, 500);
	done();
}

/* Arbitrary times: sums saturate. */
TS_TEST(hostile_times_do_no_harm)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		for (int k = 0; k < 8; k++) {
			struct ts_work_command *command = add_kernel(m, "k", 0);

			command->start = k % 2 ? INT64_MIN + 1 : INT64_MAX;
			command->end = k % 3 ? INT64_MAX : INT64_MIN + 1;
			add_slice(m, "op", TS_SLICE_OP, 0);
			m->slices[k].start = INT64_MIN + 1 + k;
			m->slices[k].end = INT64_MAX;
		}
		m->ranks[0].rows_from = INT64_MAX;
		m->ranks[0].rows_to = INT64_MIN;
	}
	compare_all();
	TS_CHECK(!differs);
	done();
}
