/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of Perfetto files: writes packets one by one, and imports them at once and in small
 * pieces, which must make no difference.
 */
#ifndef TS_TESTS_UNIT_IMPORT_PERFETTO_PERFETTO_SUPPORT_H
#define TS_TESTS_UNIT_IMPORT_PERFETTO_PERFETTO_SUPPORT_H

#include "base/proto.h"
#include "unit/import/import_support.h"

enum { STATE_CLEARED = 1, STATE_NEEDED = 2 };
enum { BEGIN = 1, END = 2, INSTANT = 3, COUNTER = 4 };

static inline void put_text(struct ts_text *out, uint32_t number, const char *text)
{
	ts_proto_put_bytes(out, number, text, strlen(text));
}

/* A packet of a sequence; time 0: none. The caller closes it. */
static inline size_t open_packet(struct ts_text *out, uint64_t sequence, uint64_t time,
				 uint64_t flags)
{
	size_t packet = ts_proto_open(out, 1);

	if (time)
		ts_proto_put_uint(out, 8, time);
	ts_proto_put_uint(out, 10, sequence);
	if (flags)
		ts_proto_put_uint(out, 13, flags);
	return packet;
}

/* An entry of interned data: iid and text. */
static inline void put_interned(struct ts_text *out, uint32_t number, uint64_t iid,
				const char *text)
{
	size_t entry = ts_proto_open(out, number);

	ts_proto_put_uint(out, 1, iid);
	put_text(out, 2, text);
	ts_proto_close(out, entry);
}

/* A packet whose event has a type, a track and a name. */
static inline void put_event(struct ts_text *out, uint64_t time, unsigned int type, uint64_t track,
			     const char *name)
{
	size_t packet = open_packet(out, 1, time, 0), event = ts_proto_open(out, 11);

	ts_proto_put_uint(out, 9, type);
	ts_proto_put_uint(out, 11, track);
	if (name)
		put_text(out, 23, name);
	ts_proto_close(out, event);
	ts_proto_close(out, packet);
}

static inline void put_thread_track(struct ts_text *out, uint64_t uuid, uint64_t pid, uint64_t tid,
				    const char *name)
{
	size_t packet = open_packet(out, 1, 0, 0), track = ts_proto_open(out, 60), thread;

	ts_proto_put_uint(out, 1, uuid);
	thread = ts_proto_open(out, 4);
	ts_proto_put_uint(out, 1, pid);
	ts_proto_put_uint(out, 2, tid);
	put_text(out, 5, name);
	ts_proto_close(out, thread);
	ts_proto_close(out, track);
	ts_proto_close(out, packet);
}

static inline void import_packets(struct imported *imported, const struct ts_text *trace,
				  size_t bytes, bool in_pieces)
{
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_import_options options = { .size = sizeof(options), .format = "perfetto" };

	memset(imported, 0, sizeof(*imported));
	imported->rc = ts_import_memory(writer, "test.pftrace", trace->data, bytes,
					in_pieces ? 7 : 0, in_pieces ? 16 : 0, &options,
					&imported->result, &imported->err);
	imported->reader = finish_and_read(writer, path);
}

static inline void check_packets(const char *file, int line, const struct ts_text *trace,
				 const char *table, const char *expected)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_packets(&imported, trace, trace->length, in_pieces);
		if (imported.rc)
			ts_test_fail(file, line, "%s", imported.err.message);
		check_table(file, line, imported.reader, table, expected);
		release_imported(&imported);
	}
}

#define CHECK_PACKETS(trace, table, expected) \
	check_packets(__FILE__, __LINE__, trace, table, expected)

/* The note of a successful import. */
static inline void check_note(const char *file, int line, const struct ts_text *trace,
			      const char *expected)
{
	struct imported imported;

	import_packets(&imported, trace, trace->length, false);
	if (imported.rc)
		ts_test_fail(file, line, "%s", imported.err.message);
	ts_test_check_str(file, line, "note", imported.result.note, expected);
	release_imported(&imported);
}

#define CHECK_NOTE(trace, expected) check_note(__FILE__, __LINE__, trace, expected)

#endif
