/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations of a pprof profile as frames. A location is one address, with a line for each inlined
 * function: one frame with its symbols. Created when a sample first needs it.
 */
#include "import/pprof/pprof.h"

#include <stdlib.h>
#include <string.h>

#include "import/common/frame_file.h"

/* Limit on inlined functions at a location without an address. */
#define MAX_LINES 64

static const struct ts_loss_kind loss_lines = {
	.what = "frame",
	.one = "inlined function beyond 64 at one location",
	.many = "inlined functions beyond 64 at one location",
};
static const struct ts_loss_kind loss_location = {
	.what = "frame",
	.one = "frame whose location is missing from the profile",
	.many = "frames whose location is missing from the profile",
};

struct line {
	struct ts_pprof_bytes name; /* to tell languages apart */
	uint32_t function, file;    /* strings of the trace */
	int64_t line, column;
};

int ts_pprof_frames_init(struct ts_pprof *p)
{
	p->mapping_ids = calloc(p->mappings.count + 1, sizeof(*p->mapping_ids));
	p->location_list = calloc(p->locations.count + 1, sizeof(*p->location_list));
	return p->mapping_ids && p->location_list ? TS_OK : TS_ENOMEM;
}

void ts_pprof_frames_release(struct ts_pprof *p)
{
	ts_map_release(&p->symbols);
	free(p->mapping_ids);
	free(p->location_list);
	free(p->frames);
}

/* ---- mappings ---- */

struct mapping {
	uint64_t start, limit, offset, file, build_id;
};

static struct mapping read_mapping(struct ts_pprof *p, size_t index)
{
	struct ts_pprof_bytes bytes = p->mappings.items[index];
	struct ts_proto_reader message = ts_proto_reader(bytes.data, bytes.length);
	struct ts_proto_field field;
	struct mapping mapping = { 0 };

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 2:
			mapping.start = field.value;
			break;
		case 3:
			mapping.limit = field.value;
			break;
		case 4:
			mapping.offset = field.value;
			break;
		case 5:
			mapping.file = field.value;
			break;
		case 6:
			mapping.build_id = field.value;
			break;
		default:
			break;
		}
	}
	if (message.failed)
		ts_entities_add_loss(&p->entities, &ts_pprof_loss_message, 1);
	return mapping;
}

/* The row of a mapping, added on first use; *ret_mapping is the profile's data. */
static int64_t mapping_id(struct ts_pprof *p, uint64_t id, struct mapping *ret_mapping)
{
	struct ts_mapping_row row = ts_mapping_none;
	uint64_t index;

	*ret_mapping = (struct mapping){ 0 };
	if (!id || !ts_map_get(&p->mappings.by_id, id, &index))
		return 0;
	*ret_mapping = read_mapping(p, index);
	if (p->mapping_ids[index])
		return p->mapping_ids[index];
	row.process = p->process;
	row.path = ts_pprof_string(p, ret_mapping->file);
	row.build_id = ts_pprof_string(p, ret_mapping->build_id);
	if (ret_mapping->limit > ret_mapping->start) {
		row.address = (int64_t)ret_mapping->start;
		row.bytes = (int64_t)(ret_mapping->limit - ret_mapping->start);
		row.file_offset = (int64_t)ret_mapping->offset;
	}
	p->mapping_ids[index] = ts_writer_new_id(p->writer, TS_TABLE_MAPPING);
	ts_writer_add(p->writer, TS_TABLE_MAPPING, &row, NULL);
	return p->mapping_ids[index];
}

uint32_t ts_pprof_program(struct ts_pprof *p)
{
	struct ts_pprof_bytes path;
	const char *slash;

	if (!p->mappings.count)
		return 0;
	path = ts_pprof_text(p, read_mapping(p, 0).file);
	slash = path.length ? memrchr(path.data, '/', path.length) : NULL;
	if (slash) {
		path.length -= (size_t)(slash + 1 - path.data);
		path.data = slash + 1;
	}
	return path.length ? ts_import_string(p->import, path.data, path.length) : 0;
}

/* ---- functions ---- */

static void read_function(struct ts_pprof *p, uint64_t id, struct line *line)
{
	struct ts_proto_reader message;
	struct ts_proto_field field;
	uint64_t index, name = 0, system_name = 0, file = 0;

	if (!ts_map_get(&p->functions.by_id, id, &index))
		return;
	message = ts_proto_reader(p->functions.items[index].data, p->functions.items[index].length);
	while (ts_proto_next(&message, &field)) {
		if (field.number == 2)
			name = field.value;
		else if (field.number == 3)
			system_name = field.value;
		else if (field.number == 4)
			file = field.value;
	}
	if (message.failed)
		ts_entities_add_loss(&p->entities, &ts_pprof_loss_message, 1);
	line->function = ts_pprof_string(p, name);
	if (!line->function)
		line->function = ts_pprof_string(p, system_name);
	line->file = ts_pprof_string(p, file);
	line->name = ts_pprof_text(p, file);
}

static struct line read_line(struct ts_pprof *p, const struct ts_pprof_bytes *bytes)
{
	struct ts_proto_reader message = ts_proto_reader(bytes->data, bytes->length);
	struct line line = { .line = TS_ABSENT, .column = TS_ABSENT };
	struct ts_proto_field field;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			read_function(p, field.value, &line);
		else if (field.number == 2 && (int64_t)field.value > 0)
			line.line = (int64_t)field.value;
		else if (field.number == 3 && (int64_t)field.value > 0)
			line.column = (int64_t)field.value;
	}
	if (message.failed)
		ts_entities_add_loss(&p->entities, &ts_pprof_loss_message, 1);
	return line;
}

/* ---- locations ---- */

static enum ts_frame_kind kind_of(struct ts_pprof_bytes file, struct ts_pprof_bytes object,
				  bool has_address)
{
	enum ts_frame_kind kind = ts_frame_file_kind(file.data, file.length);

	if (kind != TS_FRAME_UNKNOWN)
		return kind;
	if (object.length >= 7 && memcmp(object.data, "[kernel", 7) == 0)
		return TS_FRAME_KERNEL;
	return has_address ? TS_FRAME_NATIVE : TS_FRAME_UNKNOWN;
}

static void add_frame(struct ts_pprof *p, struct ts_pprof_location *location, uint32_t frame)
{
	if (ts_grow_array((void **)&p->frames, &p->frame_capacity, p->frame_count + 1,
			  sizeof(*p->frames))) {
		p->rc = TS_ENOMEM;
		return;
	}
	p->frames[p->frame_count++] = frame;
	location->count++;
}

static void add_symbol(struct ts_pprof *p, uint32_t frame, uint32_t depth, const struct line *line)
{
	struct ts_symbol_row row = ts_symbol_none;

	row.frame = frame;
	row.depth = depth;
	row.name = line->function;
	row.file = line->file;
	row.line = line->line;
	ts_writer_add(p->writer, TS_TABLE_SYMBOL, &row, NULL);
}

/* Facts of a location, apart from its lines. */
struct slot {
	struct ts_frame_row row;
	struct ts_pprof_bytes object;
	bool has_address;
};

static void fill(struct slot *slot, const struct line *line)
{
	slot->row.name = line->function;
	slot->row.file = line->file;
	slot->row.line = line->line;
	slot->row.column = line->column;
	slot->row.kind = kind_of(line->name, slot->object, slot->has_address);
}

static struct ts_pprof_bytes bytes_of(const struct ts_proto_field *field)
{
	return (struct ts_pprof_bytes){ field->bytes,
					field->type == TS_PROTO_BYTES ? field->length : 0 };
}

/* The first line is the innermost function, which also names the frame. */
static void make_native(struct ts_pprof *p, struct ts_pprof_location *location, struct slot *slot,
			struct ts_proto_reader message, uint32_t count)
{
	struct ts_proto_field field;
	uint32_t depth = 0, frame = 0;
	bool is_new = true;

	if (!count)
		frame = ts_writer_frame(p->writer, &slot->row);
	while (ts_proto_next(&message, &field)) {
		struct ts_pprof_bytes bytes = bytes_of(&field);
		struct line line;

		if (field.number != 4)
			continue;
		line = read_line(p, &bytes);
		if (depth == 0) {
			fill(slot, &line);
			frame = ts_writer_frame(p->writer, &slot->row);
			if (!ts_map_insert(&p->symbols, frame, &is_new))
				p->rc = TS_ENOMEM;
		}
		/* Two locations with one address are equivalent. */
		if (is_new && (count > 1 || line.line != TS_ABSENT))
			add_symbol(p, frame, depth, &line);
		depth++;
	}
	add_frame(p, location, frame);
}

/* Without an address only its lines identify a location: one frame per line. */
static void make_lines(struct ts_pprof *p, struct ts_pprof_location *location, struct slot *slot,
		       struct ts_proto_reader message)
{
	struct ts_proto_field field;
	uint32_t found[MAX_LINES];
	size_t count = 0;

	while (ts_proto_next(&message, &field)) {
		struct ts_pprof_bytes bytes = bytes_of(&field);
		struct line line;

		if (field.number != 4)
			continue;
		if (count == MAX_LINES) {
			ts_entities_add_loss(&p->entities, &loss_lines, 1);
			continue;
		}
		line = read_line(p, &bytes);
		fill(slot, &line);
		found[count++] = ts_writer_frame(p->writer, &slot->row);
	}
	if (!count)
		found[count++] = ts_writer_frame(p->writer, &slot->row);
	while (count > 0)
		add_frame(p, location, found[--count]);
}

static void make_location(struct ts_pprof *p, struct ts_pprof_location *location, size_t index)
{
	struct ts_pprof_bytes bytes = p->locations.items[index];
	const struct ts_proto_reader begin = ts_proto_reader(bytes.data, bytes.length);
	struct ts_proto_reader message = begin;
	struct slot slot = { .row = ts_frame_none };
	struct ts_proto_field field;
	uint64_t address = 0, mapping = 0;
	uint32_t lines = 0;
	struct mapping found_mapping;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 2)
			mapping = field.value;
		else if (field.number == 3)
			address = field.value;
		lines += field.number == 4;
	}
	if (message.failed)
		ts_entities_add_loss(&p->entities, &ts_pprof_loss_message, 1);
	slot.row.mapping = mapping_id(p, mapping, &found_mapping);
	slot.object = ts_pprof_text(p, found_mapping.file);
	slot.has_address = address != 0;
	if (address && found_mapping.limit > found_mapping.start &&
	    address >= found_mapping.start && address < found_mapping.limit)
		slot.row.pc = (int64_t)(address - found_mapping.start);
	else if (address)
		slot.row.pc = (int64_t)address;
	if (slot.row.pc == TS_ABSENT)
		slot.has_address = false;
	slot.row.kind = kind_of((struct ts_pprof_bytes){ "", 0 }, slot.object, slot.has_address);
	location->first = (uint32_t)p->frame_count;
	if (slot.has_address)
		make_native(p, location, &slot, begin, lines);
	else
		make_lines(p, location, &slot, begin);
}

const struct ts_pprof_location *ts_pprof_location(struct ts_pprof *p, uint64_t id)
{
	struct ts_pprof_location *location;
	uint64_t index;

	if (!ts_map_get(&p->locations.by_id, id, &index)) {
		ts_entities_add_loss(&p->entities, &loss_location, 1);
		return NULL;
	}
	location = &p->location_list[index];
	if (!location->count)
		make_location(p, location, index);
	return location;
}
