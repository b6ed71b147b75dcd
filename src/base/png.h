/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a PNG file. */
#ifndef TS_BASE_PNG_H
#define TS_BASE_PNG_H

#include <stdint.h>

#include <tracesmith/error.h>

struct ts_png {
	uint32_t width, height;
	unsigned int channels; /* 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha */
	unsigned int bits;     /* of a channel: 8, or 16 (big-endian) */
	const void *pixels;    /* rows from the top, without gaps */
};

/* TS_ECAP: a build without zlib. */
int ts_png_write(int fd, const struct ts_png *png, struct ts_error *err);

#endif
