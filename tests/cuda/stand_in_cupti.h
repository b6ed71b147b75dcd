/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test interface of the stand-in for CUPTI (stand_in_cupti.c). Nothing runs on a device. Found with
 * dlsym() in the library.
 */
#ifndef TS_TESTS_CUDA_STAND_IN_CUPTI_H
#define TS_TESTS_CUDA_STAND_IN_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stand_in_work {
	uint32_t kind;   /* of activity; 0: none, only a call */
	uint32_t number; /* of the driver's function */
	const char *name;
	uint32_t grid;
	uint32_t graph;
	uint64_t node;
	int result; /* of the call */
};

struct stand_in_cupti {
	uint32_t version;
	size_t kernel_bytes, copy_bytes, peer_bytes, fill_bytes;
	int subscribe_result, enable_result;
	bool keeps_going; /* a flush that is not forced returns no buffer */

	/* What it was told. */
	uint32_t subscriptions, finalized, flushes, forced;
	uint32_t registered; /* pairs of buffer callbacks */
	uint8_t kinds[128];
	uint8_t zeroed;
	uint64_t (*timestamp)(void);
	uint32_t outstanding; /* buffers that it holds */
	uint32_t dropped;
	uint32_t flush_us;    /* that a flush takes */
	uint32_t flushing;    /* threads that are in one; atomic */
	uint32_t overlapping; /* that were when it was finalized */
	uint32_t late;        /* calls behind that */
	uint32_t walked;      /* records that were asked for in returned buffers; atomic */
	uint32_t looks; /* times that it was asked what it dropped: behind each reading; atomic */

	/*
	 * A call of the driver, with its callbacks; and the record of what it makes the device do,
	 * where its kind is on.
	 */
	uint32_t (*call)(const struct stand_in_work *work);
	/* The oldest records that are not complete get their times. */
	void (*complete)(uint32_t count, uint64_t start, uint64_t end);
	/* That of the index-th of all that were made, whatever is ahead of it. */
	void (*complete_one)(uint32_t index, uint64_t start, uint64_t end);
	/* A resource callback. */
	void (*resource)(uint32_t number, const void *data);
	void (*graph_node)(void *node, void *original);
	bool (*is_called_back)(uint32_t domain, uint32_t number);
};

/* Exported by the library. */
struct stand_in_cupti *stand_in_cupti(void);
/*
 * Until so many records were walked, and the reader has looked so often since; false: that took
 * more than 20 s.
 */
bool stand_in_await(uint32_t count, uint32_t looks);

#endif
