/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Perfetto file as a sequence of packets: detection, packet boundaries, decompression, and
 * dispatch of their fields.
 */
#include "import/perfetto/perfetto_import.h"

#include <stdlib.h>

#include "import/perfetto/perfetto_kinds.h"
#include "import/perfetto/perfetto_unpack.h"

/* Wire type of a TracePacket field that is used; -1: unused. */
static int field_type(uint32_t number)
{
	switch (number) {
	case 3:
	case 8:
	case 10:
	case 13:
	case 41:
	case 42:
	case 58:
	case 79:
	case 87:
	case 98:
		return TS_PROTO_VARINT;
	default:
		return number < 200 || number == 900 || number == TS_PERFETTO_NATIVE_FIELD
			       ? TS_PROTO_BYTES
			       : -1;
	}
}

/* Are these the first bytes of a TracePacket? They may be truncated. */
static bool is_packet(const char *data, size_t bytes, bool is_complete)
{
	struct ts_proto_reader reader = ts_proto_reader(data, bytes);
	const unsigned char *at = reader.next;
	uint64_t tag, value;

	while (reader.next < reader.end) {
		at = reader.next;
		if (!ts_proto_varint(&reader, &tag))
			break;
		if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX ||
		    field_type((uint32_t)(tag >> 3)) != (int)(tag & 7))
			return false;
		if (!ts_proto_varint(&reader, &value))
			break;
		if ((tag & 7) != TS_PROTO_BYTES)
			continue;
		if (value > (size_t)(reader.end - reader.next))
			return !is_complete && value <= TS_PERFETTO_MAX_PACKET;
		reader.next += value;
	}
	/* A varint of more than 64 bits is invalid. */
	return !reader.failed || (!is_complete && reader.end - at < 2 * TS_PROTO_MAX_VARINT);
}

/* Text may look like fields; a packet also has binary numbers. */
static bool is_text(const char *data, size_t bytes)
{
	if (bytes < 8)
		return false;
	for (size_t i = 0; i < bytes && i < 64; i++) {
		unsigned char c = (unsigned char)data[i];

		if ((c < ' ' && c != '\n' && c != '\r' && c != '\t') || c >= 0x7f)
			return false;
	}
	return true;
}

int ts_perfetto_probe(const char *data, size_t bytes)
{
	struct ts_proto_reader reader = ts_proto_reader(data, bytes);
	uint64_t length;
	size_t held;

	if (is_text(data, bytes))
		return 0;
	/* Empty packets carry no information. */
	while (reader.end - reader.next > 1 && *reader.next == 0x0a) {
		reader.next++;
		if (!ts_proto_varint(&reader, &length) || length > TS_PERFETTO_MAX_PACKET)
			return 0;
		held = TS_MIN((size_t)(reader.end - reader.next), (size_t)length);
		if (held)
			return is_packet((const char *)reader.next, held, held == length);
		if (length)
			return 0;
	}
	return 0;
}

void ts_perfetto_add(struct ts_perfetto *p, enum ts_table_id table, const void *row,
		     const int64_t *values)
{
	p->import->result.events++;
	ts_writer_add(p->writer, table, row, values);
}

/* ---- packets ---- */

static void take_apart(struct ts_proto_reader *reader, struct ts_perfetto_packet *packet)
{
	struct ts_proto_field field;

	*packet = (struct ts_perfetto_packet){ 0 };
	while (ts_proto_next(reader, &field)) {
		if (field_type(field.number) == TS_PROTO_BYTES && field.type != TS_PROTO_BYTES)
			continue;
		switch (field.number) {
		case 8:
			packet->timestamp = field.value;
			packet->has_timestamp = true;
			break;
		case 10:
			packet->sequence_id = (uint32_t)field.value;
			break;
		case 12:
			packet->interned = field;
			packet->has_interned = true;
			break;
		case 13:
			packet->flags = (uint32_t)field.value;
			break;
		case 41:
			packet->cleared = field.value != 0;
			break;
		case 42:
			packet->dropped = field.value != 0;
			break;
		case 58:
			packet->clock = (uint32_t)field.value;
			packet->has_clock = true;
			break;
		case 59:
			packet->defaults = field;
			packet->has_defaults = true;
			break;
		case 87:
			packet->first = field.value != 0;
			break;
		case 98:
			packet->machine = (uint32_t)field.value;
			break;
		case 3:
		case 79:
			break;
		case TS_PERFETTO_NATIVE_FIELD:
			packet->native = field;
			packet->has_native = true;
			break;
		default:
			packet->data = field;
		}
	}
}

static void read_ftrace(struct ts_perfetto *p, const struct ts_proto_field *data)
{
	struct ts_proto_reader bundle = ts_proto_message(data), packed;
	struct ts_proto_field field, inner;
	uint64_t count = 0, value;

	while (ts_proto_next(&bundle, &field)) {
		if (field.number == 2)
			count++;
		if (field.number != 4)
			continue;
		packed = ts_proto_message(&field);
		while (ts_proto_next(&packed, &inner)) {
			struct ts_proto_reader numbers = ts_proto_message(&inner);

			if (inner.number != 1 && inner.number != 7)
				continue;
			while (numbers.next < numbers.end && ts_proto_varint(&numbers, &value))
				count++;
		}
	}
	if (count)
		ts_perfetto_lose(p, &ts_perfetto_loss_ftrace, count);
}

static void read_uuid(struct ts_perfetto *p, const struct ts_proto_field *data)
{
	struct ts_proto_reader message = ts_proto_message(data);
	struct ts_proto_field field;
	uint64_t high = 0, low = 0;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			high = field.value;
		else if (field.number == 2)
			low = field.value;
	}
	ts_text_clear(&p->json);
	ts_text_printf(&p->json, "\"%016llx%016llx\"", (unsigned long long)high,
		       (unsigned long long)low);
	ts_entities_meta(&p->entities, "trace_uuid", p->json.data, p->json.length);
}

/* Packets that need their timestamp. */
static int read_timed(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
		      const struct ts_perfetto_packet *packet)
{
	int64_t time;

	if (!ts_perfetto_packet_time(p, sequence, packet, &time))
		return TS_OK;
	if (time == TS_ABSENT)
		time = p->last_time;
	p->entities.time = time;
	switch (packet->data.number) {
	case 9:
		ts_perfetto_read_process_stats(p, packet, time);
		break;
	case 52:
		ts_perfetto_read_gpu_counters(p, sequence, packet, time);
		break;
	case 53:
		ts_perfetto_read_gpu_stage(p, sequence, packet, time);
		break;
	case 54:
		ts_perfetto_read_samples(p, sequence, packet, time);
		break;
	default:
		ts_perfetto_read_perf_sample(p, sequence, packet, time);
	}
	return TS_OK;
}

static int read_data(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
		     const struct ts_perfetto_packet *packet)
{
	switch (packet->data.number) {
	case 0:
	case 36: /* synchronization marker */
		return TS_OK;
	case 1:
		read_ftrace(p, &packet->data);
		return TS_OK;
	case 2:
		ts_perfetto_read_process_tree(p, packet);
		return TS_OK;
	case 6:
		return ts_perfetto_read_snapshot(p, sequence, &packet->data);
	case 11:
		return ts_perfetto_read_event(p, sequence, packet);
	case 43:
		ts_perfetto_read_old_process(p, packet);
		return TS_OK;
	case 44:
		ts_perfetto_read_old_thread(p, sequence, packet);
		return TS_OK;
	case 60:
		ts_perfetto_read_track(p, packet);
		return TS_OK;
	case 89:
		read_uuid(p, &packet->data);
		return TS_OK;
	case 128:
		ts_perfetto_read_gpu_info(p, packet);
		return TS_OK;
	case 9:
	case 52:
	case 53:
	case 54:
	case 66:
		return read_timed(p, sequence, packet);
	default:
		ts_perfetto_lose(p, ts_perfetto_kind(packet->data.number), 1);
		return TS_OK;
	}
}

/* The first packet decides whether the file is a TraceSmith export. */
static int start(struct ts_perfetto *p, const struct ts_perfetto_packet *packet)
{
	int rc = ts_perfetto_native_start(p, packet);

	p->started = true;
	if (rc || p->native)
		return rc;
	rc = ts_entities_start(&p->entities, p->import, p->err);
	p->key_value = ts_perfetto_text(p, "value");
	p->key_thread_dur = ts_perfetto_text(p, "thread_dur");
	p->key_instruction_delta = ts_perfetto_text(p, "thread_instruction_delta");
	return rc;
}

static int read_packet(struct ts_perfetto *p, const char *data, size_t bytes, bool is_unpacked);

static int read_packed(struct ts_perfetto *p, const struct ts_perfetto_packet *packet)
{
	struct ts_proto_reader trace;
	struct ts_proto_field field;
	int rc = ts_perfetto_unpack(&p->unpacked, &packet->data);

	if (rc == TS_ENOMEM)
		return rc;
	if (rc) {
		ts_perfetto_lose(
			p, rc == TS_ECAP ? &ts_perfetto_loss_no_zlib : &ts_perfetto_loss_unpack, 1);
		return TS_OK;
	}
	trace = ts_proto_reader(p->unpacked.data, p->unpacked.length);
	while (!rc && ts_proto_next(&trace, &field))
		if (field.number == 1 && field.type == TS_PROTO_BYTES)
			rc = read_packet(p, field.bytes, field.length, true);
	if (trace.failed)
		ts_perfetto_lose(p, &ts_perfetto_loss_unpack, 1);
	return rc;
}

static int read_packet(struct ts_perfetto *p, const char *data, size_t bytes, bool is_unpacked)
{
	struct ts_proto_reader reader = ts_proto_reader(data, bytes);
	struct ts_perfetto_packet packet;
	struct ts_perfetto_sequence *sequence;
	bool usable;
	int rc = TS_OK;

	take_apart(&reader, &packet);
	if (TS_UNLIKELY(!p->started))
		rc = start(p, &packet);
	if (rc)
		return rc;
	if (TS_UNLIKELY(reader.failed)) {
		ts_perfetto_lose(p, &ts_perfetto_loss_broken, 1);
		return TS_OK;
	}
	if (packet.data.number == 50 || packet.data.number == 133) {
		if (!is_unpacked)
			return read_packed(p, &packet);
		ts_perfetto_lose(p, &ts_perfetto_loss_unpack, 1);
		return TS_OK;
	}
	sequence = ts_perfetto_sequence(p, &packet, &usable);
	if (!sequence)
		return TS_ENOMEM;
	if (packet.has_interned)
		rc = ts_perfetto_read_interned(p, sequence, &packet.interned);
	if (packet.has_defaults)
		ts_perfetto_read_defaults(p, sequence, &packet.defaults);
	if (rc)
		return rc;
	if (p->native)
		return ts_perfetto_native_packet(p, sequence, &packet);
	if (TS_UNLIKELY(!usable)) {
		if (packet.data.number)
			ts_perfetto_lose(p, &ts_perfetto_loss_state, 1);
		return TS_OK;
	}
	return read_data(p, sequence, &packet);
}

/* ---- the file ---- */

/* Length of the next packet; *ret_bytes 0 with *ret_head 0: end of file. */
static int read_head(struct ts_perfetto *p, size_t *ret_head, size_t *ret_bytes)
{
	struct ts_import *import = p->import;
	const struct ts_json *js = &import->stream.js;
	struct ts_proto_reader reader;
	uint64_t length;
	size_t held;
	int rc = ts_import_need(import, 1 + TS_PROTO_MAX_VARINT, &held, p->err);

	*ret_head = *ret_bytes = 0;
	if (rc || !held)
		return rc;
	if (*js->next != 0x0a)
		return ts_import_bad(import, ts_input_stream_at(&import->stream, js->next),
				     "not a packet", p->err);
	reader = ts_proto_reader(js->next + 1, held - 1);
	if (!ts_proto_varint(&reader, &length)) {
		if (held <= TS_PROTO_MAX_VARINT)
			return ts_import_cut(import, ts_input_stream_at(&import->stream, js->end),
					     p->err);
		length = UINT64_MAX;
	}
	if (length > TS_PERFETTO_MAX_PACKET - 1 - TS_PROTO_MAX_VARINT)
		return ts_import_bad(import, ts_input_stream_at(&import->stream, js->next),
				     "packet larger than 256 MiB", p->err);
	*ret_head = (size_t)((const char *)reader.next - js->next);
	*ret_bytes = (size_t)length;
	return TS_OK;
}

static int read_file(struct ts_perfetto *p)
{
	struct ts_import *import = p->import;
	struct ts_json *js = &import->stream.js;
	size_t head, bytes, held;
	int rc;

	for (;;) {
		rc = read_head(p, &head, &bytes);
		if (rc || !head)
			return rc;
		rc = ts_import_need(import, head + bytes, &held, p->err);
		if (rc)
			return rc;
		if (held < head + bytes)
			return ts_import_cut(import, ts_input_stream_at(&import->stream, js->end),
					     p->err);
		rc = read_packet(p, js->next + head, bytes, false);
		if (rc)
			return rc;
		js->next += head + bytes;
	}
}

static int fail(struct ts_perfetto *p, int rc)
{
	int status = ts_writer_status(p->writer, p->err);

	if (status)
		return status;
	if (rc == TS_ENOMEM)
		return ts_error_set(p->err, rc, "input '%s': out of memory", p->import->path);
	return rc;
}

static void finish(struct ts_perfetto *p, int rc)
{
	const struct ts_loss_kind *rest = rc == TS_EFORMAT || rc == TS_ECANCELED ? &ts_loss_rest
										 : NULL;

	if (!p->started || rc == TS_EVERSION)
		return;
	if (p->native) {
		ts_perfetto_native_finish(p, rest);
		return;
	}
	if (rest)
		ts_perfetto_lose(p, rest, 1);
	ts_perfetto_finish_slices(p);
	if (p->args.left_out)
		ts_perfetto_lose(p, &ts_perfetto_loss_many, p->args.left_out);
	ts_perfetto_finish_tracks(p);
	ts_entities_finish(&p->entities);
}

static void release(struct ts_perfetto *p)
{
	if (p->started && !p->native)
		ts_entities_release(&p->entities);
	ts_perfetto_native_free(p->native);
	ts_perfetto_sequences_release(p);
	ts_perfetto_clocks_release(p);
	ts_perfetto_tracks_release(p);
	ts_map_release(&p->flows);
	ts_pairmap_release(&p->gpu_counters);
	ts_pairmap_release(&p->gpu_specs);
	ts_text_release(&p->unpacked);
	ts_text_release(&p->json);
	ts_text_release(&p->text);
	free(p->locations);
	free(p->frames);
	free(p);
}

int ts_perfetto_run(struct ts_import *import, struct ts_error *err)
{
	struct ts_perfetto *p = calloc(1, sizeof(*p));
	struct ts_perfetto_packet none = { 0 };
	int rc;

	if (!p)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	p->import = import;
	p->writer = import->writer;
	p->err = err;
	rc = read_file(p);
	/* A file without packets is valid if the format was forced. */
	if (!rc && !p->started)
		rc = start(p, &none);
	if (rc)
		rc = fail(p, rc);
	if (rc != TS_ENOMEM && !ts_writer_status(p->writer, NULL))
		finish(p, rc);
	release(p);
	return rc;
}
