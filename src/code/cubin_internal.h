/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of struct ts_cubin, shared by cubin.c, cubin_header.c and cubin_lines.c. */
#ifndef TS_CODE_CUBIN_INTERNAL_H
#define TS_CODE_CUBIN_INTERNAL_H

#include "code/cubin.h"
#include "code/elf_internal.h"
#include "code/local/cursor.h"

/* A path. Rows index all files of the cubin. */
#define CUBIN_MOST_FILES (1u << 20)
#define CUBIN_MOST_ROWS (1u << 24)

/* From this address up to that of the next row, code comes from this line. */
struct cubin_row {
	uint64_t address;
	uint32_t file; /* plus 1; 0: unknown */
	uint32_t line;
	uint32_t caller;   /* the row it is inlined into, plus 1; 0: none */
	uint32_t function; /* its name then: offset in the strings */
};

/* Rows of contiguous code. */
struct cubin_sequence {
	uint32_t section; /* ELF section index; 0: unknown */
	size_t first, count;
	uint64_t end;
};

/* What an address in .debug_line is relative to. */
struct cubin_fix {
	uint64_t offset; /* in .debug_line */
	uint64_t value;
	uint32_t section;
};

struct ts_cubin {
	struct ts_elf *elf;
	const Elf64_Sym *symbols;
	size_t symbol_count;
	const char *names; /* symbol names; NUL-terminated */
	size_t name_bytes;
	const char *strings; /* .debug_str; NUL-terminated, or missing */
	size_t string_bytes;
	const char *line_strings; /* .debug_line_str; NULL: missing */
	size_t line_string_bytes;

	char **files;
	size_t file_count, file_capacity;
	size_t path_bytes;       /* of all of them */
	struct cubin_fix *fixes; /* by offset */
	size_t fix_count;
	struct cubin_row *rows;
	size_t row_count, row_capacity;
	struct cubin_sequence *sequences;
	size_t sequence_count, sequence_capacity;
};

/* Header of a line program. */
struct cubin_program {
	struct ts_cursor code; /* its instructions */
	uint16_t version;
	uint8_t minimum_bytes, line_range, opcode_base;
	int8_t line_base;
	uint8_t operands[256];
	size_t first_file; /* in the cubin's files: number 0 or 1, by version */
	size_t file_count;
};

/*
 * A program's header and its files. False: malformed, or no memory; the cursor is past the program
 * in any case.
 */
bool cubin_read_header(struct ts_cubin *cubin, struct ts_cursor *section,
		       struct cubin_program *ret_program);

/* All rows of .debug_line, as far as they are valid. */
void cubin_read_lines(struct ts_cubin *cubin, const uint8_t *lines, size_t bytes);

#endif
