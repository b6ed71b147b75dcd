/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dictionaries and attributes in a process's memory: combined and split tables, str-key tables,
 * inline values. A dictionary may change or be freed meanwhile: returns what it finds, bounded;
 * callers who need certainty read twice.
 */
#include "python/local/python_objects_internal.h"

#define MAX_ENTRIES (1u << 20)  /* entries examined, including deleted ones */
#define MAX_SEARCHED (1u << 16) /* entries per lookup */
#define AT_ONCE 64u             /* entries per read */
#define KEY_BYTES 64u           /* longest key that can be looked up */

enum { KEYS_GENERAL, KEYS_TEXT, KEYS_SPLIT };

/* A key table, and the location of its values. */
struct table {
	uint64_t entries; /* address of the first */
	uint64_t values;  /* address of the first value; 0: beside the keys */
	uint32_t count;   /* entries in use, including deleted ones */
	uint32_t entry_bytes;
	uint32_t key; /* offset in an entry; the value follows */
};

struct pair {
	uint64_t key, value;
};

/* ---- tables ---- */

/* Before 3.13 values begin immediately; since then four bytes of state precede them, in a word. */
static uint64_t first_value(const struct ts_python_layout *layout, uint64_t values)
{
	return layout->minor >= 13 ? values + 8 : values;
}

/* Size of the hash table between a table's header and its entries; 0: implausible. */
static uint64_t index_bytes(const struct ts_python_layout *layout, const void *head)
{
	uint64_t size = ts_python_word(head, layout->dict.keys_size);
	unsigned int log2;

	if (layout->dict.keys_size_is_log2) {
		log2 = *((const uint8_t *)head + layout->dict.keys_log2_index);
		return log2 < 40 ? UINT64_C(1) << log2 : 0;
	}
	if (!size || size > UINT64_C(1) << 36)
		return 0;
	return size <= 0xff         ? size
	       : size <= 0xffff     ? size * 2
	       : size <= 0xffffffff ? size * 4
				    : size * 8;
}

static bool open_table(struct ts_python_process_view *view, uint64_t keys, uint64_t values,
		       struct table *ret_table)
{
	const struct ts_python_layout *layout = view->layout;
	uint8_t head[128] = { 0 };
	uint64_t count, indices;
	bool is_text;

	if (!ts_python_is_address(keys) || layout->dict.keys_indices > sizeof(head) - 8 ||
	    layout->dict.keys_count > sizeof(head) - 8 ||
	    layout->dict.keys_size > sizeof(head) - 8 ||
	    !ts_python_memory_read(view->memory, keys, head, layout->dict.keys_indices))
		return false;
	count = ts_python_word(head, layout->dict.keys_count);
	indices = index_bytes(layout, head);
	if (!indices || count > indices)
		return false;
	is_text = layout->dict.keys_size_is_log2 &&
		  head[layout->dict.keys_kind & (sizeof(head) - 1)] != KEYS_GENERAL;
	*ret_table = (struct table){
		.entries = keys + layout->dict.keys_indices + indices,
		.values = values,
		.count = count < MAX_ENTRIES ? (uint32_t)count : MAX_ENTRIES,
		.entry_bytes = is_text ? 16 : 24,
		.key = is_text ? 0 : 8,
	};
	return true;
}

/*
 * Entries from `first` on; deleted ones have value 0. Returns their number; 0: none, or unreadable.
 */
static uint32_t read_pairs(struct ts_python_process_view *view, const struct table *table,
			   uint32_t first, struct pair *pairs)
{
	uint8_t entries[AT_ONCE * 24];
	uint64_t values[AT_ONCE];
	uint32_t count = table->count - first < AT_ONCE ? table->count - first : AT_ONCE;

	if (!count || !ts_python_memory_read(view->memory,
					     table->entries + (uint64_t)first * table->entry_bytes,
					     entries, (size_t)count * table->entry_bytes))
		return 0;
	if (table->values &&
	    !ts_python_memory_read(view->memory, table->values + (uint64_t)first * 8, values,
				   (size_t)count * 8))
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *entry = entries + (size_t)i * table->entry_bytes + table->key;

		pairs[i].key = ts_python_word(entry, 0);
		pairs[i].value = table->values ? values[i] : ts_python_word(entry, 8);
		if (!pairs[i].key)
			pairs[i].value = 0;
	}
	return count;
}

static bool each_pair(struct ts_python_process_view *view, const struct table *table, size_t limit,
		      bool (*pair)(void *context, uint64_t key, uint64_t value), void *context)
{
	struct pair pairs[AT_ONCE];
	/* Deleted entries are skipped, up to a limit. */
	uint64_t most = limit < MAX_ENTRIES / 8 ? limit * 8 + 4096 : MAX_ENTRIES;

	for (uint32_t first = 0; first < table->count && first < most && limit;) {
		uint32_t count = read_pairs(view, table, first, pairs);

		if (!count)
			return false;
		for (uint32_t i = 0; i < count && limit; i++) {
			if (!pairs[i].value)
				continue;
			limit--;
			if (!pair(context, pairs[i].key, pairs[i].value))
				return true;
		}
		first += count;
	}
	return true;
}

/* ---- looking for a key ---- */

/* Whether a copy of an object's first bytes is an ASCII str with this text. */
static bool is_key(const struct ts_python_layout *layout, const uint8_t *copy, const char *key,
		   size_t length)
{
	uint32_t bits = (uint32_t)ts_python_word(copy, layout->unicode.state) >>
			layout->unicode.kind_shift;

	return ts_python_word(copy, layout->unicode.length) == length &&
	       (bits & 31) == (1 | 1 << 3 | 1 << 4) &&
	       !memcmp(copy + layout->unicode.ascii_bytes, key, length);
}

/*
 * Copies the first bytes of all live keys, in few system calls. An object at the end of its mapping
 * can be shorter than the key: it does not match, and its copy stays zero.
 */
static void read_keys(struct ts_python_process_view *view, const struct pair *pairs, uint32_t count,
		      uint8_t (*copies)[128 + KEY_BYTES], uint32_t bytes)
{
	struct ts_python_memory_range ranges[AT_ONCE];
	uint32_t used = 0;

	for (uint32_t i = 0; i < count; i++) {
		memset(copies[i], 0, bytes);
		if (pairs[i].value && ts_python_is_address(pairs[i].key))
			ranges[used++] =
				(struct ts_python_memory_range){ pairs[i].key, copies[i], bytes };
	}
	for (uint32_t done = 0; done < used; done++) {
		int complete =
			ts_python_memory_read_ranges(view->memory, ranges + done, used - done);

		if (complete < 0)
			complete = 0;
		done += (uint32_t)complete;
		if (done < used)
			memset(ranges[done].copy, 0, bytes);
	}
}

/* Whether a key of the table is wanted and not found yet. */
static bool take_if_wanted(const struct ts_python_layout *layout, const uint8_t *copy,
			   uint64_t value, struct ts_python_wanted *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!wanted[i].value &&
		    is_key(layout, copy, wanted[i].key, strlen(wanted[i].key))) {
			wanted[i].value = value;
			return true;
		}
	return false;
}

static size_t longest(const struct ts_python_wanted *wanted, size_t count)
{
	size_t longest = 0;

	for (size_t i = 0; i < count; i++)
		longest = strlen(wanted[i].key) > longest ? strlen(wanted[i].key) : longest;
	return longest;
}

static void find_in_table(struct ts_python_process_view *view, const struct table *table,
			  struct ts_python_wanted *wanted, size_t wanted_count)
{
	const struct ts_python_layout *layout = view->layout;
	uint8_t copies[AT_ONCE][128 + KEY_BYTES];
	struct pair pairs[AT_ONCE];
	size_t length = longest(wanted, wanted_count), missing = wanted_count;
	uint32_t count;

	if (length > KEY_BYTES || layout->unicode.ascii_bytes > 128 ||
	    layout->unicode.state > 120 || layout->unicode.length > 120)
		return;
	for (uint32_t first = 0; first < table->count && first < MAX_SEARCHED; first += count) {
		count = read_pairs(view, table, first, pairs);
		if (!count)
			return;
		read_keys(view, pairs, count, copies,
			  layout->unicode.ascii_bytes + (uint32_t)length);
		for (uint32_t i = 0; i < count; i++)
			if (pairs[i].value &&
			    take_if_wanted(layout, copies[i], pairs[i].value, wanted,
					   wanted_count) &&
			    !--missing)
				return;
	}
}

/* ---- dicts ---- */

static bool is_dict(struct ts_python_process_view *view, uint64_t object)
{
	struct ts_python_type type;

	return ts_python_type_of(view, object, &type) && type.flags & TS_PYTHON_TYPE_DICT;
}

static bool read_dict(struct ts_python_process_view *view, uint64_t dict, uint64_t *ret_used,
		      uint64_t *ret_keys, uint64_t *ret_values)
{
	const struct ts_python_layout *layout = view->layout;
	const struct ts_python_memory_range ranges[] = {
		{ dict + layout->dict.used, ret_used, 8 },
		{ dict + layout->dict.keys, ret_keys, 8 },
		{ dict + layout->dict.values, ret_values, 8 },
	};

	return ts_python_memory_read_ranges(view->memory, ranges, 3) == 3;
}

static bool open_dict(struct ts_python_process_view *view, uint64_t dict, struct table *ret_table,
		      uint64_t *ret_used, uint64_t *ret_keys)
{
	uint64_t values;

	if (!is_dict(view, dict) || !read_dict(view, dict, ret_used, ret_keys, &values))
		return false;
	if (values)
		values = first_value(view->layout, values);
	return open_table(view, *ret_keys, values, ret_table);
}

int64_t ts_python_dict_size(struct ts_python_process_view *view, uint64_t dict)
{
	uint64_t used, keys, values;

	if (!is_dict(view, dict) || !read_dict(view, dict, &used, &keys, &values) ||
	    used > INT64_MAX)
		return -1;
	return (int64_t)used;
}

bool ts_python_dict_each(struct ts_python_process_view *view, uint64_t dict, size_t limit,
			 bool (*pair)(void *context, uint64_t key, uint64_t value), void *context)
{
	struct table table;
	uint64_t used, keys, used_now, keys_now, values;

	if (!open_dict(view, dict, &table, &used, &keys))
		return false;
	if (!each_pair(view, &table, limit, pair, context))
		return false;
	return read_dict(view, dict, &used_now, &keys_now, &values) && used_now == used &&
	       keys_now == keys;
}

static void find_in_dict(struct ts_python_process_view *view, uint64_t dict,
			 struct ts_python_wanted *wanted, size_t count)
{
	struct table table;
	uint64_t used, keys;

	if (open_dict(view, dict, &table, &used, &keys))
		find_in_table(view, &table, wanted, count);
}

uint64_t ts_python_dict_find(struct ts_python_process_view *view, uint64_t dict, const char *key)
{
	struct ts_python_wanted wanted = { key, 0 };

	find_in_dict(view, dict, &wanted, 1);
	return wanted.value;
}

uint64_t ts_python_module_dict(struct ts_python_process_view *view, uint64_t module)
{
	uint64_t dict;

	/* md_dict has always been the first member of a module. */
	if (!ts_python_is_address(module) ||
	    !ts_python_memory_read_pointer(view->memory, module + view->layout->object.bytes,
					   &dict))
		return 0;
	return is_dict(view, dict) ? dict : 0;
}

/* ---- attributes ---- */

/* ht_cached_keys of a class: the keys shared by its instances. */
static uint16_t cached_keys(const struct ts_python_layout *layout)
{
	/* With a 16-byte object header, 3.8 on. */
	static const uint16_t offsets[] = { 872, 864, 872, 872, 880, 880, 880, 888 };
	unsigned int i = layout->minor - TS_PYTHON_OLDEST_MINOR;

	if (layout->type.cached_keys && ts_python_has(layout->type.cached_keys))
		return layout->type.cached_keys;
	if (layout->minor < TS_PYTHON_OLDEST_MINOR || i >= sizeof(offsets) / sizeof(*offsets))
		return 0;
	return (uint16_t)(offsets[i] + layout->object.bytes - 16);
}

/* Values of an instance with the keys of its class. */
static void find_in_values(struct ts_python_process_view *view, uint64_t type, uint64_t values,
			   struct ts_python_wanted *wanted, size_t count)
{
	uint16_t offset = cached_keys(view->layout);
	uint64_t keys;
	struct table table;

	if (offset && ts_python_memory_read_pointer(view->memory, type + offset, &keys) &&
	    open_table(view, keys, values, &table))
		find_in_table(view, &table, wanted, count);
}

static void find_in_dict_at(struct ts_python_process_view *view, uint64_t address,
			    struct ts_python_wanted *wanted, size_t count)
{
	uint64_t dict;

	if (ts_python_memory_read_pointer(view->memory, address, &dict) && dict)
		find_in_dict(view, dict, wanted, count);
}

/*
 * 3.13 on: values follow the object until its __dict__ is replaced or outgrows the class's keys.
 * Address of the first one; 0: none.
 */
static uint64_t inline_values(struct ts_python_process_view *view, uint64_t object,
			      const struct ts_python_type *type)
{
	uint64_t size;
	uint8_t state[4]; /* capacity, size, embedded, valid */

	if (!(type->flags & TS_PYTHON_TYPE_INLINE_VALUES) ||
	    !ts_python_memory_read_pointer(view->memory,
					   type->address + view->layout->type.basic_size, &size) ||
	    size > 1 << 20 ||
	    !ts_python_memory_read(view->memory, object + size, state, sizeof(state)) || !state[3])
		return 0;
	return first_value(view->layout, object + size);
}

/* 3.12 has one word for dict or values, odd for values; 3.11 has two. */
static uint64_t values_ahead(struct ts_python_process_view *view, uint64_t object)
{
	bool has_one = view->layout->minor == 12;
	uint64_t values;

	if (!ts_python_memory_read_pointer(view->memory, object - (has_one ? 24 : 32), &values))
		return 0;
	if (has_one)
		return values & 1 ? values + 1 : 0;
	return values;
}

/* 3.11 on: the dict, or the values alone, before or after the object. */
static void find_managed(struct ts_python_process_view *view, uint64_t object,
			 const struct ts_python_type *type, struct ts_python_wanted *wanted,
			 size_t count)
{
	uint64_t values = view->layout->minor >= 13 ? inline_values(view, object, type)
						    : values_ahead(view, object);

	if (values)
		find_in_values(view, type->address, values, wanted, count);
	else
		find_in_dict_at(view, object - (view->layout->is_free_threaded ? 8 : 24), wanted,
				count);
}

void ts_python_attributes(struct ts_python_process_view *view, uint64_t object,
			  struct ts_python_wanted *wanted, size_t count)
{
	struct ts_python_type type;
	uint64_t offset;

	if (!ts_python_type_of(view, object, &type))
		return;
	if (view->layout->minor >= 11 && type.flags & TS_PYTHON_TYPE_MANAGED_DICT) {
		find_managed(view, object, &type, wanted, count);
		return;
	}
	/* A negative offset counts from the end of variable-size objects. */
	if (ts_python_memory_read_pointer(view->memory,
					  type.address + view->layout->type.dictionary, &offset) &&
	    offset && offset <= 1 << 20)
		find_in_dict_at(view, object + offset, wanted, count);
}

uint64_t ts_python_attribute(struct ts_python_process_view *view, uint64_t object, const char *name)
{
	struct ts_python_wanted wanted = { name, 0 };

	ts_python_attributes(view, object, &wanted, 1);
	return wanted.value;
}

/* ---- types ---- */

bool ts_python_name_of_type(struct ts_python_process_view *view, uint64_t type, char *buffer,
			    size_t bytes)
{
	uint64_t name;

	return ts_python_is_address(type) &&
	       ts_python_memory_read_pointer(view->memory, type + view->layout->type.name, &name) &&
	       ts_python_read_c_string(view, name, buffer, bytes) > 0;
}

bool ts_python_type_name(struct ts_python_process_view *view, uint64_t object, char *buffer,
			 size_t bytes)
{
	uint64_t type;

	return ts_python_is_address(object) &&
	       ts_python_memory_read_pointer(view->memory, object + view->layout->object.type,
					     &type) &&
	       ts_python_name_of_type(view, type, buffer, bytes);
}
