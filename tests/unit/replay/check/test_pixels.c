/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels of a PNG: which channels an image's format becomes, their values, images that have none.
 */
#include "replay/check/pixels.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "unit/runner.h"

static struct ts_replay_image image_of(const char *order, const char *data, uint64_t width,
				       uint64_t element)
{
	return (struct ts_replay_image){ .type = "2d",
					 .order = order,
					 .data = data,
					 .size = { width, 1, 1 },
					 .element = element,
					 .row = width * element,
					 .slice = width * element };
}

/* One row of pixels: PNG's channels, bits and bytes. */
static void check_row(const struct ts_replay_image *image, const void *content,
		      unsigned int channels, unsigned int bits, const void *expected)
{
	struct ts_pixels pixels;

	TS_CHECK_INT(ts_pixels_init(&pixels, image, content, NULL), 0);
	TS_CHECK_INT(pixels.png.width, image->size[0]);
	TS_CHECK_INT(pixels.png.height, image->size[1] * image->size[2]);
	TS_CHECK_INT(pixels.png.channels, channels);
	TS_CHECK_INT(pixels.png.bits, bits);
	TS_CHECK_MEM(pixels.png.pixels, expected, image->size[0] * channels * bits / 8);
	ts_pixels_release(&pixels);
	TS_CHECK(!pixels.png.pixels);
}

TS_TEST(orders_of_channels)
{
	static const struct {
		const char *order;
		uint64_t element;
		unsigned int channels;
		const char *expected; /* of the bytes "1234" */
	} cases[] = {
		{ "r", 1, 1, "1" },       { "a", 1, 1, "1" },       { "luminance", 1, 1, "1" },
		{ "rx", 2, 1, "1" },      { "ra", 2, 2, "12" },     { "rg", 2, 3, "12\0" },
		{ "rgb", 3, 3, "123" },   { "srgbx", 4, 3, "123" }, { "rgba", 4, 4, "1234" },
		{ "bgra", 4, 4, "3214" }, { "argb", 4, 4, "2341" }, { "abgr", 4, 4, "4321" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct ts_replay_image image =
			image_of(cases[i].order, "unsigned_int8", 1, cases[i].element);

		check_row(&image, "1234", cases[i].channels, 8, cases[i].expected);
	}
}

TS_TEST(sixteen_bits_are_big_endian)
{
	struct ts_replay_image image = image_of("rg", "unorm_int16", 1, 4);

	check_row(&image, "\x01\x02\x03\x04", 3, 16, "\x02\x01\x04\x03\0\0");
}

TS_TEST(packed_channels_keep_their_share)
{
	static const struct {
		const char *data;
		uint32_t bits;
		unsigned int channels;
		const char *expected;
	} cases[] = {
		{ "unorm_short_565", 0xf800, 3, "\xff\xff\0\0\0\0" },
		{ "unorm_short_565", 0x07e0, 3, "\0\0\xff\xff\0\0" },
		{ "unorm_short_565", 0x0001, 3, "\0\0\0\0\x08\x42" },
		{ "unorm_short_555", 0x7c1f, 3, "\xff\xff\0\0\xff\xff" },
		{ "unorm_int_101010", 0x000ffc00, 3, "\0\0\xff\xff\0\0" },
		{ "unorm_int_101010_2", 0xffc00001, 4, "\xff\xff\0\0\0\0\x55\x55" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		const char *order = cases[i].channels == 4 ? "rgba" : "rgb";
		uint64_t element = strstr(cases[i].data, "short") ? 2 : 4;
		struct ts_replay_image image = image_of(order, cases[i].data, 1, element);

		check_row(&image, &cases[i].bits, cases[i].channels, 16, cases[i].expected);
	}
}

/* From the least to the greatest value; alpha is left out, and does not count. */
TS_TEST(other_numbers_are_scaled)
{
	const int32_t numbers[] = { -10, 90, 40, -10 };
	const int8_t bytes[] = { -128, 127, 0, -128 };
	const float colors[2][4] = { { 0, 1, 2, 999 }, { 4, 3, 2, -999 } };
	struct ts_replay_image image = image_of("r", "signed_int32", 3, 4);

	check_row(&image, numbers, 1, 16, "\0\0\xff\xff\x80\0");
	image = image_of("r", "snorm_int8", 3, 1);
	check_row(&image, bytes, 1, 16, "\0\0\xff\xff\x80\x80");
	image = image_of("rgba", "float", 2, 16);
	check_row(&image, colors, 3, 16, "\0\0\x40\0\x80\0\xff\xff\xbf\xff\x80\0");
}

TS_TEST(the_scale_is_known)
{
	const float values[] = { NAN, -2.5f, INFINITY, 7, -INFINITY };
	struct ts_replay_image image = image_of("r", "float", 5, 4);
	struct ts_pixels pixels;

	TS_CHECK_INT(ts_pixels_init(&pixels, &image, values, NULL), 0);
	TS_CHECK(pixels.is_scaled && pixels.low == -2.5 && pixels.high == 7);
	TS_CHECK_MEM(pixels.png.pixels, "\0\0\0\0\xff\xff\xff\xff\0\0", 10);
	ts_pixels_release(&pixels);
	/* Nothing finite. */
	image.size[0] = 1;
	TS_CHECK_INT(ts_pixels_init(&pixels, &image, values, NULL), 0);
	TS_CHECK(pixels.low == 0 && pixels.high == 0);
	TS_CHECK_MEM(pixels.png.pixels, "\0\0", 2);
	ts_pixels_release(&pixels);
	/* All equal. */
	image = image_of("r", "float", 1, 4);
	TS_CHECK_INT(ts_pixels_init(&pixels, &image, &values[3], NULL), 0);
	TS_CHECK(pixels.low == 7 && pixels.high == 7);
	ts_pixels_release(&pixels);
}

TS_TEST(half_floats)
{
	/* 1, -2, the least above 0, 65504, infinity, NaN. */
	const uint16_t values[] = { 0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x7e00 };
	struct ts_replay_image image = image_of("r", "half_float", 6, 2);
	struct ts_pixels pixels;

	TS_CHECK_INT(ts_pixels_init(&pixels, &image, values, NULL), 0);
	TS_CHECK(pixels.low == -2 && pixels.high == 65504);
	ts_pixels_release(&pixels);
	image.size[0] = 1;
	TS_CHECK_INT(ts_pixels_init(&pixels, &image, &values[2], NULL), 0);
	TS_CHECK(pixels.low == ldexp(1, -24));
	ts_pixels_release(&pixels);
}

/* Slices are below each other; rows of a view of a buffer have gaps. */
TS_TEST(rows_and_slices)
{
	struct ts_replay_image image = image_of("r", "unsigned_int8", 2, 1);
	struct ts_pixels pixels;

	image.size[1] = image.size[2] = 2;
	image.row = 3;
	image.slice = 6;
	TS_CHECK_INT(ts_pixels_init(&pixels, &image, "ab-cd-ef-gh-", NULL), 0);
	TS_CHECK_INT(pixels.png.width, 2);
	TS_CHECK_INT(pixels.png.height, 4);
	TS_CHECK_MEM(pixels.png.pixels, "abcdefgh", 8);
	ts_pixels_release(&pixels);
}

TS_TEST(images_that_cannot_be_shown)
{
	static const uint64_t sizes[][3] = {
		{ (uint64_t)INT32_MAX + 1, 1, 1 },
		{ 1, (uint64_t)INT32_MAX + 1, 1 },
		{ 1, UINT64_MAX / 2, 4 },
		{ 1, 65536, 65536 },
	};
	struct ts_replay_image image = image_of("rgba", "float", 1, 8);
	struct ts_pixels pixels;
	struct ts_error err;

	/* A driver's own size of a pixel. */
	TS_CHECK_INT(ts_pixels_init(&pixels, &image, "", &err), TS_EINVAL);
	TS_CHECK(strstr(err.message, "rgba float cannot be shown as a PNG"));
	for (size_t i = 0; i < TS_ARRAY_SIZE(sizes); i++) {
		image = image_of("r", "unsigned_int8", 1, 1);
		memcpy(image.size, sizes[i], sizeof(image.size));
		TS_CHECK_INT(ts_pixels_init(&pixels, &image, "", &err), TS_EINVAL);
	}
}
