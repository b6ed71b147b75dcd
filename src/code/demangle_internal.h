/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to demangle.c and demangle_size.c. */
#ifndef TS_CODE_DEMANGLE_INTERNAL_H
#define TS_CODE_DEMANGLE_INTERNAL_H

#include <stdint.h>

/*
 * Estimated mangled size of a name (starting with "_Z") with all substitutions expanded. The
 * demangled name is a few times that. UINT64_MAX: not understood. (libstdc++ never returns from
 * some of those.)
 */
uint64_t demangle_size(const char *mangled);

#endif
