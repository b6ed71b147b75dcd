/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of processes, compared with their own accounts and with ps. A worker waits for orders
 * while it is sampled, so both see the same state. Rates use fake times, a second apart, so a rate
 * is the difference.
 */
#include "sample/metrics/host/host_metrics.h"

#include <linux/sched.h>
#include <math.h>
#include <sys/mount.h>

#include "base/clock.h"
#include "base/process.h"
#include "sample/metrics/host/taskstats.h"
#include "unit/sample/metrics/host/host_support.h"

#define NOBODY 65534

struct sampled {
	struct worker worker;
	struct ts_process_metrics *metrics;
	struct taken taken;
	int64_t now_ns;
};

static void start(struct sampled *sampled)
{
	struct ts_error err;

	*sampled = (struct sampled){ .now_ns = SECOND_NS };
	worker_start(&sampled->worker);
	if (ts_process_metrics_open(&sampled->metrics, sampled->worker.pid, 0, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
}

static void stop(struct sampled *sampled)
{
	ts_process_metrics_close(sampled->metrics);
	worker_stop(&sampled->worker);
}

/* A second after the last one. */
static void sample(struct sampled *sampled)
{
	taken_init(&sampled->taken);
	TS_CHECK(
		ts_process_metrics_sample(sampled->metrics, sampled->now_ns, &sampled->taken.sink));
	sampled->now_ns += SECOND_NS;
}

/* What an order changed, by the worker's own account. */
static void sample_around(struct sampled *sampled, enum order order, struct account *ret_change)
{
	struct account before, after;

	worker_order(&sampled->worker, 0, &before);
	sample(sampled);
	worker_order(&sampled->worker, order, &after);
	sample(sampled);
	*ret_change = (struct account){
		.cpu_ns = after.cpu_ns - before.cpu_ns,
		.children_cpu_ns = after.children_cpu_ns - before.children_cpu_ns,
		.voluntary = after.voluntary - before.voluntary,
		.involuntary = after.involuntary - before.involuntary,
		.minor_faults = after.minor_faults - before.minor_faults,
	};
}

static double got(const struct sampled *sampled, const char *name, const char *series)
{
	return taken_value(&sampled->taken, name, series);
}

/* ---- CPU ---- */

/* Within 20 ms of CPU: two ticks of the slowest kernels, while it goes to sleep. */
TS_TEST(cpu_is_what_the_process_counts)
{
	const double tolerance_ns = 20e6;
	struct sampled sampled;
	struct account before, after;
	int64_t times[4];
	double percent;

	start(&sampled);
	worker_order(&sampled.worker, 0, &before);
	times[0] = ts_clock_monotonic_ns();
	sample(&sampled);
	times[1] = ts_clock_monotonic_ns();
	TS_CHECK(taken_find(&sampled.taken, "cpu_percent", NULL) == NULL);
	worker_order(&sampled.worker, BURN, &after);
	times[2] = ts_clock_monotonic_ns();
	sample(&sampled);
	times[3] = ts_clock_monotonic_ns();

	/* The clocks are read somewhere within each call. */
	percent = got(&sampled, "cpu_percent", "all");
	check_between("CPU", percent / 100 * (double)(times[2] - times[1]) - tolerance_ns,
		      (double)(after.cpu_ns - before.cpu_ns),
		      percent / 100 * (double)(times[3] - times[0]) + tolerance_ns);
	TS_CHECK(after.cpu_ns - before.cpu_ns >= 300000000);
	stop(&sampled);
}

/* Both modes are rounded down to 10 ms each. */
TS_TEST(modes_are_the_whole)
{
	struct sampled sampled;
	struct account change;
	double percent;

	start(&sampled);
	sample_around(&sampled, BURN, &change);
	percent = got(&sampled, "cpu_mode_percent", "user") +
		  got(&sampled, "cpu_mode_percent", "system");
	check_between("modes", (double)change.cpu_ns / 1e7 - 4, percent,
		      (double)change.cpu_ns / 1e7 + 4);
	check_between("of children", 0, got(&sampled, "children_cpu_percent", "ended"), 0);
	stop(&sampled);
}

TS_TEST(children_count_when_they_have_ended)
{
	struct sampled sampled;
	struct account change;

	start(&sampled);
	sample_around(&sampled, CHILD, &change);
	TS_CHECK(change.children_cpu_ns >= 190000000);
	check_between("of children", (double)change.children_cpu_ns / 1e7 - 4,
		      got(&sampled, "children_cpu_percent", "ended"),
		      (double)change.children_cpu_ns / 1e7 + 4);
	stop(&sampled);
}

/* ---- memory, threads, faults ---- */

/* The resident pages of a sleeping process change only if the kernel reclaims them. */
TS_TEST(memory_is_that_of_status)
{
	struct sampled sampled;
	char path[64];

	start(&sampled);
	worker_order(&sampled.worker, TOUCH, NULL);
	sample(&sampled);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)sampled.worker.pid);
	TS_CHECK_INT(got(&sampled, "memory_bytes", "vms"), number_in(path, "VmSize:") * 1024);
	check_between("rss", (double)number_in(path, "VmRSS:") * 1024 - 1048576,
		      got(&sampled, "memory_bytes", "rss"),
		      (double)number_in(path, "VmRSS:") * 1024 + 1048576);
	check_between("shared",
		      (double)(number_in(path, "RssFile:") + number_in(path, "RssShmem:")) * 1024 -
			      1048576,
		      got(&sampled, "memory_bytes", "shared"),
		      (double)(number_in(path, "RssFile:") + number_in(path, "RssShmem:")) * 1024 +
			      1048576);
	stop(&sampled);
}

/*
 * On some kernels ps counts resident pages less exactly: up to 64 pages per thread, or a batch per
 * CPU.
 */
TS_TEST(memory_and_threads_are_those_of_ps)
{
	struct sampled sampled;
	uint64_t values[3] = { 0 };
	double rss;
	char command[64];
	size_t fields;
	FILE *ps;

	start(&sampled);
	worker_order(&sampled.worker, THREADS, NULL);
	sample(&sampled);
	snprintf(command, sizeof(command), "ps -o rss=,vsz=,nlwp= -p %d 2>/dev/null",
		 (int)sampled.worker.pid);
	ps = popen(command, "re");
	fields = numbers_behind(ps, "", values, 3);
	pclose(ps);
	if (fields != 3)
		ts_test_skip("there is no ps that knows rss, vsz and nlwp");
	TS_CHECK_INT(got(&sampled, "memory_bytes", "vms"), values[1] * 1024);
	TS_CHECK_INT(got(&sampled, "threads", "count"), values[2]);
	rss = (double)values[0] * 1024;
	check_between("rss", rss - (8 << 20), got(&sampled, "memory_bytes", "rss"),
		      rss + (8 << 20));
	stop(&sampled);
}

TS_TEST(threads_are_counted)
{
	struct sampled sampled;

	start(&sampled);
	sample(&sampled);
	TS_CHECK_INT(got(&sampled, "threads", "count"), 1);
	worker_order(&sampled.worker, THREADS, NULL);
	sample(&sampled);
	TS_CHECK_INT(got(&sampled, "threads", "count"), 7);
	worker_order(&sampled.worker, END_ONE, NULL);
	sample(&sampled);
	TS_CHECK_INT(got(&sampled, "threads", "count"), 6);
	stop(&sampled);
}

/* After its account it answers and waits, which may fault in a few more. */
TS_TEST(faults_are_what_the_process_counts)
{
	struct sampled sampled;
	struct account change;

	start(&sampled);
	sample_around(&sampled, TOUCH, &change);
	TS_CHECK(change.minor_faults >= 1000);
	check_between("minor faults", (double)change.minor_faults - 32,
		      got(&sampled, "faults_per_s", "minor"), (double)change.minor_faults + 32);
	taken_value(&sampled.taken, "faults_per_s", "major");
	stop(&sampled);
}

/* ---- bytes ---- */

/* Exact: the order, its one byte, and the answer. */
TS_TEST(written_bytes_are_exact)
{
	struct sampled sampled;
	struct account change;

	start(&sampled);
	sample_around(&sampled, WRITE, &change);
	TS_CHECK_INT(llround(got(&sampled, "io_bytes_per_s", "written")),
		     1000000 + sizeof(struct account));
	TS_CHECK_INT(llround(got(&sampled, "io_bytes_per_s", "read")), 1);
	TS_CHECK_INT(llround(got(&sampled, "disk_bytes_per_s", "written")), 0);
	stop(&sampled);
}

TS_TEST(read_bytes_are_exact)
{
	struct sampled sampled;
	struct account change;

	start(&sampled);
	sample_around(&sampled, READ, &change);
	TS_CHECK_INT(llround(got(&sampled, "io_bytes_per_s", "read")), 1000000 + 1);
	TS_CHECK_INT(llround(got(&sampled, "io_bytes_per_s", "written")), sizeof(struct account));
	stop(&sampled);
}

/* ---- context switches ---- */

/* After its account it answers and waits: a few more switches. */
static void check_switches(const struct account *change, double voluntary, double involuntary)
{
	TS_CHECK(change->voluntary >= 200);
	check_between("voluntary", (double)change->voluntary - 10, voluntary,
		      (double)change->voluntary + 10);
	check_between("involuntary", (double)change->involuntary - 10, involuntary,
		      (double)change->involuntary + 10);
}

TS_TEST(switches_are_what_the_process_counts)
{
	struct sampled sampled;
	struct account change;

	start(&sampled);
	sample_around(&sampled, NAP, &change);
	check_switches(&change, got(&sampled, "context_switches_per_s", "voluntary"),
		       got(&sampled, "context_switches_per_s", "involuntary"));
	stop(&sampled);
}

TS_TEST(switches_are_rare_values)
{
	struct sampled sampled;

	start(&sampled);
	sample(&sampled);
	sample(&sampled);
	TS_CHECK(taken_find(&sampled.taken, "context_switches_per_s", NULL) != NULL);
	TS_CHECK(taken_find(&sampled.taken, "cpu_mode_percent", NULL) != NULL);
	sampled.now_ns -= SECOND_NS * 9 / 10; /* 100 ms after the last */
	sample(&sampled);
	TS_CHECK(taken_find(&sampled.taken, "context_switches_per_s", NULL) == NULL);
	TS_CHECK(taken_find(&sampled.taken, "cpu_mode_percent", NULL) == NULL);
	TS_CHECK(taken_find(&sampled.taken, "cpu_percent", NULL) != NULL);
	stop(&sampled);
}

TS_TEST(taskstats_count_ended_threads)
{
	struct worker worker;
	struct ts_switches before, after;
	int error;

	worker_start(&worker);
	worker_order(&worker, THREADS, NULL);
	error = ts_taskstats_read(worker.pid, &before);
	if (error == -EPERM)
		ts_test_skip("taskstats need CAP_NET_ADMIN");
	if (error == -ENOENT)
		ts_test_skip("this kernel has no taskstats");
	TS_CHECK_INT(error, 0);
	worker_order(&worker, END_ONE, NULL);
	TS_CHECK_INT(ts_taskstats_read(worker.pid, &after), 0);
	TS_CHECK(after.voluntary >= before.voluntary);
	worker_stop(&worker);
	TS_CHECK_INT(ts_taskstats_read(worker.pid, &after), -ESRCH);
}

TS_TEST(sweep_adds_threads_up)
{
	struct ts_thread_switches sweep = { .count = 0 };
	struct ts_text text = { 0 };
	struct account before, after;
	struct worker worker;

	worker_start(&worker);
	worker_order(&worker, THREADS, &before);
	TS_CHECK(!ts_thread_switches_next(&sweep, worker.pid, &text));
	TS_CHECK_INT(sweep.count, 7);
	worker_order(&worker, NAP, &after);
	TS_CHECK(ts_thread_switches_next(&sweep, worker.pid, &text));
	/* Starting threads switch, too; the worker does not wait for that. */
	check_between("voluntary", (double)(after.voluntary - before.voluntary) - 40,
		      (double)sweep.sum.voluntary,
		      (double)(after.voluntary - before.voluntary) + 40);
	worker_order(&worker, END_ONE, NULL);
	TS_CHECK(!ts_thread_switches_next(&sweep, worker.pid, &text));
	TS_CHECK(ts_thread_switches_next(&sweep, worker.pid, &text));
	worker_stop(&worker);
	TS_CHECK(!ts_thread_switches_next(&sweep, worker.pid, &text));
	ts_text_release(&text);
}

/* ---- processes that exit ---- */

TS_TEST(an_ended_process_gives_nothing)
{
	struct sampled sampled;
	siginfo_t info;

	start(&sampled);
	sample(&sampled);
	kill(sampled.worker.pid, SIGKILL);
	TS_CHECK(waitid(P_PID, (id_t)sampled.worker.pid, &info, WEXITED | WNOWAIT) == 0);
	taken_init(&sampled.taken);
	/* Not reaped yet, then gone. */
	TS_CHECK(!ts_process_metrics_sample(sampled.metrics, sampled.now_ns, &sampled.taken.sink));
	TS_CHECK(waitpid(sampled.worker.pid, NULL, 0) == sampled.worker.pid);
	TS_CHECK(!ts_process_metrics_sample(sampled.metrics, sampled.now_ns, &sampled.taken.sink));
	TS_CHECK_INT(sampled.taken.count, 0);
	TS_CHECK_INT(sampled.taken.messages, 0);
	ts_process_metrics_close(sampled.metrics);
	close(sampled.worker.orders);
	close(sampled.worker.answers);
}

TS_TEST(a_process_that_is_not_there)
{
	struct ts_process_metrics *metrics = NULL;
	struct ts_error err;
	struct worker worker;

	worker_start(&worker);
	worker_stop(&worker);
	TS_CHECK_INT(ts_process_metrics_open(&metrics, worker.pid, 0, &err), TS_ENOTFOUND);
	TS_CHECK_INT(ts_process_metrics_open(&metrics, -1, 0, &err), TS_ENOTFOUND);
	TS_CHECK(metrics == NULL);
	ts_process_metrics_close(metrics);
}

TS_TEST(the_start_time_must_be_right)
{
	struct ts_process_metrics *metrics = NULL;
	uint64_t start_time = ts_process_start_time(getpid());
	struct ts_error err;

	TS_CHECK_INT(ts_process_metrics_open(&metrics, getpid(), start_time + 1, &err),
		     TS_ENOTFOUND);
	TS_CHECK_INT(ts_process_metrics_open(&metrics, getpid(), start_time, &err), 0);
	ts_process_metrics_close(metrics);
}

static bool is_zombie(pid_t pid)
{
	char path[64], text[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	TS_CHECK(ts_procfs_read_line(AT_FDCWD, path, text, sizeof(text)) > 0);
	return strstr(text, ") Z ") != NULL;
}

/* The main thread ends, the others continue: memory and CPU are still those of the process. */
TS_TEST(a_leader_that_has_ended_is_no_end)
{
	struct sampled sampled;
	char order = LEADER_ENDS;

	start(&sampled);
	worker_order(&sampled.worker, THREADS, NULL);
	sample(&sampled);
	TS_CHECK(write(sampled.worker.orders, &order, 1) == 1);
	while (!is_zombie(sampled.worker.pid))
		usleep(1000);
	sample(&sampled);
	TS_CHECK(got(&sampled, "memory_bytes", "vms") > 0);
	TS_CHECK(got(&sampled, "memory_bytes", "rss") > 0);
	taken_value(&sampled.taken, "cpu_percent", "all");
	stop(&sampled);
}

/* ---- a reused pid ---- */

/* A process with this pid, which must be free. -1 if that is not permitted. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uint64_t)(uintptr_t)&pid,
				   .set_tid_size = 1 };
	long child = syscall(SYS_clone3, &args, sizeof(args));

	if (child == 0) {
		for (;;)
			pause();
	}
	return (pid_t)child;
}

static void check_reuse(void *argument)
{
	const struct rlimit *limit = argument;
	struct sampled sampled;
	pid_t stranger;

	start(&sampled);
	if (limit) { /* half of the descriptors are in use, so that none is kept */
		while (dup(1) < (int)limit->rlim_cur / 2)
			;
		TS_CHECK(setrlimit(RLIMIT_NOFILE, limit) == 0);
		ts_process_metrics_close(sampled.metrics);
		TS_CHECK_INT(ts_process_metrics_open(&sampled.metrics, sampled.worker.pid, 0, NULL),
			     0);
	}
	sample(&sampled);
	TS_CHECK(taken_find(&sampled.taken, "memory_bytes", "rss") != NULL);
	kill(sampled.worker.pid, SIGKILL);
	waitpid(sampled.worker.pid, NULL, 0);
	/* Start times are in ticks of 10 ms. */
	usleep(30000);
	stranger = fork_as(sampled.worker.pid);
	if (stranger < 0)
		ts_test_skip("a process cannot be given a number here");
	taken_init(&sampled.taken);
	TS_CHECK(!ts_process_metrics_sample(sampled.metrics, sampled.now_ns, &sampled.taken.sink));
	TS_CHECK_INT(sampled.taken.count, 0);
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
}

TS_TEST(another_process_with_its_number)
{
	run_apart(check_reuse, NULL);
}

TS_TEST(another_process_with_its_number_and_no_descriptors)
{
	struct rlimit limit = { .rlim_cur = 16, .rlim_max = 16 };

	run_apart(check_reuse, &limit);
}

/* ---- missing permissions ---- */

static void drop_rights(void)
{
	TS_CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0);
	TS_CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

static void check_denied(void *argument)
{
	struct worker *worker = argument;
	struct ts_process_metrics *metrics;
	struct taken taken;
	struct account before, after = { 0 };
	unsigned int messages = 0;

	drop_rights();
	TS_CHECK_INT(ts_process_metrics_open(&metrics, worker->pid, 0, NULL), 0);
	worker_order(worker, 0, &before);
	for (int i = 1; i <= 4; i++) {
		taken_init(&taken);
		TS_CHECK(ts_process_metrics_sample(metrics, i * SECOND_NS, &taken.sink));
		messages += taken.messages;
		TS_CHECK(taken_find(&taken, "io_bytes_per_s", NULL) == NULL);
		TS_CHECK(taken_find(&taken, "disk_bytes_per_s", NULL) == NULL);
		taken_value(&taken, "memory_bytes", "rss");
		taken_value(&taken, "threads", "count");
		if (i == 1) {
			TS_CHECK(strstr(taken.message, "CAP_SYS_PTRACE") != NULL);
			worker_order(worker, NAP, &after);
		}
		if (i == 2) { /* swept */
			taken_value(&taken, "cpu_percent", "all");
			check_between("voluntary",
				      (double)(after.voluntary - before.voluntary) - 10,
				      taken_value(&taken, "context_switches_per_s", "voluntary"),
				      (double)(after.voluntary - before.voluntary) + 10);
		}
	}
	TS_CHECK_INT(messages, 1);
	ts_process_metrics_close(metrics);
}

TS_TEST(what_is_denied_is_absent)
{
	struct worker worker;

	if (getuid() != 0)
		ts_test_skip("only root can become another user");
	worker_start(&worker);
	run_apart(check_denied, &worker);
	worker_stop(&worker);
}

/* /proc as other users see it, for this process only. */
static void mount_proc(const char *type, const char *options)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(type, "/proc", type, 0, options))
		ts_test_skip("/proc cannot be mounted anew here");
}

static void check_hidden(void *argument)
{
	struct worker *worker = argument;
	struct ts_process_metrics *metrics;
	struct ts_error err;

	mount_proc("proc", "hidepid=2");
	drop_rights();
	TS_CHECK_INT(ts_process_metrics_open(&metrics, worker->pid, 0, &err), TS_ECAP);
	TS_CHECK(strstr(err.message, "hidepid") != NULL);
	TS_CHECK_INT(ts_process_metrics_open(&metrics, getpid(), 0, &err), 0);
	ts_process_metrics_close(metrics);
}

TS_TEST(a_hidden_process_is_said_to_be_hidden)
{
	struct worker worker;

	if (getuid() != 0)
		ts_test_skip("only root can mount /proc");
	worker_start(&worker);
	run_apart(check_hidden, &worker);
	worker_stop(&worker);
}

/* ---- descriptors ---- */

static void check_few_descriptors(void *argument)
{
	enum { MANY = 30 };
	struct rlimit limit = { .rlim_cur = 32, .rlim_max = 32 };
	struct worker *worker = argument;
	struct ts_process_metrics *metrics[MANY];
	struct taken taken;
	unsigned int given = 0;

	TS_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int i = 0; i < MANY; i++)
		TS_CHECK_INT(ts_process_metrics_open(&metrics[i], worker->pid, 0, NULL), 0);
	for (int round = 1; round <= 2; round++) {
		for (int i = 0; i < MANY; i++) {
			taken_init(&taken);
			TS_CHECK(ts_process_metrics_sample(metrics[i], round * SECOND_NS,
							   &taken.sink));
			taken_value(&taken, "memory_bytes", "rss");
			TS_CHECK(taken_find(&taken, "io_bytes_per_s", "read") || round == 1);
			TS_CHECK_INT(taken.messages, 0);
		}
	}
	/* Half of them were left to others, who now take them. */
	while (dup(1) >= 0)
		given++;
	TS_CHECK(given >= 14);
	for (int i = 0; i < MANY; i++) {
		taken_init(&taken);
		TS_CHECK(ts_process_metrics_sample(metrics[i], 3 * SECOND_NS, &taken.sink));
		TS_CHECK(taken_find(&taken, "memory_bytes", "rss") || taken.messages == 1);
	}
	TS_CHECK(strstr(taken.message, "ulimit -n") != NULL);
	for (int i = 0; i < MANY; i++)
		ts_process_metrics_close(metrics[i]);
}

TS_TEST(descriptors_are_left_to_others)
{
	struct worker worker;

	worker_start(&worker);
	run_apart(check_few_descriptors, &worker);
	worker_stop(&worker);
}

static void check_no_descriptor(void *argument)
{
	struct rlimit limit = { .rlim_cur = 3, .rlim_max = 64 };
	struct worker *worker = argument;
	struct ts_process_metrics *metrics;
	struct taken taken;

	TS_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	TS_CHECK_INT(ts_process_metrics_open(&metrics, worker->pid, 0, NULL), 0);
	taken_init(&taken);
	TS_CHECK(ts_process_metrics_sample(metrics, SECOND_NS, &taken.sink));
	TS_CHECK_INT(taken.count, 0);
	TS_CHECK_INT(taken.messages, 1);
	limit.rlim_cur = 64;
	TS_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	TS_CHECK(ts_process_metrics_sample(metrics, 2 * SECOND_NS, &taken.sink));
	taken_value(&taken, "memory_bytes", "rss");
	TS_CHECK(taken.values[0].subject.start_time == ts_process_start_time(worker->pid));
	ts_process_metrics_close(metrics);
}

TS_TEST(without_descriptors_it_waits_for_some)
{
	struct worker worker;

	worker_start(&worker);
	run_apart(check_no_descriptor, &worker);
	worker_stop(&worker);
}
