/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto's protobuf: detection, packets, sequences, clocks, tracks, spans and losses. */
#include "unit/import/perfetto/perfetto_support.h"

#if __has_include("tracesmith_config.h")
#include "tracesmith_config.h"
#endif

TS_TEST(content_decides)
{
	TS_SCOPED(ts_text) trace = { 0 };
	/* sample_type { type: 1 unit: 2 } of a pprof profile */
	static const char pprof[] = "\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04";
	static const char *const others[] = {
		"", "\n", "\n\n", "\n{\"traceEvents\":[]}", "\n  [1]", "\x0a\x80", "perf 1 2 3"
	};

	put_event(&trace, 5, INSTANT, 7, "x");
	for (size_t bytes = 3; bytes <= trace.length; bytes++)
		TS_CHECK(ts_perfetto_probe(trace.data, bytes));
	TS_CHECK(!ts_perfetto_probe(pprof, sizeof(pprof) - 1));
	for (size_t i = 0; i < TS_ARRAY_SIZE(others); i++)
		TS_CHECK(!ts_perfetto_probe(others[i], strlen(others[i])));
	/* Leading empty packets are ignored. */
	TS_CHECK(ts_perfetto_probe("\x0a\x00\x0a\x02\x08\x05", 6) == 0);
	TS_CHECK(ts_perfetto_probe("\x0a\x00\x0a\x02\x40\x05", 6));
}

static void put_names(struct ts_text *trace)
{
	size_t packet = open_packet(trace, 1, 0, STATE_CLEARED), data = ts_proto_open(trace, 12);

	put_interned(trace, 1, 1, "io");
	put_interned(trace, 1, 2, "net");
	put_interned(trace, 2, UINT64_MAX, "load");
	put_interned(trace, 3, 1, "size");
	put_interned(trace, 29, 4, "a text");
	ts_proto_close(trace, data);
	ts_proto_close(trace, packet);
}

/* A begin by iids, with annotations of every type. */
static void put_begin(struct ts_text *trace)
{
	size_t packet = open_packet(trace, 1, 1000, STATE_NEEDED), event = ts_proto_open(trace, 11);
	size_t open, inner, last;

	ts_proto_put_uint(trace, 9, BEGIN);
	ts_proto_put_uint(trace, 11, 7);
	ts_proto_put_uint(trace, 3, 1);
	ts_proto_put_uint(trace, 3, 2);
	ts_proto_put_uint(trace, 10, UINT64_MAX);
	open = ts_proto_open(trace, 4);
	ts_proto_put_uint(trace, 1, 1);
	ts_proto_put_int(trace, 4, -3);
	ts_proto_close(trace, open);
	open = ts_proto_open(trace, 4);
	put_text(trace, 10, "big");
	ts_proto_put_uint(trace, 3, UINT64_MAX);
	ts_proto_close(trace, open);
	open = ts_proto_open(trace, 4);
	put_text(trace, 10, "text");
	ts_proto_put_uint(trace, 17, 4);
	ts_proto_close(trace, open);
	open = ts_proto_open(trace, 4);
	put_text(trace, 10, "at");
	ts_proto_put_uint(trace, 7, 0xf00);
	ts_proto_close(trace, open);
	open = ts_proto_open(trace, 4);
	put_text(trace, 10, "json");
	put_text(trace, 9, "{\"a\": [1, 2]}");
	ts_proto_close(trace, open);
	/* {"k": [true, 1.5]} */
	open = ts_proto_open(trace, 4);
	put_text(trace, 10, "dict");
	inner = ts_proto_open(trace, 11);
	put_text(trace, 10, "k");
	last = ts_proto_open(trace, 12);
	ts_proto_put_uint(trace, 2, 1);
	ts_proto_close(trace, last);
	last = ts_proto_open(trace, 12);
	ts_proto_put_double(trace, 5, 1.5);
	ts_proto_close(trace, last);
	ts_proto_close(trace, inner);
	ts_proto_close(trace, open);
	/* The same in the legacy form. */
	open = ts_proto_open(trace, 4);
	put_text(trace, 10, "nested");
	inner = ts_proto_open(trace, 8);
	ts_proto_put_uint(trace, 1, 1);
	put_text(trace, 2, "x");
	last = ts_proto_open(trace, 3);
	ts_proto_put_int(trace, 5, 9);
	ts_proto_close(trace, last);
	ts_proto_close(trace, inner);
	ts_proto_close(trace, open);
	ts_proto_close(trace, event);
	ts_proto_close(trace, packet);
}

TS_TEST(spans_and_their_arguments)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet, event, open;

	put_names(&trace);
	put_thread_track(&trace, 7, 42, 43, "main");
	put_begin(&trace);
	put_event(&trace, 1200, BEGIN, 7, "inner");
	put_event(&trace, 1300, END, 7, NULL);
	packet = open_packet(&trace, 1, 2000, 0);
	event = ts_proto_open(&trace, 11);
	ts_proto_put_uint(&trace, 9, END);
	ts_proto_put_uint(&trace, 11, 7);
	open = ts_proto_open(&trace, 4);
	put_text(&trace, 10, "result");
	ts_proto_put_uint(&trace, 2, 0);
	ts_proto_close(&trace, open);
	ts_proto_close(&trace, event);
	ts_proto_close(&trace, packet);
	put_event(&trace, 2500, BEGIN, 7, "open");
	CHECK_PACKETS(&trace, "slice",
		      "{'start':1000,'duration':1000,'thread':1,'name':'load','category':'io,net',"
		      "'args':{'size':-3,'big':18446744073709551615,"
		      "'text':'a text','at':'0xf00','json':{'a':[1,2]},'dict':{'k':[true,1.5]},"
		      "'nested':{'x':9},'result':false}}\n"
		      "{'start':1200,'duration':100,'thread':1,'name':'inner'}\n"
		      "{'start':2500,'duration':-1,'thread':1,'name':'open'}\n");
	CHECK_PACKETS(&trace, "thread", "{'id':1,'process':1,'tid':43,'name':'main'}\n");
	CHECK_PACKETS(&trace, "process", "{'id':1,'source':1,'pid':42}\n");
	CHECK_PACKETS(&trace, "source",
		      "{'id':1,'name':'test.pftrace','format':'perfetto','clock':1}\n");
	CHECK_NOTE(&trace, "");
}

TS_TEST(ends_that_come_first_and_ends_of_nothing)
{
	TS_SCOPED(ts_text) trace = { 0 };

	/* Two threads write one track: the file has an end before its begin. */
	put_event(&trace, 300, END, 5, NULL);
	put_event(&trace, 100, BEGIN, 5, "late");
	/* The end of a span that began before the recording does not match later begins. */
	put_event(&trace, 50, END, 6, NULL);
	put_event(&trace, 100, BEGIN, 6, "later");
	put_event(&trace, 150, END, 6, NULL);
	/* An end with a name closes the newest span of that name. */
	put_event(&trace, 200, BEGIN, 6, "a");
	put_event(&trace, 210, BEGIN, 6, "b");
	put_event(&trace, 220, END, 6, "a");
	put_event(&trace, 230, END, 6, NULL);
	put_event(&trace, 250, BEGIN, 6, "back");
	put_event(&trace, 240, END, 6, NULL);
	CHECK_PACKETS(&trace, "slice",
		      "{'start':100,'duration':200,'thread':1,'name':'late'}\n"
		      "{'start':100,'duration':50,'thread':2,'name':'later'}\n"
		      "{'start':200,'duration':20,'thread':2,'name':'a'}\n"
		      "{'start':210,'duration':20,'thread':2,'name':'b'}\n"
		      "{'start':250,'thread':2,'name':'back'}\n");
	CHECK_NOTE(
		&trace,
		"lost: 1 slice that ends before it starts (kept with duration 0), 1 slice end without a begin");
}

/* ---- tracks ---- */

static void put_track(struct ts_text *trace, uint64_t uuid, uint64_t parent, const char *name)
{
	size_t packet = open_packet(trace, 1, 0, 0), track = ts_proto_open(trace, 60);

	ts_proto_put_uint(trace, 1, uuid);
	if (parent)
		ts_proto_put_uint(trace, 5, parent);
	if (name)
		put_text(trace, 2, name);
	ts_proto_close(trace, track);
	ts_proto_close(trace, packet);
}

static void put_process_track(struct ts_text *trace, uint64_t uuid, uint64_t pid)
{
	size_t packet = open_packet(trace, 1, 0, 0), track = ts_proto_open(trace, 60), process;

	ts_proto_put_uint(trace, 1, uuid);
	process = ts_proto_open(trace, 3);
	ts_proto_put_uint(trace, 1, pid);
	put_text(trace, 2, "/bin/app");
	put_text(trace, 2, "-x");
	put_text(trace, 6, "app");
	ts_proto_close(trace, process);
	ts_proto_close(trace, track);
	ts_proto_close(trace, packet);
}

TS_TEST(tracks_are_described_behind_their_events)
{
	TS_SCOPED(ts_text) trace = { 0 };

	put_event(&trace, 100, INSTANT, 3, "m");
	put_track(&trace, 3, 2, "lane");
	put_track(&trace, 2, 1, "group");
	put_process_track(&trace, 1, 42);
	/* A cycle of tracks has no owner. */
	put_track(&trace, 8, 9, "round");
	put_track(&trace, 9, 8, "and round");
	put_event(&trace, 200, INSTANT, 9, "n");
	put_event(&trace, 300, INSTANT, 1, "p");
	CHECK_PACKETS(&trace, "thread",
		      "{'id':1,'process':1,'name':'lane'}\n{'id':2,'name':'and round'}\n"
		      "{'id':3,'process':1}\n");
	CHECK_PACKETS(&trace, "process",
		      "{'id':1,'source':1,'pid':42,'name':'app','command':['/bin/app','-x']}\n");
	CHECK_PACKETS(&trace, "mark",
		      "{'start':100,'thread':1,'name':'m'}\n"
		      "{'start':200,'thread':2,'name':'n'}\n"
		      "{'start':300,'thread':3,'name':'p','scope':'process'}\n");
}

/* ---- clocks ---- */

static void put_clock(struct ts_text *trace, uint64_t id, uint64_t time, uint64_t unit,
		      bool is_incremental)
{
	size_t clock = ts_proto_open(trace, 1);

	ts_proto_put_uint(trace, 1, id);
	ts_proto_put_uint(trace, 2, time);
	if (is_incremental)
		ts_proto_put_uint(trace, 3, 1);
	if (unit > 1)
		ts_proto_put_uint(trace, 4, unit);
	ts_proto_close(trace, clock);
}

static void put_mark_in(struct ts_text *trace, uint64_t sequence, uint64_t clock, uint64_t time,
			const char *name)
{
	size_t packet = open_packet(trace, sequence, time, 0), event;

	if (clock)
		ts_proto_put_uint(trace, 58, clock);
	event = ts_proto_open(trace, 11);
	ts_proto_put_uint(trace, 9, INSTANT);
	put_text(trace, 23, name);
	ts_proto_close(trace, event);
	ts_proto_close(trace, packet);
}

TS_TEST(clocks)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet, snapshot;

	/*
	 * Clock 64 of sequence 2 is tied to the monotonic clock before that is tied to the trace's.
	 */
	packet = open_packet(&trace, 2, 0, 0);
	snapshot = ts_proto_open(&trace, 6);
	put_clock(&trace, 3, 5000, 1, false);
	put_clock(&trace, 64, 7, 1000, true);
	ts_proto_close(&trace, snapshot);
	ts_proto_close(&trace, packet);
	packet = open_packet(&trace, 1, 0, 0);
	snapshot = ts_proto_open(&trace, 6);
	put_clock(&trace, 6, 10000, 1, false);
	put_clock(&trace, 3, 4000, 1, false);
	put_clock(&trace, 1, 1700000000000000000, 1, false);
	ts_proto_put_uint(&trace, 2, 6);
	ts_proto_close(&trace, snapshot);
	ts_proto_close(&trace, packet);
	put_mark_in(&trace, 1, 0, 12000, "plain");
	put_mark_in(&trace, 1, 3, 4500, "monotonic");
	/* 5000 of the monotonic clock, plus 2 and 3 us. */
	put_mark_in(&trace, 2, 64, 2, "first");
	put_mark_in(&trace, 2, 64, 3, "second");
	put_mark_in(&trace, 3, 64, 2, "of nobody");
	put_mark_in(&trace, 3, 6, UINT64_MAX, "beyond");
	/* Later the monotonic clock has drifted. */
	packet = open_packet(&trace, 1, 0, 0);
	snapshot = ts_proto_open(&trace, 6);
	put_clock(&trace, 6, 30000, 1, false);
	put_clock(&trace, 3, 20000, 1, false);
	ts_proto_close(&trace, snapshot);
	ts_proto_close(&trace, packet);
	put_mark_in(&trace, 1, 3, 20100, "slipped");
	put_mark_in(&trace, 1, 3, 19000, "before");
	CHECK_PACKETS(&trace, "clock_sync",
		      "{'clock':1,'time':10000,'reference':1700000000000000000,"
		      "'method':'clock_snapshot'}\n");
	CHECK_PACKETS(&trace, "mark",
		      "{'start':1700000000000000500,'thread':1,'name':'monotonic'}\n"
		      "{'start':1700000000000002000,'thread':1,'name':'plain'}\n"
		      "{'start':1700000000000003000,'thread':1,'name':'first'}\n"
		      "{'start':1700000000000006000,'thread':1,'name':'second'}\n"
		      "{'start':1700000000000015000,'thread':1,'name':'before'}\n"
		      "{'start':1700000000000020100,'thread':1,'name':'slipped'}\n");
	CHECK_NOTE(&trace, "lost: 1 packet in a clock without a clock snapshot, 1 packet "
			   "with a time beyond 64-bit ns");
}

/* ---- sequences ---- */

TS_TEST(what_needs_lost_state_is_lost)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet, event;

	put_names(&trace);
	for (int i = 0; i < 3; i++) {
		packet = open_packet(&trace, 1, 100 + (uint64_t)i, STATE_NEEDED);
		if (i == 1)
			ts_proto_put_uint(&trace, 42, 1);
		event = ts_proto_open(&trace, 11);
		ts_proto_put_uint(&trace, 9, INSTANT);
		ts_proto_put_uint(&trace, 10, UINT64_MAX);
		ts_proto_close(&trace, event);
		ts_proto_close(&trace, packet);
	}
	put_names(&trace);
	packet = open_packet(&trace, 1, 200, STATE_NEEDED);
	event = ts_proto_open(&trace, 11);
	ts_proto_put_uint(&trace, 9, INSTANT);
	ts_proto_put_uint(&trace, 10, 77);
	ts_proto_close(&trace, event);
	ts_proto_close(&trace, packet);
	CHECK_PACKETS(&trace, "mark",
		      "{'start':100,'thread':1,'name':'load'}\n"
		      "{'start':200,'thread':1}\n");
	CHECK_NOTE(&trace,
		   "lost: 1 gap where the recorder dropped packets, 2 packets whose interned "
		   "data was lost, 1 interned value missing from the file");
}

TS_TEST(packets_that_nobody_reads_are_counted)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet, bundle, event;

	packet = open_packet(&trace, 1, 10, 0);
	bundle = ts_proto_open(&trace, 1);
	for (int i = 0; i < 3; i++)
		ts_proto_close(&trace, ts_proto_open(&trace, 2));
	ts_proto_close(&trace, bundle);
	ts_proto_close(&trace, packet);
	for (int i = 0; i < 2; i++) {
		packet = open_packet(&trace, 1, 10, 0);
		ts_proto_close(&trace, ts_proto_open(&trace, 7));
		ts_proto_close(&trace, packet);
	}
	packet = open_packet(&trace, 1, 10, 0);
	ts_proto_close(&trace, ts_proto_open(&trace, 199));
	ts_proto_close(&trace, packet);
	packet = open_packet(&trace, 1, 10, 0);
	event = ts_proto_open(&trace, 11);
	ts_proto_put_uint(&trace, 9, INSTANT);
	ts_proto_close(&trace, ts_proto_open(&trace, 24));
	ts_proto_close(&trace, ts_proto_open(&trace, 1001));
	ts_proto_close(&trace, event);
	ts_proto_close(&trace, packet);
	/* A packet that is not a message. */
	ts_proto_put_bytes(&trace, 1, "\x08\x01\x07\x07", 4);
	CHECK_NOTE(
		&trace,
		"lost: 3 ftrace events, 2 packets of kind sys_stats, 1 packet of unknown kind, 1 argument of a Chrome-specific type, 1 argument in an "
		"extension field, 1 damaged packet");
}

/* ---- compressed packets ---- */

static uint32_t adler32(const char *data, size_t bytes)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < bytes; i++) {
		a = (a + (unsigned char)data[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

/* Stored bytes in a zlib stream. */
static void store(struct ts_text *out, const struct ts_text *inner)
{
	uint32_t sum = adler32(inner->data, inner->length);
	unsigned char head[] = { 0x78,
				 0x01,
				 0x01,
				 (unsigned char)inner->length,
				 (unsigned char)(inner->length >> 8),
				 (unsigned char)~inner->length,
				 (unsigned char)(~inner->length >> 8) };
	unsigned char tail[] = { (unsigned char)(sum >> 24), (unsigned char)(sum >> 16),
				 (unsigned char)(sum >> 8), (unsigned char)sum };

	ts_text_append(out, head, sizeof(head));
	ts_text_append(out, inner->data, inner->length);
	ts_text_append(out, tail, sizeof(tail));
}

TS_TEST(packed_packets)
{
	TS_SCOPED(ts_text) trace = { 0 };
	TS_SCOPED(ts_text) inner = { 0 };
	TS_SCOPED(ts_text) packed = { 0 };
	/* A zstd frame with 0a 06 40 07 5a 02 48 03 stored. */
	static const char zstd[] =
		"\x28\xb5\x2f\xfd\x20\x08\x41\x00\x00\x0a\x06\x40\x07\x5a\x02\x48"
		"\x03";
	size_t packet;

	put_event(&inner, 100, INSTANT, 7, "packed");
	store(&packed, &inner);
	packet = ts_proto_open(&trace, 1);
	ts_proto_put_bytes(&trace, 50, packed.data, packed.length);
	ts_proto_close(&trace, packet);
	packet = ts_proto_open(&trace, 1);
	ts_proto_put_bytes(&trace, 133, zstd, sizeof(zstd) - 1);
	ts_proto_close(&trace, packet);
#ifdef TS_HAVE_ZLIB
	CHECK_PACKETS(&trace, "mark",
		      "{'start':7,'thread':2}\n"
		      "{'start':100,'thread':1,'name':'packed'}\n");
	/* A damaged one is counted. */
	trace.data[20] ^= 1;
	CHECK_NOTE(&trace, "lost: 1 damaged compressed packet");
#else
	CHECK_NOTE(&trace, "lost: 1 compressed packet, which a build without zlib cannot read");
#endif
}

/* ---- malformed files ---- */

TS_TEST(nested_deeper_than_anybody_needs)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet = open_packet(&trace, 1, 100, 0), event = ts_proto_open(&trace, 11);
	size_t open[1000];
	struct imported imported;

	ts_proto_put_uint(&trace, 9, INSTANT);
	open[0] = ts_proto_open(&trace, 4);
	for (size_t i = 1; i < TS_ARRAY_SIZE(open); i++)
		open[i] = ts_proto_open(&trace, 12);
	for (size_t i = TS_ARRAY_SIZE(open); i-- > 0;)
		ts_proto_close(&trace, open[i]);
	ts_proto_close(&trace, event);
	ts_proto_close(&trace, packet);
	import_packets(&imported, &trace, trace.length, false);
	TS_CHECK_INT(imported.rc, 0);
	TS_CHECK_STR(imported.result.note, "lost: 1 argument nested too deeply");
	release_imported(&imported);
}

static void put_everything(struct ts_text *trace)
{
	put_names(trace);
	put_thread_track(trace, 7, 42, 43, "main");
	put_begin(trace);
	put_event(trace, 1300, END, 7, NULL);
	put_track(trace, 8, 7, "lane");
	put_event(trace, 1400, INSTANT, 8, "m");
	put_mark_in(trace, 2, 0, 1500, "n");
}

TS_TEST(a_file_that_breaks_off_keeps_what_came_before)
{
	TS_SCOPED(ts_text) trace = { 0 };
	uint64_t before = 0;
	struct imported complete;

	put_everything(&trace);
	import_packets(&complete, &trace, trace.length, false);
	for (size_t bytes = 1; bytes < trace.length; bytes++) {
		struct imported imported;

		import_packets(&imported, &trace, bytes, bytes % 2);
		/* A cut between two packets is not detected. */
		if (imported.rc) {
			TS_CHECK_INT(imported.rc, TS_EFORMAT);
			TS_CHECK(strstr(imported.err.message, "is truncated"));
		}
		/* The span is open until its end arrives: it is a row all the time. */
		TS_CHECK(imported.result.events >= before);
		TS_CHECK(imported.result.events <= complete.result.events);
		before = imported.result.events;
		release_imported(&imported);
	}
	TS_CHECK(before > 0);
	release_imported(&complete);
}

TS_TEST(any_byte_may_be_wrong)
{
	TS_SCOPED(ts_text) trace = { 0 };

	put_everything(&trace);
	for (size_t i = 0; i < trace.length; i++) {
		for (unsigned int bit = 1 + i % 7; bit < 256; bit += 131) {
			struct imported imported;

			trace.data[i] ^= (char)bit;
			import_packets(&imported, &trace, trace.length, i % 2);
			TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT ||
				 imported.rc == TS_EVERSION);
			release_imported(&imported);
			trace.data[i] ^= (char)bit;
		}
	}
}
