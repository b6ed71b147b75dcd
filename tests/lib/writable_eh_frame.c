/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of unwinding: makes .eh_frame writable, so that the linker puts it into the data
 * segment, away from .eh_frame_hdr. Objects of clang's sanitizers do the same.
 */
__asm__(".section .eh_frame, \"aw\", %progbits\n.previous");
