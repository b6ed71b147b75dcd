/* SPDX-License-Identifier: Apache-2.0 */
/* Values become rows: grouping, and nothing for missing values. */
#include "sample/metrics/metric_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "unit/runner.h"

struct log {
	struct ts_text text;
	struct ts_metrics_consumer consumer;
	struct ts_metrics_rows rows;
};

static void log_device(void *context, const struct ts_metrics_device *device)
{
	struct log *log = context;

	ts_text_printf(&log->text, "device %x %s|%s|%s|%s\n", device->number, device->vendor,
		       device->model, device->uuid, device->bus);
}

static void log_row(void *context, const struct ts_metrics_subject *subject, const char *name,
		    const struct ts_emit_arg *values, unsigned int count)
{
	struct log *log = context;

	ts_text_printf(&log->text, "%d/%x/%d/%llu %s", (int)subject->kind, subject->device,
		       subject->pid, (unsigned long long)subject->start_time, name);
	for (unsigned int i = 0; i < count; i++) {
		if (values[i].type == TS_EMIT_INT)
			ts_text_printf(&log->text, " %s=%lld", values[i].key,
				       (long long)values[i].value.integer);
		else
			ts_text_printf(&log->text, " %s=%.2f", values[i].key, values[i].value.real);
	}
	ts_text_append_char(&log->text, '\n');
}

static void log_message(void *context, const char *source, const char *text)
{
	struct log *log = context;

	ts_text_printf(&log->text, "%s: %s\n", source, text);
}

static void log_init(struct log *log)
{
	memset(log, 0, sizeof(*log));
	log->consumer = (struct ts_metrics_consumer){
		.context = log, .device = log_device, .row = log_row, .message = log_message
	};
	ts_metrics_rows_init(&log->rows, &log->consumer, "test", 3);
}

/* Flushes, compares, and empties. */
static void check_log(struct log *log, const char *expected)
{
	ts_metrics_rows_flush(&log->rows);
	TS_CHECK_STR(ts_text_cstr(&log->text), expected);
	ts_text_release(&log->text);
}

static const struct ts_metrics_subject gpu = {
	.kind = TS_METRICS_DEVICE, .device = 1, .pid = 7, .start_time = 8
};
static const struct ts_metrics_subject process = {
	.kind = TS_METRICS_PROCESS, .device = 9, .pid = 12, .start_time = 34
};
static const struct ts_metrics_subject both = {
	.kind = TS_METRICS_PROCESS_ON_DEVICE, .device = 1, .pid = 12, .start_time = 34
};
static const struct ts_metrics_subject machine = { .kind = TS_METRICS_SYSTEM, .pid = 5 };

TS_TEST(values_that_follow_each_other_are_a_row)
{
	struct log log;
	const struct ts_metrics_sink *sink = &log.rows.sink;

	log_init(&log);
	sink->integer(sink->context, &gpu, "clock_MHz", "compute", 1980);
	sink->integer(sink->context, &gpu, "clock_MHz", "memory", 2619);
	sink->real(sink->context, &gpu, "power_W", "draw", 77.5);
	sink->integer(sink->context, &both, "memory_bytes", "used", 4096);
	sink->integer(sink->context, &process, "memory_bytes", "rss", 8192);
	sink->real(sink->context, &machine, "cpu_percent", "user", 1);
	sink->real(sink->context, &machine, "cpu_percent", "system", 2);
	check_log(&log, "3/30001/0/0 clock_MHz compute=1980 memory=2619\n"
			"3/30001/0/0 power_W draw=77.50\n"
			"4/30001/12/34 memory_bytes used=4096\n"
			"2/0/12/34 memory_bytes rss=8192\n"
			"1/0/0/0 cpu_percent user=1.00 system=2.00\n");
	check_log(&log, ""); /* each is passed on once */
}

TS_TEST(a_series_stands_once_in_a_row)
{
	struct log log;
	const struct ts_metrics_sink *sink = &log.rows.sink;

	log_init(&log);
	sink->integer(sink->context, &gpu, "power_W", "draw", 1);
	sink->integer(sink->context, &gpu, "power_W", "draw", 2);
	check_log(&log, "3/30001/0/0 power_W draw=1\n3/30001/0/0 power_W draw=2\n");
}

TS_TEST(a_long_row_is_two)
{
	struct log log;
	const struct ts_metrics_sink *sink = &log.rows.sink;
	char series[16];
	unsigned int lines = 0;

	log_init(&log);
	for (int i = 0; i < 40; i++) {
		snprintf(series, sizeof(series), "s%d", i);
		sink->integer(sink->context, &gpu, "many", series, i);
	}
	ts_metrics_rows_flush(&log.rows);
	for (const char *at = ts_text_cstr(&log.text); (at = strchr(at, '\n')); at++)
		lines++;
	TS_CHECK_INT(lines, 2);
	TS_CHECK(strstr(ts_text_cstr(&log.text), "s31=31\n3/30001/0/0 many s32=32") != NULL);
	ts_text_release(&log.text);
}

TS_TEST(what_is_no_value_is_left_out)
{
	struct log log;
	const struct ts_metrics_sink *sink = &log.rows.sink;
	struct ts_metrics_subject odd = gpu;

	log_init(&log);
	sink->real(sink->context, &gpu, "power_W", "draw", NAN);
	sink->real(sink->context, &gpu, "power_W", "limit", INFINITY);
	sink->integer(sink->context, &gpu, "power_W", "least", TS_METRICS_UNKNOWN);
	odd.device = 65536;
	sink->integer(sink->context, &odd, "power_W", "draw", 1);
	odd.kind = 77;
	sink->integer(sink->context, &odd, "power_W", "draw", 1);
	check_log(&log, "");
	sink->integer(sink->context, &gpu, "power_W", "draw", 0);
	check_log(&log, "3/30001/0/0 power_W draw=0\n");
}

TS_TEST(names_are_cut_where_a_character_ends)
{
	struct log log;
	const struct ts_metrics_sink *sink = &log.rows.sink;
	char name[128], expected[128];

	memset(name, 'n', sizeof(name));
	memcpy(name + 62, "\xc3\xa9", 2);
	name[100] = '\0';
	log_init(&log);
	sink->integer(sink->context, &gpu, name, "x", 1);
	snprintf(expected, sizeof(expected), "3/30001/0/0 %.62s x=1\n", name);
	check_log(&log, expected);
}

TS_TEST(nothing_is_taken_for_granted)
{
	struct log log;
	const struct ts_metrics_sink *sink = &log.rows.sink;
	const struct ts_metrics_device device = { .number = 2 };
	struct ts_metrics_subject nobody = process;

	log_init(&log);
	sink->integer(sink->context, &gpu, NULL, "series", 1);
	sink->real(sink->context, &gpu, "", "series", 1);
	sink->integer(sink->context, NULL, "name", "series", 1);
	sink->real(sink->context, NULL, "name", "series", 1);
	sink->device(sink->context, NULL);
	sink->message(sink->context, NULL);
	sink->message(sink->context, "");
	nobody.pid = 0;
	sink->integer(sink->context, &nobody, "name", "series", 1);
	nobody.pid = -1;
	nobody.kind = TS_METRICS_PROCESS_ON_DEVICE;
	sink->integer(sink->context, &nobody, "name", "series", 1);
	check_log(&log, "");
	sink->integer(sink->context, &gpu, "name", NULL, 1);
	sink->device(sink->context, &device);
	check_log(&log, "device 30002 |||\n3/30001/0/0 name =1\n");
}

/* They may end up on a terminal. */
TS_TEST(texts_are_made_printable)
{
	const struct ts_metrics_device device = { .number = 2,
						  .vendor = "a\tb",
						  .model = "\x1b[2J",
						  .uuid = "\xff\xc3",
						  .bus = "0000:01:00.0" };
	struct log log;
	const struct ts_metrics_sink *sink = &log.rows.sink;
	char expected[1100], text[1100];

	log_init(&log);
	sink->message(sink->context, "one\ntwo\r\x1b[31m\x7f \xc2\x9b \xc3\xa9\xe2\x82");
	check_log(&log, "test: one?two??[31m? ? \xc3\xa9\xef\xbf\xbd\n");
	sink->device(sink->context, &device);
	check_log(&log, "device 30002 a?b|?[2J|\xef\xbf\xbd\xef\xbf\xbd|0000:01:00.0\n");
	sink->integer(sink->context, &gpu, "na\nme", "se\x1bries", 1);
	check_log(&log, "3/30001/0/0 na?me se?ries=1\n");
	/* Long ones are truncated. */
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	memcpy(text + 1022, "\xc3\xa9", 2);
	sink->message(sink->context, text);
	snprintf(expected, sizeof(expected), "test: %.1022s\n", text);
	check_log(&log, expected);
}

TS_TEST(devices_have_the_place_of_their_source)
{
	struct log log;
	const struct ts_metrics_sink *sink = &log.rows.sink;
	struct ts_metrics_device device = { .number = 2, .model = "model" };

	log_init(&log);
	sink->device(sink->context, &device);
	device.number = 65536;
	sink->device(sink->context, &device);
	check_log(&log, "device 30002 |model||\n");
	TS_CHECK_INT(ts_metrics_device_number(0x30002), 2);
}

TS_TEST(a_message_is_passed_on_once)
{
	struct log log;
	const struct ts_metrics_sink *sink = &log.rows.sink;

	log_init(&log);
	for (int i = 0; i < 3; i++) {
		sink->message(sink->context, "first");
		sink->message(sink->context, "second");
	}
	check_log(&log, "test: first\ntest: second\n");
	/* Many others do no harm. */
	for (int i = 0; i < 1000; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		sink->message(sink->context, text);
	}
	sink->message(sink->context, "999");
	TS_CHECK_INT(log.rows.message_count, 1002);
	ts_text_release(&log.text);
}
