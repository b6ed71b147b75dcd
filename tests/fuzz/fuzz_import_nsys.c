/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of Nsight Systems; whatever SQLite makes of damaged ones comes on top. */
#include "fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_import(data, size, "nsys");
}
