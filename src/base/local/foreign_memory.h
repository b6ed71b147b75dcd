/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory of this process that belongs to the observed program, and which the program may
 * unmap, protect or truncate at any time, also while it is being read. A missing byte is a short
 * result, never a signal.
 */
#ifndef TS_BASE_LOCAL_FOREIGN_MEMORY_H
#define TS_BASE_LOCAL_FOREIGN_MEMORY_H

#include <stddef.h>

struct iovec;

/*
 * Copies `bytes` from `from` to `to`. Returns how many bytes precede the first one that cannot be
 * read: `bytes` if all are there. Keeps errno. Needs no memory; may be called by any thread, which
 * is not canceled here.
 */
size_t ts_foreign_read(void *to, const void *from, size_t bytes);

/* The same for several pieces, which `to` receives one after the other. */
size_t ts_foreign_gather(void *to, const struct iovec *pieces, size_t count);

/*
 * Which system calls it uses; for tests. Both are needed: a sandbox may forbid the first, and the
 * first cannot read memory of devices (VM_IO), such as what some drivers give to programs as mapped
 * buffers.
 */
enum { TS_FOREIGN_VM_READV = 1, TS_FOREIGN_PIPE = 2 };
extern unsigned int ts_foreign_methods;

#endif
