/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings, numbers, code objects, dictionaries and attributes in fake memory, including invalid
 * ones. tests/python/objects.sh checks real ones.
 */
#include <stdio.h>

#include "lib/python_image.h"
#include "unit/runner.h"

static const unsigned int minors[] = { 8, 9, 10, 11, 12, 13, 14, 15 };
#define EACH_IMAGE(image)                                                \
	for (size_t i_ = 0; i_ < sizeof(minors) / sizeof(*minors); i_++) \
		for (struct image *image = image_new(minors[i_]); image; free(image), image = NULL)

TS_TEST(texts)
{
	static const uint8_t latin[] = { 'a', 0xe9, 'b' };
	static const uint16_t two[] = { 0x20ac, 'x', 0xd800, 0x4e2d };
	static const uint32_t four[] = { 0x1f600, 0x7f, 0x110000, 0xdfff };
	char text[64];

	EACH_IMAGE(image)
	{
		struct ts_python_process_view *view = &image->view;

		TS_CHECK_INT(ts_python_read_text(view, image_ascii(image, "hello"), text, 64), 5);
		TS_CHECK_STR(text, "hello");
		TS_CHECK_INT(ts_python_read_text(view, image_ascii(image, ""), text, 64), 0);
		TS_CHECK_INT(ts_python_read_text(view, image_text(image, latin, 3, 1, 1), text, 64),
			     4);
		TS_CHECK_STR(text, "a\u00e9b");
		TS_CHECK_INT(ts_python_read_text(view, image_text(image, two, 4, 2, 1), text, 64),
			     10);
		TS_CHECK_STR(text, "\u20acx\ufffd\u4e2d");
		TS_CHECK_INT(ts_python_read_text(view, image_text(image, four, 4, 4, 1), text, 64),
			     11);
		TS_CHECK_STR(text, "\U0001f600\x7f\ufffd\ufffd");
		/* Not compact: as for subclasses of str. */
		TS_CHECK_INT(ts_python_read_text(view, image_text(image, two, 4, 2, 0), text, 64),
			     10);
		TS_CHECK_STR(text, "\u20acx\ufffd\u4e2d");
	}
}

TS_TEST(texts_are_cut_at_characters)
{
	static const uint16_t units[] = { 0x20ac, 0xe9, 'x' };
	struct image *image = image_new(12);
	uint64_t wide = image_text(image, units, 3, 2, 1), plain = image_ascii(image, "abcdef");
	char text[16];

	TS_CHECK_INT(ts_python_read_text(&image->view, plain, text, 4), 3);
	TS_CHECK_STR(text, "abc");
	TS_CHECK_INT(ts_python_read_text(&image->view, plain, text, 1), 0);
	TS_CHECK_INT(ts_python_read_text(&image->view, plain, text, 0), -1);
	TS_CHECK_INT(ts_python_read_text(&image->view, wide, text, 3), 0);
	TS_CHECK_STR(text, "");
	TS_CHECK_INT(ts_python_read_text(&image->view, wide, text, 5), 3);
	TS_CHECK_STR(text, "\u20ac");
	TS_CHECK_INT(ts_python_read_text(&image->view, wide, text, 6), 5);
	TS_CHECK_INT(ts_python_read_text(&image->view, wide, text, 7), 6);
	free(image);
}

TS_TEST(wide_texts_of_old_versions)
{
	static const uint32_t units[] = { 'a', 0x1f600 };
	char text[16];

	EACH_IMAGE(image)
	{
		uint64_t object = image_text(image, units, 2, 4, 0);
		uint64_t data = image_alloc(image, sizeof(units));

		/* Not ready: kind 0, and the characters at wstr. */
		image_put(image, data, units, sizeof(units));
		image_word(image, object + image->layout.unicode.state, 0);
		image_word(image, object + image->layout.unicode.length, 0);
		image_word(image, object + image->layout.unicode.ascii_bytes - 8, data);
		image_word(image, object + image->layout.unicode.compact_bytes - 8, 2);
		if (image->layout.minor > 11) {
			TS_CHECK_INT(ts_python_read_text(&image->view, object, text, 16), -1);
			continue;
		}
		TS_CHECK_INT(ts_python_read_text(&image->view, object, text, 16), 5);
		TS_CHECK_STR(text, "a\U0001f600");
	}
}

TS_TEST(no_texts)
{
	struct image *image = image_new(12);
	uint64_t object = image_ascii(image, "text");
	char text[16];

	TS_CHECK_INT(ts_python_read_text(&image->view, 0, text, 16), -1);
	TS_CHECK_INT(ts_python_read_text(&image->view, 17, text, 16), -1);
	TS_CHECK_INT(ts_python_read_text(&image->view, object + 1, text, 16), -1);
	TS_CHECK_INT(ts_python_read_text(&image->view, UINT64_MAX - 7, text, 16), -1);
	TS_CHECK_INT(ts_python_read_text(&image->view, image_int(image, 5), text, 16), -1);
	image_word(image, object + image->layout.unicode.length, UINT64_MAX);
	TS_CHECK_INT(ts_python_read_text(&image->view, object, text, 16), -1);
	/* Longer than the memory: the requested part is there. */
	image_word(image, object + image->layout.unicode.length, 1 << 30);
	TS_CHECK_INT(ts_python_read_text(&image->view, object, text, 5), 4);
	TS_CHECK_STR(text, "text");
	/* Changed meanwhile: no longer ASCII. */
	image_put(image, object + image->layout.unicode.ascii_bytes, "\xff", 1);
	TS_CHECK_INT(ts_python_read_text(&image->view, object, text, 5), 4);
	TS_CHECK_STR(text, "?ext");
	free(image);
}

TS_TEST(numbers)
{
	uint64_t value;

	EACH_IMAGE(image)
	{
		TS_CHECK(ts_python_read_unsigned(&image->view, image_int(image, 0), &value));
		TS_CHECK_INT(value, 0);
		TS_CHECK(ts_python_read_unsigned(&image->view, image_int(image, 140000000000000),
						 &value));
		TS_CHECK_INT(value, 140000000000000);
		TS_CHECK(
			ts_python_read_unsigned(&image->view, image_int(image, INT64_MAX), &value));
		TS_CHECK_INT(value, INT64_MAX);
		TS_CHECK(!ts_python_read_unsigned(&image->view, image_int(image, -1), &value));
		TS_CHECK(!ts_python_read_unsigned(&image->view, image_ascii(image, "1"), &value));
	}
}

/* ---- code objects ---- */

static uint64_t make_code(struct image *image, uint64_t type)
{
	const struct ts_python_layout *layout = &image->layout;
	uint64_t code = image_object(image, type, 512);
	static const uint8_t table[20] = { 4, 1, 0xe8, 2 };
	static const int32_t first_line = 30;

	image_word(image, code + layout->code.name, image_ascii(image, "name"));
	if (layout->code.qualified_name != TS_PYTHON_NONE)
		image_word(image, code + layout->code.qualified_name,
			   image_ascii(image, "Class.name"));
	image_word(image, code + layout->code.file, image_ascii(image, "/a/file.py"));
	image_word(image, code + layout->code.line_table, image_bytes(image, table, 4));
	image_put(image, code + layout->code.first_line, &first_line, 4);
	if (layout->frames == TS_PYTHON_FRAME_OBJECTS)
		image_word(image, code + layout->code.instructions, image_bytes(image, table, 20));
	else
		image_word(image, code + layout->object.var_size, 10);
	return code;
}

TS_TEST(codes)
{
	struct ts_python_code_identity identity;
	struct ts_python_code_text text;
	uint8_t table[8];

	EACH_IMAGE(image)
	{
		uint64_t type = image_type(image, "code", 0), code = make_code(image, type);
		const uint8_t *copy = image->bytes + (code - IMAGE_AT);
		bool has_bytes = image->layout.frames == TS_PYTHON_FRAME_OBJECTS;

		TS_CHECK(!ts_python_code_identify(&image->layout, code, type + 8, copy, &identity));
		TS_CHECK(!ts_python_code_identify(&image->layout, code + 4, 0, copy, &identity));
		TS_CHECK(ts_python_code_identify(&image->layout, code, type, copy, &identity));
		TS_CHECK_INT(identity.first_line, 30);
		TS_CHECK(ts_python_code_read(&image->view, &identity, &text, table, 8));
		TS_CHECK_STR(text.name, image->layout.minor < 11 ? "name" : "Class.name");
		TS_CHECK_STR(text.file, "/a/file.py");
		TS_CHECK_INT(text.table_bytes, 4);
		TS_CHECK_MEM(table, "\x04\x01\xe8\x02", 4);
		TS_CHECK_INT(text.instruction_bytes, 20);
		TS_CHECK_INT(text.instructions == code + image->layout.code.instructions,
			     !has_bytes);
		TS_CHECK(ts_python_code_read(&image->view, &identity, &text, table, 3));
		TS_CHECK_INT(text.table_bytes, 3);
		TS_CHECK(ts_python_code_read(&image->view, &identity, &text, NULL, 0));
		TS_CHECK_INT(text.table_bytes, 0);
		identity.file = code;
		TS_CHECK(!ts_python_code_read(&image->view, &identity, &text, NULL, 0));
		image_word(image, code + image->layout.code.file, 3);
		TS_CHECK(!ts_python_code_identify(&image->layout, code, type, copy, &identity));
	}
}

/* ---- dicts ---- */

struct pairs {
	uint64_t list[64][2];
	size_t count, stop_after;
};

static bool take(void *context, uint64_t key, uint64_t value)
{
	struct pairs *pairs = context;

	TS_CHECK(pairs->count < 64);
	pairs->list[pairs->count][0] = key;
	pairs->list[pairs->count++][1] = value;
	return pairs->count != pairs->stop_after;
}

static void make_pairs(struct image *image, uint64_t (*pairs)[2])
{
	static const char *const names[] = { "first", "second", "third", "fourth" };

	for (int i = 0; i < 4; i++) {
		pairs[i][0] = image_ascii(image, names[i]);
		pairs[i][1] = image_int(image, i);
	}
}

TS_TEST(dicts)
{
	EACH_IMAGE(image)
	{
		for (unsigned int kind = 0; kind < 2; kind++) {
			uint64_t pairs[4][2], dict;
			struct pairs found = { .count = 0 };

			make_pairs(image, pairs);
			pairs[1][1] = 0; /* deleted */
			dict = image_dict(image, image_keys(image, pairs, 4, 3, kind), 0, 3);
			TS_CHECK(ts_python_dict_each(&image->view, dict, 100, take, &found));
			TS_CHECK_INT(found.count, 3);
			TS_CHECK_INT(found.list[1][0], pairs[2][0]);
			TS_CHECK_INT(found.list[1][1], pairs[2][1]);
			TS_CHECK_INT(ts_python_dict_find(&image->view, dict, "fourth"),
				     pairs[3][1]);
			TS_CHECK_INT(ts_python_dict_find(&image->view, dict, "second"), 0);
			TS_CHECK_INT(ts_python_dict_find(&image->view, dict, "four"), 0);
			TS_CHECK_INT(ts_python_dict_size(&image->view, dict), 3);
			found = (struct pairs){ .stop_after = 2 };
			TS_CHECK(ts_python_dict_each(&image->view, dict, 100, take, &found));
			TS_CHECK_INT(found.count, 2);
			found = (struct pairs){ .count = 0 };
			TS_CHECK(ts_python_dict_each(&image->view, dict, 1, take, &found));
			TS_CHECK_INT(found.count, 1);
		}
	}
}

/* A split-table dict: values that are not set are zero. */
TS_TEST(split_dicts)
{
	EACH_IMAGE(image)
	{
		uint64_t pairs[4][2], dict, values, first;
		struct pairs found = { .count = 0 };

		make_pairs(image, pairs);
		values = image_alloc(image, 64);
		first = values + (image->layout.minor >= 13 ? 8 : 0);
		image_word(image, first + 8, pairs[0][1]);
		image_word(image, first + 24, pairs[3][1]);
		pairs[0][1] = pairs[3][1] = 0; /* ignored here */
		dict = image_dict(image, image_keys(image, pairs, 4, 3, 2), values, 2);
		TS_CHECK(ts_python_dict_each(&image->view, dict, 100, take, &found));
		TS_CHECK_INT(found.count, 2);
		TS_CHECK_INT(found.list[0][0], pairs[1][0]);
		TS_CHECK_INT(found.list[1][0], pairs[3][0]);
		TS_CHECK_INT(ts_python_dict_find(&image->view, dict, "second"), found.list[0][1]);
		TS_CHECK_INT(ts_python_dict_find(&image->view, dict, "first"), 0);
	}
}

static uint64_t changing; /* address of a word that changes with every read */

static void grow(struct image *image, unsigned int reads)
{
	image_word(image, changing, reads);
}

TS_TEST(dicts_that_change)
{
	struct image *image = image_new(12);
	uint64_t pairs[4][2], dict;
	struct pairs found = { .count = 0 };

	make_pairs(image, pairs);
	dict = image_dict(image, image_keys(image, pairs, 4, 3, 0), 0, 4);
	changing = dict + image->layout.dict.used;
	image->meanwhile = grow;
	TS_CHECK(!ts_python_dict_each(&image->view, dict, 100, take, &found));
	free(image);
}

TS_TEST(no_dicts)
{
	EACH_IMAGE(image)
	{
		uint64_t pairs[4][2], dict, keys;
		struct pairs found = { .count = 0 };

		make_pairs(image, pairs);
		keys = image_keys(image, pairs, 4, 3, 0);
		dict = image_dict(image, keys, 0, 4);
		TS_CHECK(!ts_python_dict_each(&image->view, keys, 100, take, &found));
		TS_CHECK(!ts_python_dict_each(&image->view, pairs[0][0], 100, take, &found));
		TS_CHECK(!ts_python_dict_each(&image->view, 0, 100, take, &found));
		/* More entries than slots, and slots outside all memory. */
		image_word(image, keys + image->layout.dict.keys_count, 9);
		TS_CHECK(!ts_python_dict_each(&image->view, dict, 100, take, &found));
		image_word(image, keys + image->layout.dict.keys_count, UINT64_MAX);
		image_word(image, keys + image->layout.dict.keys_size, UINT64_MAX);
		TS_CHECK(!ts_python_dict_each(&image->view, dict, 100, take, &found));
		TS_CHECK_INT(ts_python_dict_find(&image->view, dict, "first"), 0);
		TS_CHECK_INT(found.count, 0);
		/* A key longer than any that is searched for. */
		TS_CHECK_INT(ts_python_dict_find(&image->view, dict,
						 "0123456789012345678901234567890123456789"
						 "0123456789012345678901234567890123456789"),
			     0);
	}
}

/* ---- attributes ---- */

TS_TEST(attributes_in_a_dict)
{
	EACH_IMAGE(image)
	{
		uint64_t pairs[4][2], dict, type, object;

		make_pairs(image, pairs);
		dict = image_dict(image, image_keys(image, pairs, 4, 3, 0), 0, 4);
		type = image_type(image, "Class", TS_PYTHON_TYPE_HEAP);
		image_word(image, type + image->layout.type.dictionary, 24);
		object = image_object(image, type, 64);
		image_word(image, object + 24, dict);
		TS_CHECK_INT(ts_python_attribute(&image->view, object, "third"), pairs[2][1]);
		TS_CHECK_INT(ts_python_attribute(&image->view, object, "fifth"), 0);
		image_word(image, type + image->layout.type.dictionary, (uint64_t)-16);
		TS_CHECK_INT(ts_python_attribute(&image->view, object, "third"), 0);
	}
}

/* Inline values of a version without a dict: before the object, or after it. */
static void put_values(struct image *image, uint64_t object, uint64_t values)
{
	if (image->layout.minor == 11)
		image_word(image, object - 32, values);
	else if (image->layout.minor == 12)
		image_word(image, object - 24, values - 1);
	else
		image_put(image, object + 16, image->bytes + (values - IMAGE_AT), 64);
}

TS_TEST(attributes_without_a_dict)
{
	EACH_IMAGE(image)
	{
		uint64_t pairs[4][2], type, object, values, keys;
		uint32_t flags = TS_PYTHON_TYPE_HEAP | TS_PYTHON_TYPE_MANAGED_DICT;
		uint8_t state[4] = { 4, 2, 1, 1 };
		static const uint16_t cached_keys[] = { 872, 880, 880, 880, 888 };

		if (image->layout.minor < 11)
			continue;
		make_pairs(image, pairs);
		if (image->layout.minor >= 13)
			flags |= TS_PYTHON_TYPE_INLINE_VALUES;
		keys = image_keys(image, pairs, 4, 3, 2);
		type = image_type(image, "Class", flags);
		image_word(image, type + cached_keys[image->layout.minor - 11], keys);
		values = image_alloc(image, 64);
		image_put(image, values, state, 4);
		image_word(image, values + (image->layout.minor >= 13 ? 8 : 0), pairs[0][1]);
		image_alloc(image, 64); /* before the object */
		object = image_object(image, type, 128);
		put_values(image, object, values);
		TS_CHECK_INT(ts_python_attribute(&image->view, object, "first"), pairs[0][1]);
		if (image->layout.minor < 13)
			continue;
		/* No longer valid: the dict before the object has them. */
		state[3] = 0;
		image_put(image, object + 16, state, 4);
		TS_CHECK_INT(ts_python_attribute(&image->view, object, "first"), 0);
		image_word(image, object - 24,
			   image_dict(image, image_keys(image, pairs, 4, 3, 0), 0, 4));
		TS_CHECK_INT(ts_python_attribute(&image->view, object, "second"), pairs[1][1]);
	}
}

/* ---- threads ---- */

struct thread {
	uint64_t thread_id, native_id;
	char name[32];
	bool is_main;
	int count;
};

static void take_thread(void *context, uint64_t thread_id, const char *name, bool is_main,
			uint64_t native_id)
{
	struct thread *thread = context;

	thread->thread_id = thread_id;
	thread->native_id = native_id;
	thread->is_main = is_main;
	thread->count++;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
}

static uint64_t dict_of(struct image *image, const char *key, uint64_t value)
{
	uint64_t pairs[1][2] = { { image_ascii(image, key), value } };

	return image_dict(image, image_keys(image, pairs, 1, 3, 0), 0, 1);
}

TS_TEST(names_of_threads)
{
	EACH_IMAGE(image)
	{
		struct thread thread = { .count = 0 };
		uint64_t names[2][2] = {
			{ image_ascii(image, "_name"), image_ascii(image, "MainThread") },
			{ image_ascii(image, "_native_id"), image_int(image, 4711) },
		};
		uint64_t type = image_type(image, "_MainThread", TS_PYTHON_TYPE_HEAP);
		uint64_t object = image_object(image, type, 64), module, modules;
		uint64_t active[3][2] = { { image_int(image, 140123456789), object },
					  { image_ascii(image, "no number"), object },
					  { image_int(image, 7), image_int(image, 8) } };

		image_word(image, type + image->layout.type.dictionary, 24);
		image_word(image, object + 24,
			   image_dict(image, image_keys(image, names, 2, 3, 0), 0, 2));
		module = image_object(image, image_type(image, "module", 0), 64);
		image_word(image, module + image->layout.object.bytes,
			   dict_of(image, "_active",
				   image_dict(image, image_keys(image, active, 3, 3, 0), 0, 3)));
		modules = dict_of(image, "threading", module);
		for (int i = 1; i < 3; i++) {
			TS_CHECK(ts_python_thread_names(&image->view, modules, take_thread,
							&thread));
			TS_CHECK_INT(thread.count, i);
			TS_CHECK_INT(thread.thread_id, 140123456789);
			TS_CHECK_INT(thread.native_id, 4711);
			TS_CHECK_STR(thread.name, "MainThread");
			TS_CHECK(thread.is_main);
		}
		TS_CHECK(!ts_python_thread_names(&image->view, module, take_thread, &thread));
	}
}
