/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native call stack of the calling thread, in its own process: equal to what
 * _Unwind_Backtrace() says, frame by frame, at a twentieth of the cost. What .eh_frame says of a
 * return address is looked up once and kept as a rule of one word, so that a frame costs a look
 * into a table and two loads. Every load stays inside the thread's stack. x86_64 and aarch64.
 *
 * Runs inside observed programs: libc only, no heap but for what pthread_getattr_np() takes once a
 * thread, no locks of our own, and the loader's only for a return address that was not seen
 * before.
 */
#ifndef TS_CODE_LOCAL_LOCAL_UNWIND_H
#define TS_CODE_LOCAL_LOCAL_UNWIND_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers of a function at one of its instructions: all that it must give back as it got them. */
#if defined(__x86_64__)
enum {
	TS_LOCAL_UNWIND_RBX,
	TS_LOCAL_UNWIND_FP,
	TS_LOCAL_UNWIND_R12,
	TS_LOCAL_UNWIND_R13,
	TS_LOCAL_UNWIND_R14,
	TS_LOCAL_UNWIND_R15,
	TS_LOCAL_UNWIND_SP,
	TS_LOCAL_UNWIND_PC,
	TS_LOCAL_UNWIND_COUNT
};
#else /* aarch64 */
enum {
	TS_LOCAL_UNWIND_X19,
	TS_LOCAL_UNWIND_FP = 10,
	TS_LOCAL_UNWIND_LR,
	TS_LOCAL_UNWIND_SP,
	TS_LOCAL_UNWIND_PC,
	TS_LOCAL_UNWIND_COUNT
};
#endif

struct ts_local_unwind_registers {
	uint64_t values[TS_LOCAL_UNWIND_COUNT];
};

/* Inline, since they are those of the function that it stands in. */
__attribute__((always_inline)) static inline void ts_local_unwind_capture(
	struct ts_local_unwind_registers *ret_registers)
{
#if defined(__x86_64__)
	__asm__ volatile("movq %%rbx, 0(%0)\n\t"
			 "movq %%rbp, 8(%0)\n\t"
			 "movq %%r12, 16(%0)\n\t"
			 "movq %%r13, 24(%0)\n\t"
			 "movq %%r14, 32(%0)\n\t"
			 "movq %%r15, 40(%0)\n\t"
			 "movq %%rsp, 48(%0)\n\t"
			 "leaq 0(%%rip), %%rax\n\t"
			 "movq %%rax, 56(%0)"
			 :
			 : "D"(ret_registers->values)
			 : "rax", "memory");
#else
	__asm__ volatile("stp x19, x20, [%0, #0]\n\t"
			 "stp x21, x22, [%0, #16]\n\t"
			 "stp x23, x24, [%0, #32]\n\t"
			 "stp x25, x26, [%0, #48]\n\t"
			 "stp x27, x28, [%0, #64]\n\t"
			 "stp x29, x30, [%0, #80]\n\t"
			 "mov x16, sp\n\t"
			 "adr x17, .\n\t"
			 "stp x16, x17, [%0, #96]"
			 :
			 : "r"(ret_registers->values)
			 : "x16", "x17", "memory");
#endif
}

/* How a stack ends. */
enum ts_local_unwind_end {
	TS_LOCAL_UNWIND_COMPLETE,    /* with the program's or thread's first function */
	TS_LOCAL_UNWIND_NO_TABLES,   /* nothing is said of the last function: code made at run time,
				      * assembler
				      */
	TS_LOCAL_UNWIND_OTHER_STACK, /* beyond the thread's own stack: fibres, coroutines */
	TS_LOCAL_UNWIND_TOO_DEEP,    /* there is no room for more */
};

struct ts_local_unwind_last;

struct ts_local_unwind_stack {
	uint64_t *pcs; /* caller's */
	size_t capacity;
	/*
	 * The thread's stack before this one, which makes this one cheaper. NULL: none. Zeros at
	 * first; not while a handler has interrupted one who uses it.
	 */
	struct ts_local_unwind_last *last;
	size_t count;
	uint64_t hash; /* of all, and of how it ends; never 0 */
	enum ts_local_unwind_end end;
};

/*
 * The callers of the function that the registers are of, innermost first. Return addresses; of a
 * function that a signal interrupted: of its instruction plus 1, so that one byte back is always
 * inside. Any thread, also in signal handlers.
 */
void ts_local_unwind_walk(const struct ts_local_unwind_registers *captured,
			  struct ts_local_unwind_stack *stack);

/*
 * Another number where a library was unloaded since: what was kept of addresses is void. Behind
 * ts_local_unwind_walk().
 */
uint64_t ts_local_unwind_generation(void);

/* Another number where something was loaded since. */
uint64_t ts_local_unwind_loads(void);

/* What lies at an address, if that is code of a file. */
struct ts_local_unwind_module {
	uint64_t bias;
	uint64_t start, bytes; /* all of it */
	char path[1024];       /* "": the program itself */
	uint8_t build_id[64];
	size_t build_id_bytes;
};
bool ts_local_unwind_find_module(uint64_t address, struct ts_local_unwind_module *ret_module);

/* ---- for the parts ---- */

/*
 * A rule, in one word: how the caller's frame is found. Most functions need no more than stack and
 * frame pointer. Offsets are in words: 20 bits each. A return address of offset 0 is in the link
 * register.
 */
enum ts_local_unwind_frame {
	TS_LOCAL_UNWIND_FROM_SP,     /* the frame's address = sp + n */
	TS_LOCAL_UNWIND_FROM_FP,     /* fp + n */
	TS_LOCAL_UNWIND_FROM_MEMORY, /* what stands at fp - n: realigned stacks */
	TS_LOCAL_UNWIND_SPECIAL,     /* enum ts_local_unwind_special, in place of enum
					ts_local_unwind_pointer */
};
enum ts_local_unwind_pointer {
	TS_LOCAL_UNWIND_FP_SAME,
	TS_LOCAL_UNWIND_FP_SAVED, /* at the frame's address - n */
	TS_LOCAL_UNWIND_FP_AT_FP, /* at fp + n */
};
enum ts_local_unwind_special {
	TS_LOCAL_UNWIND_OUTERMOST, /* the outermost function */
	TS_LOCAL_UNWIND_LARGE,     /* needs all registers */
	TS_LOCAL_UNWIND_UNKNOWN    /* nothing is said of it */
};
#define TS_LOCAL_UNWIND_FRAME(rule) ((unsigned int)((rule)&3))
#define TS_LOCAL_UNWIND_POINTER(rule) ((unsigned int)((rule) >> 2 & 3))
#define TS_LOCAL_UNWIND_FRAME_OFFSET(rule) (((rule) >> 4 & 0xfffff) * 8)
#define TS_LOCAL_UNWIND_RETURN_OFFSET(rule) (((rule) >> 24 & 0xfffff) * 8)
#define TS_LOCAL_UNWIND_POINTER_OFFSET(rule) (((rule) >> 44 & 0xfffff) * 8)

#define TS_LOCAL_UNWIND_BUCKETS 16384u
#define TS_LOCAL_UNWIND_WAYS 4u

/*
 * Written and read without a lock: `check` is the key and a product of the rule, so that half of
 * one slot and half of another do not fit. A key is an address and the generation.
 */
struct ts_local_unwind_slot {
	uint64_t check, rule;
};
struct ts_local_unwind_table {
	struct ts_local_unwind_slot slots[TS_LOCAL_UNWIND_BUCKETS][TS_LOCAL_UNWIND_WAYS];
};
extern struct ts_local_unwind_table *ts_local_unwind_table; /* NULL: not made yet; atomic */
extern uint64_t ts_local_unwind_unloads;                    /* the generation; atomic */

static inline uint64_t ts_local_unwind_key(uint64_t pc, uint64_t generation)
{
	return pc + generation * UINT64_C(0x9e3779b97f4a7c15);
}

static inline size_t ts_local_unwind_bucket(uint64_t pc)
{
	return (size_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 50);
}
static_assert(TS_LOCAL_UNWIND_BUCKETS == 1u << (64 - 50), "as many bits");

static inline uint64_t ts_local_unwind_check(uint64_t key, uint64_t rule)
{
	return key ^ rule * UINT64_C(0xd6e8feb86659fd93);
}

struct ts_cfi_row;

/*
 * local_unwind_rules.c: the rule of an address that the table does not have, which has it then. May
 * change the generation.
 */
uint64_t ts_local_unwind_make_rule(uint64_t pc);
/* A rule that says that nothing is known, of a time when less was loaded. */
bool ts_local_unwind_is_stale(uint64_t rule);
/*
 * Whether what is loaded is still what it was, if that was not asked for some ms. May change the
 * generation.
 */
void ts_local_unwind_check_modules(void);
/* All that is said of an address. *ret_expressions: what offsets of expressions count from. */
bool ts_local_unwind_find_row(uint64_t address, struct ts_cfi_row *ret_row,
			      const uint8_t **ret_expressions);

/* local_unwind_cfi.c: the same as ts_local_unwind_walk(), with all registers; slow. */
void ts_local_unwind_walk_cfi(const struct ts_local_unwind_registers *captured,
			      struct ts_local_unwind_stack *stack);

struct ts_local_unwind_bounds {
	uint64_t low, high;
};
/*
 * local_unwind_bounds.c: of the stack that the address lies in; where it is not the thread's own,
 * what is sure to be memory.
 */
struct ts_local_unwind_bounds ts_local_unwind_bounds_of(uint64_t sp);

/* ---- local_unwind_cache.c ---- */

#define TS_LOCAL_UNWIND_LAST_FRAMES 256u
#define TS_LOCAL_UNWIND_LAST_WORDS 640u

/* Where a walk is, and the rule that leads to the caller's. */
struct ts_local_unwind_state {
	uint64_t pc, sp, fp, rule;
};

struct ts_local_unwind_word {
	uint64_t address, value;
};

/*
 * The last walk that came to the end of its stack. All but the trail is filled from the end,
 * outermost first: so the outer frames stay where they are.
 */
struct ts_local_unwind_last {
	uint64_t generation; /* void in another one */
	struct ts_local_unwind_bounds bounds;
	uint32_t count, words;
	uint64_t sps[TS_LOCAL_UNWIND_LAST_FRAMES]; /* ascending */
	uint64_t pcs[TS_LOCAL_UNWIND_LAST_FRAMES];
	uint64_t fps[TS_LOCAL_UNWIND_LAST_FRAMES];
	uint64_t hashes[TS_LOCAL_UNWIND_LAST_FRAMES];   /* of it and all outer ones */
	uint32_t words_of[TS_LOCAL_UNWIND_LAST_FRAMES]; /* so many, from the end, decide how it goes
							   on */
	bool needs_fp[TS_LOCAL_UNWIND_LAST_FRAMES];     /* its frame pointer does, too */
	struct ts_local_unwind_word word[TS_LOCAL_UNWIND_LAST_WORDS];
	struct ts_local_unwind_state
		trail[TS_LOCAL_UNWIND_LAST_FRAMES]; /* of the walk that is on; a ring */
};

/*
 * Whether so many words from the end on are what they were; *same: so many are known to be. All lie
 * above the stack pointer of the state that asks.
 */
bool ts_local_unwind_words_unchanged(const struct ts_local_unwind_last *last, uint32_t wanted,
				     uint32_t *same);

/*
 * Puts the states of the trail, but for the innermost one, inside of what is remembered. caller:
 * what the outermost of them led to; needs_fp and hash: that one's. Returns the hash of all.
 */
uint64_t ts_local_unwind_remember(struct ts_local_unwind_last *last,
				  const struct ts_local_unwind_stack *stack, size_t states,
				  struct ts_local_unwind_state caller, bool needs_fp,
				  uint64_t hash);

/* A word of the stack: of other functions' frames, which a sanitizer would not let us look at. */
__attribute__((no_sanitize("address"))) static inline uint64_t ts_local_unwind_stack_word(
	uint64_t address)
{
	return *(const uint64_t *)(uintptr_t)address;
}

/*
 * One more frame of a hash, from the outermost one on; no two frames give the same out of one hash,
 * nor one frame out of two.
 */
static inline uint64_t ts_local_unwind_hash_frame(uint64_t hash, uint64_t frame)
{
	return ((hash << 23 | hash >> 41) ^ frame) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t ts_local_unwind_mix(uint64_t hash, uint64_t value)
{
	unsigned __int128 product = (unsigned __int128)(hash ^ value) *
				    UINT64_C(0xa0761d6478bd642f);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Of frames that are there. */
static inline uint64_t ts_local_unwind_hash(const struct ts_local_unwind_stack *stack,
					    uint64_t generation)
{
	uint64_t hash = generation;

	for (size_t i = stack->count; i-- > 0;)
		hash = ts_local_unwind_hash_frame(hash, stack->pcs[i]);
	return hash;
}

static inline uint64_t ts_local_unwind_hash_end(uint64_t hash, enum ts_local_unwind_end end)
{
	return ts_local_unwind_mix(hash, (uint64_t)end + 1) | 1;
}

#endif
