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
	uint32_t kind;   /* activity kind; 0: none, only a call */
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
	bool keeps_going; /* an unforced flush returns no buffer */

	/* Recorded calls. */
	uint32_t subscriptions, finalized, flushes, forced;
	uint32_t registered; /* pairs of buffer callbacks */
	uint8_t kinds[128];
	uint8_t zeroed;
	uint64_t (*timestamp)(void);
	uint32_t outstanding; /* buffers that it holds */
	uint32_t dropped;
	uint32_t flush_us;    /* duration of a flush */
	uint32_t flushing;    /* threads inside a function; atomic */
	uint32_t overlapping; /* the same at finalization */
	uint32_t late;        /* calls after that */
	uint32_t walked;      /* records read from returned buffers; atomic */
	uint32_t looks;       /* queries of dropped records, one after each reading; atomic */

	/*
	 * A driver call with its callbacks, and the record of its device work if its kind is
	 * enabled.
	 */
	uint32_t (*call)(const struct stand_in_work *work);
	/* The oldest incomplete records get their times. */
	void (*complete)(uint32_t count, uint64_t start, uint64_t end);
	/* The record with that index among all, whatever precedes it. */
	void (*complete_one)(uint32_t index, uint64_t start, uint64_t end);
	/* A resource callback. */
	void (*resource)(uint32_t number, const void *data);
	void (*graph_node)(void *node, void *original);
	bool (*is_called_back)(uint32_t domain, uint32_t number);
};

/* Exported by the library. */
struct stand_in_cupti *stand_in_cupti(void);
/*
 * Waits until this many records were read, and the reader has made this many passes since; false
 * after 20 s.
 */
bool stand_in_await(uint32_t count, uint32_t looks);

#endif
