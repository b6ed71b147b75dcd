/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write OUT [--rows N | --bytes N] [--table both|gpu_op] [--threads N] [--json-lines]
 *
 * Writes rows like those of a training loop (operators with dimensions, kernels with geometry,
 * times with noise in their low digits) and prints the rate as one JSON line. --json-lines writes
 * the same rows as text with fprintf, for comparison. Names and shapes are interned once, as a
 * recorder does; generating the rows takes some ns each.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <tracesmith/writer.h>

#define NAMES 200
#define DIMENSIONS 64

static uint64_t state = 88172645463325252u;

static inline uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Strings and shapes that are interned before the rows. */
struct texts {
	int64_t operators[NAMES], kernels[NAMES], dimensions[DIMENSIONS];
	char operator_text[NAMES][32], kernel_text[NAMES][64], dimension_text[DIMENSIONS][48];
	int64_t cpu_op, kernel, types;
	uint32_t slice_shape, gpu_op_shape;
};

static void make_texts(struct texts *texts)
{
	for (int i = 0; i < NAMES; i++) {
		snprintf(texts->operator_text[i], sizeof(texts->operator_text[i]),
			 "aten::operator_%d", i);
		snprintf(texts->kernel_text[i], sizeof(texts->kernel_text[i]),
			 "void gemm_kernel<%d, float, 4>(float*, float const*, int)", i);
	}
	for (int i = 0; i < DIMENSIONS; i++)
		snprintf(texts->dimension_text[i], sizeof(texts->dimension_text[i]),
			 "[[%d,1024],[1024,%d],[]]", 8 << i % 8, 64 << i / 8);
}

static int64_t intern(struct ts_writer *writer, const char *text)
{
	return ts_writer_string(writer, text, strlen(text));
}

static void intern_all(struct ts_writer *writer, struct texts *texts)
{
	struct ts_field slice[] = {
		{ .key = (uint32_t)intern(writer, "External id"), .type = TS_ARG_INT },
		{ .key = (uint32_t)intern(writer, "Sequence number"), .type = TS_ARG_INT },
		{ .key = (uint32_t)intern(writer, "Input Dims"), .type = TS_ARG_JSON },
		{ .key = (uint32_t)intern(writer, "Input type"), .type = TS_ARG_JSON },
	};
	struct ts_field gpu_op[] = {
		{ .key = (uint32_t)intern(writer, "External id"), .type = TS_ARG_INT },
		{ .key = (uint32_t)intern(writer, "device"),
		  .type = TS_ARG_COLUMN,
		  .column = TS_COMPUTED_DEVICE },
		{ .key = (uint32_t)intern(writer, "stream"),
		  .type = TS_ARG_COLUMN,
		  .column = TS_COMPUTED_STREAM },
		{ .key = (uint32_t)intern(writer, "correlation"),
		  .type = TS_ARG_COLUMN,
		  .column = 8 },
		{ .key = (uint32_t)intern(writer, "warps per SM"), .type = TS_ARG_DOUBLE },
		{ .key = (uint32_t)intern(writer, "est. achieved occupancy %"),
		  .type = TS_ARG_INT },
	};

	for (int i = 0; i < NAMES; i++) {
		texts->operators[i] = intern(writer, texts->operator_text[i]);
		texts->kernels[i] = intern(writer, texts->kernel_text[i]);
	}
	for (int i = 0; i < DIMENSIONS; i++)
		texts->dimensions[i] = intern(writer, texts->dimension_text[i]);
	texts->cpu_op = intern(writer, "cpu_op");
	texts->kernel = intern(writer, "kernel");
	texts->types = intern(writer, "[\"float\",\"float\",\"Scalar\"]");
	texts->slice_shape = ts_writer_shape(writer, slice, 4);
	texts->gpu_op_shape = ts_writer_shape(writer, gpu_op, 6);
}

/* One row of either table, before it is written. */
struct event {
	int64_t start, duration;
	uint64_t number;
	unsigned int name, dimension, stream, grid, occupancy;
	double warps;
};

/* Kernels come in bursts of the same few names, like the layers of a model. */
static inline void make_event(struct event *event, uint64_t number)
{
	uint64_t noise = next_random();

	event->number = number;
	event->start += 300 + (int64_t)(noise & 4095);
	event->duration = 1500 + (int64_t)(noise >> 12 & 0x3fff);
	event->name = (unsigned int)((number / 3 + (noise >> 26 & 3)) % NAMES);
	event->dimension = (unsigned int)(noise >> 28 & (DIMENSIONS - 1));
	event->stream = noise >> 34 & 7 ? 0 : 1;
	event->grid = 1u << (noise >> 37 & 7);
	event->occupancy = (unsigned int)(noise >> 40 & 63);
	event->warps = (double)(noise >> 46 & 31) * 0.25;
}

static inline int add_slice(struct ts_writer *writer, const struct texts *texts,
			    const struct event *event)
{
	struct ts_slice_row slice = ts_slice_none;
	int64_t values[4] = { (int64_t)event->number, (int64_t)event->number / 2,
			      texts->dimensions[event->dimension], texts->types };

	slice.start = event->start;
	slice.duration = event->duration;
	slice.thread = 1;
	slice.name = texts->operators[event->name];
	slice.category = texts->cpu_op;
	slice.shape = texts->slice_shape;
	return ts_writer_add(writer, TS_TABLE_SLICE, &slice, values);
}

static inline int add_gpu_op(struct ts_writer *writer, const struct texts *texts,
			     const struct event *event)
{
	struct ts_gpu_op_row op = ts_gpu_op_none;
	int64_t values[3] = { (int64_t)event->number, 0, event->occupancy };

	memcpy(&values[1], &event->warps, sizeof(event->warps));
	op.start = event->start;
	op.duration = event->duration;
	op.device = 1;
	op.stream = 1 + event->stream;
	op.kind = TS_GPU_OP_KERNEL;
	op.name = texts->kernels[event->name];
	op.category = texts->kernel;
	op.correlation = (int64_t)event->number;
	op.context = 1;
	op.grid_x = event->grid;
	op.grid_y = op.grid_z = 1;
	op.block_x = 128;
	op.block_y = op.block_z = 1;
	op.registers = 32;
	op.arrow = TS_ARROW_IN;
	op.shape = texts->gpu_op_shape;
	return ts_writer_add(writer, TS_TABLE_GPU_OP, &op, values);
}

static void print_slice(FILE *out, const struct texts *texts, const struct event *event)
{
	fprintf(out,
		"{\"table\":\"slice\",\"start\":%" PRId64 ",\"duration\":%" PRId64
		",\"thread\":1,\"name\":\"%s\",\"category\":\"cpu_op\",\"args\":{\"External id\":%" PRIu64
		",\"Sequence number\":%" PRIu64
		",\"Input Dims\":%s,\"Input type\":[\"float\",\"float\",\"Scalar\"]}}\n",
		event->start, event->duration, texts->operator_text[event->name], event->number,
		event->number / 2, texts->dimension_text[event->dimension]);
}

static void print_gpu_op(FILE *out, const struct texts *texts, const struct event *event)
{
	fprintf(out,
		"{\"table\":\"gpu_op\",\"start\":%" PRId64 ",\"duration\":%" PRId64
		",\"device\":0,\"stream\":%u,\"name\":\"%s\",\"category\":\"kernel\",\"correlation\":%" PRIu64
		",\"context\":1,\"grid\":[%u,1,1],\"block\":[128,1,1],\"registers\":32,\"args\":{\"External id\":%" PRIu64
		",\"warps per SM\":%.2f,\"est. achieved occupancy %%\":%u}}\n",
		event->start, event->duration, 7 + event->stream, texts->kernel_text[event->name],
		event->number, event->grid, event->number, event->warps, event->occupancy);
}

struct settings {
	const char *path;
	uint64_t rows, bytes;
	bool only_gpu_ops, json_lines;
	int threads;
};

static int write_json_lines(const struct settings *settings, struct texts *texts,
			    uint64_t *ret_rows)
{
	FILE *out = fopen(settings->path, "w");
	struct event event = { 0 };

	if (!out) {
		perror(settings->path);
		return 1;
	}
	for (uint64_t i = 0; i < settings->rows; i++) {
		make_event(&event, i);
		if (settings->only_gpu_ops || i % 2)
			print_gpu_op(out, texts, &event);
		else
			print_slice(out, texts, &event);
	}
	*ret_rows = settings->rows;
	return fclose(out) != 0;
}

static void add_entities(struct ts_writer *writer)
{
	struct ts_thread_row thread = ts_thread_none;
	struct ts_device_row device = ts_device_none;

	thread.id = ts_writer_new_id(writer, TS_TABLE_THREAD);
	thread.tid = 4242;
	ts_writer_add(writer, TS_TABLE_THREAD, &thread, NULL);
	device.id = ts_writer_new_id(writer, TS_TABLE_DEVICE);
	device.number = 0;
	ts_writer_add(writer, TS_TABLE_DEVICE, &device, NULL);
	for (int i = 0; i < 2; i++) {
		struct ts_stream_row stream = ts_stream_none;

		stream.id = ts_writer_new_id(writer, TS_TABLE_STREAM);
		stream.device = device.id;
		stream.number = 7 + i;
		ts_writer_add(writer, TS_TABLE_STREAM, &stream, NULL);
	}
}

static int write_trace(const struct settings *settings, struct texts *texts, uint64_t *ret_rows)
{
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = settings->threads };
	struct event event = { 0 };
	struct ts_writer *writer;
	struct ts_error err;
	uint64_t i;

	if (ts_writer_open(&writer, settings->path, &options, &err)) {
		fprintf(stderr, "write: %s\n", err.message);
		return 1;
	}
	intern_all(writer, texts);
	add_entities(writer);
	for (i = 0;
	     settings->bytes ? ts_writer_bytes(writer) < settings->bytes : i < settings->rows;
	     i++) {
		make_event(&event, i);
		if (settings->only_gpu_ops || i % 2 ? add_gpu_op(writer, texts, &event)
						    : add_slice(writer, texts, &event))
			break;
	}
	*ret_rows = i;
	if (ts_writer_finish(writer, &err)) {
		fprintf(stderr, "write: %s\n", err.message);
		ts_writer_close(writer);
		return 1;
	}
	ts_writer_close(writer);
	return 0;
}

static int usage(void)
{
	fputs("usage: write OUT [--rows N | --bytes N] [--table both|gpu_op] [--threads N] [--json-lines]\n",
	      stderr);
	return 2;
}

static int parse(int argc, char **argv, struct settings *settings)
{
	*settings = (struct settings){ .rows = 4000000, .threads = -1 };
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--json-lines")) {
			settings->json_lines = true;
			continue;
		}
		if (argv[i][0] != '-') {
			settings->path = argv[i];
			continue;
		}
		if (!strcmp(argv[i], "--rows"))
			settings->rows = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--bytes"))
			settings->bytes = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--table"))
			settings->only_gpu_ops = !strcmp(value, "gpu_op");
		else if (!strcmp(argv[i], "--threads"))
			settings->threads =
				strtol(value, NULL, 10) > 0 ? (int)strtol(value, NULL, 10) : -1;
		else
			return usage();
		i++;
	}
	return settings->path ? 0 : usage();
}

int main(int argc, char **argv)
{
	static struct texts texts;
	struct settings settings;
	struct stat status = { 0 };
	double wall, cpu;
	uint64_t rows = 0;
	int code = parse(argc, argv, &settings);

	if (code)
		return code;
	make_texts(&texts);
	wall = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	code = settings.json_lines ? write_json_lines(&settings, &texts, &rows)
				   : write_trace(&settings, &texts, &rows);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = seconds(CLOCK_MONOTONIC) - wall;
	if (code)
		return code;
	stat(settings.path, &status);
	printf("{\"bench\":\"write\",\"rows\":%" PRIu64
	       ",\"bytes\":%lld,\"seconds\":%.6f,\"cpu_seconds\":%.6f"
	       ",\"rows_per_second\":%.0f}\n",
	       rows, (long long)status.st_size, wall, cpu, (double)rows / cpu);
	return 0;
}
