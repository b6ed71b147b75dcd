/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XRay logs of every version and mode, built byte by byte; tests/cli/import/xray.sh has logs of
 * real programs.
 */
#include "unit/import/import_support.h"

#include "import/xray/xray.h"

/* ---- logs ---- */

struct log {
	char bytes[8192];
	size_t count;
	size_t extents_at; /* of the open buffer; 0: none */
};

static void put(struct log *log, uint64_t value, size_t bytes)
{
	TS_CHECK(log->count + bytes <= sizeof(log->bytes));
	for (size_t i = 0; i < bytes; i++)
		log->bytes[log->count++] = (char)(i < 8 ? value >> (8 * i) : 0);
}

static void begin_log(struct log *log, unsigned int version, unsigned int type, uint64_t frequency,
		      uint64_t buffer_bytes)
{
	memset(log, 0, sizeof(*log));
	put(log, version, 2);
	put(log, type, 2);
	put(log, 3, 4);
	put(log, frequency, 8);
	put(log, buffer_bytes, 8);
	put(log, 0, 8);
}

/* Basic mode. */
static void basic(struct log *log, unsigned int kind, unsigned int function, uint64_t tsc,
		  unsigned int tid, unsigned int pid)
{
	put(log, 0, 2);
	put(log, 3, 1); /* CPU */
	put(log, kind, 1);
	put(log, function, 4);
	put(log, tsc, 8);
	put(log, tid, 4);
	put(log, pid, 4);
	put(log, 0, 8);
}

static void basic_argument(struct log *log, unsigned int function, unsigned int tid,
			   unsigned int pid, uint64_t value)
{
	put(log, 1, 4);
	put(log, function, 4);
	put(log, tid, 4);
	put(log, pid, 4);
	put(log, value, 8);
	put(log, 0, 8);
}

/* FDR mode: a metadata record with up to three numbers. */
static void metadata(struct log *log, unsigned int kind, uint64_t a, size_t a_bytes, uint64_t b,
		     size_t b_bytes, uint64_t c, size_t c_bytes)
{
	put(log, kind << 1 | 1, 1);
	put(log, a, a_bytes);
	put(log, b, b_bytes);
	put(log, c, c_bytes);
	put(log, 0, 15 - a_bytes - b_bytes - c_bytes);
}

static void end_buffer(struct log *log)
{
	uint64_t bytes = log->count - log->extents_at - 16;

	for (size_t i = 0; log->extents_at && i < 8; i++)
		log->bytes[log->extents_at + 1 + i] = (char)(bytes >> (8 * i));
	log->extents_at = 0;
}

static void begin_buffer(struct log *log, int tid, uint64_t wall_us, unsigned int cpu, uint64_t tsc)
{
	int version = log->bytes[0];

	if (version >= 2) {
		log->extents_at = log->count;
		metadata(log, 7, 0, 8, 0, 0, 0, 0);
	}
	metadata(log, 0, (uint64_t)tid, 4, 0, 0, 0, 0);
	metadata(log, 4, wall_us / 1000000, 8, wall_us % 1000000, 4, 0, 0);
	if (version >= 3)
		metadata(log, 9, 77, 4, 0, 0, 0, 0);
	metadata(log, 2, cpu, 2, tsc, 8, 0, 0);
}

static void function(struct log *log, unsigned int kind, unsigned int id, uint32_t delta)
{
	put(log, (uint64_t)id << 4 | kind << 1, 4);
	put(log, delta, 4);
}

static void text(struct log *log, const char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		put(log, (uint8_t)data[i], 1);
}

/* ---- imports ---- */

static void import_log(struct imported *imported, const struct log *log, bool in_pieces)
{
	struct ts_import_options options = { .size = sizeof(options) };
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = ts_import_memory(writer, "log", log->bytes, log->count, in_pieces ? 7 : 0,
					in_pieces ? 64 : 0, &options, &imported->result,
					&imported->err);
	imported->reader = finish_and_read(writer, path);
}

static void check_log(const char *file, int line, const struct log *log, const char *table,
		      const char *expected)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_log(&imported, log, in_pieces);
		if (imported.rc)
			ts_test_fail(file, line, "%s", imported.err.message);
		TS_CHECK_STR(imported.result.format, "xray");
		check_table(file, line, imported.reader, table, expected);
		release_imported(&imported);
	}
}

#define CHECK_LOG(log, table, expected) check_log(__FILE__, __LINE__, log, table, expected)
#define SLICE(start, duration, thread, name, args)                                              \
	"{'start':" start ",'duration':" duration ",'thread':" thread ",'name':'function " name \
	"','category':'xray','args':{" args "}}\n"

TS_TEST(basic_versions)
{
	for (unsigned int version = 1; version <= 3; version++) {
		struct log log;

		begin_log(&log, version, 0, TS_XRAY_NS, 0);
		basic(&log, 0, 1, 100, 5, 9);
		basic(&log, 3, 2, 110, 5, 9);
		basic_argument(&log, 2, 5, 9, 42);
		basic(&log, 0, 1, 105, 6, 9);
		basic(&log, 2, 2, 120, 5, 9);
		basic(&log, 1, 1, 130, 5, 9);
		CHECK_LOG(&log, "slice",
			  SLICE("100", "30", "1", "1", "'cpu':3")
				  SLICE("105", "-1", "2", "1", "'cpu':3")
					  SLICE("110", "10", "1", "2",
						"'cpu':3,'tail_exit':true,'arg0':42"));
		CHECK_LOG(&log, "process",
			  version < 3 ? "{'id':1,'source':1}\n" : "{'id':1,'source':1,'pid':9}\n");
		CHECK_LOG(&log, "thread",
			  "{'id':1,'process':1,'tid':5}\n{'id':2,'process':1,'tid':6}\n");
	}
}

TS_TEST(fdr_versions)
{
	for (unsigned int version = 1; version <= 5; version++) {
		struct log log;

		begin_log(&log, version, 1, TS_XRAY_NS, 256);
		begin_buffer(&log, 5, 1000000, 2, 1000);
		function(&log, 3, 1, 10);
		metadata(&log, 6, 7, 8, 0, 0, 0, 0);
		metadata(&log, 6, 8, 8, 0, 0, 0, 0);
		metadata(&log, 2, 4, 2, 2000, 8, 0, 0); /* another CPU */
		function(&log, 0, 2, 0);
		metadata(&log, 3, 10000, 8, 0, 0, 0, 0); /* TSC wrap */
		function(&log, 1, 2, 5);
		function(&log, 1, 1, 0xffffffff);
		if (version == 1) {
			metadata(&log, 1, 0, 0, 0, 0, 0, 0);
			while (log.count < 32 + 256)
				put(&log, 0xff, 1);
		} else {
			end_buffer(&log);
		}
		begin_buffer(&log, 6, 1000000, 0, 500);
		function(&log, 0, 3, 1);
		function(&log, 1, 3, 2);
		if (version == 1)
			metadata(&log, 1, 0, 0, 0, 0, 0, 0);
		else
			end_buffer(&log);
		CHECK_LOG(&log, "slice",
			  SLICE("501", "2", "2", "3", "'cpu':0")
				  SLICE("1010", "4294976290", "1", "1",
					"'cpu':2,'exit_cpu':4,'arg0':7,'arg1':8")
					  SLICE("2000", "8005", "1", "2", "'cpu':4"));
		CHECK_LOG(&log, "process",
			  version < 3 ? "{'id':1,'source':1}\n" : "{'id':1,'source':1,'pid':77}\n");
		CHECK_LOG(&log, "loss", "");
	}
}

TS_TEST(events)
{
	for (unsigned int version = 1; version <= 5; version++) {
		struct log log;

		begin_log(&log, version, 1, TS_XRAY_NS, 0);
		begin_buffer(&log, 5, 0, 2, 1000);
		if (version >= 5)
			metadata(&log, 5, 2, 4, 10, 4, 0, 0);
		else
			metadata(&log, 5, 2, 4, 1010, 8, version == 4 ? 6 : 0,
				 version == 4 ? 2 : 0);
		text(&log, "hi", 2);
		metadata(&log, 8, 3, 4, version >= 5 ? 10 : 20, 4, 300, 2);
		text(&log, "a\0b", 3);
		end_buffer(&log);
		CHECK_LOG(
			&log, "mark",
			version == 4
				? "{'start':1010,'thread':1,'name':'custom event','category':'xray','scope':'thread','args':{'cpu':6,'order':0,'data':'hi'}}\n"
				  "{'start':1020,'thread':1,'name':'typed event','category':'xray','scope':'thread','args':{'cpu':2,'order':1,'type':300,'data_hex':'610062'}}\n"
				: "{'start':1010,'thread':1,'name':'custom event','category':'xray','scope':'thread','args':{'cpu':2,'order':0,'data':'hi'}}\n"
				  "{'start':1020,'thread':1,'name':'typed event','category':'xray','scope':'thread','args':{'cpu':2,'order':1,'type':300,'data_hex':'610062'}}\n");
	}
}

/* The oldest buffer of a thread after the newest, with unowned bytes between them. */
TS_TEST(buffers_are_read_in_order_of_time)
{
	struct log log;

	begin_log(&log, 5, 1, TS_XRAY_NS, 0);
	begin_buffer(&log, 5, 3999999, 0, 3000);
	function(&log, 1, 2, 0);
	function(&log, 1, 1, 1);
	end_buffer(&log);
	text(&log, "\0\xff?", 3);
	begin_buffer(&log, 5, 1000000, 0, 1000);
	function(&log, 0, 1, 0);
	function(&log, 0, 2, 10);
	end_buffer(&log);
	CHECK_LOG(&log, "slice",
		  SLICE("1000", "2001", "1", "1", "'cpu':0")
			  SLICE("1010", "1990", "1", "2", "'cpu':0"));
	CHECK_LOG(
		&log, "loss",
		"{'start':0,'source':1,'what':'byte','count':3,'reason':'byte between buffers'}\n");
}

/* Frequencies with and without a shortcut, times of years: only the last step rounds. */
TS_TEST(times)
{
	static const uint64_t frequencies[] = { 1,           512000000,   999999999,
						1000000001,  2899999000,  18400000000,
						18446744073, 18446744074, 100000000000 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(frequencies); i++) {
		struct ts_xray *x = calloc(1, sizeof(*x));
		uint64_t tsc = frequencies[i] * 3;

		TS_CHECK(x != NULL);
		x->header.frequency = frequencies[i];
		for (int k = 0; k < 20000; k++) {
			unsigned __int128 exact = (unsigned __int128)tsc * TS_XRAY_NS /
						  frequencies[i];
			int64_t ns;

			if (exact > INT64_MAX) {
				TS_CHECK(!ts_xray_time(x, tsc, &ns));
				break;
			}
			TS_CHECK(ts_xray_time(x, tsc, &ns));
			TS_CHECK_INT(ns, (int64_t)exact);
			tsc += k % 3 ? 1 + (uint64_t)k * 7919 % 1000 : frequencies[i] / 7;
			if (k == 10000)
				tsc = UINT64_MAX / 4;
		}
		free(x);
	}
}

TS_TEST(no_frequency)
{
	struct imported imported;
	struct log log;

	begin_log(&log, 3, 0, 0, 0);
	basic(&log, 0, 1, 100, 5, 9);
	basic(&log, 1, 1, 190, 5, 9);
	import_log(&imported, &log, false);
	TS_CHECK_INT(imported.rc, 0);
	TS_CHECK(strstr(imported.result.note, "times are cycles") != NULL);
	TS_CHECK(strstr(imported.result.note, "--binary") != NULL);
	CHECK_TABLE(imported.reader, "slice", SLICE("100", "90", "1", "1", "'cpu':3"));
	release_imported(&imported);
}

TS_TEST(times_beyond_an_int64_are_lost)
{
	struct log log;

	begin_log(&log, 3, 0, TS_XRAY_NS, 0);
	basic(&log, 0, 1, UINT64_MAX, 5, 9);
	basic(&log, 0, 2, 7, 5, 9);
	basic(&log, 1, 2, 8, 5, 9);
	CHECK_LOG(&log, "slice", SLICE("7", "1", "1", "2", "'cpu':3"));
	CHECK_LOG(
		&log, "loss",
		"{'start':0,'source':1,'what':'event','count':1,'reason':'record with a time beyond 292 years'}\n");
}

/*
 * Left by longjmp: 2 and 3 have no exit; 4 was entered before the log began; 1 is open at its end.
 */
TS_TEST(unbalanced)
{
	struct log log;

	begin_log(&log, 5, 1, TS_XRAY_NS, 0);
	begin_buffer(&log, 5, 0, 0, 1000);
	function(&log, 1, 4, 1);
	function(&log, 0, 1, 9);
	function(&log, 0, 1, 10);
	function(&log, 0, 2, 10);
	function(&log, 0, 3, 10);
	function(&log, 1, 1, 10);
	function(&log, 1, 2, 10);
	end_buffer(&log);
	CHECK_LOG(&log, "slice",
		  SLICE("1010", "-1", "1", "1", "'cpu':0") SLICE("1020", "30", "1", "1", "'cpu':0")
			  SLICE("1030", "20", "1", "2", "'cpu':0,'no_exit':true")
				  SLICE("1040", "10", "1", "3", "'cpu':0,'no_exit':true"));
	CHECK_LOG(
		&log, "mark",
		"{'start':1001,'thread':1,'name':'function 4','category':'exit without entry','scope':'thread','args':{'cpu':0,'order':0}}\n"
		"{'start':1060,'thread':1,'name':'function 2','category':'exit without entry','scope':'thread','args':{'cpu':0,'order':6}}\n");
	CHECK_LOG(
		&log, "loss",
		"{'start':1001,'duration':59,'source':1,'what':'slice','count':2,'reason':'entry without exit (kept as a mark)'}\n");
}

/* 1 calls 2, then 3, all in one tick; then 4 alone. */
TS_TEST(equal_times_have_an_order)
{
	struct log log;

	begin_log(&log, 5, 1, TS_XRAY_NS, 0);
	begin_buffer(&log, 5, 0, 0, 1000);
	function(&log, 0, 1, 0);
	function(&log, 0, 2, 0);
	function(&log, 1, 2, 0);
	function(&log, 0, 3, 0);
	function(&log, 1, 3, 5);
	function(&log, 1, 1, 5);
	function(&log, 0, 4, 5);
	function(&log, 1, 4, 5);
	end_buffer(&log);
	CHECK_LOG(
		&log, "slice",
		"{'start':1000,'thread':1,'name':'function 2','category':'xray','args':{'cpu':0,'entry_order':1,'exit_order':2}}\n" SLICE(
			"1000", "5", "1", "3", "'cpu':0,'entry_order':3,'exit_order':4")
			SLICE("1000", "10", "1", "1", "'cpu':0,'entry_order':0,'exit_order':5")
				SLICE("1015", "5", "1", "4", "'cpu':0"));
}

TS_TEST(clock)
{
	struct log log;

	begin_log(&log, 5, 1, TS_XRAY_NS, 0);
	begin_buffer(&log, 5, 16668000043, 0, 1794820139449135555);
	function(&log, 0, 1, 0);
	end_buffer(&log);
	CHECK_LOG(
		&log, "clock_sync",
		"{'clock':1,'time':1794820139449135555,'reference':1794820139449135555,'method':'emulated TSC'}\n");
	/* A cycle counter does not give the time of day. */
	log.bytes[8]++;
	CHECK_LOG(&log, "clock_sync", "");
}

/* ---- damage ---- */

/* A log with one of each record. */
static void make_full(struct log *log, unsigned int version)
{
	begin_log(log, version, 1, 2900000000, 512);
	for (int tid = 5; tid < 8; tid++) {
		begin_buffer(log, tid, (uint64_t)(9 - tid) * 1000000, 1, 100000);
		for (unsigned int i = 1; i < 6; i++)
			function(log, i == 3 ? 3 : 0, i, 1000);
		metadata(log, 6, 99, 8, 0, 0, 0, 0);
		if (version >= 5) {
			metadata(log, 5, 5, 4, 10, 4, 0, 0);
			text(log, "hello", 5);
			metadata(log, 8, 3, 4, 10, 4, 300, 2);
			text(log, "\1\2\3", 3);
		}
		for (unsigned int i = 5; i > 0; i--)
			function(log, i % 3 == 2 ? 2 : 1, i, 1000);
		end_buffer(log);
	}
}

static void check_damaged(const struct log *log)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_log(&imported, log, in_pieces);
		TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
		TS_CHECK(!imported.rc || imported.err.message[0]);
		release_imported(&imported);
	}
}

TS_TEST(cut_anywhere)
{
	struct log complete, log;
	uint64_t last = 0;

	make_full(&complete, 5);
	for (size_t count = 32; count < complete.count; count += 7) {
		struct imported imported;

		log = complete;
		log.count = count;
		import_log(&imported, &log, count % 2);
		/* A file may end between two buffers. */
		TS_CHECK(imported.rc == TS_EFORMAT || imported.rc == TS_OK);
		if (imported.rc) {
			TS_CHECK(strstr(imported.err.message, "the file is truncated") != NULL);
			TS_CHECK(strstr(imported.result.note, "rest of the file") != NULL);
		}
		TS_CHECK(imported.result.events >= last);
		last = imported.result.events;
		release_imported(&imported);
	}
	TS_CHECK(last >= 3 * 7 - 3);
}

TS_TEST(flipped_anywhere)
{
	for (unsigned int version = 1; version <= 5; version += 2) {
		struct log complete, log;

		make_full(&complete, version);
		for (size_t at = 4; at < complete.count; at += 11) {
			log = complete;
			log.bytes[at] = (char)(log.bytes[at] ^ (1 << at % 8));
			check_damaged(&log);
			log.bytes[at] = (char)0xff;
			check_damaged(&log);
		}
	}
}

/* An invalid record ends its buffer, not the file, and nothing is paired across it. */
TS_TEST(damaged_buffer)
{
	struct log log;

	begin_log(&log, 5, 1, TS_XRAY_NS, 0);
	begin_buffer(&log, 5, 1000000, 0, 1000);
	function(&log, 0, 1, 0);
	metadata(&log, 60, 0, 0, 0, 0, 0, 0);
	function(&log, 0, 2, 0);
	end_buffer(&log);
	begin_buffer(&log, 5, 2000000, 0, 2000);
	function(&log, 1, 1, 0);
	end_buffer(&log);
	CHECK_LOG(&log, "slice", SLICE("1000", "-1", "1", "1", "'cpu':0"));
	CHECK_LOG(
		&log, "mark",
		"{'start':2000,'thread':1,'name':'function 1','category':'exit without entry','scope':'thread','args':{'cpu':0,'order':1}}\n");
	CHECK_LOG(
		&log, "loss",
		"{'start':1000,'source':1,'what':'buffer','count':1,'reason':'damaged end of a buffer'}\n"
		"{'start':2000,'source':1,'what':'slice','count':1,'reason':'entry without exit (kept as a mark)'}\n");
}

TS_TEST(other_versions_are_refused)
{
	struct ts_import_options options = { .size = sizeof(options), .format = "xray" };
	struct log log;

	for (unsigned int type = 0; type < 3; type++) {
		char path[64];
		struct ts_writer *writer = open_writer(path);
		struct ts_error err;

		begin_log(&log, 6, type, TS_XRAY_NS, 0);
		TS_CHECK_INT(ts_import_memory(writer, "log", log.bytes, log.count, 0, 0, &options,
					      NULL, &err),
			     TS_EFORMAT);
		TS_CHECK(strstr(err.message, type < 2 ? "version 6" : "log type") != NULL);
		ts_reader_close(finish_and_read(writer, path));
	}
}
