/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded checks: hashes of memory after commands and at the end of the window. */
#include <inttypes.h>
#include <string.h>

#include "replay/stream/stream_internal.h"

#define PAGE_ENTRY 16u /* bytes: offset and hash */

struct found {
	uint32_t command; /* TS_REPLAY_NONE: at the end */
	struct ts_replay_check check;
};

struct founds {
	struct found *items;
	size_t count, capacity;
};

/* 16 hexadecimal digits. */
static bool parse_hash(const char *text, uint64_t *ret_hash)
{
	uint64_t hash = 0;

	if (!text || strlen(text) != 16)
		return false;
	for (; *text; text++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit =
			strchr(digits, *text >= 'A' && *text <= 'F' ? *text + 32 : *text);

		if (!digit)
			return false;
		hash = hash << 4 | (uint64_t)(digit - digits);
	}
	*ret_hash = hash;
	return true;
}

/* Maps to a constant, so that the text need not be kept. */
static const char *reason_of(const char *why)
{
	static const char *const reasons[] = { "read", "map", "each", "final" };

	for (size_t i = 0; why && i < TS_ARRAY_SIZE(reasons); i++)
		if (!strcmp(reasons[i], why))
			return reasons[i];
	return "each";
}

static int check_error(const struct ts_command_row *row, struct ts_error *err, const char *text)
{
	return ts_error_set(err, TS_EFORMAT, "a check of command %" PRId64 ": %s", row->sequence,
			    text);
}

/* The range that a check covers; no memory: what the command copied to the host. */
static int load_range(struct ts_replay_load *load, const struct ts_command_row *row,
		      struct found *found, struct ts_error *err)
{
	struct ts_replay_range *range = &found->check.range;
	uint32_t object = ts_replay_object_by_id(load, row->object);
	const struct ts_replay_object_info *memory;

	range->memory = TS_REPLAY_NONE;
	range->offset = row->offset == TS_ABSENT ? 0 : (uint64_t)row->offset;
	range->bytes = row->bytes == TS_ABSENT ? 0 : (uint64_t)row->bytes;
	if (row->object == 0)
		return TS_OK;
	if (object == TS_REPLAY_NONE || load->stream->objects[object].kind != TS_OBJECT_MEMORY)
		return check_error(row, err, "its memory is missing");
	memory = &load->stream->objects[object];
	if (memory->parent != TS_REPLAY_NONE &&
	    load->stream->objects[memory->parent].kind == TS_OBJECT_MEMORY) {
		object = memory->parent;
		if (__builtin_add_overflow(range->offset, memory->origin, &range->offset))
			range->offset = UINT64_MAX;
		memory = &load->stream->objects[object];
	}
	if (row->bytes == TS_ABSENT && range->offset <= memory->bytes)
		range->bytes = memory->bytes - range->offset;
	if (range->offset > memory->bytes || range->bytes > memory->bytes - range->offset)
		return check_error(row, err, "it exceeds its memory");
	if (memory->image && range->bytes != memory->bytes)
		return check_error(row, err, "it covers a part of an image");
	range->memory = object;
	return TS_OK;
}

/* Commands are in order of their numbers; nodes of a graph have that of its launch. */
uint32_t ts_replay_command_by_sequence(const struct ts_replay_stream *stream, int64_t sequence)
{
	uint32_t low = 0, high = stream->command_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if ((int64_t)stream->commands[middle].sequence <= sequence)
			low = middle + 1;
		else
			high = middle;
	}
	return low && (int64_t)stream->commands[low - 1].sequence == sequence ? low - 1
									      : TS_REPLAY_NONE;
}

/* The check of a read has the size of the read. */
static bool is_read_of(const struct ts_replay_load *load, const struct found *found)
{
	const struct ts_replay_command_info *command = &load->stream->commands[found->command];

	return command->kind == TS_COMMAND_COPY && command->object == TS_REPLAY_NONE &&
	       (!found->check.range.bytes || found->check.range.bytes == command->bytes);
}

/* What a check without a size covers is known only now. */
static uint64_t bytes_of(const struct ts_replay_load *load, const struct found *found)
{
	if (found->check.range.bytes || found->command == TS_REPLAY_NONE)
		return found->check.range.bytes;
	return load->stream->commands[found->command].bytes;
}

/* The blob of a list of pages is not content. */
static int load_pages(struct ts_replay_load *load, const struct ts_command_row *row,
		      const struct ts_replay_details *details, struct found *found,
		      struct ts_error *err)
{
	const struct ts_replay_range *range = &found->check.range;
	struct ts_error why;

	if (range->memory == TS_REPLAY_NONE ||
	    !ts_replay_is_paged(&load->stream->objects[range->memory]))
		return check_error(row, err, "its memory has no pages");
	if (ts_replay_blob_of(load, row->blob, &found->check.blob, &why))
		return check_error(row, err, "its pages are missing");
	if (found->check.blob.bytes / PAGE_ENTRY != details->pages.value ||
	    found->check.blob.bytes % PAGE_ENTRY)
		return check_error(row, err, "its list of pages has another size");
	found->check.has_pages = true;
	found->check.page_count = details->pages.value;
	return TS_OK;
}

static int load_content(struct ts_replay_load *load, const struct ts_command_row *row,
			struct found *found, struct ts_error *err)
{
	struct ts_error why;

	if (ts_replay_blob_of(load, row->blob, &found->check.blob, &why))
		return check_error(row, err, "its content is missing");
	if (found->check.blob.id && found->check.blob.bytes != bytes_of(load, found))
		return check_error(row, err, "its content has another size");
	return TS_OK;
}

static int load_check(struct ts_replay_load *load, const struct ts_command_row *row,
		      struct founds *founds, struct ts_error *err)
{
	struct found found = { .command = TS_REPLAY_NONE };
	struct ts_replay_details details;
	int rc;

	ts_arena_clear(&load->line);
	rc = ts_replay_row_details(load, row->details, &load->line, &details, err);
	if (rc)
		return check_error(row, err, "malformed details");
	if (ts_replay_is_piece(&details))
		return TS_OK;
	if (!details.pages.is_known && !parse_hash(details.hash, &found.check.hash))
		return check_error(row, err, "malformed hash");
	found.check.why = reason_of(details.why);
	rc = load_range(load, row, &found, err);
	if (rc)
		return rc;
	if (strcmp(found.check.why, "final") != 0) {
		found.command = ts_replay_command_by_sequence(load->stream, row->sequence);
		if (found.command == TS_REPLAY_NONE)
			return check_error(row, err, "there is no such command");
		if (found.check.range.memory == TS_REPLAY_NONE && !is_read_of(load, &found))
			return check_error(row, err, "it copied nothing of that size to the host");
	} else if (found.check.range.memory == TS_REPLAY_NONE) {
		return check_error(row, err, "it names no memory");
	}
	rc = details.pages.is_known ? load_pages(load, row, &details, &found, err)
				    : load_content(load, row, &found, err);
	if (rc)
		return rc;
	if (ts_grow_array((void **)&founds->items, &founds->capacity, founds->count + 1,
			  sizeof(*founds->items)))
		return ts_replay_no_memory(err);
	founds->items[founds->count++] = found;
	return TS_OK;
}

static int compare_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->command != y->command)
		return TS_COMPARE(x->command, y->command);
	if (x->check.range.memory != y->check.range.memory)
		return TS_COMPARE(x->check.range.memory, y->check.range.memory);
	return TS_COMPARE(x->check.range.offset, y->check.range.offset);
}

/* Sorts checks by command, those of the end last, and assigns them. */
static int hand_out(struct ts_replay_load *load, const struct founds *founds, struct ts_error *err)
{
	struct ts_replay_stream *stream = load->stream;
	struct ts_replay_check *checks =
		ts_arena_alloc_zeroed(&stream->arena, founds->count + 1, sizeof(*checks));

	/* Of `each` the first list of an object has all pages, and those behind it what changed. */
	bool *is_known =
		ts_arena_alloc_zeroed(&load->scratch, stream->object_count + 1u, sizeof(*is_known));

	if (!checks || !is_known)
		return ts_replay_no_memory(err);
	for (size_t i = 0; i < founds->count; i++) {
		uint32_t command = founds->items[i].command;
		bool is_final = command == TS_REPLAY_NONE;
		const struct ts_replay_check **first = is_final ? &stream->final_checks
								: &stream->commands[command].checks;
		uint32_t *count = is_final ? &stream->final_count
					   : &stream->commands[command].check_count;

		checks[i] = founds->items[i].check;
		if (checks[i].has_pages && !is_final) {
			checks[i].is_change = is_known[checks[i].range.memory];
			is_known[checks[i].range.memory] = true;
		}
		if (!*count)
			*first = &checks[i];
		(*count)++;
	}
	return TS_OK;
}

int ts_replay_load_checks(struct ts_replay_load *load, struct ts_error *err)
{
	struct founds founds = { 0 };
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < load->row_count; i++) {
		const struct ts_command_row *row = &load->rows[i];

		if (row->kind == TS_COMMAND_CHECK && ts_replay_window_has(load->window, row))
			rc = load_check(load, row, &founds, err);
	}
	if (!rc) {
		ts_sort(founds.items, founds.count, sizeof(*founds.items), compare_found);
		rc = hand_out(load, &founds, err);
	}
	free(founds.items);
	return rc;
}
