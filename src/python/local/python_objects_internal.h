/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a Python process: what the files of src/python that read them share. */
#ifndef TS_PYTHON_LOCAL_PYTHON_OBJECTS_INTERNAL_H
#define TS_PYTHON_LOCAL_PYTHON_OBJECTS_INTERNAL_H

#include <string.h>

#include "python/local/python_objects.h"

/* Bits of tp_flags, the same in every version that has them. */
#define TS_PYTHON_TYPE_INLINE_VALUES (1u << 2) /* 3.13 on */
#define TS_PYTHON_TYPE_MANAGED_DICT (1u << 4)  /* 3.11 on */
#define TS_PYTHON_TYPE_HEAP (1u << 9)
#define TS_PYTHON_TYPE_INTEGER (1u << 24)
#define TS_PYTHON_TYPE_LIST (1u << 25)
#define TS_PYTHON_TYPE_TUPLE (1u << 26)
#define TS_PYTHON_TYPE_BYTES (1u << 27)
#define TS_PYTHON_TYPE_TEXT (1u << 28)
#define TS_PYTHON_TYPE_DICT (1u << 29)
#define TS_PYTHON_TYPE_EXCEPTION (1u << 30)
#define TS_PYTHON_TYPE_TYPE (1u << 31)

static inline bool ts_python_has(uint16_t offset)
{
	return offset != TS_PYTHON_NONE;
}

/* Whether this can be an object's address. */
static inline bool ts_python_is_address(uint64_t address)
{
	return address >= 4096 && address < UINT64_C(1) << 56 && !(address & 7);
}

/* From a copy. */
static inline uint64_t ts_python_word(const void *copy, size_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)copy + offset, sizeof(word));
	return word;
}

/* ---- python_objects.c ---- */

struct ts_python_type {
	uint64_t address;
	uint64_t flags; /* tp_flags */
};
bool ts_python_type_of(struct ts_python_process_view *view, uint64_t object,
		       struct ts_python_type *ret_type);
/* A NUL-terminated C string, truncated to fit. Its length, or -1. */
int ts_python_read_c_string(struct ts_python_process_view *view, uint64_t address, char *buffer,
			    size_t bytes);
/* Number of characters of a str, and UTF-8 of its first ones; like ts_python_read_text(). */
int ts_python_read_text_part(struct ts_python_process_view *view, uint64_t object, char *buffer,
			     size_t bytes, uint64_t *ret_characters);
/* ob_size, if it is between 0 and INT32_MAX; else -1. */
int64_t ts_python_var_size(struct ts_python_process_view *view, uint64_t object);
/* An int that fits; false: not an int, or too large. */
bool ts_python_read_unsigned(struct ts_python_process_view *view, uint64_t object,
			     uint64_t *ret_value);
/* An int's 30-bit digits, lowest first, at most `most`. Returns their total number, or -1. */
int64_t ts_python_read_digits(struct ts_python_process_view *view, uint64_t object,
			      uint32_t *digits, size_t most, bool *ret_negative);

/* ---- python_dict.c ---- */

/* A key to look up, and its value: 0 at first, and if it is missing. */
struct ts_python_wanted {
	const char *key;
	uint64_t value;
};
/* Like ts_python_attribute(), for several names at once. */
void ts_python_attributes(struct ts_python_process_view *view, uint64_t object,
			  struct ts_python_wanted *wanted, size_t count);

/* A module's dict; 0: unknown. */
uint64_t ts_python_module_dict(struct ts_python_process_view *view, uint64_t module);
/* tp_name of a type. */
bool ts_python_name_of_type(struct ts_python_process_view *view, uint64_t type, char *buffer,
			    size_t bytes);
/* Number of pairs of a dict, by its own count; -1: not a dict. */
int64_t ts_python_dict_size(struct ts_python_process_view *view, uint64_t dict);

/* ---- asyncio_tasks.c ---- */

/* __qualname__ of a generator, coroutine or asynchronous generator: its length, or -1. */
int ts_python_coroutine_name(struct ts_python_process_view *view, uint64_t coroutine, char *buffer,
			     size_t bytes);

#endif
