/* SPDX-License-Identifier: Apache-2.0 */
/* Rectangles of memory, as in rectangular copies: rows of bytes with a pitch. */
#include <string.h>
#include <sys/uio.h>

#include "backends/opencl/stream/capture_internal.h"
#include "base/local/foreign_memory.h"

#define ROWS 64u /* copied at once */

struct stream_rect stream_rect_make(const size_t *region, const size_t *origin, size_t row,
				    size_t slice)
{
	struct stream_rect rect = { .row = row, .slice = slice };

	/* A pitch that nothing is multiplied with may have any value. */
	if (!row || (row > INT64_MAX && region[1] == 1 && !origin[1]))
		rect.row = region[0];
	if (slice > INT64_MAX && region[2] == 1 && !origin[2])
		rect.slice = 0;
	if (!rect.slice && __builtin_mul_overflow(rect.row, region[1], &rect.slice))
		rect.slice = SIZE_MAX;
	memcpy(rect.region, region, sizeof(rect.region));
	memcpy(rect.origin, origin, sizeof(rect.origin));
	return rect;
}

static bool add_product(int64_t *sum, size_t count, size_t pitch)
{
	int64_t product;

	return !__builtin_mul_overflow(count, pitch, &product) &&
	       !__builtin_add_overflow(*sum, product, sum);
}

bool stream_rect_fits(const struct stream_rect *rect)
{
	const size_t *region = rect->region, *origin = rect->origin;
	int64_t end = 0, bytes;

	return rect->row <= INT64_MAX && rect->slice <= INT64_MAX &&
	       !__builtin_mul_overflow(region[0], region[1], &bytes) &&
	       !__builtin_mul_overflow(bytes, region[2], &bytes) &&
	       add_product(&end, origin[2], rect->slice) &&
	       add_product(&end, origin[1], rect->row) && add_product(&end, origin[0], 1) &&
	       add_product(&end, region[2], rect->slice) &&
	       add_product(&end, region[1], rect->row) && add_product(&end, region[0], 1);
}

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

/* The bytes of one row, from offset `from` of the packed rectangle on. */
static struct iovec row_part(const struct stream_rect *rect, const void *base, uint64_t from)
{
	uint64_t row = from / rect->region[0], x = from % rect->region[0];
	uint64_t z = row / rect->region[1], y = row % rect->region[1];
	uint64_t at = (rect->origin[2] + z) * rect->slice + (rect->origin[1] + y) * rect->row +
		      rect->origin[0] + x;

	return (struct iovec){ (void *)((uintptr_t)base + at), rect->region[0] - (size_t)x };
}

size_t stream_rect_pack(const struct stream_rect *rect, const void *base, uint64_t from, void *to,
			size_t bytes)
{
	struct iovec rows[ROWS];
	size_t done = 0, got = 0, wanted = 0;

	while (done < bytes && got == wanted) {
		size_t count = 0;

		for (wanted = 0; count < ROWS && done + wanted < bytes; count++) {
			rows[count] = row_part(rect, base, from + done + wanted);
			if (rows[count].iov_len > bytes - done - wanted)
				rows[count].iov_len = bytes - done - wanted;
			wanted += rows[count].iov_len;
		}
		got = ts_foreign_gather((unsigned char *)to + done, rows, count);
		done += got;
	}
	return done;
}
