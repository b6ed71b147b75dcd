/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the machine, compared with readings of the test right before and right after each
 * sample: a difference of two samples lies between the minimum and maximum that these allow. Times
 * are fake, a second apart.
 */
#include "sample/metrics/host/host_metrics.h"

#include <math.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "unit/sample/metrics/host/host_support.h"

/* ---- differences ---- */

/* A counter around two samples. */
struct bracket {
	uint64_t before[2], after[2];
};

static void check_bracket(const char *what, const struct bracket *bracket, double difference)
{
	check_between(what, (double)(int64_t)(bracket->before[1] - bracket->after[0]) - 0.5,
		      difference, (double)(int64_t)(bracket->after[1] - bracket->before[0]) + 0.5);
}

/* Two samples around `act`; `read_all` reads the counters. */
static void sample_after(int64_t interval_ns, struct taken *ret_taken, struct bracket *brackets,
			 size_t count, void (*read_all)(uint64_t *ret_values), void (*act)(void))
{
	struct ts_system_metrics *metrics;
	uint64_t values[16];

	TS_CHECK_INT(ts_system_metrics_open(&metrics, NULL), 0);
	for (int round = 0; round < 2; round++) {
		read_all(values);
		for (size_t i = 0; i < count; i++)
			brackets[i].before[round] = values[i];
		taken_init(ret_taken);
		ts_system_metrics_sample(metrics, SECOND_NS + round * interval_ns,
					 &ret_taken->sink);
		read_all(values);
		for (size_t i = 0; i < count; i++)
			brackets[i].after[round] = values[i];
		if (round == 0 && act)
			act();
	}
	ts_system_metrics_close(metrics);
}

static void sample_twice(struct taken *ret_taken, struct bracket *brackets, size_t count,
			 void (*read_all)(uint64_t *ret_values), void (*act)(void))
{
	sample_after(SECOND_NS, ret_taken, brackets, count, read_all, act);
}

static void burn_and_sleep(void)
{
	worker_burn(200 * SECOND_NS / 1000);
	usleep(50000);
}

/* ---- /proc/stat ---- */

enum { USER, SYSTEM, IOWAIT, STEAL, TOTAL, SWITCHES, STAT_VALUES };

static void read_stat(uint64_t *ret_values)
{
	FILE *file = fopen("/proc/stat", "re");
	uint64_t t[8];

	TS_CHECK_INT(numbers_behind(file, "cpu ", t, 8), 8);
	fclose(file);
	ret_values[USER] = t[0] + t[1];
	ret_values[SYSTEM] = t[2] + t[5] + t[6];
	ret_values[IOWAIT] = t[4];
	ret_values[STEAL] = t[7];
	ret_values[TOTAL] = t[0] + t[1] + t[2] + t[3] + t[4] + t[5] + t[6] + t[7];
	ret_values[SWITCHES] = number_in("/proc/stat", "ctxt");
}

/* iowait and idle ticks can decrease slightly: 1 %. */
static void check_share(const struct taken *taken, const char *series, const struct bracket *part,
			const struct bracket *total)
{
	double least = (double)(int64_t)(part->before[1] - part->after[0]);
	double most = (double)(int64_t)(part->after[1] - part->before[0]);

	check_between(series, 100 * least / (double)(total->after[1] - total->before[0]) - 1,
		      taken_value(taken, "cpu_percent", series),
		      100 * most / (double)(total->before[1] - total->after[0]) + 1);
}

TS_TEST(cpu_is_that_of_proc_stat)
{
	struct bracket brackets[STAT_VALUES];
	struct taken taken;

	sample_twice(&taken, brackets, STAT_VALUES, read_stat, burn_and_sleep);
	check_share(&taken, "user", &brackets[USER], &brackets[TOTAL]);
	check_share(&taken, "system", &brackets[SYSTEM], &brackets[TOTAL]);
	check_share(&taken, "iowait", &brackets[IOWAIT], &brackets[TOTAL]);
	check_share(&taken, "steal", &brackets[STEAL], &brackets[TOTAL]);
	TS_CHECK(taken_value(&taken, "cpu_percent", "user") > 0);
	check_bracket("context switches", &brackets[SWITCHES],
		      taken_value(&taken, "context_switches_per_s", "all"));
	/* This test itself runs. */
	TS_CHECK(taken_value(&taken, "tasks", "running") >= 1);
	TS_CHECK(taken_value(&taken, "tasks", "blocked") >= 0);
}

TS_TEST(the_first_sample_has_no_rates)
{
	struct ts_system_metrics *metrics;
	struct taken taken;

	taken_init(&taken);
	TS_CHECK_INT(ts_system_metrics_open(&metrics, NULL), 0);
	ts_system_metrics_sample(metrics, SECOND_NS, &taken.sink);
	TS_CHECK(taken_find(&taken, "cpu_percent", NULL) == NULL);
	TS_CHECK(taken_find(&taken, "context_switches_per_s", NULL) == NULL);
	TS_CHECK(taken_find(&taken, "network_bytes_per_s", NULL) == NULL);
	TS_CHECK(taken_find(&taken, "disk_bytes_per_s", NULL) == NULL);
	TS_CHECK(taken_find(&taken, "pressure_percent", NULL) == NULL);
	TS_CHECK(taken_find(&taken, "memory_bytes", "available") != NULL);
	for (size_t i = 0; i < taken.count; i++)
		TS_CHECK_INT(taken.values[i].subject.kind, TS_METRICS_SYSTEM);
	ts_system_metrics_close(metrics);
}

/* ---- memory ---- */

enum { AVAILABLE, MEMORY_TOTAL, SWAP_USED, MEMORY_VALUES };

static void read_meminfo(uint64_t *ret_values)
{
	ret_values[AVAILABLE] = number_in("/proc/meminfo", "MemAvailable:") * 1024;
	ret_values[MEMORY_TOTAL] = number_in("/proc/meminfo", "MemTotal:") * 1024;
	ret_values[SWAP_USED] = (number_in("/proc/meminfo", "SwapTotal:") -
				 number_in("/proc/meminfo", "SwapFree:")) *
				1024;
}

/* A level between two readings, with a tolerance for changes by others. */
static void check_level(const char *what, uint64_t first, uint64_t second, double level,
			double tolerance)
{
	check_between(what, (double)TS_MIN(first, second) - tolerance, level,
		      (double)TS_MAX(first, second) + tolerance);
}

TS_TEST(memory_is_that_of_meminfo)
{
	struct bracket brackets[MEMORY_VALUES];
	struct taken taken;

	sample_twice(&taken, brackets, MEMORY_VALUES, read_meminfo, NULL);
	check_level("available", brackets[AVAILABLE].before[1], brackets[AVAILABLE].after[1],
		    taken_value(&taken, "memory_bytes", "available"), 128 << 20);
	TS_CHECK_INT(taken_value(&taken, "memory_bytes", "available") +
			     taken_value(&taken, "memory_bytes", "used"),
		     brackets[MEMORY_TOTAL].after[1]);
	if (number_in("/proc/meminfo", "SwapTotal:") == 0)
		TS_CHECK(taken_find(&taken, "swap_bytes", NULL) == NULL);
	else
		check_level("swap", brackets[SWAP_USED].before[1], brackets[SWAP_USED].after[1],
			    taken_value(&taken, "swap_bytes", "used"), 128 << 20);
}

/* total used free shared buff/cache available */
static bool read_free(uint64_t *ret_total, uint64_t *ret_available)
{
	FILE *file = popen("LC_ALL=C free -b 2>/dev/null", "re");
	uint64_t values[6] = { 0 };
	bool is_present = numbers_behind(file, "Mem:", values, 6) == 6;

	pclose(file);
	*ret_total = values[0];
	*ret_available = values[5];
	return is_present;
}

TS_TEST(memory_is_that_of_free)
{
	uint64_t total, available[2];
	struct ts_system_metrics *metrics;
	struct taken taken;

	taken_init(&taken);
	TS_CHECK_INT(ts_system_metrics_open(&metrics, NULL), 0);
	if (!read_free(&total, &available[0]))
		ts_test_skip("there is no free that knows -b");
	ts_system_metrics_sample(metrics, SECOND_NS, &taken.sink);
	TS_CHECK(read_free(&total, &available[1]));
	check_level("available", available[0], available[1],
		    taken_value(&taken, "memory_bytes", "available"), 512 << 20);
	TS_CHECK_INT(taken_value(&taken, "memory_bytes", "available") +
			     taken_value(&taken, "memory_bytes", "used"),
		     total);
	ts_system_metrics_close(metrics);
}

/* ---- network and disks ---- */

enum { IN, OUT, TRAFFIC_VALUES };

/* Sums over all real devices in /sys; false if there is none. */
static bool sum_sysfs(const char *command, uint64_t *ret_values)
{
	FILE *file = popen(command, "re");
	uint64_t values[TRAFFIC_VALUES];
	bool is_present = false;

	ret_values[IN] = ret_values[OUT] = 0;
	while (numbers_behind(file, "", values, TRAFFIC_VALUES) == TRAFFIC_VALUES) {
		ret_values[IN] += values[IN];
		ret_values[OUT] += values[OUT];
		is_present = true;
	}
	pclose(file);
	return is_present;
}

static void read_interfaces(uint64_t *ret_values)
{
	if (!sum_sysfs(
		    "cd /sys/class/net && for i in *; do [ -e $i/device ] && "
		    "echo $(cat $i/statistics/rx_bytes $i/statistics/tx_bytes); done 2>/dev/null",
		    ret_values))
		ts_test_skip("there is no network device");
}

TS_TEST(network_is_that_of_the_devices)
{
	struct bracket brackets[TRAFFIC_VALUES];
	struct taken taken;

	sample_twice(&taken, brackets, TRAFFIC_VALUES, read_interfaces, NULL);
	check_bracket("received", &brackets[IN],
		      taken_value(&taken, "network_bytes_per_s", "received"));
	check_bracket("sent", &brackets[OUT], taken_value(&taken, "network_bytes_per_s", "sent"));
}

static void read_disks(uint64_t *ret_values)
{
	if (!sum_sysfs("cd /sys/block && for i in *; do case $i in "
		       "loop*|ram*|zram*|dm-*|md*|nbd*|sr*|fd*|nvme*c*n*) continue;; esac; "
		       "[ -e $i/device ] && awk '{ print $3, $7 }' $i/stat; done 2>/dev/null",
		       ret_values))
		ts_test_skip("there is no disk");
	ret_values[IN] *= 512;
	ret_values[OUT] *= 512;
}

/* If this is not a disk, nothing is written to one, and the test is weaker. */
static void write_to_disk(void)
{
	static char bytes[1 << 20];
	char path[] = "metrics-host-XXXXXX";
	int fd = mkstemp(path);

	TS_CHECK(fd >= 0);
	unlink(path);
	memset(bytes, 'x', sizeof(bytes));
	TS_CHECK(write(fd, bytes, sizeof(bytes)) == sizeof(bytes));
	fsync(fd);
	close(fd);
}

/* The second sample reads all disks after a second, but only the counted ones before. */
TS_TEST(disks_are_those_of_sysfs)
{
	struct bracket brackets[TRAFFIC_VALUES];
	struct taken taken;

	for (int parts = 1; parts <= 10; parts += 9) {
		sample_after(SECOND_NS / parts, &taken, brackets, TRAFFIC_VALUES, read_disks,
			     write_to_disk);
		check_bracket("read", &brackets[IN],
			      taken_value(&taken, "disk_bytes_per_s", "read") / parts);
		check_bracket("written", &brackets[OUT],
			      taken_value(&taken, "disk_bytes_per_s", "written") / parts);
	}
}

/* ---- pressure ---- */

enum { CPU, MEMORY, IO, MEMORY_FULL, IO_FULL, PRESSURE_VALUES };

static uint64_t total_in(const char *path, const char *kind)
{
	FILE *file = fopen(path, "re");
	uint64_t total;
	char line[256];
	bool is_found = false;

	if (!file)
		ts_test_skip("this kernel has no pressure");
	while (!is_found && fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, "total=");

		is_found = at && strncmp(line, kind, 4) == 0 &&
			   numbers_of(at + strlen("total="), &total, 1) == 1;
	}
	fclose(file);
	if (!is_found)
		ts_test_skip("pressure is switched off in this kernel");
	return total;
}

static void read_pressure(uint64_t *ret_values)
{
	ret_values[CPU] = total_in("/proc/pressure/cpu", "some");
	ret_values[MEMORY] = total_in("/proc/pressure/memory", "some");
	ret_values[IO] = total_in("/proc/pressure/io", "some");
	ret_values[MEMORY_FULL] = total_in("/proc/pressure/memory", "full");
	ret_values[IO_FULL] = total_in("/proc/pressure/io", "full");
}

/* Percent of the fake second: 10,000 us each. */
TS_TEST(pressure_is_that_of_proc_pressure)
{
	struct bracket brackets[PRESSURE_VALUES];
	struct taken taken;

	sample_twice(&taken, brackets, PRESSURE_VALUES, read_pressure, burn_and_sleep);
	check_bracket("cpu", &brackets[CPU], taken_value(&taken, "pressure_percent", "cpu") * 1e4);
	check_bracket("memory", &brackets[MEMORY],
		      taken_value(&taken, "pressure_percent", "memory") * 1e4);
	check_bracket("io", &brackets[IO], taken_value(&taken, "pressure_percent", "io") * 1e4);
	check_bracket("memory, full", &brackets[MEMORY_FULL],
		      taken_value(&taken, "pressure_full_percent", "memory") * 1e4);
	check_bracket("io, full", &brackets[IO_FULL],
		      taken_value(&taken, "pressure_full_percent", "io") * 1e4);
	TS_CHECK(taken_find(&taken, "pressure_full_percent", "cpu") == NULL);
}

/* ---- optional values ---- */

enum { FAULTS, MAJOR, SWAPPED_IN, SWAPPED_OUT, VMSTAT_VALUES };

static void read_vmstat(uint64_t *ret_values)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	ret_values[FAULTS] = number_in("/proc/vmstat", "pgfault ");
	ret_values[MAJOR] = number_in("/proc/vmstat", "pgmajfault ");
	ret_values[SWAPPED_IN] = number_in("/proc/vmstat", "pswpin ") * page;
	ret_values[SWAPPED_OUT] = number_in("/proc/vmstat", "pswpout ") * page;
}

TS_TEST(faults_are_those_of_vmstat)
{
	struct bracket brackets[VMSTAT_VALUES];
	struct taken taken;

	sample_twice(&taken, brackets, VMSTAT_VALUES, read_vmstat, worker_touch);
	check_bracket("all faults", &brackets[FAULTS],
		      taken_value(&taken, "faults_per_s", "minor") +
			      taken_value(&taken, "faults_per_s", "major"));
	check_bracket("major faults", &brackets[MAJOR],
		      taken_value(&taken, "faults_per_s", "major"));
	check_bracket("swapped in", &brackets[SWAPPED_IN],
		      taken_value(&taken, "swap_bytes_per_s", "in"));
	check_bracket("swapped out", &brackets[SWAPPED_OUT],
		      taken_value(&taken, "swap_bytes_per_s", "out"));
	TS_CHECK(taken_value(&taken, "faults_per_s", "minor") > 0);
}

/* ---- a fake machine ---- */

/* Hides the real one from this process. */
static void hide_machine(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/proc", "tmpfs", 0, NULL) || mount("tmpfs", "/sys", "tmpfs", 0, NULL))
		ts_test_skip("nothing can be mounted over /proc here");
}

/* In place: descriptors that are open see the new text. */
static void put(const char *path, const char *text)
{
	char folder[128];
	int fd;

	for (const char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		mkdir(folder, 0700);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	TS_CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void put_first(void)
{
	put("/sys/class/net/eth0/device", "");
	put("/sys/block/sda/device", "");
	put("/sys/block/sdb/device", "");
	put("/proc/stat", "cpu 1000 100 500 8000 200 10 20 30 40 50\nctxt 1000\n"
			  "procs_running 3\nprocs_blocked 1\n");
	put("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 100 kB\n"
			     "SwapFree: 70 kB\n");
	put("/proc/net/dev", " lo: 5 0 0 0 0 0 0 0 6 0\neth0: 1000 0 0 0 0 0 0 0 2000 0\n"
			     "docker0: 900 0 0 0 0 0 0 0 800 0\n");
	put("/proc/diskstats", "8 0 sda 1 1 100 1 1 1 200 1\n8 1 sda1 1 1 100 1 1 1 200 1\n"
			       "8 16 sdb 1 1 10 1 1 1 20 1\n253 0 dm-0 1 1 100 1 1 1 200 1\n");
	put("/proc/pressure/cpu", "some avg10=0.00 total=1000000\nfull avg10=0.00 total=0\n");
	put("/proc/pressure/memory", "some avg10=0.00 total=2000\nfull avg10=0.00 total=1000\n");
	put("/proc/pressure/io", "some avg10=0.00 total=5000\nfull avg10=0.00 total=4000\n");
	put("/proc/vmstat", "pgfault 5000\npgmajfault 1000\npswpin 10\npswpout 20\n");
}

/* A second later. */
static void put_second(void)
{
	put("/proc/stat", "cpu 1030 110 515 8120 215 11 22 37 41 51\nctxt 1500\n"
			  "procs_running 4\nprocs_blocked 0\n");
	put("/proc/net/dev", " lo: 50 0 0 0 0 0 0 0 60 0\neth0: 1300 0 0 0 0 0 0 0 2400 0\n"
			     "docker0: 990 0 0 0 0 0 0 0 890 0\n");
	put("/proc/diskstats", "8 0 sda 1 1 102 1 1 1 204 1\n8 1 sda1 1 1 102 1 1 1 204 1\n"
			       "8 16 sdb 1 1 13 1 1 1 30 1\n253 0 dm-0 1 1 102 1 1 1 204 1\n");
	put("/proc/pressure/cpu", "some avg10=0.00 total=1250000\nfull avg10=0.00 total=0\n");
	put("/proc/pressure/memory", "some avg10=0.00 total=12000\nfull avg10=0.00 total=6000\n");
	put("/proc/pressure/io", "some avg10=0.00 total=25000\nfull avg10=0.00 total=14000\n");
	put("/proc/vmstat", "pgfault 5070\npgmajfault 1020\npswpin 12\npswpout 25\n");
}

/* Rounded to hundredths, so that differences of doubles do not matter. */
static void check_values(const struct taken *taken, const struct taken_value *expected,
			 size_t count)
{
	for (size_t i = 0; i < count; i++)
		TS_CHECK_INT(
			llround(taken_value(taken, expected[i].name, expected[i].series) * 100),
			llround(expected[i].value * 100));
	TS_CHECK_INT(taken->count, count);
}

static void check_synthetic(void *argument)
{
	double page = (double)sysconf(_SC_PAGESIZE);
	const struct taken_value expected[] = {
		/* Of 200 ticks. */
		{ .name = "cpu_percent", .series = "user", .value = 20 },
		{ .name = "cpu_percent", .series = "system", .value = 9 },
		{ .name = "cpu_percent", .series = "iowait", .value = 7.5 },
		{ .name = "cpu_percent", .series = "steal", .value = 3.5 },
		{ .name = "context_switches_per_s", .series = "all", .value = 500 },
		{ .name = "tasks", .series = "running", .value = 4 },
		{ .name = "tasks", .series = "blocked", .value = 0 },
		{ .name = "memory_bytes", .series = "used", .value = 600 * 1024 },
		{ .name = "memory_bytes", .series = "available", .value = 400 * 1024 },
		{ .name = "swap_bytes", .series = "used", .value = 30 * 1024 },
		{ .name = "network_bytes_per_s", .series = "received", .value = 300 },
		{ .name = "network_bytes_per_s", .series = "sent", .value = 400 },
		{ .name = "disk_bytes_per_s", .series = "read", .value = 5 * 512 },
		{ .name = "disk_bytes_per_s", .series = "written", .value = 14 * 512 },
		{ .name = "pressure_percent", .series = "cpu", .value = 25 },
		{ .name = "pressure_percent", .series = "memory", .value = 1 },
		{ .name = "pressure_percent", .series = "io", .value = 2 },
		{ .name = "pressure_full_percent", .series = "memory", .value = 0.5 },
		{ .name = "pressure_full_percent", .series = "io", .value = 1 },
		{ .name = "faults_per_s", .series = "minor", .value = 50 },
		{ .name = "faults_per_s", .series = "major", .value = 20 },
		{ .name = "swap_bytes_per_s", .series = "in", .value = 2 * page },
		{ .name = "swap_bytes_per_s", .series = "out", .value = 5 * page },
	};
	struct ts_system_metrics *metrics;
	struct taken taken;

	hide_machine();
	TS_CHECK_INT(ts_system_metrics_open(&metrics, NULL), 0);
	put_first();
	taken_init(&taken);
	ts_system_metrics_sample(metrics, SECOND_NS, &taken.sink);
	TS_CHECK_INT(taken.count, 5); /* levels */
	put_second();
	taken_init(&taken);
	ts_system_metrics_sample(metrics, 2 * SECOND_NS, &taken.sink);
	TS_CHECK_INT(taken.messages, 0);
	check_values(&taken, expected, TS_ARRAY_SIZE(expected));

	/* All counters restart: only levels are left. */
	put_first();
	taken_init(&taken);
	ts_system_metrics_sample(metrics, 3 * SECOND_NS, &taken.sink);
	TS_CHECK_INT(taken.count, 5);
	ts_system_metrics_close(metrics);
}

TS_TEST(values_of_a_machine_that_is_made_up)
{
	if (getuid() != 0)
		ts_test_skip("only root can mount");
	run_apart(check_synthetic, NULL);
}

/* An old kernel, where idle time decreases slightly. */
static void check_old_kernel(void *argument)
{
	struct ts_system_metrics *metrics;
	struct taken taken;

	hide_machine();
	TS_CHECK_INT(ts_system_metrics_open(&metrics, NULL), 0);
	put("/proc/stat", "cpu 100 0 50 1000\n");
	put("/proc/meminfo",
	    "MemTotal: 1000 kB\nMemFree: 300 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
	taken_init(&taken);
	ts_system_metrics_sample(metrics, SECOND_NS, &taken.sink);
	TS_CHECK_INT(taken.count, 0);
	TS_CHECK_INT(taken.messages, 6);
	put("/proc/stat", "cpu 130 0 60 999\n");
	ts_system_metrics_sample(metrics, 2 * SECOND_NS, &taken.sink);
	check_between("user", 75, taken_value(&taken, "cpu_percent", "user"), 75);
	check_between("system", 25, taken_value(&taken, "cpu_percent", "system"), 25);
	TS_CHECK_INT(taken.count, 2);
	TS_CHECK_INT(taken.messages, 6);
	ts_system_metrics_close(metrics);
}

TS_TEST(values_that_an_old_kernel_lacks_are_absent)
{
	if (getuid() != 0)
		ts_test_skip("only root can mount");
	run_apart(check_old_kernel, NULL);
}

/* ---- without /proc ---- */

static void check_without_proc(void *argument)
{
	struct ts_system_metrics *metrics;
	struct ts_process_metrics *process;
	struct taken taken;
	struct ts_error err;

	hide_machine();
	taken_init(&taken);
	TS_CHECK_INT(ts_system_metrics_open(&metrics, NULL), 0);
	for (int i = 1; i <= 3; i++)
		ts_system_metrics_sample(metrics, i * SECOND_NS, &taken.sink);
	TS_CHECK_INT(taken.count, 0);
	TS_CHECK_INT(taken.messages, 8); /* once for each file */
	ts_system_metrics_close(metrics);
	TS_CHECK_INT(ts_process_metrics_open(&process, getpid(), 0, &err), TS_ECAP);
}

TS_TEST(without_proc_nothing_is_given)
{
	if (getuid() != 0)
		ts_test_skip("only root can mount");
	run_apart(check_without_proc, NULL);
}
