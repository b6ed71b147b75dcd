/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An option that a component (an analysis, a replay target) offers, as data. The component's
 * descriptor lists its options; the tool makes the command line and --help of them
 * (cli/common/component_options.h), the library takes them by name and text (option_spec.c). Each
 * value is stored at `offset` of an options struct.
 */
#ifndef TS_BASE_OPTION_SPEC_H
#define TS_BASE_OPTION_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

enum ts_option_spec_type {
	TS_OPTION_SPEC_FLAG,    /* bool */
	TS_OPTION_SPEC_TEXT,    /* const char * */
	TS_OPTION_SPEC_INTEGER, /* int64_t, from minimum to maximum; minimum is at least 0 */
	TS_OPTION_SPEC_TIME,    /* int64_t, ns, above 0 */
	TS_OPTION_SPEC_CHOICE,  /* int64_t, the position of the word in `words` */
	TS_OPTION_SPEC_LIST,    /* struct ts_option_values; the option may be repeated */
};

struct ts_option_values {
	const char *const *values;
	size_t count;
};

struct ts_option_spec {
	const char *name; /* without dashes */
	char letter;      /* 0: none */
	enum ts_option_spec_type type;
	const char *value; /* what --help calls the value */
	const char *doc;   /* for --help, with the default */
	size_t offset;     /* of the value in the options struct; untouched unless given */
	int64_t minimum, maximum;
	const char *const *words; /* of a choice; NULL at the end */
};

/*
 * Parses the value of an option and stores it in the options struct at `base`. A flag takes none:
 * `text` is NULL. Not for lists. 0, or TS_EINVAL with a message that names the option.
 */
int ts_option_spec_store(const struct ts_option_spec *spec, const char *text, void *base,
			 struct ts_error *err);

/* The spec of that name, or NULL. */
const struct ts_option_spec *ts_option_spec_find(const struct ts_option_spec *specs, size_t count,
						 const char *name);

#endif
