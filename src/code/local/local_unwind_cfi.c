/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow path: unwinds the calling thread's stack with all callee-saved registers and complete CFI
 * rules, for signal frames, assembly and whatever local_unwind.c has no rule for. A few hundred ns
 * per frame.
 */
#include "code/local/cfi.h"
#include "code/local/local_unwind.h"
#include "code/local/registers.h"

#define ADDRESS_BITS 48

struct state {
	struct ts_unwind_registers registers;
	struct ts_cfi_memory memory;
	struct ts_local_unwind_bounds bounds;
	const uint8_t *expressions;
	bool is_interrupted;
};

static bool is_known(const struct ts_unwind_registers *registers, unsigned int reg)
{
	return reg < TS_UNWIND_REGISTERS && registers->known >> reg & 1;
}

static void set(struct ts_unwind_registers *registers, unsigned int reg, uint64_t value)
{
	registers->known |= UINT64_C(1) << reg;
	registers->values[reg] = value;
}

static void begin(struct state *state, const struct ts_local_unwind_registers *captured)
{
	struct ts_unwind_registers *registers = &state->registers;

	registers->known = 0;
#if defined(__x86_64__)
	set(registers, 3, captured->values[TS_LOCAL_UNWIND_RBX]);
	for (unsigned int i = 0; i < 4; i++)
		set(registers, 12 + i, captured->values[TS_LOCAL_UNWIND_R12 + i]);
#else
	for (unsigned int i = 0; i < 10; i++)
		set(registers, 19 + i, captured->values[TS_LOCAL_UNWIND_X19 + i]);
	set(registers, TS_REGISTER_LR, captured->values[TS_LOCAL_UNWIND_LR]);
#endif
	set(registers, TS_REGISTER_FP, captured->values[TS_LOCAL_UNWIND_FP]);
	set(registers, TS_REGISTER_SP, captured->values[TS_LOCAL_UNWIND_SP]);
	set(registers, TS_REGISTER_PC, captured->values[TS_LOCAL_UNWIND_PC]);
	state->is_interrupted = false;
}

/* The stack that contains the stack pointer: a signal may have its own. */
static void enter_stack(struct state *state)
{
	uint64_t sp = state->registers.values[TS_REGISTER_SP];

	/*
	 * On the same stack the lower bound stays: rules of a function about to return may lead
	 * below.
	 */
	if (sp - state->memory.address < state->memory.count)
		return;
	state->bounds = ts_local_unwind_bounds_of(sp);
	state->memory = (struct ts_cfi_memory){ .bytes = (const uint8_t *)(uintptr_t)sp,
						.address = sp,
						.count = state->bounds.high - sp };
}

static bool evaluate(const struct state *state, const struct ts_cfi_rule *rule,
		     const uint64_t *frame, uint64_t *ret_value)
{
	return ts_cfi_evaluate(state->expressions + rule->value, rule->bytes, &state->registers,
			       &state->memory, frame, ret_value);
}

static bool find_frame(const struct state *state, const struct ts_cfi_rule *rule,
		       uint64_t *ret_frame)
{
	if (rule->kind == TS_CFI_EXPRESSION)
		return evaluate(state, rule, NULL, ret_frame);
	if (!is_known(&state->registers, rule->reg))
		return false;
	*ret_frame = state->registers.values[rule->reg] + (uint64_t)rule->value;
	return true;
}

static bool find_value(const struct state *state, const struct ts_cfi_rule *rule, uint64_t frame,
		       uint64_t *ret_value)
{
	uint64_t address;

	switch (rule->kind) {
	case TS_CFI_AT:
		return ts_cfi_memory_word(&state->memory, frame + (uint64_t)rule->value, ret_value);
	case TS_CFI_SUM:
		*ret_value = frame + (uint64_t)rule->value;
		return true;
	case TS_CFI_REGISTER:
		*ret_value = is_known(&state->registers, rule->reg)
				     ? state->registers.values[rule->reg]
				     : 0;
		return is_known(&state->registers, rule->reg);
	case TS_CFI_AT_EXPRESSION:
		return evaluate(state, rule, &frame, &address) &&
		       ts_cfi_memory_word(&state->memory, address, ret_value);
	case TS_CFI_EXPRESSION:
		return evaluate(state, rule, &frame, ret_value);
	default: /* TS_CFI_UNDEFINED */
		return false;
	}
}

/* All rules refer to the callee's registers. */
static void apply_rules(struct state *state, const struct ts_cfi_row *row, uint64_t frame)
{
	struct ts_unwind_registers next = state->registers;

	next.known &= TS_REGISTERS_KEPT;
	set(&next, TS_REGISTER_SP, frame);
	for (unsigned int i = 0; i < TS_UNWIND_REGISTERS; i++) {
		uint64_t value;

		if (row->rules[i].kind == TS_CFI_SAME)
			continue;
		next.known &= ~(UINT64_C(1) << i);
		if (find_value(state, &row->rules[i], frame, &value))
			set(&next, i, value);
	}
	state->registers = next;
}

static bool leave_signal(struct state *state)
{
#if defined(__aarch64__)
	struct ts_unwind_registers *registers = &state->registers;
	uint64_t sp = registers->values[TS_REGISTER_SP], value;

	registers->known = 0;
	for (unsigned int i = 0; i < TS_UNWIND_REGISTERS; i++)
		if (ts_cfi_memory_word(&state->memory, sp + TS_SIGNAL_REGISTERS + 8 * i, &value))
			set(registers, i, value);
	return is_known(registers, TS_REGISTER_PC) && is_known(registers, TS_REGISTER_SP);
#else
	(void)state;
	return false;
#endif
}

static bool apply(struct state *state, const struct ts_cfi_row *row)
{
	uint64_t sp = state->registers.values[TS_REGISTER_SP], frame;

	if (row->frame.kind == TS_CFI_SAME)
		return leave_signal(state);
	if (!find_frame(state, &row->frame, &frame) ||
	    (!row->is_signal && (frame < sp || frame > state->bounds.high)))
		return false;
	apply_rules(state, row, frame);
	return is_known(&state->registers, row->return_register);
}

/* False: *ret_end says why. */
static bool go_on(struct state *state, enum ts_local_unwind_end *ret_end)
{
	uint64_t pc = state->registers.values[TS_REGISTER_PC];
	struct ts_cfi_row row;

	*ret_end = TS_LOCAL_UNWIND_NO_TABLES;
	if (!ts_local_unwind_find_row(state->is_interrupted ? pc : pc - 1, &row,
				      &state->expressions))
		return false;
	*ret_end = TS_LOCAL_UNWIND_COMPLETE;
	if (row.rules[row.return_register].kind == TS_CFI_UNDEFINED)
		return false;
	*ret_end = TS_LOCAL_UNWIND_OTHER_STACK;
	if (!apply(state, &row))
		return false;
	pc = state->registers.values[row.return_register];
#if defined(__aarch64__)
	pc &= (UINT64_C(1) << ADDRESS_BITS) - 1;
#endif
	set(&state->registers, TS_REGISTER_PC, pc);
	state->is_interrupted = row.is_signal;
	if (row.is_signal)
		enter_stack(state);
	*ret_end = TS_LOCAL_UNWIND_COMPLETE;
	return pc != 0;
}

void ts_local_unwind_walk_cfi(const struct ts_local_unwind_registers *captured,
			      struct ts_local_unwind_stack *stack)
{
	uint64_t generation = ts_local_unwind_generation();
	struct state state;

	state.memory.count = 0;
	begin(&state, captured);
	enter_stack(&state);
	stack->count = 0;
	while (go_on(&state, &stack->end)) {
		uint64_t pc = state.registers.values[TS_REGISTER_PC] + state.is_interrupted;

		if (stack->count == stack->capacity) {
			stack->end = TS_LOCAL_UNWIND_TOO_DEEP;
			break;
		}
		stack->pcs[stack->count++] = pc;
	}
	stack->hash = ts_local_unwind_hash_end(ts_local_unwind_hash(stack, generation), stack->end);
}
