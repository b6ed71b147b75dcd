/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refreshes the state: targets and areas are read now, metrics are the newest that the sampler's
 * threads have given.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/real.h"
#include "cli/top/top.h"
#include "live/discover.h"

#define NS_PER_S INT64_C(1000000000)
/* A value not renewed for three intervals, and at least this long, is dropped. */
#define STALE_NS (3 * NS_PER_S)
/* Vendor tools may take longer. */
#define STALE_DEVICE_NS (15 * NS_PER_S)

/* Sources that hang may use it after we are gone. */
static struct ts_top_values the_values;
static struct ts_top_backends the_backends;

/* ---- opening ---- */

int ts_top_open(struct ts_top *top, struct ts_error *err)
{
	int rc = ts_top_backends_choose(&the_backends, top->backends, err);

	if (rc)
		return rc;
	ts_top_values_init(&the_values);
	top->values = &the_values;
	rc = ts_metrics_sampler_open(&top->sampler, the_backends.names, &the_values.consumer, err);
	if (rc)
		return rc;
	ts_metrics_sampler_set_interval(top->sampler, top->delay_ns);
	return ts_top_users_start(&top->users, the_backends.sources, !the_backends.names, err);
}

void ts_top_close(struct ts_top *top)
{
	ts_metrics_sampler_close(top->sampler);
	ts_top_users_stop(top->users);
	ts_top_python_snapshot_release(&top->python_snapshot);
	ts_top_python_close(top->python);
	for (size_t i = 0; i < top->area_count; i++)
		ts_area_events_close(top->areas[i].events);
	free(top->areas);
	free(top->processes);
	free(top->sampled);
	free(top->subjects);
	free(top->devices);
}

/* ---- the sampler ---- */

static bool is_sampled_already(const struct ts_top *top)
{
	if (top->sampled_count != top->process_count || top->sampled_delay_ns != top->delay_ns)
		return false;
	for (size_t i = 0; i < top->process_count; i++) {
		if (top->sampled[i].pid != top->processes[i].pid ||
		    top->sampled[i].start_time != top->processes[i].start_time)
			return false;
	}
	return true;
}

/* Passes the listed processes to the sampler, if they have changed. */
static int direct_sampler(struct ts_top *top, struct ts_error *err)
{
	if (is_sampled_already(top))
		return TS_OK;
	if (ts_grow_array((void **)&top->sampled, &top->sampled_capacity,
			  TS_MAX(top->process_count, 1u), sizeof(*top->sampled)))
		return ts_error_set(err, TS_ENOMEM, "no memory for %zu processes",
				    top->process_count);
	for (size_t i = 0; i < top->process_count; i++) {
		top->sampled[i] = (struct ts_sampled_process){
			.pid = top->processes[i].pid,
			.start_time = top->processes[i].start_time,
			.interval_ns = top->delay_ns,
		};
	}
	top->sampled_count = top->process_count;
	if (top->sampled_delay_ns != top->delay_ns)
		ts_metrics_sampler_set_interval(top->sampler, top->delay_ns);
	top->sampled_delay_ns = top->delay_ns;
	return ts_metrics_sampler_set_processes(top->sampler, top->sampled, top->sampled_count,
						err);
}

/* ---- Python stacks ---- */

/* Passes the listed processes to the Python sampler; it pauses while nobody wants stacks. */
static int look_at_python(struct ts_top *top, struct ts_error *err)
{
	TS_AUTO_FREE struct ts_sampled_process *processes = NULL;
	size_t count = top->samples_python ? top->process_count : 0;
	int rc = TS_OK;

	if (!top->python && !count)
		return TS_OK;
	if (!top->python)
		rc = ts_top_python_open(&top->python, err);
	if (rc)
		return rc;
	processes = ts_alloc_array(count, sizeof(*processes));
	if (!processes)
		return ts_error_set(err, TS_ENOMEM, "no memory for %zu processes", count);
	for (size_t i = 0; i < count; i++)
		processes[i] = (struct ts_sampled_process){
			.pid = top->processes[i].pid,
			.start_time = top->processes[i].start_time,
		};
	rc = ts_top_python_watch(top->python, processes, count, err);
	return rc ? rc
		  : ts_top_python_refresh(top->python, &top->python_request, &top->python_snapshot,
					  err);
}

/* ---- values ---- */

static int copy_values(struct ts_top *top, struct ts_error *err)
{
	int64_t stale = TS_MAX(3 * top->delay_ns, STALE_NS);
	int64_t stale_device = TS_MAX(3 * top->delay_ns, STALE_DEVICE_NS);
	struct ts_top_subject *subjects = NULL;
	struct ts_top_device *devices = NULL;
	int rc = ts_top_values_copy(top->values, top->looked_ns - stale,
				    top->looked_ns - stale_device, &subjects, &top->subject_count);

	if (!rc) {
		free(top->subjects);
		top->subjects = subjects;
		rc = ts_top_values_devices(top->values, &devices, &top->device_count);
	}
	if (rc)
		return ts_error_set(err, rc, "no memory for values");
	free(top->devices);
	top->devices = devices;
	top->message_count = ts_top_values_messages(top->values, top->messages);
	return TS_OK;
}

static void clear_values(double values[TS_TOP_METRICS])
{
	for (size_t i = 0; i < TS_TOP_METRICS; i++)
		values[i] = NAN;
}

static const char *vendor_of(const struct ts_top *top, uint32_t number)
{
	for (size_t i = 0; i < top->device_count; i++) {
		if (top->devices[i].number == number)
			return top->devices[i].vendor;
	}
	return "";
}

/* A process may use several devices: adds them up. */
static void add_device_values(const struct ts_top *top, struct ts_top_process *process,
			      const struct ts_top_subject *subject)
{
	static const enum ts_top_metric sums[] = { TS_TOP_DEVICE_PERCENT, TS_TOP_DEVICE_MEMORY };

	ts_top_device_list_add(&process->devices, vendor_of(top, subject->subject.device),
			       ts_metrics_device_number(subject->subject.device));
	for (size_t i = 0; i < TS_ARRAY_SIZE(sums); i++) {
		double value = subject->values[sums[i]], *sum = &process->values[sums[i]];

		if (!isnan(value))
			*sum = isnan(*sum) ? value : *sum + value;
	}
}

static void hand_out(struct ts_top *top, const struct ts_top_subject *subject)
{
	struct ts_top_process *process;

	if (subject->subject.kind == TS_METRICS_SYSTEM)
		memcpy(top->system, subject->values, sizeof(top->system));
	if (subject->subject.kind != TS_METRICS_PROCESS &&
	    subject->subject.kind != TS_METRICS_PROCESS_ON_DEVICE)
		return;
	process = ts_top_find_process(top, subject->subject.pid);
	if (!process ||
	    (subject->subject.start_time && subject->subject.start_time != process->start_time))
		return;
	if (subject->subject.kind == TS_METRICS_PROCESS_ON_DEVICE)
		add_device_values(top, process, subject);
	else
		memcpy(process->values, subject->values, sizeof(process->values));
}

/* Processes sort before processes on devices. */
static void hand_out_values(struct ts_top *top)
{
	clear_values(top->system);
	for (size_t i = 0; i < top->process_count; i++)
		clear_values(top->processes[i].values);
	for (size_t i = 0; i < top->subject_count; i++)
		hand_out(top, &top->subjects[i]);
	for (size_t i = 0; i < top->process_count; i++) {
		struct ts_top_process *process = &top->processes[i];

		if (isnan(process->values[TS_TOP_DEVICE_MEMORY]))
			process->values[TS_TOP_DEVICE_MEMORY] = process->user_bytes;
	}
	top->uses_accelerators |= top->device_count > 0;
}

int ts_top_read_values(struct ts_top *top, struct ts_error *err)
{
	int rc = copy_values(top, err);

	if (!rc)
		hand_out_values(top);
	return rc;
}

const struct ts_top_subject *ts_top_device_values(const struct ts_top *top, uint32_t number)
{
	for (size_t i = 0; i < top->subject_count; i++) {
		if (top->subjects[i].subject.kind == TS_METRICS_DEVICE &&
		    top->subjects[i].subject.device == number)
			return &top->subjects[i];
	}
	return NULL;
}

/* ---- the machine ---- */

static void read_machine(struct ts_top *top)
{
	TS_AUTO_FD int fd = ts_io_open("/proc/loadavg", O_RDONLY, 0);
	struct sysinfo info;
	char text[128];
	ssize_t got = fd >= 0 ? ts_read_some(fd, text, sizeof(text) - 1) : 0;
	char *at = text;

	text[TS_MAX(got, 0)] = '\0';
	for (size_t i = 0; i < TS_ARRAY_SIZE(top->load); i++) {
		char *word = strsep(&at, " ");

		top->load[i] = word && *word ? ts_real_parse(word) : NAN;
	}
	top->memory_total = sysinfo(&info) ? NAN : (double)info.totalram * info.mem_unit;
}

/* ---- all ---- */

int ts_top_refresh(struct ts_top *top, struct ts_error *err)
{
	int rc;

	top->looked_ns = ts_clock_monotonic_ns();
	top->uses_accelerators = false;
	for (size_t i = 0; i < top->process_count; i++)
		top->processes[i].seen = false;
	for (size_t i = 0; i < top->area_count; i++)
		top->areas[i].seen = false;
	rc = ts_top_find_targets(top, err);
	if (rc)
		return rc;
	ts_top_find_container_areas(top);
	ts_top_sweep_processes(top);
	ts_top_read_areas(top);
	read_machine(top);
	rc = direct_sampler(top, err);
	if (!rc)
		rc = ts_top_read_values(top, err);
	if (!rc)
		ts_top_shorten_note(top->note, top->messages, top->message_count);
	return rc ? rc : look_at_python(top, err);
}

bool ts_top_is_complete(const struct ts_top *top)
{
	for (size_t i = 0; i < top->process_count; i++) {
		const struct ts_top_process *process = &top->processes[i];

		if (isnan(process->values[TS_TOP_CPU]) &&
		    ts_process_lives(process->pid, process->start_time))
			return false;
	}
	return !isnan(top->system[TS_TOP_CPU_USER]);
}
