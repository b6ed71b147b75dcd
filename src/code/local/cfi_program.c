/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs .eh_frame instructions (DW_CFA_...): each changes register rules from some address of the
 * function on. Running them up to an address leaves the rules that apply there.
 */
#include <elf.h>

#include "base/local/macros.h"
#include "code/local/cfi.h"
#include "code/local/cursor.h"

#define MAX_REMEMBERED 8u

struct machine {
	const struct ts_cfi *cfi;
	const struct ts_cfi_common *common;
	struct ts_cursor cursor;
	uint64_t at, stop; /* address of the current rules, and the one asked for */
	struct ts_cfi_row *row;
	struct ts_cfi_rule initial[TS_UNWIND_REGISTERS]; /* after the CIE's program */
	struct {
		struct ts_cfi_rule frame;
		struct ts_cfi_rule rules[TS_UNWIND_REGISTERS];
		bool is_signed;
	} remembered[MAX_REMEMBERED];
	unsigned int remembered_count;
};

/* ---- rules ---- */

/* Vector registers have higher numbers than we track: parse and ignore. */
static void set_rule(struct machine *machine, uint64_t reg, struct ts_cfi_rule rule)
{
	if (reg < TS_UNWIND_REGISTERS)
		machine->row->rules[reg] = rule;
}

static void set_offset(struct machine *machine, uint64_t reg, enum ts_cfi_kind kind,
		       int64_t factored)
{
	int64_t offset;

	if (__builtin_mul_overflow(factored, machine->common->data_factor, &offset))
		ts_cursor_fail(&machine->cursor);
	else
		set_rule(machine, reg,
			 (struct ts_cfi_rule){ .kind = (uint8_t)kind, .value = offset });
}

static void restore_rule(struct machine *machine, uint64_t reg)
{
	if (reg < TS_UNWIND_REGISTERS)
		machine->row->rules[reg] = machine->initial[reg];
}

static struct ts_cfi_rule read_expression(struct machine *machine, enum ts_cfi_kind kind)
{
	struct ts_cursor *cursor = &machine->cursor;
	uint64_t bytes = ts_cursor_uleb(cursor);
	struct ts_cfi_rule rule = { .kind = (uint8_t)kind,
				    .value = cursor->at - machine->cfi->frames };

	ts_cursor_skip(cursor, bytes);
	rule.bytes = cursor->is_bad ? 0 : (uint32_t)bytes;
	return rule;
}

static void set_frame(struct machine *machine, uint64_t reg, int64_t offset)
{
	if (reg >= TS_UNWIND_REGISTERS) {
		ts_cursor_fail(&machine->cursor);
		return;
	}
	machine->row->frame = (struct ts_cfi_rule){ .kind = TS_CFI_REGISTER,
						    .reg = (uint8_t)reg,
						    .value = offset };
}

static void remember(struct machine *machine)
{
	if (machine->remembered_count == MAX_REMEMBERED) {
		ts_cursor_fail(&machine->cursor);
		return;
	}
	machine->remembered[machine->remembered_count].frame = machine->row->frame;
	machine->remembered[machine->remembered_count].is_signed = machine->row->is_signed;
	memcpy(machine->remembered[machine->remembered_count].rules, machine->row->rules,
	       sizeof(machine->row->rules));
	machine->remembered_count++;
}

static void recall(struct machine *machine)
{
	if (machine->remembered_count == 0) {
		ts_cursor_fail(&machine->cursor);
		return;
	}
	machine->remembered_count--;
	machine->row->frame = machine->remembered[machine->remembered_count].frame;
	machine->row->is_signed = machine->remembered[machine->remembered_count].is_signed;
	memcpy(machine->row->rules, machine->remembered[machine->remembered_count].rules,
	       sizeof(machine->row->rules));
}

/* ---- instructions ---- */

/* False: the following rules apply beyond the requested address. */
static bool advance(struct machine *machine, uint64_t factored)
{
	uint64_t by;

	if (__builtin_mul_overflow(factored, machine->common->code_factor, &by) ||
	    __builtin_add_overflow(machine->at, by, &machine->at))
		return false;
	return machine->at <= machine->stop;
}

static void run_rule(struct machine *machine, uint8_t code)
{
	struct ts_cursor *cursor = &machine->cursor;
	uint64_t reg = ts_cursor_uleb(cursor), other;

	switch (code) {
	case 0x05: /* offset_extended */
		set_offset(machine, reg, TS_CFI_AT, (int64_t)ts_cursor_uleb(cursor));
		break;
	case 0x06: /* restore_extended */
		restore_rule(machine, reg);
		break;
	case 0x07: /* undefined */
		set_rule(machine, reg, (struct ts_cfi_rule){ .kind = TS_CFI_UNDEFINED });
		break;
	case 0x08: /* same_value */
		set_rule(machine, reg, (struct ts_cfi_rule){ .kind = TS_CFI_SAME });
		break;
	case 0x09: /* register */
		other = ts_cursor_uleb(cursor);
		set_rule(machine, reg,
			 (struct ts_cfi_rule){ .kind = TS_CFI_REGISTER,
					       .reg = (uint8_t)TS_MIN(other, UINT8_MAX) });
		break;
	case 0x10: /* expression */
		set_rule(machine, reg, read_expression(machine, TS_CFI_AT_EXPRESSION));
		break;
	case 0x11: /* offset_extended_sf */
		set_offset(machine, reg, TS_CFI_AT, ts_cursor_sleb(cursor));
		break;
	case 0x14: /* val_offset */
		set_offset(machine, reg, TS_CFI_SUM, (int64_t)ts_cursor_uleb(cursor));
		break;
	case 0x15: /* val_offset_sf */
		set_offset(machine, reg, TS_CFI_SUM, ts_cursor_sleb(cursor));
		break;
	case 0x16: /* val_expression */
		set_rule(machine, reg, read_expression(machine, TS_CFI_EXPRESSION));
		break;
	default: /* GNU_negative_offset_extended */
		set_offset(machine, reg, TS_CFI_AT, (int64_t)(0 - ts_cursor_uleb(cursor)));
		break;
	}
}

static void run_frame_rule(struct machine *machine, uint8_t code)
{
	struct ts_cursor *cursor = &machine->cursor;
	struct ts_cfi_rule *frame = &machine->row->frame;
	uint64_t reg = frame->reg;
	int64_t offset = frame->value;

	if (code == 0x0f) { /* def_cfa_expression */
		*frame = read_expression(machine, TS_CFI_EXPRESSION);
		return;
	}
	/* def_cfa and def_cfa_sf are complete; the others change one part of an existing rule. */
	if (code != 0x0c && code != 0x12 && frame->kind != TS_CFI_REGISTER)
		ts_cursor_fail(cursor);
	if (code == 0x0c || code == 0x0d || code == 0x12)
		reg = ts_cursor_uleb(cursor);
	if (code == 0x0c || code == 0x0e)
		offset = (int64_t)ts_cursor_uleb(cursor);
	else if ((code == 0x12 || code == 0x13) &&
		 __builtin_mul_overflow(ts_cursor_sleb(cursor), machine->common->data_factor,
					&offset))
		ts_cursor_fail(cursor);
	set_frame(machine, reg, offset);
}

static bool run_extended(struct machine *machine, uint8_t code)
{
	struct ts_cursor *cursor = &machine->cursor;

	switch (code) {
	case 0x00: /* nop */
		return true;
	case 0x01: /* set_loc */
		machine->at = ts_cfi_pointer(machine->cfi, cursor, machine->common->encoding);
		return machine->at <= machine->stop;
	case 0x02:
		return advance(machine, ts_cursor_u8(cursor));
	case 0x03:
		return advance(machine, ts_cursor_u16(cursor));
	case 0x04:
		return advance(machine, ts_cursor_u32(cursor));
	case 0x0a:
		remember(machine);
		return true;
	case 0x0b:
		recall(machine);
		return true;
	case 0x0c:
	case 0x0d:
	case 0x0e:
	case 0x0f:
	case 0x12:
	case 0x13:
		run_frame_rule(machine, code);
		return true;
	case 0x2c: /* aarch64: negate_ra_state_with_pc */
	case 0x2d: /* aarch64: negate_ra_state */
		machine->row->is_signed = !machine->row->is_signed;
		return true;
	case 0x2e: /* GNU_args_size */
		ts_cursor_uleb(cursor);
		return true;
	case 0x05:
	case 0x06:
	case 0x07:
	case 0x08:
	case 0x09:
	case 0x10:
	case 0x11:
	case 0x14:
	case 0x15:
	case 0x16:
	case 0x2f:
		run_rule(machine, code);
		return true;
	default:
		ts_cursor_fail(cursor);
		return false;
	}
}

static bool run_one(struct machine *machine)
{
	uint8_t code = ts_cursor_u8(&machine->cursor);
	uint8_t low = code & 0x3f;

	switch (code >> 6) {
	case 1:
		return advance(machine, low);
	case 2:
		set_offset(machine, low, TS_CFI_AT, (int64_t)ts_cursor_uleb(&machine->cursor));
		return true;
	case 3:
		restore_rule(machine, low);
		return true;
	default:
		return run_extended(machine, code);
	}
}

/* Each instruction has at least one byte, so this terminates. */
static bool run_program(struct machine *machine, const uint8_t *program, const uint8_t *end)
{
	bool goes_on = true;

	machine->cursor = (struct ts_cursor){ .at = program, .end = end };
	while (goes_on && machine->cursor.at < machine->cursor.end)
		goes_on = run_one(machine);
	return !machine->cursor.is_bad;
}

bool ts_cfi_run(const struct ts_cfi *cfi, const struct ts_cfi_common *common,
		const uint8_t *program, const uint8_t *program_end, uint64_t address,
		struct ts_cfi_row *row)
{
	struct machine machine;

	machine.cfi = cfi;
	machine.common = common;
	machine.at = row->start;
	machine.stop = address;
	machine.row = row;
	machine.remembered_count = 0;
	memset(machine.initial, 0, sizeof(machine.initial));
	if (!run_program(&machine, common->program, common->program_end))
		return false;
	memcpy(machine.initial, row->rules, sizeof(machine.initial));
	return run_program(&machine, program, program_end) && row->frame.kind != TS_CFI_SAME;
}
