/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds frame by frame, from registers and a copy of the stack.
 *
 * The .eh_frame rules of an address are looked up once and cached as a step, so that a frame costs
 * a hash lookup and a few loads. Without rules (JIT code, assembly) it follows the frame pointer,
 * or in the innermost function takes the word on top of the stack or the link register, but only if
 * that is the address after a call instruction. If the rules need the frame pointer and it is
 * unknown (only two registers of a blocked thread are known), it is computed from the function's
 * prologue, which gives the frame size, or the stack is searched for the return address of a direct
 * call to this function; either must lead to a return address. Nothing else is guessed: a stack
 * that cannot be followed ends there, incomplete.
 */
#include "code/unwind.h"

#include "code/native_internal.h"

#define MAX_STEPS 65536u
#define MAX_SAVED_BYTES 4096
#define PROLOGUE_BYTES 96u /* prologue bytes */
#define SEARCH_BYTES 8192u /* stack bytes to search for a lost frame pointer */
#define ADDRESS_BITS 48    /* aarch64 address bits; a pointer signature is above */

enum outcome { LOST, WENT_ON, ENDED };

/* ---- steps ---- */

static unsigned int count_rules(const struct ts_cfi_row *row)
{
	unsigned int count = 0;

	for (size_t i = 0; i < TS_UNWIND_REGISTERS; i++)
		count += row->rules[i].kind != TS_CFI_SAME;
	return count;
}

static uint32_t saved_bytes(const struct ts_cfi_rule *rule)
{
	return rule->value > -MAX_SAVED_BYTES ? (uint32_t)-rule->value : 0;
}

static void copy_rules(const struct ts_cfi_row *row, struct ts_native_step *step)
{
	for (size_t i = 0; i < TS_UNWIND_REGISTERS; i++) {
		if (row->rules[i].kind == TS_CFI_SAME)
			continue;
		step->rules[step->count].whose = (uint8_t)i;
		step->rules[step->count++].rule = row->rules[i];
		if (row->rules[i].kind == TS_CFI_AT && row->rules[i].value < 0)
			step->saved_bytes = TS_MAX(step->saved_bytes, saved_bytes(&row->rules[i]));
	}
}

static struct ts_native_step *make_step(struct ts_native_process *native,
					const struct ts_native_range *range, uint64_t address)
{
	struct ts_native_module *module = range->module;
	struct ts_cfi_row row;
	struct ts_native_step *step;
	bool has_rules;

	ts_native_open_module(native, range);
	has_rules = ts_cfi_find(&module->cfi, address - module->bias, &row);
	step = ts_arena_alloc_zeroed(&native->step_texts, 1,
				     sizeof(*step) + (has_rules ? count_rules(&row) : 0) *
							     sizeof(step->rules[0]));
	if (!step)
		return NULL;
	step->pc = address - module->bias;
	step->code = ts_native_code_at(native, range, step->pc, has_rules ? &row : NULL);
	step->has_rules = has_rules;
	if (has_rules) {
		step->function_start = row.start + module->bias;
		step->expressions = module->cfi.frames;
		step->is_signal = row.is_signal;
		step->is_signed = row.is_signed;
		step->return_register = row.return_register;
		step->frame = row.frame;
		copy_rules(&row, step);
	}
	return step->code ? step : NULL;
}

/* NULL: no code there. */
static const struct ts_native_step *find_step(struct ts_native_process *native, uint64_t address)
{
	const struct ts_native_range *range;
	struct ts_native_step *step;
	uint64_t known;

	if (ts_map_get(&native->steps, address, &known))
		return (const struct ts_native_step *)(uintptr_t)known;
	range = ts_native_range_refresh(native, address);
	if (!range)
		return NULL;
	if (ts_map_count(&native->steps) == MAX_STEPS) {
		ts_map_clear(&native->steps);
		ts_arena_clear(&native->step_texts);
	}
	step = make_step(native, range, address);
	if (step && ts_map_put(&native->steps, address, (uintptr_t)step))
		return NULL;
	return step;
}

/* ---- registers ---- */

struct state {
	struct ts_native_process *native;
	struct ts_unwind_registers registers;
	struct ts_cfi_memory memory;
	bool is_interrupted; /* the function made no call: innermost, or interrupted by a signal */
};

static bool is_known(const struct ts_unwind_registers *registers, unsigned int reg)
{
	return reg < TS_UNWIND_REGISTERS && registers->known >> reg & 1;
}

static void set_register(struct ts_unwind_registers *registers, unsigned int reg, uint64_t value)
{
	registers->known |= (uint64_t)1 << reg;
	registers->values[reg] = value;
}

static bool evaluate(const struct state *state, const struct ts_native_step *step,
		     const struct ts_cfi_rule *rule, const uint64_t *frame, uint64_t *ret_value)
{
	return ts_cfi_evaluate(step->expressions + rule->value, rule->bytes, &state->registers,
			       &state->memory, frame, ret_value);
}

/* The CFA: the stack pointer before the call. */
static bool find_frame(const struct state *state, const struct ts_native_step *step,
		       uint64_t *ret_frame)
{
	const struct ts_cfi_rule *rule = &step->frame;

	if (rule->kind == TS_CFI_EXPRESSION)
		return evaluate(state, step, rule, NULL, ret_frame);
	if (!is_known(&state->registers, rule->reg))
		return false;
	*ret_frame = state->registers.values[rule->reg] + (uint64_t)rule->value;
	return true;
}

/*
 * When a function has popped its registers and is about to return, compilers leave the rules
 * unchanged: they refer to words below the stack pointer. Those may not have been copied, but the
 * registers still hold the values.
 */
static bool find_saved(const struct state *state, unsigned int whose, uint64_t address,
		       uint64_t *ret_value)
{
	if (ts_cfi_memory_word(&state->memory, address, ret_value))
		return true;
	if (!state->is_interrupted || address >= state->registers.values[TS_REGISTER_SP] ||
	    !is_known(&state->registers, whose))
		return false;
	*ret_value = state->registers.values[whose];
	return true;
}

/* The caller's value of a register; false: lost. */
static bool find_value(const struct state *state, const struct ts_native_step *step,
		       unsigned int whose, const struct ts_cfi_rule *rule, uint64_t frame,
		       uint64_t *ret_value)
{
	uint64_t address;

	switch (rule->kind) {
	case TS_CFI_AT:
		return find_saved(state, whose, frame + (uint64_t)rule->value, ret_value);
	case TS_CFI_SUM:
		*ret_value = frame + (uint64_t)rule->value;
		return true;
	case TS_CFI_REGISTER:
		if (!is_known(&state->registers, rule->reg))
			return false;
		*ret_value = state->registers.values[rule->reg];
		return true;
	case TS_CFI_AT_EXPRESSION:
		return evaluate(state, step, rule, &frame, &address) &&
		       ts_cfi_memory_word(&state->memory, address, ret_value);
	case TS_CFI_EXPRESSION:
		return evaluate(state, step, rule, &frame, ret_value);
	default: /* TS_CFI_UNDEFINED */
		return false;
	}
}

static bool has_ended(const struct ts_native_step *step)
{
	for (unsigned int i = 0; i < step->count; i++) {
		if (step->rules[i].whose == step->return_register)
			return step->rules[i].rule.kind == TS_CFI_UNDEFINED;
	}
	return false;
}

/* ---- by rules ---- */

/* All rules refer to the callee's registers. */
static void apply_rules(struct state *state, const struct ts_native_step *step, uint64_t frame)
{
	struct ts_unwind_registers next = state->registers;

	/* Caller-saved registers are lost, except where the kernel has saved all. */
	next.known &= TS_REGISTERS_KEPT;
	set_register(&next, TS_REGISTER_SP, frame);
	for (unsigned int i = 0; i < step->count; i++) {
		unsigned int whose = step->rules[i].whose;
		uint64_t value;

		next.known &= ~((uint64_t)1 << whose);
		if (find_value(state, step, whose, &step->rules[i].rule, frame, &value))
			set_register(&next, whose, value);
	}
	state->registers = next;
}

static uint64_t without_signature(uint64_t address)
{
#if defined(__aarch64__)
	return address & (((uint64_t)1 << ADDRESS_BITS) - 1);
#else
	return address;
#endif
}

/* ---- a frame pointer that is not known ---- */

#if defined(__x86_64__)

/* The caller's frame pointer and a return address end there. */
static bool is_frame(struct state *state, uint64_t frame)
{
	uint64_t pc, fp, target;

	return ts_cfi_memory_word(&state->memory, frame - 8, &pc) &&
	       ts_cfi_memory_word(&state->memory, frame - 16, &fp) &&
	       ts_return_address_check(state->native, pc, &target);
}

/* "sub rsp, N" in the prologue; 0: none. */
static uint32_t find_locals(const uint8_t *code, size_t bytes)
{
	uint32_t count = 0;

	for (size_t i = 0; i + 7 <= bytes && count == 0; i++) {
		if (code[i] != 0x48 || code[i + 2] != 0xec)
			continue;
		if (code[i + 1] == 0x83)
			count = code[i + 3];
		else if (code[i + 1] == 0x81)
			memcpy(&count, code + i + 3, sizeof(count));
	}
	return count;
}

/*
 * A frame consists of the saved registers (from the rules) and the locals (from the prologue), and
 * ends at the stack pointer, unless the function has allocated more since: then this finds no
 * return address.
 */
static bool measure_frame(struct state *state, const struct ts_native_step *step,
			  uint64_t *ret_frame)
{
	uint64_t sp = state->registers.values[TS_REGISTER_SP];
	uint64_t before = state->registers.values[TS_REGISTER_PC] - step->function_start;
	uint8_t code[PROLOGUE_BYTES];
	/* What follows may be the next function's prologue. */
	size_t bytes = ts_native_read(state->native, step->function_start, code,
				      TS_MIN(before, sizeof(code)));

	*ret_frame = sp + step->saved_bytes + find_locals(code, bytes);
	return step->saved_bytes >= 16 && is_frame(state, *ret_frame);
}

#else

static bool measure_frame(struct state *state, const struct ts_native_step *step,
			  uint64_t *ret_frame)
{
	(void)state;
	(void)step;
	(void)ret_frame;
	return false;
}

#endif

/* The first return address above the stack pointer whose call targets this function. */
static bool search_frame(struct state *state, const struct ts_native_step *step,
			 uint64_t *ret_frame)
{
	uint64_t sp = state->registers.values[TS_REGISTER_SP], target, word;

	for (uint64_t at = (sp + 7) & ~(uint64_t)7; at < sp + SEARCH_BYTES; at += 8) {
		if (!ts_cfi_memory_word(&state->memory, at, &word))
			return false;
		if (ts_return_address_check(state->native, word, &target) &&
		    target == step->function_start) {
			*ret_frame = at + 8;
			return true;
		}
	}
	return false;
}

static bool guess_frame(struct state *state, const struct ts_native_step *step, uint64_t *ret_frame)
{
	if (step->frame.kind != TS_CFI_REGISTER || step->frame.reg != TS_REGISTER_FP ||
	    is_known(&state->registers, TS_REGISTER_FP) || step->return_register != TS_REGISTER_PC)
		return false;
	if (!measure_frame(state, step, ret_frame) && !search_frame(state, step, ret_frame))
		return false;
	set_register(&state->registers, TS_REGISTER_FP, *ret_frame - (uint64_t)step->frame.value);
	return true;
}

/* ---- one step ---- */

static enum outcome go_by_rules(struct state *state, const struct ts_native_step *step)
{
	uint64_t sp = state->registers.values[TS_REGISTER_SP], frame, pc;

	if (has_ended(step))
		return ENDED;
	if (!find_frame(state, step, &frame) && !guess_frame(state, step, &frame))
		return LOST;
	/*
	 * Callers are further up; an innermost function may have no frame, and a signal its own
	 * stack.
	 */
	if (!step->is_signal && (frame < sp || (frame == sp && !state->is_interrupted)))
		return LOST;
	apply_rules(state, step, frame);
	if (!is_known(&state->registers, step->return_register))
		return LOST;
	pc = state->registers.values[step->return_register];
	if (step->is_signed)
		pc = without_signature(pc);
	set_register(&state->registers, TS_REGISTER_PC, pc);
	state->is_interrupted = step->is_signal;
	return WENT_ON;
}

/* ---- without rules ---- */

static void go_to(struct state *state, uint64_t pc, uint64_t sp, const uint64_t *fp)
{
	struct ts_unwind_registers *registers = &state->registers;

	registers->known = fp ? 0 : registers->known & TS_REGISTERS_KEPT;
	set_register(registers, TS_REGISTER_PC, pc);
	set_register(registers, TS_REGISTER_SP, sp);
	if (fp)
		set_register(registers, TS_REGISTER_FP, *fp);
	state->is_interrupted = false;
}

/* An innermost function that has not pushed anything yet. */
static bool leave_leaf(struct state *state)
{
	uint64_t sp = state->registers.values[TS_REGISTER_SP], pc, target;

	if (!state->is_interrupted)
		return false;
#if defined(__x86_64__)
	if (!ts_cfi_memory_word(&state->memory, sp, &pc))
		return false;
	sp += 8;
#else
	if (!is_known(&state->registers, TS_REGISTER_LR))
		return false;
	pc = without_signature(state->registers.values[TS_REGISTER_LR]);
#endif
	if (!ts_return_address_check(state->native, pc, &target))
		return false;
	go_to(state, pc, sp, NULL);
	return true;
}

/* Both architectures store the caller's frame pointer next to the return address. */
static enum outcome follow_frame_pointer(struct state *state)
{
	uint64_t fp = state->registers.values[TS_REGISTER_FP], next, pc, target;

	if (!is_known(&state->registers, TS_REGISTER_FP))
		return LOST;
	if (fp == 0)
		return ENDED;
	if (fp < state->registers.values[TS_REGISTER_SP] || fp % 8 != 0 ||
	    !ts_cfi_memory_word(&state->memory, fp, &next) ||
	    !ts_cfi_memory_word(&state->memory, fp + 8, &pc))
		return LOST;
	pc = without_signature(pc);
	if (!ts_return_address_check(state->native, pc, &target))
		return LOST;
	go_to(state, pc, fp + 16, &next);
	return WENT_ON;
}

/* ---- a signal ---- */

#if defined(__aarch64__)

static bool leave_signal(struct state *state)
{
	struct ts_unwind_registers *registers = &state->registers;
	uint64_t sp = registers->values[TS_REGISTER_SP], code, value;

	if (ts_native_read(state->native, registers->values[TS_REGISTER_PC], &code, sizeof(code)) !=
		    sizeof(code) ||
	    code != TS_SIGRETURN_CODE)
		return false;
	registers->known = 0;
	for (unsigned int i = 0; i < TS_UNWIND_REGISTERS; i++)
		if (ts_cfi_memory_word(&state->memory, sp + TS_SIGNAL_REGISTERS + 8 * i, &value))
			set_register(registers, i, value);
	state->is_interrupted = true;
	return is_known(registers, TS_REGISTER_PC);
}

#else

static bool leave_signal(struct state *state)
{
	(void)state;
	return false;
}

#endif

/* ---- all frames ---- */

static enum outcome go_on(struct state *state, const struct ts_native_step *step)
{
	enum outcome outcome;

	if (step->has_rules)
		outcome = go_by_rules(state, step);
	else if (leave_signal(state) || leave_leaf(state))
		outcome = WENT_ON;
	else
		outcome = follow_frame_pointer(state);
	/* Some thread start routines have return address 0. */
	if (outcome == WENT_ON && state->registers.values[TS_REGISTER_PC] == 0)
		outcome = ENDED;
	return outcome;
}

size_t ts_unwind_stack(struct ts_native_process *native,
		       const struct ts_unwind_registers *registers, const void *stack,
		       uint64_t stack_address, size_t stack_bytes,
		       struct ts_native_frame *ret_frames, size_t count, bool *ret_complete)
{
	struct state state = {
		.native = native,
		.registers = *registers,
		.memory = { .bytes = stack, .address = stack_address, .count = stack_bytes },
		.is_interrupted = true,
	};
	enum outcome outcome = WENT_ON;
	size_t found = 0;

	*ret_complete = false;
	if (!is_known(registers, TS_REGISTER_PC) || !is_known(registers, TS_REGISTER_SP))
		return 0;
	while (found < count && outcome == WENT_ON) {
		uint64_t pc = state.registers.values[TS_REGISTER_PC];
		/*
		 * A return address may be in the next function, if the call was the last
		 * instruction.
		 */
		const struct ts_native_step *step =
			find_step(native, state.is_interrupted ? pc : pc - 1);

		if (!step)
			break;
		ret_frames[found++] =
			(struct ts_native_frame){ .code = step->code, .pc = step->pc };
		outcome = go_on(&state, step);
	}
	*ret_complete = outcome == ENDED;
	return found;
}
