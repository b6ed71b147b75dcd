/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortened texts of Python values, like the start of their repr(). Runs nothing in the process, so
 * objects that only their own methods can describe are shown by class and address. Two container
 * levels, a few items each, within a byte limit: self-references are harmless.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "python/repr/repr_internal.h"

#define DEPTH 2
#define ITEMS 8       /* items of a container; fewer when nested */
#define TEXT_BYTES 96 /* characters of a str; fewer when nested */
#define BASES 16
#define MAX_LOCATIONS 4096 /* entries of a set's table that are examined */
#define MAX_DIGITS 24      /* 30-bit digits of an int shown in full */

/* ---- output ---- */

void ts_python_repr_put(struct ts_python_repr *repr, const char *text, size_t bytes)
{
	size_t space = repr->end > repr->out->length ? repr->end - repr->out->length : 0;

	if (repr->is_full)
		return;
	if (bytes + 3 <= space) {
		ts_text_append(repr->out, text, bytes);
		return;
	}
	/* Out of space: what fits, up to a character boundary. */
	repr->is_full = true;
	if (space < 3)
		return;
	space -= 3;
	while (space && (text[space] & 0xc0) == 0x80)
		space--;
	ts_text_append(repr->out, text, space);
	ts_text_append(repr->out, "...", 3);
}

void ts_python_repr_string(struct ts_python_repr *repr, const char *text)
{
	ts_python_repr_put(repr, text, strlen(text));
}

TS_PRINTF_LIKE(2, 3)
static void put_number(struct ts_python_repr *repr, const char *format, ...)
{
	char text[96];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ts_python_repr_string(repr, text);
}

/* ---- classes ---- */

/* Follows tp_base to a static type. */
static void find_root(struct ts_python_process_view *view, struct ts_python_class *class)
{
	uint64_t type = class->address, flags = class->flags;

	for (int i = 0; i < BASES && flags & TS_PYTHON_TYPE_HEAP; i++)
		if (!ts_python_memory_read_pointer(view->memory, type + view->layout->type.base,
						   &type) ||
		    !ts_python_is_address(type) ||
		    !ts_python_memory_read_pointer(view->memory, type + view->layout->type.flags,
						   &flags))
			return;
	if (!(flags & TS_PYTHON_TYPE_HEAP))
		ts_python_name_of_type(view, type, class->root, sizeof(class->root));
}

const struct ts_python_class *ts_python_class_of(struct ts_python_process_view *view,
						 struct ts_python_classes *classes, uint64_t object)
{
	struct ts_python_class *class;
	struct ts_python_type type;

	if (!ts_python_type_of(view, object, &type))
		return NULL;
	for (size_t i = 0; i < sizeof(classes->list) / sizeof(*classes->list); i++)
		if (classes->list[i].address == type.address)
			return &classes->list[i];
	class = &classes->list[classes->next];
	*class = (struct ts_python_class){ .flags = type.flags };
	if (!ts_python_name_of_type(view, type.address, class->name, sizeof(class->name)) ||
	    !ts_utf8_valid(class->name, strlen(class->name)))
		return NULL;
	class->address = type.address;
	find_root(view, class);
	classes->next = (classes->next + 1) % (sizeof(classes->list) / sizeof(*classes->list));
	return class;
}

/* Whether a value is shown as Name(value): a subclass of a type with a literal. */
static bool is_derived(const struct ts_python_class *class)
{
	static const char *const literals[] = { "int",  "bool",  "float", "str", "bytes",
						"list", "tuple", "dict",  "set" };

	for (size_t i = 0; i < sizeof(literals) / sizeof(*literals); i++)
		if (!strcmp(class->name, literals[i]))
			return false;
	return true;
}

/* ---- texts and bytes ---- */

/* One character of a literal, escaped like Python. */
static void put_escaped(struct ts_python_repr *repr, unsigned char c, char quote)
{
	char text[8] = { '\\', (char)c };
	size_t bytes = 2;

	switch (c) {
	case '\n':
		text[1] = 'n';
		break;
	case '\r':
		text[1] = 'r';
		break;
	case '\t':
		text[1] = 't';
		break;
	case '\\':
		break;
	default:
		if (c == (unsigned char)quote)
			break;
		if (c < 32 || c == 127) {
			bytes = (size_t)snprintf(text, sizeof(text), "\\x%02x", c);
		} else {
			text[0] = (char)c;
			bytes = 1;
		}
	}
	ts_python_repr_put(repr, text, bytes);
}

static char quote_of(const char *text, size_t bytes)
{
	return memchr(text, '\'', bytes) && !memchr(text, '"', bytes) ? '"' : '\'';
}

static size_t text_bytes(const struct ts_python_repr *repr)
{
	return repr->depth ? TEXT_BYTES / 2 : TEXT_BYTES;
}

static void put_text(struct ts_python_repr *repr, uint64_t object)
{
	char text[TEXT_BYTES + 1];
	uint64_t characters, shown = 0;
	int bytes = ts_python_read_text_part(repr->view, object, text, text_bytes(repr) + 1,
					     &characters);
	char quote;

	if (bytes < 0) {
		ts_python_repr_string(repr, "?");
		return;
	}
	quote = quote_of(text, (size_t)bytes);
	ts_python_repr_put(repr, &quote, 1);
	for (int i = 0; i < bytes; shown++) {
		int next = i + 1;

		while (next < bytes && (text[next] & 0xc0) == 0x80)
			next++;
		if (next == i + 1)
			put_escaped(repr, (unsigned char)text[i], quote);
		else
			ts_python_repr_put(repr, text + i, (size_t)(next - i));
		i = next;
	}
	ts_python_repr_put(repr, &quote, 1);
	if (shown < characters)
		put_number(repr, "... %" PRIu64 " characters", characters);
}

static void put_bytes(struct ts_python_repr *repr, uint64_t object)
{
	char data[TEXT_BYTES];
	int64_t size = ts_python_var_size(repr->view, object);
	size_t shown = text_bytes(repr) / 2;
	char quote;

	if (size >= 0 && shown > (uint64_t)size)
		shown = (size_t)size;
	if (size < 0 || (shown && !ts_python_memory_read(repr->view->memory,
							 object + repr->view->layout->bytes.bytes,
							 data, shown))) {
		ts_python_repr_string(repr, "?");
		return;
	}
	quote = quote_of(data, shown);
	ts_python_repr_put(repr, quote == '"' ? "b\"" : "b'", 2);
	for (size_t i = 0; i < shown; i++)
		if (data[i] & 0x80)
			put_number(repr, "\\x%02x", (unsigned char)data[i]);
		else
			put_escaped(repr, (unsigned char)data[i], quote);
	ts_python_repr_put(repr, &quote, 1);
	if (shown < (uint64_t)size)
		put_number(repr, "... %" PRIu64 " bytes", (uint64_t)size);
}

/* ---- numbers ---- */

/* Divides a number by 10^9; returns the remainder. */
static uint32_t divide(uint32_t *digits, size_t count)
{
	uint64_t rest = 0;

	for (size_t i = count; i-- > 0;) {
		rest = rest << 30 | (digits[i] & 0x3fffffff);
		digits[i] = (uint32_t)(rest / 1000000000u);
		rest %= 1000000000u;
	}
	return (uint32_t)rest;
}

static void put_digits(struct ts_python_repr *repr, uint32_t *digits, size_t count)
{
	uint32_t groups[MAX_DIGITS + 2] = { 0 }; /* nine decimals each; 30 bits are 9.03 */
	size_t used = 0;
	char text[16];

	while (count && used < MAX_DIGITS + 2) {
		groups[used++] = divide(digits, count);
		while (count && !digits[count - 1])
			count--;
	}
	for (size_t i = used; i-- > 0;) {
		snprintf(text, sizeof(text), i + 1 == used ? "%u" : "%09u", groups[i]);
		ts_python_repr_string(repr, text);
	}
}

static void put_integer(struct ts_python_repr *repr, uint64_t object)
{
	uint32_t digits[MAX_DIGITS] = { 0 };
	bool is_negative;
	int64_t count = ts_python_read_digits(repr->view, object, digits, MAX_DIGITS, &is_negative);

	if (count < 0) {
		ts_python_repr_string(repr, "?");
		return;
	}
	if (count > MAX_DIGITS) {
		put_number(repr,
			   is_negative ? "<negative int of about %" PRIu64 " decimals>"
				       : "<int of about %" PRIu64 " decimals>",
			   (uint64_t)count * 903 / 100);
		return;
	}
	if (is_negative)
		ts_python_repr_string(repr, "-");
	if (count)
		put_digits(repr, digits, (size_t)count);
	else
		ts_python_repr_string(repr, "0");
}

static void put_bool(struct ts_python_repr *repr, uint64_t object)
{
	uint32_t digit = 0;
	bool is_negative;
	int64_t count = ts_python_read_digits(repr->view, object, &digit, 1, &is_negative);

	ts_python_repr_string(repr, count < 0 ? "?" : count && digit ? "True" : "False");
}

static void put_real(struct ts_python_repr *repr, uint64_t object)
{
	TS_SCOPED(ts_text) text = { 0 };
	double value;

	if (!ts_python_memory_read(repr->view->memory, object + repr->view->layout->real.value,
				   &value, sizeof(value)))
		ts_python_repr_string(repr, "?");
	else if (isnan(value))
		ts_python_repr_string(repr, "nan");
	else if (isinf(value))
		ts_python_repr_string(repr, value < 0 ? "-inf" : "inf");
	else {
		ts_text_append_double(&text, value);
		ts_python_repr_put(repr, text.data, text.length);
	}
}

/* ---- containers ---- */

static unsigned int items_shown(const struct ts_python_repr *repr)
{
	return repr->depth > 1 ? ITEMS / 2 : ITEMS;
}

/* After the shown items: how many there are. */
static void put_rest(struct ts_python_repr *repr, uint64_t shown, uint64_t size)
{
	if (shown < size)
		put_number(repr, shown ? ", ... %" PRIu64 " items" : "... %" PRIu64 " items", size);
}

/* Items of a list or tuple at an address. */
static void put_items(struct ts_python_repr *repr, uint64_t items, uint64_t size)
{
	uint64_t list[ITEMS];
	unsigned int shown = items_shown(repr);

	if (shown > size)
		shown = (unsigned int)size;
	if (shown && !ts_python_memory_read(repr->view->memory, items, list, shown * sizeof(*list)))
		shown = 0;
	for (unsigned int i = 0; i < shown && !repr->is_full; i++) {
		if (i)
			ts_python_repr_string(repr, ", ");
		ts_python_repr_value(repr, list[i]);
	}
	put_rest(repr, shown, size);
}

/* `end`: after the single item of a tuple. */
static void put_sequence(struct ts_python_repr *repr, uint64_t object, bool is_list,
			 const char *end)
{
	const struct ts_python_layout *layout = repr->view->layout;
	int64_t size = ts_python_var_size(repr->view, object);
	uint64_t items = object + layout->tuple.items;

	if (is_list &&
	    !ts_python_memory_read_pointer(repr->view->memory, object + layout->list.items, &items))
		size = -1;
	ts_python_repr_string(repr, is_list ? "[" : "(");
	if (size < 0)
		ts_python_repr_string(repr, "?");
	else
		put_items(repr, items, (uint64_t)size);
	if (size == 1)
		ts_python_repr_string(repr, end);
	ts_python_repr_string(repr, is_list ? "]" : ")");
}

struct pairs {
	struct ts_python_repr *repr;
	uint64_t shown;
};

static bool put_pair(void *context, uint64_t key, uint64_t value)
{
	struct pairs *pairs = context;

	if (pairs->shown++)
		ts_python_repr_string(pairs->repr, ", ");
	ts_python_repr_value(pairs->repr, key);
	ts_python_repr_string(pairs->repr, ": ");
	ts_python_repr_value(pairs->repr, value);
	return !pairs->repr->is_full;
}

static void put_dict(struct ts_python_repr *repr, uint64_t object)
{
	struct pairs pairs = { repr, 0 };
	int64_t size = ts_python_dict_size(repr->view, object);

	ts_python_repr_string(repr, "{");
	ts_python_dict_each(repr->view, object, items_shown(repr), put_pair, &pairs);
	if (size > 0)
		put_rest(repr, pairs.shown, (uint64_t)size);
	ts_python_repr_string(repr, "}");
}

/* A set's table: pairs of key and hash; hash -1: deleted. */
static unsigned int put_members(struct ts_python_repr *repr, uint64_t table, uint64_t mask)
{
	uint64_t entries[32][2];
	unsigned int shown = 0;

	for (uint64_t i = 0; i <= mask && i < MAX_LOCATIONS && !repr->is_full; i += 32) {
		size_t count = mask - i < 31 ? (size_t)(mask - i + 1) : 32;

		if (!ts_python_memory_read(repr->view->memory, table + i * 16, entries, count * 16))
			break;
		for (size_t j = 0; j < count; j++) {
			if (!entries[j][0] || entries[j][1] == UINT64_MAX)
				continue;
			if (shown == items_shown(repr))
				return shown;
			if (shown++)
				ts_python_repr_string(repr, ", ");
			ts_python_repr_value(repr, entries[j][0]);
		}
	}
	return shown;
}

static void put_set(struct ts_python_repr *repr, uint64_t object)
{
	uint64_t head[4]; /* fill, used, mask, table: the same in every version */

	if (!ts_python_memory_read(repr->view->memory, object + repr->view->layout->object.bytes,
				   head, sizeof(head)) ||
	    head[1] > head[2]) {
		ts_python_repr_string(repr, "{?}");
		return;
	}
	ts_python_repr_string(repr, "{");
	put_rest(repr, put_members(repr, head[3], head[2]), head[1]);
	ts_python_repr_string(repr, "}");
}

/* ---- what has a name ---- */

/* The module of a class; "": unknown, or already part of its name. */
static void find_module(struct ts_python_repr *repr, const struct ts_python_class *class,
			char *buffer, size_t bytes)
{
	struct ts_python_process_view *view = repr->view;
	uint64_t names;

	buffer[0] = '\0';
	/* tp_dict follows tp_base. */
	if (strchr(class->name, '.') || !(class->flags & TS_PYTHON_TYPE_HEAP) ||
	    !ts_python_memory_read_pointer(view->memory,
					   class->address + view->layout->type.base + 8, &names))
		return;
	if (ts_python_read_text(view, ts_python_dict_find(view, names, "__module__"), buffer,
				bytes) < 0)
		buffer[0] = '\0';
}

static void put_class_name(struct ts_python_repr *repr, const struct ts_python_class *class)
{
	char module[96];

	find_module(repr, class, module, sizeof(module));
	if (module[0]) {
		ts_python_repr_string(repr, module);
		ts_python_repr_string(repr, ".");
	}
	ts_python_repr_string(repr, class->name);
}

static void put_instance(struct ts_python_repr *repr, const struct ts_python_class *class,
			 uint64_t object)
{
	ts_python_repr_string(repr, "<");
	put_class_name(repr, class);
	put_number(repr, " object at 0x%" PRIx64 ">", object);
}

/* "<function f>", from a str a few words into the object. */
static bool put_named(struct ts_python_repr *repr, const char *what, uint64_t object,
		      unsigned int words)
{
	char name[128];
	uint64_t text;

	if (!ts_python_memory_read_pointer(repr->view->memory,
					   object + repr->view->layout->object.bytes + words * 8u,
					   &text) ||
	    ts_python_read_text(repr->view, text, name, sizeof(name)) < 0)
		return false;
	ts_python_repr_string(repr, "<");
	ts_python_repr_string(repr, what);
	ts_python_repr_string(repr, name);
	ts_python_repr_string(repr, ">");
	return true;
}

/* func_qualname: among the first members from 3.10 on. */
static bool put_function(struct ts_python_repr *repr, const char *what, uint64_t function)
{
	return put_named(repr, what, function, repr->view->layout->minor >= 10 ? 3 : 11);
}

static bool put_method(struct ts_python_repr *repr, uint64_t object)
{
	uint64_t function;

	return ts_python_memory_read_pointer(
		       repr->view->memory, object + repr->view->layout->object.bytes, &function) &&
	       ts_python_is_address(function) && put_function(repr, "bound method ", function);
}

/* m_ml->ml_name */
static bool put_builtin(struct ts_python_repr *repr, uint64_t object)
{
	uint64_t definition, text;
	char name[96];

	if (!ts_python_memory_read_pointer(
		    repr->view->memory, object + repr->view->layout->object.bytes, &definition) ||
	    !ts_python_memory_read_pointer(repr->view->memory, definition, &text) ||
	    ts_python_read_c_string(repr->view, text, name, sizeof(name)) <= 0 ||
	    !ts_utf8_valid(name, strlen(name)))
		return false;
	ts_python_repr_string(repr, "<built-in ");
	ts_python_repr_string(repr, name);
	ts_python_repr_string(repr, ">");
	return true;
}

static bool put_module(struct ts_python_repr *repr, uint64_t object)
{
	uint64_t names = ts_python_module_dict(repr->view, object);
	char name[128];

	if (!names ||
	    ts_python_read_text(repr->view, ts_python_dict_find(repr->view, names, "__name__"),
				name, sizeof(name)) < 0)
		return false;
	ts_python_repr_string(repr, "<module ");
	ts_python_repr_string(repr, name);
	ts_python_repr_string(repr, ">");
	return true;
}

static bool put_coroutine(struct ts_python_repr *repr, const char *what, uint64_t object)
{
	char name[128];

	if (ts_python_coroutine_name(repr->view, object, name, sizeof(name)) < 0)
		return false;
	ts_python_repr_string(repr, "<");
	ts_python_repr_string(repr, what);
	ts_python_repr_string(repr, " ");
	ts_python_repr_string(repr, name);
	ts_python_repr_string(repr, ">");
	return true;
}

/* An object that is itself a class. */
static void put_type(struct ts_python_repr *repr, uint64_t object)
{
	struct ts_python_class class = { .address = object };

	if (!ts_python_memory_read_pointer(repr->view->memory,
					   object + repr->view->layout->type.flags, &class.flags) ||
	    !ts_python_name_of_type(repr->view, object, class.name, sizeof(class.name)) ||
	    !ts_utf8_valid(class.name, strlen(class.name))) {
		ts_python_repr_string(repr, "<class ?>");
		return;
	}
	ts_python_repr_string(repr, "<class '");
	put_class_name(repr, &class);
	ts_python_repr_string(repr, "'>");
}

/* ValueError('text'): args is the second member of an exception. */
static void put_exception(struct ts_python_repr *repr, const struct ts_python_class *class,
			  uint64_t object)
{
	uint64_t args;
	struct ts_python_type type;

	ts_python_repr_string(repr, class->name);
	if (!ts_python_memory_read_pointer(repr->view->memory,
					   object + repr->view->layout->object.bytes + 8, &args) ||
	    !ts_python_type_of(repr->view, args, &type) || !(type.flags & TS_PYTHON_TYPE_TUPLE) ||
	    repr->depth >= DEPTH) {
		ts_python_repr_string(repr, "(...)");
		return;
	}
	repr->depth++;
	put_sequence(repr, args, false, "");
	repr->depth--;
}

/* start, stop, step */
static bool put_range(struct ts_python_repr *repr, uint64_t object)
{
	uint64_t members[3];

	if (!ts_python_memory_read(repr->view->memory, object + repr->view->layout->object.bytes,
				   members, sizeof(members)))
		return false;
	for (int i = 0; i < 3; i++) {
		ts_python_repr_string(repr, i ? ", " : "range(");
		put_integer(repr, members[i]);
	}
	ts_python_repr_string(repr, ")");
	return true;
}

/* ---- all of them ---- */

/* By type name; false: none of these. */
static bool put_by_name(struct ts_python_repr *repr, const char *name, uint64_t object)
{
	if (!strcmp(name, "NoneType"))
		ts_python_repr_string(repr, "None");
	else if (!strcmp(name, "ellipsis"))
		ts_python_repr_string(repr, "Ellipsis");
	else if (!strcmp(name, "function"))
		return put_function(repr, "function ", object);
	else if (!strcmp(name, "method"))
		return put_method(repr, object);
	else if (!strcmp(name, "builtin_function_or_method"))
		return put_builtin(repr, object);
	else if (!strcmp(name, "module"))
		return put_module(repr, object);
	else if (!strcmp(name, "generator") || !strcmp(name, "coroutine") ||
		 !strcmp(name, "async_generator"))
		return put_coroutine(repr, name, object);
	else if (!strcmp(name, "range"))
		return put_range(repr, object);
	else
		return false;
	return true;
}

static bool is_container(const struct ts_python_class *class)
{
	return class->flags & (TS_PYTHON_TYPE_LIST | TS_PYTHON_TYPE_TUPLE | TS_PYTHON_TYPE_DICT) ||
	       !strcmp(class->root, "set") || !strcmp(class->root, "frozenset");
}

static void put_container(struct ts_python_repr *repr, const struct ts_python_class *class,
			  uint64_t object)
{
	if (repr->depth >= DEPTH) {
		ts_python_repr_string(repr, class->flags & TS_PYTHON_TYPE_LIST    ? "[...]"
					    : class->flags & TS_PYTHON_TYPE_TUPLE ? "(...)"
										  : "{...}");
		return;
	}
	repr->depth++;
	if (class->flags & TS_PYTHON_TYPE_LIST)
		put_sequence(repr, object, true, "");
	else if (class->flags & TS_PYTHON_TYPE_TUPLE)
		put_sequence(repr, object, false, is_derived(class) ? "" : ",");
	else if (class->flags & TS_PYTHON_TYPE_DICT)
		put_dict(repr, object);
	else
		put_set(repr, object);
	repr->depth--;
}

/* Also for subclasses of these types; false: none of these. */
static bool put_plain(struct ts_python_repr *repr, const struct ts_python_class *class,
		      uint64_t object)
{
	if (is_container(class))
		put_container(repr, class, object);
	else if (class->flags & TS_PYTHON_TYPE_TEXT)
		put_text(repr, object);
	else if (class->flags & TS_PYTHON_TYPE_BYTES)
		put_bytes(repr, object);
	else if (!strcmp(class->name, "bool"))
		put_bool(repr, object);
	else if (class->flags & TS_PYTHON_TYPE_INTEGER)
		put_integer(repr, object);
	else if (!strcmp(class->root, "float") || !strcmp(class->root, "numpy.float64"))
		put_real(repr, object);
	else
		return false;
	return true;
}

/* Whether put_plain() handles such values. */
static bool is_plain(const struct ts_python_class *class)
{
	return is_container(class) ||
	       class->flags &
		       (TS_PYTHON_TYPE_TEXT | TS_PYTHON_TYPE_BYTES | TS_PYTHON_TYPE_INTEGER) ||
	       !strcmp(class->root, "float") || !strcmp(class->root, "numpy.float64");
}

void ts_python_repr_value(struct ts_python_repr *repr, uint64_t object)
{
	const struct ts_python_class *met = ts_python_class_of(repr->view, repr->classes, object);
	struct ts_python_class class; /* the list may change while items are read */

	if (!met || repr->is_full) {
		ts_python_repr_string(repr, "?");
		return;
	}
	class = *met;
	if (class.flags & TS_PYTHON_TYPE_TYPE) {
		put_type(repr, object);
	} else if (is_plain(&class)) {
		bool is_named = is_derived(&class);
		bool has_brackets = class.flags & TS_PYTHON_TYPE_TUPLE;

		if (is_named)
			ts_python_repr_string(repr, class.name);
		if (is_named && !has_brackets)
			ts_python_repr_string(repr, "(");
		put_plain(repr, &class, object);
		if (is_named && !has_brackets)
			ts_python_repr_string(repr, ")");
	} else if (class.flags & TS_PYTHON_TYPE_EXCEPTION) {
		put_exception(repr, &class, object);
	} else if (!put_by_name(repr, class.name, object) &&
		   !ts_python_repr_array(repr, &class, object)) {
		put_instance(repr, &class, object);
	}
}

int ts_python_repr(struct ts_python_process_view *view, uint64_t object, size_t limit,
		   struct ts_text *out)
{
	struct ts_python_classes classes = { 0 };
	struct ts_python_repr repr = {
		.view = view,
		.classes = &classes,
		.out = out,
		.end = out->length + limit,
	};

	ts_python_repr_value(&repr, object);
	return ts_text_status(out);
}
