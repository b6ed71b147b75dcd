/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of a process. Its pid may be reused at any time, so each sample first reads whatever goes
 * by pid, and then its `stat` file, kept open: if that still answers with the right start time, the
 * pid was still its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs_parse.h"
#include "sample/metrics/host/host_metrics.h"
#include "sample/metrics/host/metric_output.h"
#include "sample/metrics/host/taskstats.h"

/* Already given to the sink. */
enum { REPORTED_IO = 1, REPORTED_DESCRIPTORS = 2, REPORTED_SWITCHES = 4 };

struct ts_process_metrics {
	struct ts_metrics_subject subject;
	struct ts_procfs_file stat, statm, io;
	struct ts_text text;
	bool has_sampled;
	bool is_io_refused;
	unsigned int reported;
	int64_t rare_ns;
	uint64_t threads; /* in the last sample */
	struct ts_rate cpu;
	struct ts_rate user, system, children;
	struct ts_rate minor_faults, major_faults;
	struct ts_rate call_read, call_written, disk_read, disk_written;
	bool is_swept; /* taskstats: permission denied */
	struct ts_thread_switches sweep;
	struct ts_rate voluntary, involuntary;
};

/* What one sample read by pid, before the pid was confirmed. */
struct reading {
	bool is_due; /* slow values */
	int directory;
	uint64_t cpu_ns;
	int64_t cpu_at_ns;
	struct ts_switches switches;
	bool are_switches_complete; /* false: they only start the next difference */
	struct ts_procfs_stat stat;
};

static void report(struct ts_process_metrics *metrics, const struct ts_metric_output *give,
		   unsigned int what, const char *text)
{
	if (!(metrics->reported & what))
		give->sink->message(give->sink->context, text);
	metrics->reported |= what;
}

static void report_error(struct ts_process_metrics *metrics, const struct ts_metric_output *give,
			 int error)
{
	if (error == -EMFILE || error == -ENFILE)
		report(metrics, give, REPORTED_DESCRIPTORS,
		       "out of file descriptors: process metrics are missing; raise 'ulimit -n'");
}

/* ---- reads by pid ---- */

/* The kernel's id of a process CPU clock, over all threads. */
static uint64_t cpu_clock_ns(pid_t pid)
{
	clockid_t clock = (clockid_t)((~(uint32_t)pid << 3) | 2u);
	struct timespec time;

	if (clock_gettime(clock, &time))
		return TS_NO_VALUE;
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int open_directory(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static void sweep_switches(struct ts_process_metrics *metrics, struct reading *reading)
{
	if (metrics->threads > TS_THREAD_SWITCHES_MAX) {
		metrics->sweep.is_complete = false;
		return;
	}
	reading->are_switches_complete =
		ts_thread_switches_next(&metrics->sweep, metrics->subject.pid, &metrics->text);
	reading->switches = metrics->sweep.sum;
}

static void read_switches(struct ts_process_metrics *metrics, struct reading *reading)
{
	if (!metrics->is_swept) {
		int error = ts_taskstats_read(metrics->subject.pid, &reading->switches);

		reading->are_switches_complete = error == 0;
		metrics->is_swept = error && error != -ESRCH && error != -EMFILE &&
				    error != -ENFILE && error != -EAGAIN;
	}
	if (metrics->is_swept)
		sweep_switches(metrics, reading);
}

/* Whether a file has to be opened or reopened. */
static bool needs_directory(const struct ts_process_metrics *metrics, bool is_due)
{
	return metrics->stat.fd < 0 || metrics->statm.fd < 0 ||
	       (metrics->io.fd < 0 && (!metrics->is_io_refused || is_due));
}

static void read_by_number(struct ts_process_metrics *metrics, struct reading *ret_reading)
{
	pid_t pid = metrics->subject.pid;

	/* Reads both clocks back to back: time between them is an error of the rate. */
	ret_reading->cpu_at_ns = ts_clock_monotonic_ns();
	ret_reading->cpu_ns = cpu_clock_ns(pid);
	ret_reading->switches = (struct ts_switches){ TS_NO_VALUE, TS_NO_VALUE };
	ret_reading->are_switches_complete = false;
	if (ret_reading->is_due)
		read_switches(metrics, ret_reading);
	ret_reading->directory = -EBADF;
	if (needs_directory(metrics, ret_reading->is_due))
		ret_reading->directory = open_directory(pid);
}

/* Reads a file of the process into metrics->text; 0, or a negative errno. */
static int read_file(struct ts_process_metrics *metrics, struct ts_procfs_file *file,
		     const struct reading *reading)
{
	if (file->fd < 0 && reading->directory < 0)
		return reading->directory;
	return ts_procfs_file_read(file, reading->directory, &metrics->text);
}

/* ---- identity ---- */

enum presence { PRESENT, ENDED, UNSEEN };

static enum presence presence_by_error(int error)
{
	return error == -ESRCH || error == -ENOENT ? ENDED : UNSEEN;
}

static enum presence read_stat(struct ts_process_metrics *metrics, struct reading *reading)
{
	int error = read_file(metrics, &metrics->stat, reading);

	if (error)
		return presence_by_error(error);
	if (!ts_procfs_stat_parse(metrics->text.data, &reading->stat))
		return UNSEEN;
	if (metrics->subject.start_time == 0)
		metrics->subject.start_time = reading->stat.start_time;
	if (reading->stat.start_time != metrics->subject.start_time)
		return ENDED;
	metrics->threads = reading->stat.threads;
	return ts_procfs_stat_has_exited(&reading->stat) ? ENDED : PRESENT;
}

/* ---- values ---- */

static void give_cpu(struct ts_process_metrics *metrics, const struct ts_metric_output *give,
		     const struct reading *reading)
{
	struct ts_metric_output beside = *give;

	beside.now_ns = reading->cpu_at_ns;
	ts_metric_output_rate(&beside, "cpu_percent", "all", &metrics->cpu, reading->cpu_ns,
			      100 / 1e9);
}

static void give_modes(struct ts_process_metrics *metrics, const struct ts_metric_output *give,
		       const struct ts_procfs_stat *stat)
{
	double percent_of_ticks = 100 / (double)sysconf(_SC_CLK_TCK);
	uint64_t children;

	ts_metric_output_rate(give, "cpu_mode_percent", "user", &metrics->user, stat->user_ticks,
			      percent_of_ticks);
	ts_metric_output_rate(give, "cpu_mode_percent", "system", &metrics->system,
			      stat->system_ticks, percent_of_ticks);
	if (__builtin_add_overflow(stat->child_user_ticks, stat->child_system_ticks, &children))
		children = TS_NO_VALUE;
	ts_metric_output_rate(give, "children_cpu_percent", "ended", &metrics->children, children,
			      percent_of_ticks);
}

static void give_switches(struct ts_process_metrics *metrics, const struct ts_metric_output *give,
			  const struct reading *reading)
{
	double ignored;

	if (metrics->is_swept && metrics->threads > TS_THREAD_SWITCHES_MAX)
		report(metrics, give, REPORTED_SWITCHES,
		       geteuid() ? "context switches of processes with more than 64 threads are "
				   "missing: run as root, or with CAP_NET_ADMIN"
				 : "context switches of processes with more than 64 threads are "
				   "missing: root has no CAP_NET_ADMIN here, as in a container");
	if (!reading->are_switches_complete) {
		ts_rate_next(&metrics->voluntary, reading->switches.voluntary, give->now_ns,
			     &ignored);
		ts_rate_next(&metrics->involuntary, reading->switches.involuntary, give->now_ns,
			     &ignored);
		return;
	}
	ts_metric_output_rate(give, "context_switches_per_s", "voluntary", &metrics->voluntary,
			      reading->switches.voluntary, 1);
	ts_metric_output_rate(give, "context_switches_per_s", "involuntary", &metrics->involuntary,
			      reading->switches.involuntary, 1);
}

/* A thread group leader that has exited shows no memory; another thread does. */
static void read_statm_of_thread(struct ts_process_metrics *metrics)
{
	char path[sizeof(((struct dirent *)NULL)->d_name) + 64];
	struct ts_procfs_file file = { .path = path, .fd = -1 };
	const struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)metrics->subject.pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.' ||
		    strtol(entry->d_name, NULL, 10) == metrics->subject.pid)
			continue;
		snprintf(path, sizeof(path), "%s/statm", entry->d_name);
		if (ts_procfs_file_read(&file, dirfd(tasks), &metrics->text) == 0)
			break;
	}
	ts_procfs_file_close(&file);
	if (tasks)
		closedir(tasks);
}

static void give_memory(struct ts_process_metrics *metrics, const struct ts_metric_output *give,
			const struct reading *reading)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	struct ts_procfs_statm statm;
	int error = read_file(metrics, &metrics->statm, reading);

	if (error) {
		report_error(metrics, give, error);
		return;
	}
	if (reading->stat.state == 'Z')
		read_statm_of_thread(metrics);
	ts_procfs_statm_parse(metrics->text.data, &statm);
	/* Kernel threads have no memory of their own. */
	if (statm.virtual_pages == 0)
		return;
	ts_metric_output_amount(give, "memory_bytes", "rss", statm.resident_pages, page_bytes);
	ts_metric_output_amount(give, "memory_bytes", "vms", statm.virtual_pages, page_bytes);
	ts_metric_output_amount(give, "memory_bytes", "shared", statm.shared_pages, page_bytes);
}

static void give_io(struct ts_process_metrics *metrics, const struct ts_metric_output *give,
		    const struct reading *reading)
{
	struct ts_procfs_io io;
	int error = read_file(metrics, &metrics->io, reading);

	if (error != -EBADF) /* due in this sample */
		metrics->is_io_refused = error == -EACCES || error == -EPERM || error == -ENOENT;
	if (error == -EACCES || error == -EPERM)
		report(metrics, give, REPORTED_IO,
		       geteuid() ? "bytes read and written are missing for processes of other "
				   "users or with privileges: run as root, or with CAP_SYS_PTRACE"
				 : "bytes read and written are missing for processes outside of "
				   "this container or user namespace: root may not read them");
	report_error(metrics, give, error);
	if (error)
		return;
	ts_procfs_io_parse(metrics->text.data, &io);
	ts_metric_output_rate(give, "disk_bytes_per_s", "read", &metrics->disk_read, io.disk_read,
			      1);
	ts_metric_output_rate(give, "disk_bytes_per_s", "written", &metrics->disk_written,
			      io.disk_written, 1);
	ts_metric_output_rate(give, "io_bytes_per_s", "read", &metrics->call_read, io.call_read, 1);
	ts_metric_output_rate(give, "io_bytes_per_s", "written", &metrics->call_written,
			      io.call_written, 1);
}

static void give_all(struct ts_process_metrics *metrics, const struct ts_metric_output *give,
		     const struct reading *reading)
{
	const struct ts_procfs_stat *stat = &reading->stat;

	give_cpu(metrics, give, reading);
	if (reading->is_due)
		give_modes(metrics, give, stat);
	give_memory(metrics, give, reading);
	ts_metric_output_amount(give, "threads", "count", stat->threads, 1);
	ts_metric_output_rate(give, "faults_per_s", "minor", &metrics->minor_faults,
			      stat->minor_faults, 1);
	ts_metric_output_rate(give, "faults_per_s", "major", &metrics->major_faults,
			      stat->major_faults, 1);
	give_io(metrics, give, reading);
	if (reading->is_due)
		give_switches(metrics, give, reading);
}

bool ts_process_metrics_sample(struct ts_process_metrics *metrics, int64_t now_ns,
			       const struct ts_metrics_sink *sink)
{
	struct ts_metric_output give = { .sink = sink,
					 .subject = &metrics->subject,
					 .now_ns = now_ns };
	struct reading reading = { .is_due = !metrics->has_sampled ||
					     now_ns - metrics->rare_ns >= TS_SLOW_INTERVAL_NS };
	enum presence presence;

	read_by_number(metrics, &reading);
	presence = read_stat(metrics, &reading);
	if (presence == PRESENT) {
		if (reading.is_due)
			metrics->rare_ns = now_ns;
		metrics->has_sampled = true;
		give_all(metrics, &give, &reading);
	} else if (presence == UNSEEN) {
		report_error(metrics, &give, reading.directory);
	}
	if (reading.directory >= 0)
		close(reading.directory);
	return presence != ENDED;
}

/* ---- open and close ---- */

static int refuse(pid_t pid, struct ts_error *err)
{
	if (kill(pid, 0) == 0 || errno != ESRCH)
		return ts_error_set(err, TS_ECAP,
				    "process %d is hidden by the hidepid option of /proc: run "
				    "as its user, or as root",
				    (int)pid);
	return ts_error_set(err, TS_ENOTFOUND, "there is no process %d", (int)pid);
}

/* Opens what can be opened; the rest may become readable later. */
static int find(struct ts_process_metrics *metrics, struct ts_error *err)
{
	pid_t pid = metrics->subject.pid;
	struct reading reading = { .directory = open_directory(pid) };
	enum presence presence = read_stat(metrics, &reading);
	int result = TS_OK;

	if (presence == ENDED && reading.stat.start_time == 0)
		result = refuse(pid, err);
	else if (presence == ENDED)
		result = ts_error_set(err, TS_ENOTFOUND, "process %d has ended", (int)pid);
	if (reading.directory >= 0)
		close(reading.directory);
	return result;
}

int ts_process_metrics_open(struct ts_process_metrics **ret_metrics, pid_t pid, uint64_t start_time,
			    struct ts_error *err)
{
	TS_AUTO(ts_process_metrics) metrics = NULL;
	int result;

	if (pid <= 0)
		return ts_error_set(err, TS_ENOTFOUND, "there is no process %d", (int)pid);
	metrics = calloc(1, sizeof(*metrics));
	if (!metrics)
		return ts_error_set(err, TS_ENOMEM, "no memory for the metrics of a process");
	metrics->subject = (struct ts_metrics_subject){ .kind = TS_METRICS_PROCESS,
							.pid = pid,
							.start_time = start_time };
	metrics->stat = (struct ts_procfs_file){ .path = "stat", .fd = -1 };
	metrics->statm = (struct ts_procfs_file){ .path = "statm", .fd = -1 };
	metrics->io = (struct ts_procfs_file){ .path = "io", .fd = -1 };
	result = find(metrics, err);
	if (!result)
		*ret_metrics = TS_STEAL(metrics);
	return result;
}

void ts_process_metrics_close(struct ts_process_metrics *metrics)
{
	if (!metrics)
		return;
	ts_procfs_file_close(&metrics->stat);
	ts_procfs_file_close(&metrics->statm);
	ts_procfs_file_close(&metrics->io);
	ts_text_release(&metrics->text);
	free(metrics);
}
