/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the machine. Everything is read at once, from descriptors that stay open; files that
 * are slow on this machine are read less often.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs_parse.h"
#include "sample/metrics/host/host_metrics.h"
#include "sample/metrics/host/io_totals.h"
#include "sample/metrics/host/metric_output.h"

#define SECTOR_BYTES 512.0 /* the kernel's sector size, for any disk */

/* A file is timed this often; if it is always above its share, it is slow. */
#define TIMED_READS 4u
#define SHARE_NS INT64_C(50000)

enum file {
	STAT,
	MEMINFO,
	NETWORK,
	DISKS,
	PRESSURE_CPU,
	PRESSURE_MEMORY,
	PRESSURE_IO,
	VMSTAT,
	FILES
};

static const char *const paths[FILES] = {
	[STAT] = "/proc/stat",
	[MEMINFO] = "/proc/meminfo",
	[NETWORK] = "/proc/net/dev",
	[DISKS] = "/proc/diskstats",
	[PRESSURE_CPU] = "/proc/pressure/cpu",
	[PRESSURE_MEMORY] = "/proc/pressure/memory",
	[PRESSURE_IO] = "/proc/pressure/io",
	[VMSTAT] = "/proc/vmstat",
};

enum { PRESSURES = PRESSURE_IO - PRESSURE_CPU + 1 };
static const char *const pressure_names[PRESSURES] = { "cpu", "memory", "io" };

struct system_file {
	struct ts_procfs_file kept;
	bool is_rare;       /* slow, or unreadable */
	bool is_reported;   /* why its values are missing */
	unsigned int reads; /* number of timings */
	int64_t least_ns;
};

struct ts_system_metrics {
	struct system_file files[FILES];
	struct ts_text text;
	bool is_due; /* slow ones are due in this sample */
	bool has_sampled;
	int64_t rare_ns;
	uint64_t ticks[TS_CPU_MODES];
	bool has_ticks;
	struct ts_rate switches;
	struct ts_io_totals network, disks;
	struct ts_rate pressure[PRESSURES], pressure_full[PRESSURES];
	struct ts_rate minor_faults, major_faults, swapped_in, swapped_out;
};

/* ---- files ---- */

static void report_missing(struct system_file *file, int error, const struct ts_metrics_sink *sink)
{
	char text[256];

	if (file->is_reported)
		return;
	file->is_reported = true;
	if (error == EOPNOTSUPP)
		snprintf(text, sizeof(text),
			 "'%s' is disabled: boot the kernel with psi=1 to get pressure",
			 file->kept.path);
	else if (error == EMFILE || error == ENFILE)
		snprintf(text, sizeof(text),
			 "out of file descriptors: '%s' is missing; raise 'ulimit -n'",
			 file->kept.path);
	else
		snprintf(text, sizeof(text), "'%s' cannot be read, so its metrics are missing: %s",
			 file->kept.path, strerror(error));
	sink->message(sink->context, text);
}

static int read_timed(struct system_file *file, struct ts_text *text,
		      const struct ts_metrics_sink *sink)
{
	int64_t begin_ns = ts_clock_thread_cpu_ns(), took_ns;
	int error = ts_procfs_file_read(&file->kept, AT_FDCWD, text);
	char message[256];

	took_ns = ts_clock_thread_cpu_ns() - begin_ns;
	if (file->reads == 0 || took_ns < file->least_ns)
		file->least_ns = took_ns;
	if (error || ++file->reads < TIMED_READS || file->least_ns <= SHARE_NS)
		return error;
	file->is_rare = true;
	snprintf(message, sizeof(message), "'%s' takes %lld us to read: it is read once a second",
		 file->kept.path, (long long)(file->least_ns / 1000));
	sink->message(sink->context, message);
	return 0;
}

/* NULL: not due, or unavailable. */
static const char *read_file(struct ts_system_metrics *metrics, enum file which,
			     const struct ts_metrics_sink *sink)
{
	struct system_file *file = &metrics->files[which];
	int error;

	if ((file->is_rare || which == VMSTAT) && !metrics->is_due)
		return NULL;
	if (file->reads < TIMED_READS && which != VMSTAT)
		error = read_timed(file, &metrics->text, sink);
	else
		error = ts_procfs_file_read(&file->kept, AT_FDCWD, &metrics->text);
	if (!error)
		return metrics->text.data;
	file->is_rare = error != -EMFILE && error != -ENFILE;
	report_missing(file, -error, sink);
	return NULL;
}

/* ---- /proc/stat ---- */

/*
 * Ticks since the last sample; idle ones may go back slightly. False if others do, as when a CPU
 * goes offline.
 */
static bool tick_differences(const uint64_t *before, const uint64_t *after, double *ret_differences,
			     double *ret_total)
{
	*ret_total = 0;
	for (int mode = 0; mode < TS_CPU_MODES; mode++) {
		bool may_go_back = mode == TS_CPU_IDLE || mode == TS_CPU_IOWAIT;

		ret_differences[mode] = 0;
		if (after[mode] == TS_NO_VALUE || before[mode] == TS_NO_VALUE)
			continue;
		if (after[mode] < before[mode] && !may_go_back)
			return false;
		if (after[mode] > before[mode])
			ret_differences[mode] = (double)(after[mode] - before[mode]);
		*ret_total += ret_differences[mode];
	}
	return *ret_total > 0;
}

static void give_cpu(struct ts_system_metrics *metrics, const struct ts_metric_output *give,
		     const uint64_t *ticks)
{
	uint64_t before[TS_CPU_MODES];
	double differences[TS_CPU_MODES], total;
	bool had_ticks = metrics->has_ticks;

	if (ticks[TS_CPU_USER] == TS_NO_VALUE || ticks[TS_CPU_IDLE] == TS_NO_VALUE)
		return;
	memcpy(before, metrics->ticks, sizeof(before));
	memcpy(metrics->ticks, ticks, sizeof(before));
	metrics->has_ticks = true;
	if (!had_ticks || !tick_differences(before, ticks, differences, &total))
		return;
	ts_metric_output_real(give, "cpu_percent", "user",
			      (differences[TS_CPU_USER] + differences[TS_CPU_NICE]) * 100 / total);
	ts_metric_output_real(give, "cpu_percent", "system",
			      (differences[TS_CPU_SYSTEM] + differences[TS_CPU_IRQ] +
			       differences[TS_CPU_SOFTIRQ]) *
				      100 / total);
	if (ticks[TS_CPU_IOWAIT] != TS_NO_VALUE)
		ts_metric_output_real(give, "cpu_percent", "iowait",
				      differences[TS_CPU_IOWAIT] * 100 / total);
	if (ticks[TS_CPU_STEAL] != TS_NO_VALUE)
		ts_metric_output_real(give, "cpu_percent", "steal",
				      differences[TS_CPU_STEAL] * 100 / total);
}

static void sample_stat(struct ts_system_metrics *metrics, const struct ts_metric_output *give)
{
	const char *text = read_file(metrics, STAT, give->sink);
	struct ts_procfs_system system;

	if (!text)
		return;
	ts_procfs_system_parse(text, &system);
	give_cpu(metrics, give, system.ticks);
	ts_metric_output_rate(give, "context_switches_per_s", "all", &metrics->switches,
			      system.switches, 1);
	ts_metric_output_amount(give, "tasks", "running", system.running, 1);
	ts_metric_output_amount(give, "tasks", "blocked", system.blocked, 1);
}

/* ---- the others ---- */

/* Used part of a total, or TS_NO_VALUE. */
static uint64_t used_of(uint64_t total, uint64_t rest)
{
	return total != TS_NO_VALUE && rest <= total ? total - rest : TS_NO_VALUE;
}

static void sample_memory(struct ts_system_metrics *metrics, const struct ts_metric_output *give)
{
	const char *text = read_file(metrics, MEMINFO, give->sink);
	struct ts_procfs_meminfo memory;

	if (!text)
		return;
	ts_procfs_meminfo_parse(text, &memory);
	ts_metric_output_amount(give, "memory_bytes", "used",
				used_of(memory.total, memory.available), 1024);
	ts_metric_output_amount(give, "memory_bytes", "available", memory.available, 1024);
	/* Without swap there is nothing to report. */
	if (memory.swap_total > 0)
		ts_metric_output_amount(give, "swap_bytes", "used",
					used_of(memory.swap_total, memory.swap_free), 1024);
}

/*
 * The full list once a second, since devices may have appeared; those that count in every sample.
 */
static bool next_traffic(struct ts_system_metrics *metrics, enum file which,
			 struct ts_io_totals *traffic, const struct ts_metric_output *give,
			 double *ret_in, double *ret_out)
{
	const char *text;

	if (traffic->shortcut_count && !metrics->is_due)
		return ts_io_totals_next_short(traffic, &metrics->text, give->now_ns, ret_in,
					       ret_out);
	text = read_file(metrics, which, give->sink);
	return text && ts_io_totals_next(traffic, text, give->now_ns, ret_in, ret_out);
}

static void sample_network(struct ts_system_metrics *metrics, const struct ts_metric_output *give)
{
	double received, sent;

	if (!next_traffic(metrics, NETWORK, &metrics->network, give, &received, &sent))
		return;
	ts_metric_output_real(give, "network_bytes_per_s", "received", received);
	ts_metric_output_real(give, "network_bytes_per_s", "sent", sent);
}

static void sample_disks(struct ts_system_metrics *metrics, const struct ts_metric_output *give)
{
	double read, written;

	if (!next_traffic(metrics, DISKS, &metrics->disks, give, &read, &written))
		return;
	ts_metric_output_real(give, "disk_bytes_per_s", "read", read * SECTOR_BYTES);
	ts_metric_output_real(give, "disk_bytes_per_s", "written", written * SECTOR_BYTES);
}

static void sample_pressure(struct ts_system_metrics *metrics, const struct ts_metric_output *give)
{
	const double percent_of_us = 100 / 1e6;
	struct ts_procfs_pressure pressure[PRESSURES];

	for (int i = 0; i < PRESSURES; i++) {
		const char *text = read_file(metrics, PRESSURE_CPU + i, give->sink);

		ts_procfs_pressure_parse(text ? text : "", &pressure[i]);
		ts_metric_output_rate(give, "pressure_percent", pressure_names[i],
				      &metrics->pressure[i], pressure[i].some, percent_of_us);
	}
	/*
	 * The kernel's "full" figure of CPU pressure is always 0: all tasks cannot wait for a CPU
	 * at once.
	 */
	for (int i = 1; i < PRESSURES; i++)
		ts_metric_output_rate(give, "pressure_full_percent", pressure_names[i],
				      &metrics->pressure_full[i], pressure[i].full, percent_of_us);
}

static void sample_vmstat(struct ts_system_metrics *metrics, const struct ts_metric_output *give)
{
	const char *text = read_file(metrics, VMSTAT, give->sink);
	double page_bytes = (double)sysconf(_SC_PAGESIZE);
	struct ts_procfs_vmstat vmstat;

	if (!text)
		return;
	ts_procfs_vmstat_parse(text, &vmstat);
	ts_metric_output_rate(give, "faults_per_s", "minor", &metrics->minor_faults,
			      used_of(vmstat.faults, vmstat.major_faults), 1);
	ts_metric_output_rate(give, "faults_per_s", "major", &metrics->major_faults,
			      vmstat.major_faults, 1);
	ts_metric_output_rate(give, "swap_bytes_per_s", "in", &metrics->swapped_in,
			      vmstat.swapped_in, page_bytes);
	ts_metric_output_rate(give, "swap_bytes_per_s", "out", &metrics->swapped_out,
			      vmstat.swapped_out, page_bytes);
}

/* ---- all ---- */

int ts_system_metrics_open(struct ts_system_metrics **ret_metrics, struct ts_error *err)
{
	struct ts_system_metrics *metrics = calloc(1, sizeof(*metrics));

	if (!metrics)
		return ts_error_set(err, TS_ENOMEM, "no memory for the metrics of the machine");
	for (int i = 0; i < FILES; i++)
		metrics->files[i].kept = (struct ts_procfs_file){ .path = paths[i], .fd = -1 };
	metrics->network.kind = &ts_io_totals_network;
	metrics->disks.kind = &ts_io_totals_disks;
	*ret_metrics = metrics;
	return TS_OK;
}

void ts_system_metrics_sample(struct ts_system_metrics *metrics, int64_t now_ns,
			      const struct ts_metrics_sink *sink)
{
	static const struct ts_metrics_subject subject = { .kind = TS_METRICS_SYSTEM };
	struct ts_metric_output give = { .sink = sink, .subject = &subject, .now_ns = now_ns };

	metrics->is_due = !metrics->has_sampled || now_ns - metrics->rare_ns >= TS_SLOW_INTERVAL_NS;
	if (metrics->is_due)
		metrics->rare_ns = now_ns;
	metrics->has_sampled = true;
	sample_stat(metrics, &give);
	sample_memory(metrics, &give);
	sample_network(metrics, &give);
	sample_disks(metrics, &give);
	sample_pressure(metrics, &give);
	sample_vmstat(metrics, &give);
}

void ts_system_metrics_close(struct ts_system_metrics *metrics)
{
	if (!metrics)
		return;
	for (int i = 0; i < FILES; i++)
		ts_procfs_file_close(&metrics->files[i].kept);
	ts_io_totals_release(&metrics->network);
	ts_io_totals_release(&metrics->disks);
	ts_text_release(&metrics->text);
	free(metrics);
}
