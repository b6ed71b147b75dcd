/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An option that a component (an analysis, a replay target) offers, as data. The component's
 * descriptor lists its options; the tool makes the command line, --help and error messages of them
 * (cli/common/component_options.h) and stores each value at `offset` of an options struct.
 */
#ifndef TS_BASE_OPTION_SPEC_H
#define TS_BASE_OPTION_SPEC_H

#include <stddef.h>
#include <stdint.h>

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

#endif
