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
static enum ts_compare_outcome outcome;

static void compare(const struct ts_compare_options *options)
{
	struct ts_error err;

	ts_result_init(&result, 0);
	TS_CHECK_INT(
		ts_compare(&fixture[0].work, &fixture[1].work, options, &result, &outcome, &err),
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
	TS_CHECK_INT(outcome, TS_COMPARE_DIFFERENT);
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
	TS_CHECK_INT(outcome, TS_COMPARE_IDENTICAL);
	TS_CHECK_INT(ts_result_rows(table_named("changes")), 3);
	ts_result_release(&result);
	/* As text, that is all there is to say. */
	compare(&(struct ts_compare_options){ .brief = true });
	TS_CHECK(!result.tables);
	TS_CHECK_STR(result.notes->text,
		     "the traces are identical: 3 names, 3 instances, the same durations");
	ts_result_release(&result);
	fixture[1].slices[0].end++;
	compare(&(struct ts_compare_options){ .threshold = 5, .brief = true });
	TS_CHECK_INT(outcome, TS_COMPARE_ALIKE);
	done();
}

TS_TEST(no_work_is_nothing_to_compare)
{
	struct fixture *a = make(0);

	make(1);
	compare_all();
	TS_CHECK_INT(outcome, TS_COMPARE_NOTHING);
	ts_result_release(&result);
	add_call(a, "cudaLaunchKernel", 4);
	compare(&(struct ts_compare_options){ .sides = TS_COMPARE_GPU });
	TS_CHECK_INT(outcome, TS_COMPARE_NOTHING);
	ts_result_release(&result);
	compare_all();
	TS_CHECK_INT(outcome, TS_COMPARE_DIFFERENT);
	TS_CHECK(strstr(result.notes->text, "no name is in both traces"));
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
	TS_CHECK(outcome != TS_COMPARE_DIFFERENT);
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

/*
 * Half as many, each as long as before, and their number varies: the time per step halves because
 * of the number.
 */
TS_TEST(fewer_instances_are_not_faster_ones)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		for (int step = 0; step < 60; step++) {
			add_step(m, step);
			for (int k = 0; k < (step % 7) * (2 - i); k++)
				add_kernel(m, "k", 20000 + k);
		}
	}
	compare(&(struct ts_compare_options){ .threshold = 1 });
	check_verdict("k", "fewer", "p < 0.0001 (steps)");
	TS_CHECK_STR(change("k", "change")->text, "348 -> 174");
	TS_CHECK(change("k", "change_pct")->real == -50);
	done();
}

/* Twice as many in each step, half as long: their number changed, the time did not. */
TS_TEST(change_is_of_what_the_verdict_is_about)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		for (int step = 0; step < 40 - 20 * i; step++) {
			add_step(m, step);
			for (int k = 0; k < (step % 2 + 1) * (i + 1); k++)
				add_kernel(m, "k", i ? 10000 : 20000);
		}
	}
	compare(&(struct ts_compare_options){ .threshold = 1 });
	TS_CHECK_STR(change("k", "verdict")->text, "more");
	TS_CHECK_STR(change("k", "change")->text, "1.5 -> 3");
	TS_CHECK(change("k", "change_pct")->real == 100);
	TS_CHECK_INT(change("k", "change_us")->integer, 0);
	done();
}

TS_TEST(left_out_steps_are_named)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		for (int step = 0; step < 3; step++) {
			add_step(m, step);
			add_kernel(m, "k", 100);
		}
		m->work.options = (struct ts_work_options)TS_WORK_OPTIONS_NONE;
		m->ranks[0].steps_in_trace = 4;
		m->ranks[0].last_step = 3;
	}
	TS_CHECK(ts_compare_may_leave_out(&fixture[0].work, &fixture[1].work));
	compare(&(struct ts_compare_options){ .brief = true });
	TS_CHECK_INT(outcome, TS_COMPARE_IDENTICAL);
	TS_CHECK(strstr(result.notes->text, "identical before the last step: "));
	TS_CHECK_STR(result.notes->next->text,
		     "step 3 left out: it may be cut off (--all includes it)");
	ts_result_release(&result);
	fixture[1].ranks[0].last_step = 7;
	compare(&(struct ts_compare_options){ .brief = true });
	TS_CHECK_STR(
		result.notes->next->text,
		"step 3 of A and step 7 of B left out: they may be cut off (--all includes them)");
	/* Not if that is one side only. */
	fixture[1].ranks[0].steps_in_trace = 3;
	TS_CHECK(!ts_compare_may_leave_out(&fixture[0].work, &fixture[1].work));
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
	/* Steps are one name, whatever their spans are called, and come first. */
	TS_CHECK_STR(change("step", "kind")->text, "step");
	TS_CHECK_STR(change("step", "verdict")->text, "unchanged");
	TS_CHECK_INT(change("step", "count_a")->integer, 4);
	TS_CHECK_STR(cell_at(table_named("changes"), 0, "name")->text, "step");
	TS_CHECK_INT(ts_result_rows(table_named("changes")), 3);
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
	TS_CHECK(outcome != TS_COMPARE_DIFFERENT);
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

/* Thousands of names, three steps: the correction for all names must not reach the steps. */
TS_TEST(the_time_of_a_step_is_not_corrected_for_the_names_in_it)
{
	static const int64_t lengths[2][3] = { { 77000, 79000, 75000 },
					       { 116000, 110000, 122000 } };

	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		for (int step = 0; step < 3; step++) {
			add_step(m, step);
			m->steps[step].end = m->now + lengths[i][step];
			for (int k = 0; k < 1000; k++) {
				char name[16];

				snprintf(name, sizeof(name), "k%d", k);
				add_slice(m, name, TS_SLICE_OP, 10 + (step + k + i) % 3);
			}
		}
	}
	compare_all();
	TS_CHECK_STR(change("step", "verdict")->text, "slower");
	TS_CHECK(change("step", "p")->real < 0.01);
	TS_CHECK(change("k7", "p")->real == 1);
	done();
}

static void add_calls(struct fixture *m, const char *name, int count, int64_t ns)
{
	for (int i = 0; i < count; i++)
		add_call(m, name, ns + i % 2);
}

/* A changed number of instances is a fact, however little their time says. */
TS_TEST(more_in_each_step_is_more)
{
	static const int polls[2][3] = { { 40, 90, 60 }, { 70, 50, 95 } };
	static const int often[2][3] = { { 38, 40, 36 }, { 402, 300, 500 } };

	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		for (int step = 0; step < 3; step++) {
			add_step(m, step);
			add_calls(m, "often", often[i][step], 5);
			add_calls(m, "poll", polls[i][step], 5);
			add_calls(m, "fewer", i ? 2 : 4, 10);
			/* The duration changes by more than the number. */
			add_calls(m, "both", i ? 4 : 3, i ? 1000 : 10);
		}
	}
	compare_all();
	TS_CHECK_STR(change("often", "verdict")->text, "more");
	TS_CHECK_STR(change("fewer", "verdict")->text, "fewer");
	TS_CHECK_STR(change("both", "verdict")->text, "slower");
	/* Numbers that vary from step to step must change by more than that. */
	TS_CHECK(strcmp(change("poll", "verdict")->text, "more") != 0);
	done();
}

/* Significant and beyond the percentage, but too little to matter. */
TS_TEST(changes_of_a_few_ns_are_none)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *m = make(i);

		for (int step = 0; step < 4; step++) {
			add_step(m, step);
			add_kernel(m, "tiny", 100 + 27 * i);
			for (int k = 0; k < 100; k++)
				add_kernel(m, "many", 100 + 27 * i);
			add_kernel(m, "long", 1000000 + 2700 * i);
		}
	}
	compare(&(struct ts_compare_options){ .threshold = TS_COMPARE_THRESHOLD,
					      .least_ns = TS_COMPARE_LEAST_NS });
	TS_CHECK_STR(change("tiny", "verdict")->text, "unchanged");
	TS_CHECK_STR(change("many", "verdict")->text, "slower");
	TS_CHECK_STR(change("long", "verdict")->text, "unchanged");
	ts_result_release(&result);
	compare_all();
	TS_CHECK_STR(change("tiny", "verdict")->text, "slower");
	TS_CHECK_STR(change("long", "verdict")->text, "slower");
	done();
}

TS_TEST(threshold_makes_small_changes_none)
{
	struct fixture *a = make(0), *b = make(1);

	add_kernel(a, "k", 1000);
	add_kernel(b, "k", 1040);
	compare(&(struct ts_compare_options){ .threshold = 5 });
	TS_CHECK(outcome != TS_COMPARE_DIFFERENT);
	ts_result_release(&result);
	compare(&(struct ts_compare_options){ .threshold = 3 });
	TS_CHECK_INT(outcome, TS_COMPARE_DIFFERENT);
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
	TS_CHECK(outcome != TS_COMPARE_DIFFERENT);
	done();
}
