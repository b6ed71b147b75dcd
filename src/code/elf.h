/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files of programs and libraries, as far as a profiler needs them: where a symbol or a
 * section lies, which function an address is in, the build id, the tables for unwinding. Nothing
 * in a file is trusted: what does not fit in it is not there. Addresses are those of the file
 * (st_value); a mapping's bias is added by the caller.
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
 * Maps the file; the descriptor may be closed then. TS_EFORMAT: no ELF file of 64 bits and of this
 * machine's byte order. `name`: for messages, is copied.
 */
int ts_elf_open(struct ts_elf **ret_elf, int fd, const char *name, struct ts_error *err);
/* The same of a file's bytes, which are copied: what lies in a process's memory alone. */
int ts_elf_open_image(struct ts_elf **ret_elf, const void *image, size_t bytes, const char *name,
		      struct ts_error *err);
void ts_elf_close(struct ts_elf *elf);
TS_DEFINE_AUTO(ts_elf, ts_elf_close);

/* Lower-case hexadecimal; "": there is none. */
const char *ts_elf_build_id(const struct ts_elf *elf);
uint16_t ts_elf_machine(const struct ts_elf *elf); /* e_machine */

struct ts_elf_range {
	uint64_t address, bytes;
	uint64_t file_offset; /* of the first byte; 0 bytes in the file: .bss and its kin */
	uint64_t file_bytes;
};

/* In .dynsym or .symtab. */
bool ts_elf_symbol(const struct ts_elf *elf, const char *name, struct ts_elf_range *ret_range);
bool ts_elf_section(const struct ts_elf *elf, const char *name, struct ts_elf_range *ret_range);
/* The content of a section that is in the file; NULL: it is not. Borrowed. */
const void *ts_elf_section_bytes(const struct ts_elf *elf, const char *name, size_t *ret_bytes);
/*
 * Where an offset of the file is loaded, as PT_LOAD says: what a line of /proc/PID/maps is compared
 * with.
 */
bool ts_elf_address_of_offset(const struct ts_elf *elf, uint64_t file_offset,
			      uint64_t *ret_address);
/*
 * What is to be added to the file's addresses in a mapping: its start and offset as a line of
 * /proc/PID/maps has them. Neighbours share pages of the file, so that the offset alone does not
 * say which segment it is; best asked with an executable one, of which there is mostly one. False:
 * no segment is mapped so.
 */
bool ts_elf_bias(const struct ts_elf *elf, uint64_t start, uint64_t file_offset, bool is_executable,
		 uint64_t *ret_bias);
/* Segments of a type (PT_...), in order; false: there are no more. */
bool ts_elf_segment(const struct ts_elf *elf, uint32_t type, size_t index, uint32_t *ret_flags,
		    struct ts_elf_range *ret_range);
/* Writable PT_LOAD segments, in order; false: there are no more. */
bool ts_elf_data_segment(const struct ts_elf *elf, size_t index, struct ts_elf_range *ret_range);

/*
 * The function that an address lies in; the name is borrowed. Sorted at the first call, which takes
 * its time with large files. False: not known.
 */
bool ts_elf_function_at(struct ts_elf *elf, uint64_t address, const char **ret_name,
			uint64_t *ret_start);

#endif
