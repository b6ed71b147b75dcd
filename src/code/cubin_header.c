/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of line programs, DWARF 2 to 5: instruction encoding and file tables. */
#include <stdio.h>

#include "code/cubin_internal.h"

/* DWARF 5: meaning and form of a table column. */
enum { COLUMN_PATH = 1, COLUMN_DIRECTORY = 2 };
enum {
	FORM_BLOCK = 0x09,
	FORM_STRING = 0x08,
	FORM_DATA1 = 0x0b,
	FORM_DATA2 = 0x05,
	FORM_DATA4 = 0x06,
	FORM_DATA8 = 0x07,
	FORM_DATA16 = 0x1e,
	FORM_STRP = 0x0e,
	FORM_UDATA = 0x0f,
	FORM_LINE_STRP = 0x1f,
};
#define MAX_COLUMNS 16u
#define MAX_DIRECTORIES (1u << 16)
#define MAX_PATH_BYTES 4096u
#define MAX_PATHS_BYTES (64u << 20) /* of all files */

struct directories {
	const char **paths;
	size_t count, capacity;
};

static const char *take_text(struct ts_cursor *cursor)
{
	const char *text = (const char *)cursor->at;
	const uint8_t *end = memchr(cursor->at, 0, ts_cursor_left(cursor));

	if (!end) {
		ts_cursor_fail(cursor);
		return "";
	}
	cursor->at = end + 1;
	return text;
}

static bool add_directory(struct directories *directories, const char *path)
{
	if (directories->count >= MAX_DIRECTORIES ||
	    ts_grow_array((void **)&directories->paths, &directories->capacity,
			  directories->count + 1, sizeof(*directories->paths)))
		return false;
	directories->paths[directories->count++] = path;
	return true;
}

/* Joins directory and name, unless the name is an absolute path. */
static bool add_file(struct ts_cubin *cubin, const char *directory, const char *name)
{
	bool is_absolute = name[0] == '/' || !directory || !*directory;
	size_t bytes = strnlen(name, MAX_PATH_BYTES) + 2 +
		       (is_absolute ? 0 : strnlen(directory, MAX_PATH_BYTES));
	char *path;

	if (bytes > MAX_PATH_BYTES) { /* no such path exists: its number stays */
		is_absolute = true;
		name = "";
		bytes = 1;
	}
	cubin->path_bytes += bytes;
	if (cubin->file_count >= CUBIN_MOST_FILES || cubin->path_bytes > MAX_PATHS_BYTES ||
	    ts_grow_array((void **)&cubin->files, &cubin->file_capacity, cubin->file_count + 1,
			  sizeof(*cubin->files)))
		return false;
	path = malloc(bytes);
	if (!path)
		return false;
	snprintf(path, bytes, "%s%s%s", is_absolute ? "" : directory, is_absolute ? "" : "/", name);
	cubin->files[cubin->file_count++] = path;
	return true;
}

static const char *directory_at(const struct directories *directories, uint64_t number)
{
	return number < directories->count ? directories->paths[number] : NULL;
}

/* ---- up to DWARF 4 ---- */

static bool read_old_tables(struct ts_cubin *cubin, struct ts_cursor *header,
			    struct directories *directories)
{
	const char *text;

	if (!add_directory(directories, NULL)) /* number 0: the compilation directory */
		return false;
	while (*(text = take_text(header)))
		if (!add_directory(directories, text))
			return false;
	while (*(text = take_text(header))) {
		uint64_t directory = ts_cursor_uleb(header);

		ts_cursor_uleb(header); /* modification time */
		ts_cursor_uleb(header); /* its size */
		if (!add_file(cubin, directory_at(directories, directory), text))
			return false;
	}
	return !header->is_bad;
}

/* ---- DWARF 5 ---- */

struct columns {
	uint64_t content[MAX_COLUMNS], form[MAX_COLUMNS];
	unsigned int count;
};

struct cell {
	const char *text;
	uint64_t number;
};

static const char *text_at(const char *strings, size_t bytes, uint64_t offset)
{
	return strings && bytes && strings[bytes - 1] == '\0' && offset < bytes ? strings + offset
										: "";
}

static struct cell take_cell(const struct ts_cubin *cubin, struct ts_cursor *header, uint64_t form)
{
	struct cell cell = { "", 0 };

	switch (form) {
	case FORM_STRING:
		cell.text = take_text(header);
		break;
	case FORM_LINE_STRP:
		cell.text = text_at(cubin->line_strings, cubin->line_string_bytes,
				    ts_cursor_u32(header));
		break;
	case FORM_STRP:
		cell.text = text_at(cubin->strings, cubin->string_bytes, ts_cursor_u32(header));
		break;
	case FORM_UDATA:
		cell.number = ts_cursor_uleb(header);
		break;
	case FORM_DATA1:
		cell.number = ts_cursor_u8(header);
		break;
	case FORM_DATA2:
		cell.number = ts_cursor_u16(header);
		break;
	case FORM_DATA4:
		cell.number = ts_cursor_u32(header);
		break;
	case FORM_DATA8:
		cell.number = ts_cursor_u64(header);
		break;
	case FORM_DATA16:
		ts_cursor_skip(header, 16);
		break;
	case FORM_BLOCK:
		ts_cursor_skip(header, ts_cursor_uleb(header));
		break;
	default:
		ts_cursor_fail(header);
	}
	return cell;
}

static bool take_columns(struct ts_cursor *header, struct columns *columns)
{
	columns->count = ts_cursor_u8(header);
	if (columns->count > MAX_COLUMNS)
		return false;
	for (unsigned int i = 0; i < columns->count; i++) {
		columns->content[i] = ts_cursor_uleb(header);
		columns->form[i] = ts_cursor_uleb(header);
	}
	return !header->is_bad;
}

/* One table entry: its path and directory number. */
static struct cell take_entry(const struct ts_cubin *cubin, struct ts_cursor *header,
			      const struct columns *columns)
{
	struct cell entry = { "", 0 };

	for (unsigned int i = 0; i < columns->count; i++) {
		struct cell cell = take_cell(cubin, header, columns->form[i]);

		if (columns->content[i] == COLUMN_PATH)
			entry.text = cell.text;
		else if (columns->content[i] == COLUMN_DIRECTORY)
			entry.number = cell.number;
	}
	return entry;
}

static bool read_new_tables(struct ts_cubin *cubin, struct ts_cursor *header,
			    struct directories *directories)
{
	struct columns columns;
	uint64_t count;

	if (!take_columns(header, &columns))
		return false;
	count = ts_cursor_uleb(header);
	/* An entry without columns has no bytes: a file can claim any number of them. */
	for (uint64_t i = 0; i < count && columns.count && !header->is_bad; i++)
		if (!add_directory(directories, take_entry(cubin, header, &columns).text))
			return false;
	if (!take_columns(header, &columns))
		return false;
	count = ts_cursor_uleb(header);
	for (uint64_t i = 0; i < count && columns.count && !header->is_bad; i++) {
		struct cell file = take_entry(cubin, header, &columns);

		if (!header->is_bad &&
		    !add_file(cubin, directory_at(directories, file.number), file.text))
			return false;
	}
	return !header->is_bad;
}

/* ---- entry points ---- */

/* The bytes of the next program; the cursor moves past them. */
static bool take_unit(struct ts_cursor *section, struct ts_cursor *ret_unit)
{
	uint64_t bytes = ts_cursor_u32(section);

	if (bytes == UINT32_MAX ||
	    bytes > ts_cursor_left(section)) { /* 64-bit DWARF is not supported */
		ts_cursor_fail(section);
		return false;
	}
	*ret_unit = (struct ts_cursor){ .at = section->at, .end = section->at + bytes };
	section->at += bytes;
	return !section->is_bad;
}

/* The header up to the tables. `ret_tables`: from there to the first instruction. */
static bool read_fixed(struct ts_cursor *unit, struct cubin_program *program,
		       struct ts_cursor *ret_tables)
{
	uint64_t bytes;

	program->version = ts_cursor_u16(unit);
	if (program->version >= 5) {
		ts_cursor_u8(unit); /* address size */
		ts_cursor_u8(unit); /* segment selector size */
	}
	bytes = ts_cursor_u32(unit);
	if (program->version < 2 || program->version > 5 || bytes > ts_cursor_left(unit))
		return false;
	*ret_tables = (struct ts_cursor){ .at = unit->at, .end = unit->at + bytes };
	program->code = (struct ts_cursor){ .at = unit->at + bytes, .end = unit->end };
	program->minimum_bytes = ts_cursor_u8(ret_tables);
	if (program->version >= 4)
		ts_cursor_u8(ret_tables); /* operations per instruction */
	ts_cursor_u8(ret_tables);         /* default of is_stmt */
	program->line_base = (int8_t)ts_cursor_u8(ret_tables);
	program->line_range = ts_cursor_u8(ret_tables);
	program->opcode_base = ts_cursor_u8(ret_tables);
	for (unsigned int i = 1; i < program->opcode_base; i++)
		program->operands[i] = ts_cursor_u8(ret_tables);
	return !ret_tables->is_bad && program->line_range > 0 && program->opcode_base > 0;
}

bool cubin_read_header(struct ts_cubin *cubin, struct ts_cursor *section,
		       struct cubin_program *ret_program)
{
	struct directories directories = { 0 };
	struct ts_cursor unit, tables;
	bool is_good;

	*ret_program = (struct cubin_program){ .first_file = cubin->file_count };
	if (!take_unit(section, &unit) || !read_fixed(&unit, ret_program, &tables))
		return false;
	is_good = ret_program->version >= 5 ? read_new_tables(cubin, &tables, &directories)
					    : read_old_tables(cubin, &tables, &directories);
	ret_program->file_count = cubin->file_count - ret_program->first_file;
	free(directories.paths);
	return is_good;
}
