/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small results that are kept between runs of programs, a file each: what is expensive to find out
 * again. Nothing here is needed: whatever goes wrong, an entry is not found or not stored. Files
 * are read as if anybody had written them: only a regular file of this user, whose checksum is
 * right, has content. Any thread may call this; several programs may use one directory.
 */
#ifndef TS_BASE_LOCAL_CACHE_FILES_H
#define TS_BASE_LOCAL_CACHE_FILES_H

#include <stddef.h>
#include <stdint.h>

#define TS_CACHE_ENTRY_BYTES ((size_t)256 << 10) /* of the content of one entry, at most */
#define TS_CACHE_FILES 1024u                     /* the oldest are deleted when there are more */

/* Names an entry: a hash of all that its content depends on. */
struct ts_cache_key {
	uint64_t halves[2];
};

/*
 * Finds the directory of the cache, without creating it: `name` below $TRACESMITH_CACHE_DIR,
 * $XDG_CACHE_HOME/tracesmith or $HOME/.cache/tracesmith, the first that is set; "" if that is not
 * an absolute path (TRACESMITH_CACHE_DIR may be empty, for none). Reads the environment, so call it
 * early.
 */
void ts_cache_locate(const char *name, char *to, size_t size);

/* Returns the content, which the caller frees, or NULL: there is none that can be trusted. */
void *ts_cache_load(const char *directory, struct ts_cache_key key, size_t *ret_bytes);

/* Creates the directory if necessary; replaces an entry of that key at once. */
void ts_cache_store(const char *directory, struct ts_cache_key key, const void *content,
		    size_t bytes);

#endif
