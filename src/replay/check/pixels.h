/* SPDX-License-Identifier: Apache-2.0 */
/* The content of an image as pixels that can be looked at. */
#ifndef TS_REPLAY_CHECK_PIXELS_H
#define TS_REPLAY_CHECK_PIXELS_H

#include "base/png.h"
#include "replay/replay.h"

/*
 * Channels are those of the image: one is grey, two are red and green (or grey and alpha), `x` is
 * left out. Unsigned channels of 8 and 16 bits keep their values, packed ones keep their share of
 * the greatest. All others (signed, 32 bits, floats) become 16 bits: `low` is 0 and `high` 65535,
 * the least and greatest finite value of the colours; alpha is left out. Slices and layers are
 * below each other.
 */
struct ts_pixels {
	struct ts_png png; /* its pixels are ours */
	bool is_scaled;
	double low, high;
};

/* `content`: the bytes of the image, as --dump gives them. TS_EINVAL: too large to be shown. */
int ts_pixels_init(struct ts_pixels *pixels, const struct ts_replay_image *image,
		   const void *content, struct ts_error *err);
void ts_pixels_release(struct ts_pixels *pixels);

#endif
