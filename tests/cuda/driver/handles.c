/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: which handles exist. Programs make thousands of events, and each call checks
 * its handles: a hash table for each kind, in which handles stay as long as the process.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/driver.h"

static size_t slot_of(const struct handles *handles, const void *handle)
{
	size_t slot = (uintptr_t)handle / 8 * 0x9E3779B97F4A7C15 >> 20;

	while (handles->slots[slot % handles->size] &&
	       handles->slots[slot % handles->size] != handle)
		slot++;
	return slot % handles->size;
}

static void grow(struct handles *handles)
{
	struct handles larger = { .size = handles->size ? handles->size * 2 : 64 };

	larger.slots = calloc(larger.size, sizeof(larger.slots[0]));
	for (size_t i = 0; i < handles->size; i++) {
		if (handles->slots[i])
			larger.slots[slot_of(&larger, handles->slots[i])] = handles->slots[i];
	}
	free(handles->slots);
	handles->slots = larger.slots;
	handles->size = larger.size;
}

void handles_add(struct handles *handles, const void *handle)
{
	pthread_rwlock_wrlock(&handles->lock);
	if (handles->count * 2 >= handles->size)
		grow(handles);
	handles->slots[slot_of(handles, handle)] = handle;
	handles->count++;
	pthread_rwlock_unlock(&handles->lock);
}

bool handles_have(struct handles *handles, const void *handle)
{
	bool found;

	pthread_rwlock_rdlock(&handles->lock);
	found = handle && handles->size && handles->slots[slot_of(handles, handle)];
	pthread_rwlock_unlock(&handles->lock);
	return found;
}
