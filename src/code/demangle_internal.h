/* SPDX-License-Identifier: Apache-2.0 */
/* What demangle.c asks demangle_size.c. Nobody else includes this. */
#ifndef TS_CODE_DEMANGLE_INTERNAL_H
#define TS_CODE_DEMANGLE_INTERNAL_H

#include <stdint.h>

/*
 * About how many bytes of mangled text a name, which begins with "_Z", stands for once each
 * reference is written out. As people write it that is some times as much. UINT64_MAX: it is not
 * understood. (libstdc++ does not come back from some such.)
 */
uint64_t demangle_size(const char *mangled);

#endif
