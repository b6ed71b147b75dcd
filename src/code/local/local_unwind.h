/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native call stack of the calling thread: the same frames as _Unwind_Backtrace() at a twentieth of
 * the cost. The .eh_frame rules of a return address are looked up once and cached as a one-word
 * rule, so a frame costs a table lookup and two loads. Every load stays inside the thread's stack.
 * x86_64 and aarch64.
 *
 * Runs inside observed programs: libc only, no heap except what pthread_getattr_np() allocates once
 * per thread, no locks of our own, and the loader's only for a return address that was not seen
 * before.
 */
#ifndef TS_CODE_LOCAL_LOCAL_UNWIND_H
#define TS_CODE_LOCAL_LOCAL_UNWIND_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The callee-saved registers of a function at one of its instructions. */
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

/* Always inlined: captures the registers of the calling function. */
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

/* How a walk ends. */
enum ts_local_unwind_end {
	TS_LOCAL_UNWIND_COMPLETE,    /* at the first function of the program or thread */
	TS_LOCAL_UNWIND_NO_TABLES,   /* no unwind information for the last function: JIT code,
					assembly */
	TS_LOCAL_UNWIND_OTHER_STACK, /* outside the thread's own stack: fibres, coroutines */
	TS_LOCAL_UNWIND_TOO_DEEP,    /* capacity exhausted */
};

struct ts_local_unwind_last;

struct ts_local_unwind_stack {
	uint64_t *pcs; /* caller's storage */
	size_t capacity;
	/*
	 * The thread's previous stack, which makes this walk cheaper. NULL: none. Zeroed at first;
	 * must not be shared with a walk that a signal handler interrupted.
	 */
	struct ts_local_unwind_last *last;
	size_t count;
	uint64_t hash; /* of all frames and the end; never 0 */
	enum ts_local_unwind_end end;
};

/*
 * The callers of the function that the registers belong to, innermost first. Return addresses; for
 * a function interrupted by a signal, its instruction plus 1, so that one byte back is always
 * inside. Thread-safe and async-signal-safe.
 */
void ts_local_unwind_walk(const struct ts_local_unwind_registers *captured,
			  struct ts_local_unwind_stack *stack);

/*
 * Changes when a library has been unloaded: cached addresses are invalid then. Read after
 * ts_local_unwind_walk().
 */
uint64_t ts_local_unwind_generation(void);

/* Changes when something has been loaded. */
uint64_t ts_local_unwind_loads(void);

/* The mapped file at an address. */
struct ts_local_unwind_module {
	uint64_t bias;
	uint64_t start, bytes; /* the entire mapping */
	char path[1024];       /* "": the program itself */
	uint8_t build_id[64];
	size_t build_id_bytes;
};
bool ts_local_unwind_find_module(uint64_t address, struct ts_local_unwind_module *ret_module);

/* ---- internal ---- */

/*
 * An unwind rule in one word: how to find the caller's frame. Most functions need only the stack
 * and frame pointer. Offsets are in words, 20 bits each. A return address at offset 0 is in the
 * link register.
 */
enum ts_local_unwind_frame {
	TS_LOCAL_UNWIND_FROM_SP,     /* CFA = sp + n */
	TS_LOCAL_UNWIND_FROM_FP,     /* fp + n */
	TS_LOCAL_UNWIND_FROM_MEMORY, /* the word at fp - n: realigned stacks */
	TS_LOCAL_UNWIND_SPECIAL,     /* enum ts_local_unwind_special instead of enum
					ts_local_unwind_pointer */
};
enum ts_local_unwind_pointer {
	TS_LOCAL_UNWIND_FP_SAME,
	TS_LOCAL_UNWIND_FP_SAVED, /* at CFA - n */
	TS_LOCAL_UNWIND_FP_AT_FP, /* at fp + n */
};
enum ts_local_unwind_special {
	TS_LOCAL_UNWIND_OUTERMOST, /* the outermost function */
	TS_LOCAL_UNWIND_LARGE,     /* needs all registers */
	TS_LOCAL_UNWIND_UNKNOWN    /* no unwind information */
};
#define TS_LOCAL_UNWIND_FRAME(rule) ((unsigned int)((rule)&3))
#define TS_LOCAL_UNWIND_POINTER(rule) ((unsigned int)((rule) >> 2 & 3))
#define TS_LOCAL_UNWIND_FRAME_OFFSET(rule) (((rule) >> 4 & 0xfffff) * 8)
#define TS_LOCAL_UNWIND_RETURN_OFFSET(rule) (((rule) >> 24 & 0xfffff) * 8)
#define TS_LOCAL_UNWIND_POINTER_OFFSET(rule) (((rule) >> 44 & 0xfffff) * 8)

#define TS_LOCAL_UNWIND_BUCKETS 16384u
#define TS_LOCAL_UNWIND_WAYS 4u

/*
 * Lock-free: `check` combines the key and a product of the rule, so that halves of two different
 * writes never match. A key is an address and the generation.
 */
struct ts_local_unwind_slot {
	uint64_t check, rule;
};
struct ts_local_unwind_table {
	struct ts_local_unwind_slot slots[TS_LOCAL_UNWIND_BUCKETS][TS_LOCAL_UNWIND_WAYS];
};
extern struct ts_local_unwind_table *ts_local_unwind_table; /* NULL: not allocated yet; atomic */
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
 * local_unwind_rules.c: makes the rule of an address that is not in the table, and adds it. May
 * change the generation.
 */
uint64_t ts_local_unwind_make_rule(uint64_t pc);
/* An "unknown" rule from before something was loaded. */
bool ts_local_unwind_is_stale(uint64_t rule);
/* Checks, at most every few ms, whether the loaded modules changed. May change the generation. */
void ts_local_unwind_check_modules(void);
/* The complete CFI row of an address. *ret_expressions: base of expression offsets. */
bool ts_local_unwind_find_row(uint64_t address, struct ts_cfi_row *ret_row,
			      const uint8_t **ret_expressions);

/* local_unwind_cfi.c: like ts_local_unwind_walk() with all registers; slow. */
void ts_local_unwind_walk_cfi(const struct ts_local_unwind_registers *captured,
			      struct ts_local_unwind_stack *stack);

struct ts_local_unwind_bounds {
	uint64_t low, high;
};
/*
 * local_unwind_bounds.c: bounds of the stack that contains the address; on a stack other than the
 * thread's own, what is certainly mapped.
 */
struct ts_local_unwind_bounds ts_local_unwind_bounds_of(uint64_t sp);

/* ---- local_unwind_cache.c ---- */

#define TS_LOCAL_UNWIND_LAST_FRAMES 256u
#define TS_LOCAL_UNWIND_LAST_WORDS 640u

/* A position in the walk, and the rule that leads to the caller. */
struct ts_local_unwind_state {
	uint64_t pc, sp, fp, rule;
};

struct ts_local_unwind_word {
	uint64_t address, value;
};

/*
 * The last walk that reached the end of its stack. All arrays but the trail are filled from the
 * end, outermost first, so that outer frames keep their index.
 */
struct ts_local_unwind_last {
	uint64_t generation; /* invalid in any other generation */
	struct ts_local_unwind_bounds bounds;
	uint32_t count, words;
	uint64_t sps[TS_LOCAL_UNWIND_LAST_FRAMES]; /* ascending */
	uint64_t pcs[TS_LOCAL_UNWIND_LAST_FRAMES];
	uint64_t fps[TS_LOCAL_UNWIND_LAST_FRAMES];
	uint64_t hashes[TS_LOCAL_UNWIND_LAST_FRAMES];   /* of this and all outer frames */
	uint32_t words_of[TS_LOCAL_UNWIND_LAST_FRAMES]; /* number of words, from the end, that
							   determine the rest of the walk */
	bool needs_fp[TS_LOCAL_UNWIND_LAST_FRAMES];     /* its frame pointer matters too */
	struct ts_local_unwind_word word[TS_LOCAL_UNWIND_LAST_WORDS];
	struct ts_local_unwind_state
		trail[TS_LOCAL_UNWIND_LAST_FRAMES]; /* states of the current walk; a ring */
};

/*
 * Whether the last `wanted` words are unchanged. *same: how many are already known to be. All of
 * them are above the stack pointer of the asking state.
 */
bool ts_local_unwind_words_unchanged(const struct ts_local_unwind_last *last, uint32_t wanted,
				     uint32_t *same);

/*
 * Inserts the states of the trail, except the innermost, below the remembered ones. caller: what
 * the outermost of them led to, with its needs_fp and hash. Returns the hash of all.
 */
uint64_t ts_local_unwind_remember(struct ts_local_unwind_last *last,
				  const struct ts_local_unwind_stack *stack, size_t states,
				  struct ts_local_unwind_state caller, bool needs_fp,
				  uint64_t hash);

/* A word of another function's frame, which a sanitizer would reject. */
__attribute__((no_sanitize("address"))) static inline uint64_t ts_local_unwind_stack_word(
	uint64_t address)
{
	return *(const uint64_t *)(uintptr_t)address;
}

/* Adds a frame to a hash, from the outermost inwards. A bijection for each frame and each hash. */
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

/* Hashes existing frames. */
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
