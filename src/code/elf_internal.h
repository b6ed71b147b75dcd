/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of struct ts_elf, shared by elf.c and elf_symbols.c. */
#ifndef TS_CODE_ELF_INTERNAL_H
#define TS_CODE_ELF_INTERNAL_H

#include <elf.h>

#include "code/elf.h"

/* A section's bytes, taken out of the file when they are first asked for. */
struct ts_elf_copy {
	uint8_t *bytes; /* NULL: not there */
	bool is_tried;
};

struct ts_elf_function {
	uint64_t start, end; /* equal: the size is not known */
	const char *name;
	unsigned int rank; /* which of several names of one address is taken: the highest */
};

struct ts_elf {
	char *name;
	const uint8_t *image; /* of the file */
	size_t image_bytes;
	bool is_mapped; /* it may shrink at any time: is read by the kernel, never by us */
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

/* The bytes of a section by its index; NULL: it has none in the file. */
const uint8_t *ts_elf_copy_section(const struct ts_elf *elf, size_t index, size_t *ret_bytes);

#endif
