/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen of `top`: newest values and their age, numbers in narrow columns, order and filter of
 * the table, keys, and windows of every size.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/common/keys.h"
#include "cli/common/screen.h"
#include "cli/top/top.h"
#include "cli/top/top_values.h"
#include "unit/runner.h"

/* ---- a handmade snapshot; these replace top_refresh.c and top_process.c ---- */

static struct ts_top picture;

struct ts_top_process *ts_top_find_process(const struct ts_top *top, pid_t pid)
{
	for (size_t i = 0; i < top->process_count; i++) {
		if (top->processes[i].pid == pid)
			return &top->processes[i];
	}
	return NULL;
}

const struct ts_top_subject *ts_top_device_values(const struct ts_top *top, uint32_t number)
{
	for (size_t i = 0; i < top->subject_count; i++) {
		if (top->subjects[i].subject.device == number)
			return &top->subjects[i];
	}
	return NULL;
}

static struct ts_top_process *add_process(pid_t pid, const char *name, double cpu, double events)
{
	struct ts_top_process *process;

	TS_CHECK_INT(ts_grow_array((void **)&picture.processes, &picture.process_capacity,
				   picture.process_count + 1, sizeof(*picture.processes)),
		     0);
	process = &picture.processes[picture.process_count++];
	*process = (struct ts_top_process){ .pid = pid,
					    .start_time = 1,
					    .state = 'S',
					    .user = "user",
					    .events_per_s = events,
					    .lost = isnan(events) ? NAN : 0,
					    .recorded = isnan(events) ? TS_TOP_NO_AGENT
								      : TS_TOP_FLIGHT,
					    .cpu_time_s = pid };
	for (size_t i = 0; i < TS_TOP_METRICS; i++)
		process->values[i] = NAN;
	process->values[TS_TOP_CPU] = cpu;
	snprintf(process->name, sizeof(process->name), "%s", name);
	snprintf(process->command, sizeof(process->command), "/bin/%s --option", name);
	return process;
}

static void clear_picture(void)
{
	free(picture.processes);
	picture = (struct ts_top){ .delay_ns = 1000000000, .memory_total = NAN };
	for (size_t i = 0; i < TS_TOP_METRICS; i++)
		picture.system[i] = NAN;
}

/* ---- numbers ---- */

#define CHECK_FORMAT(what, value, text)                                                    \
	do {                                                                               \
		char buffer_[64];                                                          \
		TS_CHECK_STR(ts_top_format_##what(buffer_, sizeof(buffer_), value), text); \
	} while (0)

TS_TEST(bytes_in_a_few_columns)
{
	CHECK_FORMAT(bytes, NAN, "-");
	CHECK_FORMAT(bytes, 0, "0B");
	CHECK_FORMAT(bytes, 1023, "1023B");
	CHECK_FORMAT(bytes, 1024, "1.0K");
	CHECK_FORMAT(bytes, 99.94 * 1024, "99.9K");
	CHECK_FORMAT(bytes, 99.96 * 1024, "100K");
	CHECK_FORMAT(bytes, 1000.0 * 1024, "1.0M");
	CHECK_FORMAT(bytes, 123.0 * (1 << 20), "123M");
	CHECK_FORMAT(bytes, 139.8 * (1 << 30), "140G");
}

TS_TEST(counts_in_a_few_columns)
{
	CHECK_FORMAT(count, NAN, "-");
	CHECK_FORMAT(count, 0, "0");
	CHECK_FORMAT(count, 9999, "9999");
	CHECK_FORMAT(count, 9999.6, "10.0k");
	CHECK_FORMAT(count, 123456, "123k");
	CHECK_FORMAT(count, 999500, "1.0M");
	CHECK_FORMAT(count, 45600000, "45.6M");
}

TS_TEST(percents_and_times)
{
	CHECK_FORMAT(percent, NAN, "-");
	CHECK_FORMAT(percent, 0, "0.0");
	CHECK_FORMAT(percent, 99.95, "100.0");
	CHECK_FORMAT(percent, 1234.5, "1234");
	CHECK_FORMAT(time, NAN, "-");
	CHECK_FORMAT(time, 0, "0:00.00");
	CHECK_FORMAT(time, 59.999, "1:00.00");
	CHECK_FORMAT(time, 3599.99, "59:59.99");
	CHECK_FORMAT(time, 3600, "1:00:00");
	CHECK_FORMAT(time, 360000, "100:00:00");
	CHECK_FORMAT(time, INFINITY, "-");
}

/* ---- values ---- */

static struct ts_top_values values;

static void give(enum ts_metrics_kind kind, uint32_t device, int32_t pid, uint64_t start,
		 const char *name, const char *series, double value)
{
	struct ts_metrics_subject subject = { kind, device, pid, start };
	struct ts_emit_arg arg = { series, TS_EMIT_DOUBLE, { .real = value } };

	values.consumer.row(values.consumer.context, &subject, name, &arg, 1);
}

/* Subjects with values since `oldest`, of which there must be `expected`. Caller frees. */
static struct ts_top_subject *copy(int64_t oldest, size_t expected)
{
	struct ts_top_subject *subjects;
	size_t count;

	if (ts_top_values_copy(&values, oldest, oldest, &subjects, &count) || count != expected ||
	    !count)
		ts_test_fail(__FILE__, __LINE__, "not %zu subjects", expected);
	return subjects;
}

/* Of 6 ticks, 1 + 4 + 1: the rounded parts are more than 100 together. */
TS_TEST(a_processor_is_not_busier_than_100_percent)
{
	struct ts_top top = { 0 };

	top.system[TS_TOP_CPU_USER] = 1 * 100 / 6.0;
	top.system[TS_TOP_CPU_SYSTEM] = 4 * 100 / 6.0;
	top.system[TS_TOP_CPU_STEAL] = 1 * 100 / 6.0;
	TS_CHECK(ts_top_busy_percent(&top) == 100);
	top.system[TS_TOP_CPU_STEAL] = NAN;
	TS_CHECK(ts_top_busy_percent(&top) < 84);
	top.system[TS_TOP_CPU_USER] = NAN;
	TS_CHECK(isnan(ts_top_busy_percent(&top)));
}

TS_TEST(the_newest_value_stays)
{
	struct ts_top_subject *subjects;

	ts_top_values_init(&values);
	give(TS_METRICS_PROCESS, 0, 7, 1, "cpu_percent", "all", 10);
	give(TS_METRICS_PROCESS, 0, 7, 1, "memory_bytes", "rss", 1000);
	give(TS_METRICS_PROCESS, 0, 7, 1, "cpu_percent", "all", 20);
	give(TS_METRICS_PROCESS, 0, 7, 1, "nobody_asks", "for", 1);
	give(TS_METRICS_SYSTEM, 0, 0, 0, "cpu_percent", "user", 3);
	subjects = copy(1, 2);
	TS_CHECK_INT(subjects[0].subject.kind, TS_METRICS_SYSTEM);
	TS_CHECK_INT(subjects[0].values[TS_TOP_CPU_USER], 3);
	TS_CHECK(isnan(subjects[0].values[TS_TOP_CPU_SYSTEM]));
	TS_CHECK_INT(subjects[1].values[TS_TOP_CPU], 20);
	TS_CHECK_INT(subjects[1].values[TS_TOP_RSS], 1000);
	TS_CHECK(isnan(subjects[1].values[TS_TOP_VMS]));
	free(subjects);
	ts_top_values_release(&values);
}

TS_TEST(what_is_too_old_is_absent)
{
	struct ts_top_subject *subjects;
	int64_t before;

	ts_top_values_init(&values);
	give(TS_METRICS_PROCESS, 0, 7, 1, "cpu_percent", "all", 10);
	give(TS_METRICS_PROCESS, 0, 8, 1, "cpu_percent", "all", 10);
	before = ts_clock_monotonic_ns() + 1;
	while (ts_clock_monotonic_ns() <= before)
		;
	give(TS_METRICS_PROCESS, 0, 8, 1, "memory_bytes", "rss", 5);
	subjects = copy(before, 1);
	TS_CHECK_INT(subjects[0].subject.pid, 8);
	TS_CHECK(isnan(subjects[0].values[TS_TOP_CPU]));
	TS_CHECK_INT(subjects[0].values[TS_TOP_RSS], 5);
	free(subjects);
	/* The subject is found again afterwards. */
	give(TS_METRICS_PROCESS, 0, 8, 1, "cpu_percent", "all", 30);
	give(TS_METRICS_PROCESS, 0, 7, 1, "cpu_percent", "all", 40);
	subjects = copy(before, 2);
	TS_CHECK_INT(subjects[0].values[TS_TOP_CPU], 40);
	TS_CHECK_INT(subjects[1].values[TS_TOP_CPU], 30);
	TS_CHECK_INT(subjects[1].values[TS_TOP_RSS], 5);
	free(subjects);
	ts_top_values_release(&values);
}

TS_TEST(a_pid_that_became_anothers)
{
	struct ts_top_subject *subjects;

	ts_top_values_init(&values);
	give(TS_METRICS_PROCESS, 0, 7, 1, "memory_bytes", "rss", 1000);
	give(TS_METRICS_PROCESS, 0, 7, 2, "cpu_percent", "all", 5);
	subjects = copy(1, 1);
	TS_CHECK_INT(subjects[0].subject.start_time, 2);
	TS_CHECK(isnan(subjects[0].values[TS_TOP_RSS]));
	free(subjects);
	ts_top_values_release(&values);
}

TS_TEST(devices_and_what_holds_them_back)
{
	struct ts_metrics_device device = { .number = 0x10001, .vendor = "V", .memory_bytes = 100 };
	struct ts_metrics_subject subject = { .kind = TS_METRICS_DEVICE, .device = 0x10001 };
	struct ts_emit_arg reasons[] = { { "power", TS_EMIT_INT, { .integer = 1 } },
					 { "heat", TS_EMIT_INT, { .integer = 0 } },
					 { "sync", TS_EMIT_BOOL, { .integer = 1 } } };
	struct ts_top_device *devices;
	struct ts_top_subject *subjects;
	size_t count;

	ts_top_values_init(&values);
	values.consumer.device(values.consumer.context, &device);
	device.model = "M";
	device.memory_bytes = TS_METRICS_UNKNOWN;
	values.consumer.device(values.consumer.context, &device);
	values.consumer.row(values.consumer.context, &subject, "throttled", reasons, 3);
	if (ts_top_values_devices(&values, &devices, &count) || count != 1)
		ts_test_fail(__FILE__, __LINE__, "not one device");
	TS_CHECK_STR(devices[0].model, "M");
	TS_CHECK(isnan(devices[0].memory_bytes));
	free(devices);
	subjects = copy(1, 1);
	TS_CHECK_STR(subjects[0].throttled, "power, sync");
	free(subjects);
	ts_top_values_release(&values);
}

TS_TEST(the_newest_messages_stay)
{
	struct ts_top_message messages[TS_TOP_MESSAGES];

	ts_top_values_init(&values);
	TS_CHECK_INT(ts_top_values_messages(&values, messages), 0);
	for (int i = 0; i < 20; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		values.consumer.message(values.consumer.context, "source", text);
	}
	TS_CHECK_INT(ts_top_values_messages(&values, messages), TS_TOP_MESSAGES);
	TS_CHECK_STR(messages[0].text, "12");
	TS_CHECK_STR(messages[TS_TOP_MESSAGES - 1].text, "19");
	ts_top_values_release(&values);
}

/* ---- the table ---- */

static void check_order(struct ts_top_view *view, const char *names)
{
	char text[128] = "";
	size_t length = 0;

	TS_CHECK_INT(ts_top_view_arrange(view, &picture), 0);
	for (size_t i = 0; i < view->row_count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s",
					   view->rows[i]->name);
	TS_CHECK_STR(text, names);
}

TS_TEST(rows_are_sorted)
{
	struct ts_top_view view = { .sort = TS_TOP_COLUMN_CPU };

	clear_picture();
	add_process(1, "b", 10, NAN);
	add_process(2, "a", NAN, 5);
	add_process(3, "d", 90, 100);
	add_process(4, "c", 10, 7);
	check_order(&view, "dbca");
	/* Unknown values come last in either order. */
	view.reverse = true;
	check_order(&view, "bcda");
	view.sort = TS_TOP_COLUMN_EVENTS;
	view.reverse = false;
	check_order(&view, "dcab");
	view.sort = TS_TOP_COLUMN_PID;
	check_order(&view, "badc");
	view.reverse = true;
	check_order(&view, "cdab");
	view.reverse = false;
	view.sort = TS_TOP_COLUMN_COMMAND;
	check_order(&view, "abcd");
	view.sort = TS_TOP_COLUMN_TIME;
	check_order(&view, "cdab");
	ts_top_view_release(&view);
	clear_picture();
}

TS_TEST(rows_are_filtered)
{
	struct ts_top_view view = { .sort = TS_TOP_COLUMN_PID, .filter = "AB" };

	clear_picture();
	add_process(10, "xaby", NAN, NAN);
	add_process(11, "abc", NAN, NAN);
	add_process(12, "zzz", NAN, NAN);
	check_order(&view, "xabyabc");
	snprintf(view.filter, sizeof(view.filter), "12");
	check_order(&view, "zzz");
	snprintf(view.filter, sizeof(view.filter), "--option");
	check_order(&view, "xabyabczzz");
	snprintf(view.filter, sizeof(view.filter), "nobody");
	check_order(&view, "");
	ts_top_view_select(&view, 5);
	TS_CHECK_INT(view.selected, 0);
	ts_top_view_release(&view);
	clear_picture();
}

TS_TEST(the_selection_stays_with_its_process)
{
	struct ts_top_view view = { .sort = TS_TOP_COLUMN_CPU };

	clear_picture();
	add_process(1, "a", 30, NAN);
	add_process(2, "b", 20, NAN);
	add_process(3, "c", 10, NAN);
	check_order(&view, "abc");
	ts_top_view_select(&view, 1);
	view.follows = true;
	picture.processes[2].values[TS_TOP_CPU] = 100;
	check_order(&view, "cab");
	TS_CHECK_INT(view.selected, 2);
	TS_CHECK_INT(view.selected_pid, 2);
	/* The selected process has ended: the selection moves to the process now in that row. */
	picture.processes[1] = picture.processes[2];
	picture.process_count--;
	check_order(&view, "ca");
	TS_CHECK_INT(view.selected, 1);
	TS_CHECK_INT(view.selected_pid, 1);
	ts_top_view_release(&view);
	clear_picture();
}

TS_TEST(columns_that_fit)
{
	struct ts_top_view view = { .sort = TS_TOP_COLUMN_VMS };
	bool shown[TS_TOP_COLUMNS];

	clear_picture();
	add_process(1, "a", 30, NAN);
	TS_CHECK_INT(ts_top_view_arrange(&view, &picture), 0);
	ts_top_view_fit(&view, &picture, 200, shown);
	TS_CHECK(!shown[TS_TOP_COLUMN_DEVICES] && shown[TS_TOP_COLUMN_USER]);
	picture.uses_accelerators = true;
	ts_top_view_fit(&view, &picture, 200, shown);
	TS_CHECK(shown[TS_TOP_COLUMN_DEVICES]);
	/* The sort column stays, though it has the lowest priority. */
	ts_top_view_fit(&view, &picture, 60, shown);
	TS_CHECK(shown[TS_TOP_COLUMN_VMS] && !shown[TS_TOP_COLUMN_THREADS]);
	TS_CHECK(shown[TS_TOP_COLUMN_EVENTS] && shown[TS_TOP_COLUMN_LOST]);
	ts_top_view_fit(&view, &picture, 1, shown);
	TS_CHECK(shown[TS_TOP_COLUMN_PID] && shown[TS_TOP_COLUMN_CPU] &&
		 shown[TS_TOP_COLUMN_COMMAND]);
	TS_CHECK(!shown[TS_TOP_COLUMN_EVENTS]);
	ts_top_view_release(&view);
	clear_picture();
}

TS_TEST(nobody_is_followed_unasked)
{
	struct ts_top_session session = { .top = &picture, .view = { .sort = TS_TOP_COLUMN_CPU } };

	clear_picture();
	add_process(1, "a", 30, NAN);
	add_process(2, "b", 20, NAN);
	check_order(&session.view, "ab");
	picture.processes[1].values[TS_TOP_CPU] = 100;
	check_order(&session.view, "ba");
	TS_CHECK_INT(session.view.selected, 0);
	TS_CHECK_INT(session.view.selected_pid, 2);
	ts_top_input(&session, TS_KEY_END);
	picture.processes[0].values[TS_TOP_CPU] = 200;
	check_order(&session.view, "ab");
	TS_CHECK_INT(session.view.selected_pid, 1);
	ts_top_view_release(&session.view);
	clear_picture();
}

TS_TEST(devices_in_a_few_columns)
{
	struct ts_top_device_list list = { .count = 0 };
	char text[64], small[8];

	TS_CHECK_STR(ts_top_device_list_format(&list, text, sizeof(text)), "-");
	ts_top_device_list_add(&list, "NVIDIA", 7);
	TS_CHECK_STR(ts_top_device_list_format(&list, text, sizeof(text)), "NV7");
	for (int i = 3; i >= 0; i--)
		ts_top_device_list_add(&list, "NVIDIA", i);
	ts_top_device_list_add(&list, "NVIDIA", 2);
	TS_CHECK_INT(list.count, 5);
	TS_CHECK_STR(ts_top_device_list_format(&list, text, sizeof(text)), "NV0-3,7");
	ts_top_device_list_add(&list, "AMD", TS_METRICS_UNKNOWN);
	ts_top_device_list_add(&list, "AMD", 0);
	TS_CHECK_STR(ts_top_device_list_format(&list, text, sizeof(text)), "AM?,0 NV0-3,7");
	ts_top_device_list_format(&list, small, sizeof(small));
	TS_CHECK(strlen(small) < sizeof(small));
	for (int i = 0; i < 1000; i++)
		ts_top_device_list_add(&list, "X", i * 2);
	TS_CHECK_INT(list.count, TS_TOP_PROCESS_DEVICES);
	ts_top_device_list_format(&list, small, sizeof(small));
	ts_top_device_list_format(&list, text, sizeof(text));
	TS_CHECK(strlen(text) < sizeof(text));
}

/* The text is cut after a complete device, and says so. */
TS_TEST(devices_that_do_not_fit)
{
	static const int numbers[] = { 0, 2, 4, 10, 12, 14 };
	static const char all_keys[] = "As0,2,4,10,12,14";
	struct ts_top_device_list list = { .count = 0 };
	char text[TS_TOP_CELL_BYTES];

	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++)
		ts_top_device_list_add(&list, "Ascend", numbers[i]);
	TS_CHECK_STR(ts_top_device_list_format(&list, text, sizeof(all_keys)), all_keys);
	TS_CHECK_STR(ts_top_device_list_format(&list, text, sizeof(all_keys) - 1),
		     "As0,2,4,10,12+");
	TS_CHECK_STR(ts_top_device_list_format(&list, text, 13), "As0,2,4,10+");
	TS_CHECK_STR(ts_top_device_list_format(&list, text, 11), "As0,2,4+");
	TS_CHECK_STR(ts_top_device_list_format(&list, text, 4), "+");
	TS_CHECK_STR(ts_top_device_list_format(&list, text, 1), "");
	for (int i = 100; i < 200; i += 2)
		ts_top_device_list_add(&list, "Ascend", i);
	ts_top_device_list_format(&list, text, sizeof(text));
	TS_CHECK(strlen(text) >= sizeof(text) - 6);
	TS_CHECK(text[strlen(text) - 1] == '+');
}

static const char *shortened(const char *text, const struct ts_top_message *message)
{
	snprintf(picture.note, sizeof(picture.note), "%.255s", text);
	ts_top_shorten_note(picture.note, message, 1);
	return picture.note;
}

TS_TEST(a_note_says_what_messages_do_not)
{
	struct ts_top_message message = { .source = "nvml", .text = "no driver" };
	char filler[400];

	TS_CHECK_STR(shortened("nvml: no driver", &message), "");
	TS_CHECK_STR(shortened("no driver", &message), "");
	TS_CHECK_STR(shortened("2 hidden; nvml: no driver", &message), "2 hidden");
	TS_CHECK_STR(shortened("2 hidden; nvml: no driver; amd: asleep", &message),
		     "2 hidden; amd: asleep");
	TS_CHECK_STR(shortened("nvml: no driver; amd: asleep", &message), "amd: asleep");
	TS_CHECK_STR(shortened("amd: asleep", &message), "amd: asleep");
	TS_CHECK_STR(shortened("", &message), "");
	/* At the length where the message was cut. */
	memset(message.text, 'x', sizeof(message.text) - 1);
	snprintf(filler, sizeof(filler), "2 hidden; nvml: %s", message.text);
	TS_CHECK_STR(shortened(filler, &message), "2 hidden");
	TS_CHECK_STR(shortened("2 hidden; nvml: xx", &message), "2 hidden; nvml: xx");
}

TS_TEST(sources_by_name)
{
	struct ts_top_backends backends;
	struct ts_error err;

	unsetenv("TRACESMITH_BACKENDS");
	TS_CHECK_INT(ts_top_backends_choose(&backends, NULL, &err), 0);
	TS_CHECK(!backends.names && backends.sources[0]);
	TS_CHECK_INT(ts_top_backends_choose(&backends, "host", &err), 0);
	TS_CHECK_STR(backends.names, "host");
	TS_CHECK(!backends.sources[0]);
	TS_CHECK_INT(ts_top_backends_choose(&backends, "amd,,host", &err), 0);
	TS_CHECK_STR(backends.names, "amd,host");
	TS_CHECK_STR(backends.sources[0]->name, "amd");
	TS_CHECK(!backends.sources[1]);
	TS_CHECK_INT(ts_top_backends_choose(&backends, "none", &err), 0);
	TS_CHECK_STR(backends.names, "");
	TS_CHECK_INT(ts_top_backends_choose(&backends, "nosuch", &err), TS_EINVAL);
	/* From the environment, which may also name backends that run in programs only. */
	setenv("TRACESMITH_BACKENDS", "nosuch,amd", 1);
	TS_CHECK_INT(ts_top_backends_choose(&backends, NULL, &err), 0);
	TS_CHECK_STR(backends.names, "amd");
	TS_CHECK_INT(ts_top_backends_choose(&backends, "host", &err), 0);
	TS_CHECK_STR(backends.names, "host");
	setenv("TRACESMITH_BACKENDS", "", 1);
	TS_CHECK_INT(ts_top_backends_choose(&backends, NULL, &err), 0);
	TS_CHECK(!backends.names);
}

TS_TEST(cells)
{
	char buffer[TS_TOP_CELL_BYTES];
	const char *text;
	struct ts_top_process *process;

	clear_picture();
	process = add_process(1, "a", 30, NAN);
#define CHECK_CELL(column, expected)                                                       \
	do {                                                                               \
		ts_top_format_cell(process, TS_TOP_COLUMN_##column, false, buffer, &text); \
		TS_CHECK_STR(text, expected);                                              \
	} while (0)
	CHECK_CELL(RECORDER, "-");
	CHECK_CELL(EVENTS, "-");
	CHECK_CELL(LOST, "-");
	CHECK_CELL(DEVICES, "-");
	CHECK_CELL(RSS, "-");
	CHECK_CELL(CPU, "30.0");
	process->recorded = TS_TOP_RECORDED;
	process->recorder = 99;
	CHECK_CELL(RECORDER, "99");
	process->window_closed = true;
	CHECK_CELL(RECORDER, "(99)");
	process->recorded = TS_TOP_RECORDER_DEAD;
	CHECK_CELL(RECORDER, "dead");
	process->events_per_s = 1234;
	CHECK_CELL(EVENTS, "1234");
	process->estimated = true;
	CHECK_CELL(EVENTS, "~1234");
	clear_picture();
}

/* ---- keys ---- */

static void type_all(struct ts_top_session *session, const char *keys)
{
	for (; *keys; keys++) {
		TS_CHECK_INT(ts_top_view_arrange(&session->view, session->top), 0);
		ts_top_input(session, (unsigned char)*keys);
	}
}

TS_TEST(keys_sort_and_ask)
{
	struct ts_top_session session = { .top = &picture, .view = { .sort = TS_TOP_COLUMN_CPU } };

	clear_picture();
	add_process(1, "a", 30, NAN);
	type_all(&session, "M");
	TS_CHECK_INT(session.view.sort, TS_TOP_COLUMN_RSS);
	type_all(&session, "RR");
	TS_CHECK(!session.view.reverse);
	/* Device columns are skipped if there are no devices. */
	type_all(&session, "N<");
	TS_CHECK_INT(session.view.sort, TS_TOP_COLUMN_COMMAND);
	type_all(&session, ">");
	TS_CHECK_INT(session.view.sort, TS_TOP_COLUMN_PID);
	session.view.sort = TS_TOP_COLUMN_THREADS;
	type_all(&session, ">");
	TS_CHECK_INT(session.view.sort, TS_TOP_COLUMN_EVENTS);
	type_all(&session, "d0.5\n");
	TS_CHECK_INT(picture.delay_ns, 500000000);
	type_all(&session, "d250ms\n");
	TS_CHECK_INT(picture.delay_ns, 250000000);
	type_all(&session, "d0.001\n");
	TS_CHECK_INT(picture.delay_ns, 250000000);
	TS_CHECK(session.message[0]);
	type_all(&session, "d9\033");
	TS_CHECK_INT(picture.delay_ns, 250000000);
	type_all(&session, "/abx\x7f\n");
	TS_CHECK_STR(session.view.filter, "ab");
	type_all(&session, "/\x15\n");
	TS_CHECK_STR(session.view.filter, "");
	/* Letters of an answer are not keys. */
	type_all(&session, "/qqq");
	TS_CHECK(!session.quits);
	type_all(&session, "\033hq");
	TS_CHECK(!session.quits && session.mode == TS_TOP_TABLE);
	type_all(&session, "q");
	TS_CHECK(session.quits);
	ts_top_view_release(&session.view);
	clear_picture();
}

TS_TEST(answers_have_an_end)
{
	struct ts_top_session session = { .top = &picture };

	clear_picture();
	type_all(&session, "/");
	for (int i = 0; i < 1000; i++)
		ts_top_input(&session, 0x1f600);
	TS_CHECK(strlen(session.answer) < sizeof(session.answer));
	TS_CHECK(ts_utf8_valid(session.answer, strlen(session.answer)));
	ts_top_input(&session, TS_KEY_BACKSPACE);
	TS_CHECK(ts_utf8_valid(session.answer, strlen(session.answer)));
	for (int i = 0; i < 100; i++)
		ts_top_input(&session, TS_KEY_BACKSPACE);
	TS_CHECK_STR(session.answer, "");
	/* There is no process to signal. */
	type_all(&session, "\033k");
	TS_CHECK_INT(session.mode, TS_TOP_TABLE);
	ts_top_view_release(&session.view);
}

TS_TEST(signals_by_name_and_number)
{
	TS_CHECK_INT(ts_top_parse_signal(""), SIGTERM);
	TS_CHECK_INT(ts_top_parse_signal("kill"), SIGKILL);
	TS_CHECK_INT(ts_top_parse_signal("SIGUSR1"), SIGUSR1);
	TS_CHECK_INT(ts_top_parse_signal("15"), SIGTERM);
	TS_CHECK_INT(ts_top_parse_signal("0"), 0);
	TS_CHECK_INT(ts_top_parse_signal("-9"), 0);
	TS_CHECK_INT(ts_top_parse_signal("999"), 0);
	TS_CHECK_INT(ts_top_parse_signal("TERMINATE"), 0);
}

TS_TEST(a_signal_is_for_the_one_that_was_seen)
{
	struct ts_error err;

	/* As if another process had our pid. */
	TS_CHECK_INT(
		ts_top_send_signal(getpid(), ts_process_start_time(getpid()) + 1, SIGKILL, &err),
		TS_ENOTFOUND);
	TS_CHECK_INT(ts_top_send_signal(INT32_MAX, 1, SIGKILL, &err), TS_ENOTFOUND);
	signal(SIGUSR1, SIG_IGN);
	TS_CHECK_INT(ts_top_send_signal(getpid(), ts_process_start_time(getpid()), SIGUSR1, &err),
		     0);
}

/* ---- windows of every size ---- */

static void draw_all_modes(struct ts_top_session *session)
{
	for (int mode = TS_TOP_TABLE; mode <= TS_TOP_PROMPT_SIGNAL; mode++) {
		session->mode = (enum ts_top_mode)mode;
		TS_CHECK_INT(ts_top_view_arrange(&session->view, &picture), 0);
		ts_top_draw(session);
		for (unsigned int i = 0; i < session->screen.rows; i++)
			TS_CHECK(session->screen.next[i].columns <= session->screen.columns);
		TS_CHECK(!ts_screen_finish(&session->screen)->failed);
	}
	session->mode = TS_TOP_TABLE;
}

TS_TEST(windows_of_every_size)
{
	struct ts_top_session session = { .top = &picture, .view = { .sort = TS_TOP_COLUMN_CPU } };
	struct ts_top_device devices[20] = { { .vendor = "NVIDIA", .model = "H200" } };
	struct ts_top_subject subject = { .throttled = "power" };

	clear_picture();
	for (int i = 0; i < 40; i++)
		add_process(i + 1, "name", i, i % 2 ? NAN : 1000.0 * i);
	for (uint32_t i = 0; i < 20; i++)
		devices[i].number = i;
	picture.devices = devices;
	picture.device_count = 20;
	picture.subjects = &subject;
	picture.subject_count = 1;
	picture.uses_accelerators = true;
	picture.message_count = 3;
	ts_screen_init(&session.screen, true, true);
	for (unsigned int rows = 1; rows < 60; rows++) {
		for (unsigned int width = 1; width < 140; width += rows < 6 ? 1 : 7) {
			TS_CHECK_INT(ts_screen_resize(&session.screen, rows, width, NULL), 0);
			ts_top_view_select(&session.view, (rows * width) % 45);
			draw_all_modes(&session);
			TS_CHECK(session.view.selected < session.view.row_count);
			TS_CHECK(!session.page ||
				 (session.view.selected >= session.view.first &&
				  session.view.selected < session.view.first + session.page));
		}
	}
	ts_screen_release(&session.screen);
	ts_top_view_release(&session.view);
	picture.devices = NULL;
	clear_picture();
}
