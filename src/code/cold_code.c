/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises the "cold" part of the interpreter's loop, which the compiler moves elsewhere. A
 * stripped interpreter has no symbol for it, but its .eh_frame rules begin in the middle of a
 * function, and the loop jumps there.
 */
#include "code/local/jumps.h"
#include "code/native_internal.h"

#define MAX_LOOP_BYTES (1u << 20)

/* At its first instruction a function has nothing on the stack but its return address. */
static bool begins_inside(struct ts_native_module *module, uint64_t start)
{
	struct ts_cfi_row row;
	const int64_t at_start = TS_REGISTER_PC == 16 ? 8 : 0;

	return ts_cfi_find(&module->cfi, start, &row) &&
	       (row.frame.kind != TS_CFI_REGISTER || row.frame.reg != TS_REGISTER_SP ||
		row.frame.value != at_start);
}

bool ts_cold_code_is_loop(const struct ts_native_process *native, struct ts_native_module *module,
			  const struct ts_cfi_row *row)
{
	size_t bytes = TS_MIN(module->loop.bytes, MAX_LOOP_BYTES);
	TS_AUTO_FREE uint8_t *code = NULL;

	if (!module->is_python || bytes == 0 || !begins_inside(module, row->start))
		return false;
	code = ts_alloc_array(bytes, 1);
	if (!code)
		return false;
	bytes = ts_native_read(native, module->loop.address + module->bias, code, bytes);
	return ts_jumps_count(code, bytes, module->loop.address, row->start, row->end) >=
	       TS_JUMPS_MIN;
}
