/* SPDX-License-Identifier: Apache-2.0 */
/* For fuzz targets: fixes the checksums of a journal, because random changes would never get past
 * them. */
#ifndef TS_TEST_JOURNAL_STAMP_H
#define TS_TEST_JOURNAL_STAMP_H

#include <string.h>

#include "base/local/hash.h"
#include "live/journal.h"

/* libFuzzer's own mutation; missing in a build that only replays files. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

/* Every block that has room gets a valid checksum. */
static inline void journal_stamp(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + sizeof(struct ts_block) <= size;) {
		struct ts_block block;

		memcpy(&block, data + at, sizeof(block));
		if (block.magic != TS_JOURNAL_MAGIC || block.bytes > size - at - sizeof(block)) {
			at += 8;
			continue;
		}
		block.checksum = ts_hash64(data + at + sizeof(block), block.bytes);
		block.checksum = ts_hash64(&block, sizeof(block));
		memcpy(data + at, &block, sizeof(block));
		at += sizeof(block) + ((block.bytes + 7u) & ~7u);
	}
}

#endif
