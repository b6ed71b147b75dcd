/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates DWARF expressions, as far as unwinding needs them: PLT stubs, signal frames and
 * realigned stacks have such rules. A stack machine over registers and copied memory.
 */
#include "code/local/cfi.h"
#include "code/local/cursor.h"

#define MAX_STEPS 512u
#define MAX_VALUES 32u

struct evaluation {
	struct ts_cursor cursor;
	const uint8_t *start;
	const struct ts_unwind_registers *registers;
	const struct ts_cfi_memory *memory;
	uint64_t values[MAX_VALUES];
	unsigned int count;
};

typedef uint64_t word_anywhere __attribute__((aligned(1), may_alias));

/* A sanitizer would reject reads of other frames. */
__attribute__((no_sanitize("address"))) bool ts_cfi_memory_word(const struct ts_cfi_memory *memory,
								uint64_t address,
								uint64_t *ret_word)
{
	if (address < memory->address || memory->count < sizeof(*ret_word) ||
	    address - memory->address > memory->count - sizeof(*ret_word))
		return false;
	*ret_word = *(const word_anywhere *)(memory->bytes + (address - memory->address));
	return true;
}

static void push(struct evaluation *evaluation, uint64_t value)
{
	if (evaluation->count == MAX_VALUES)
		ts_cursor_fail(&evaluation->cursor);
	else
		evaluation->values[evaluation->count++] = value;
}

static uint64_t pop(struct evaluation *evaluation)
{
	if (evaluation->count == 0) {
		ts_cursor_fail(&evaluation->cursor);
		return 0;
	}
	return evaluation->values[--evaluation->count];
}

/* From the top: 0 is the newest. */
static uint64_t pick(struct evaluation *evaluation, unsigned int index)
{
	if (index >= evaluation->count) {
		ts_cursor_fail(&evaluation->cursor);
		return 0;
	}
	return evaluation->values[evaluation->count - 1 - index];
}

static void push_register(struct evaluation *evaluation, uint64_t reg, int64_t offset)
{
	if (reg >= TS_UNWIND_REGISTERS || !(evaluation->registers->known >> reg & 1))
		ts_cursor_fail(&evaluation->cursor);
	else
		push(evaluation, evaluation->registers->values[reg] + (uint64_t)offset);
}

static void push_memory(struct evaluation *evaluation, unsigned int bytes)
{
	uint64_t address = pop(evaluation), word = 0;

	if (bytes == 0 || bytes > 8 || !ts_cfi_memory_word(evaluation->memory, address, &word)) {
		ts_cursor_fail(&evaluation->cursor);
		return;
	}
	push(evaluation, bytes == 8 ? word : word & (((uint64_t)1 << 8 * bytes) - 1));
}

/* Backward jumps are allowed: the number of steps is limited. */
static void jump(struct evaluation *evaluation, int16_t by)
{
	struct ts_cursor *cursor = &evaluation->cursor;

	if (by < evaluation->start - cursor->at || by > cursor->end - cursor->at)
		ts_cursor_fail(cursor);
	else
		cursor->at += by;
}

/* ---- operations ---- */

static void run_constant(struct evaluation *evaluation, uint8_t code)
{
	struct ts_cursor *cursor = &evaluation->cursor;

	switch (code) {
	case 0x08:
		push(evaluation, ts_cursor_u8(cursor));
		break;
	case 0x09:
		push(evaluation, (uint64_t)(int64_t)(int8_t)ts_cursor_u8(cursor));
		break;
	case 0x0a:
		push(evaluation, ts_cursor_u16(cursor));
		break;
	case 0x0b:
		push(evaluation, (uint64_t)(int64_t)(int16_t)ts_cursor_u16(cursor));
		break;
	case 0x0c:
		push(evaluation, ts_cursor_u32(cursor));
		break;
	case 0x0d:
		push(evaluation, (uint64_t)(int64_t)(int32_t)ts_cursor_u32(cursor));
		break;
	case 0x10:
		push(evaluation, ts_cursor_uleb(cursor));
		break;
	case 0x11:
		push(evaluation, (uint64_t)ts_cursor_sleb(cursor));
		break;
	default: /* const8u, const8s */
		push(evaluation, ts_cursor_u64(cursor));
		break;
	}
}

static void run_stack(struct evaluation *evaluation, uint8_t code)
{
	uint64_t a, b, c;

	switch (code) {
	case 0x12: /* dup */
		push(evaluation, pick(evaluation, 0));
		break;
	case 0x13: /* drop */
		pop(evaluation);
		break;
	case 0x14: /* over */
		push(evaluation, pick(evaluation, 1));
		break;
	case 0x15: /* pick */
		push(evaluation, pick(evaluation, ts_cursor_u8(&evaluation->cursor)));
		break;
	case 0x16: /* swap */
		a = pop(evaluation);
		b = pop(evaluation);
		push(evaluation, a);
		push(evaluation, b);
		break;
	default: /* rot */
		a = pop(evaluation);
		b = pop(evaluation);
		c = pop(evaluation);
		push(evaluation, a);
		push(evaluation, c);
		push(evaluation, b);
		break;
	}
}

static uint64_t shift(uint64_t value, uint64_t by, uint8_t code)
{
	bool is_negative = (int64_t)value < 0;

	if (code == 0x24)
		return by < 64 ? value << by : 0;
	if (code == 0x25)
		return by < 64 ? value >> by : 0;
	if (by >= 64)
		return is_negative ? UINT64_MAX : 0;
	return by && is_negative ? value >> by | UINT64_MAX << (64 - by) : value >> by;
}

static bool compare(int64_t a, int64_t b, uint8_t code)
{
	switch (code) {
	case 0x29:
		return a == b;
	case 0x2a:
		return a >= b;
	case 0x2b:
		return a > b;
	case 0x2c:
		return a <= b;
	case 0x2d:
		return a < b;
	default:
		return a != b;
	}
}

/* Signed division; an undefined result ends the expression. */
static uint64_t divide(struct evaluation *evaluation, uint64_t a, uint64_t b, uint8_t code)
{
	if (b == 0 || (code == 0x1b && a == (uint64_t)INT64_MIN && b == UINT64_MAX)) {
		ts_cursor_fail(&evaluation->cursor);
		return 0;
	}
	return code == 0x1b ? (uint64_t)((int64_t)a / (int64_t)b) : a % b;
}

static void run_two(struct evaluation *evaluation, uint8_t code)
{
	uint64_t b = pop(evaluation), a = pop(evaluation), result = 0;

	switch (code) {
	case 0x1a:
		result = a & b;
		break;
	case 0x1b: /* div */
	case 0x1d: /* mod */
		result = divide(evaluation, a, b, code);
		break;
	case 0x1c:
		result = a - b;
		break;
	case 0x1e:
		result = a * b;
		break;
	case 0x21:
		result = a | b;
		break;
	case 0x22:
		result = a + b;
		break;
	case 0x27:
		result = a ^ b;
		break;
	case 0x24:
	case 0x25:
	case 0x26:
		result = shift(a, b, code);
		break;
	default:
		result = compare((int64_t)a, (int64_t)b, code);
		break;
	}
	push(evaluation, result);
}

static void run_one_value(struct evaluation *evaluation, uint8_t code)
{
	uint64_t a = pop(evaluation);

	if (code == 0x19 && (int64_t)a < 0) /* abs */
		a = 0 - a;
	else if (code == 0x1f) /* neg */
		a = 0 - a;
	else if (code == 0x20) /* not */
		a = ~a;
	else if (code == 0x23) /* plus_uconst */
		a += ts_cursor_uleb(&evaluation->cursor);
	push(evaluation, a);
}

static void run_jump(struct evaluation *evaluation, uint8_t code)
{
	int16_t by = (int16_t)ts_cursor_u16(&evaluation->cursor);

	if (code == 0x2f || pop(evaluation) != 0) /* skip, else bra */
		jump(evaluation, by);
}

static void run_one(struct evaluation *evaluation)
{
	struct ts_cursor *cursor = &evaluation->cursor;
	uint8_t code = ts_cursor_u8(cursor);

	if (code >= 0x30 && code <= 0x4f) /* lit0 to lit31 */
		push(evaluation, code - 0x30u);
	else if (code >= 0x70 && code <= 0x8f) /* breg0 to breg31 */
		push_register(evaluation, code - 0x70u, ts_cursor_sleb(cursor));
	else if (code >= 0x08 && code <= 0x11)
		run_constant(evaluation, code);
	else if (code >= 0x12 && code <= 0x17)
		run_stack(evaluation, code);
	else if (code == 0x06) /* deref */
		push_memory(evaluation, 8);
	else if (code == 0x94) /* deref_size */
		push_memory(evaluation, ts_cursor_u8(cursor));
	else if (code == 0x19 || code == 0x1f || code == 0x20 || code == 0x23)
		run_one_value(evaluation, code);
	else if (code == 0x28 || code == 0x2f)
		run_jump(evaluation, code);
	else if (code >= 0x1a && code <= 0x2e)
		run_two(evaluation, code);
	else if (code == 0x92) { /* bregx */
		uint64_t reg = ts_cursor_uleb(cursor);

		push_register(evaluation, reg, ts_cursor_sleb(cursor));
	} else if (code != 0x96) /* nop */
		ts_cursor_fail(cursor);
}

bool ts_cfi_evaluate(const uint8_t *expression, size_t bytes,
		     const struct ts_unwind_registers *registers,
		     const struct ts_cfi_memory *memory, const uint64_t *first, uint64_t *ret_value)
{
	struct evaluation evaluation = {
		.cursor = { .at = expression, .end = expression + bytes },
		.start = expression,
		.registers = registers,
		.memory = memory,
	};

	if (first)
		push(&evaluation, *first);
	for (unsigned int i = 0; evaluation.cursor.at < evaluation.cursor.end; i++) {
		if (i == MAX_STEPS)
			return false;
		run_one(&evaluation);
	}
	if (evaluation.cursor.is_bad || evaluation.count == 0)
		return false;
	*ret_value = evaluation.values[evaluation.count - 1];
	return true;
}
