/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups the unnamed frames of a trace by binary and symbolizes them. All rows are appended at the
 * end, so an interrupted run changes nothing. See symbolize_trace.h.
 */
#include "code/symbolize_trace.h"
#include "code/symbolize_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/output.h"
#include "code/dwarf.h"
#include "trace/trace_append.h"
#include "trace/trace_totals.h"

/* A frame that wants a name. */
struct frame {
	uint32_t binary;
	uint64_t address;
	int64_t id;
};

/* A row of symbol, until it can be written. Texts are numbers in `texts`. */
struct row {
	int64_t frame;
	uint32_t depth, name, file;
	int64_t line;
};

struct naming {
	struct ts_reader *reader;
	const struct ts_symbolize_choice *choice;
	struct ts_symbolize_summary *summary;
	struct ts_map binaries_of;            /* mapping to binary */
	struct ts_strmap keys;                /* path and build id to binary */
	struct ts_symbolize_module *binaries; /* mappings with the same path and build id are one */
	size_t binary_count, binary_capacity;
	struct frame *frames;
	size_t frame_count, frame_capacity;
	uint64_t *addresses; /* of all binaries, side by side */
	size_t *frames_at;   /* of each of these, the first of its frames; one more at the end */
	struct ts_strmap texts;
	struct row *rows;
	size_t row_count, row_capacity;
	struct ts_error *err;
};

static int no_memory(struct naming *naming)
{
	return ts_error_set(naming->err, TS_ENOMEM, "no memory");
}

/* ---- frames ---- */

static int add_binary(struct naming *naming, struct ts_string path, struct ts_string build_id)
{
	if (ts_grow_array((void **)&naming->binaries, &naming->binary_capacity,
			  naming->binary_count + 1, sizeof(*naming->binaries)))
		return TS_ENOMEM;
	naming->binaries[naming->binary_count++] =
		(struct ts_symbolize_module){ .path = path.data, .build_id = build_id.data };
	return TS_OK;
}

/* False: no memory. */
static bool find_binary(struct naming *naming, int64_t mapping, uint32_t *ret_binary)
{
	const struct ts_mapping_row *row =
		ts_reader_entity(naming->reader, TS_TABLE_MAPPING, mapping);
	struct ts_string path = ts_reader_string(naming->reader, row ? row->path : 0);
	struct ts_string build_id = ts_reader_string(naming->reader, row ? row->build_id : 0);
	TS_SCOPED(ts_text) key = { 0 };
	bool is_new = false;
	uint64_t *known = ts_map_insert(&naming->binaries_of, (uint64_t)mapping, &is_new);

	if (!known)
		return false;
	if (is_new) {
		ts_text_append(&key, path.data, path.length);
		ts_text_append_char(&key, '\0');
		ts_text_append(&key, build_id.data, build_id.length);
		is_new = false;
		*known = ts_strmap_intern(&naming->keys, key.data, key.length, &is_new);
		if (ts_text_status(&key) || *known == TS_STRMAP_NONE ||
		    (is_new && add_binary(naming, path, build_id)))
			return false;
	}
	*ret_binary = (uint32_t)*known;
	return true;
}

static bool is_wanted(struct naming *naming, int64_t id, const struct ts_frame_row *row)
{
	uint32_t known;

	/* What runs on a device is in no file that could be looked for here. */
	if (row->name || !row->mapping || row->pc == TS_ABSENT ||
	    row->kind == TS_FRAME_INSTRUCTION || row->kind == TS_FRAME_KERNEL)
		return false;
	naming->summary->frames++;
	ts_reader_symbols(naming->reader, id, &known);
	naming->summary->known += known && !naming->choice->force;
	return !known || naming->choice->force;
}

static int list_frames(struct naming *naming)
{
	const struct ts_frame_row *row;
	size_t cursor = 0;
	int64_t id;

	while ((row = ts_reader_entity_next(naming->reader, TS_TABLE_FRAME, &cursor, &id))) {
		struct frame frame = { .id = id, .address = (uint64_t)row->pc };

		if (!is_wanted(naming, id, row))
			continue;
		if (!find_binary(naming, row->mapping, &frame.binary) ||
		    ts_grow_array((void **)&naming->frames, &naming->frame_capacity,
				  naming->frame_count + 1, sizeof(*naming->frames)))
			return no_memory(naming);
		naming->frames[naming->frame_count++] = frame;
	}
	return TS_OK;
}

static int compare_frames(const void *left, const void *right)
{
	const struct frame *a = left, *b = right;

	if (a->binary != b->binary)
		return TS_COMPARE(a->binary, b->binary);
	return a->address != b->address ? TS_COMPARE(a->address, b->address)
					: TS_COMPARE(a->id, b->id);
}

/* Gives each binary its addresses, each once. */
static int list_addresses(struct naming *naming)
{
	size_t count = 0;

	ts_sort(naming->frames, naming->frame_count, sizeof(*naming->frames), compare_frames);
	naming->addresses = ts_alloc_array(naming->frame_count, sizeof(*naming->addresses));
	naming->frames_at = ts_alloc_array(naming->frame_count + 1, sizeof(*naming->frames_at));
	if (!naming->addresses || !naming->frames_at)
		return no_memory(naming);
	for (size_t i = 0; i < naming->frame_count; i++) {
		const struct frame *frame = &naming->frames[i], *last = i ? frame - 1 : NULL;
		struct ts_symbolize_module *binary = &naming->binaries[frame->binary];

		if (last && last->binary == frame->binary && last->address == frame->address)
			continue;
		if (binary->count++ == 0)
			binary->addresses = &naming->addresses[count];
		naming->addresses[count] = frame->address;
		naming->frames_at[count++] = i;
	}
	naming->frames_at[count] = naming->frame_count;
	return TS_OK;
}

/* ---- symbols ---- */

static int keep_symbol(struct naming *naming, int64_t frame, uint32_t depth,
		       const struct ts_symbol *symbol)
{
	struct row row = { .frame = frame, .depth = depth, .line = symbol->line };

	row.name = ts_strmap_intern(&naming->texts, symbol->name, strlen(symbol->name), NULL);
	row.file = ts_strmap_intern(&naming->texts, symbol->file, strlen(symbol->file), NULL);
	if (row.name == TS_STRMAP_NONE || row.file == TS_STRMAP_NONE ||
	    ts_grow_array((void **)&naming->rows, &naming->row_capacity, naming->row_count + 1,
			  sizeof(*naming->rows)))
		return no_memory(naming);
	naming->rows[naming->row_count++] = row;
	return TS_OK;
}

static int on_found(void *context, const struct ts_symbolize_module *module, size_t address,
		    const struct ts_symbol *symbols, size_t count, struct ts_error *err)
{
	struct naming *naming = context;
	const size_t *frames_at =
		&naming->frames_at[(size_t)(module->addresses - naming->addresses) + address];
	int rc = TS_OK;

	(void)err; /* is the same as naming's */
	for (size_t i = frames_at[0]; i < frames_at[1]; i++) {
		naming->summary->named++;
		naming->summary->with_lines += *symbols[0].file != '\0';
		for (size_t k = 0; k < count && !rc; k++)
			rc = keep_symbol(naming, naming->frames[i].id, (uint32_t)k, &symbols[k]);
	}
	return rc;
}

static void add_rows(void *context, struct ts_writer *writer)
{
	struct naming *naming = context;

	for (size_t i = 0; i < naming->row_count; i++) {
		const struct row *from = &naming->rows[i];
		struct ts_symbol_row row = ts_symbol_none;
		size_t length;
		const char *text = ts_strmap_text(&naming->texts, from->name, &length);

		row.frame = from->frame;
		row.depth = from->depth;
		row.name = length ? ts_writer_string(writer, text, length) : 0;
		text = ts_strmap_text(&naming->texts, from->file, &length);
		row.file = length ? ts_writer_string(writer, text, length) : 0;
		row.line = from->line ? from->line : TS_ABSENT;
		ts_writer_add(writer, TS_TABLE_SYMBOL, &row, NULL);
	}
}

/* ---- debug folders ---- */

/* Folders out of texts like "a:b", as pointers into a copy. */
struct folders {
	char **copies;
	const char **list;
	size_t count, capacity, copy_count, copy_capacity;
};

static int add_folders(struct folders *folders, const char *text)
{
	char *rest = strdup(text), *folder;

	if (!rest || ts_grow_array((void **)&folders->copies, &folders->copy_capacity,
				   folders->copy_count + 1, sizeof(*folders->copies))) {
		free(rest);
		return TS_ENOMEM;
	}
	folders->copies[folders->copy_count++] = rest;
	while ((folder = strsep(&rest, ":"))) {
		if (!*folder)
			continue;
		if (ts_grow_array((void **)&folders->list, &folders->capacity, folders->count + 1,
				  sizeof(*folders->list)))
			return TS_ENOMEM;
		folders->list[folders->count++] = folder;
	}
	return TS_OK;
}

static int list_folders(struct folders *folders, const struct ts_symbolize_choice *choice)
{
	const char *set = getenv(TS_SYMBOLIZE_PATH_VARIABLE);
	int rc = TS_OK;

	for (size_t i = 0; i < choice->folder_count && !rc; i++)
		rc = add_folders(folders, choice->folders[i]);
	return rc || !set ? rc : add_folders(folders, set);
}

static void release_folders(struct folders *folders)
{
	for (size_t i = 0; i < folders->copy_count; i++)
		free(folders->copies[i]);
	free(folders->copies);
	free(folders->list);
}

/* ---- symbolize ---- */

static void count_binary(struct naming *naming, const struct ts_symbolize_module *module)
{
	static const char *const why[] = {
		[TS_SYMBOLIZE_NO_FILE] = "no such file",
		[TS_SYMBOLIZE_OTHER_BUILD] = "the file is from another build",
		[TS_SYMBOLIZE_CHANGED] = "it has no build id and was changed since",
		[TS_SYMBOLIZE_UNREADABLE] = "cannot be read",
	};
	struct ts_symbolize_summary *summary = naming->summary;

	summary->binaries++;
	summary->states[module->state]++;
	summary->damaged += module->is_damaged;
	if (module->state < TS_SYMBOLIZE_FUNCTIONS)
		ts_text_printf(&summary->missing, "'%s': %s; %zu addresses stay unresolved\n",
			       module->path, why[module->state], module->count);
	else if (module->is_damaged)
		ts_text_printf(&summary->missing,
			       "'%s': damaged debug information: no source lines\n", module->path);
}

static int find_names(struct naming *naming, const struct folders *folders)
{
	struct ts_symbolize_options options = {
		.folders = folders->list,
		.folder_count = folders->count,
		.recorded_ns = ts_reader_state(naming->reader)->created_ns,
		.progress = naming->choice->progress,
		.progress_context = naming->choice->progress_context,
		.found = on_found,
		.context = naming,
	};
	int rc = ts_symbolize(naming->binaries, naming->binary_count, &options, naming->err);

	for (size_t i = 0; i < naming->binary_count && !rc; i++)
		count_binary(naming, &naming->binaries[i]);
	return rc;
}

static int name_frames(struct naming *naming, const char *path)
{
	struct folders folders = { 0 };
	int rc = list_frames(naming);

	if (!rc)
		rc = list_addresses(naming);
	if (!rc && list_folders(&folders, naming->choice))
		rc = no_memory(naming);
	if (!rc && naming->frame_count)
		rc = ts_trace_append_check(path, naming->reader, "", naming->err);
	if (!rc && naming->frame_count && !naming->choice->is_locked)
		rc = ts_output_check(path, naming->err);
	if (!rc && naming->frame_count)
		rc = find_names(naming, &folders);
	if (!rc && naming->row_count)
		rc = ts_trace_append_rows(path, naming->reader, naming->choice->is_locked, add_rows,
					  naming, naming->err);
	release_folders(&folders);
	return rc;
}

static void release(struct naming *naming)
{
	ts_map_release(&naming->binaries_of);
	ts_strmap_release(&naming->keys);
	ts_strmap_release(&naming->texts);
	free(naming->binaries);
	free(naming->frames);
	free(naming->addresses);
	free(naming->frames_at);
	free(naming->rows);
}

int ts_symbolize_trace(const char *path, const struct ts_symbolize_choice *choice,
		       struct ts_symbolize_summary *ret_summary, struct ts_error *err)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct naming naming = { .choice = choice, .summary = ret_summary, .err = err };
	int rc;

	*ret_summary = (struct ts_symbolize_summary){ .has_libdw = ts_dwarf_is_available() };
	rc = ts_reader_open(&reader, path, err);
	if (rc)
		return rc;
	naming.reader = reader;
	ts_strmap_init(&naming.keys, 0);
	ts_strmap_init(&naming.texts, 0);
	rc = name_frames(&naming, path);
	if (!rc)
		rc = ts_reader_status(reader, err);
	release(&naming);
	return rc;
}

void ts_symbolize_summary_release(struct ts_symbolize_summary *summary)
{
	ts_text_release(&summary->missing);
}
