/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other contents of Perfetto files: counters, arrows, legacy events, call stacks, samples, devices,
 * processes.
 */
#include "unit/import/perfetto/perfetto_support.h"

/* An event of sequence 1 on a track; the caller writes the remaining fields. */
static size_t events_packet;

static size_t open_event(struct ts_text *trace, uint64_t time, unsigned int type, uint64_t track)
{
	size_t event;

	events_packet = open_packet(trace, 1, time, 0);
	event = ts_proto_open(trace, 11);
	if (type)
		ts_proto_put_uint(trace, 9, type);
	if (track)
		ts_proto_put_uint(trace, 11, track);
	return event;
}

static void close_event(struct ts_text *trace, size_t event)
{
	ts_proto_close(trace, event);
	ts_proto_close(trace, events_packet);
}

/* ---- counters ---- */

static void put_counter_track(struct ts_text *trace, uint64_t uuid, const char *name, uint64_t type,
			      uint64_t unit, uint64_t multiplier, bool is_incremental)
{
	size_t packet = open_packet(trace, 1, 0, 0), track = ts_proto_open(trace, 60), counter;

	ts_proto_put_uint(trace, 1, uuid);
	ts_proto_put_uint(trace, 5, 7);
	if (name)
		put_text(trace, 2, name);
	counter = ts_proto_open(trace, 8);
	ts_proto_put_uint(trace, 1, type);
	ts_proto_put_uint(trace, 3, unit);
	ts_proto_put_uint(trace, 4, multiplier);
	ts_proto_put_uint(trace, 5, is_incremental);
	ts_proto_close(trace, counter);
	ts_proto_close(trace, track);
	ts_proto_close(trace, packet);
}

TS_TEST(counters)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t event, packet, defaults, inner;

	put_thread_track(&trace, 7, 42, 43, "main");
	put_counter_track(&trace, 20, "memory", 0, 3, 1024, true);
	put_counter_track(&trace, 21, "load", 0, 0, 0, false);
	put_counter_track(&trace, 22, NULL, 1, 0, 1000, true);
	event = open_event(&trace, 100, COUNTER, 20);
	ts_proto_put_int(&trace, 30, 4);
	close_event(&trace, event);
	/* Defined again, it is the same counter. */
	put_counter_track(&trace, 20, "memory", 0, 3, 1024, true);
	event = open_event(&trace, 200, COUNTER, 20);
	ts_proto_put_int(&trace, 30, -1);
	close_event(&trace, event);
	event = open_event(&trace, 300, COUNTER, 21);
	ts_proto_put_double(&trace, 44, 0.5);
	close_event(&trace, event);
	/* Extra values: those of thread time belong to the slice. */
	packet = open_packet(&trace, 1, 0, 0);
	defaults = ts_proto_open(&trace, 59);
	inner = ts_proto_open(&trace, 11);
	ts_proto_put_uint(&trace, 11, 7);
	ts_proto_put_uint(&trace, 31, 22);
	ts_proto_put_uint(&trace, 31, 20);
	ts_proto_close(&trace, inner);
	ts_proto_close(&trace, defaults);
	ts_proto_close(&trace, packet);
	for (uint64_t i = 0; i < 2; i++) {
		event = open_event(&trace, 400 + 100 * i, i ? END : BEGIN, 0);
		if (i) {
			ts_proto_put_bytes(&trace, 12, "\x05", 1);
		} else {
			ts_proto_put_int(&trace, 12, 3);
			ts_proto_put_int(&trace, 12, 10);
		}
		close_event(&trace, event);
	}
	event = open_event(&trace, 600, COUNTER, 21);
	close_event(&trace, event);
	CHECK_PACKETS(&trace, "counter",
		      "{'start':100,'thread':1,'name':'memory (bytes)','process':1,"
		      "'args':{'value':4096}}\n"
		      "{'start':200,'thread':1,'name':'memory (bytes)','process':1,"
		      "'args':{'value':3072}}\n"
		      "{'start':300,'thread':1,'name':'load','process':1,'args':{'value':0.5}}\n"
		      "{'start':400,'thread':1,'name':'memory (bytes)','process':1,"
		      "'args':{'value':13312}}\n");
	CHECK_PACKETS(&trace, "slice",
		      "{'start':400,'duration':100,'thread':1,'args':{'thread_dur':5000}}\n");
	CHECK_NOTE(&trace, "lost: 1 counter event without a value or a track");
}

/* ---- arrows ---- */

TS_TEST(arrows)
{
	TS_SCOPED(ts_text) trace = { 0 };
	static const uint64_t big = UINT64_C(1) << 63;
	size_t event;

	event = open_event(&trace, 100, INSTANT, 5);
	ts_proto_put_fixed64(&trace, 47, 9);
	ts_proto_put_uint(&trace, 36, 9);
	close_event(&trace, event);
	event = open_event(&trace, 200, INSTANT, 5);
	/* Packed. */
	ts_proto_put_bytes(&trace, 48, "\x09\0\0\0\0\0\0\0", 8);
	ts_proto_put_bytes(&trace, 36, "\x0b", 1);
	close_event(&trace, event);
	event = open_event(&trace, 300, INSTANT, 5);
	ts_proto_put_fixed64(&trace, 47, 9);
	ts_proto_put_fixed64(&trace, 47, big);
	close_event(&trace, event);
	CHECK_PACKETS(&trace, "flow",
		      "{'start':100,'thread':1,'enclosing':true,'id':9}\n"
		      "{'start':100,'thread':1,'kind':'step','enclosing':true,'id':9}\n"
		      "{'start':200,'thread':1,'kind':'end','enclosing':true,'id':9}\n"
		      "{'start':200,'thread':1,'enclosing':true,'id':11}\n"
		      "{'start':300,'thread':1,'enclosing':true,'id':9}\n"
		      "{'start':300,'thread':1,'enclosing':true,"
		      "'id_json':9223372036854775808}\n");
}

/* ---- legacy events ---- */

static void put_legacy(struct ts_text *trace, char phase, int64_t us, uint32_t id_kind, uint64_t id)
{
	size_t packet = open_packet(trace, 3, 0, STATE_NEEDED), event = ts_proto_open(trace, 11);
	size_t legacy;

	ts_proto_put_int(trace, 1, us);
	put_text(trace, 22, "c");
	put_text(trace, 23, "old");
	legacy = ts_proto_open(trace, 6);
	ts_proto_put_uint(trace, 2, (uint64_t)phase);
	if (phase == 'X')
		ts_proto_put_int(trace, 3, 5);
	if (id_kind)
		ts_proto_put_uint(trace, id_kind, id);
	if (phase == 'i')
		ts_proto_put_uint(trace, 14, 1);
	ts_proto_close(trace, legacy);
	ts_proto_close(trace, event);
	ts_proto_close(trace, packet);
}

TS_TEST(events_of_old)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet = open_packet(&trace, 3, 0, STATE_CLEARED),
	       thread = ts_proto_open(&trace, 44);

	ts_proto_put_uint(&trace, 1, 50);
	ts_proto_put_uint(&trace, 2, 51);
	put_text(&trace, 5, "worker");
	ts_proto_put_int(&trace, 6, 1000);
	ts_proto_close(&trace, thread);
	ts_proto_close(&trace, packet);
	put_legacy(&trace, 'X', 1, 0, 0);
	put_legacy(&trace, 'B', 1, 0, 0);
	put_legacy(&trace, 'E', 1, 0, 0);
	/* Two ids with the same number but different kinds overlap. */
	put_legacy(&trace, 'b', 1, 6, 9);
	put_legacy(&trace, 'S', 1, 11, 9);
	put_legacy(&trace, 'e', 1, 6, 9);
	put_legacy(&trace, 'F', 1, 11, 9);
	put_legacy(&trace, 'i', 1, 0, 0);
	put_legacy(&trace, 's', 1, 6, 4);
	put_legacy(&trace, 'f', 1, 6, 4);
	put_legacy(&trace, 'Z', 1, 0, 0);
	CHECK_PACKETS(&trace, "slice",
		      "{'start':1001000,'duration':5000,'thread':1,'name':'old','category':'c'}\n"
		      "{'start':1002000,'duration':1000,'thread':1,'name':'old','category':'c'}\n"
		      "{'start':1004000,'duration':2000,'thread':1,'name':'old','category':'c',"
		      "'kind':'async','id':'0x9'}\n"
		      "{'start':1005000,'duration':2000,'thread':1,'name':'old','category':'c',"
		      "'kind':'async','id':'0x9'}\n");
	CHECK_PACKETS(
		&trace, "mark",
		"{'start':1008000,'thread':1,'name':'old','category':'c','scope':'global'}\n");
	CHECK_PACKETS(&trace, "flow",
		      "{'start':1009000,'thread':1,'enclosing':true,'id':4,'name':'old',"
		      "'category':'c'}\n"
		      "{'start':1010000,'thread':1,'kind':'end','id':4,'name':'old',"
		      "'category':'c'}\n");
	CHECK_PACKETS(&trace, "thread", "{'id':1,'process':1,'tid':51,'name':'worker'}\n");
	CHECK_NOTE(&trace, "lost: 1 legacy event of unknown phase");
}

/* ---- stacks ---- */

/* Frames precede what they refer to, since fields are written in the order of their numbers. */
static void put_stacks(struct ts_text *trace)
{
	size_t data = ts_proto_open(trace, 12), entry;

	entry = ts_proto_open(trace, 7);
	ts_proto_put_uint(trace, 1, 1);
	ts_proto_put_uint(trace, 2, 1);
	ts_proto_put_bytes(trace, 2, "\x02", 1);
	ts_proto_close(trace, entry);
	for (uint64_t i = 1; i <= 2; i++) {
		entry = ts_proto_open(trace, 6);
		ts_proto_put_uint(trace, 1, i);
		ts_proto_put_uint(trace, 2, i);
		ts_proto_put_uint(trace, 3, 1);
		ts_proto_put_uint(trace, 4, 16 * i);
		ts_proto_close(trace, entry);
	}
	put_interned(trace, 5, 1, "main");
	put_interned(trace, 5, 2, "hot");
	put_interned(trace, 16, 1, "\xab\xcd");
	put_interned(trace, 17, 1, "usr");
	put_interned(trace, 17, 2, "lib.so");
	entry = ts_proto_open(trace, 19);
	ts_proto_put_uint(trace, 1, 1);
	ts_proto_put_uint(trace, 2, 1);
	ts_proto_put_uint(trace, 7, 1);
	ts_proto_put_uint(trace, 7, 2);
	ts_proto_close(trace, entry);
	ts_proto_close(trace, data);
}

TS_TEST(stacks_and_samples)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet = open_packet(&trace, 1, 500, STATE_CLEARED), sample;

	put_stacks(&trace);
	sample = ts_proto_open(&trace, 66);
	ts_proto_put_uint(&trace, 1, 3);
	ts_proto_put_uint(&trace, 2, 42);
	ts_proto_put_uint(&trace, 3, 43);
	ts_proto_put_uint(&trace, 4, 1);
	ts_proto_close(&trace, sample);
	ts_proto_close(&trace, packet);
	packet = open_packet(&trace, 1, 600, 0);
	sample = ts_proto_open(&trace, 66);
	ts_proto_put_uint(&trace, 18, 1);
	ts_proto_close(&trace, sample);
	ts_proto_close(&trace, packet);
	/* Two samples in a packet, 1 and 3 us after its time. */
	packet = open_packet(&trace, 1, 1000, 0);
	sample = ts_proto_open(&trace, 54);
	ts_proto_put_bytes(&trace, 1, "\x01\x01", 2);
	ts_proto_put_int(&trace, 2, 1);
	ts_proto_put_int(&trace, 2, 2);
	ts_proto_close(&trace, sample);
	ts_proto_close(&trace, packet);
	CHECK_PACKETS(&trace, "mapping", "{'path':'/usr/lib.so','build_id':'abcd'}\n");
	CHECK_PACKETS(&trace, "frame",
		      "{'name':'main','mapping':1,'pc':16}\n{'name':'hot','mapping':1,'pc':32}\n");
	CHECK_PACKETS(&trace, "stack", "{'frame':1}\n{'parent':1,'frame':2}\n");
	CHECK_PACKETS(&trace, "sample",
		      "{'start':500,'thread':1,'stack':2,'weight':1,'cpu':3,'name':'perf'}\n"
		      "{'start':2000,'stack':2,'weight':1}\n"
		      "{'start':4000,'stack':2,'weight':1}\n");
	CHECK_NOTE(&trace, "lost: 1 sample skipped by the profiler");
}

/* ---- devices ---- */

static void put_spec(struct ts_text *trace, uint64_t iid, const char *name, uint64_t category)
{
	size_t spec = ts_proto_open(trace, 24);

	ts_proto_put_uint(trace, 1, iid);
	put_text(trace, 2, name);
	ts_proto_put_uint(trace, 4, category);
	ts_proto_close(trace, spec);
}

TS_TEST(devices)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet = open_packet(&trace, 1, 100, STATE_CLEARED), data, stage, inner, last;

	data = ts_proto_open(&trace, 12);
	put_spec(&trace, 1, "queue", 0);
	put_spec(&trace, 2, "compute", 2);
	inner = ts_proto_open(&trace, 23);
	ts_proto_put_uint(&trace, 1, 5);
	ts_proto_put_uint(&trace, 2, 42);
	ts_proto_close(&trace, inner);
	ts_proto_close(&trace, data);
	stage = ts_proto_open(&trace, 53);
	ts_proto_put_uint(&trace, 2, 50);
	ts_proto_put_uint(&trace, 5, 5);
	ts_proto_put_uint(&trace, 10, 8);
	ts_proto_put_uint(&trace, 11, 1);
	ts_proto_put_uint(&trace, 13, 1);
	ts_proto_put_uint(&trace, 14, 2);
	put_text(&trace, 17, "saxpy");
	inner = ts_proto_open(&trace, 21);
	last = ts_proto_open(&trace, 1);
	ts_proto_put_uint(&trace, 1, 64);
	ts_proto_close(&trace, last);
	ts_proto_close(&trace, inner);
	ts_proto_close(&trace, stage);
	ts_proto_close(&trace, packet);
	/* The legacy form: lists of names, then numbers. */
	packet = open_packet(&trace, 2, 200, 0);
	stage = ts_proto_open(&trace, 53);
	inner = ts_proto_open(&trace, 7);
	for (uint32_t list = 2; list <= 3; list++) {
		last = ts_proto_open(&trace, list);
		put_text(&trace, 1, list == 2 ? "hw" : "vertex");
		ts_proto_close(&trace, last);
	}
	ts_proto_close(&trace, inner);
	ts_proto_close(&trace, stage);
	ts_proto_close(&trace, packet);
	packet = open_packet(&trace, 2, 300, 0);
	stage = ts_proto_open(&trace, 53);
	ts_proto_put_uint(&trace, 2, 7);
	ts_proto_put_uint(&trace, 3, 0);
	ts_proto_put_uint(&trace, 4, 0);
	ts_proto_close(&trace, stage);
	ts_proto_close(&trace, packet);
	packet = open_packet(&trace, 2, 400, 0);
	stage = ts_proto_open(&trace, 52);
	inner = ts_proto_open(&trace, 1);
	last = ts_proto_open(&trace, 1);
	ts_proto_put_uint(&trace, 1, 6);
	put_text(&trace, 2, "clock");
	ts_proto_put_uint(&trace, 7, 15);
	ts_proto_close(&trace, last);
	ts_proto_close(&trace, inner);
	for (uint64_t id = 6; id <= 7; id++) {
		inner = ts_proto_open(&trace, 2);
		ts_proto_put_uint(&trace, 1, id);
		ts_proto_put_int(&trace, 2, 1500);
		ts_proto_close(&trace, inner);
	}
	ts_proto_put_uint(&trace, 3, 1);
	ts_proto_close(&trace, stage);
	ts_proto_close(&trace, packet);
	packet = open_packet(&trace, 2, 0, 0);
	stage = ts_proto_open(&trace, 128);
	for (int i = 0; i < 2; i++) {
		inner = ts_proto_open(&trace, 1);
		put_text(&trace, 1, i ? "second" : "first");
		ts_proto_put_bytes(&trace, 5, "\x01\xff", 2);
		ts_proto_close(&trace, inner);
	}
	ts_proto_close(&trace, stage);
	ts_proto_close(&trace, packet);
	CHECK_PACKETS(&trace, "gpu_op",
		      "{'start':100,'duration':50,'device':1,'stream':1,'kind':'kernel',"
		      "'name':'saxpy','category':'compute','context':5,'grid_x':64,'grid_y':1,"
		      "'grid_z':1,'process':1,'args':{'submission_id':8}}\n"
		      "{'start':300,'duration':7,'device':2,'stream':2,'name':'vertex',"
		      "'category':'vertex'}\n");
	CHECK_PACKETS(&trace, "stream",
		      "{'id':1,'device':1,'name':'queue'}\n"
		      "{'id':2,'device':2,'number':0,'name':'hw'}\n");
	CHECK_PACKETS(&trace, "device",
		      "{'id':1,'source':1,'number':1,'name':'second','uuid':'01ff'}\n"
		      "{'id':2,'source':1,'number':0,'name':'first','uuid':'01ff'}\n");
	CHECK_PACKETS(&trace, "counter",
		      "{'start':400,'device':1,'name':'clock (MHz)','args':{'value':1500}}\n");
	CHECK_NOTE(&trace, "lost: 1 counter event without a value or a track");
}

/* ---- processes ---- */

TS_TEST(processes_as_the_system_lists_them)
{
	TS_SCOPED(ts_text) trace = { 0 };
	size_t packet = open_packet(&trace, 1, 100, 0), tree = ts_proto_open(&trace, 2), entry;

	entry = ts_proto_open(&trace, 1);
	ts_proto_put_uint(&trace, 1, 60);
	ts_proto_put_uint(&trace, 2, 1);
	put_text(&trace, 3, "server");
	put_text(&trace, 3, "-d");
	ts_proto_close(&trace, entry);
	entry = ts_proto_open(&trace, 2);
	ts_proto_put_uint(&trace, 1, 61);
	put_text(&trace, 2, "io");
	ts_proto_put_uint(&trace, 3, 60);
	ts_proto_close(&trace, entry);
	ts_proto_close(&trace, tree);
	ts_proto_close(&trace, packet);
	packet = open_packet(&trace, 1, 200, 0);
	tree = ts_proto_open(&trace, 9);
	entry = ts_proto_open(&trace, 1);
	ts_proto_put_uint(&trace, 1, 60);
	ts_proto_put_uint(&trace, 3, 777);
	ts_proto_close(&trace, entry);
	ts_proto_close(&trace, tree);
	ts_proto_close(&trace, packet);
	CHECK_PACKETS(&trace, "process",
		      "{'id':1,'source':1,'pid':1}\n"
		      "{'id':2,'source':1,'pid':60,'parent':1,'name':'server',"
		      "'command':['server','-d']}\n");
	CHECK_PACKETS(&trace, "thread", "{'id':1,'process':2,'tid':61,'name':'io'}\n");
	CHECK_PACKETS(
		&trace, "counter",
		"{'start':200,'name':'process_stats','process':2,'args':{'vm_rss_kb':777}}\n");
}
