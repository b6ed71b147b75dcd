/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of all memory that a window has: arenas and variables (docs/cuda-replay.md, 4.3). Shared by
 * cuda_pages.c, which lists and hashes them on the device, cuda_snapshot.c and cuda_page_checks.c.
 * capture_lock is held, or nothing runs.
 */
#ifndef TS_BACKENDS_CUDA_STREAM_CUDA_PAGES_H
#define TS_BACKENDS_CUDA_STREAM_CUDA_PAGES_H

#include "backends/cuda/stream/cuda_capture.h"
#include "code/cuda/local/page_kernels.h"

struct capture_page {
	uint64_t object, offset; /* of the memory object */
	struct ts_page_range range;
	struct capture_context *context; /* that can read it */
	uint64_t hash;
};

struct page_list {
	struct capture_page *items; /* by object and offset */
	size_t count, capacity;
};

/* Lists and hashes all pages; false: the window has failed. */
bool pages_read(struct page_list *ret_list);
void pages_release(struct page_list *list);
/* Host memory that words in these pages point to is made visible; false: the window has failed. */
bool pages_look_for_host(const struct page_list *list);
bool page_is_zero(const struct capture_page *page);

/* A stream of ours in this context, which must be current; NULL: the window has failed. */
void *pages_stream(struct capture_context *context);

#endif
