/* SPDX-License-Identifier: Apache-2.0 */
/* Nsight Systems databases, including what SQLite accepts of damaged ones. */
#include "fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_import(data, size, "nsys");
}
