/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse memory (docs/cuda-replay.md, 4.1): an object is an address space, of which parts are
 * mapped when the window opens, and others by alloc and free. Also the pieces of the snapshot.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/stream/stream_internal.h"

bool ts_replay_is_paged(const struct ts_replay_object_info *memory)
{
	return memory->flags & (TS_REPLAY_SPARSE | TS_REPLAY_GLOBAL);
}

/* ---- what is mapped when the window opens ---- */

static int compare_mappings(const void *a, const void *b)
{
	const struct ts_replay_mapping *x = a, *y = b;

	return x->offset != y->offset ? TS_COMPARE(x->offset, y->offset)
				      : TS_COMPARE(x->bytes, y->bytes);
}

static void check_mapping(struct ts_replay_load *load, struct ts_replay_object_info *object,
			  const struct ts_replay_mapping *mapping)
{
	if (!mapping->bytes || mapping->offset > object->bytes ||
	    mapping->bytes > object->bytes - mapping->offset)
		ts_replay_spoil_object(load, object,
				       "%" PRIu64 " bytes are mapped at %" PRIu64 " of %" PRIu64,
				       mapping->bytes, mapping->offset, object->bytes);
}

/* Sorts and checks the mappings of an object. A row may be repeated: equal ones count once. */
static int settle(struct ts_replay_load *load, uint32_t index, struct ts_replay_mapping *mappings)
{
	struct ts_replay_object_info *object = &load->stream->objects[index];
	bool is_host = object->flags & TS_REPLAY_HOST;
	uint32_t kept = 0;
	int rc = TS_OK;

	ts_sort(mappings, object->mapping_count, sizeof(*mappings), compare_mappings);
	for (uint32_t i = 0; !rc && i < object->mapping_count; i++) {
		const struct ts_replay_mapping *one = &mappings[i];
		uint64_t end;

		check_mapping(load, object, one);
		if (object->unreplayable)
			break;
		if (kept && !compare_mappings(&mappings[kept - 1], one))
			continue;
		end = one->offset + one->bytes;
		/* Ranges of the host that were registered one by one may share pages. */
		if (!is_host && ts_ranges_touch(&load->mapped[index], one->offset, end)) {
			ts_replay_spoil_object(load, object,
					       "memory at %" PRIu64 " of it is mapped twice",
					       one->offset);
			break;
		}
		rc = ts_ranges_add(&load->mapped[index], one->offset, end);
		mappings[kept++] = *one;
	}
	object->mapping_count = kept;
	return rc;
}

static int hand_out(struct ts_replay_load *load, const struct ts_replay_mapping_list *lists,
		    size_t count)
{
	struct ts_replay_stream *stream = load->stream;
	struct ts_replay_mapping **to =
		ts_arena_alloc_zeroed(&load->scratch, stream->object_count + 1u, sizeof(*to));

	if (!to)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < stream->object_count; i++) {
		struct ts_replay_object_info *object = &stream->objects[i];

		to[i] = ts_arena_alloc_zeroed(&stream->arena, object->mapping_count + 1u,
					      sizeof(**to));
		if (!to[i])
			return TS_ENOMEM;
		object->mappings = to[i];
		object->mapping_count = 0;
	}
	for (size_t i = 0; i < count; i++) {
		struct ts_replay_object_info *object = &stream->objects[lists[i].object];

		if (!(object->flags & TS_REPLAY_SPARSE) || !lists[i].count)
			continue;
		memcpy(to[lists[i].object] + object->mapping_count, lists[i].mappings,
		       lists[i].count * sizeof(**to));
		object->mapping_count += lists[i].count;
	}
	for (uint32_t i = 0; i < stream->object_count; i++)
		if (settle(load, i, to[i]))
			return TS_ENOMEM;
	return TS_OK;
}

int ts_replay_load_mappings(struct ts_replay_load *load, const struct ts_replay_mapping_list *lists,
			    size_t count, struct ts_error *err)
{
	struct ts_replay_stream *stream = load->stream;

	load->mapped = calloc(stream->object_count + 1u, sizeof(*load->mapped));
	if (!load->mapped)
		return ts_replay_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		struct ts_replay_object_info *object = &stream->objects[lists[i].object];

		if (!(object->flags & TS_REPLAY_SPARSE))
			continue;
		if (lists[i].count > UINT32_MAX - 1 - object->mapping_count)
			return ts_replay_no_memory(err);
		object->mapping_count += lists[i].count;
	}
	return hand_out(load, lists, count) ? ts_replay_no_memory(err) : TS_OK;
}

void ts_replay_release_mapped(struct ts_replay_load *load)
{
	for (uint32_t i = 0; load->mapped && i < load->stream->object_count; i++)
		ts_ranges_release(&load->mapped[i]);
	free(load->mapped);
}

/* ---- changes inside the window ---- */

static int map(struct ts_replay_load *load, uint32_t index, const struct ts_replay_range *range,
	       struct ts_error *err)
{
	struct ts_ranges *mapped = &load->mapped[range->memory];
	uint64_t end = range->offset + range->bytes;

	if (!(load->stream->objects[range->memory].flags & TS_REPLAY_HOST) &&
	    ts_ranges_touch(mapped, range->offset, end))
		return ts_replay_command_error(load->stream, index, err,
					       "a part of it is mapped already");
	return ts_ranges_add(mapped, range->offset, end) ? ts_replay_no_memory(err) : TS_OK;
}

static int unmap(struct ts_replay_load *load, uint32_t index, const struct ts_replay_range *range,
		 struct ts_error *err)
{
	struct ts_ranges *mapped = &load->mapped[range->memory];
	uint64_t end = range->offset + range->bytes;

	if (!(load->stream->objects[range->memory].flags & TS_REPLAY_HOST) &&
	    !ts_ranges_contain(mapped, range->offset, end))
		return ts_replay_command_error(load->stream, index, err,
					       "a part of it is not mapped");
	return ts_ranges_cut(mapped, range->offset, end) ? ts_replay_no_memory(err) : TS_OK;
}

int ts_replay_load_mapping_change(struct ts_replay_load *load, uint32_t index,
				  const struct ts_command_row *row, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	struct ts_replay_range range;
	int rc;

	command->offset = row->offset == TS_ABSENT ? 0 : (uint64_t)row->offset;
	if (!command->bytes && !command->unreplayable)
		return ts_replay_command_error(load->stream, index, err, "it has no size");
	rc = ts_replay_load_range(load, index, "range", command->object, command->offset,
				  command->bytes, &range, err);
	if (rc || command->unreplayable)
		return rc;
	return command->kind == TS_COMMAND_ALLOC ? map(load, index, &range, err)
						 : unmap(load, index, &range, err);
}

static void check_ranges(struct ts_replay_load *load, uint32_t index,
			 const struct ts_replay_range *ranges, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_replay_object_info *memory =
			&load->stream->objects[ranges[i].memory];

		if (memory->flags & TS_REPLAY_SPARSE &&
		    !ts_ranges_contain(&load->mapped[ranges[i].memory], ranges[i].offset,
				       ranges[i].offset + ranges[i].bytes))
			ts_replay_spoil(load, index,
					"memory %" PRIu64 ": %" PRIu64 " bytes at 0x%" PRIx64
					" are not mapped",
					memory->number, ranges[i].bytes,
					memory->address + ranges[i].offset);
	}
}

void ts_replay_check_mapped(struct ts_replay_load *load, uint32_t index)
{
	const struct ts_replay_command_info *command = &load->stream->commands[index];

	if (command->kind != TS_COMMAND_COPY && command->kind != TS_COMMAND_FILL &&
	    command->kind != TS_COMMAND_HOST_WRITE)
		return;
	check_ranges(load, index, command->writes, command->write_count);
	check_ranges(load, index, command->reads, command->read_count);
}

/* ---- addresses ---- */

static int compare_spaces(const void *a, const void *b)
{
	const struct ts_replay_space *x = a, *y = b;

	return x->address != y->address ? TS_COMPARE(x->address, y->address)
					: TS_COMPARE(x->memory, y->memory);
}

/* What was mapped of the host, at any time. */
static int host_ranges(const struct ts_replay_load *load, uint32_t memory, struct ts_ranges *ranges)
{
	const struct ts_replay_stream *stream = load->stream;
	const struct ts_replay_object_info *object = &stream->objects[memory];
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < object->mapping_count && !object->unreplayable; i++)
		rc = ts_ranges_add(ranges, object->mappings[i].offset,
				   object->mappings[i].offset + object->mappings[i].bytes);
	for (uint32_t i = 0; !rc && i < stream->command_count; i++) {
		const struct ts_replay_command_info *command = &stream->commands[i];

		if (command->kind == TS_COMMAND_ALLOC && command->object == memory &&
		    !command->unreplayable)
			rc = ts_ranges_add(ranges, command->offset,
					   command->offset + command->bytes);
	}
	return rc;
}

static int add_host(const struct ts_replay_load *load, uint32_t memory,
		    struct ts_replay_space **spaces, size_t *capacity, size_t *count)
{
	struct ts_ranges ranges = { 0 };
	uint64_t base = load->stream->objects[memory].address;
	int rc = host_ranges(load, memory, &ranges);

	if (!rc)
		rc = ts_grow_array((void **)spaces, capacity, *count + ranges.count + 1,
				   sizeof(**spaces));
	for (size_t i = 0; !rc && i < ranges.count; i++)
		(*spaces)[(*count)++] = (struct ts_replay_space){ base + ranges.items[i].from,
								  base + ranges.items[i].to,
								  memory };
	ts_ranges_release(&ranges);
	return rc;
}

int ts_replay_load_spaces(struct ts_replay_load *load, struct ts_error *err)
{
	struct ts_replay_stream *stream = load->stream;
	TS_AUTO_FREE struct ts_replay_space *spaces = NULL;
	size_t capacity = 0, count = 0;
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < stream->object_count; i++) {
		const struct ts_replay_object_info *memory = &stream->objects[i];

		if (memory->kind != TS_OBJECT_MEMORY || !ts_replay_is_paged(memory))
			continue;
		if (memory->flags & TS_REPLAY_HOST) {
			rc = add_host(load, i, &spaces, &capacity, &count);
			continue;
		}
		rc = ts_grow_array((void **)&spaces, &capacity, count + 1, sizeof(*spaces));
		if (!rc && memory->address && memory->address + memory->bytes > memory->address)
			spaces[count++] = (struct ts_replay_space){ memory->address,
								    memory->address + memory->bytes,
								    i };
	}
	if (rc || count >= TS_REPLAY_NONE)
		return ts_replay_no_memory(err);
	ts_sort(spaces, count, sizeof(*spaces), compare_spaces);
	stream->spaces = ts_arena_copy(&stream->arena, spaces ? (void *)spaces : "",
				       count * sizeof(*spaces));
	stream->space_count = (uint32_t)count;
	return stream->spaces ? TS_OK : ts_replay_no_memory(err);
}

bool ts_replay_locate(const struct ts_replay_stream *stream, uint64_t address, uint32_t *ret_memory,
		      uint64_t *ret_offset)
{
	uint32_t low = 0, high = stream->space_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (stream->spaces[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= stream->spaces[low - 1].end)
		return false;
	*ret_memory = stream->spaces[low - 1].memory;
	*ret_offset = address - stream->objects[*ret_memory].address;
	return true;
}

/* ---- pieces ---- */

bool ts_replay_is_piece(const struct ts_replay_details *details)
{
	return details->why && !strcmp(details->why, "open");
}

struct found {
	uint32_t object;
	struct ts_replay_piece piece;
};

struct founds {
	struct found *items;
	size_t count, capacity;
};

static int piece_error(struct ts_error *err, const struct ts_command_row *row, const char *text)
{
	return ts_error_set(err, TS_EFORMAT,
			    "a piece of the snapshot (%" PRId64 " bytes at %" PRId64 "): %s",
			    row->bytes == TS_ABSENT ? 0 : row->bytes,
			    row->offset == TS_ABSENT ? 0 : row->offset, text);
}

static int load_piece(struct ts_replay_load *load, const struct ts_command_row *row,
		      struct founds *founds, struct ts_error *err)
{
	struct found found = { .object = ts_replay_object_by_id(load, row->object) };
	const struct ts_replay_object_info *memory;
	struct ts_error why;

	if (found.object == TS_REPLAY_NONE ||
	    !ts_replay_is_paged(&load->stream->objects[found.object]))
		return piece_error(err, row, "its memory is missing");
	memory = &load->stream->objects[found.object];
	if (row->bytes <= 0 || (row->offset != TS_ABSENT && row->offset < 0))
		return piece_error(err, row, "its range is invalid");
	found.piece.offset = row->offset == TS_ABSENT ? 0 : (uint64_t)row->offset;
	found.piece.bytes = (uint64_t)row->bytes;
	if (found.piece.offset > memory->bytes ||
	    found.piece.bytes > memory->bytes - found.piece.offset)
		return piece_error(err, row, "it exceeds its memory");
	if (ts_replay_blob_of(load, row->blob, &found.piece.blob, &why))
		return piece_error(err, row, why.message);
	if (found.piece.blob.bytes != found.piece.bytes)
		return piece_error(err, row, "its content has another size");
	if (ts_grow_array((void **)&founds->items, &founds->capacity, founds->count + 1,
			  sizeof(*founds->items)))
		return ts_replay_no_memory(err);
	founds->items[founds->count++] = found;
	return TS_OK;
}

static int compare_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->object != y->object ? TS_COMPARE(x->object, y->object)
				      : TS_COMPARE(x->piece.offset, y->piece.offset);
}

/* What a piece overlaps, or what is not mapped, cannot be restored. */
static void check_piece(struct ts_replay_load *load, const struct found *found,
			const struct ts_replay_piece *before)
{
	struct ts_replay_object_info *memory = &load->stream->objects[found->object];
	const struct ts_replay_piece *piece = &found->piece;

	if (before && before->offset + before->bytes > piece->offset)
		ts_replay_spoil_object(load, memory, "pieces of its content at %" PRIu64 " overlap",
				       piece->offset);
	if (memory->flags & TS_REPLAY_SPARSE &&
	    !ts_ranges_contain(&load->mapped[found->object], piece->offset,
			       piece->offset + piece->bytes))
		ts_replay_spoil_object(load, memory,
				       "a piece of its content at %" PRIu64 " is not mapped",
				       piece->offset);
}

static int assign(struct ts_replay_load *load, const struct founds *founds)
{
	struct ts_replay_stream *stream = load->stream;
	struct ts_replay_piece *pieces =
		ts_arena_alloc_zeroed(&stream->arena, founds->count + 1, sizeof(*pieces));

	if (!pieces)
		return TS_ENOMEM;
	for (size_t i = 0; i < founds->count; i++) {
		struct ts_replay_object_info *memory = &stream->objects[founds->items[i].object];

		check_piece(load, &founds->items[i], memory->piece_count ? &pieces[i - 1] : NULL);
		pieces[i] = founds->items[i].piece;
		if (!memory->piece_count)
			memory->pieces = &pieces[i];
		memory->piece_count++;
	}
	return TS_OK;
}

bool ts_replay_pieces_fault(bool is_known, uint64_t expected, uint64_t found, char *to,
			    size_t bytes)
{
	if (!is_known)
		snprintf(to, bytes,
			 "the program ended before the contents of its memory were stored");
	else if (found < expected)
		snprintf(
			to, bytes,
			"%" PRIu64 " of %" PRIu64
			" pieces of the memory it begins with are missing: the program ended before they were stored",
			expected - found, expected);
	else if (found > expected)
		snprintf(to, bytes,
			 "it has %" PRIu64 " pieces of the memory it begins with, not %" PRIu64,
			 found, expected);
	return !is_known || found != expected;
}

/* Sparse memory without a number of pieces: the program ended before it was known. */
static int check_complete(struct ts_replay_load *load, struct ts_error *err)
{
	char why[TS_REPLAY_PIECES_TEXT];
	struct ts_replay_stream *stream = load->stream;
	bool is_sparse = false;

	for (uint32_t i = 0; i < stream->object_count; i++)
		is_sparse |= stream->objects[i].flags & TS_REPLAY_SPARSE;
	if (!is_sparse || load->window->pieces.is_known || load->window->failed)
		return TS_OK;
	ts_replay_pieces_fault(false, 0, 0, why, sizeof(why));
	if (!load->to_show)
		return ts_error_set(err, TS_EFORMAT, "window %" PRIu64 " cannot be replayed: %s",
				    load->window->number, why);
	stream->failed = ts_arena_strdup_len(&stream->arena, why, strlen(why));
	return stream->failed ? TS_OK : ts_replay_no_memory(err);
}

int ts_replay_load_pieces(struct ts_replay_load *load, struct ts_error *err)
{
	struct founds founds = { 0 };
	int rc = check_complete(load, err);

	for (size_t i = 0; !rc && i < load->row_count; i++) {
		const struct ts_command_row *row = &load->rows[i];
		struct ts_replay_details details;

		if (row->kind != TS_COMMAND_CHECK || !ts_replay_window_has(load->window, row))
			continue;
		ts_arena_clear(&load->line);
		rc = ts_replay_row_details(load, row->details, &load->line, &details, err);
		if (!rc && ts_replay_is_piece(&details))
			rc = load_piece(load, row, &founds, err);
	}
	if (!rc) {
		ts_sort(founds.items, founds.count, sizeof(*founds.items), compare_found);
		rc = assign(load, &founds) ? ts_replay_no_memory(err) : TS_OK;
	}
	free(founds.items);
	return rc;
}
