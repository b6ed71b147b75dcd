/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome, Kineto or TraceSmith JSON; input that starts like another format goes to its importer. */
#include "fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_import(data, size, NULL);
}
