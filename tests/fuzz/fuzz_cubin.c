/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a cubin: looks up the source lines of every function. Must not crash, loop, or
 * return data that is not in the file.
 */
#include <string.h>

#include "code/cubin.h"
#include "lib/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_FUNCTIONS 16u
#define LOCATIONS 8u

static void look_up(const struct ts_cubin *cubin, const char *function)
{
	struct ts_cubin_location locations[LOCATIONS];
	uint64_t address;
	size_t symbol;

	check(ts_cubin_find(cubin, function, &symbol, &address), "a function that is not found");
	for (uint64_t offset = 0; offset < 0x1000; offset += 0x50) {
		size_t count = ts_cubin_locations(cubin, function, offset, locations, LOCATIONS);

		check(count <= LOCATIONS, "more places than there is room for");
		for (size_t i = 0; i < count; i++) {
			check(strlen(locations[i].file) < ((size_t)1 << 30),
			      "a file's name without end");
			if (locations[i].function)
				check(strlen(locations[i].function) < ((size_t)1 << 30),
				      "a name without end");
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ts_cubin *cubin = NULL;
	const char *function;
	size_t cursor = 0;

	if (ts_cubin_open(&cubin, data, size, NULL))
		return 0;
	for (size_t i = 0; i < MOST_FUNCTIONS; i++) {
		function = ts_cubin_function_next(cubin, &cursor);
		if (!function)
			break;
		look_up(cubin, function);
	}
	ts_cubin_close(cubin);
	return 0;
}
