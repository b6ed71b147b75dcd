/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_scan MODE TRACE|pid:N...: finds the events of live_oracle in traces, or in what is recorded
 * of a process up to now. Prints as JSON, for each process and thread, how many there are, in which
 * ranges, how many are duplicate, torn or out of order; what is counted as lost; and what the
 * reader found damaged. Does not check the result: tests/crash/live_check.py does, with the oracle.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/open.h>
#include <tracesmith/reader.h>

#include "live_events.h"

#define PROCESS "pid:"
#define NUMBERS 4096 /* of processes, and of threads of one */
#define RANGES 64
#define IDS 8
#define NAMES 32
#define MEMO 4096

/* Results for a thread, or for its signal handler. */
struct lane {
	uint32_t process, thread;
	uint64_t *bits; /* one bit per sequence */
	uint64_t words;
	uint64_t stored, doubles, disorder, ends;
	int64_t pids[IDS], tids[IDS];
	unsigned int pid_count, tid_count;
	int64_t row_thread; /* the newest row's */
	/* In the current chunk. */
	size_t chunk;
	int64_t last_start;
	uint64_t last_sequence;
};

/* Positions of the arguments in a shape; -1: missing. */
struct positions {
	int64_t shape;
	int process, thread, sequence, check, id, text, half, odd;
};

enum { NAME_UNKNOWN = -1, NAME_SIGNAL = 100, NAME_DYNAMIC = 1000 };

struct name_memo {
	int64_t id, meaning;
};

struct name_count {
	int64_t count;
	char name[64];
};

struct scan {
	enum event_mode mode;
	struct ts_reader *reader;
	struct lane *lanes;
	size_t lane_count, lane_capacity;
	struct positions positions;
	struct name_memo memo[MEMO]; /* of this trace */
	uint64_t torn;
	char torn_example[256];
	char damage[TS_ERROR_MESSAGE_BYTES];
	struct name_count others[NAMES];
	unsigned int other_count;
};

/* One row of any table. */
struct row {
	size_t chunk;
	int64_t start, duration, thread, name;
	const int64_t *values;
	bool in_order; /* rows of its table are emitted in the order of their starts */
};

static void die(const char *what)
{
	fprintf(stderr, "live_scan: %s\n", what);
	exit(9);
}

static void *grow(void *memory, size_t bytes)
{
	memory = realloc(memory, bytes);
	if (!memory)
		die("no memory");
	return memory;
}

/* ---- lanes ---- */

static struct lane *find_lane(struct scan *scan, uint32_t process, uint32_t thread)
{
	for (size_t i = 0; i < scan->lane_count; i++)
		if (scan->lanes[i].process == process && scan->lanes[i].thread == thread)
			return &scan->lanes[i];
	if (scan->lane_count == scan->lane_capacity) {
		scan->lane_capacity = scan->lane_capacity * 2 + 16;
		scan->lanes = grow(scan->lanes, scan->lane_capacity * sizeof(*scan->lanes));
	}
	scan->lanes[scan->lane_count] = (struct lane){
		.process = process, .thread = thread, .chunk = SIZE_MAX, .row_thread = -1
	};
	return &scan->lanes[scan->lane_count++];
}

/* Chunks and ids of the next trace are different. */
static void forget_trace(struct lane *lane)
{
	lane->chunk = SIZE_MAX;
	lane->row_thread = -1;
}

static void set_bit(struct lane *lane, uint64_t sequence)
{
	uint64_t word = sequence / 64, bit = UINT64_C(1) << (sequence % 64);

	if (word >= lane->words) {
		uint64_t words = word * 2 + 1024;

		lane->bits = grow(lane->bits, words * sizeof(*lane->bits));
		memset(lane->bits + lane->words, 0, (words - lane->words) * sizeof(*lane->bits));
		lane->words = words;
	}
	lane->stored += !(lane->bits[word] & bit);
	lane->doubles += (lane->bits[word] & bit) != 0;
	lane->bits[word] |= bit;
}

static void add_id(int64_t *ids, unsigned int *count, int64_t id)
{
	for (unsigned int i = 0; i < *count; i++)
		if (ids[i] == id)
			return;
	if (*count < IDS)
		ids[(*count)++] = id;
}

static void check_order(struct lane *lane, const struct row *row, uint64_t sequence)
{
	if (!row->in_order)
		return;
	if (lane->chunk == row->chunk && sequence < lane->last_sequence &&
	    row->start > lane->last_start)
		lane->disorder++;
	lane->chunk = row->chunk;
	lane->last_start = row->start;
	lane->last_sequence = sequence;
}

/* ---- comparing with the expected event ---- */

static const char *const kind_names[] = {
	[EVENT_INSTANT] = "instant", [EVENT_SPAN] = "span",       [EVENT_BEGIN] = "begin",
	[EVENT_STRING] = "string",   [EVENT_COUNTER] = "counter", [EVENT_TRACK] = "track",
	[EVENT_PAIR] = "pair",
};

/* Meaning of a name: a kind, a number after NAME_DYNAMIC, or one of the others. */
static int64_t read_name(struct scan *scan, int64_t id)
{
	struct ts_string name = ts_reader_string(scan->reader, id);
	if (!strcmp(name.data, "signal"))
		return NAME_SIGNAL;
	for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++)
		if (kind_names[i] && !strcmp(name.data, kind_names[i]))
			return (int64_t)i;
	if (strncmp(name.data, "dynamic ", strlen("dynamic ")) != 0)
		return NAME_UNKNOWN;
	return NAME_DYNAMIC + strtol(name.data + strlen("dynamic "), NULL, 10);
}

static int64_t meaning_of(struct scan *scan, int64_t id)
{
	struct name_memo *memo = &scan->memo[(uint64_t)id % MEMO];

	if (memo->id != id)
		*memo = (struct name_memo){ id, read_name(scan, id) };
	return memo->meaning;
}

static bool name_is_right(struct scan *scan, const struct row *row, uint64_t sequence)
{
	enum event_kind kind = event_kind_of(scan->mode, sequence);
	int64_t meaning = meaning_of(scan, row->name);

	if (meaning == NAME_SIGNAL)
		return true;
	if (kind == EVENT_DYNAMIC)
		return meaning == NAME_DYNAMIC + (int64_t)(sequence % 1000);
	return meaning == (int64_t)kind;
}

static bool string_is_right(struct scan *scan, int64_t id, uint64_t sequence)
{
	char text[EVENT_TEXT_BYTES];
	size_t length = event_text(sequence, text);
	struct ts_string found = ts_reader_string(scan->reader, id);

	return found.length == length && memcmp(found.data, text, length) == 0;
}

static bool extras_are_right(struct scan *scan, const struct row *row, uint64_t sequence)
{
	const struct positions *at = &scan->positions;
	double half;

	if (at->text >= 0 && !string_is_right(scan, row->values[at->text], sequence))
		return false;
	if (at->odd >= 0 && row->values[at->odd] != (int64_t)(sequence % 2))
		return false;
	if (at->half < 0)
		return true;
	memcpy(&half, &row->values[at->half], sizeof(half));
	return half * 2 == (double)sequence;
}

static void add_torn(struct scan *scan, const struct row *row, const char *why)
{
	struct ts_string name = ts_reader_string(scan->reader, row->name);

	if (scan->torn++ == 0)
		snprintf(scan->torn_example, sizeof(scan->torn_example),
			 "%s: '%.60s' at %" PRId64 ", values %" PRIx64 " %" PRIx64, why, name.data,
			 row->start, (uint64_t)row->values[0], (uint64_t)row->values[1]);
}

/* ---- rows ---- */

static void find_positions(struct scan *scan, int64_t shape)
{
	const struct ts_shape *fields = ts_reader_shape(scan->reader, shape);
	struct positions *at = &scan->positions;
	int value = 0;

	*at = (struct positions){ shape, -1, -1, -1, -1, -1, -1, -1, -1 };
	for (uint32_t i = 0; i < fields->field_count; i++) {
		const struct ts_field *field = &fields->fields[i];
		struct ts_string key = ts_reader_string(scan->reader, field->key);
		const struct {
			const char *key;
			int *position;
		} wanted[] = {
			{ "p", &at->process }, { "t", &at->thread }, { "s", &at->sequence },
			{ "c", &at->check },   { "id", &at->id },    { "text", &at->text },
			{ "half", &at->half }, { "odd", &at->odd },
		};

		if (!ts_arg_has_value(field->type))
			continue;
		for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++)
			if (!strcmp(key.data, wanted[k].key))
				*wanted[k].position = value;
		value++;
	}
}

static void add_other(struct scan *scan, const struct row *row)
{
	struct ts_string name = ts_reader_string(scan->reader, row->name);
	char text[sizeof(scan->others[0].name)];
	unsigned int i = 0;

	snprintf(text, sizeof(text), "%s", name.data);
	while (i < scan->other_count && strcmp(scan->others[i].name, text) != 0)
		i++;
	if (i == NAMES)
		return;
	if (i == scan->other_count) {
		memcpy(scan->others[i].name, text, sizeof(text));
		scan->other_count++;
	}
	scan->others[i].count++;
}

/* The system's ids of the row's thread. */
static void add_ids(struct scan *scan, struct lane *lane, int64_t thread)
{
	const struct ts_thread_row *row;
	const struct ts_process_row *process = NULL;

	if (thread == lane->row_thread)
		return;
	lane->row_thread = thread;
	row = ts_reader_entity(scan->reader, TS_TABLE_THREAD, thread);
	if (row)
		process = ts_reader_entity(scan->reader, TS_TABLE_PROCESS, row->process);
	add_id(lane->pids, &lane->pid_count, process ? process->pid : -1);
	add_id(lane->tids, &lane->tid_count, row ? row->tid : -1);
}

/* An ended begin stands for two events. */
static void add_end(const struct scan *scan, struct lane *lane, const struct row *row,
		    uint64_t sequence)
{
	if (event_kind_of(scan->mode, sequence) != EVENT_BEGIN || row->duration < 0)
		return;
	lane->ends++;
	set_bit(lane, sequence + (scan->mode == MODE_MIXED ? 2 : 1));
}

static void add_row(struct scan *scan, const struct row *row)
{
	const struct positions *at = &scan->positions;
	uint64_t process, thread, sequence;
	struct lane *lane;

	if (at->id >= 0) {
		uint64_t id = (uint64_t)row->values[at->id];

		process = id >> 52;
		thread = id >> 40 & 0xfff;
		sequence = id & UINT64_C(0xffffffffff);
	} else {
		process = (uint64_t)row->values[at->process];
		thread = (uint64_t)row->values[at->thread];
		sequence = (uint64_t)row->values[at->sequence];
	}
	if (process >= NUMBERS || thread >= NUMBERS || sequence >> 36 ||
	    row->values[at->check] != event_checksum(process, thread, sequence)) {
		add_torn(scan, row, "checksum");
		return;
	}
	if (!name_is_right(scan, row, sequence) || !extras_are_right(scan, row, sequence)) {
		add_torn(scan, row, "name or text");
		return;
	}
	lane = find_lane(scan, (uint32_t)process, (uint32_t)thread);
	set_bit(lane, sequence);
	add_ids(scan, lane, row->thread);
	check_order(lane, row, sequence);
	if (meaning_of(scan, row->name) != NAME_SIGNAL)
		add_end(scan, lane, row, sequence);
}

struct columns {
	size_t start, thread, name, shape;
	int duration; /* -1: none */
};

static const struct columns *columns_of(unsigned int table)
{
	static const struct columns slice = { TS_COLUMN_OF(slice, start),
					      TS_COLUMN_OF(slice, thread),
					      TS_COLUMN_OF(slice, name), TS_COLUMN_OF(slice, shape),
					      (int)TS_COLUMN_OF(slice, duration) };
	static const struct columns mark = { TS_COLUMN_OF(mark, start), TS_COLUMN_OF(mark, thread),
					     TS_COLUMN_OF(mark, name), TS_COLUMN_OF(mark, shape),
					     -1 };
	static const struct columns counter = { TS_COLUMN_OF(counter, start),
						TS_COLUMN_OF(counter, thread),
						TS_COLUMN_OF(counter, name),
						TS_COLUMN_OF(counter, shape), -1 };

	switch (table) {
	case TS_TABLE_SLICE:
		return &slice;
	case TS_TABLE_MARK:
		return &mark;
	case TS_TABLE_COUNTER:
		return &counter;
	default:
		return NULL;
	}
}

static void scan_batch(struct scan *scan, const struct ts_batch *batch, unsigned int table)
{
	const struct columns *at = columns_of(table);
	const struct positions *positions = &scan->positions;

	for (uint32_t i = 0; i < batch->rows; i++) {
		static const int64_t none[2];
		int64_t shape = batch->columns[at->shape][i];
		struct row row = {
			.chunk = batch->chunk,
			.start = batch->columns[at->start][i],
			.duration = at->duration < 0 ? 0 : batch->columns[at->duration][i],
			.thread = batch->columns[at->thread][i],
			.name = batch->columns[at->name][i],
			.values = shape ? batch->arg_values + batch->arg_offsets[i] : none,
			.in_order = table == TS_TABLE_MARK
		};

		if (shape != positions->shape)
			find_positions(scan, shape);
		if (positions->check >= 0 &&
		    (positions->id >= 0 || (positions->process >= 0 && positions->thread >= 0 &&
					    positions->sequence >= 0)))
			add_row(scan, &row);
		else if (row.thread) /* otherwise measured by the recorder */
			add_other(scan, &row);
	}
}

/* ---- losses ---- */

static void put_text(struct ts_string text)
{
	putchar('"');
	for (size_t i = 0; i < text.length; i++)
		if (text.data[i] == '"' || text.data[i] == '\\' || (unsigned char)text.data[i] < 32)
			printf("\\u%04x", (unsigned char)text.data[i]);
		else
			putchar(text.data[i]);
	putchar('"');
}

static void print_losses(struct scan *scan, const struct ts_batch *batch, bool *is_first)
{
	for (uint32_t i = 0; i < batch->rows; i++) {
		struct ts_loss_row row;
		const struct ts_process_row *process;

		ts_batch_row(batch, i, &row);
		process = ts_reader_entity(scan->reader, TS_TABLE_PROCESS, row.process);
		printf("%s\n  {\"pid\": %" PRId64 ", \"count\": ", *is_first ? "" : ",",
		       process ? process->pid : -1);
		if (row.count == TS_ABSENT)
			printf("null");
		else
			printf("%" PRId64, row.count);
		printf(", \"what\": ");
		put_text(ts_reader_string(scan->reader, row.what));
		printf(", \"reason\": ");
		put_text(ts_reader_string(scan->reader, row.reason));
		printf("}");
		*is_first = false;
	}
}

/* ---- a trace ---- */

static int open_trace(struct scan *scan, const char *path, struct ts_error *err)
{
	if (strncmp(path, PROCESS, strlen(PROCESS)) != 0)
		return ts_reader_open(&scan->reader, path, err);
	return ts_open_pid(&scan->reader, (pid_t)strtol(path + strlen(PROCESS), NULL, 10), NULL,
			   err);
}

static void scan_trace(struct scan *scan, const char *path, bool *is_first_loss)
{
	struct ts_batch *batch = NULL;
	struct ts_error err;

	if (open_trace(scan, path, &err) || ts_batch_new(&batch, scan->reader, &err))
		die(err.message);
	scan->positions.shape = -1;
	for (size_t i = 0; i < MEMO; i++)
		scan->memo[i].id = -1;
	for (size_t i = 0; i < ts_reader_chunk_count(scan->reader); i++) {
		unsigned int table = ts_reader_chunk(scan->reader, i)->table;

		if (!columns_of(table) && table != TS_TABLE_LOSS)
			continue;
		if (ts_batch_read(batch, i, TS_MASK_ALL, &err))
			die(err.message);
		if (table == TS_TABLE_LOSS)
			print_losses(scan, batch, is_first_loss);
		else
			scan_batch(scan, batch, table);
	}
	if (ts_reader_status(scan->reader, &err))
		snprintf(scan->damage, sizeof(scan->damage), "%s", err.message);
	ts_batch_free(batch);
	ts_reader_close(scan->reader);
	for (size_t i = 0; i < scan->lane_count; i++)
		forget_trace(&scan->lanes[i]);
}

/* ---- results ---- */

static bool has(const struct lane *lane, uint64_t sequence)
{
	return lane->bits[sequence / 64] >> (sequence % 64) & 1;
}

/* Ranges [from, to) of those present; the first of them, and their total number. */
static void print_ranges(const struct lane *lane)
{
	uint64_t end = lane->words * 64, from = 0, ranges = 0, highest = 0;

	printf("\"ranges\": [");
	while (from < end) {
		uint64_t to;

		if (from % 64 == 0 && !lane->bits[from / 64]) {
			from += 64;
			continue;
		}
		if (!has(lane, from)) {
			from++;
			continue;
		}
		for (to = from; to < end && has(lane, to);)
			to += to % 64 == 0 && lane->bits[to / 64] == UINT64_MAX ? 64 : 1;
		if (ranges++ < RANGES)
			printf("%s[%" PRIu64 ", %" PRIu64 "]", ranges > 1 ? ", " : "", from, to);
		highest = to - 1;
		from = to;
	}
	printf("], \"range_count\": %" PRIu64 ", \"highest\": %" PRIu64, ranges, highest);
}

static void print_ids(const char *key, const int64_t *ids, unsigned int count)
{
	printf("\"%s\": [", key);
	for (unsigned int i = 0; i < count; i++)
		printf("%s%" PRId64, i ? ", " : "", ids[i]);
	printf("], ");
}

static void print_lanes(const struct scan *scan)
{
	printf("],\n \"lanes\": [");
	for (size_t i = 0; i < scan->lane_count; i++) {
		const struct lane *lane = &scan->lanes[i];

		printf("%s\n  {\"p\": %u, \"t\": %u, \"stored\": %" PRIu64 ", \"doubles\": %" PRIu64
		       ", \"disorder\": %" PRIu64 ", \"ends\": %" PRIu64 ", ",
		       i ? "," : "", lane->process, lane->thread, lane->stored, lane->doubles,
		       lane->disorder, lane->ends);
		print_ids("pids", lane->pids, lane->pid_count);
		print_ids("tids", lane->tids, lane->tid_count);
		print_ranges(lane);
		printf("}");
	}
}

static void print_rest(const struct scan *scan)
{
	struct ts_string example = { scan->torn_example, strlen(scan->torn_example) };
	struct ts_string damage = { scan->damage, strlen(scan->damage) };

	printf("],\n \"torn\": %" PRIu64 ", \"torn_example\": ", scan->torn);
	put_text(example);
	printf(", \"damage\": ");
	put_text(damage);
	printf(",\n \"others\": {");
	for (unsigned int i = 0; i < scan->other_count; i++) {
		struct ts_string name = { scan->others[i].name, strlen(scan->others[i].name) };

		printf("%s", i ? ", " : "");
		put_text(name);
		printf(": %" PRId64, scan->others[i].count);
	}
	printf("}}\n");
}

int main(int argc, char **argv)
{
	static struct scan scan;
	bool is_first_loss = true;

	if (argc < 3)
		die("usage: live_scan MODE TRACE...");
	scan.mode = (enum event_mode)strtoul(argv[1], NULL, 10);
	if (scan.mode > MODE_MIXED)
		die("unknown mode");
	printf("{\"losses\": [");
	for (int i = 2; i < argc; i++)
		scan_trace(&scan, argv[i], &is_first_loss);
	print_lanes(&scan);
	print_rest(&scan);
	for (size_t i = 0; i < scan.lane_count; i++)
		free(scan.lanes[i].bits);
	free(scan.lanes);
	return 0;
}
