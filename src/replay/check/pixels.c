/* SPDX-License-Identifier: Apache-2.0 */
/* See pixels.h. */
#include "replay/check/pixels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/check/values.h"

#define MOST 65535.0 /* of 16 bits */

enum form { UNSIGNED, SIGNED, FLOAT, PACKED };

struct data {
	const char *name;
	enum form form;
	unsigned int bytes;
};
static const struct data data_types[] = {
#define TS_IMAGE_DATA(name, constant, form, bytes) { name, form, bytes },
#include "live/local/image_formats.def"
};

struct order {
	const char *name, *channels;
};
static const struct order orders[] = {
#define TS_IMAGE_ORDER(name, constant, channels) { name, channels },
#include "live/local/image_formats.def"
};

/* Where the channels of a packed pixel are, from red to alpha. */
static const struct packing {
	const char *name;
	unsigned int shift[4], bits[4];
} packings[] = {
	{ "unorm_short_565", { 11, 5, 0, 0 }, { 5, 6, 5, 0 } },
	{ "unorm_short_555", { 10, 5, 0, 0 }, { 5, 5, 5, 0 } },
	{ "unorm_int_101010", { 20, 10, 0, 0 }, { 10, 10, 10, 0 } },
	{ "unorm_int_101010_2", { 22, 12, 2, 0 }, { 10, 10, 10, 2 } },
};

/* How an image becomes a PNG. */
struct plan {
	const struct ts_replay_image *image;
	const struct data *data;
	const struct ts_value_type *type; /* of a channel, or of a packed pixel */
	const struct packing *packing;    /* NULL: not packed */
	const char *channels;
	unsigned int count; /* of the PNG's channels */
	int from[4];        /* which channel of the image each is; -1: none, it is 0 */
	bool is_scaled;
};

static const struct data *find_data(const char *name)
{
	const struct data *data = data_types;

	while (strcmp(data->name, name) != 0)
		data++;
	return data;
}

static const struct ts_value_type *type_of(const struct data *data)
{
	static const char letters[] = {
		[UNSIGNED] = 'u', [SIGNED] = 'i', [FLOAT] = 'f', [PACKED] = 'u'
	};
	char name[16];

	snprintf(name, sizeof(name), "%c%u", letters[data->form], 8 * data->bytes);
	return ts_value_type_find(name);
}

static const char *find_channels(const char *name)
{
	const struct order *order = orders;

	while (strcmp(order->name, name) != 0)
		order++;
	return order->channels;
}

static int position_of(const char *channels, char channel)
{
	const char *at = strchr(channels, channel);

	return at ? (int)(at - channels) : -1;
}

static void plan_channels(struct plan *plan)
{
	const char *channels = plan->channels;
	int red = position_of(channels, 'r'), green = position_of(channels, 'g'),
	    alpha = position_of(channels, 'a');

	if (plan->is_scaled && strlen(channels) > 1)
		alpha = -1;
	if (green >= 0) {
		plan->from[0] = red;
		plan->from[1] = green;
		plan->from[2] = position_of(channels, 'b');
		plan->count = 3;
	} else {
		plan->from[0] = red >= 0 ? red : 0;
		plan->count = 1;
	}
	if (alpha >= 0 && plan->from[0] != alpha)
		plan->from[plan->count++] = alpha;
}

static void make_plan(struct plan *plan, const struct ts_replay_image *image)
{
	*plan = (struct plan){ .image = image,
			       .data = find_data(image->data),
			       .channels = find_channels(image->order) };
	plan->type = type_of(plan->data);
	for (size_t i = 0; i < TS_ARRAY_SIZE(packings); i++)
		if (!strcmp(packings[i].name, image->data))
			plan->packing = &packings[i];
	if (plan->data->form == PACKED)
		plan->channels = plan->packing->bits[3] ? "rgba" : "rgb";
	plan->is_scaled = plan->data->form == SIGNED || plan->data->form == FLOAT ||
			  plan->data->bytes > 2;
	if (plan->data->form == PACKED)
		plan->is_scaled = false;
	plan_channels(plan);
}

/* ---- pixels ---- */

static const unsigned char *pixel_at(const struct plan *plan, const void *content, uint64_t x,
				     uint64_t row)
{
	return (const unsigned char *)content + row * plan->image->row + x * plan->image->element;
}

static const unsigned char *channel_of(const struct plan *plan, const unsigned char *pixel,
				       int channel)
{
	return pixel + (unsigned int)channel * plan->data->bytes;
}

static void widen(struct ts_pixels *pixels, double value)
{
	if (!isfinite(value))
		return;
	pixels->low = fmin(pixels->low, value);
	pixels->high = fmax(pixels->high, value);
}

static void widen_pixel(struct ts_pixels *pixels, const struct plan *plan,
			const unsigned char *pixel)
{
	for (unsigned int i = 0; i < plan->count; i++)
		if (plan->from[i] >= 0)
			widen(pixels,
			      ts_value_real(plan->type, channel_of(plan, pixel, plan->from[i])));
}

static void find_scale(struct ts_pixels *pixels, const struct plan *plan, const void *content)
{
	pixels->low = (double)INFINITY;
	pixels->high = -(double)INFINITY;
	for (uint64_t row = 0; row < pixels->png.height; row++)
		for (uint64_t x = 0; x < pixels->png.width; x++)
			widen_pixel(pixels, plan, pixel_at(plan, content, x, row));
	if (pixels->low > pixels->high)
		pixels->low = pixels->high = 0;
}

static uint64_t scaled(const struct ts_pixels *pixels, double value)
{
	if (isnan(value) || pixels->high <= pixels->low)
		return 0;
	value = fmin(fmax(value, pixels->low), pixels->high);
	return (uint64_t)((value - pixels->low) / (pixels->high - pixels->low) * MOST + 0.5);
}

static uint64_t sample(const struct ts_pixels *pixels, const struct plan *plan,
		       const unsigned char *pixel, int channel)
{
	const struct packing *packing = plan->packing;
	uint64_t most, value;

	if (channel < 0)
		return 0;
	if (packing) {
		most = (UINT64_C(1) << packing->bits[channel]) - 1;
		value = ts_value_bits(plan->type, pixel) >> packing->shift[channel] & most;
		return (value * (uint64_t)MOST + most / 2) / most;
	}
	pixel = channel_of(plan, pixel, channel);
	return plan->is_scaled ? scaled(pixels, ts_value_real(plan->type, pixel))
			       : ts_value_bits(plan->type, pixel);
}

static void fill_in(struct ts_pixels *pixels, const struct plan *plan, const void *content,
		    unsigned char *to)
{
	for (uint64_t row = 0; row < pixels->png.height; row++)
		for (uint64_t x = 0; x < pixels->png.width; x++)
			for (unsigned int i = 0; i < plan->count; i++) {
				uint64_t value = sample(pixels, plan,
							pixel_at(plan, content, x, row),
							plan->from[i]);

				if (pixels->png.bits == 16)
					*to++ = (unsigned char)(value >> 8);
				*to++ = (unsigned char)value;
			}
}

/* Sizes of a pixel that the format does not explain: of a driver's own. */
static bool is_known(const struct plan *plan)
{
	unsigned int bytes = plan->data->bytes;

	if (!plan->packing)
		bytes *= (unsigned int)strlen(plan->channels);
	return bytes <= plan->image->element;
}

int ts_pixels_init(struct ts_pixels *pixels, const struct ts_replay_image *image,
		   const void *content, struct ts_error *err)
{
	struct plan plan;
	uint64_t height = 0, bytes = 0;
	unsigned char *data;

	make_plan(&plan, image);
	if (!is_known(&plan) || image->size[0] > INT32_MAX ||
	    __builtin_mul_overflow(image->size[1], image->size[2], &height) || height > INT32_MAX ||
	    __builtin_mul_overflow(height * image->size[0], 8u, &bytes))
		return ts_error_set(err, TS_EINVAL,
				    "an image of %" PRIu64 " x %" PRIu64 " pixels %s %s cannot be "
				    "shown as a PNG",
				    image->size[0], height, image->order, image->data);
	*pixels = (struct ts_pixels){ .is_scaled = plan.is_scaled };
	pixels->png = (struct ts_png){
		.width = (uint32_t)image->size[0],
		.height = (uint32_t)height,
		.channels = plan.count,
		.bits = !plan.packing && !plan.is_scaled && plan.data->bytes == 1 ? 8 : 16,
	};
	data = ts_alloc_array(height * image->size[0], plan.count * (pixels->png.bits / 8));
	if (!data)
		return ts_error_set(err, TS_ENOMEM, "no memory for the pixels of an image");
	if (plan.is_scaled)
		find_scale(pixels, &plan, content);
	fill_in(pixels, &plan, content, data);
	pixels->png.pixels = data;
	return TS_OK;
}

void ts_pixels_release(struct ts_pixels *pixels)
{
	free((void *)(uintptr_t)pixels->png.pixels);
	*pixels = (struct ts_pixels){ 0 };
}
