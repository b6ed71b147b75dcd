/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs line programs of cubins. They are DWARF with an NVIDIA extension: rows after it belong to a
 * function inlined at an earlier row of the same sequence, counted from 1. NVIDIA's assembler
 * omits, and does not count, a row in which only file and caller differ from the row before. That
 * is detected, since the next change follows without a row.
 */
#include "code/cubin_internal.h"

enum {
	STANDARD_COPY = 1,
	STANDARD_ADVANCE_PC = 2,
	STANDARD_ADVANCE_LINE = 3,
	STANDARD_SET_FILE = 4,
	STANDARD_CONST_ADD_PC = 8,
	STANDARD_FIXED_ADVANCE_PC = 9,
};
enum {
	EXTENDED_END = 1,
	EXTENDED_SET_ADDRESS = 2,
	EXTENDED_INLINED_CALL = 0x90,
};

struct machine {
	struct ts_cubin *cubin;
	const struct cubin_program *program;
	const uint8_t *lines; /* start of .debug_line */
	/* State of the sequence. */
	struct cubin_sequence sequence;
	uint32_t *numbered; /* its rows, as callers count them, plus 1 */
	size_t numbered_count, numbered_capacity;
	/* The next row. */
	uint64_t address;
	uint64_t file, line;
	uint64_t caller, function;
	bool has_file, has_call; /* set since the last row */
	bool is_full;
};

static void begin_sequence(struct machine *machine)
{
	machine->sequence = (struct cubin_sequence){ .first = machine->cubin->row_count };
	machine->numbered_count = 0;
	machine->address = 0;
	machine->file = machine->line = 1;
	machine->caller = machine->function = 0;
	machine->has_file = machine->has_call = false;
}

/* Index in the cubin's files, plus 1; 0: no such file. */
static uint32_t file_of(const struct machine *machine)
{
	const struct cubin_program *program = machine->program;
	uint64_t index = program->version >= 5 ? machine->file : machine->file - 1;

	return index < program->file_count ? (uint32_t)(program->first_file + index + 1) : 0;
}

static uint32_t caller_of(const struct machine *machine)
{
	return machine->caller - 1 < machine->numbered_count
		       ? machine->numbered[machine->caller - 1]
		       : 0;
}

static void add_row(struct machine *machine, bool is_counted)
{
	struct ts_cubin *cubin = machine->cubin;
	size_t count = cubin->row_count;

	machine->has_file = machine->has_call = false;
	if (count >= CUBIN_MOST_ROWS ||
	    ts_grow_array((void **)&cubin->rows, &cubin->row_capacity, count + 1,
			  sizeof(*cubin->rows)) ||
	    ts_grow_array((void **)&machine->numbered, &machine->numbered_capacity,
			  machine->numbered_count + 1, sizeof(*machine->numbered))) {
		machine->is_full = true;
		return;
	}
	cubin->rows[count] = (struct cubin_row){
		.address = machine->address,
		.file = file_of(machine),
		.line = machine->line <= UINT32_MAX ? (uint32_t)machine->line : 0,
		.caller = caller_of(machine),
		.function = machine->function <= UINT32_MAX ? (uint32_t)machine->function
							    : UINT32_MAX,
	};
	cubin->row_count++;
	machine->sequence.count++;
	if (is_counted)
		machine->numbered[machine->numbered_count++] = (uint32_t)cubin->row_count;
}

static void end_sequence(struct machine *machine)
{
	struct ts_cubin *cubin = machine->cubin;

	machine->sequence.end = machine->address;
	if (!machine->sequence.count)
		return;
	if (ts_grow_array((void **)&cubin->sequences, &cubin->sequence_capacity,
			  cubin->sequence_count + 1, sizeof(*cubin->sequences))) {
		machine->is_full = true;
		return;
	}
	cubin->sequences[cubin->sequence_count++] = machine->sequence;
}

/* ---- instructions ---- */

/* The omitted row. */
static void add_missing(struct machine *machine)
{
	if (machine->sequence.count)
		add_row(machine, false);
}

static const struct cubin_fix *find_fix(const struct ts_cubin *cubin, uint64_t offset)
{
	size_t low = 0, high = cubin->fix_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (cubin->fixes[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < cubin->fix_count && cubin->fixes[low].offset == offset ? &cubin->fixes[low]
									    : NULL;
}

static void set_address(struct machine *machine, struct ts_cursor *operands)
{
	const struct cubin_fix *fix =
		find_fix(machine->cubin, (uint64_t)(operands->at - machine->lines));

	machine->address = ts_cursor_u64(operands);
	if (!fix)
		return;
	machine->address = fix->value;
	machine->sequence.section = fix->section;
}

static void inlined_call(struct machine *machine, struct ts_cursor *operands)
{
	if (machine->has_call)
		add_missing(machine);
	machine->caller = ts_cursor_uleb(operands);
	machine->function = ts_cursor_uleb(operands);
	machine->has_call = true;
}

static void run_extended(struct machine *machine, struct ts_cursor *code)
{
	uint64_t bytes = ts_cursor_uleb(code);
	struct ts_cursor operands;

	if (bytes > ts_cursor_left(code)) {
		ts_cursor_fail(code);
		return;
	}
	operands = (struct ts_cursor){ .at = code->at, .end = code->at + bytes };
	code->at += bytes;
	switch (ts_cursor_u8(&operands)) {
	case EXTENDED_END:
		if (machine->has_call)
			add_missing(machine);
		end_sequence(machine);
		begin_sequence(machine);
		break;
	case EXTENDED_SET_ADDRESS:
		set_address(machine, &operands);
		break;
	case EXTENDED_INLINED_CALL:
		inlined_call(machine, &operands);
		break;
	default:
		break;
	}
}

static void advance(struct machine *machine, uint64_t instructions)
{
	machine->address += instructions * machine->program->minimum_bytes;
	machine->has_file = machine->has_call = false;
}

static void run_special(struct machine *machine, uint8_t opcode)
{
	const struct cubin_program *program = machine->program;
	uint8_t adjusted = (uint8_t)(opcode - program->opcode_base);

	machine->address += (uint64_t)(adjusted / program->line_range) * program->minimum_bytes;
	machine->line += (uint64_t)(int64_t)(program->line_base + adjusted % program->line_range);
	add_row(machine, true);
}

static void set_file(struct machine *machine, uint64_t file)
{
	/* NVIDIA's instructions come in pairs: file, then caller. */
	if (machine->has_call)
		add_missing(machine);
	machine->file = file;
	machine->has_file = true;
}

static void run_standard(struct machine *machine, struct ts_cursor *code, uint8_t opcode)
{
	const struct cubin_program *program = machine->program;

	switch (opcode) {
	case STANDARD_COPY:
		add_row(machine, true);
		break;
	case STANDARD_ADVANCE_PC:
		advance(machine, ts_cursor_uleb(code));
		break;
	case STANDARD_ADVANCE_LINE:
		machine->line += (uint64_t)ts_cursor_sleb(code);
		machine->has_file = machine->has_call = false;
		break;
	case STANDARD_SET_FILE:
		set_file(machine, ts_cursor_uleb(code));
		break;
	case STANDARD_CONST_ADD_PC:
		advance(machine, (255u - program->opcode_base) / program->line_range);
		break;
	case STANDARD_FIXED_ADVANCE_PC:
		machine->address += ts_cursor_u16(code);
		break;
	default:
		for (unsigned int i = 0; i < program->operands[opcode]; i++)
			ts_cursor_uleb(code);
	}
}

static void run(struct machine *machine)
{
	struct ts_cursor code = machine->program->code;

	begin_sequence(machine);
	while (!code.is_bad && !machine->is_full && ts_cursor_left(&code) > 0) {
		uint8_t opcode = ts_cursor_u8(&code);

		if (opcode >= machine->program->opcode_base)
			run_special(machine, opcode);
		else if (opcode == 0)
			run_extended(machine, &code);
		else
			run_standard(machine, &code, opcode);
	}
}

void cubin_read_lines(struct ts_cubin *cubin, const uint8_t *lines, size_t bytes)
{
	struct ts_cursor section = { .at = lines, .end = lines + bytes };
	struct cubin_program program;
	struct machine machine = { .cubin = cubin, .program = &program, .lines = lines };

	while (ts_cursor_left(&section) > 0 && !section.is_bad && !machine.is_full)
		if (cubin_read_header(cubin, &section, &program))
			run(&machine);
	free(machine.numbered);
}
