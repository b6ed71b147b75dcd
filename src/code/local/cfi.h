/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: how .eh_frame recovers the caller's registers at each instruction of a
 * function. Tables are untrusted: invalid data is treated as missing, and every loop terminates.
 * Addresses are the file's. Knows files and tables in memory, not processes.
 */
#ifndef TS_CODE_LOCAL_CFI_H
#define TS_CODE_LOCAL_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code/local/registers.h"

struct ts_elf;

struct ts_cfi_entry {
	uint64_t start, end;
	size_t offset; /* of the FDE in .eh_frame */
};

struct ts_cfi {
	uint16_t machine;
	const uint8_t *frames; /* .eh_frame, of the struct ts_elf; NULL: there is none */
	size_t frames_bytes;
	uint64_t frames_address;
	const uint8_t *table; /* .eh_frame_hdr: pairs of int32_t, relative to its address */
	size_t table_count;
	uint64_t header_address;
	struct ts_cfi_entry *entries; /* built by us if the file has no such table; by address */
	size_t entry_count, entry_capacity;
	bool is_indexed;
	void (*make_entries)(struct ts_cfi *cfi); /* NULL: not built */
};

/* Borrows from `elf`, which must outlive it. */
void ts_cfi_init(struct ts_cfi *cfi, const struct ts_elf *elf);
void ts_cfi_release(struct ts_cfi *cfi);

/* A part of a file as mapped in this process. */
struct ts_cfi_segment {
	const void *bytes;
	uint64_t address; /* in the file */
	size_t count;
};
/*
 * The file address of .eh_frame, as .eh_frame_hdr has it: `header`, at this file address, in that
 * segment. False: invalid.
 */
bool ts_cfi_frames_address(const void *header, uint64_t header_address,
			   const struct ts_cfi_segment *segment, uint64_t *ret_address);
/*
 * For tables in memory: `header` as above, and the segment that contains .eh_frame, which is
 * another one if .eh_frame is writable. Borrows, allocates nothing, and needs no release. If the
 * header has no sorted table, nothing is found.
 */
void ts_cfi_init_mapped(struct ts_cfi *cfi, const void *header, uint64_t header_address,
			const struct ts_cfi_segment *segment, const struct ts_cfi_segment *frames);

enum ts_cfi_kind {
	TS_CFI_SAME,      /* unchanged; the default */
	TS_CFI_UNDEFINED, /* lost */
	TS_CFI_AT,        /* in memory at CFA + value */
	TS_CFI_SUM,       /* CFA + value */
	TS_CFI_REGISTER,  /* another register + value */
	TS_CFI_AT_EXPRESSION,
	TS_CFI_EXPRESSION,
};

struct ts_cfi_rule {
	uint8_t kind;
	uint8_t reg;    /* TS_CFI_REGISTER: which register */
	uint32_t bytes; /* of the expression */
	int64_t value;  /* or its offset in .eh_frame */
};

struct ts_cfi_row {
	uint64_t start, end; /* of the function */
	uint8_t return_register;
	bool is_signal; /* a signal frame: its caller was interrupted, not calling */
	bool is_signed; /* aarch64: the return address is signed (PAC) in its upper bits */
	struct ts_cfi_rule frame; /* how to compute the CFA */
	struct ts_cfi_rule rules[TS_UNWIND_REGISTERS];
};

/* False: no information for this address. */
bool ts_cfi_find(struct ts_cfi *cfi, uint64_t address, struct ts_cfi_row *ret_row);

/* ---- internal ---- */

struct ts_cursor;

/* A CIE: the common part of several FDEs. */
struct ts_cfi_common {
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t return_register;
	uint8_t encoding; /* of addresses in FDEs */
	bool has_augmentation;
	bool is_signal;
	const uint8_t *program, *program_end;
};

/* cfi_file.c: our own table, on the heap. */
void ts_cfi_make_entries(struct ts_cfi *cfi);

/* cfi.c: reads .eh_frame_hdr, whose address `cfi` has already. */
void ts_cfi_read_header(struct ts_cfi *cfi, const uint8_t *header, size_t bytes);
/* The next FDE of .eh_frame at or after *offset, which moves past it. False: no more. */
bool ts_cfi_next(const struct ts_cfi *cfi, size_t *offset, struct ts_cfi_entry *ret_entry);

/* cfi.c: a pointer in one of the DW_EH_PE encodings. */
uint64_t ts_cfi_pointer(const struct ts_cfi *cfi, struct ts_cursor *cursor, uint8_t encoding);

/* cfi_program.c: runs the instructions up to an address. */
bool ts_cfi_run(const struct ts_cfi *cfi, const struct ts_cfi_common *common,
		const uint8_t *program, const uint8_t *program_end, uint64_t address,
		struct ts_cfi_row *row);

/* A copy of part of a process's memory. */
struct ts_cfi_memory {
	const uint8_t *bytes;
	uint64_t address;
	size_t count;
};
bool ts_cfi_memory_word(const struct ts_cfi_memory *memory, uint64_t address, uint64_t *ret_word);

/* cfi_expression.c. `first`: initial stack value; NULL: empty stack. False: cannot be evaluated. */
bool ts_cfi_evaluate(const uint8_t *expression, size_t bytes,
		     const struct ts_unwind_registers *registers,
		     const struct ts_cfi_memory *memory, const uint64_t *first,
		     uint64_t *ret_value);

#endif
