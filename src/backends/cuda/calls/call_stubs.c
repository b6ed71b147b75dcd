/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting stubs for driver functions that have no wrapper: one instruction adds, one jumps;
 * arguments, stack and results stay untouched. A stub is found by the hash of the function's
 * address, so that no function gets two and no lock is needed.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/calls/cuda_calls.h"

#define STUBS 1024u
#define PROBES 64u
#define NAME_BYTES 56
#define FACT_BYTES 2900

/* Accessed by the stubs below. */
__attribute__((visibility("hidden"))) uint64_t cuda_stub_counts[STUBS];
__attribute__((visibility("hidden"))) uintptr_t cuda_stub_targets[STUBS];
static char names[STUBS][NAME_BYTES];

#if defined(__x86_64__)
#define STUB_BYTES 32
__asm__(".text\n"
	".p2align 5\n"
	".globl cuda_stub_code\n"
	".hidden cuda_stub_code\n"
	".type cuda_stub_code, @function\n"
	"cuda_stub_code:\n"
	"	.cfi_startproc\n"
	".set stub, 0\n"
	".rept 1024\n"
	"	.p2align 5\n"
	"	endbr64\n"
	"	lock incq cuda_stub_counts + 8 * stub(%rip)\n"
	"	jmpq *cuda_stub_targets + 8 * stub(%rip)\n"
	"	.set stub, stub + 1\n"
	".endr\n"
	"	.cfi_endproc\n"
	".size cuda_stub_code, . - cuda_stub_code\n");
#elif defined(__aarch64__)
#define STUB_BYTES 64
/* x15, x16 and x17 are free for use between a call and its target. */
__asm__(".text\n"
	".p2align 6\n"
	".globl cuda_stub_code\n"
	".hidden cuda_stub_code\n"
	".type cuda_stub_code, %function\n"
	"cuda_stub_code:\n"
	"	.cfi_startproc\n"
	".set stub, 0\n"
	".rept 1024\n"
	"	.p2align 6\n"
	"	hint #34\n" /* bti c */
	"	adrp x16, cuda_stub_counts + 8 * stub\n"
	"	add x16, x16, :lo12:cuda_stub_counts + 8 * stub\n"
	"1:	ldxr x17, [x16]\n"
	"	add x17, x17, #1\n"
	"	stxr w15, x17, [x16]\n"
	"	cbnz w15, 1b\n"
	"	adrp x16, cuda_stub_targets + 8 * stub\n"
	"	ldr x16, [x16, :lo12:cuda_stub_targets + 8 * stub]\n"
	"	br x16\n"
	"	.set stub, stub + 1\n"
	".endr\n"
	"	.cfi_endproc\n"
	".size cuda_stub_code, . - cuda_stub_code\n");
#endif
extern const char cuda_stub_code[] __attribute__((visibility("hidden")));

static void keep_name(uint32_t stub, const char *name)
{
	size_t length = strnlen(name, NAME_BYTES - 1);

	/* The terminator is there already; a reader sees a part of the name at worst. */
	memcpy(names[stub], name, length);
}

void *cuda_stub(const char *name, void *address)
{
	uint32_t at = (uint32_t)(((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15u >> 54) % STUBS;

	for (uint32_t i = 0; i < PROBES; i++, at = (at + 1) % STUBS) {
		uintptr_t found = 0;

		if (__atomic_compare_exchange_n(&cuda_stub_targets[at], &found, (uintptr_t)address,
						false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			keep_name(at, name);
		else if (found != (uintptr_t)address)
			continue;
		return (void *)(cuda_stub_code + (size_t)at * STUB_BYTES);
	}
	return NULL;
}

/* ---- counts ---- */

static uint64_t count_of(uint32_t stub)
{
	return __atomic_load_n(&cuda_stub_counts[stub], __ATOMIC_RELAXED);
}

/* The next most frequent stub after (`count`, `last`), the previous result; STUBS: none. */
static uint32_t next_most(uint64_t count, uint32_t last, const uint64_t *counts)
{
	uint32_t best = STUBS;

	for (uint32_t i = 0; i < STUBS; i++) {
		bool is_left = counts[i] && (counts[i] < count || (counts[i] == count && last < i));

		if (is_left && (best == STUBS || counts[i] > counts[best]))
			best = i;
	}
	return best;
}

/*
 * {"cuDeviceGet": 3, ...}, the most frequent first; those that do not fit are summed under "...".
 */
static void format(char *fact, const uint64_t *counts, uint64_t sum)
{
	uint64_t count = UINT64_MAX, reported = 0;
	uint32_t stub = 0;
	size_t used = 0;

	fact[used++] = '{';
	while ((stub = next_most(count, stub, counts)) != STUBS) {
		count = counts[stub];
		if (used + NAME_BYTES + 64 > FACT_BYTES)
			break;
		used += (size_t)snprintf(fact + used, FACT_BYTES - used, "%s\"%s\": %llu",
					 used > 1 ? ", " : "", names[stub],
					 (unsigned long long)count);
		reported += count;
	}
	if (reported < sum)
		used += (size_t)snprintf(fact + used, FACT_BYTES - used, ", \"...\": %llu",
					 (unsigned long long)(sum - reported));
	fact[used++] = '}';
	fact[used] = '\0';
}

bool cuda_stub_next(uint32_t *position, struct cuda_stub_use *ret_use)
{
	for (uint32_t stub = *position; stub < STUBS; stub++) {
		uint64_t calls = count_of(stub);

		if (!calls)
			continue;
		*position = stub + 1;
		*ret_use = (struct cuda_stub_use){ .name = names[stub], .calls = calls };
		return true;
	}
	return false;
}

void cuda_stubs_emit(void)
{
	static uint64_t last_sum;
	static uint32_t is_emitting;
	static uint64_t counts[STUBS];
	static char fact[FACT_BYTES + 8];
	uint64_t sum = 0;

	if (__atomic_exchange_n(&is_emitting, 1, __ATOMIC_ACQUIRE))
		return;
	for (uint32_t i = 0; i < STUBS; i++) {
		counts[i] = count_of(i);
		sum += counts[i];
	}
	if (sum != last_sum) {
		format(fact, counts, sum);
		ts_accelerator_fact("cuda_other_calls", fact);
	}
	last_sum = sum;
	__atomic_store_n(&is_emitting, 0, __ATOMIC_RELEASE);
}
