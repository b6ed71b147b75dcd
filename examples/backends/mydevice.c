/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A third-party source of metrics: copy this file to write your own.
 *
 *	cc -shared -fPIC $(pkg-config --cflags tracesmith-emit) \
 *		-o libtracesmith-backend-mydevice.so mydevice.c
 *	LD_LIBRARY_PATH=. tracesmith record --backends host,mydevice -- ./program
 *	tracesmith info --counters trace.sbt
 *
 * The device is a text file named by MYDEVICE_STATUS, in the form that a driver might use: lines
 * "key value" for utilization (percent), power (milliwatts), temperature (degrees) and memory
 * (KiB), and "process PID KiB" for each process that uses it. A key that is missing or not a number
 * is omitted, never reported as 0.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/backend.h>

struct mydevice {
	const char *path;
	int described; /* the device has been described */
};

/* Is there a device? Called once, on the sampling thread. */
static enum ts_metrics_state open_device(void **ret_state, char *why, size_t why_bytes)
{
	const char *path = getenv("MYDEVICE_STATUS");
	struct mydevice *device;
	FILE *file;

	if (!path)
		return TS_METRICS_NONE;
	file = fopen(path, "re");
	if (!file) {
		snprintf(why, why_bytes, "cannot read '%s': %s; set MYDEVICE_STATUS", path,
			 strerror(errno));
		return TS_METRICS_BROKEN;
	}
	fclose(file);
	device = calloc(1, sizeof(*device));
	if (!device)
		return TS_METRICS_NONE;
	device->path = path;
	*ret_state = device;
	return TS_METRICS_READY;
}

static void close_device(void *state)
{
	free(state);
}

/* Describes the device: once, before its first value. */
static void describe_device(struct mydevice *device, const struct ts_metrics_sink *sink)
{
	const struct ts_metrics_device about = {
		.number = 0,
		.vendor = "Example",
		.model = "MyDevice 1",
		.memory_bytes = TS_METRICS_UNKNOWN,
	};

	if (!device->described)
		sink->device(sink->context, &about);
	device->described = 1;
}

/* Parses the number after a key and a space; false: another key, or not a number. */
static bool number_of(const char *line, const char *key, double *ret_number)
{
	size_t length = strlen(key);
	char *end;

	if (strncmp(line, key, length) != 0 || line[length] != ' ')
		return false;
	*ret_number = strtod(line + length, &end);
	return end != line + length && *end == '\n';
}

/* "process PID KiB" */
static void give_process(const struct ts_metrics_sink *sink, const char *text)
{
	struct ts_metrics_subject subject = { .kind = TS_METRICS_PROCESS_ON_DEVICE, .device = 0 };
	char *end, *last;
	long long bytes;

	subject.pid = (int32_t)strtol(text, &end, 10);
	bytes = strtoll(end, &last, 10) * 1024;
	if (subject.pid > 0 && last != end)
		sink->integer(sink->context, &subject, "memory_bytes", "used", bytes);
}

/* Parses a line of the file; ignores unknown keys. */
static void give_line(const struct ts_metrics_sink *sink, const char *line)
{
	const struct ts_metrics_subject subject = { .kind = TS_METRICS_DEVICE, .device = 0 };
	double number;

	if (number_of(line, "utilization", &number))
		sink->real(sink->context, &subject, "utilization_percent", "compute", number);
	else if (number_of(line, "power", &number))
		sink->real(sink->context, &subject, "power_W", "draw", number / 1000);
	else if (number_of(line, "temperature", &number))
		sink->real(sink->context, &subject, "temperature_C", "core", number);
	else if (number_of(line, "memory", &number))
		sink->integer(sink->context, &subject, "memory_bytes", "used",
			      (int64_t)number * 1024);
	else if (strncmp(line, "process ", 8) == 0)
		give_process(sink, line + 8);
}

/* May be slow: it delays nothing else. Non-zero: the device can no longer be read. */
static int sample_device(void *state, const struct ts_metrics_sink *sink)
{
	struct mydevice *device = state;
	FILE *file = fopen(device->path, "re");
	char line[256];

	if (!file) {
		sink->message(sink->context,
			      "the status of the device has gone: is its driver still loaded?");
		return 1;
	}
	describe_device(device, sink);
	while (fgets(line, sizeof(line), file))
		give_line(sink, line);
	fclose(file);
	return 0;
}

static const struct ts_metrics_source source = {
	.abi = TS_METRICS_ABI,
	.size = sizeof(source),
	.name = "mydevice",
	.summary = "a device in a text file",
	.least_interval_ns = 20000000,
	.open = open_device,
	.sample = sample_device,
	.close = close_device,
};

/* The symbol that the loader looks up. */
__attribute__((visibility("default"))) extern const struct ts_backend ts_backend;

const struct ts_backend ts_backend = {
	.abi = TS_BACKEND_ABI,
	.size = sizeof(ts_backend),
	.name = "mydevice",
	.summary = "a device in a text file",
	.metrics = &source,
};
