/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of /proc, of this kernel and others, truncated anywhere, with odd names and numbers out of
 * range: a value is right, or absent. And sums over interfaces that come and go.
 */
#include "base/procfs_parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sample/metrics/host/io_totals.h"
#include "unit/runner.h"

#define NONE TS_NO_VALUE

/* ---- texts ---- */

#define STAT_TAIL                                                                              \
	" S 1 4711 4711 0 -1 4194560 1010 2020 3 40 50 60 70 80 20 0 7 0 3249868 3133440 412 " \
	"18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"

static const char io_text[] = "rchar: 7301\nwchar: 325\nsyscr: 14\nsyscw: 2\nread_bytes: 8192\n"
			      "write_bytes: 4096\ncancelled_write_bytes: 0\n";
static const char system_text[] = "cpu  100 20 30 4000 50 6 7 80 9 10\n"
				  "cpu0 100 20 30 4000 50 6 7 80 9 10\n"
				  "intr 71318181 0 0 0\n"
				  "ctxt 370784115\n"
				  "btime 1794709600\n"
				  "procs_running 3\n"
				  "procs_blocked 2\n";
static const char meminfo_text[] = "MemTotal:       24682740 kB\n"
				   "MemFree:        24278912 kB\n"
				   "MemAvailable:   24243272 kB\n"
				   "SwapCached:            0 kB\n"
				   "SwapTotal:       1000000 kB\n"
				   "SwapFree:         999000 kB\n";
static const char vmstat_text[] = "nr_free_pages 1\npswpin 11\npswpout 12\npgfault 1427424308\n"
				  "pgmajfault 17363\n";
static const char pressure_text[] = "some avg10=0.79 avg60=0.87 avg300=4.44 total=9848360295\n"
				    "full avg10=0.00 avg60=0.00 avg300=0.00 total=49592845\n";
static const char network_text[] =
	"Inter-|   Receive                                                |  Transmit\n"
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
	"    lo: 100   1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n"
	"  eth0:732253188   28969    0    0    0     0          0         0  1945670   25918 0 0\n";
static const char disk_text[] =
	"   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	" 254       0 vda 237755 46916 14679722 54949 1801486 273171 149543864 759682 0 297216 1\n"
	" 254       1 vda1 1 2 3 4\n";

/* ---- /proc/PID/stat ---- */

static void check_stat(const char *text)
{
	struct ts_procfs_stat stat;

	TS_CHECK(ts_procfs_stat_parse(text, &stat));
	TS_CHECK_INT(stat.state, 'S');
	TS_CHECK_INT(stat.minor_faults, 1010);
	TS_CHECK_INT(stat.major_faults, 3);
	TS_CHECK_INT(stat.user_ticks, 50);
	TS_CHECK_INT(stat.system_ticks, 60);
	TS_CHECK_INT(stat.child_user_ticks, 70);
	TS_CHECK_INT(stat.child_system_ticks, 80);
	TS_CHECK_INT(stat.threads, 7);
	TS_CHECK_INT(stat.start_time, 3249868);
}

TS_TEST(names_may_hold_anything)
{
	check_stat("4711 (cat)" STAT_TAIL);
	check_stat("4711 (a b c)" STAT_TAIL);
	check_stat("4711 (a) R 1 2 3)" STAT_TAIL);
	check_stat("4711 ())))" STAT_TAIL);
	check_stat("4711 (\xff\n)" STAT_TAIL);
}

TS_TEST(a_cut_stat_is_none)
{
	static const char complete[] = "4711 (a) b" STAT_TAIL;
	struct ts_procfs_stat stat;
	size_t enough = (size_t)(strstr(complete, " 3249868 ") - complete) + strlen(" 3249868 ");
	char text[sizeof(complete)];

	for (size_t length = 0; length < sizeof(complete); length++) {
		memcpy(text, complete, length);
		text[length] = '\0';
		if (length < enough)
			TS_CHECK(!ts_procfs_stat_parse(text, &stat));
	}
	TS_CHECK(!ts_procfs_stat_parse("4711 (cat", &stat));
	TS_CHECK(!ts_procfs_stat_parse("4711 (cat)\n", &stat));
	TS_CHECK(!ts_procfs_stat_parse("4711 (cat) S x\n", &stat));
}

TS_TEST(the_end_of_a_process)
{
	TS_CHECK(ts_procfs_stat_has_exited(&(struct ts_procfs_stat){ .state = 'Z', .threads = 1 }));
	TS_CHECK(ts_procfs_stat_has_exited(&(struct ts_procfs_stat){ .state = 'Z', .threads = 0 }));
	TS_CHECK(
		!ts_procfs_stat_has_exited(&(struct ts_procfs_stat){ .state = 'Z', .threads = 2 }));
	TS_CHECK(ts_procfs_stat_has_exited(&(struct ts_procfs_stat){ .state = 'X', .threads = 2 }));
	TS_CHECK(
		!ts_procfs_stat_has_exited(&(struct ts_procfs_stat){ .state = 'T', .threads = 1 }));
}

/* ---- the others: complete, and truncated anywhere ---- */

/* All values of a text, in one row. */
typedef void (*parse_function)(const char *text, uint64_t *ret_values);

static void parse_statm(const char *text, uint64_t *ret_values)
{
	struct ts_procfs_statm statm;

	ts_procfs_statm_parse(text, &statm);
	ret_values[0] = statm.virtual_pages;
	ret_values[1] = statm.resident_pages;
	ret_values[2] = statm.shared_pages;
}

static void parse_io(const char *text, uint64_t *ret_values)
{
	struct ts_procfs_io io;

	ts_procfs_io_parse(text, &io);
	ret_values[0] = io.call_read;
	ret_values[1] = io.call_written;
	ret_values[2] = io.disk_read;
	ret_values[3] = io.disk_written;
}

static void parse_status(const char *text, uint64_t *ret_values)
{
	struct ts_switches switches;

	ts_procfs_status_parse(text, &switches);
	ret_values[0] = switches.voluntary;
	ret_values[1] = switches.involuntary;
}

static void parse_system(const char *text, uint64_t *ret_values)
{
	struct ts_procfs_system system;

	ts_procfs_system_parse(text, &system);
	memcpy(ret_values, system.ticks, sizeof(system.ticks));
	ret_values[TS_CPU_MODES] = system.switches;
	ret_values[TS_CPU_MODES + 1] = system.running;
	ret_values[TS_CPU_MODES + 2] = system.blocked;
}

static void parse_meminfo(const char *text, uint64_t *ret_values)
{
	struct ts_procfs_meminfo memory;

	ts_procfs_meminfo_parse(text, &memory);
	ret_values[0] = memory.total;
	ret_values[1] = memory.available;
	ret_values[2] = memory.swap_total;
	ret_values[3] = memory.swap_free;
}

static void parse_vmstat(const char *text, uint64_t *ret_values)
{
	struct ts_procfs_vmstat vmstat;

	ts_procfs_vmstat_parse(text, &vmstat);
	ret_values[0] = vmstat.faults;
	ret_values[1] = vmstat.major_faults;
	ret_values[2] = vmstat.swapped_in;
	ret_values[3] = vmstat.swapped_out;
}

static void parse_pressure(const char *text, uint64_t *ret_values)
{
	struct ts_procfs_pressure pressure;

	ts_procfs_pressure_parse(text, &pressure);
	ret_values[0] = pressure.some;
	ret_values[1] = pressure.full;
}

/* The last interface or disk. */
static void parse_last(const char *text, uint64_t *ret_values,
		       bool (*next)(const char **, struct ts_procfs_traffic *))
{
	struct ts_procfs_traffic traffic;

	ret_values[0] = ret_values[1] = NONE;
	while (next(&text, &traffic)) {
		if (traffic.name_length < 3)
			continue;
		ret_values[0] = traffic.in;
		ret_values[1] = traffic.out;
	}
}

static void parse_network(const char *text, uint64_t *ret_values)
{
	parse_last(text, ret_values, ts_procfs_network_next);
}

/* A loop device is not a disk. */
static void parse_disk(const char *text, uint64_t *ret_values)
{
	const char *vda = strstr(text, " 254");

	parse_last(vda ? vda : "", ret_values, ts_procfs_disk_next);
}

static void check_text(parse_function parse, const char *complete, const uint64_t *expected,
		       size_t count)
{
	uint64_t values[16];
	char text[1024];

	TS_CHECK(strlen(complete) < sizeof(text));
	parse(complete, values);
	for (size_t i = 0; i < count; i++)
		TS_CHECK_INT(values[i], expected[i]);
	for (size_t length = 0; length < strlen(complete); length++) {
		memcpy(text, complete, length);
		text[length] = '\0';
		parse(text, values);
		for (size_t i = 0; i < count; i++)
			TS_CHECK(values[i] == NONE || values[i] == expected[i]);
	}
}

#define CHECK_TEXT(parse, complete, ...)                                          \
	do {                                                                      \
		const uint64_t expected_[] = { __VA_ARGS__ };                     \
		check_text(parse, complete, expected_, TS_ARRAY_SIZE(expected_)); \
	} while (0)

TS_TEST(texts_of_a_process)
{
	CHECK_TEXT(parse_statm, "765 439 412 5 0 123 0\n", 765, 439, 412);
	CHECK_TEXT(parse_io, io_text, 7301, 325, 8192, 4096);
	CHECK_TEXT(parse_status,
		   "Name:\tcat\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t34\n",
		   12, 34);
}

TS_TEST(texts_of_the_machine)
{
	CHECK_TEXT(parse_system, system_text, 100, 20, 30, 4000, 50, 6, 7, 80, 370784115, 3, 2);
	CHECK_TEXT(parse_meminfo, meminfo_text, 24682740, 24243272, 1000000, 999000);
	CHECK_TEXT(parse_vmstat, vmstat_text, 1427424308, 17363, 11, 12);
	CHECK_TEXT(parse_pressure, pressure_text, 9848360295, 49592845);
	CHECK_TEXT(parse_network, network_text, 732253188, 1945670);
	CHECK_TEXT(parse_disk, disk_text, 14679722, 149543864);
}

TS_TEST(other_kernels_have_less)
{
	CHECK_TEXT(parse_system, "cpu 1 2 3 4\ncpu0 1 2 3 4\nctxt 5\n", 1, 2, 3, 4, NONE, NONE,
		   NONE, NONE, 5, NONE, NONE);
	CHECK_TEXT(parse_system, "cpu0 1 2 3 4\n", NONE, NONE);
	CHECK_TEXT(parse_meminfo, "MemTotal: 10 kB\nMemFree: 5 kB\n", 10, NONE, NONE, NONE);
	CHECK_TEXT(parse_pressure, "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n", 5, NONE);
	CHECK_TEXT(parse_pressure, "full total\nsome total=5\nfull total=x\n", 5, NONE);
	CHECK_TEXT(parse_io, "rchar: 1\nread_bytes:2\n", 1, NONE, NONE, NONE);
	CHECK_TEXT(parse_vmstat, "pgfault_x 1\npgfault -3\n", NONE, NONE, NONE, NONE);
}

TS_TEST(numbers_beyond_all_bounds)
{
	uint64_t number;

	CHECK_TEXT(parse_statm,
		   "18446744073709551616 18446744073709551614 99999999999999999999 1\n", NONE,
		   UINT64_MAX - 1, NONE);
	CHECK_TEXT(parse_statm, "0000000000000000000000000000005 -1 3\n", 5, NONE, NONE);
	TS_CHECK(ts_procfs_scan_number("x", &number) == NULL);
	TS_CHECK(ts_procfs_scan_number("", &number) == NULL);
	TS_CHECK_STR(ts_procfs_scan_number("\t 12 rest", &number), " rest");
	TS_CHECK_INT(number, 12);
}

/* ---- files ---- */

/* More than one read returns. */
TS_TEST(long_files_are_whole)
{
	char path[] = "/tmp/tracesmith-test-XXXXXX";
	int fd = mkstemp(path);
	struct ts_procfs_file file = { .path = path, .fd = -1 };
	struct ts_text text = { 0 };

	TS_CHECK(fd >= 0);
	for (int i = 0; i < 5000; i++)
		TS_CHECK(dprintf(fd, "line %d\n", i) > 0);
	for (int i = 0; i < 2; i++) {
		TS_CHECK_INT(ts_procfs_file_read(&file, AT_FDCWD, &text), 0);
		TS_CHECK(file.fd >= 0);
		TS_CHECK_INT(text.length, lseek(fd, 0, SEEK_CUR));
		TS_CHECK_INT(strlen(text.data), text.length);
		TS_CHECK_STR(text.data + text.length - 10, "line 4999\n");
	}
	ts_procfs_file_close(&file);
	close(fd);
	unlink(path);
	TS_CHECK(ts_procfs_file_read(&file, AT_FDCWD, &text) < 0);
	ts_text_release(&text);
}

/* Three quarters of the descriptors stay available to others. */
TS_TEST(few_files_are_kept)
{
	struct ts_procfs_file file = { .path = "/proc/self/stat", .fd = -1 };
	struct ts_text text = { 0 };
	struct rlimit limit;
	int next = dup(2);

	close(next);
	TS_CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 4 * ((rlim_t)next + 1);
	TS_CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
	TS_CHECK_INT(ts_procfs_file_read(&file, AT_FDCWD, &text), 0);
	TS_CHECK_INT(file.fd, next);
	ts_procfs_file_close(&file);
	limit.rlim_cur -= 4;
	TS_CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
	TS_CHECK_INT(ts_procfs_file_read(&file, AT_FDCWD, &text), 0);
	TS_CHECK(text.length > 0);
	TS_CHECK_INT(file.fd, -1);
	ts_text_release(&text);
}

TS_TEST(files_of_one_number)
{
	char path[] = "/tmp/tracesmith-test-XXXXXX", line[32];
	int fd = mkstemp(path);
	int64_t number = 5;

	TS_CHECK(fd >= 0);
	TS_CHECK(!ts_procfs_read_number(AT_FDCWD, path, &number));
	TS_CHECK(write(fd, "-12 x\n", 6) == 6);
	TS_CHECK(!ts_procfs_read_number(AT_FDCWD, path, &number));
	TS_CHECK_INT(ts_procfs_read_line(AT_FDCWD, path, line, sizeof(line)), 5);
	TS_CHECK_STR(line, "-12 x");
	TS_CHECK_INT(ts_procfs_read_line(AT_FDCWD, path, line, 3), 2);
	TS_CHECK_STR(line, "-1");
	TS_CHECK(pwrite(fd, "-1234\n", 6, 0) == 6);
	TS_CHECK(ts_procfs_read_number(AT_FDCWD, path, &number));
	TS_CHECK_INT(number, -1234);
	close(fd);
	unlink(path);
	TS_CHECK(ts_procfs_read_line(AT_FDCWD, path, line, sizeof(line)) < 0);
}

/* ---- rates ---- */

TS_TEST(rates_of_counters)
{
	struct ts_rate rate = { 0 };
	double per_second = -1;

	TS_CHECK(!ts_rate_next(&rate, NONE, 0, &per_second));
	TS_CHECK(!ts_rate_next(&rate, 100, 1000000000, &per_second));
	TS_CHECK(ts_rate_next(&rate, 150, 1500000000, &per_second));
	TS_CHECK(per_second == 100);
	/* If a sample has no value, the next one covers both intervals. */
	TS_CHECK(!ts_rate_next(&rate, NONE, 2000000000, &per_second));
	TS_CHECK(ts_rate_next(&rate, 170, 2500000000, &per_second));
	TS_CHECK(per_second == 20);
	/* It restarts, and continues from there. */
	TS_CHECK(!ts_rate_next(&rate, 10, 3500000000, &per_second));
	TS_CHECK(ts_rate_next(&rate, 13, 4500000000, &per_second));
	TS_CHECK(per_second == 3);
	TS_CHECK(!ts_rate_next(&rate, 14, 4500000000, &per_second));
	TS_CHECK(!ts_rate_next(&rate, 15, 4400000000, &per_second));
}

/* ---- sums ---- */

static enum ts_io_device_kind classify(const char *name)
{
	if (name[0] == 'l')
		return TS_IO_DEVICE_IGNORED;
	return name[0] == 'e' ? TS_IO_DEVICE_PHYSICAL : TS_IO_DEVICE_VIRTUAL;
}

/* Lines "name: in out". */
static bool next_carrier(const char **cursor, struct ts_procfs_traffic *ret_traffic)
{
	uint64_t values[2];

	if (!*cursor)
		return false;
	ret_traffic->name = *cursor;
	ret_traffic->name_length = strcspn(*cursor, ":");
	ts_procfs_scan_numbers(*cursor + ret_traffic->name_length + 1, values, 2);
	ret_traffic->in = values[0];
	ret_traffic->out = values[1];
	*cursor = ts_procfs_next_line(*cursor);
	return true;
}

static bool sum(struct ts_io_totals *traffic, int at, const char *text, double *ret_in,
		double *ret_out)
{
	return ts_io_totals_next(traffic, text, at * INT64_C(1000000000), ret_in, ret_out);
}

TS_TEST(carriers_come_and_go)
{
	static const struct ts_io_totals_kind kind = { .classify = classify, .next = next_carrier };
	struct ts_io_totals traffic = { .kind = &kind };
	double in, out;

	TS_CHECK(!sum(&traffic, 1, "lo: 5 5\nbr0: 10 10\n", &in, &out));
	/* Without real ones, the others count. */
	TS_CHECK(sum(&traffic, 2, "lo: 50 50\nbr0: 20 30\n", &in, &out));
	TS_CHECK(in == 10 && out == 20);
	/* A new one already has a total: that does not count. */
	TS_CHECK(sum(&traffic, 3, "br0: 21 31\neth0: 1000 1000\n", &in, &out));
	TS_CHECK(in == 1 && out == 1);
	/* Now it counts, from the next round on. */
	TS_CHECK(!sum(&traffic, 4, "br0: 30 31\neth0: 1000 1000\n", &in, &out));
	TS_CHECK(sum(&traffic, 6, "br0: 99 99\neth0: 1100 1010\neth1: 7 7\n", &in, &out));
	TS_CHECK(in == 50 && out == 5);
	/* One disappears, and returns with less. */
	TS_CHECK(sum(&traffic, 7, "br0: 99 99\neth1: 8 9\n", &in, &out));
	TS_CHECK(in == 1 && out == 2);
	TS_CHECK(sum(&traffic, 8, "br0: 99 99\neth1: 8 9\neth0: 1 1\n", &in, &out));
	TS_CHECK(in == 0 && out == 0);
	/* A counter that decreases. */
	TS_CHECK(!sum(&traffic, 9, "br0: 99 99\neth1: 8 8\neth0: 5 5\n", &in, &out));
	TS_CHECK(sum(&traffic, 10, "br0: 99 99\neth1: 8 8\neth0: 6 7\n", &in, &out));
	TS_CHECK(in == 1 && out == 2);
	/* A duplicate counts once. */
	TS_CHECK(sum(&traffic, 11, "eth1: 9 9\neth1: 50 50\neth2: 1 1\neth2: 9 9\n", &in, &out));
	TS_CHECK(in == 1 && out == 1);
	ts_io_totals_release(&traffic);
}

/* Descriptors of files with the same contents as the text, until one disappears. */
TS_TEST(few_are_read_by_shortcuts)
{
	char folder[] = "/tmp/tracesmith-test-XXXXXX", path[64];
	struct ts_io_totals_kind kind = { .classify = classify,
					  .next = next_carrier,
					  .folder = mkdtemp(folder),
					  .file = "../numbers",
					  .in_field = 1,
					  .out_field = 2 };
	struct ts_io_totals traffic = { .kind = &kind };
	struct ts_text buffer = { 0 };
	double in, out;
	FILE *file;

	TS_CHECK(kind.folder != NULL);
	snprintf(path, sizeof(path), "%s/e!0", folder);
	TS_CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/numbers", folder);
	file = fopen(path, "we");
	TS_CHECK(file != NULL && fputs("7 120 240 7\n", file) > 0 && fclose(file) == 0);

	TS_CHECK(!ts_io_totals_next(&traffic, "e/0: 100 200\nv0: 5 5\n", 1000000000, &in, &out));
	TS_CHECK_INT(traffic.shortcut_count, 1);
	TS_CHECK(ts_io_totals_next_short(&traffic, &buffer, 1500000000, &in, &out));
	TS_CHECK(in == 40 && out == 80);
	/* The virtual one was not read, and a long interval does not count at once. */
	TS_CHECK(ts_io_totals_next(&traffic, "e/0: 121 241\nv0: 99 99\n", 2000000000, &in, &out));
	TS_CHECK(in == 2 && out == 2);
	TS_CHECK(!ts_io_totals_next(&traffic, "v0: 100 100\n", 2500000000, &in, &out));
	TS_CHECK_INT(traffic.shortcut_count, 0);
	TS_CHECK(!ts_io_totals_next(&traffic, "e/0: 1 1\n", 3000000000, &in, &out));
	TS_CHECK_INT(unlink(path), 0);
	TS_CHECK(!ts_io_totals_next_short(&traffic, &buffer, 3500000000, &in, &out));
	TS_CHECK_INT(traffic.shortcut_count, 0);
	snprintf(path, sizeof(path), "%s/e!0", folder);
	TS_CHECK(rmdir(path) == 0 && rmdir(folder) == 0);
	ts_text_release(&buffer);
	ts_io_totals_release(&traffic);
}

TS_TEST(many_have_no_shortcuts)
{
	static const struct ts_io_totals_kind kind = {
		.classify = classify, .next = next_carrier, .folder = "/nowhere", .file = "x"
	};
	struct ts_io_totals traffic = { .kind = &kind };
	double in, out;

	TS_CHECK(!sum(&traffic, 1, "e0: 1 1\ne1: 1 1\ne2: 1 1\n", &in, &out));
	TS_CHECK_INT(traffic.shortcut_count, 3);
	TS_CHECK(sum(&traffic, 2, "e0: 1 1\ne1: 1 1\ne2: 1 1\ne3: 1 1\n", &in, &out));
	TS_CHECK_INT(traffic.shortcut_count, 0);
	ts_io_totals_release(&traffic);
}

TS_TEST(what_counts_here)
{
	TS_CHECK_INT(ts_io_totals_network.classify("lo"), TS_IO_DEVICE_IGNORED);
	TS_CHECK_INT(ts_io_totals_network.classify("no-such-one"), TS_IO_DEVICE_VIRTUAL);
	TS_CHECK_INT(ts_io_totals_disks.classify("loop0"), TS_IO_DEVICE_IGNORED);
	TS_CHECK_INT(ts_io_totals_disks.classify("dm-3"), TS_IO_DEVICE_IGNORED);
}
