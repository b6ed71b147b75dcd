/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces dlsym(). A lookup that does not concern us is a tail call with unchanged registers and
 * return address: for RTLD_NEXT and RTLD_DEFAULT, the real dlsym() depends on its caller.
 */
#include <stddef.h>

/*
 * cuda_symbol_resolve(handle, name, caller) of cuda_symbols.c returns two words: the address, and
 * whether it is valid.
 */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	".p2align 4\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	movq 24(%rsp), %rdx\n"
	"	call cuda_symbol_resolve\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testq %rdx, %rdx\n"
	"	jne 1f\n"
	"	jmpq *cuda_next_dlsym(%rip)\n"
	"1:	ret\n"
	"	.cfi_endproc\n"
	".size dlsym, . - dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	".p2align 4\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_adjust_cfa_offset 32\n"
	"	.cfi_rel_offset x29, 0\n"
	"	.cfi_rel_offset x30, 8\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	mov x2, x30\n"
	"	bl cuda_symbol_resolve\n"
	"	ldp x29, x30, [sp]\n"
	"	cbnz x1, 1f\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	add sp, sp, #32\n"
	"	.cfi_remember_state\n"
	"	.cfi_adjust_cfa_offset -32\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	adrp x16, cuda_next_dlsym\n"
	"	ldr x16, [x16, :lo12:cuda_next_dlsym]\n"
	"	br x16\n"
	"1:	.cfi_restore_state\n"
	"	add sp, sp, #32\n"
	"	.cfi_adjust_cfa_offset -32\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size dlsym, . - dlsym\n");
#endif
