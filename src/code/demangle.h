/* SPDX-License-Identifier: Apache-2.0 */
/* Names of C++ and Rust functions as people write them. */
#ifndef TS_CODE_DEMANGLE_H
#define TS_CODE_DEMANGLE_H

#include <stdbool.h>

/*
 * A new string, which the caller frees; NULL: it is none of theirs, or this machine has no
 * libstdc++, which is opened when it is first wanted. Any thread.
 */
char *ts_demangle(const char *name);

/*
 * The same up to 64 KiB in place of 4: kernels are named by their whole templates. (libstdc++
 * leaves what is beyond 1 KiB as it was, mangled.)
 */
char *ts_demangle_long(const char *name);

/* Whether this machine has what is needed. */
bool ts_can_demangle(void);

#endif
