/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of npu-smi, in each of its layouts (tests/data/npu-smi), and damaged at every offset: a
 * table is parsed completely or not at all.
 */
#include "sample/metrics/ascend/npu_smi_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "unit/runner.h"

/* ---- samples ---- */

static char *sample;
static size_t sample_bytes;

static void load(const char *name)
{
	const char *source = getenv("TS_SOURCE");
	char path[512];
	FILE *file;

	if (!source)
		ts_test_skip("TS_SOURCE does not say where the repository is");
	snprintf(path, sizeof(path), "%s/tests/data/npu-smi/%s.txt", source, name);
	file = fopen(path, "rb");
	if (!file)
		ts_test_fail(__FILE__, __LINE__, "cannot open '%s'", path);
	free(sample);
	sample = calloc(1, 1 << 16);
	sample_bytes = fread(sample, 1, (1 << 16) - 1, file);
	fclose(file);
}

static void put(struct ts_text *out, const char *name, int64_t value)
{
	if (value != TS_METRICS_UNKNOWN)
		ts_text_printf(out, " %s%" PRId64, name, value);
}

/* One line per chip and process, with the known values. */
static void describe(const struct ts_npu_info *info, struct ts_text *out)
{
	ts_text_clear(out);
	for (size_t i = 0; i < info->chip_count; i++) {
		const struct ts_npu_chip *chip = &info->chips[i];

		ts_text_printf(out, "%u.%u #%u %s %s %s", chip->npu, chip->chip, chip->number,
			       chip->model, chip->health, chip->bus[0] ? chip->bus : "-");
		put(out,
		    chip->is_rated_power ? "rated_mW="
		    : chip->is_npu_power ? "npu_mW="
					 : "mW=",
		    chip->power_mw);
		put(out, "C=", chip->temperature_c);
		put(out, "aicore=", chip->aicore_percent);
		put(out, "npu=", chip->npu_percent);
		put(out, "used=", chip->used_mib);
		put(out, "total=", chip->total_mib);
		ts_text_append_str(out, chip->is_silent ? " silent\n" : "\n");
	}
	for (size_t i = 0; i < info->process_count; i++) {
		const struct ts_npu_process *process = &info->processes[i];

		ts_text_printf(out, "pid %" PRId64 " on #%u", process->pid, process->number);
		put(out, "inner=", process->inner_pid);
		put(out, "used=", process->used_mib);
		ts_text_append_char(out, '\n');
	}
	if (!info->has_processes)
		ts_text_append_str(out, "processes not known\n");
}

static void expect_text(const char *text, size_t bytes, const char *expected)
{
	/* Exactly as large as the input, so that a sanitizer detects reads beyond it. */
	char *copy = malloc(bytes ? bytes : 1);
	struct ts_text out = { 0 };
	struct ts_npu_info info;
	struct ts_error err;

	memcpy(copy, text, bytes);
	if (ts_npu_smi_parse(copy, bytes, &info, &err))
		ts_test_fail(__FILE__, __LINE__, "refused: %s", err.message);
	describe(&info, &out);
	TS_CHECK_STR(ts_text_cstr(&out), expected);
	ts_npu_info_release(&info);
	ts_text_release(&out);
	free(copy);
}

static void expect(const char *name, const char *expected)
{
	load(name);
	expect_text(sample, sample_bytes, expected);
	free(sample);
	sample = NULL;
}

static void expect_refused(const char *text, size_t bytes, const char *why)
{
	struct ts_npu_info info;
	struct ts_error err;

	if (!ts_npu_smi_parse(text, bytes, &info, &err))
		ts_test_fail(__FILE__, __LINE__, "not refused (%s): %.*s", why, (int)bytes, text);
	TS_CHECK_INT(info.chip_count, 0);
	TS_CHECK(info.chips == NULL && info.processes == NULL);
	if (!strstr(err.message, why))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err.message, why);
}

/* ---- layouts ---- */

TS_TEST(chips_310)
{
	expect("310-20.2.2",
	       "2049.0 #0 310 OK 0000:A1:00.0 rated_mW=12800 C=51 aicore=17 used=3011 total=8192\n"
	       "2049.1 #1 310 OK 0000:A2:00.0 rated_mW=12800 C=52 aicore=0 used=2400 total=8192\n"
	       "2051.0 #2 310 Warning 0000:B1:00.0 rated_mW=12800 C=71 aicore=100 used=8192 total=8192\n"
	       "processes not known\n");
}

TS_TEST(chips_310P)
{
	expect("310P-22.0.0",
	       "0.0 #0 310P3 OK 0000:86:00.0 mW=15700 C=42 aicore=0 used=994 total=21534\n"
	       "processes not known\n");
	/* Power "NA"; a name with a bar and a blank in it. */
	expect("310P-24.1.0.1",
	       "3.0 #0 310P3 OK 0000:05:00.0 C=58 aicore=64 used=17001 total=44280\n"
	       "3.1 #1 310P3 OK 0000:05:00.0 C=57 aicore=0 used=990 total=43693\n"
	       "pid 41001 on #0 used=15500\n"
	       "pid 41002 on #0 used=7\n");
	expect("310P-25.5.1", "0.0 #0 310P3 OK 0000:17:00.0 C=44 aicore=3 used=1870 total=21527\n"
			      "processes not known\n");
}

TS_TEST(chips_310B)
{
	expect("310B-23.0.0", "0.0 #0 310B4 Alarm - C=61 aicore=25 used=3701 total=15609\n"
			      "processes not known\n");
	/* Neither 0.0 W nor 0 degrees was measured. */
	expect("310B-23.0.rc1", "0.0 #0 310B OK - aicore=0 used=1200 total=10810\n"
				"processes not known\n");
}

TS_TEST(chips_910A)
{
	expect("910A-1.9.3",
	       "4.0 #4 910A OK 0000:C2:00.0 mW=66100 C=30 aicore=45 used=1024 total=32768\n"
	       "5.0 #5 910A OK 0000:82:00.0 mW=62700 C=25 aicore=0 used=0 total=32768\n"
	       "processes not known\n");
}

#define CHIPS_910B                                                                       \
	"0.0 #0 910B3 OK 0000:C1:00.0 mW=141200 C=43 aicore=93 used=59321 total=65536\n" \
	"1.0 #1 910B3 OK 0000:C2:00.0 silent\n"                                          \
	"2.0 #2 910B3 Critical 0000:81:00.0 mW=91500 C=40 used=0 total=65536\n"

TS_TEST(chips_910B)
{
	/* The second does not answer, and the third reports a utilization of 4294967295 %. */
	expect("910B-23.0.rc3.3",
	       CHIPS_910B "pid 51001 on #0 used=55007\npid 51002 on #2 used=12\n");
	expect("910B-noise", CHIPS_910B "pid 51001 on #0 used=55007\npid 51002 on #2 used=12\n");
	expect("910B-26.1.0",
	       "0.0 #0 910B3 OK 0000:C1:00.0 mW=102400 C=50 aicore=5 used=8714 total=65536\n"
	       "1.0 #1 910B3 OK 0000:C2:00.0 mW=96100 C=48 aicore=0 used=3466 total=65536\n"
	       "pid 71001 on #0 used=5210\n"
	       "pid 71002 on #0 inner=17 used=40\n");
}

TS_TEST(chips_910C)
{
	expect("910C-25.2.0",
	       "0.0 #0 Ascend910 OK 0000:9C:00.0 npu_mW=158300 C=37 aicore=12 used=3207 total=65536\n"
	       "0.1 #1 Ascend910 OK 0000:9E:00.0 C=37 aicore=0 used=2911 total=65536\n"
	       "1.0 #2 Ascend910 OK 0000:37:00.0 npu_mW=171400 C=38 aicore=0 used=3190 total=65536\n"
	       "1.1 #3 Ascend910 Warning 0000:39:00.0 C=38 aicore=61 used=11002 total=65536\n"
	       "pid 61001 on #2 used=132\n"
	       "pid 61001 on #3 used=7801\n"
	       "pid 61002 on #3 used=50\n");
	expect("910C-26.0.rc1.b030",
	       "0.0 #0 Ascend910 OK 0000:9D:00.0 npu_mW=149900 C=28 aicore=0 used=3188 total=65536\n"
	       "0.1 #1 Ascend910 OK 0000:9F:00.0 C=27 aicore=0 used=2903 total=65536\n");
}

TS_TEST(chips_950)
{
	expect("950-25.7.rc1",
	       "0.0 #0 Ascend950PR OK 0000:01:00.0 mW=190600 C=46 npu=33 used=6702 total=131072\n"
	       "1.0 #1 Ascend950PR OK - mW=201300 C=48 npu=0 used=6111 total=131072\n"
	       "pid 81001 on #0 used=332\n");
	expect("950-25.6.rc1",
	       "0.0 #0 Ascend950PR OK - mW=388500 C=46 npu=7 used=91044 total=98304\n"
	       "pid 91001 on #0 used=85120\n");
}

/* ---- unknown output ---- */

static void expect_refused_sample(const char *name, const char *why)
{
	load(name);
	expect_refused(sample, sample_bytes, why);
}

TS_TEST(unknown_tables_are_refused)
{
	expect_refused_sample("bad-locale", "does not know: '| NPU 名称 | 健康 | 功率(W)");
	expect_refused_sample("bad-comma",
			      "'| 0 910B3 | OK | 141,2 43 0 / 0 |'; values are left out");
	expect_refused_sample("bad-new-column", "Fan(%)");
	expect_refused_sample("bad-renamed", "AiCore(%)");
	expect_refused_sample("bad-unit", "HBM-Usage(GB)");
	expect_refused_sample("bad-row-missing", "printed a table that this version does not know");
	expect_refused_sample("bad-cut", "'| 0 | 000'");
	expect_refused_sample("bad-no-driver", "dcmi module initialize failed. ret is -8005");
	expect_refused("", 0, "npu-smi printed nothing");
	expect_refused("\n\n", 2, "npu-smi printed nothing");
	expect_refused("hello\nyou\n", 10, "npu-smi printed no table: 'hello'");
}

TS_TEST(unknown_processes_are_left_out)
{
	struct ts_npu_info info;

	expect("bad-processes", CHIPS_910B "processes not known\n");
	expect("bad-process-row", CHIPS_910B "processes not known\n");
	load("bad-processes");
	TS_CHECK_INT(ts_npu_smi_parse(sample, sample_bytes, &info, NULL), TS_OK);
	TS_CHECK(strstr(info.message, "Process memory(MiB)") != NULL);
	TS_CHECK(strstr(info.message, "memory of processes is left out") != NULL);
	/* In addition to other messages. */
	TS_CHECK(strstr(info.message, "implausible 'AICore(%)' of NPU 2; it is left out; ") !=
		 NULL);
	ts_npu_info_release(&info);
}

/* Replaces a text in the sample by another of the same length. */
static void expect_message(const char *from, const char *to, const char *message)
{
	struct ts_npu_info info;
	char *at;

	load("910B-26.1.0");
	at = memmem(sample, sample_bytes, from, strlen(from));
	TS_CHECK(at && strlen(from) == strlen(to));
	memcpy(at, to, strlen(to));
	TS_CHECK_INT(ts_npu_smi_parse(sample, sample_bytes, &info, NULL), TS_OK);
	TS_CHECK_STR(info.message, message);
	ts_npu_info_release(&info);
}

TS_TEST(values_that_cannot_be_are_told)
{
	expect_message("102.4", "102.4", "");
	/* Failed queries are printed like this: no message. */
	expect_message("102.4", "000.0", "");
	expect_message("102.4", "   NA", "");
	expect_message("102.4", "-02.4",
		       "npu-smi printed an implausible 'Power(W)' of NPU 0; it is left out");
	expect_message(" 96.1 ", "9996.1",
		       "npu-smi printed an implausible 'Power(W)' of NPU 1; it is left out");
	expect_message("8714 ", "88714",
		       "npu-smi printed an implausible 'HBM-Usage(MB)' of NPU 0; it is left out");
}

/* The chips and processes of a text, or "" if it is rejected. */
static const char *outcome(const char *text, size_t bytes)
{
	static struct ts_text out;
	struct ts_npu_info info;

	ts_text_clear(&out);
	if (!ts_npu_smi_parse(text, bytes, &info, NULL)) {
		describe(&info, &out);
		ts_npu_info_release(&info);
	}
	return ts_text_cstr(&out);
}

/* Lines of `part` that are not in `full`. */
static void expect_part_of(const char *part, const char *full, const char *why, size_t at)
{
	while (*part) {
		size_t length = strcspn(part, "\n") + 1;
		char line[256];

		snprintf(line, sizeof(line), "%.*s", (int)length, part);
		if (!strstr(full, line) && strncmp(line, "processes not known", 19) != 0)
			ts_test_fail(__FILE__, __LINE__, "%s at %zu gives '%s'", why, at, line);
		part += length;
	}
}

static const char *const good[] = {
	"310-20.2.2",  "310P-24.1.0.1",   "310B-23.0.0", "910A-1.9.3",
	"910B-26.1.0", "910B-23.0.rc3.3", "910C-25.2.0", "950-25.7.rc1"
};

/* Wherever it is truncated: no numbers other than those of the original. */
TS_TEST(cut_texts_give_nothing_wrong)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(good); i++) {
		char full[4096];

		load(good[i]);
		snprintf(full, sizeof(full), "%s", outcome(sample, sample_bytes));
		TS_CHECK(full[0]);
		for (size_t bytes = 0; bytes < sample_bytes; bytes++)
			expect_part_of(outcome(sample, bytes), full, "a cut", bytes);
	}
}

/* Every line is required, except for rules and processes. */
TS_TEST(missing_lines_are_noticed)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(good); i++) {
		char without[1 << 16];
		size_t end;

		load(good[i]);
		for (size_t from = 0; from < sample_bytes; from = end) {
			const char *line = sample + from;

			end = from + strcspn(line, "\n") + 1;
			if (strncmp(line, "| NPU     Chip", 14) == 0 ||
			    strncmp(line, "| NPU ID                    |", 29) == 0)
				break;
			if (*line != '|')
				continue;
			memcpy(without, sample, from);
			memcpy(without + from, sample + end, sample_bytes - end);
			if (*outcome(without, sample_bytes - (end - from)))
				ts_test_fail(__FILE__, __LINE__, "%s without '%.*s'", good[i],
					     (int)(end - from), line);
		}
	}
}

/* Every byte of the headers counts. */
TS_TEST(changed_headers_are_noticed)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(good); i++) {
		const char *header;
		size_t length;

		load(good[i]);
		header = strstr(sample, "| NPU ");
		length = (size_t)(strstr(header, "=\n") ? strstr(header, "+=") - header : 0);
		for (size_t at = 0; at < length; at++) {
			char *byte = sample + (header - sample) + at, before = *byte;

			if (strchr(" \n+-", before))
				continue;
			*byte = 'x';
			if (*outcome(sample, sample_bytes))
				ts_test_fail(__FILE__, __LINE__, "%s with another byte at %zu",
					     good[i], at);
			*byte = before;
		}
	}
}

/* ---- single values ---- */

#define HEAD                                         \
	"+--+\n| npu-smi 1 Version: 1 |\n+--+\n"     \
	"| NPU Name | Health | Power(W) Temp(C) |\n" \
	"| Chip | Bus-Id | AICore(%) Memory-Usage(MB) |\n+==+\n"

/* One chip with these values. */
static const char *chip_with(const char *power_and_temperature, const char *use_and_memory)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s| 0 M | OK | %s |\n| 0 | NA | %s |\n+==+\n", HEAD,
		 power_and_temperature, use_and_memory);
	return outcome(text, strlen(text));
}

TS_TEST(absent_values_are_not_zero)
{
#define NO_LIST "\nprocesses not known\n"
	TS_CHECK_STR(chip_with("1.5 20", "3 4/5"),
		     "0.0 #0 M OK - mW=1500 C=20 aicore=3 used=4 total=5" NO_LIST);
	TS_CHECK_STR(chip_with("NA NA", "NA 4/5"), "0.0 #0 M OK - used=4 total=5" NO_LIST);
	TS_CHECK_STR(chip_with("- N/A", "- 4/5"), "0.0 #0 M OK - used=4 total=5" NO_LIST);
	TS_CHECK_STR(chip_with("0.0 20", "0 NA/5"), "0.0 #0 M OK - C=20 aicore=0" NO_LIST);
	TS_CHECK_STR(chip_with("0 20", "0 NA / NA"), "0.0 #0 M OK - C=20 aicore=0" NO_LIST);
	TS_CHECK_STR(chip_with("1 20", "101 6/5"), "0.0 #0 M OK - mW=1000 C=20" NO_LIST);
	TS_CHECK_STR(chip_with("1 20", "0 -1/5"), "0.0 #0 M OK - mW=1000 C=20 aicore=0" NO_LIST);
	TS_CHECK_STR(chip_with("9999 200", "0 1/5"),
		     "0.0 #0 M OK - aicore=0 used=1 total=5" NO_LIST);
	TS_CHECK_STR(chip_with("1 -20", "0 1/5"),
		     "0.0 #0 M OK - mW=1000 C=-20 aicore=0 used=1 total=5" NO_LIST);
	TS_CHECK_STR(chip_with("1.123 1", "100 5 /5"),
		     "0.0 #0 M OK - mW=1123 C=1 aicore=100 used=5 total=5" NO_LIST);
	TS_CHECK_STR(chip_with("0.0 0", "0 0 / 0"), "0.0 #0 M OK - silent" NO_LIST);
}

TS_TEST(other_values_are_refused)
{
	static const char *const bad[][2] = {
		{ "1,5 20", "3 4/5" },
		{ "1.5", "3 4/5" },
		{ "1.5 20 7", "3 4/5" },
		{ "1.5 20C", "3 4/5" },
		{ "1.5 20", "3 4" },
		{ "1.5 20", "3 4/5/6" },
		{ "1.5 20", "3% 4/5" },
		{ "1.5 20", "3 4.5/5" },
		{ "1.5 20.5", "3 4/5" },
		{ "1.5 20", "3 /5" },
		{ "1.5 20", "3 4/" },
		{ "+1.5 20", "3 4/5" },
		{ "1. 20", "3 4/5" },
		{ ".5 20", "3 4/5" },
		{ "1e3 20", "3 4/5" },
		{ "1.5 20", "3 4K/5K" },
		{ "99999999999999999999 20", "3 4/5" },
		{ "1.5 0x14", "3 4/5" },
		{ "", "3 4/5" },
		{ "1.5 20", "" },
		{ "1.2345 20", "3 4/5" },
		{ "-- 20", "3 4/5" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(bad); i++)
		if (*chip_with(bad[i][0], bad[i][1]))
			ts_test_fail(__FILE__, __LINE__, "'%s' and '%s' were taken", bad[i][0],
				     bad[i][1]);
}

static const char *rows(const char *text)
{
	char all[2048];

	snprintf(all, sizeof(all), "%s%s", HEAD, text);
	return outcome(all, strlen(all));
}

TS_TEST(keys_are_unique)
{
	TS_CHECK_STR(rows("| 0 M | OK | 1 20 |\n| 0 | NA | 3 4/5 |\n"
			  "| 0 M | OK | 1 20 |\n| 0 | NA | 3 4/5 |\n+==+\n"),
		     "");
	/* Later chips of an NPU without a number of their own. */
	TS_CHECK_STR(rows("| 3 M | OK | 1 20 |\n| 0 | NA | 3 4/5 |\n"
			  "| 3 M | OK | 1 20 |\n| 1 | NA | 3 4/5 |\n+==+\n"),
		     "3.0 #3 M OK - mW=1000 C=20 aicore=3 used=4 total=5\n"
		     "3.1 #10003 M OK - mW=1000 C=20 aicore=3 used=4 total=5\n"
		     "processes not known\n");
	TS_CHECK_STR(rows("| 70000 M | OK | 1 20 |\n| 0 | NA | 3 4/5 |\n+==+\n"), "");
	TS_CHECK_STR(rows("| 0 M | Fine | 1 20 |\n| 0 | NA | 3 4/5 |\n+==+\n"), "");
	TS_CHECK_STR(rows("| 0 M | OK | 1 20 |\n| 0 | 00:00.0 | 3 4/5 |\n+==+\n"), "");
	TS_CHECK_STR(rows("| 0 M | OK | 1 20 |\n| 0 7 | NA | 3 4/5 |\n+==+\n"), "");
	TS_CHECK_STR(rows("| No devices |\n+==+\n"), "");
	TS_CHECK_STR(rows(""), "");
	TS_CHECK_STR(rows("| NPU Chip | Process id | Process name | Process memory(MB) |\n+==+\n"),
		     "");
}

#define ONE "| 0 M | OK | 1 20 |\n| 0 | NA | 3 4/5 |\n+==+\n"
#define PROCESSES "| NPU Chip | Process id | Process name | Process memory(MB) |\n+==+\n"

TS_TEST(processes_are_counted_once)
{
	const char *chip = "0.0 #0 M OK - mW=1000 C=20 aicore=3 used=4 total=5\n";
	char expected[256];
	struct ts_npu_info info;
	char eight[2048] = HEAD ONE PROCESSES;

	snprintf(expected, sizeof(expected), "%spid 7 on #0 used=30\npid 8 on #0\n", chip);
	TS_CHECK_STR(rows(ONE PROCESSES "| 0 0 | 7 | a | 10 |\n| 0 0 | 8 | b | NA |\n"
					"| 0 0 | 7 | a | 20 |\n+==+\n"),
		     expected);
	/* One of an unlisted chip follows. */
	snprintf(expected, sizeof(expected), "%spid 7 on #0 used=10\n", chip);
	TS_CHECK_STR(rows(ONE PROCESSES "| 0 0 | 7 | a | 10 |\n| 9 0 | 8 | b | 5 |\n+==+\n"),
		     expected);
	snprintf(expected, sizeof(expected), "%sprocesses not known\n", chip);
	TS_CHECK_STR(rows(ONE PROCESSES "| 0 0 | 0 | a | 10 |\n+==+\n"), expected);
	TS_CHECK_STR(rows(ONE PROCESSES "| 0 0 | 7 | a | 10 |\n"), expected);
	TS_CHECK_STR(rows(ONE PROCESSES "| 0 | 7 | a | 10 |\n+==+\n"), expected);
	TS_CHECK_STR(rows(ONE PROCESSES "| 0 0 | 7 | a |\n+==+\n"), expected);
	TS_CHECK_STR(rows(ONE PROCESSES "| 0 0 | 99999999999 | a | 1 |\n+==+\n"), expected);
	TS_CHECK_STR(rows(ONE PROCESSES "| Nothing runs |\n+==+\n"), expected);
	for (int i = 1; i <= 8; i++)
		snprintf(eight + strlen(eight), sizeof(eight) - strlen(eight),
			 "| 0 0 | %d | a | 1 |\n", i);
	snprintf(eight + strlen(eight), sizeof(eight) - strlen(eight), "+==+\n");
	TS_CHECK_INT(ts_npu_smi_parse(eight, strlen(eight), &info, NULL), TS_OK);
	TS_CHECK_INT(info.process_count, 8);
	TS_CHECK(info.is_incomplete);
	ts_npu_info_release(&info);
}

TS_TEST(what_it_says_instead_is_found)
{
	char line[16];

	TS_CHECK(ts_npu_smi_is_none("There is no NPU card on this server.\n", 37));
	TS_CHECK(ts_npu_smi_is_none("x\nUsage: npu-smi info <watch|proc>\n", 35));
	TS_CHECK(!ts_npu_smi_is_none("dcmi module initialize failed.\n", 31));
	ts_npu_smi_complaint("+--+\n| x |\n \n\x1b[31mFailed to do it all\n", 38, line,
			     sizeof(line));
	TS_CHECK_STR(line, "?[31mFailed to ");
	ts_npu_smi_complaint("", 0, line, sizeof(line));
	TS_CHECK_STR(line, "");
}
