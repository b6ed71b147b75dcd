/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL C of a recorded program, brought into a form that cannot name files. The recorder stores
 * the binary of a program whose source is refused; a replay compiles only the result.
 *
 * The result has no comments, spliced lines, trigraphs or raw strings, so that whatever compiles it
 * finds the same tokens and directives as this check: each line starts a new token. Every directive
 * is one of a list, and the words that reach files (__has_include, import ...) are refused. What
 * macros can still build by pasting is removed by TS_OPENCL_C_PROLOGUE.
 */
#ifndef TS_CODE_LOCAL_OPENCL_C_H
#define TS_CODE_LOCAL_OPENCL_C_H

#include <stddef.h>

/*
 * Writes the source to `to`, which has room for `bytes` bytes. Returns NULL, or why the source is
 * refused, to follow "its source ...".
 */
const char *ts_opencl_c_normalize(const char *source, size_t bytes, char *to, size_t *ret_bytes);

/*
 * Goes before a normalized source. Compilers find these words in pasted tokens, too, and a
 * normalized source does not define them again. _Pragma() then expands to nothing: a normalized
 * source has it only for hints about loops.
 */
#define TS_OPENCL_C_PROLOGUE                                                    \
	"#undef __has_include\n#undef __has_include_next\n#undef __has_embed\n" \
	"#undef _Pragma\n#define _Pragma(hint)\n"

/* Also without inline assembly: most assemblers have .incbin and .include. */
#define TS_OPENCL_C_NO_ASSEMBLY                                                   \
	"#undef asm\n#define asm a_replay_does_not_compile_inline_assembly\n"     \
	"#undef __asm\n#define __asm a_replay_does_not_compile_inline_assembly\n" \
	"#undef __asm__\n#define __asm__ a_replay_does_not_compile_inline_assembly\n"

#endif
