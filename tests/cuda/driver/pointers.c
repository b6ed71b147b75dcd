/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: attributes of pointers. */
#include <string.h>

#include "cuda/driver/driver.h"

API cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
	struct range range = { .kind = DEVICE_MEMORY, .address = settings.own, .bytes = 4096 };

	if ((!settings.own || address - settings.own >= 4096) && !memory_find(address, &range))
		return INVALID_VALUE;
	switch (attribute) {
	case 1:
		*(void **)value = range.context;
		return range.context ? 0 : INVALID_VALUE;
	case 2:
		*(uint32_t *)value = range.kind >= PINNED_MEMORY ? 1 : 2;
		return 0;
	case 3:
		*(uint64_t *)value = address;
		return 0;
	case 4:
		if (range.kind < PINNED_MEMORY)
			return INVALID_VALUE;
		*(uint64_t *)value = address;
		return 0;
	case 6:
	case 8:
		*(uint32_t *)value = 0;
		return 0;
	case 7:
		*(uint64_t *)value = range.id;
		return 0;
	case 9:
		*(int *)value = range.context ? range.context->device : 0;
		return 0;
	case 10:
		*(uint32_t *)value = range.kind == DEVICE_MEMORY;
		return 0;
	case 11:
		*(uint64_t *)value = range.address;
		return 0;
	case 12:
		*(size_t *)value = range.bytes;
		return 0;
	case 13:
		*(uint32_t *)value = 1;
		return 0;
	case 14:
	case 17:
		*(uint64_t *)value = 0;
		return 0;
	default:
		return INVALID_VALUE;
	}
}

API cuPointerGetAttributes(unsigned int count, const int *attributes, void **values,
			   uint64_t address)
{
	for (unsigned int i = 0; i < count; i++) {
		if (cuPointerGetAttribute(values[i], attributes[i], address))
			memset(values[i], 0, attributes[i] == 2 || attributes[i] == 9 ? 4 : 8);
	}
	return 0;
}
