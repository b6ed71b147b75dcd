/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of NVIDIA's devices as ELF files ("cubin"): its functions, and which source lines an
 * instruction comes from, with the calls that were inlined there. Nothing in a file is trusted.
 */
#ifndef TS_CODE_CUBIN_H
#define TS_CODE_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"

struct ts_cubin;

/* Copies what it needs of the bytes. TS_EFORMAT: no such file. */
int ts_cubin_open(struct ts_cubin **ret_cubin, const void *image, size_t bytes,
		  struct ts_error *err);
void ts_cubin_close(struct ts_cubin *cubin);
TS_DEFINE_AUTO(ts_cubin, ts_cubin_close);

/*
 * Names as the linker knows them, in the order of the file; NULL: there are no more. The cursor
 * begins as 0. Borrowed.
 */
const char *ts_cubin_function_next(const struct ts_cubin *cubin, size_t *cursor);

/* Number of its symbol, and where it begins in its section; false: there is none of that name. */
bool ts_cubin_find(const struct ts_cubin *cubin, const char *function, size_t *ret_symbol,
		   uint64_t *ret_address);

/* False: it was built without; nvcc -lineinfo makes them. */
bool ts_cubin_has_lines(const struct ts_cubin *cubin);

/* Texts are borrowed. */
struct ts_cubin_location {
	const char *file;
	uint32_t line;
	const char *function; /* as the linker knows it; NULL: that which was asked for */
};

/*
 * Where an instruction comes from: the innermost first, then where that was inlined, outwards.
 * Returns how many there are, at most `most`.
 */
size_t ts_cubin_locations(const struct ts_cubin *cubin, const char *function, uint64_t offset,
			  struct ts_cubin_location *places, size_t most);

#endif
