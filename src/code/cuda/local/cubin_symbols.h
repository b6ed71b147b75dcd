/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a capture must know about device code: its variables, kernels that cannot be replayed
 * because of what they call (docs/cuda-replay.md, section 6), and parameters of kernels. Reads
 * cubins and PTX, which are untrusted. Any thread may call this.
 */
#ifndef TS_CODE_CUDA_LOCAL_CUBIN_SYMBOLS_H
#define TS_CODE_CUDA_LOCAL_CUBIN_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A variable in global or constant memory. */
struct ts_code_variable {
	char *name;
	uint64_t bytes; /* 0: unknown (PTX) */
	bool is_constant, is_managed;
	/* Where it is in a cubin, while that is read. */
	uint32_t section;
	uint64_t offset;
};

/* A word of a variable into which the driver writes the address of a function. */
struct ts_code_pointer {
	char *variable, *function;
	uint64_t offset; /* in the variable */
};

/* A kernel that allocates or launches, or may call a function that does. */
struct ts_code_refused {
	char *name;
	const char *why; /* "calls malloc or free on the device"; static */
};

struct ts_code_facts {
	struct ts_code_variable *variables;
	size_t variable_count, variable_capacity;
	struct ts_code_refused *refused;
	size_t refused_count, refused_capacity;
	struct ts_code_pointer *pointers; /* by variable and offset */
	size_t pointer_count, pointer_capacity;
	char *texture; /* a texture or surface reference, of CUDA before 12; NULL: none */
	/* Why something is not known: "libzstd.so.1 was not found"; NULL: all is. Static. */
	const char *unknown;
};

/* Of the code in an image that runs on a device of this compute capability. */
void ts_code_facts_read(struct ts_code_facts *facts, const void *image, size_t bytes,
			unsigned int major, unsigned int minor);
void ts_code_facts_release(struct ts_code_facts *facts);
/* Why the kernel cannot be replayed; NULL: it can, or is not known. */
const char *ts_code_facts_refused(const struct ts_code_facts *facts, const char *kernel);

/* Offsets and sizes in the block of parameters. False: not known. */
#define TS_CODE_PARAMS 1024u
struct ts_code_params {
	uint32_t count, bytes;
	uint16_t offsets[TS_CODE_PARAMS], sizes[TS_CODE_PARAMS];
};
bool ts_code_params_read(struct ts_code_params *params, const char *kernel, const void *image,
			 size_t bytes, unsigned int major, unsigned int minor);

/* ---- code_facts.c, for cubin_symbols.c and ptx_symbols.c ---- */

/* Copies the name. False: no memory. */
bool ts_code_add_variable(struct ts_code_facts *facts, const char *name, size_t name_bytes,
			  uint64_t bytes, bool is_constant, bool is_managed);
bool ts_code_add_refused(struct ts_code_facts *facts, const char *name, size_t name_bytes,
			 const char *why);
bool ts_code_add_pointer(struct ts_code_facts *facts, const char *variable, uint64_t offset,
			 const char *function);
/* What calling this function means; NULL: it is harmless. */
const char *ts_code_function_refused(const char *name, size_t bytes);
/* A graph of calls: its nodes are numbered. */
struct ts_code_call {
	uint32_t caller, callee;
};
/*
 * `why` of each node that calls, directly or not, one that has a `why` is set to that. Sorts the
 * calls. False: no memory.
 */
bool ts_code_spread(const char **why, size_t count, struct ts_code_call *calls, size_t call_count);
bool ts_cubin_params(struct ts_code_params *params, const char *kernel, const uint8_t *cubin,
		     size_t bytes);
bool ts_cubin_facts(struct ts_code_facts *facts, const uint8_t *cubin, size_t bytes);
bool ts_ptx_facts(struct ts_code_facts *facts, const char *text, size_t bytes);

#endif
