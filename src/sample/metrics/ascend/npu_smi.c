/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend NPU metrics from `npu-smi info`: one call for all chips and processes. The tool takes
 * about a second and may hang, so it runs rarely, never twice at once, and backs off while it
 * fails.
 */
#include "sample/metrics/ascend/npu_smi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/procfs.h"
#include "base/subprocess.h"
#include "sample/metrics/ascend/npu_smi_parse.h"
#include "sample/metrics/metric_sources.h"

#define NS_PER_S INT64_C(1000000000)
#define MIB (INT64_C(1) << 20)
#define VENDOR "Ascend"
#define LONGEST_PAUSE_NS (60 * NS_PER_S)

static const char *const folders[] = { "/usr/local/sbin", "/usr/local/bin",
				       "/usr/local/Ascend/driver/tools", NULL };
static const char *const library_folders[] = { "/usr/local/Ascend/driver/lib64",
					       "/usr/local/Ascend/driver/lib64/driver",
					       "/usr/local/Ascend/driver/lib64/common" };

/* ---- opening ---- */

/* The caller's path, and the driver's directories, which a login shell would have added. */
static void set_libraries(struct ts_npu_smi *smi)
{
	const char *given = getenv("LD_LIBRARY_PATH");
	size_t used;

	used = (size_t)snprintf(smi->libraries, sizeof(smi->libraries), "LD_LIBRARY_PATH=%s",
				given ? given : "");
	if (used >= sizeof(smi->libraries)) { /* as it is, then */
		smi->libraries[0] = '\0';
		return;
	}
	for (size_t i = 0; i < TS_ARRAY_SIZE(library_folders); i++) {
		if (access(library_folders[i], R_OK) ||
		    (given && strstr(given, library_folders[i])) ||
		    used + strlen(library_folders[i]) + 2 > sizeof(smi->libraries))
			continue;
		used += (size_t)snprintf(smi->libraries + used, sizeof(smi->libraries) - used,
					 "%s%s", smi->libraries[used - 1] == '=' ? "" : ":",
					 library_folders[i]);
	}
	if (smi->libraries[used - 1] == '=')
		smi->libraries[0] = '\0';
}

static void close_smi(void *state)
{
	struct ts_npu_smi *smi = state;

	if (!smi)
		return;
	ts_device_table_release(&smi->devices);
	free(smi->known);
	free(smi);
}

static enum ts_metrics_state open_smi(void **ret_state, char *why, size_t why_bytes)
{
	struct ts_npu_smi *smi = calloc(1, sizeof(*smi));
	bool has_device;

	if (!smi || ts_device_table_init(&smi->devices, NULL)) {
		snprintf(why, why_bytes, "no memory for npu-smi");
		free(smi);
		return TS_METRICS_BROKEN;
	}
	if (!ts_subprocess_find("npu-smi", folders, smi->program, sizeof(smi->program))) {
		has_device = ts_device_table_has(&smi->devices, VENDOR);
		close_smi(smi);
		snprintf(
			why, why_bytes,
			has_device
				? "Ascend devices found, but no npu-smi in PATH or /usr/local/sbin: install the driver's tools, or mount them into the container"
				: "no npu-smi and no Ascend device");
		return has_device ? TS_METRICS_BROKEN : TS_METRICS_NONE;
	}
	set_libraries(smi);
	/* In a container the tool still prints host pids. */
	smi->sees_host_pids = ts_is_outermost_pid_namespace();
	smi->limit_ns = 5 * NS_PER_S;
	smi->pause_ns = 2 * NS_PER_S;
	smi->max_bytes = 1u << 20;
	*ret_state = smi;
	return TS_METRICS_READY;
}

/* ---- what goes wrong ---- */

static void report(const struct ts_metrics_sink *sink, const char *format, ...)
	TS_PRINTF_LIKE(2, 3);

static void report(const struct ts_metrics_sink *sink, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	sink->message(sink->context, text);
}

/* Retried later, with increasing delay. */
static void back_off(struct ts_npu_smi *smi)
{
	int64_t pause_ns = smi->pause_ns;

	for (unsigned int i = 0; i < smi->failures && pause_ns < LONGEST_PAUSE_NS; i++)
		pause_ns *= 2;
	smi->failures++;
	smi->next_ns = ts_clock_monotonic_ns() + TS_MIN(pause_ns, LONGEST_PAUSE_NS);
}

/* The fix, by the tool's error codes. */
static const char *advice(const char *complaint)
{
	if (strstr(complaint, "-8005"))
		return ": load the driver, or give this user the group of /dev/davinci* (HwHiAiUser)";
	if (strstr(complaint, "-8020"))
		return ": another container uses the device";
	if (strstr(complaint, "shared libraries"))
		return ": add the driver's lib64 folders to LD_LIBRARY_PATH";
	return "";
}

static void report_exit(const struct ts_subprocess_result *result,
			const struct ts_metrics_sink *sink)
{
	char complaint[160], end[128];

	ts_npu_smi_complaint(result->output.data, result->output.length, complaint,
			     sizeof(complaint));
	ts_subprocess_describe_end(result, end, sizeof(end));
	if (complaint[0])
		report(sink, "npu-smi %s, saying '%s'; values are left out%s", end, complaint,
		       advice(complaint));
	else
		report(sink, "npu-smi %s; values are left out", end);
}

/* ---- values ---- */

static void give_integer(const struct ts_metrics_sink *sink,
			 const struct ts_metrics_subject *subject, const char *name,
			 const char *series, int64_t value)
{
	if (value != TS_METRICS_UNKNOWN)
		sink->integer(sink->context, subject, name, series, value);
}

/* The tool prints the power of two chips together; for the oldest, their rated power. */
static const char *power_series(const struct ts_npu_chip *chip)
{
	if (chip->is_rated_power)
		return "rated";
	return chip->is_npu_power ? "card" : "draw";
}

static void give_chip(const struct ts_metrics_sink *sink, const struct ts_npu_chip *chip)
{
	struct ts_metrics_subject subject = { .kind = TS_METRICS_DEVICE, .device = chip->number };
	bool has_memory = chip->used_mib != TS_METRICS_UNKNOWN;

	give_integer(sink, &subject, "utilization_percent", "compute", chip->aicore_percent);
	give_integer(sink, &subject, "utilization_percent", "npu", chip->npu_percent);
	if (has_memory)
		give_integer(sink, &subject, "memory_bytes", "used", chip->used_mib * MIB);
	if (chip->power_mw != TS_METRICS_UNKNOWN)
		sink->real(sink->context, &subject, "power_W", power_series(chip),
			   (double)chip->power_mw / 1e3);
	give_integer(sink, &subject, "temperature_C", "core", chip->temperature_c);
}

static struct ts_npu_known *find_known(struct ts_npu_smi *smi, uint32_t number)
{
	for (size_t i = 0; i < smi->known_count; i++)
		if (smi->known[i].number == number)
			return &smi->known[i];
	return NULL;
}

static bool is_unchanged(const struct ts_npu_known *known, const struct ts_npu_chip *chip)
{
	return known->total_mib == chip->total_mib && strcmp(known->model, chip->model) == 0 &&
	       strcmp(known->bus, chip->bus) == 0;
}

/* Once, and when something changes. Without memory it is announced again, which is harmless. */
static void emit_device(struct ts_npu_smi *smi, const struct ts_npu_chip *chip,
			const struct ts_metrics_sink *sink)
{
	bool has_total = chip->total_mib != TS_METRICS_UNKNOWN;
	struct ts_metrics_device device = {
		.number = chip->number,
		.vendor = VENDOR,
		.model = chip->model,
		.bus = chip->bus,
		.memory_bytes = has_total ? chip->total_mib * MIB : TS_METRICS_UNKNOWN,
	};
	struct ts_npu_known *known = find_known(smi, chip->number);

	/* A chip that is silent for a while keeps its properties. */
	if (known && (chip->is_silent || is_unchanged(known, chip)))
		return;
	if (!known && !ts_grow_array((void **)&smi->known, &smi->known_capacity,
				     smi->known_count + 1, sizeof(*smi->known)))
		known = &smi->known[smi->known_count++];
	if (known) {
		known->number = chip->number;
		known->total_mib = chip->total_mib;
		memcpy(known->model, chip->model, sizeof(known->model));
		memcpy(known->bus, chip->bus, sizeof(known->bus));
	}
	sink->device(sink->context, &device);
}

static void give_chips(struct ts_npu_smi *smi, const struct ts_npu_info *info,
		       const struct ts_metrics_sink *sink)
{
	for (size_t i = 0; i < info->chip_count; i++) {
		const struct ts_npu_chip *chip = &info->chips[i];

		emit_device(smi, chip, sink);
		give_chip(sink, chip);
		if (chip->is_silent)
			report(sink,
			       "NPU %u chip %u does not answer (npu-smi shows zeros only); its values are left out",
			       chip->npu, chip->chip);
		else if (strcmp(chip->health, "OK") != 0)
			report(sink, "NPU %u chip %u: its health is '%s'", chip->npu, chip->chip,
			       chip->health);
	}
}

/*
 * As our pid; 0: not visible here, or gone. In a container a pid is trusted if the process has the
 * device open.
 */
static pid_t visible_pid(const struct ts_npu_smi *smi, const struct ts_npu_process *process)
{
	int64_t pid = process->pid;

	if (smi->sees_host_pids)
		return (pid_t)pid;
	if (process->inner_pid != TS_METRICS_UNKNOWN)
		pid = process->inner_pid;
	return ts_process_has_device(&smi->devices, (pid_t)pid, VENDOR) ? (pid_t)pid : 0;
}

static void give_processes(const struct ts_npu_smi *smi, const struct ts_npu_info *info,
			   const struct ts_metrics_sink *sink)
{
	size_t unseen = 0;

	for (size_t i = 0; i < info->process_count; i++) {
		const struct ts_npu_process *process = &info->processes[i];
		struct ts_metrics_subject subject = { .kind = TS_METRICS_PROCESS_ON_DEVICE,
						      .device = process->number,
						      .pid = visible_pid(smi, process) };

		unseen += !subject.pid;
		if (ts_process_exists(subject.pid, &subject.start_time) &&
		    process->used_mib != TS_METRICS_UNKNOWN)
			give_integer(sink, &subject, "memory_bytes", "used",
				     process->used_mib * MIB);
	}
	if (unseen)
		report(sink,
		       "npu-smi reports host pids in this container; process memory is left out (use the host's pid namespace to see it)");
	if (info->is_incomplete)
		report(sink, "npu-smi lists at most 8 processes per chip; others may be missing");
	if (info->message[0])
		report(sink, "%s", info->message);
}

/* ---- one sample ---- */

/* 0: values were given, or will be. */
static int take_output(struct ts_npu_smi *smi, const struct ts_subprocess_result *result,
		       const struct ts_metrics_sink *sink)
{
	const char *text = result->output.data ? result->output.data : "";
	struct ts_npu_info info;
	struct ts_error why;

	if (result->exit_code == 0 && ts_npu_smi_is_none(text, result->output.length)) {
		report(sink, "npu-smi finds no NPU");
		return 1;
	}
	if (!ts_subprocess_succeeded(result)) {
		report_exit(result, sink);
		back_off(smi);
		return 0;
	}
	if (ts_npu_smi_parse(text, result->output.length, &info, &why)) {
		report(sink, "%s", why.message);
		back_off(smi);
		return 0;
	}
	smi->failures = 0;
	give_chips(smi, &info, sink);
	give_processes(smi, &info, sink);
	ts_npu_info_release(&info);
	return 0;
}

/* A killed npu-smi that hangs in the driver; a second one would hang too. */
static bool does_one_hang(struct ts_npu_smi *smi, const struct ts_metrics_sink *sink)
{
	if (smi->remains && !ts_process_lives(smi->remains, smi->remains_start))
		smi->remains = 0;
	if (!smi->remains)
		return false;
	report(sink,
	       "npu-smi (process %d) was killed but hangs in the driver; values are left out until it ends",
	       (int)smi->remains);
	back_off(smi);
	return true;
}

/*
 * The vendor allows one call at a time per machine; a recorder and `top` take turns by a lock on
 * the program's file. Nobody can hold it longer than one call may take. Closed by the caller.
 */
static int take_turn(const struct ts_npu_smi *smi)
{
	int64_t until_ns = ts_clock_monotonic_ns() + smi->limit_ns;
	int fd = open(smi->program, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK &&
	       ts_clock_monotonic_ns() < until_ns)
		usleep(20000);
	return fd;
}

static int sample_smi(void *state, const struct ts_metrics_sink *sink)
{
	struct ts_npu_smi *smi = state;
	const char *arguments[] = { smi->program, "info", NULL };
	const char *environment[] = { "LC_ALL=C", "LANGUAGE",
				      smi->libraries[0] ? smi->libraries : NULL, NULL };
	struct ts_subprocess program = { .arguments = arguments,
					 .environment = environment,
					 .limit_ns = smi->limit_ns,
					 .max_bytes = smi->max_bytes };
	struct ts_subprocess_result result;
	struct ts_error why;
	TS_AUTO_FD int turn = -1;
	int rc = 0;

	if (ts_clock_monotonic_ns() < smi->next_ns || does_one_hang(smi, sink))
		return 0;
	turn = take_turn(smi);
	if (ts_subprocess_run(&program, &result, &why)) {
		report(sink, "%s; values are left out", why.message);
		back_off(smi);
	} else {
		/* It may take half of the interval at most. */
		smi->next_ns = ts_clock_monotonic_ns() + result.ran_ns;
		smi->remains = result.remains;
		smi->remains_start = result.remains_start;
		rc = take_output(smi, &result, sink);
	}
	ts_subprocess_result_release(&result);
	return rc;
}

const struct ts_metrics_source ts_metrics_npu_smi = {
	.abi = TS_METRICS_ABI,
	.size = sizeof(struct ts_metrics_source),
	.name = "npu-smi",
	.summary = "Ascend NPUs, from npu-smi",
	.least_interval_ns = 2 * NS_PER_S,
	.open = open_smi,
	.sample = sample_smi,
	.close = close_smi,
};
