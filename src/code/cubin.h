/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA device code as ELF files ("cubin"): its functions, and the source lines and inlined calls
 * of an instruction. Files are untrusted.
 */
#ifndef TS_CODE_CUBIN_H
#define TS_CODE_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"

struct ts_cubin;

/* Copies what it needs. TS_EFORMAT: not a cubin. */
int ts_cubin_open(struct ts_cubin **ret_cubin, const void *image, size_t bytes,
		  struct ts_error *err);
void ts_cubin_close(struct ts_cubin *cubin);
TS_DEFINE_AUTO(ts_cubin, ts_cubin_close);

/* Linker names in file order; NULL: no more. The cursor starts at 0. Borrowed. */
const char *ts_cubin_function_next(const struct ts_cubin *cubin, size_t *cursor);

/* Symbol index, and offset in its section; false: no function of that name. */
bool ts_cubin_find(const struct ts_cubin *cubin, const char *function, size_t *ret_symbol,
		   uint64_t *ret_address);

/* False: built without line information (nvcc -lineinfo adds it). */
bool ts_cubin_has_lines(const struct ts_cubin *cubin);

/* Strings are borrowed. */
struct ts_cubin_location {
	const char *file;
	uint32_t line;
	const char *function; /* linker name; NULL: the function that was asked for */
};

/*
 * Source locations of an instruction: the innermost first, then its inlined callers outwards.
 * Returns their number, at most `most`.
 */
size_t ts_cubin_locations(const struct ts_cubin *cubin, const char *function, uint64_t offset,
			  struct ts_cubin_location *ret_locations, size_t most);

#endif
