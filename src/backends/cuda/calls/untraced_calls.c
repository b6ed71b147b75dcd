/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver functions without a wrapper, by their exported names: each jumps to the counting stub of
 * the real function (call_stubs.c), which is looked up at the first call. The lookup preserves all
 * argument registers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "backends/cuda/calls/cuda_calls.h"

#define CUDA_ERROR_NOT_SUPPORTED 801

static const char *const names[] = {
#define CUDA_OTHER(name, replay) #name,
#include "backends/cuda/calls/untraced_calls.def"
};
static const uint8_t replays[] = {
#define CUDA_OTHER(name, replay) CUDA_REPLAY_##replay,
#include "backends/cuda/calls/untraced_calls.def"
};

/* The target of each; initially the code that looks it up. Defined below. */
extern void *cuda_other_targets[] __attribute__((visibility("hidden")));
__attribute__((visibility("hidden"))) void *cuda_other_find(uint32_t other);

#if defined(__x86_64__)
__asm__(".section .data.rel.local, \"aw\"\n"
	".p2align 3\n"
	".globl cuda_other_targets\n"
	".hidden cuda_other_targets\n"
	"cuda_other_targets:\n"
	".text\n"
	".set other, 0\n"
#define CUDA_OTHER(name, replay)                                                 \
	".p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
	"	.cfi_startproc\n"                                                      \
	"	endbr64\n"                                                             \
	"	jmpq *cuda_other_targets + 8 * other(%rip)\n"                          \
	"2:	movl $other, %r11d\n"                                                \
	"	jmp cuda_other_first\n"                                                \
	"	.cfi_endproc\n.size " #name ", . - " #name "\n"                  \
	".section .data.rel.local\n	.quad 2b\n.text\n"                           \
	".set other, other + 1\n"
#include "backends/cuda/calls/untraced_calls.def"
	".p2align 4\n"
	".type cuda_other_first, @function\n"
	"cuda_other_first:\n"
	"	.cfi_startproc\n"
	"	pushq %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset rbp, 0\n"
	"	movq %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	subq $192, %rsp\n"
	"	movq %rdi, 0(%rsp)\n"
	"	movq %rsi, 8(%rsp)\n"
	"	movq %rdx, 16(%rsp)\n"
	"	movq %rcx, 24(%rsp)\n"
	"	movq %r8, 32(%rsp)\n"
	"	movq %r9, 40(%rsp)\n"
	"	movq %rax, 48(%rsp)\n"
	"	movups %xmm0, 64(%rsp)\n"
	"	movups %xmm1, 80(%rsp)\n"
	"	movups %xmm2, 96(%rsp)\n"
	"	movups %xmm3, 112(%rsp)\n"
	"	movups %xmm4, 128(%rsp)\n"
	"	movups %xmm5, 144(%rsp)\n"
	"	movups %xmm6, 160(%rsp)\n"
	"	movups %xmm7, 176(%rsp)\n"
	"	movl %r11d, %edi\n"
	"	call cuda_other_find\n"
	"	movq %rax, %r11\n"
	"	movups 64(%rsp), %xmm0\n"
	"	movups 80(%rsp), %xmm1\n"
	"	movups 96(%rsp), %xmm2\n"
	"	movups 112(%rsp), %xmm3\n"
	"	movups 128(%rsp), %xmm4\n"
	"	movups 144(%rsp), %xmm5\n"
	"	movups 160(%rsp), %xmm6\n"
	"	movups 176(%rsp), %xmm7\n"
	"	movq 0(%rsp), %rdi\n"
	"	movq 8(%rsp), %rsi\n"
	"	movq 16(%rsp), %rdx\n"
	"	movq 24(%rsp), %rcx\n"
	"	movq 32(%rsp), %r8\n"
	"	movq 40(%rsp), %r9\n"
	"	movq 48(%rsp), %rax\n"
	"	leave\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	.cfi_restore rbp\n"
	"	jmpq *%r11\n"
	"	.cfi_endproc\n"
	".size cuda_other_first, . - cuda_other_first\n");
#elif defined(__aarch64__)
__asm__(".section .data.rel.local, \"aw\"\n"
	".p2align 3\n"
	".globl cuda_other_targets\n"
	".hidden cuda_other_targets\n"
	"cuda_other_targets:\n"
	".text\n"
	".set other, 0\n"
#define CUDA_OTHER(name, replay)                                                 \
	".p2align 4\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" \
	"	.cfi_startproc\n"                                                      \
	"	hint #34\n" /* bti c */                                          \
	"	adrp x16, cuda_other_targets + 8 * other\n"                            \
	"	ldr x16, [x16, :lo12:cuda_other_targets + 8 * other]\n"                \
	"	br x16\n"                                                              \
	"2:	hint #34\n"                                                          \
	"	mov w17, #other\n"                                                     \
	"	b cuda_other_first\n"                                                  \
	"	.cfi_endproc\n.size " #name ", . - " #name "\n"                  \
	".section .data.rel.local\n	.xword 2b\n.text\n"                          \
	".set other, other + 1\n"
#include "backends/cuda/calls/untraced_calls.def"
	".p2align 4\n"
	".type cuda_other_first, %function\n"
	"cuda_other_first:\n"
	"	.cfi_startproc\n"
	"	stp x29, x30, [sp, #-224]!\n"
	"	.cfi_adjust_cfa_offset 224\n"
	"	.cfi_rel_offset x29, 0\n"
	"	.cfi_rel_offset x30, 8\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	stp x2, x3, [sp, #32]\n"
	"	stp x4, x5, [sp, #48]\n"
	"	stp x6, x7, [sp, #64]\n"
	"	str x8, [sp, #80]\n"
	"	stp q0, q1, [sp, #96]\n"
	"	stp q2, q3, [sp, #128]\n"
	"	stp q4, q5, [sp, #160]\n"
	"	stp q6, q7, [sp, #192]\n"
	"	mov w0, w17\n"
	"	bl cuda_other_find\n"
	"	mov x16, x0\n"
	"	ldp q6, q7, [sp, #192]\n"
	"	ldp q4, q5, [sp, #160]\n"
	"	ldp q2, q3, [sp, #128]\n"
	"	ldp q0, q1, [sp, #96]\n"
	"	ldr x8, [sp, #80]\n"
	"	ldp x6, x7, [sp, #64]\n"
	"	ldp x4, x5, [sp, #48]\n"
	"	ldp x2, x3, [sp, #32]\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #224\n"
	"	.cfi_adjust_cfa_offset -224\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size cuda_other_first, . - cuda_other_first\n");
#endif

enum cuda_replay cuda_other_replay(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return replays[i];
	return CUDA_REPLAY_REFUSED;
}

static int missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

void *cuda_other_find(uint32_t other)
{
	int saved = errno;
	void *found = cuda_symbol(RTLD_NEXT, names[other]), *stub, *driver;

	if (!found) {
		driver = cuda_driver_library(true);
		found = driver ? cuda_symbol(driver, names[other]) : NULL;
		dlerror();
	}
	errno = saved;
	if (!found)
		return (void *)missing;
	stub = cuda_stub(names[other], found);
	__atomic_store_n(&cuda_other_targets[other], stub ? stub : found, __ATOMIC_RELEASE);
	return cuda_other_targets[other];
}
