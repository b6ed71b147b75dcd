/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: the addresses that it knows, for the files that allocate and map memory.
 */
#ifndef TS_TESTS_CUDA_DRIVER_RANGES_H
#define TS_TESTS_CUDA_DRIVER_RANGES_H

#include "cuda/driver/driver.h"

#define PAGE_BYTES ((uint64_t)2 << 20)

/* Of all ranges, of what lies there, and of what is used. */
extern pthread_rwlock_t ranges_lock;
/* Bytes of the device, of which settings.memory exist. */
extern uint64_t used_memory;

/* These four are called with the lock held. The range with the address; NULL. */
struct range *range_at(uint64_t address);
/* The first that ends behind the address; NULL. */
struct range *range_after(uint64_t address);
/* Copies it and gives it an id; false: something is there. */
bool range_insert(const struct range *range);
void range_erase(struct range *range);
/* `bytes` of the device are used; false: there are not that many. The lock is held. */
bool take_memory(uint64_t bytes);

uint64_t round_up(uint64_t bytes, uint64_t step);
/* Memory of this process, of zeros; NULL. */
void *map_host(uint64_t bytes);
/* An address range without access, aligned; 0: none. */
uint64_t reserve_addresses(uint64_t bytes, uint64_t alignment, uint64_t hint);
/* For range.written. No number is used twice, whatever is at an address later. */
uint64_t *fresh_versions(uint64_t bytes);

#endif
