/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of unwinding: a library that calls back from a frame of BYTES. Built several times, so
 * that the same addresses mean different frames.
 */
#include <string.h>

__attribute__((visibility("default"))) void call_back(void (*function)(void));

static volatile char sink;

void call_back(void (*function)(void))
{
	char buffer[BYTES];

	memset(buffer, 1, sizeof(buffer));
	function();
	sink = buffer[sizeof(buffer) / 2];
}
