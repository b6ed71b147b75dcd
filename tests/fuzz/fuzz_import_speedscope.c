/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope's JSON. */
#include "fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_import(data, size, "speedscope");
}
