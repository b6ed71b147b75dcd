/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, source lines and inlined callers of addresses in binaries, after a recording and
 * perhaps on another machine: the file is found by path and build id. Each binary is read by a
 * process of its own, which may die of what is in the file; several at once.
 */
#ifndef TS_CODE_SYMBOLIZE_H
#define TS_CODE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

/* What became of a binary. */
enum ts_symbolize_state {
	TS_SYMBOLIZE_NO_FILE,
	TS_SYMBOLIZE_OTHER_BUILD, /* there is a file, but with another build id */
	TS_SYMBOLIZE_CHANGED,     /* it has no build id, and was written to since the recording */
	TS_SYMBOLIZE_UNREADABLE,
	TS_SYMBOLIZE_FUNCTIONS, /* symbols of the linker only */
	TS_SYMBOLIZE_LINES,     /* debug information, too */
};

struct ts_symbolize_module {
	const char *path;          /* as recorded; borrowed, as all here */
	const char *build_id;      /* hexadecimal; "": it had none */
	const uint64_t *addresses; /* as the file counts them */
	size_t count;
	/* Found out: */
	enum ts_symbolize_state state;
	bool is_damaged; /* its debug information could not be used */
	size_t named;    /* addresses */
};

struct ts_symbol {
	const char *name; /* demangled; "": not known */
	const char *file; /* "": not known */
	int64_t line;     /* 0: not known */
};

struct ts_symbolize_options {
	/*
	 * Folders with debug files or binaries, beside /usr/lib/debug: by build id
	 * (.build-id/ab/cdef.debug), as a root (FOLDER/usr/lib/libx.so), or by the name alone
	 * (libx.so, libx.so.debug). A file whose build id is another is none.
	 */
	const char *const *folders;
	size_t folder_count;
	int64_t recorded_ns;  /* since 1970: what has no build id must not be younger */
	unsigned int workers; /* 0: as many as there are processors */
	int64_t patience_ns;  /* with one binary; 0: minutes */
	/* Addresses done, and all; not 0: stop. May be NULL. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
	/*
	 * Of an address that has a name or a line: the innermost function first. Texts last until
	 * it returns; not 0: stop.
	 */
	int (*found)(void *context, const struct ts_symbolize_module *module, size_t address,
		     const struct ts_symbol *symbols, size_t count, struct ts_error *err);
	void *context;
};

/*
 * 0 also where no file was found: states say so. Modules are told one after another, in their
 * order. Main thread only.
 */
int ts_symbolize(struct ts_symbolize_module *modules, size_t count,
		 const struct ts_symbolize_options *options, struct ts_error *err);

#endif
