/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What capture_areas.c and capture_pages.c share: the hashes of a struct stream_area. All under the
 * host lock.
 */
#ifndef TS_BACKENDS_OPENCL_STREAM_CAPTURE_AREAS_H
#define TS_BACKENDS_OPENCL_STREAM_CAPTURE_AREAS_H

#include "backends/opencl/stream/capture_internal.h"

#define AREA_PAGE ((size_t)4096)
#define AREA_CHUNK STREAM_COPY_BYTES

/* Its hashes, of which nothing is known at first, unless it has them. False: no memory. */
bool area_allocate(struct stream_area *area);
uint64_t area_chunk_count(const struct stream_area *area);
size_t area_chunk_bytes(const struct stream_area *area, uint64_t chunk);
/* Of the page that begins `at` bytes after its chunk, which has so many bytes. */
uint64_t area_hash_page(const unsigned char *copy, size_t at, size_t bytes);
/*
 * Copies a chunk. Returns how many bytes precede the first one that is not there. What is missing
 * is reported once.
 */
size_t area_read_chunk(const struct ocl_stream *root, struct stream_area *area, uint64_t chunk,
		       unsigned char *copy);
/* Hash and, if asked for, blob of pixels. The hash is 0, and the result false, if they are gone. */
bool area_read_pixels(const struct ocl_stream *root, struct stream_area *area, uint64_t *ret_hash,
		      uint64_t *ret_blob);
/*
 * Learns all of it, and (`ret_blob`) stores it; then the channel is locked, too. False: it is not
 * there.
 */
bool area_begin(const struct ocl_stream *root, struct stream_area *area, uint64_t *ret_blob);
/* Emits what is known, as checks. False: nothing is. */
bool area_check(const struct ocl_stream *root, const struct stream_area *area);

#endif
