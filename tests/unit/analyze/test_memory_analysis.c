/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory on small traces: PyTorch's instants with and without totals, rows of `allocation`, sums of
 * `torch_trace`.
 */
#include "unit/analyze/analyze_support.h"

#define INSTANT(tid, ts, args)                                                             \
	"{'ph':'i','cat':'cpu_instant_event','s':'t','name':'[memory]','pid':1,'tid':" tid \
	",'ts':" ts ",'args':{" args "}},"
#define ON_CUDA "'Device Type':1,'Device Id':0,"
#define MEMORY(ts, address, bytes, total)                                               \
	INSTANT("1", ts,                                                                \
		ON_CUDA "'Addr':" address ",'Bytes':" bytes ",'Total Allocated':" total \
			",'Total Reserved':" total "0")
#define BARE(ts, bytes) INSTANT("1", ts, ON_CUDA "'Bytes':" bytes)
#define TOTALS "device allocations frees start_bytes peak_bytes peak_ns end_bytes"
#define FATES "never_freed never_freed_bytes unknown_frees lost_frees"

TS_TEST(the_peak_and_who_made_it)
{
	const char *events = OP("aten::mm", "0", "30") OP("aten::empty", "10", "5")
		OP("aten::relu", "40", "10") MEMORY("5", "100", "50", "150")
			MEMORY("12", "200", "70", "220") MEMORY("20", "100", "-50", "170")
				MEMORY("42", "300", "60", "230") MEMORY("60", "200", "-70", "160");

	CHECK_EXACT(memory, events, "summary", TOTALS " reserved_peak_bytes totals_known",
		    "cuda:0 3 2 100 230 42000 160 2300 1\n");
	CHECK_EXACT(memory, events, "peak",
		    "rank device bytes allocated_ns freed_ns address operator",
		    "0 cuda:0 70 12000 60000 200 aten::empty\n"
		    "0 cuda:0 60 42000 - 300 aten::relu\n");
	CHECK_EXACT(memory, events, "summary", FATES " allocated_bytes freed_bytes",
		    "1 60 0 0 180 120\n");
	CHECK_EXACT(memory, events, "timeline", "device time_ns bytes total_bytes reserved_bytes",
		    "cuda:0 5000 50 150 1500\ncuda:0 12000 70 220 2200\n"
		    "cuda:0 20000 -50 170 1700\ncuda:0 42000 60 230 2300\n"
		    "cuda:0 60000 -70 160 1600\n");
}

TS_TEST(frees_of_what_was_there_before)
{
	/* 900 was allocated before the trace; 100 is allocated twice, so a free is missing. */
	const char *events = MEMORY("5", "900", "-40", "60") MEMORY("6", "100", "10", "70")
		MEMORY("7", "100", "20", "90") MEMORY("8", "100", "-20", "70")
			MEMORY("9", "100", "-20", "50");

	CHECK_EXACT(memory, events, "summary", TOTALS, "cuda:0 2 3 100 100 5000 50\n");
	CHECK_EXACT(memory, events, "summary", FATES, "0 0 2 1\n");
}

TS_TEST(without_totals_the_least_that_explains_the_rest)
{
	/* Falls to 30 below its start: at least that much was allocated before. */
	const char *events = BARE("5", "20") BARE("6", "-50") BARE("7", "80") BARE("8", "-10");
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, events, NULL);
	run_analysis(&analyzed, &ts_analysis_memory);
	CHECK_ROWS(&analyzed, "summary", TOTALS " totals_known", "cuda:0 2 2 30 80 7000 70 0\n");
	CHECK_ROWS(&analyzed, "summary", FATES, "- - - -\n");
	CHECK_ROWS(&analyzed, "peak", "bytes", "");
	CHECK_ROWS(&analyzed, "timeline", "total_bytes", "50\n0\n80\n70\n");
	TS_CHECK(has_note(&analyzed.result, "does not say how much was in use"));
	TS_CHECK(has_note(&analyzed.result, "lacks addresses"));
	release_analyzed(&analyzed);
}

/* PyTorch's totals of the CPU count from the start of the profile. */
TS_TEST(totals_that_fall_below_zero)
{
	const char *events = MEMORY("5", "1", "10", "10") MEMORY("6", "9", "-300", "-290")
		MEMORY("7", "2", "50", "-240");
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, events, NULL);
	run_analysis(&analyzed, &ts_analysis_memory);
	CHECK_ROWS(&analyzed, "summary", TOTALS " totals_known", "cuda:0 2 1 290 300 5000 50 1\n");
	CHECK_ROWS(&analyzed, "timeline", "total_bytes", "300\n0\n50\n");
	TS_CHECK(has_note(&analyzed.result, "at least 290 B was in use at the start"));
	release_analyzed(&analyzed);
	/* Also where only the start is below. */
	CHECK_EXACT(memory, MEMORY("5", "1", "10", "4") MEMORY("6", "2", "5", "9"), "summary",
		    "start_bytes peak_bytes end_bytes", "0 15 15\n");
}

TS_TEST(numbers_that_cannot_be_saturate)
{
	const char *events = MEMORY("5", "1", "10", "-90") MEMORY("6", "2", "5", "-85")
		MEMORY("7", "3", "-9223372036854775807", "-9223372036854775807")
			MEMORY("8", "4", "9223372036854775807", "9223372036854775807");

	CHECK_EXACT(memory, events, "summary", "start_bytes peak_bytes end_bytes unknown_frees",
		    "9223372036854775707 9223372036854775807 9223372036854775807 1\n");
}

TS_TEST(devices_and_threads_are_kept_apart)
{
	/*
	 * The second thread did nothing else: its process knows the rank. The other device's kind
	 * has no name.
	 */
	const char *events = MEMORY("5", "1", "10", "10")
		INSTANT("9", "6",
			"'Device Type':0,'Device Id':-1,'Addr':1,'Bytes':7,"
			"'Total Allocated':7,'Total Reserved':0")
			INSTANT("1", "7",
				"'Device Type':99,'Device Id':3,'Addr':1,'Bytes':8,"
				"'Total Allocated':8,'Total Reserved':0");

	CHECK_EXACT(memory, events, "summary", "rank " TOTALS,
		    "0 cpu 1 0 0 7 6000 7\n"
		    "0 cuda:0 1 0 0 10 5000 10\n"
		    "0 device:3 1 0 0 8 7000 8\n");
}

TS_TEST(ranks_are_kept_apart)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, MEMORY("5", "1", "10", "10"),
		   MEMORY("5", "1", "20", "20") MEMORY("6", "2", "20", "40"));
	run_analysis(&analyzed, &ts_analysis_memory);
	CHECK_ROWS(&analyzed, "summary", "rank allocations peak_bytes", "0 1 10\n1 2 40\n");
	release_analyzed(&analyzed);
}

TS_TEST(other_instants_are_none_of_ours)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE,
		   "{'ph':'i','s':'t','name':'[memory]','pid':1,'tid':1,'ts':5,'args':{'Note':3}},"
		   "{'ph':'i','s':'t','name':'memory','pid':1,'tid':1,'ts':5,'args':{'Bytes':3}},",
		   NULL);
	run_analysis(&analyzed, &ts_analysis_memory);
	CHECK_ROWS(&analyzed, "summary", "rank", "");
	TS_CHECK(has_note(&analyzed.result, "no memory events"));
	release_analyzed(&analyzed);
}

TS_TEST(the_list_is_as_long_as_asked_for)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE,
		   MEMORY("5", "1", "10", "10") MEMORY("6", "2", "30", "40")
			   MEMORY("7", "3", "30", "70") MEMORY("8", "4", "20", "90"),
		   NULL);
	analyzed.request.options.top = 3;
	run_analysis(&analyzed, &ts_analysis_memory);
	CHECK_ROWS(&analyzed, "peak", "bytes address", "30 2\n30 3\n20 4\n");
	release_analyzed(&analyzed);
}

/* ---- rows of tables that no importer fills ---- */

static uint32_t text_of(struct ts_writer *writer, const char *text)
{
	return ts_writer_string(writer, text, strlen(text));
}

static void add_allocation(struct ts_writer *writer, int64_t start, int64_t device, int64_t kind,
			   int64_t address, int64_t bytes, const char *pool)
{
	struct ts_allocation_row row = ts_allocation_none;

	row.start = start;
	row.device = device;
	row.kind = kind;
	row.address = address;
	row.bytes = bytes;
	row.pool = pool ? text_of(writer, pool) : 0;
	ts_writer_add(writer, TS_TABLE_ALLOCATION, &row, NULL);
}

static void add_torch_row(struct ts_writer *writer, int64_t start, double allocated, double cached)
{
	struct ts_torch_trace_row row = ts_torch_trace_none;

	row.start = start;
	row.allocated = allocated;
	row.cached = cached;
	ts_writer_add(writer, TS_TABLE_TORCH_TRACE, &row, NULL);
}

static void write_rows(struct ts_writer *writer)
{
	struct ts_source_row source = ts_source_none;
	struct ts_device_row device = ts_device_none;

	source.id = ts_writer_new_id(writer, TS_TABLE_SOURCE);
	source.rank = 5;
	ts_writer_add(writer, TS_TABLE_SOURCE, &source, NULL);
	device.id = ts_writer_new_id(writer, TS_TABLE_DEVICE);
	device.source = source.id;
	device.number = 2;
	ts_writer_add(writer, TS_TABLE_DEVICE, &device, NULL);
	add_allocation(writer, 1000, device.id, TS_ALLOCATION_ALLOC, 64, 100, "async");
	add_allocation(writer, 2000, device.id, TS_ALLOCATION_ALLOC, 64, 9, NULL);
	add_allocation(writer, 3000, device.id, TS_ALLOCATION_FREE, 64, 100, "async");
	add_allocation(writer, 4000, 0, TS_ALLOCATION_ALLOC, 64, 30, NULL);
	/* A free need not give a size. */
	add_allocation(writer, 5000, 0, TS_ALLOCATION_FREE, 64, TS_ABSENT, NULL);
	add_torch_row(writer, 1000, 1.5, 4);
	add_torch_row(writer, 2000, 2.5, 4);
	add_torch_row(writer, 3000, 0.5, 3);
}

static void add_total(struct ts_writer *writer, int64_t device, int64_t start, int64_t address,
		      int64_t total, const char *pool)
{
	struct ts_allocation_row row = ts_allocation_none;

	row.start = start;
	row.device = device;
	row.kind = TS_ALLOCATION_ALLOC;
	row.address = address;
	row.bytes = 10;
	row.total_bytes = total;
	row.pool = text_of(writer, pool);
	ts_writer_add(writer, TS_TABLE_ALLOCATION, &row, NULL);
}

TS_TEST(totals_of_several_allocators_are_the_devices)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	char path[] = "/tmp/tracesmith-memory-XXXXXX";
	struct ts_writer *writer = begin_trace(path);
	struct ts_device_row device = ts_device_none;
	struct analyzed analyzed = { 0 };

	device.id = ts_writer_new_id(writer, TS_TABLE_DEVICE);
	device.number = 0;
	ts_writer_add(writer, TS_TABLE_DEVICE, &device, NULL);
	add_total(writer, device.id, 1000, 64, 10, "async");
	add_total(writer, device.id, 2000, 128, 20, "pitched");
	analyzed.loaded.readers[analyzed.loaded.count++] = end_trace(writer, path);
	load_readers(&analyzed.loaded, &options);
	prepare_analysis(&analyzed);
	run_analysis(&analyzed, &ts_analysis_memory);
	CHECK_ROWS(&analyzed, "summary", "device pool peak_bytes",
		   "device:0 async 10\ndevice:0 pitched 20\n");
	CHECK_ROWS(&analyzed, "peak", "pool bytes", "async 10\npitched 10\n");
	TS_CHECK(has_note(&analyzed.result, "total of all allocators"));
	release_analyzed(&analyzed);
}

static void add_reserved(struct ts_writer *writer, int64_t device, int64_t start, int64_t address,
			 int64_t reserved, const char *pool)
{
	struct ts_allocation_row row = ts_allocation_none;

	row.start = start;
	row.device = device;
	row.kind = TS_ALLOCATION_ALLOC;
	row.address = address;
	row.bytes = 10;
	row.reserved_bytes = reserved;
	row.pool = text_of(writer, pool);
	ts_writer_add(writer, TS_TABLE_ALLOCATION, &row, NULL);
}

/* Reserved memory is the sum of the rows of "whole", without those of "part". */
TS_TEST(sums_that_what_is_reserved_confirms)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	char path[] = "/tmp/tracesmith-memory-XXXXXX";
	struct ts_writer *writer = begin_trace(path);
	struct ts_device_row device = ts_device_none;
	struct analyzed analyzed = { 0 };

	device.id = ts_writer_new_id(writer, TS_TABLE_DEVICE);
	device.number = 0;
	ts_writer_add(writer, TS_TABLE_DEVICE, &device, NULL);
	add_reserved(writer, device.id, 1000, 64, 10, "whole");
	add_reserved(writer, device.id, 2000, 128, 20, "whole");
	add_reserved(writer, device.id, 1000, 64, 10, "part");
	add_reserved(writer, device.id, 2000, 128, 50, "part");
	analyzed.loaded.readers[analyzed.loaded.count++] = end_trace(writer, path);
	load_readers(&analyzed.loaded, &options);
	prepare_analysis(&analyzed);
	run_analysis(&analyzed, &ts_analysis_memory);
	CHECK_ROWS(&analyzed, "summary", "pool peak_bytes totals_known", "part 20 0\nwhole 20 1\n");
	TS_CHECK(has_note(&analyzed.result, "device:0, part: the trace does not say how much"));
	TS_CHECK(!has_note(&analyzed.result, "device:0, whole"));
	TS_CHECK(!has_note(&analyzed.result, "total of all allocators"));
	release_analyzed(&analyzed);
}

TS_TEST(rows_of_other_tables_count_as_well)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	char path[] = "/tmp/tracesmith-memory-XXXXXX";
	struct ts_writer *writer = begin_trace(path);
	struct analyzed analyzed = { 0 };

	write_rows(writer);
	analyzed.loaded.readers[analyzed.loaded.count++] = end_trace(writer, path);
	load_readers(&analyzed.loaded, &options);
	prepare_analysis(&analyzed);
	run_analysis(&analyzed, &ts_analysis_memory);
	CHECK_ROWS(&analyzed, "summary", "rank pool " TOTALS " never_freed",
		   "5 torch_trace device 0 0 1500000 2500000 2000 500000 -\n"
		   "5 - device:2 1 0 0 9 2000 9 1\n"
		   "5 async device:2 1 1 0 100 1000 0 0\n"
		   "5 - cpu 1 1 0 30 4000 0 0\n");
	release_analyzed(&analyzed);
}
