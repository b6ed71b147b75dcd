/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns in the names of outputs: %r rank, %h host, %p process id, %q{NAME} environment variable,
 * %% a percent sign (docs/ranks.md). Allocates nothing; any thread may call this.
 */
#ifndef TS_BASE_LOCAL_PATH_PATTERN_H
#define TS_BASE_LOCAL_PATH_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What patterns stand for. */
struct ts_path_values {
	const char *rank; /* NULL: unknown */
	pid_t pid;        /* 0: %p stays, for a second expansion, and so does %% */
};

/* True if the name has a pattern, or a % that is none. */
bool ts_path_is_pattern(const char *path);

/* True if the name has this pattern, such as 'r'. */
bool ts_path_has_pattern(const char *path, char letter);

/*
 * Replaces the patterns. The host and variables are those of this process. On failure returns
 * false, and why in `ret_why`: "%r: the rank is unknown (looked for RANK, ...)".
 */
bool ts_path_expand(const char *path, const struct ts_path_values *values, char *ret_path,
		    size_t bytes, char *ret_why, size_t why_bytes);

#define TS_PATH_WHY_BYTES 320

#endif
