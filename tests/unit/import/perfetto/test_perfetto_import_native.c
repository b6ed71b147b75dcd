/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto files of our own exporter, byte by byte: docs/formats/perfetto.md, section 1. */
#include "unit/import/perfetto/perfetto_support.h"

enum { NATIVE = 9901 };
enum { TAKE_START = 1, TAKE_NAME = 2, TAKE_CATEGORY = 4, TAKE_ARGS = 8 };

/* A row with pairs of column and value, terminated by column 0. */
static void put_row(struct ts_text *out, uint64_t table, uint64_t id, const int64_t *pairs)
{
	size_t row = ts_proto_open(out, 3), columns;

	ts_proto_put_uint(out, 1, table);
	columns = ts_proto_open(out, 2);
	for (; *pairs; pairs += 2) {
		ts_proto_put_varint(out, (uint64_t)pairs[0]);
		ts_proto_put_varint(out, ts_proto_from_signed(pairs[1]));
	}
	ts_proto_close(out, columns);
	if (id)
		ts_proto_put_uint(out, 4, id);
	ts_proto_close(out, row);
}

#define ROW(out, table, id, ...) put_row(out, table, id, (const int64_t[]){ __VA_ARGS__, 0 })

static void put_first(struct ts_text *trace, uint64_t version, int64_t zero_ns)
{
	size_t packet = open_packet(trace, 1, 0, STATE_CLEARED),
	       native = ts_proto_open(trace, NATIVE);

	ts_proto_put_uint(trace, 1, version);
	ts_proto_put_sint(trace, 2, zero_ns);
	ts_proto_close(trace, native);
	ts_proto_close(trace, packet);
}

static void put_entities(struct ts_text *trace)
{
	size_t packet = open_packet(trace, 1, 0, 0), data = ts_proto_open(trace, 12), native;

	put_interned(trace, 29, 1, "rank0");
	put_interned(trace, 29, 2, "{\"a\":1}");
	put_interned(trace, 29, 3, "key");
	put_interned(trace, 29, 4, "{not json");
	put_interned(trace, 2, 1, "load");
	put_interned(trace, 1, 1, "io");
	put_interned(trace, 3, 1, "n");
	put_interned(trace, 3, 2, "ts.thread");
	ts_proto_close(trace, data);
	native = ts_proto_open(trace, NATIVE);
	ROW(trace, TS_TABLE_SOURCE, 0, 1, 5, 2, 1, 6, 5);
	/* Clock 5 is 1000 behind trace time. */
	ROW(trace, TS_TABLE_CLOCK_SYNC, 0, 1, 5, 2, 0, 3, 1000);
	ROW(trace, TS_TABLE_PROCESS, 0, 1, 3, 2, 5, 4, 42, 11, 900);
	ROW(trace, TS_TABLE_THREAD, 0, 1, 8, 2, 3, 3, 43);
	ROW(trace, TS_TABLE_MAPPING, 4, 2, 1);
	ROW(trace, TS_TABLE_FRAME, 7, 1, 3, 5, 4, 6, 16);
	ROW(trace, TS_TABLE_STACK, 9, 2, 7);
	ROW(trace, TS_TABLE_STACK, 10, 1, 9, 2, 7);
	ROW(trace, TS_TABLE_META, 0, 1, 5, 4, 3, 5, 2);
	ts_proto_close(trace, native);
	ts_proto_close(trace, packet);
}

/* A slice that takes what it can from its event, and a complete mark. */
static void put_events(struct ts_text *trace)
{
	size_t packet = open_packet(trace, 1, 50, STATE_NEEDED), event = ts_proto_open(trace, 11);
	size_t native, row, inner;

	ts_proto_put_uint(trace, 9, BEGIN);
	ts_proto_put_uint(trace, 11, 7);
	ts_proto_put_uint(trace, 3, 1);
	ts_proto_put_uint(trace, 10, 1);
	inner = ts_proto_open(trace, 4);
	ts_proto_put_uint(trace, 1, 2);
	ts_proto_put_int(trace, 4, 43);
	ts_proto_close(trace, inner);
	inner = ts_proto_open(trace, 4);
	ts_proto_put_uint(trace, 1, 1);
	ts_proto_put_int(trace, 4, -5);
	ts_proto_close(trace, inner);
	ts_proto_close(trace, event);
	native = ts_proto_open(trace, NATIVE);
	row = ts_proto_open(trace, 3);
	ts_proto_put_uint(trace, 1, TS_TABLE_SLICE);
	inner = ts_proto_open(trace, 2);
	for (size_t i = 0; i < 3; i++) {
		static const int64_t pairs[] = { 2, 25, 3, 8, 8, 10 };

		ts_proto_put_varint(trace, (uint64_t)pairs[2 * i]);
		ts_proto_put_varint(trace, ts_proto_from_signed(pairs[2 * i + 1]));
	}
	ts_proto_close(trace, inner);
	ts_proto_put_uint(trace, 5, TAKE_START | TAKE_NAME | TAKE_CATEGORY | TAKE_ARGS);
	ts_proto_close(trace, row);
	ts_proto_close(trace, native);
	ts_proto_close(trace, packet);
	/* Its end carries nothing. */
	put_event(trace, 75, END, 7, NULL);
	packet = open_packet(trace, 1, 0, STATE_NEEDED);
	native = ts_proto_open(trace, NATIVE);
	row = ts_proto_open(trace, 3);
	ts_proto_put_uint(trace, 1, TS_TABLE_MARK);
	inner = ts_proto_open(trace, 2);
	for (size_t i = 0; i < 4; i++) {
		static const int64_t pairs[] = { 1, 2000, 2, 8, 3, 1, 7, 2 };

		ts_proto_put_varint(trace, (uint64_t)pairs[2 * i]);
		ts_proto_put_varint(trace, ts_proto_from_signed(pairs[2 * i + 1]));
	}
	ts_proto_close(trace, inner);
	inner = ts_proto_open(trace, 6);
	for (size_t i = 0; i < 14; i++) {
		/* key: {"a":1}, in `beside`; key: null; key: its column `name` */
		static const uint64_t args[] = { 3, TS_ARG_JSON,   1, 0, 4, 3, TS_ARG_NULL, 0, 0,
						 3, TS_ARG_COLUMN, 0, 3, 0 };

		if (i < 13)
			ts_proto_put_varint(trace, args[i]);
	}
	ts_proto_close(trace, inner);
	ts_proto_close(trace, row);
	ts_proto_close(trace, native);
	ts_proto_close(trace, packet);
}

TS_TEST(rows_come_back)
{
	TS_SCOPED(ts_text) trace = { 0 };
	struct imported imported;

	put_first(&trace, 1, 1000);
	put_entities(&trace);
	put_events(&trace);
	CHECK_PACKETS(&trace, "source", "{'id':5,'name':'rank0','clock':5}\n");
	CHECK_PACKETS(&trace, "clock_sync", "{'clock':5,'reference':1000}\n");
	CHECK_PACKETS(&trace, "process", "{'id':3,'source':5,'pid':42,'start':900}\n");
	CHECK_PACKETS(&trace, "thread", "{'id':8,'process':3,'tid':43}\n");
	CHECK_PACKETS(&trace, "mapping", "{'path':'rank0'}\n");
	CHECK_PACKETS(&trace, "frame", "{'name':'key','mapping':1,'pc':16}\n");
	CHECK_PACKETS(&trace, "stack", "{'frame':1}\n{'parent':1,'frame':1}\n");
	CHECK_PACKETS(&trace, "meta", "{'source':5,'key':'key','value':{'a':1}}\n");
	CHECK_PACKETS(&trace, "slice",
		      "{'start':1050,'duration':25,'thread':8,'name':'load','category':'io',"
		      "'stack':2,'args':{'n':-5}}\n");
	CHECK_PACKETS(&trace, "mark",
		      "{'start':2000,'thread':8,'name':'rank0','id':{'a':1},"
		      "'args':{'key':null,'key':'rank0'},'beside':{'key':{'a':1}}}\n");
	CHECK_NOTE(&trace, "");
	import_packets(&imported, &trace, trace.length, false);
	TS_CHECK_STR(imported.result.format, "tracesmith");
	TS_CHECK_INT(imported.result.events, 2);
	release_imported(&imported);
}

TS_TEST(into_a_trace_that_has_others)
{
	TS_SCOPED(ts_text) trace = { 0 };
	struct ts_writer *writer;
	struct ts_reader *reader;
	struct ts_error err;
	char path[64];

	put_first(&trace, 1, 1000);
	put_entities(&trace);
	put_events(&trace);
	writer = open_writer(path);
	for (int i = 0; i < 2; i++)
		TS_CHECK_INT(ts_import_memory(writer, "x", trace.data, trace.length, 0, 0, NULL,
					      NULL, &err),
			     0);
	reader = finish_and_read(writer, path);
	CHECK_TABLE(reader, "source",
		    "{'id':5,'name':'rank0','clock':5}\n{'id':10,'name':'rank0','clock':10}\n");
	CHECK_TABLE(reader, "thread",
		    "{'id':8,'process':3,'tid':43}\n{'id':16,'process':6,'tid':43}\n");
	CHECK_TABLE(reader, "slice",
		    "{'start':1050,'duration':25,'thread':8,'name':'load','category':'io',"
		    "'stack':2,'args':{'n':-5}}\n"
		    "{'start':1050,'duration':25,'thread':16,'name':'load','category':'io',"
		    "'stack':4,'args':{'n':-5}}\n");
	ts_reader_close(reader);
}

TS_TEST(blobs_in_pieces)
{
	TS_SCOPED(ts_text) trace = { 0 };
	struct imported imported;
	size_t packet, native, row, columns;

	put_first(&trace, 1, 0);
	packet = open_packet(&trace, 1, 0, 0);
	native = ts_proto_open(&trace, NATIVE);
	for (uint64_t id = 1; id <= 3; id++) {
		row = ts_proto_open(&trace, 3);
		ts_proto_put_uint(&trace, 1, TS_TABLE_BLOB);
		columns = ts_proto_open(&trace, 2);
		/* The third continues a missing one. */
		if (id > 1) {
			ts_proto_put_varint(&trace, 3);
			ts_proto_put_varint(&trace, ts_proto_from_signed(id == 2 ? 1 : 77));
		}
		ts_proto_close(&trace, columns);
		ts_proto_put_bytes(&trace, 3, id == 1 ? "abc" : "de", id == 1 ? 3 : 2);
		ts_proto_put_uint(&trace, 4, id);
		ts_proto_close(&trace, row);
	}
	ts_proto_close(&trace, native);
	ts_proto_close(&trace, packet);
	import_packets(&imported, &trace, trace.length, false);
	TS_CHECK_INT(imported.rc, 0);
	TS_CHECK_STR(imported.result.note, "lost: 1 invalid row");
	release_imported(&imported);
}

TS_TEST(rows_that_make_no_sense_are_counted)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet, native;

	put_first(&trace, 1, 0);
	put_entities(&trace);
	packet = open_packet(&trace, 1, 0, 0);
	native = ts_proto_open(&trace, NATIVE);
	ROW(&trace, TS_TABLE_SLICE, 0, 3, 8);               /* no start */
	ROW(&trace, TS_TABLE_STRING, 1, 1, 1);              /* texts are not rows */
	ROW(&trace, 999, 0, 1, 1);                          /* no such table */
	ROW(&trace, TS_TABLE_STACK, 11, 1, 9);              /* no frame */
	ROW(&trace, TS_TABLE_META, 0, 4, 3, 5, 4);          /* not JSON */
	ROW(&trace, TS_TABLE_MARK, 0, 1, 5, 2, 99, 200, 1); /* no such column */
	ts_proto_close(&trace, native);
	ts_proto_close(&trace, packet);
	CHECK_NOTE(&trace, "lost: 6 invalid rows");
	CHECK_PACKETS(&trace, "slice", "");
}

TS_TEST(newer_files_are_refused)
{
	TS_SCOPED(ts_text) trace = { 0 };
	struct imported imported;

	put_first(&trace, 2, 0);
	import_packets(&imported, &trace, trace.length, false);
	TS_CHECK_INT(imported.rc, TS_EVERSION);
	TS_CHECK(strstr(imported.err.message, "exported by a newer TraceSmith (format 2)"));
	release_imported(&imported);
}
