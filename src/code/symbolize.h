/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, source lines and inlined callers of addresses in binaries, after a recording and
 * possibly on another machine: the file is found by path and build id. Each binary is read in its
 * own process, which may crash on its contents; several run in parallel.
 */
#ifndef TS_CODE_SYMBOLIZE_H
#define TS_CODE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

/* Outcome for a binary. */
enum ts_symbolize_state {
	TS_SYMBOLIZE_NO_FILE,
	TS_SYMBOLIZE_OTHER_BUILD, /* the file has another build id */
	TS_SYMBOLIZE_CHANGED,     /* no build id, and modified since the recording */
	TS_SYMBOLIZE_UNREADABLE,
	TS_SYMBOLIZE_FUNCTIONS, /* linker symbols only */
	TS_SYMBOLIZE_LINES,     /* debug information too */
};

struct ts_symbolize_module {
	const char *path;          /* as recorded; borrowed, like everything here */
	const char *build_id;      /* hexadecimal; "": it had none */
	const uint64_t *addresses; /* file addresses */
	size_t count;
	/* Results: */
	enum ts_symbolize_state state;
	bool is_damaged; /* its debug information was unusable */
	size_t named;    /* addresses */
};

struct ts_symbol {
	const char *name; /* demangled; "": unknown */
	const char *file; /* "": unknown */
	int64_t line;     /* 0: unknown */
};

struct ts_symbolize_options {
	/*
	 * Directories with debug files or binaries, in addition to /usr/lib/debug: by build id
	 * (.build-id/ab/cdef.debug), as a root (DIR/usr/lib/libx.so), or by name (libx.so,
	 * libx.so.debug). A file with another build id is ignored.
	 */
	const char *const *folders;
	size_t folder_count;
	int64_t recorded_ns;  /* since 1970: a file without build id must not be newer */
	unsigned int workers; /* 0: number of processors */
	int64_t patience_ns;  /* time per binary; 0: default (minutes) */
	/* Addresses done and in total; return nonzero to stop. May be NULL. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
	/*
	 * Called for an address with a name or line: innermost function first. Strings are valid
	 * during the call; return nonzero to stop.
	 */
	int (*found)(void *context, const struct ts_symbolize_module *module, size_t address,
		     const struct ts_symbol *symbols, size_t count, struct ts_error *err);
	void *context;
};

/* 0 even if no file was found: see the states. Modules are reported in order. Main thread only. */
int ts_symbolize(struct ts_symbolize_module *modules, size_t count,
		 const struct ts_symbolize_options *options, struct ts_error *err);

#endif
