/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings that can be changed while a target runs: fields of its control block. */
#ifndef TS_LIVE_CONFIG_H
#define TS_LIVE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "live/local/live_layout.h"

struct ts_config_key {
	const char *name;
	const char *also; /* alias, or NULL */
	const char *doc;
	uint32_t offset;         /* in struct ts_live_control */
	uint32_t bytes;          /* 4 or 8 */
	int64_t least, greatest; /* of the word */
	double scale; /* word = value * scale: 1e9 for seconds stored as ns; 1: integers */
	uint32_t read_only;
	uint32_t is_bytes;              /* a size */
	uint32_t may_be_none;           /* "none" is allowed and stored as TS_ABSENT */
	const char *const *value_names; /* names of the values 0, 1 ..., NULL-terminated; or NULL */
};

const struct ts_config_key *ts_config_list(size_t *ret_count);
const struct ts_config_key *ts_config_find(const char *name, size_t length);

/*
 * Parses "key=value". A value is a number (for seconds optionally with a unit, as in "10ms"), the
 * name of a value, "on", "off", "true", "false", or "none". The message of TS_EINVAL lists the
 * allowed values, or the keys.
 */
int ts_config_parse(const char *assignment, const struct ts_config_key **ret_key,
		    int64_t *ret_raw_value, struct ts_error *err);

#endif
