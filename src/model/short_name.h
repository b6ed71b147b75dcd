/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels and operators without their arguments. */
#ifndef TS_MODEL_SHORT_NAME_H
#define TS_MODEL_SHORT_NAME_H

#include <stddef.h>

/*
 * Writes the name without "void ", template and call arguments and the digits of addresses to
 * `buffer`, which has `length` bytes, and returns the bytes written: "void at::f<4, float>(int)"
 * becomes "at::f". A name of which nothing would be left stays.
 */
size_t ts_short_name(const char *name, size_t length, char *buffer);

#endif
