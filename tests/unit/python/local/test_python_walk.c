/* SPDX-License-Identifier: Apache-2.0 */
/* Single frames in fake memory: shims, generators, cycles, and what is not a frame. */
#include <string.h>

#include "python/local/python_walk.h"
#include "unit/runner.h"

#define BASE UINT64_C(0x10000)

struct memory_image {
	struct ts_python_layout layout;
	struct ts_python_memory memory;
	struct ts_python_process_view view;
	uint8_t bytes[8192];
};

static bool give(void *context, uint64_t address, void *copy, size_t bytes)
{
	struct memory_image *image = context;

	if (address < BASE || address - BASE + bytes > sizeof(image->bytes))
		return false;
	memcpy(copy, image->bytes + (address - BASE), bytes);
	return true;
}

static void put(struct memory_image *image, uint64_t address, uint64_t word)
{
	memcpy(image->bytes + (address - BASE), &word, 8);
}

static void start(struct memory_image *image, unsigned int minor)
{
	memset(image, 0, sizeof(*image));
	TS_CHECK(ts_python_layout_of_version(&image->layout, minor, false));
	image->memory.read = give;
	image->memory.context = image;
	image->view.memory = &image->memory;
	image->view.layout = &image->layout;
}

static void put_frame(struct memory_image *image, uint64_t at, uint64_t previous, uint64_t code,
		      uint8_t owner)
{
	put(image, at + image->layout.frame.previous, previous);
	put(image, at + image->layout.frame.executable, code);
	put(image, at + image->layout.frame.instruction,
	    code + image->layout.code.instructions + 6);
	if (image->layout.frame.owner != TS_PYTHON_NONE)
		image->bytes[at - BASE + image->layout.frame.owner] = owner;
}

/* thread at BASE, cframe at +0x400, frames from +0x800 on. */
static void put_stack(struct memory_image *image)
{
	put(image, BASE + image->layout.thread.frame, BASE + 0x400);
	put(image, BASE + 0x400 + image->layout.cframe.current_frame, BASE + 0x800);
	put_frame(image, BASE + 0x800, BASE + 0x900, 0x5000, 0);
	put_frame(image, BASE + 0x900, BASE + 0xa00, 0x6000, 1);
	put_frame(image, BASE + 0xa00, BASE + 0xb00, 0x7000, 3); /* a shim */
	put_frame(image, BASE + 0xb00, 0, 0x8000, 0);
}

TS_TEST(walks_to_the_outermost)
{
	struct memory_image image;
	struct ts_python_raw_frame frames[8];
	bool is_complete;

	start(&image, 12);
	put_stack(&image);
	TS_CHECK_INT(ts_python_walk(&image.view, BASE, frames, 8, &is_complete), 3);
	TS_CHECK(is_complete);
	TS_CHECK_INT(frames[0].code, 0x5000);
	TS_CHECK_INT(frames[0].flags, 0);
	TS_CHECK_INT(frames[1].code, 0x6000);
	TS_CHECK_INT(frames[1].flags, TS_PYTHON_RAW_ENTRY);
	TS_CHECK_INT(frames[2].address, BASE + 0xb00);
	TS_CHECK_INT(ts_python_instruction_offset(&image.layout,
						  0x5000 + image.layout.code.instructions,
						  frames[0].instruction),
		     6);
	TS_CHECK_INT(ts_python_walk(&image.view, BASE, frames, 2, &is_complete), 2);
	TS_CHECK(!is_complete);
}

TS_TEST(what_is_no_stack_ends)
{
	struct memory_image image;
	struct ts_python_raw_frame frames[8];
	bool is_complete;

	start(&image, 12);
	put_stack(&image);
	put_frame(&image, BASE + 0xb00, BASE + 0x800, 0x8000, 0); /* a cycle */
	TS_CHECK_INT(ts_python_walk(&image.view, BASE, frames, 8, &is_complete), 8);
	TS_CHECK(!is_complete);
	put_frame(&image, BASE + 0xb00, UINT64_MAX - 15, 0x8000, 0);
	TS_CHECK_INT(ts_python_walk(&image.view, BASE, frames, 8, &is_complete), 3);
	TS_CHECK(!is_complete);
	put_frame(&image, BASE + 0x900, 0, 0x8000, 77);
	TS_CHECK_INT(ts_python_walk(&image.view, BASE, frames, 8, &is_complete), 1);
	TS_CHECK(!is_complete);
	TS_CHECK_INT(ts_python_walk(&image.view, 16, frames, 8, &is_complete), 0);
}

TS_TEST(frames_of_the_heap)
{
	struct memory_image image;
	struct ts_python_raw_frame frames[8];
	uint32_t last = 21;
	bool is_complete;

	start(&image, 10);
	put(&image, BASE + image.layout.thread.frame, BASE + 0x800);
	put_frame(&image, BASE + 0x800, BASE + 0x400, 0x5000, 0);
	put_frame(&image, BASE + 0x400, 0, 0x6000, 0);
	memcpy(image.bytes + 0x800 + image.layout.frame.instruction, &last, 4);
	TS_CHECK_INT(ts_python_walk(&image.view, BASE, frames, 8, &is_complete), 2);
	TS_CHECK(is_complete);
	TS_CHECK_INT(ts_python_instruction_offset(&image.layout, 0, frames[0].instruction), 42);
	TS_CHECK_INT(ts_python_instruction_offset(&image.layout, 0, (uint64_t)-1), -1);
}
