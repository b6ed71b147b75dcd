/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortened values, local variables and tasks in fake memory: what real programs seldom have when
 * they are sampled. tests/python/objects.sh checks values of real ones.
 */
#include <stdio.h>

#include "base/text.h"
#include "lib/python_image.h"
#include "unit/runner.h"

static const unsigned int minors[] = { 8, 9, 10, 11, 12, 13, 14, 15 };
#define EACH_IMAGE(image)                                                \
	for (size_t i_ = 0; i_ < sizeof(minors) / sizeof(*minors); i_++) \
		for (struct image *image = image_new(minors[i_]); image; free(image), image = NULL)

static void check_repr(struct image *image, uint64_t object, size_t limit, const char *expected)
{
	struct ts_text text = { 0 };

	ts_text_append_str(&text, "> ");
	TS_CHECK_INT(ts_python_repr(&image->view, object, limit, &text), TS_OK);
	TS_CHECK_STR(ts_text_cstr(&text) + 2, expected);
	ts_text_release(&text);
}

static uint64_t list_of(struct image *image, const uint64_t *items, size_t count)
{
	uint64_t list = image_object(image, image_type(image, "list", TS_PYTHON_TYPE_LIST), 64);
	uint64_t data = image_alloc(image, count * 8);

	image_put(image, data, items, count * 8);
	image_word(image, list + image->layout.object.var_size, count);
	image_word(image, list + image->layout.list.items, data);
	return list;
}

TS_TEST(values)
{
	EACH_IMAGE(image)
	{
		uint64_t items[] = { image_int(image, 1), image_ascii(image, "it's"),
				     image_bytes(image, "\x01z\xff", 3), IMAGE_AT + 3 };

		check_repr(image, items[0], 100, "1");
		check_repr(image, image_int(image, INT64_MIN + 1), 100, "-9223372036854775807");
		check_repr(image, items[1], 100, "\"it's\"");
		check_repr(image, items[2], 100, "b'\\x01z\\xff'");
		check_repr(image, image_tuple(image, items, 1), 100, "(1,)");
		/* An item that is not an object. */
		check_repr(image, image_tuple(image, items, 4), 100,
			   "(1, \"it's\", b'\\x01z\\xff', ?)");
		check_repr(image, list_of(image, items, 2), 100, "[1, \"it's\"]");
		check_repr(image, 0, 100, "?");
		check_repr(image, 8, 100, "?");
		check_repr(image, UINT64_C(0x7fffffff0000), 100, "?");
	}
}

TS_TEST(values_within_limits)
{
	static const uint16_t units[] = { 0x20ac, 0x20ac, 0x20ac };
	struct image *image = image_new(12);
	uint64_t items[] = { image_int(image, 123), image_int(image, 456), image_int(image, 789) };
	uint64_t list = list_of(image, items, 3), text = image_text(image, units, 3, 2, 1);

	check_repr(image, list, 100, "[123, 456, 789]");
	check_repr(image, list, 11, "[123, 45...");
	check_repr(image, list, 3, "...");
	check_repr(image, list, 2, "");
	check_repr(image, list, 0, "");
	check_repr(image, text, 10, "'\u20ac\u20ac...");
	/* Room for two and a half characters: the half is not shown. */
	check_repr(image, text, 9, "'\u20ac...");
	free(image);
}

TS_TEST(values_that_contain_themselves)
{
	struct image *image = image_new(13);
	uint64_t item = image_int(image, 1);
	uint64_t list = list_of(image, &item, 1), pairs[1][2], dict, keys;

	image_word(image, ts_python_word(image->bytes, list + image->layout.list.items - IMAGE_AT),
		   list);
	check_repr(image, list, 100, "[[[...]]]");
	pairs[0][0] = image_ascii(image, "me");
	pairs[0][1] = 8;
	keys = image_keys(image, pairs, 1, 3, 1);
	dict = image_dict(image, keys, 0, 1);
	image_word(image, keys + image->layout.dict.keys_indices + 8 + 8, dict);
	check_repr(image, dict, 100, "{'me': {'me': {...}}}");
	/* A class whose base is itself. */
	item = image_type(image, "Loop", TS_PYTHON_TYPE_HEAP);
	image_word(image, item + image->layout.type.base, item);
	item = image_object(image, item, 64);
	{
		char expected[64];

		snprintf(expected, sizeof(expected), "<Loop object at 0x%llx>",
			 (unsigned long long)item);
		check_repr(image, item, 100, expected);
	}
	free(image);
}

TS_TEST(lengths_that_cannot_be)
{
	EACH_IMAGE(image)
	{
		uint64_t item = image_int(image, 1), list = list_of(image, &item, 1);
		uint64_t bytes = image_bytes(image, "a", 1);
		uint64_t set = image_object(image, image_type(image, "set", 0), 96);

		image_word(image, list + image->layout.object.var_size, UINT64_MAX);
		check_repr(image, list, 100, "[?]");
		/* The largest count, without memory that holds the items. */
		image_word(image, list + image->layout.object.var_size, INT32_MAX);
		image_word(image, list + image->layout.list.items, 4096);
		check_repr(image, list, 100, "[... 2147483647 items]");
		image_word(image, bytes + image->layout.object.var_size, UINT64_MAX);
		check_repr(image, bytes, 100, "?");
		image_word(image, set + image->layout.object.bytes + 8, 9);
		image_word(image, set + image->layout.object.bytes + 16, 7);
		check_repr(image, set, 100, "{?}");
		image_word(image, set + image->layout.object.bytes + 16, UINT64_MAX);
		check_repr(image, set, 100, "{... 9 items}");
	}
}

/* ---- tensors ---- */

/* Like torch: a subclass of the library's class, and an implementation that points back. */
static uint64_t make_tensor(struct image *image, const uint64_t *sizes, size_t count,
			    uint64_t elements)
{
	uint64_t base = image_type(image, "torch._C.TensorBase", 0);
	uint64_t type = image_type(image, "Tensor", TS_PYTHON_TYPE_HEAP);
	uint64_t object = image_object(image, type, 64);
	uint64_t tensor = image_alloc(image, 512), at = tensor + 56;
	static const uint8_t behind[5] = { 6, 0, 1, 3, 1 }; /* float32, cuda, 3, present */

	image_word(image, type + image->layout.type.base, base);
	image_word(image, object + image->layout.object.bytes + 8, tensor);
	image_word(image, at, object);
	image_word(image, at + 8, count);
	if (count <= 5)
		image_put(image, at + 16, sizes, count * 8);
	else
		image_word(image, at + 16, image_alloc(image, count * 8));
	if (count > 5)
		image_put(image, ts_python_word(image->bytes, at + 16 - IMAGE_AT), sizes,
			  count * 8);
	image_word(image, at + 104, elements);
	image_put(image, at + 112, behind, sizeof(behind));
	return object;
}

TS_TEST(tensors)
{
	static const uint64_t sizes[] = { 8, 128, 1, 1, 1, 2, 1, 1, 1 };

	EACH_IMAGE(image)
	{
		uint64_t broken = make_tensor(image, sizes, 2, 1023);
		char expected[64];

		check_repr(image, make_tensor(image, sizes, 2, 1024), 100,
			   "<Tensor (8, 128) float32 cuda:3>");
		check_repr(image, make_tensor(image, sizes, 1, 8), 100,
			   "<Tensor (8,) float32 cuda:3>");
		check_repr(image, make_tensor(image, sizes, 0, 1), 100,
			   "<Tensor () float32 cuda:3>");
		check_repr(image, make_tensor(image, sizes, 9, 2048), 100,
			   "<Tensor (8, 128, 1, 1, 1, 2, 1, 1, ...) float32 cuda:3>");
		snprintf(expected, sizeof(expected), "<Tensor object at 0x%llx>",
			 (unsigned long long)broken);
		check_repr(image, broken, 100, expected);
	}
}

/* ---- local variables ---- */

struct frame {
	uint64_t frame, code;
};

static uint64_t cell_of(struct image *image, uint64_t content)
{
	uint64_t cell = image_object(image, image_type(image, "cell", 0), 64);

	image_word(image, cell + image->layout.object.bytes, content);
	return cell;
}

/* A variable, one without value, an argument in a cell, one of an outer function, an empty cell. */
static struct frame make_frame(struct image *image)
{
	const struct ts_python_layout *layout = &image->layout;
	uint64_t names[] = { image_ascii(image, "plain"), image_ascii(image, "unset"),
			     image_ascii(image, "shared"), image_ascii(image, "outer"),
			     image_ascii(image, "empty") };
	uint64_t slots[] = { image_int(image, 5), 0, cell_of(image, image_ascii(image, "a\"b")),
			     cell_of(image, image_int(image, -7)), cell_of(image, 0) };
	struct frame frame = { image_alloc(image, 512), image_alloc(image, 512) };

	if (layout->frames == TS_PYTHON_FRAME_OBJECTS) {
		image_word(image, frame.code + layout->code.variable_names,
			   image_tuple(image, names, 2));
		image_word(image, frame.code + layout->code.cell_names,
			   image_tuple(image, names + 2, 1));
		image_word(image, frame.code + layout->code.free_names,
			   image_tuple(image, names + 3, 2));
	} else {
		image_word(image, frame.code + layout->code.local_names,
			   image_tuple(image, names, 5));
		image_word(image, frame.code + layout->code.local_kinds,
			   image_bytes(image, "\x20\x20\x60\x80\x80", 5));
	}
	image_put(image, frame.frame + layout->frame.locals, slots, sizeof(slots));
	return frame;
}

static void check_locals(struct image *image, const struct frame *frame, size_t limit,
			 const char *expected)
{
	struct ts_text text = { 0 };

	TS_CHECK_INT(ts_python_frame_locals(&image->view, frame->frame, frame->code, limit, &text),
		     TS_OK);
	TS_CHECK_STR(ts_text_cstr(&text), expected);
	TS_CHECK(text.length <= limit);
	ts_text_release(&text);
}

TS_TEST(locals)
{
	EACH_IMAGE(image)
	{
		struct frame frame = make_frame(image);

		check_locals(image, &frame, 1000,
			     "{\"plain\":\"5\",\"shared\":\"'a\\\"b'\",\"outer\":\"-7\"}");
		check_locals(image, &frame, 60,
			     "{\"plain\":\"5\",\"outer\":\"-7\",\"...\":\"1 more\"}");
		check_locals(image, &frame, 48, "{\"plain\":\"5\",\"...\":\"2 more\"}");
		/* The frame is gone: its slots hold garbage. */
		image_word(image, frame.frame + image->layout.frame.locals, 0x1234567890);
		check_locals(image, &frame, 1000,
			     "{\"plain\":\"?\",\"shared\":\"'a\\\"b'\",\"outer\":\"-7\"}");
		frame.code = 8;
		check_locals(image, &frame, 1000, "{}");
	}
}

TS_TEST(locals_with_tags)
{
	struct image *image = image_new(14);
	struct frame frame = make_frame(image);
	uint64_t slots = frame.frame + image->layout.frame.locals;

	image_word(image, slots + 8, ts_python_word(image->bytes, slots - IMAGE_AT) | 1);
	image_word(image, slots, (uint64_t)-3 << 2 | 3);
	image_word(image, slots + 16, 1); /* null, with a tag */
	check_locals(image, &frame, 1000, "{\"plain\":\"-3\",\"unset\":\"5\",\"outer\":\"-7\"}");
	free(image);
}

/* ---- tasks ---- */

static uint64_t dict_of(struct image *image, const char *key, uint64_t value)
{
	uint64_t pairs[1][2] = { { image_ascii(image, key), value } };

	return image_dict(image, image_keys(image, pairs, 1, 3, 0), 0, 1);
}

static uint64_t module_of(struct image *image, const char *key, uint64_t value)
{
	uint64_t module = image_object(image, image_type(image, "module", 0), 64);

	image_word(image, module + image->layout.object.bytes, dict_of(image, key, value));
	return module;
}

static uint64_t make_task(struct image *image, uint64_t type, uint64_t name)
{
	uint64_t task = image_object(image, type, 400);
	uint64_t coroutine = image_object(image, image_type(image, "coroutine", 0), 256);

	image_word(image, coroutine + 40, image_ascii(image, "fetch"));
	image_word(image, coroutine + 48, image_ascii(image, "Client.fetch"));
	image_word(image, task + 200, coroutine);
	image_word(image, task + 208, name);
	return task;
}

static uint64_t make_modules(struct image *image, uint64_t type, uint64_t task)
{
	uint64_t loop_type = image_type(image, "Loop", TS_PYTHON_TYPE_HEAP);
	uint64_t loop = image_object(image, loop_type, 64), pairs[1][2] = { { loop, task } };

	if (image->layout.minor >= 14)
		return dict_of(image, "_asyncio", module_of(image, "Task", type));
	image_word(image, loop_type + image->layout.type.dictionary, 24);
	image_word(image, loop + 24, dict_of(image, "_thread_id", image_int(image, 4711)));
	return dict_of(image, "asyncio.tasks",
		       module_of(image, "_current_tasks",
				 image_dict(image, image_keys(image, pairs, 1, 3, 0), 0, 1)));
}

TS_TEST(tasks)
{
	char name[64];

	EACH_IMAGE(image)
	{
		uint64_t type = image_type(image, "_asyncio.Task", TS_PYTHON_TYPE_HEAP);
		uint64_t task = make_task(image, type, image_ascii(image, "job"));
		uint64_t modules = make_modules(image, type, task);
		uint64_t thread = image_alloc(image, 4096);

		image_word(image, thread + image->layout.thread.thread_id, 4711);
		image_word(image, thread + 800, task);
		TS_CHECK_INT(ts_python_task_name(&image->view, modules, thread, name, 64), 18);
		TS_CHECK_STR(name, "job (Client.fetch)");
		TS_CHECK_INT(ts_python_task_name(&image->view, modules, thread, name, 6), 5);
		TS_CHECK_STR(name, "job (");
		/* A name that is still a number. */
		image_word(image, task + 208, image_int(image, 12));
		TS_CHECK_INT(ts_python_task_name(&image->view, modules, thread, name, 64), 22);
		TS_CHECK_STR(name, "Task-12 (Client.fetch)");
		/* Another thread, without a task. */
		image_word(image, thread + image->layout.thread.thread_id, 4712);
		image_word(image, thread + 800, 0);
		TS_CHECK_INT(ts_python_task_name(&image->view, modules, thread, name, 64), 0);
		TS_CHECK_STR(name, "");
	}
}

TS_TEST(no_asyncio_costs_little)
{
	char name[64];

	EACH_IMAGE(image)
	{
		uint64_t modules = dict_of(image, "os", image_int(image, 1));
		uint64_t thread = image_alloc(image, 4096);

		for (int i = 0; i < 1000; i++)
			TS_CHECK_INT(ts_python_task_name(&image->view, modules, thread, name, 64),
				     0);
		TS_CHECK(image->reads < 500);
	}
}
