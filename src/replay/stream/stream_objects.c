/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a window: the row that was valid while it was open, with parents, devices and blobs as
 * indices. An invalid object is kept with the reason: it does no harm unless a command uses it.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "code/demangle.h"
#include "model/short_name.h"
#include "replay/stream/stream_internal.h"

/* Maximum nesting of views; OpenCL has one level. */
#define MOST_LEVELS 64
/* Addresses of the host, if the trace does not say. */
#define HOST_BYTES ((uint64_t)1 << 48)

TS_DEFINE_AUTO(ts_batch, ts_batch_free);

/* A row that continues the list of mappings of the object before it. */
struct more {
	int64_t object, details;
};

struct rows {
	struct ts_object_row *rows;
	size_t count, capacity;
	struct more *more;
	size_t more_count, more_capacity;
	struct ts_map positions; /* id -> row */
};

static void rows_release(struct rows *rows)
{
	free(rows->rows);
	free(rows->more);
	ts_map_release(&rows->positions);
}

/* ---- rows ---- */

/*
 * True: "more": true. A cheap look first: few rows have it, and all others are parsed once, when it
 * is known which of them count.
 */
static int is_more(struct ts_replay_load *load, const struct ts_object_row *row, bool *ret_is,
		   struct ts_error *err)
{
	struct ts_string json = ts_reader_string(load->reader, row->details);
	struct ts_replay_details details;
	int rc;

	*ret_is = false;
	if (row->kind != TS_OBJECT_MEMORY || !memmem(json.data, json.length, "\"more\"", 6))
		return TS_OK;
	ts_arena_clear(&load->line);
	rc = ts_replay_row_details(load, row->details, &load->line, &details, err);
	if (rc)
		ts_error_prefix(err, "object in row %" PRId64, row->id);
	else
		*ret_is = details.is_more;
	return rc;
}

/* Of a row that continues the one before it only the list counts, and that the object ended. */
static int keep_more(struct rows *rows, size_t position, const struct ts_object_row *row)
{
	rows->rows[position].destroyed = row->destroyed;
	if (ts_grow_array((void **)&rows->more, &rows->more_capacity, rows->more_count + 1,
			  sizeof(*rows->more)))
		return TS_ENOMEM;
	rows->more[rows->more_count++] = (struct more){ row->id, row->details };
	return TS_OK;
}

/* A row describes an object from its time on; rows after the window belong to later ones. */
static int keep_row(struct ts_replay_load *load, struct rows *rows, const struct ts_object_row *row,
		    bool continues)
{
	uint64_t *position;
	bool is_new;

	if (row->process != load->stream->process || row->id <= 0 ||
	    (row->created != TS_ABSENT && row->created > load->window->end))
		return TS_OK;
	position = ts_map_insert(&rows->positions, (uint64_t)row->id, &is_new);
	if (!position || (is_new && ts_grow_array((void **)&rows->rows, &rows->capacity,
						  rows->count + 1, sizeof(*rows->rows))))
		return TS_ENOMEM;
	if (is_new)
		*position = rows->count++;
	else if (continues)
		return keep_more(rows, *position, row);
	rows->rows[*position] = *row;
	return TS_OK;
}

static int read_rows(struct ts_replay_load *load, struct rows *rows, struct ts_error *err)
{
	TS_AUTO(ts_batch) batch = NULL;
	int rc = ts_batch_new(&batch, load->reader, err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(load->reader); i++) {
		if (ts_reader_chunk(load->reader, i)->table != TS_TABLE_OBJECT)
			continue;
		rc = ts_batch_read(batch, i, TS_MASK_ALL, err);
		for (uint32_t row = 0; !rc && row < batch->rows; row++) {
			struct ts_object_row object;
			bool continues;

			ts_batch_row(batch, row, &object);
			rc = is_more(load, &object, &continues, err);
			if (!rc && keep_row(load, rows, &object, continues))
				return ts_replay_no_memory(err);
		}
	}
	return rc;
}

/* ---- ids ---- */

static uint32_t find(const struct ts_map *map, uint64_t key)
{
	uint64_t index;

	return key && ts_map_get(map, key, &index) ? (uint32_t)index : TS_REPLAY_NONE;
}

uint32_t ts_replay_object_by_id(const struct ts_replay_load *load, int64_t id)
{
	return id > 0 ? find(&load->by_id, (uint64_t)id) : TS_REPLAY_NONE;
}

uint32_t ts_replay_object_by_number(const struct ts_replay_load *load, uint64_t number)
{
	return find(&load->by_number, number);
}

int ts_replay_blob_of(struct ts_replay_load *load, int64_t id, struct ts_replay_blob_ref *ret_blob,
		      struct ts_error *err)
{
	*ret_blob = (struct ts_replay_blob_ref){ 0 };
	if (id == 0)
		return TS_OK;
	if (id < 0 || id > UINT32_MAX)
		return ts_error_set(err, TS_EFORMAT, "there is no blob %" PRId64, id);
	ret_blob->id = (uint32_t)id;
	return ts_reader_blob_size(load->reader, id, &ret_blob->bytes, err);
}

/* ---- properties ---- */

static const char *copy_text(struct ts_replay_load *load, int64_t string)
{
	struct ts_string text = ts_reader_string(load->reader, string);

	/* Up to the first NUL: names are passed to drivers. */
	return ts_arena_strdup_len(&load->stream->arena, text.data, strlen(text.data));
}

static bool is_flag(const char *flag, const char *name)
{
	if (!strncasecmp(flag, "CL_MEM_", 7))
		flag += 7;
	return !strcasecmp(flag, name);
}

static uint32_t flags_of(const struct ts_replay_details *details)
{
	uint32_t flags = 0;

	for (uint32_t i = 0; i < details->flag_count; i++) {
		if (is_flag(details->flags[i], "read_only"))
			flags |= TS_REPLAY_READ_ONLY;
		if (is_flag(details->flags[i], "write_only"))
			flags |= TS_REPLAY_WRITE_ONLY;
	}
	if (details->svm)
		flags |= TS_REPLAY_HAS_SVM;
	if (details->user)
		flags |= TS_REPLAY_USER_EVENT;
	if (details->out_of_order)
		flags |= TS_REPLAY_OUT_OF_ORDER;
	return flags;
}

static bool is_text(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

/* docs/cuda-replay.md, 4.1 */
static uint32_t more_flags_of(const struct ts_replay_details *details, int64_t kind)
{
	uint32_t flags = 0;

	if (kind == TS_OBJECT_MEMORY && details->is_sparse)
		flags |= is_text(details->space, "host") ? TS_REPLAY_SPARSE | TS_REPLAY_HOST
							 : TS_REPLAY_SPARSE;
	else if (kind == TS_OBJECT_MEMORY && details->is_global)
		flags |= TS_REPLAY_GLOBAL;
	if (kind == TS_OBJECT_STREAM && is_text(details->default_stream, "legacy"))
		flags |= TS_REPLAY_LEGACY;
	else if (kind == TS_OBJECT_STREAM && details->flag_bits & 1)
		flags |= TS_REPLAY_NON_BLOCKING;
	return flags;
}

/* Description of a device in one line. */
static const char *describe(struct ts_replay_load *load, const struct ts_replay_details *details)
{
	const char *const texts[] = { details->platform, details->vendor, details->version,
				      details->driver };
	TS_SCOPED(ts_text) text = { 0 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(texts); i++)
		if (texts[i] && *texts[i])
			ts_text_printf(&text, "%s%s", text.length ? ", " : "", texts[i]);
	return ts_arena_strdup_len(&load->stream->arena, ts_text_cstr(&text), text.length);
}

/* Names of CUDA's functions and variables are mangled. */
static int set_names(struct ts_replay_load *load, struct ts_replay_object_info *object)
{
	TS_AUTO_FREE char *plain = !strncmp(object->name, "_Z", 2) ? ts_demangle_long(object->name)
								   : NULL;
	size_t length = plain ? strlen(plain) : 0;
	char *names;

	object->demangled = object->shown = object->name;
	if (!length)
		return TS_OK;
	names = ts_arena_alloc(&load->stream->arena, 2 * (length + 1));
	if (!names)
		return TS_ENOMEM;
	memcpy(names, plain, length + 1);
	names[length + 1 + ts_short_name(plain, length, names + length + 1)] = '\0';
	object->demangled = names;
	object->shown = names + length + 1;
	return TS_OK;
}

static int fill(struct ts_replay_load *load, const struct ts_object_row *row,
		const struct ts_replay_details *details, struct ts_replay_object_info *object)
{
	bool is_known = row->kind > TS_OBJECT_UNKNOWN && row->kind <= TS_OBJECT_GRAPH;

	*object = (struct ts_replay_object_info){
		.id = row->id,
		.number = details->number ? details->number : (uint64_t)row->id,
		.index = details->has_index ? details->index : details->number,
		.kind = is_known ? (enum ts_object_kind)row->kind : TS_OBJECT_UNKNOWN,
		.parent = TS_REPLAY_NONE,
		.device = TS_REPLAY_NONE,
		.flags = flags_of(details) | more_flags_of(details, row->kind),
		.address = row->address == TS_ABSENT ? 0 : (uint64_t)row->address,
		.bytes = row->bytes > 0 ? (uint64_t)row->bytes : 0,
		.origin = details->origin,
		.name = copy_text(load, row->name),
		.options = row->kind == TS_OBJECT_DEVICE ? describe(load, details)
			   : details->options            ? details->options
							 : "",
		.unreplayable = details->unreplayable ? details->unreplayable : details->failed,
		.priority = details->priority,
		.created_ns = row->created,
		.destroyed_ns = row->destroyed,
		.from = details->from_what,
		.flag_names = details->flags,
		.flag_count = details->flag_count,
		.parameters = details->parameters,
		.parameter_count = details->parameter_count,
		.places = details->places,
		.place_count = details->place_count,
		.graph_nodes = details->nodes.value,
		.created_by = TS_REPLAY_NONE,
		.freed_by = TS_REPLAY_NONE,
		.details = load->keeps_details ? copy_text(load, row->details) : "",
	};
	if (object->flags & TS_REPLAY_HOST && !object->bytes)
		object->bytes = HOST_BYTES;
	return object->name && object->options && object->details ? set_names(load, object)
								  : TS_ENOMEM;
}

/* ---- references ---- */

void ts_replay_spoil_object(struct ts_replay_load *load, struct ts_replay_object_info *object,
			    const char *format, ...)
{
	char text[256];
	va_list arguments;

	if (object->unreplayable)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	object->unreplayable = ts_arena_strdup_len(&load->stream->arena, text, strlen(text));
	if (!object->unreplayable)
		object->unreplayable = "it is invalid";
}

static const uint32_t *devices_of(struct ts_replay_load *load, struct ts_replay_object_info *object,
				  const struct ts_replay_numbers *numbers)
{
	uint32_t *devices =
		ts_arena_alloc_zeroed(&load->stream->arena, numbers->count + 1, sizeof(*devices));

	for (uint32_t i = 0; devices && i < numbers->count; i++) {
		uint32_t device = ts_replay_object_by_number(load, numbers->items[i]);

		if (device == TS_REPLAY_NONE ||
		    load->stream->objects[device].kind != TS_OBJECT_DEVICE) {
			ts_replay_spoil_object(load, object, "its device %" PRIu64 " is missing",
					       numbers->items[i]);
			continue;
		}
		devices[object->device_count++] = device;
	}
	return devices;
}

static int add_binaries(struct ts_replay_load *load, struct ts_replay_object_info *object,
			const struct ts_replay_details *details)
{
	struct ts_replay_binary *binaries = ts_arena_alloc_zeroed(
		&load->stream->arena, details->binary_count + 1, sizeof(*binaries));

	if (!binaries)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < details->binary_count; i++) {
		const struct ts_replay_raw_binary *raw = &details->binaries[i];
		struct ts_replay_binary *binary = &binaries[object->binary_count];
		struct ts_error why;

		binary->device = ts_replay_object_by_number(load, raw->device);
		if (!raw->blob)
			continue;
		if (ts_replay_blob_of(load, (int64_t)raw->blob, &binary->blob, &why))
			ts_replay_spoil_object(load, object, "a binary of it cannot be read: %s",
					       why.message);
		else
			object->binary_count++;
	}
	object->binaries = binaries;
	return TS_OK;
}

/* Is this kind of parent valid? */
static bool is_parent_kind(const struct ts_replay_object_info *object, enum ts_object_kind parent)
{
	switch (object->kind) {
	case TS_OBJECT_STREAM:
	case TS_OBJECT_MODULE:
	case TS_OBJECT_EVENT:
	case TS_OBJECT_GRAPH:
		return parent == TS_OBJECT_CONTEXT;
	case TS_OBJECT_FUNCTION:
		return parent == TS_OBJECT_MODULE;
	case TS_OBJECT_MEMORY:
		if (object->flags & TS_REPLAY_SPARSE)
			return parent == TS_OBJECT_DEVICE || parent == TS_OBJECT_CONTEXT;
		if (object->flags & TS_REPLAY_GLOBAL)
			return parent == TS_OBJECT_MODULE;
		return parent == TS_OBJECT_CONTEXT || parent == TS_OBJECT_MEMORY;
	default:
		return true;
	}
}

static void link_parent(struct ts_replay_load *load, struct ts_replay_object_info *object,
			int64_t parent)
{
	bool needs_one = object->kind == TS_OBJECT_FUNCTION || object->kind == TS_OBJECT_STREAM ||
			 object->kind == TS_OBJECT_MODULE || object->kind == TS_OBJECT_MEMORY ||
			 object->kind == TS_OBJECT_GRAPH;

	if (object->flags & TS_REPLAY_HOST)
		needs_one = false;
	object->parent = ts_replay_object_by_id(load, parent);
	if (object->parent == TS_REPLAY_NONE) {
		if (needs_one)
			ts_replay_spoil_object(load, object, "its parent is missing");
		return;
	}
	if (!is_parent_kind(object, load->stream->objects[object->parent].kind)) {
		ts_replay_spoil_object(
			load, object, "its parent is a %s",
			ts_enum_name("object_kind", load->stream->objects[object->parent].kind));
		object->parent = TS_REPLAY_NONE;
	}
}

static int link_object(struct ts_replay_load *load, uint32_t index, const struct ts_object_row *row,
		       const struct ts_replay_details *details)
{
	struct ts_replay_object_info *object = &load->stream->objects[index];
	struct ts_error why;

	link_parent(load, object, row->parent);
	if (details->device)
		object->device = ts_replay_object_by_number(load, details->device);
	if (object->device != TS_REPLAY_NONE &&
	    load->stream->objects[object->device].kind != TS_OBJECT_DEVICE)
		object->device = TS_REPLAY_NONE;
	if (object->kind == TS_OBJECT_STREAM && object->device == TS_REPLAY_NONE)
		ts_replay_spoil_object(load, object, "its device %" PRIu64 " is missing",
				       details->device);
	if (ts_replay_blob_of(load, row->blob, &object->blob, &why))
		ts_replay_spoil_object(load, object, "its content cannot be read: %s", why.message);
	object->devices = devices_of(load, object, &details->devices);
	if (!object->devices || add_binaries(load, object, details))
		return TS_ENOMEM;
	if (object->kind == TS_OBJECT_MEMORY && details->has_image && !ts_replay_is_paged(object) &&
	    ts_replay_load_image(load, object, &details->image))
		return TS_ENOMEM;
	if (object->kind == TS_OBJECT_MODULE && !object->blob.id && !object->binary_count)
		ts_replay_spoil_object(load, object,
				       "the trace has neither its source nor a binary");
	return TS_OK;
}

/* ---- memory ---- */

/* Makes a view refer to its root, skipping intermediate levels. */
static void root_view(struct ts_replay_load *load, struct ts_replay_object_info *view)
{
	struct ts_replay_stream *stream = load->stream;
	uint64_t origin = view->origin;

	for (int level = 0; level < MOST_LEVELS; level++) {
		const struct ts_replay_object_info *parent = &stream->objects[view->parent];

		if (parent->parent == TS_REPLAY_NONE ||
		    stream->objects[parent->parent].kind != TS_OBJECT_MEMORY) {
			if (origin > parent->bytes || view->bytes > parent->bytes - origin)
				break;
			view->origin = origin;
			return;
		}
		if (__builtin_add_overflow(origin, parent->origin, &origin))
			break;
		view->parent = parent->parent;
	}
	ts_replay_spoil_object(load, view, "it exceeds its parent");
	view->parent = TS_REPLAY_NONE;
	view->origin = 0;
}

static void check_memory(struct ts_replay_load *load, struct ts_replay_object_info *memory)
{
	bool is_view = memory->parent != TS_REPLAY_NONE &&
		       load->stream->objects[memory->parent].kind == TS_OBJECT_MEMORY;

	if (is_view)
		root_view(load, memory);
	else
		memory->origin = 0;
	ts_replay_check_image(load, memory);
	if (ts_replay_is_paged(memory)) {
		memory->blob = (struct ts_replay_blob_ref){ 0 };
		if (memory->bytes > UINT64_MAX - memory->address)
			ts_replay_spoil_object(load, memory, "it ends behind the last address");
	}
	if (!memory->bytes)
		ts_replay_spoil_object(load, memory, "its size is unknown");
	if (memory->blob.id && memory->blob.bytes != memory->bytes) {
		ts_replay_spoil_object(load, memory,
				       "it has %" PRIu64 " bytes, its content %" PRIu64,
				       memory->bytes, memory->blob.bytes);
		memory->blob = (struct ts_replay_blob_ref){ 0 };
	}
	/* Unreplayable memory still needs a size: commands change it. */
	if (!memory->bytes)
		memory->bytes = 1;
}

/* Destroyed before the window: not part of it. */
static bool is_gone(const struct ts_replay_load *load, const struct ts_object_row *row)
{
	return row->kind == TS_OBJECT_MEMORY && row->destroyed != TS_ABSENT &&
	       row->destroyed < load->window->start;
}

/* ---- all objects ---- */

static uint64_t number_of(const struct ts_object_row *row, const struct ts_replay_details *details)
{
	return details->number ? details->number : (uint64_t)row->id;
}

/*
 * Each window describes its objects again: of several rows with one number, the newest belongs to
 * this window.
 */
static int choose_newest(struct ts_replay_load *load, const struct rows *rows,
			 const struct ts_replay_details *details)
{
	for (size_t i = 0; i < rows->count; i++) {
		bool is_new;
		uint64_t *position = ts_map_insert(&load->by_number,
						   number_of(&rows->rows[i], &details[i]), &is_new);

		if (!position)
			return TS_ENOMEM;
		if (is_new || rows->rows[*position].created <= rows->rows[i].created)
			*position = i;
	}
	return TS_OK;
}

static int parse_rows(struct ts_replay_load *load, const struct rows *rows,
		      struct ts_replay_details *details, struct ts_error *err)
{
	for (size_t i = 0; i < rows->count; i++) {
		int rc = ts_replay_row_details(load, rows->rows[i].details, &load->stream->arena,
					       &details[i], err);

		if (rc) {
			ts_error_prefix(err, "object in row %" PRId64, rows->rows[i].id);
			return rc;
		}
	}
	return choose_newest(load, rows, details) ? ts_replay_no_memory(err) : TS_OK;
}

static int add_object(struct ts_replay_load *load, const struct ts_object_row *row,
		      const struct ts_replay_details *details)
{
	struct ts_replay_stream *stream = load->stream;
	struct ts_replay_object_info *object = &stream->objects[stream->object_count];

	if (fill(load, row, details, object) ||
	    ts_map_put(&load->by_id, (uint64_t)row->id, stream->object_count) ||
	    ts_map_put(&load->by_number, object->number, stream->object_count))
		return TS_ENOMEM;
	stream->object_count++;
	return TS_OK;
}

/* Keeps the rows of this window, each with its details. */
static int keep_objects(struct ts_replay_load *load, struct rows *rows,
			struct ts_replay_details *details)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++) {
		uint64_t newest = i;

		ts_map_get(&load->by_number, number_of(&rows->rows[i], &details[i]), &newest);
		if (newest != i || is_gone(load, &rows->rows[i]))
			continue;
		rows->rows[kept] = rows->rows[i];
		details[kept++] = details[i];
	}
	rows->count = kept;
	ts_map_clear(&load->by_number);
	for (size_t i = 0; i < kept; i++)
		if (add_object(load, &rows->rows[i], &details[i]))
			return TS_ENOMEM;
	return TS_OK;
}

/* The lists of mappings of all rows, each with its object. */
static int load_mappings(struct ts_replay_load *load, const struct rows *rows,
			 const struct ts_replay_details *details, struct ts_error *err)
{
	size_t most = load->stream->object_count + rows->more_count, count = 0;
	struct ts_replay_mapping_list *lists =
		ts_arena_alloc_zeroed(&load->scratch, most + 1, sizeof(*lists));

	if (!lists)
		return ts_replay_no_memory(err);
	for (uint32_t i = 0; i < load->stream->object_count; i++)
		lists[count++] = (struct ts_replay_mapping_list){ i, details[i].mapping_count,
								  details[i].mappings };
	for (size_t i = 0; i < rows->more_count; i++) {
		uint32_t object = ts_replay_object_by_id(load, rows->more[i].object);
		struct ts_replay_details more;
		int rc;

		if (object == TS_REPLAY_NONE)
			continue;
		rc = ts_replay_row_details(load, rows->more[i].details, &load->scratch, &more, err);
		if (rc)
			return rc;
		lists[count++] = (struct ts_replay_mapping_list){ object, more.mapping_count,
								  more.mappings };
	}
	return ts_replay_load_mappings(load, lists, count, err);
}

/* Is there anything that only a target of its platform understands? */
static bool needs_details(const struct ts_replay_details *details, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (details[i].is_sparse || is_text(details[i].platform, "cuda"))
			return true;
	return false;
}

static int add_objects(struct ts_replay_load *load, struct rows *rows, struct ts_error *err)
{
	struct ts_replay_stream *stream = load->stream;
	struct ts_replay_details *details =
		ts_arena_alloc_zeroed(&load->scratch, rows->count + 1, sizeof(*details));
	int rc;

	stream->objects =
		ts_arena_alloc_zeroed(&stream->arena, rows->count + 1, sizeof(*stream->objects));
	if (!details || !stream->objects || rows->count >= TS_REPLAY_NONE)
		return ts_replay_no_memory(err);
	rc = parse_rows(load, rows, details, err);
	if (rc)
		return rc;
	load->keeps_details = needs_details(details, rows->count);
	if (keep_objects(load, rows, details))
		return ts_replay_no_memory(err);
	for (uint32_t i = 0; i < stream->object_count; i++)
		if (link_object(load, i, &rows->rows[i], &details[i]))
			return ts_replay_no_memory(err);
	for (uint32_t i = 0; i < stream->object_count; i++)
		if (stream->objects[i].kind == TS_OBJECT_MEMORY)
			check_memory(load, &stream->objects[i]);
	return load_mappings(load, rows, details, err);
}

int ts_replay_load_objects(struct ts_replay_load *load, struct ts_error *err)
{
	struct rows rows = { 0 };
	int rc = read_rows(load, &rows, err);

	if (!rc)
		rc = add_objects(load, &rows, err);
	rows_release(&rows);
	return rc;
}
