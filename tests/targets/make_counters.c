/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_counters OUT [ROWS]: writes a trace of 10 s with counters of each kind of subject, with
 * gaps, strings and extreme values; with ROWS, that many rows of one more counter, in chunks that
 * overlap in time. The content is fixed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/writer.h>

#define MS INT64_C(1000000)

static struct ts_writer *writer;

static int64_t text(const char *string)
{
	return ts_writer_string(writer, string, strlen(string));
}

static int64_t bits_of(double real)
{
	int64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

/* ---- subjects ---- */

static void add_process(int64_t pid, const char *name, int64_t end)
{
	struct ts_process_row process = ts_process_none;
	struct ts_thread_row thread = ts_thread_none;

	process.id = ts_writer_new_id(writer, TS_TABLE_PROCESS);
	process.pid = pid;
	process.name = text(name);
	process.end = end;
	ts_writer_add(writer, TS_TABLE_PROCESS, &process, NULL);
	thread.id = ts_writer_new_id(writer, TS_TABLE_THREAD);
	thread.process = process.id;
	thread.tid = pid;
	thread.name = text("main");
	ts_writer_add(writer, TS_TABLE_THREAD, &thread, NULL);
}

static void add_device(int64_t number, const char *vendor, const char *model)
{
	struct ts_device_row device = ts_device_none;

	device.id = ts_writer_new_id(writer, TS_TABLE_DEVICE);
	device.number = number;
	device.vendor = text(vendor);
	device.name = text(model);
	ts_writer_add(writer, TS_TABLE_DEVICE, &device, NULL);
}

/* ---- rows ---- */

/* A row of up to two series; a type of 0 omits one. */
static void add(struct ts_counter_row row, const char *keys[2], const uint8_t types[2],
		const int64_t values[2])
{
	struct ts_field fields[2] = { { 0 } };
	int64_t stored[2];
	uint32_t count = 0, value_count = 0;

	for (int i = 0; i < 2; i++) {
		if (!types[i])
			continue;
		fields[count].key = (uint32_t)text(keys[i]);
		fields[count++].type = types[i];
		if (ts_arg_has_value(types[i]))
			stored[value_count++] = values[i];
	}
	row.shape = ts_writer_shape(writer, fields, count);
	ts_writer_add(writer, TS_TABLE_COUNTER, &row, stored);
}

static void add_reals(struct ts_counter_row row, const char *first, double a, const char *second,
		      double b)
{
	add(row, (const char *[]){ first, second },
	    (const uint8_t[]){ TS_ARG_DOUBLE, second ? TS_ARG_DOUBLE : 0 },
	    (const int64_t[]){ bits_of(a), bits_of(b) });
}

static void add_integers(struct ts_counter_row row, const char *first, int64_t a,
			 const char *second, int64_t b)
{
	add(row, (const char *[]){ first, second },
	    (const uint8_t[]){ TS_ARG_INT, second ? TS_ARG_INT : 0 }, (const int64_t[]){ a, b });
}

static struct ts_counter_row counter(const char *name, const char *category, int64_t process,
				     int64_t device, int64_t ms)
{
	struct ts_counter_row row = ts_counter_none;

	row.start = ms * MS;
	row.name = text(name);
	row.category = text(category);
	row.process = process;
	row.device = device;
	return row;
}

/* The machine, 10 times a second, but not from 4 s to 8 s. */
static void add_system(void)
{
	for (int64_t ms = 0; ms <= 10000; ms += 100) {
		if (ms >= 4000 && ms < 8000)
			continue;
		add_reals(counter("cpu_percent", "system", 0, 0, ms), "user",
			  (double)(ms % 1000) / 10, "system", ms < 5000 ? 10 : 0);
	}
}

/* A process that exits at 6 s, and whose rss cannot be read from 3 s on. */
static void add_processes(void)
{
	for (int64_t ms = 0; ms < 6000; ms += 100) {
		struct ts_counter_row row = counter("memory_bytes", "process", 1, 0, ms);

		if (ms < 3000)
			add_integers(row, "vms", INT64_C(3) << 30, "rss", (ms + 100) << 16);
		else
			add_integers(row, "vms", INT64_C(3) << 30, NULL, 0);
		add_integers(counter("disk_bytes_per_s", "process", 1, 0, ms), "written",
			     ms == 3000 ? 50 << 20 : 0, NULL, 0);
	}
	add_integers(counter("threads", "process", 2, 0, 5000), "count", 8, NULL, 0);
}

static void add_devices(void)
{
	for (int64_t ms = 0; ms <= 10000; ms += 500) {
		add_integers(counter("utilization_percent", "device", 0, 1, ms), "compute",
			     ms < 5000 ? 0 : 100, NULL, 0);
		add_reals(counter("power_W", "device", 0, 2, ms), "draw", 350.5, NULL, 0);
		add_integers(counter("memory_bytes", "device", 1, 1, ms), "used", INT64_C(2) << 30,
			     NULL, 0);
	}
}

/* Counters of a program: values hold until the next. */
static void add_thread(void)
{
	struct ts_counter_row row = counter("queue", "app", 0, 0, 1000);

	row.thread = 1;
	add_integers(row, "depth", 4, NULL, 0);
	row.start = 9000 * MS;
	add_integers(row, "depth", 8, NULL, 0);
	row.name = text("state");
	add(row, (const char *[]){ "mode", "load" },
	    (const uint8_t[]){ TS_ARG_STRING, TS_ARG_DOUBLE },
	    (const int64_t[]){ text("busy\nwaiting"), bits_of(NAN) });
	row.name = text("huge");
	row.id = text("7");
	add(row, (const char *[]){ "integer", "real" },
	    (const uint8_t[]){ TS_ARG_INT, TS_ARG_DOUBLE },
	    (const int64_t[]){ INT64_MAX, bits_of(-INFINITY) });
	row.start++;
	add(row, (const char *[]){ "integer", "real" },
	    (const uint8_t[]){ TS_ARG_INT, TS_ARG_DOUBLE },
	    (const int64_t[]){ INT64_MAX - 2, bits_of(1e-9) });
	row.start++;
	add(row, (const char *[]){ "integer", "real" },
	    (const uint8_t[]){ TS_ARG_NULL, TS_ARG_BOOL }, (const int64_t[]){ 0, 1 });
}

/* Every other half of an interval precedes the one that it follows. */
static void add_many(int64_t rows)
{
	const int64_t stretch = 100000;

	for (int64_t i = 0; i < rows; i++) {
		int64_t at = i / stretch % 2 ? i - stretch : i + stretch;
		struct ts_counter_row row = counter("many", "app", 1, 0, 0);

		row.start = (at < rows ? at : i) * (10000 * MS / (rows + 1));
		add_integers(row, "value", at < rows ? at % 1000 : 0, "constant", 7);
	}
}

int main(int argc, char **argv)
{
	struct ts_error err;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: make_counters OUT [ROWS]\n");
		return 2;
	}
	if (ts_writer_open(&writer, argv[1], NULL, &err)) {
		fprintf(stderr, "make_counters: %s\n", err.message);
		return 1;
	}
	add_process(100, "train", 6000 * MS);
	add_process(99, "helper", TS_ABSENT);
	add_device(0, "NVIDIA", "NVIDIA H100 80GB HBM3");
	add_device(1, "AMD", "Instinct MI300X");
	add_system();
	add_processes();
	add_devices();
	add_thread();
	if (argc == 3)
		add_many(strtoll(argv[2], NULL, 10));
	if (ts_writer_finish(writer, &err)) {
		fprintf(stderr, "make_counters: %s\n", err.message);
		return 1;
	}
	ts_writer_close(writer);
	return 0;
}
