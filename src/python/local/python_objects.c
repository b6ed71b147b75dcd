/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings, integers and code objects in a process's memory. Anything may change while it is read,
 * so lengths are bounded before use, and a text is always valid UTF-8. libc only, no heap: also
 * linked into the agent.
 */
#include "python/local/python_objects_internal.h"

#define HEAD_BYTES 128    /* enough for a str header in every version */
#define UNITS_AT_ONCE 128 /* of a non-ASCII str */
#define MAX_CHARACTERS (1ull << 40)

bool ts_python_type_of(struct ts_python_process_view *view, uint64_t object,
		       struct ts_python_type *ret_type)
{
	struct ts_python_type type;

	if (!ts_python_is_address(object) ||
	    !ts_python_memory_read_pointer(view->memory, object + view->layout->object.type,
					   &type.address) ||
	    !ts_python_is_address(type.address) ||
	    !ts_python_memory_read_pointer(view->memory, type.address + view->layout->type.flags,
					   &type.flags))
		return false;
	*ret_type = type;
	return true;
}

int ts_python_read_c_string(struct ts_python_process_view *view, uint64_t address, char *buffer,
			    size_t bytes)
{
	size_t length = 0;

	if (address < 4096 || !bytes)
		return -1;
	/* Up to the next multiple of 64, so that no page is read that the text does not reach. */
	while (length < bytes - 1) {
		size_t part = 64 - ((address + length) & 63);

		if (part > bytes - 1 - length)
			part = bytes - 1 - length;
		if (!ts_python_memory_read(view->memory, address + length, buffer + length, part))
			return -1;
		for (size_t i = 0; i < part; i++)
			if (!buffer[length + i])
				return (int)(length + i);
		length += part;
	}
	buffer[length] = '\0';
	return (int)length;
}

/* ---- texts ---- */

/* Location and encoding of a str's characters. */
struct text {
	uint64_t data;
	uint64_t length;   /* in characters */
	unsigned int unit; /* bytes per character */
	bool is_ascii;
};

/* 3.8 to 3.11: a legacy wchar_t string that is not ready yet. */
static bool wide_text(const struct ts_python_layout *layout, const void *head, struct text *text)
{
	if (layout->minor > 11)
		return false;
	text->data = ts_python_word(head, layout->unicode.ascii_bytes - 8u);
	text->length = ts_python_word(head, layout->unicode.compact_bytes - 8u);
	text->unit = sizeof(wchar_t);
	return true;
}

static bool parse_text(const struct ts_python_layout *layout, uint64_t object, const void *head,
		       struct text *text)
{
	uint32_t state = (uint32_t)ts_python_word(head, layout->unicode.state);
	uint32_t bits = state >> layout->unicode.kind_shift;
	bool is_compact = bits >> 3 & 1;

	text->length = ts_python_word(head, layout->unicode.length);
	text->unit = bits & 7;
	text->is_ascii = bits >> 4 & 1;
	if (!text->unit && !is_compact && !text->is_ascii) {
		if (!wide_text(layout, head, text))
			return false;
	} else if (!is_compact) {
		text->data = ts_python_word(head, layout->unicode.compact_bytes);
	} else if (text->is_ascii) {
		text->data = object + layout->unicode.ascii_bytes;
	} else {
		text->data = object + layout->unicode.compact_bytes;
	}
	return (text->unit == 1 || text->unit == 2 || text->unit == 4) &&
	       !(text->is_ascii && text->unit != 1) && text->length < MAX_CHARACTERS;
}

static bool find_text(struct ts_python_process_view *view, uint64_t object, struct text *text)
{
	const struct ts_python_layout *layout = view->layout;
	char head[HEAD_BYTES] = { 0 };
	struct ts_python_type type;
	size_t bytes = layout->unicode.compact_bytes + 8u;
	uint32_t state;

	if (bytes > sizeof(head) || layout->unicode.ascii_bytes < 8 ||
	    layout->unicode.length + 8u > bytes || layout->unicode.state + 8u > bytes)
		return false;
	if (!ts_python_type_of(view, object, &type) || !(type.flags & TS_PYTHON_TYPE_TEXT))
		return false;
	/* Memory after a short ASCII text may be unmapped. */
	if (!ts_python_memory_read(view->memory, object, head, layout->unicode.ascii_bytes))
		return false;
	state = (uint32_t)ts_python_word(head, layout->unicode.state) >> layout->unicode.kind_shift;
	if ((state >> 3 & 3) != 3 && !ts_python_memory_read(view->memory, object, head, bytes))
		return false;
	return parse_text(layout, object, head, text);
}

static uint32_t character(const unsigned char *units, unsigned int unit, size_t i)
{
	uint32_t c = 0;

	memcpy(&c, units + i * unit, unit);
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0xfffd;
	return c;
}

static size_t encode(char *buffer, size_t capacity, uint32_t c)
{
	size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char marks[5] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (bytes > capacity)
		return 0;
	for (size_t i = bytes; i-- > 1; c >>= 6)
		buffer[i] = (char)(0x80 | (c & 0x3f));
	buffer[0] = (char)(marks[bytes] | c);
	return bytes;
}

/* The text as UTF-8, as far as it fits. */
static int copy_units(struct ts_python_process_view *view, const struct text *text, char *buffer,
		      size_t bytes)
{
	unsigned char units[UNITS_AT_ONCE * 4];
	size_t used = 0;

	for (uint64_t done = 0; done < text->length;) {
		size_t count = UNITS_AT_ONCE;

		if (count > text->length - done)
			count = (size_t)(text->length - done);
		if (count > bytes - 1 - used)
			count = bytes - 1 - used;
		if (!count)
			break;
		if (!ts_python_memory_read(view->memory, text->data + done * text->unit, units,
					   count * text->unit))
			return -1;
		for (size_t i = 0; i < count; i++) {
			size_t more = encode(buffer + used, bytes - 1 - used,
					     character(units, text->unit, i));

			if (!more) {
				buffer[used] = '\0';
				return (int)used;
			}
			used += more;
		}
		done += count;
	}
	buffer[used] = '\0';
	return (int)used;
}

static int copy_ascii(struct ts_python_process_view *view, const struct text *text, char *buffer,
		      size_t bytes)
{
	size_t length = text->length < bytes - 1 ? (size_t)text->length : bytes - 1;

	if (length && !ts_python_memory_read(view->memory, text->data, buffer, length))
		return -1;
	buffer[length] = '\0';
	/* It changed while it was read. */
	for (size_t i = 0; i < length; i++)
		if (buffer[i] & 0x80)
			buffer[i] = '?';
	return (int)length;
}

int ts_python_read_text_part(struct ts_python_process_view *view, uint64_t object, char *buffer,
			     size_t bytes, uint64_t *ret_characters)
{
	struct text text;
	int used;

	if (!bytes || bytes > INT32_MAX || !find_text(view, object, &text))
		return -1;
	used = text.is_ascii ? copy_ascii(view, &text, buffer, bytes)
			     : copy_units(view, &text, buffer, bytes);
	if (used >= 0)
		*ret_characters = text.length;
	return used;
}

int ts_python_read_text(struct ts_python_process_view *view, uint64_t object, char *buffer,
			size_t bytes)
{
	uint64_t characters;

	return ts_python_read_text_part(view, object, buffer, bytes, &characters);
}

/* ---- numbers ---- */

int64_t ts_python_var_size(struct ts_python_process_view *view, uint64_t object)
{
	uint64_t size;

	if (!ts_python_is_address(object) ||
	    !ts_python_memory_read_pointer(view->memory, object + view->layout->object.var_size,
					   &size) ||
	    size > INT32_MAX)
		return -1;
	return (int64_t)size;
}

/* The member with sign and digit count: ob_size, or lv_tag since 3.12. */
static uint64_t digit_count(const struct ts_python_layout *layout, uint64_t word,
			    bool *ret_negative)
{
	if (layout->integer.size_shift) {
		*ret_negative = (word & 3) == 2;
		return (word & 3) == 1 ? 0 : word >> layout->integer.size_shift;
	}
	*ret_negative = word >> 63;
	return *ret_negative ? -word : word;
}

int64_t ts_python_read_digits(struct ts_python_process_view *view, uint64_t object,
			      uint32_t *digits, size_t most, bool *ret_negative)
{
	const struct ts_python_layout *layout = view->layout;
	struct ts_python_type type;
	uint64_t word, count;

	if (!ts_python_type_of(view, object, &type) || !(type.flags & TS_PYTHON_TYPE_INTEGER) ||
	    !ts_python_memory_read_pointer(view->memory, object + layout->integer.size, &word))
		return -1;
	count = digit_count(layout, word, ret_negative);
	if (count > INT32_MAX)
		return -1;
	if (most > count)
		most = (size_t)count;
	if (most && !ts_python_memory_read(view->memory, object + layout->integer.digits, digits,
					   most * sizeof(*digits)))
		return -1;
	return (int64_t)count;
}

bool ts_python_read_unsigned(struct ts_python_process_view *view, uint64_t object,
			     uint64_t *ret_value)
{
	uint32_t digits[3] = { 0 };
	bool is_negative;
	int64_t count = ts_python_read_digits(view, object, digits, 3, &is_negative);

	if (count < 0 || count > 3 || is_negative || digits[2] > 15)
		return false;
	*ret_value = digits[0] | (uint64_t)digits[1] << 30 | (uint64_t)digits[2] << 60;
	return true;
}

/* ---- code objects ---- */

static bool in_code(const struct ts_python_layout *layout, uint16_t offset)
{
	return offset != TS_PYTHON_NONE && offset + 8u <= layout->code.bytes;
}

/* co_qualname where the version has it. */
static uint16_t name_offset(const struct ts_python_layout *layout)
{
	return ts_python_has(layout->code.qualified_name) && layout->code.qualified_name
		       ? layout->code.qualified_name
		       : layout->code.name;
}

bool ts_python_code_identify(const struct ts_python_layout *layout, uint64_t address,
			     uint64_t code_type, const void *copy,
			     struct ts_python_code_identity *ret_identity)
{
	struct ts_python_code_identity identity = { .address = address };
	uint16_t name = name_offset(layout);

	if (!ts_python_is_address(address) || !in_code(layout, name) ||
	    !in_code(layout, layout->code.file) || !in_code(layout, layout->code.line_table) ||
	    layout->code.first_line + 4u > layout->code.bytes)
		return false;
	if (code_type && ts_python_word(copy, layout->object.type) != code_type)
		return false;
	identity.name = ts_python_word(copy, name);
	identity.file = ts_python_word(copy, layout->code.file);
	identity.line_table = ts_python_word(copy, layout->code.line_table);
	memcpy(&identity.first_line, (const char *)copy + layout->code.first_line,
	       sizeof(identity.first_line));
	if (!ts_python_is_address(identity.name) || !ts_python_is_address(identity.file) ||
	    !ts_python_is_address(identity.line_table) || identity.first_line < 0)
		return false;
	*ret_identity = identity;
	return true;
}

/* Address and size of a bytes object. */
static bool find_bytes(struct ts_python_process_view *view, uint64_t object, uint64_t *ret_data,
		       uint32_t *ret_bytes)
{
	struct ts_python_type type;
	int64_t size;

	if (!ts_python_type_of(view, object, &type) || !(type.flags & TS_PYTHON_TYPE_BYTES))
		return false;
	size = ts_python_var_size(view, object);
	if (size < 0)
		return false;
	*ret_data = object + view->layout->bytes.bytes;
	*ret_bytes = (uint32_t)size;
	return true;
}

static void find_instructions(struct ts_python_process_view *view, uint64_t code,
			      struct ts_python_code_text *text)
{
	const struct ts_python_layout *layout = view->layout;
	uint64_t object;
	int64_t count;

	text->instructions = 0;
	text->instruction_bytes = 0;
	if (layout->frames == TS_PYTHON_FRAME_OBJECTS) {
		if (ts_python_memory_read_pointer(view->memory, code + layout->code.instructions,
						  &object))
			find_bytes(view, object, &text->instructions, &text->instruction_bytes);
		return;
	}
	text->instructions = code + layout->code.instructions;
	count = ts_python_var_size(view, code);
	if (count > 0 && count <= INT32_MAX / 2)
		text->instruction_bytes = (uint32_t)count * 2;
}

bool ts_python_code_read(struct ts_python_process_view *view,
			 const struct ts_python_code_identity *identity,
			 struct ts_python_code_text *ret_text, void *table, size_t table_capacity)
{
	uint64_t data;
	uint32_t bytes;

	if (ts_python_read_text(view, identity->name, ret_text->name, sizeof(ret_text->name)) < 0 ||
	    ts_python_read_text(view, identity->file, ret_text->file, sizeof(ret_text->file)) < 0 ||
	    !find_bytes(view, identity->line_table, &data, &bytes))
		return false;
	if (!table || bytes > table_capacity)
		bytes = table ? (uint32_t)table_capacity : 0;
	if (bytes && !ts_python_memory_read(view->memory, data, table, bytes))
		return false;
	ret_text->table_bytes = bytes;
	find_instructions(view, identity->address, ret_text);
	return true;
}
