/* SPDX-License-Identifier: Apache-2.0 */
/* Registers by DWARF number, and this machine's registers by purpose. */
#ifndef TS_CODE_LOCAL_REGISTERS_H
#define TS_CODE_LOCAL_REGISTERS_H

#include <stdint.h>

#define TS_UNWIND_REGISTERS                                                                      \
	33 /* by DWARF's numbers: 16 and the return address on x86_64; x0-x30, sp, pc on aarch64 \
	    */

struct ts_unwind_registers {
	uint64_t known; /* bit of each */
	uint64_t values[TS_UNWIND_REGISTERS];
};

#if defined(__x86_64__)
#define TS_REGISTER_FP 6
#define TS_REGISTER_SP 7
#define TS_REGISTER_PC 16
/* Callee-saved: rbx, rbp, rsp, r12 to r15. */
#define TS_REGISTERS_KEPT (UINT64_C(0xf0c8))
#else
#define TS_REGISTER_FP 29
#define TS_REGISTER_LR 30
#define TS_REGISTER_SP 31
#define TS_REGISTER_PC 32
#define TS_REGISTERS_KEPT (UINT64_C(0xfff80000)) /* x19 to x30, sp */
/*
 * The kernel's signal return trampoline has no CFI; it is recognised by its two instructions (mov
 * x8, #139; svc #0). What it restores is above the stack pointer: x0-x30, sp, pc, after siginfo,
 * the ucontext header and the fault address.
 */
#define TS_SIGRETURN_CODE UINT64_C(0xd4000001d2801168)
#define TS_SIGNAL_REGISTERS 312u
#endif

#endif
