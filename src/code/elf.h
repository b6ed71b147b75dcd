/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files of programs and libraries, as far as a profiler needs them: symbols, sections, the
 * function of an address, the build id, the unwind tables. Files are untrusted: out-of-bounds data
 * is treated as missing. Addresses are those of the file (st_value); the caller adds a mapping's
 * bias.
 */
#ifndef TS_CODE_ELF_H
#define TS_CODE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"

struct ts_elf;

/*
 * Maps the file; the descriptor may be closed afterwards. TS_EFORMAT: not a 64-bit ELF file in this
 * machine's byte order. `name` is copied, for messages.
 */
int ts_elf_open(struct ts_elf **ret_elf, int fd, const char *name, struct ts_error *err);
/*
 * The same from the file's bytes, which are copied: for images that exist only in a process's
 * memory.
 */
int ts_elf_open_image(struct ts_elf **ret_elf, const void *image, size_t bytes, const char *name,
		      struct ts_error *err);
void ts_elf_close(struct ts_elf *elf);
TS_DEFINE_AUTO(ts_elf, ts_elf_close);

/* Lower-case hexadecimal; "": none. */
const char *ts_elf_build_id(const struct ts_elf *elf);
uint16_t ts_elf_machine(const struct ts_elf *elf); /* e_machine */

struct ts_elf_range {
	uint64_t address, bytes;
	uint64_t file_offset; /* address of the first byte; 0 file bytes: .bss and similar */
	uint64_t file_bytes;
};

/* Searches .dynsym and .symtab. */
bool ts_elf_symbol(const struct ts_elf *elf, const char *name, struct ts_elf_range *ret_range);
bool ts_elf_section(const struct ts_elf *elf, const char *name, struct ts_elf_range *ret_range);
/* The contents of a section; NULL: not in the file. Borrowed. */
const void *ts_elf_section_bytes(const struct ts_elf *elf, const char *name, size_t *ret_bytes);
/*
 * The load address of a file offset according to PT_LOAD, to compare with a line of /proc/PID/maps.
 */
bool ts_elf_address_of_offset(const struct ts_elf *elf, uint64_t file_offset,
			      uint64_t *ret_address);
/*
 * The load bias of a mapping, given its start and offset from /proc/PID/maps. Adjacent segments
 * share pages of the file, so the offset alone does not identify the segment; best used with an
 * executable mapping, of which there is usually one. False: no segment maps like that.
 */
bool ts_elf_bias(const struct ts_elf *elf, uint64_t start, uint64_t file_offset, bool is_executable,
		 uint64_t *ret_bias);
/* Segments of a type (PT_...), in order; false: no more. */
bool ts_elf_segment(const struct ts_elf *elf, uint32_t type, size_t index, uint32_t *ret_flags,
		    struct ts_elf_range *ret_range);
/* Writable PT_LOAD segments, in order; false: no more. */
bool ts_elf_data_segment(const struct ts_elf *elf, size_t index, struct ts_elf_range *ret_range);

/*
 * The function that contains an address; the name is borrowed. The first call sorts the symbols,
 * which takes time for large files. False: unknown.
 */
bool ts_elf_function_at(struct ts_elf *elf, uint64_t address, const char **ret_name,
			uint64_t *ret_start);

#endif
