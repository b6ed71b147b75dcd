/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: what .eh_frame says of how the caller's registers are found from those of
 * a function, at each of its instructions. Tables are not trusted: what does not fit says nothing,
 * and every loop ends. Addresses are the file's. Knows files and tables in memory, not processes.
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
	const uint8_t *table; /* of .eh_frame_hdr: pairs of int32_t, relative to its address */
	size_t table_count;
	uint64_t header_address;
	struct ts_cfi_entry *entries; /* our own, where the file has no such table; by address */
	size_t entry_count, entry_capacity;
	bool is_indexed;
	void (*make_entries)(struct ts_cfi *cfi); /* NULL: they are not made */
};

/* Borrows from `elf`, which must stay. */
void ts_cfi_init(struct ts_cfi *cfi, const struct ts_elf *elf);
void ts_cfi_release(struct ts_cfi *cfi);

/* A part of a file as it is mapped in this process. */
struct ts_cfi_segment {
	const void *bytes;
	uint64_t address; /* in the file */
	size_t count;
};
/*
 * Of tables that lie in memory: `header` is .eh_frame_hdr, of this address in the file; both it and
 * .eh_frame lie in that segment. Borrows, takes nothing from the heap, and is not released. Where
 * the header has no sorted table, nothing is found.
 */
void ts_cfi_init_mapped(struct ts_cfi *cfi, const void *header, uint64_t header_address,
			const struct ts_cfi_segment *segment);

enum ts_cfi_kind {
	TS_CFI_SAME,      /* as it is; for what nothing is said of */
	TS_CFI_UNDEFINED, /* lost */
	TS_CFI_AT,        /* in memory at the frame's address + value */
	TS_CFI_SUM,       /* the frame's address + value */
	TS_CFI_REGISTER,  /* another register + value */
	TS_CFI_AT_EXPRESSION,
	TS_CFI_EXPRESSION,
};

struct ts_cfi_rule {
	uint8_t kind;
	uint8_t reg;    /* TS_CFI_REGISTER: which */
	uint32_t bytes; /* of the expression */
	int64_t value;  /* or its offset in .eh_frame */
};

struct ts_cfi_row {
	uint64_t start, end; /* of the function */
	uint8_t return_register;
	bool is_signal; /* the kernel called it: its caller was interrupted, not calling */
	bool is_signed; /* aarch64: the return address has a code in its upper bits */
	struct ts_cfi_rule frame; /* how the frame's address is computed */
	struct ts_cfi_rule rules[TS_UNWIND_REGISTERS];
};

/* False: nothing is said of this address. */
bool ts_cfi_find(struct ts_cfi *cfi, uint64_t address, struct ts_cfi_row *ret_row);

/* ---- for the parts ---- */

struct ts_cursor;

/* A CIE: what several FDEs have in common. */
struct ts_cfi_common {
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t return_register;
	uint8_t encoding; /* of addresses in FDEs */
	bool has_augmentation;
	bool is_signal;
	const uint8_t *program, *program_end;
};

/* cfi_file.c: our own table, in the heap. */
void ts_cfi_make_entries(struct ts_cfi *cfi);

/* cfi.c: the table of .eh_frame_hdr, whose address `cfi` has already. */
void ts_cfi_read_header(struct ts_cfi *cfi, const uint8_t *header, size_t bytes);
/* The next FDE of .eh_frame from *offset on, which moves behind it. False: there is none. */
bool ts_cfi_next(const struct ts_cfi *cfi, size_t *offset, struct ts_cfi_entry *ret_entry);

/* cfi.c: a pointer in one of the DW_EH_PE encodings. */
uint64_t ts_cfi_pointer(const struct ts_cfi *cfi, struct ts_cursor *cursor, uint8_t encoding);

/* cfi_program.c: runs the instructions up to an address. */
bool ts_cfi_run(const struct ts_cfi *cfi, const struct ts_cfi_common *common,
		const uint8_t *program, const uint8_t *program_end, uint64_t address,
		struct ts_cfi_row *row);

/* A copy of a part of a process's memory. */
struct ts_cfi_memory {
	const uint8_t *bytes;
	uint64_t address;
	size_t count;
};
bool ts_cfi_memory_word(const struct ts_cfi_memory *memory, uint64_t address, uint64_t *ret_word);

/*
 * cfi_expression.c: `first`: what is on its stack at first, NULL: nothing. False: it cannot be
 * told.
 */
bool ts_cfi_evaluate(const uint8_t *expression, size_t bytes,
		     const struct ts_unwind_registers *registers,
		     const struct ts_cfi_memory *memory, const uint64_t *first,
		     uint64_t *ret_value);

#endif
