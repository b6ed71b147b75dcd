/* SPDX-License-Identifier: Apache-2.0 */
/* Rectangles of memory, as in rectangular copies: rows of bytes with a pitch. */
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

uint64_t stream_rect_bytes(const struct stream_rect *rect)
{
	return (uint64_t)rect->region[0] * rect->region[1] * rect->region[2];
}

void stream_rect_extent(const struct stream_rect *rect, uint64_t *ret_offset, uint64_t *ret_bytes)
{
	uint64_t last = (rect->region[2] - 1) * (uint64_t)rect->slice +
			(rect->region[1] - 1) * (uint64_t)rect->row + rect->region[0];

	*ret_offset = rect->origin[2] * (uint64_t)rect->slice +
		      rect->origin[1] * (uint64_t)rect->row + rect->origin[0];
	*ret_bytes = stream_rect_bytes(rect) ? last : 0;
}

void stream_rect_pack(const struct stream_rect *rect, const void *base, uint64_t from, void *to,
		      size_t bytes)
{
	unsigned char *next = to;

	while (bytes > 0) {
		uint64_t row = from / rect->region[0];
		uint64_t x = from % rect->region[0];
		uint64_t z = row / rect->region[1], y = row % rect->region[1];
		uint64_t at = (rect->origin[2] + z) * rect->slice +
			      (rect->origin[1] + y) * rect->row + rect->origin[0] + x;
		size_t count = rect->region[0] - (size_t)x;

		if (count > bytes)
			count = bytes;
		memcpy(next, (const unsigned char *)base + at, count);
		next += count;
		from += count;
		bytes -= count;
	}
}
