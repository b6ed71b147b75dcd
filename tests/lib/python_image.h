/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic memory of a Python process: a test puts objects into it, and our reader reads it
 * through the hook of struct ts_python_memory. Other addresses are unreadable.
 */
#ifndef TS_TESTS_LIB_PYTHON_IMAGE_H
#define TS_TESTS_LIB_PYTHON_IMAGE_H

#include <stdlib.h>
#include <string.h>

#include "python/local/python_objects_internal.h"

#define IMAGE_AT UINT64_C(0x7f0000000000)
#define IMAGE_BYTES 65536u

struct image {
	uint8_t bytes[IMAGE_BYTES];
	uint64_t used;
	struct ts_python_memory memory;
	struct ts_python_layout layout;
	struct ts_python_process_view view;
	/* Called before each read, if set: simulates changes of the process. */
	void (*meanwhile)(struct image *image, unsigned int reads);
	unsigned int reads;
};

static bool image_read(void *context, uint64_t address, void *copy, size_t bytes)
{
	struct image *image = context;

	image->reads++;
	if (image->meanwhile)
		image->meanwhile(image, image->reads);
	if (address < IMAGE_AT || address - IMAGE_AT > IMAGE_BYTES ||
	    bytes > IMAGE_BYTES - (address - IMAGE_AT))
		return false;
	memcpy(copy, image->bytes + (address - IMAGE_AT), bytes);
	return true;
}

/* Layout of a version; from 3.13 on the tables of 3.12 with later changes. */
static inline struct image *image_new(unsigned int minor)
{
	struct image *image = calloc(1, sizeof(*image));

	if (!image || !ts_python_layout_of_version(&image->layout, minor < 12 ? minor : 12, false))
		abort();
	image->layout.minor = (uint8_t)minor;
	if (minor > 12)
		image->layout.frames = TS_PYTHON_CURRENT_FRAME;
	image->layout.frame.locals_are_tagged = minor >= 14;
	image->memory.read = image_read;
	image->memory.context = image;
	image->view.memory = &image->memory;
	image->view.layout = &image->layout;
	image->used = 64;
	return image;
}

/* Zeroed memory. */
static inline uint64_t image_alloc(struct image *image, size_t bytes)
{
	uint64_t at = IMAGE_AT + image->used;

	image->used += (bytes + 15) & ~(size_t)15;
	if (image->used > IMAGE_BYTES)
		abort();
	return at;
}

static inline void image_put(struct image *image, uint64_t at, const void *data, size_t bytes)
{
	memcpy(image->bytes + (at - IMAGE_AT), data, bytes);
}

static inline void image_word(struct image *image, uint64_t at, uint64_t word)
{
	image_put(image, at, &word, sizeof(word));
}

static inline uint64_t image_c_string(struct image *image, const char *text)
{
	uint64_t at = image_alloc(image, strlen(text) + 1);

	image_put(image, at, text, strlen(text) + 1);
	return at;
}

static inline uint64_t image_type(struct image *image, const char *name, uint64_t flags)
{
	uint64_t type = image_alloc(image, 1024);

	image_word(image, type + image->layout.type.name, image_c_string(image, name));
	image_word(image, type + image->layout.type.flags, flags);
	image_word(image, type + image->layout.type.basic_size, 16);
	return type;
}

static inline uint64_t image_object(struct image *image, uint64_t type, size_t bytes)
{
	uint64_t object = image_alloc(image, bytes);

	image_word(image, object + image->layout.object.type, type);
	return object;
}

/* A str; `kind` 1, 2, 4 bytes per character; `state`: bits after the kind: 1 compact, 2 ASCII. */
static inline uint64_t image_text(struct image *image, const void *units, size_t count,
				  unsigned int kind, unsigned int state)
{
	const struct ts_python_layout *layout = &image->layout;
	uint64_t type = image_type(image, "str", TS_PYTHON_TYPE_TEXT);
	uint64_t object = image_object(image, type, 128 + count * kind);
	uint64_t data = object +
			(state & 2 ? layout->unicode.ascii_bytes : layout->unicode.compact_bytes);

	image_word(image, object + layout->unicode.length, count);
	image_word(image, object + layout->unicode.state,
		   (uint64_t)(kind | state << 3) << layout->unicode.kind_shift);
	if (!(state & 1)) {
		image_word(image, data, image_alloc(image, count * kind));
		data = ts_python_word(image->bytes, data - IMAGE_AT);
	}
	image_put(image, data, units, count * kind);
	return object;
}

static inline uint64_t image_ascii(struct image *image, const char *text)
{
	return image_text(image, text, strlen(text), 1, 3);
}

static inline uint64_t image_int(struct image *image, int64_t value)
{
	uint64_t type = image_type(image, "int", TS_PYTHON_TYPE_INTEGER);
	uint64_t object = image_object(image, type, 64);
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value, count = 0;

	for (; rest; rest >>= 30, count++) {
		uint32_t digit = rest & 0x3fffffff;

		image_put(image, object + image->layout.integer.digits + count * 4, &digit, 4);
	}
	if (image->layout.integer.size_shift)
		count = count << 3 | (value < 0 ? 2 : !value);
	else if (value < 0)
		count = -count;
	image_word(image, object + image->layout.integer.size, count);
	return object;
}

/* A dict's keys of 2^log2 slots with these pairs, `kind` as in dk_kind (before 3.11: general). */
static inline uint64_t image_keys(struct image *image, const uint64_t (*pairs)[2], size_t count,
				  unsigned int log2, unsigned int kind)
{
	const struct ts_python_layout *layout = &image->layout;
	bool is_general = !layout->dict.keys_size_is_log2 || !kind;
	size_t index_bytes = (size_t)1 << log2, entry = is_general ? 24 : 16;
	uint64_t keys =
		image_alloc(image, layout->dict.keys_indices + index_bytes + (count + 1) * entry);
	uint64_t at = keys + layout->dict.keys_indices + index_bytes;

	if (layout->dict.keys_size_is_log2) {
		uint8_t head[3] = { (uint8_t)log2, (uint8_t)log2, (uint8_t)kind };

		image_put(image, keys + layout->dict.keys_size, head, sizeof(head));
	} else {
		image_word(image, keys + layout->dict.keys_size, UINT64_C(1) << log2);
	}
	image_word(image, keys + layout->dict.keys_count, count);
	for (size_t i = 0; i < count; i++) {
		image_word(image, at + i * entry + (is_general ? 8 : 0), pairs[i][0]);
		image_word(image, at + i * entry + (is_general ? 16 : 8), pairs[i][1]);
	}
	return keys;
}

static inline uint64_t image_dict(struct image *image, uint64_t keys, uint64_t values,
				  uint64_t used)
{
	uint64_t dict = image_object(image, image_type(image, "dict", TS_PYTHON_TYPE_DICT), 64);

	image_word(image, dict + image->layout.dict.used, used);
	image_word(image, dict + image->layout.dict.keys, keys);
	image_word(image, dict + image->layout.dict.values, values);
	return dict;
}

static inline uint64_t image_tuple(struct image *image, const uint64_t *items, size_t count)
{
	uint64_t type = image_type(image, "tuple", TS_PYTHON_TYPE_TUPLE);
	uint64_t object = image_object(image, type, 64 + count * 8);

	image_word(image, object + image->layout.object.var_size, count);
	image_put(image, object + image->layout.tuple.items, items, count * 8);
	return object;
}

static inline uint64_t image_bytes(struct image *image, const void *data, size_t count)
{
	uint64_t type = image_type(image, "bytes", TS_PYTHON_TYPE_BYTES);
	uint64_t object = image_object(image, type, 64 + count);

	image_word(image, object + image->layout.object.var_size, count);
	image_put(image, object + image->layout.bytes.bytes, data, count);
	return object;
}

#endif
