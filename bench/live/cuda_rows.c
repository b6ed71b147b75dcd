/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_rows TRACE [--launches N] [--step N] [--columns]: measures the size of kernel launches in a
 * trace, and how fast records are decoded into rows. The records imitate a training loop: a step of
 * 36 launches, at jittered times, with stacks, registers and sizes; one kernel per 4 launches and
 * one call site per 2; one call in 50 without a command; one allocation per 5. Drained every 10 ms,
 * calls before commands. Prints one JSON line: bytes per launch (of the whole trace) and launches
 * per CPU second, for decoding alone and with compression; with --columns, first the bytes per
 * launch of each column. The times are synthetic, so the size depends on their jitter. Uses private
 * headers.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tracesmith/writer.h>

#include "base/text.h"
#include "live/journal.h"
#include "live/local/live_records.h"
#include "record/decode/decoder.h"
#include "sbt/file.h"

#define AREA 1u
#define STEP_MOST 4096u
#define STACK_DEPTH 45u
#define DRAIN_NS 10000000u

enum { RING_CALLS, RING_COMMANDS, RINGS };

struct bench {
	struct ts_decoder *decoder;
	struct ts_writer *writer;
	struct ts_text dictionary;
	struct ts_text rings[RINGS];
	uint64_t positions[RINGS], events[RINGS], new_events[RINGS];
	uint32_t entries;
	uint32_t launch_site, allocation_site;
	uint32_t step_launches, kernels, call_sites;
	uint32_t kernel_sites[STEP_MOST], stacks[STEP_MOST];
	struct {
		uint32_t kernel, call_site, calls;
	} plan[STEP_MOST];
	uint64_t random;
	uint64_t drained_ns;
	uint64_t journal_bytes;
};

static void die(const char *why)
{
	fprintf(stderr, "cuda_rows: %s\n", why);
	exit(1);
}

static double cpu_seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- numbers ---- */

static uint64_t draw(struct bench *bench)
{
	bench->random ^= bench->random << 13;
	bench->random ^= bench->random >> 7;
	bench->random ^= bench->random << 17;
	return bench->random;
}

/* Around a mean, with a tail to the right, like durations of real calls. */
static uint64_t jittered(struct bench *bench, double mean, double share)
{
	double uniform = ((double)(draw(bench) >> 11) + 1) / 9007199254740993.0;
	double other = (double)(draw(bench) >> 11) / 9007199254740992.0;
	double normal = sqrt(-2 * log(uniform)) * cos(2 * M_PI * other);

	return (uint64_t)(mean * exp(share * normal));
}

/* ---- blocks ---- */

static void give(struct bench *bench, struct ts_block *block, const void *payload)
{
	struct ts_error err;

	bench->journal_bytes += sizeof(*block) + block->bytes;
	if (ts_decoder_block(bench->decoder, block, payload, &err))
		die(err.message);
}

static void give_plain(struct bench *bench, unsigned int type, uint64_t area, const void *payload,
		       size_t bytes)
{
	struct ts_block block = { .type = (uint16_t)type, .bytes = (uint32_t)bytes, .area = area };

	give(bench, &block, payload);
}

static void give_ring(struct bench *bench, uint32_t ring)
{
	struct ts_text *bytes = &bench->rings[ring];
	struct ts_block block = { .type = TS_BLOCK_RING,
				  .bytes = (uint32_t)bytes->length,
				  .ring = ring,
				  .area = AREA,
				  .from = bench->positions[ring],
				  .to = bench->positions[ring] + bytes->length,
				  .events = bench->events[ring] += bench->new_events[ring] };

	give(bench, &block, bytes->data);
	bench->positions[ring] = block.to;
	bench->new_events[ring] = 0;
	ts_text_clear(bytes);
}

/* ---- dictionary ---- */

static uint32_t put_entry(struct bench *bench, unsigned int kind, const char *name,
			  const char *category, uint32_t line, const uint64_t *word)
{
	struct ts_text *dictionary = &bench->dictionary;
	size_t at = dictionary->length;
	struct ts_live_site site = { .kind = (uint8_t)kind,
				     .name_bytes = (uint16_t)strlen(name),
				     .category_bytes = (uint16_t)strlen(category),
				     .line = line };

	ts_text_append(dictionary, &site, sizeof(site));
	ts_text_append_str(dictionary, name);
	ts_text_append_str(dictionary, category);
	while (dictionary->length % 8)
		ts_text_append_char(dictionary, 0);
	if (word)
		ts_text_append(dictionary, word, sizeof(*word));
	site.bytes = (uint32_t)(dictionary->length - at);
	memcpy(dictionary->data + at, &site, sizeof(site));
	return ++bench->entries;
}

/* All call sites share half of their frames, like the outer loops of a program. */
static uint32_t put_stack(struct bench *bench, uint32_t call_site, uint32_t module)
{
	static uint32_t shared;
	uint32_t stack = shared;

	for (uint32_t depth = stack ? STACK_DEPTH / 2 : 0; depth < STACK_DEPTH; depth++) {
		uint64_t frame = (uint64_t)module << 32 | (depth * 4096 + call_site * 16);

		stack = put_entry(bench, TS_LIVE_CODE_STACK, "", "", stack, &frame);
		if (depth == STACK_DEPTH / 2 - 1)
			shared = stack;
	}
	return stack;
}

static void put_dictionary(struct bench *bench)
{
	struct ts_block block = { .type = TS_BLOCK_DICTIONARY, .area = AREA };
	uint32_t module;
	char name[256];

	bench->launch_site = put_entry(bench, TS_LIVE_CALL, "cuLaunchKernel", "cuda", 0, NULL);
	bench->allocation_site =
		put_entry(bench, TS_LIVE_ALLOCATION, "cuMemAlloc_v2", "cuda", 0, NULL);
	for (uint32_t i = 0; i < bench->kernels; i++) {
		snprintf(name, sizeof(name),
			 "_ZN2at6native29vectorized_elementwise_kernelILi4EEEviT%u_", i);
		bench->kernel_sites[i] = put_entry(bench, TS_LIVE_GPU_OP, name, "kernel", 0, NULL);
	}
	module =
		put_entry(bench, TS_LIVE_CODE_MODULE, "/lib/libtorch_cuda.so", "00112233", 0, NULL);
	for (uint32_t i = 0; i < bench->call_sites; i++)
		bench->stacks[i] = put_stack(bench, i, module);
	block.bytes = (uint32_t)bench->dictionary.length;
	block.to = block.bytes;
	give(bench, &block, bench->dictionary.data);
}

/* ---- records ---- */

static void put_record(struct bench *bench, uint32_t ring, unsigned int kind, unsigned int flags,
		       uint32_t site, uint64_t counter, const uint64_t *words, size_t count)
{
	uint64_t first[2] = { ts_live_head(2 + count, kind, flags, site), counter };

	ts_text_append(&bench->rings[ring], first, sizeof(first));
	ts_text_append(&bench->rings[ring], words, count * sizeof(*words));
	bench->new_events[ring] += (uint64_t)ts_live_kind_is_event(kind);
}

static void put_thread(struct bench *bench, uint32_t ring, const char *name)
{
	struct ts_live_thread_record record = { .head = { .words = sizeof(record) / 8,
							  .kind = TS_LIVE_THREAD },
						.counter = 1,
						.tid = 100 + ring,
						.serial = 1 + ring };

	memcpy(record.name, name, strlen(name));
	ts_text_append(&bench->rings[ring], &record, sizeof(record));
}

static void put_clock(struct bench *bench, uint64_t now)
{
	uint64_t words[5] = { 0, now, now, 100, 0 };

	put_record(bench, RING_COMMANDS, TS_LIVE_DEVICE_CLOCK, 0, 0, now, words, 5);
}

static void put_call(struct bench *bench, uint64_t correlation, uint32_t stack, uint64_t start,
		     uint64_t end)
{
	uint64_t words[4] = { end - start, correlation, 0, stack };

	put_record(bench, RING_CALLS, TS_LIVE_CALL, TS_LIVE_FLAG_STACK_IS | TS_LIVE_FLAG_TICKS,
		   bench->launch_site, end, words, 4);
}

static void put_kernel(struct bench *bench, uint64_t correlation, uint32_t kernel, uint64_t start,
		       uint64_t end)
{
	struct {
		struct ts_live_gpu_op op;
		struct ts_live_gpu_op_more more;
	} fixed = {
		.op = { .correlation = correlation,
			.device_kind = ts_live_device_kind(0, TS_GPU_OP_KERNEL),
			.stream = 7,
			.context = 1,
			.queued = TS_ABSENT,
			.submitted = TS_ABSENT,
			.start = (int64_t)start,
			.end = (int64_t)end,
			.grid = { 64u << kernel % 12, 1, 1 },
			.block = { 128, 1, 1 },
			.bytes = TS_ABSENT },
		.more = { .registers = 16 + kernel % 30 * 8, .shared_bytes = kernel % 20 * 1024 },
	};

	put_record(bench, RING_COMMANDS, TS_LIVE_GPU_OP, TS_LIVE_FLAG_MORE,
		   bench->kernel_sites[kernel], end, (const uint64_t *)(const void *)&fixed,
		   TS_LIVE_WORDS(fixed));
}

static void put_allocation(struct bench *bench, uint32_t number, uint64_t now)
{
	struct {
		struct ts_live_allocation allocation;
		uint64_t stack;
	} fixed = {
		.allocation = { .device_kind = ts_live_device_kind(0, number & 1),
				.stream = UINT32_MAX,
				.address = UINT64_C(0x7f0000000000) + (number / 2) * 0x200000,
				.bytes = 0x200000,
				.total = 0x10000000 + (number & 1) * 0x200000,
				.reserved = TS_ABSENT },
		.stack = bench->stacks[number % bench->call_sites],
	};

	put_record(bench, RING_CALLS, TS_LIVE_ALLOCATION, TS_LIVE_FLAG_STACK_IS,
		   bench->allocation_site, now, (const uint64_t *)(const void *)&fixed,
		   TS_LIVE_WORDS(fixed));
}

/* ---- run ---- */

static void draw_plan(struct bench *bench, uint32_t launches)
{
	bench->step_launches = launches;
	bench->kernels = launches / 4 + 1;
	bench->call_sites = launches / 2 + 1;
	for (uint32_t i = 0; i < launches; i++) {
		bench->plan[i].kernel = (uint32_t)(draw(bench) % bench->kernels);
		bench->plan[i].call_site = (uint32_t)(draw(bench) % bench->call_sites);
		bench->plan[i].calls = 1 + (uint32_t)(draw(bench) % 3);
	}
}

static void begin(struct bench *bench, const char *path)
{
	struct ts_writer_options options = { .size = sizeof(options) };
	struct ts_block_open open = { .version = TS_JOURNAL_VERSION,
				      .counter_mult = UINT64_C(1) << 32,
				      .trace_start_ns = 5000000000,
				      .clock = TS_LIVE_CLOCK_COUNTER,
				      .started_counter = 1,
				      .started_monotonic_ns = 1,
				      .processors = 2,
				      .host = "box" };
	struct ts_block_area area = { .control = { .version = TS_LIVE_VERSION,
						   .pid = 100,
						   .area_id = AREA,
						   .image = 1,
						   .clock = TS_LIVE_CLOCK_COUNTER,
						   .dictionary = TS_LIVE_DICTIONARY,
						   .pool = TS_LIVE_DICTIONARY +
							   TS_LIVE_DICTIONARY_GREATEST,
						   .created = { 1, 1, 1 },
						   .enabled = TS_LIVE_ENABLED,
						   .step_open = TS_ABSENT,
						   .name = "train" },
				      .pid = 100,
				      .seen_counter = 1 };
	struct ts_error err;

	if (ts_writer_open(&bench->writer, path, &options, &err) ||
	    ts_decoder_new(&bench->decoder, NULL, &err) ||
	    ts_decoder_set_writer(bench->decoder, bench->writer, false, "cuda_rows"))
		die("cannot begin the trace");
	give_plain(bench, TS_BLOCK_OPEN, 0, &open, sizeof(open));
	give_plain(bench, TS_BLOCK_AREA, AREA, &area, sizeof(area));
	put_dictionary(bench);
	put_thread(bench, RING_CALLS, "train");
	put_thread(bench, RING_COMMANDS, "ts-cuda");
}

static void drain(struct bench *bench, uint64_t now)
{
	if (now - bench->drained_ns < DRAIN_NS)
		return;
	bench->drained_ns = now;
	put_clock(bench, now);
	for (uint32_t ring = 0; ring < RINGS; ring++)
		give_ring(bench, ring);
}

static void run(struct bench *bench, uint64_t launches)
{
	uint64_t now = 1000000, busy_until = 0, correlation = 1000;
	uint32_t of_step = 0;

	for (uint64_t i = 0; i < launches; i++) {
		uint32_t kernel = bench->plan[of_step].kernel;
		uint64_t start, length = jittered(bench, 3500, 0.12);

		now += jittered(bench, 25000 + of_step % 7 * 2000.0, 0.2);
		correlation += bench->plan[of_step].calls + (draw(bench) % 50 == 0);
		put_call(bench, correlation, bench->stacks[bench->plan[of_step].call_site], now,
			 now + length);
		start = TS_MAX(now + jittered(bench, 6000, 0.15), busy_until + 900);
		/* Devices count in units of 32 ns. */
		start &= ~UINT64_C(31);
		busy_until = start +
			     (jittered(bench, 2500.0 * (1 + kernel % 8), 0.03) & ~UINT64_C(31));
		put_kernel(bench, correlation, kernel, start, busy_until);
		now += length;
		if (of_step % 5 == 4)
			put_allocation(bench, of_step / 5, now);
		drain(bench, now);
		if (++of_step == bench->step_launches)
			of_step = 0;
	}
	drain(bench, now + DRAIN_NS);
}

/* ---- results ---- */

static void print_columns(const char *path, double launches)
{
	static uint64_t bytes[TS_TABLE_COUNT][TS_MAX_COLUMNS];
	struct sbt_chunk_list list = { 0 };
	struct sbt_file file = { 0 };
	struct ts_error err;

	if (sbt_file_open(&file, path, &err) || sbt_file_check(&file, &err) ||
	    sbt_scan(&file, sizeof(struct sbt_file_header), &list, NULL, NULL, &err))
		die(err.message);
	for (size_t i = 0; i < list.count; i++) {
		const struct sbt_chunk_header *header = &list.chunks[i].header;
		struct sbt_column directory[256];
		const char *why;

		if (header->table >= TS_TABLE_COUNT || header->columns > 256 ||
		    sbt_directory_read(&file, &list.chunks[i], directory, &why, &err))
			continue;
		bytes[header->table][0] += header->header_bytes;
		for (uint32_t k = 0; k < header->columns; k++)
			bytes[header->table][directory[k].column % TS_MAX_COLUMNS] +=
				directory[k].stored_bytes;
	}
	for (int table = 0; table < TS_TABLE_COUNT; table++) {
		const struct ts_table_info *info = ts_table_info((enum ts_table_id)table);

		if (info && bytes[table][0])
			printf("%-12s %-16s %8.3f\n", info->name, "(directory)",
			       (double)bytes[table][0] / launches);
		for (int k = 0; info && k < info->column_count; k++)
			if (bytes[table][info->columns[k].id % TS_MAX_COLUMNS])
				printf("%-12s %-16s %8.3f\n", info->name, info->columns[k].name,
				       (double)bytes[table][info->columns[k].id % TS_MAX_COLUMNS] /
					       launches);
	}
	sbt_chunk_list_release(&list);
	sbt_file_close(&file);
}

int main(int argc, char **argv)
{
	static struct bench bench = { .random = 88172645463325252 };
	uint64_t launches = 1000000, step = 36;
	double thread_s, process_s;
	bool has_columns = false;

	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--columns"))
			has_columns = true;
		else if (!strcmp(argv[i], "--launches") && i + 1 < argc)
			launches = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--step") && i + 1 < argc)
			step = strtoull(argv[++i], NULL, 10);
		else
			launches = 0;
	}
	if (argc < 2 || !launches || !step || step > STEP_MOST)
		die("usage: cuda_rows TRACE [--launches N] [--step 1..4096] [--columns]");
	draw_plan(&bench, (uint32_t)step);
	thread_s = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
	process_s = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
	begin(&bench, argv[1]);
	run(&bench, launches);
	if (ts_decoder_finish(bench.decoder) || ts_writer_finish(bench.writer, NULL))
		die("cannot write the trace");
	thread_s = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - thread_s;
	process_s = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - process_s;
	if (has_columns)
		print_columns(argv[1], (double)launches);
	printf("{\"launches\":%" PRIu64
	       ",\"bytes_per_launch\":%.2f,\"journal_bytes_per_launch\":%.1f,"
	       "\"launches_per_s\":%.0f,\"launches_per_s_with_compression\":%.0f}\n",
	       launches, (double)ts_writer_bytes(bench.writer) / (double)launches,
	       (double)bench.journal_bytes / (double)launches, (double)launches / thread_s,
	       (double)launches / process_s);
	ts_writer_close(bench.writer);
	ts_decoder_free(bench.decoder);
	ts_text_release(&bench.dictionary);
	for (int i = 0; i < RINGS; i++)
		ts_text_release(&bench.rings[i]);
	return 0;
}
