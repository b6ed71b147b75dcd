/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of struct ts_elf, shared by elf.c and elf_symbols.c. */
#ifndef TS_CODE_ELF_INTERNAL_H
#define TS_CODE_ELF_INTERNAL_H

#include <elf.h>

#include "code/elf.h"

/* A section's bytes, copied from the file on first use. */
struct ts_elf_copy {
	uint8_t *bytes; /* NULL: missing */
	bool is_tried;
};

struct ts_elf_function {
	uint64_t start, end; /* equal: size unknown */
	const char *name;
	unsigned int rank; /* of several names of one address the highest wins */
};

struct ts_elf {
	char *name;
	const uint8_t *image; /* of the file */
	size_t image_bytes;
	bool is_mapped; /* it may shrink at any time: only the kernel reads it, never we */
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	size_t segment_count;
	Elf64_Shdr *sections;
	size_t section_count;
	struct ts_elf_copy *copies; /* as many */
	char build_id[2 * 64 + 1];
	struct ts_elf_function *functions; /* by start, without overlaps of names */
	size_t function_count, function_capacity;
	bool has_functions;
};

/* The bytes of a section by its index; NULL: none in the file. */
const uint8_t *ts_elf_copy_section(const struct ts_elf *elf, size_t index, size_t *ret_bytes);

#endif
