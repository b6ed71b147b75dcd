/* SPDX-License-Identifier: Apache-2.0 */
/* Stores option values that are given as text. */
#include "base/option_spec.h"

#include <inttypes.h>
#include <string.h>

#include "base/quantity.h"
#include "base/text.h"

/* "option '--sort' is self, total or calls, not 'time'". */
static int unknown_word(const struct ts_option_spec *spec, const char *text, struct ts_error *err)
{
	TS_SCOPED(ts_text) words = { 0 };

	for (const char *const *word = spec->words; *word; word++)
		ts_text_printf(&words, "%s%s",
			       word == spec->words ? ""
			       : word[1]           ? ", "
						   : " or ",
			       *word);
	return ts_error_set(err, TS_EINVAL, "option '--%s' is %s, not '%s'", spec->name,
			    ts_text_cstr(&words), text);
}

static int store_choice(const struct ts_option_spec *spec, const char *text, int64_t *value,
			struct ts_error *err)
{
	for (int64_t i = 0; spec->words[i]; i++) {
		if (!strcmp(spec->words[i], text)) {
			*value = i;
			return TS_OK;
		}
	}
	return unknown_word(spec, text, err);
}

static int store_integer(const struct ts_option_spec *spec, const char *text, int64_t *value,
			 struct ts_error *err)
{
	int64_t integer;

	if (ts_parse_int64(text, strlen(text), &integer) || integer < spec->minimum ||
	    integer > spec->maximum)
		return ts_error_set(err, TS_EINVAL,
				    "option '--%s' is a number from %" PRId64 " to %" PRId64
				    ", not '%s'",
				    spec->name, spec->minimum, spec->maximum, text);
	*value = integer;
	return TS_OK;
}

int ts_option_spec_store(const struct ts_option_spec *spec, const char *text, void *base,
			 struct ts_error *err)
{
	void *value = (char *)base + spec->offset;

	if (spec->type == TS_OPTION_SPEC_FLAG) {
		if (text)
			return ts_error_set(err, TS_EINVAL, "option '--%s' takes no value",
					    spec->name);
		*(bool *)value = true;
		return TS_OK;
	}
	if (!text)
		return ts_error_set(err, TS_EINVAL, "option '--%s' needs a value: %s", spec->name,
				    spec->value);
	switch (spec->type) {
	case TS_OPTION_SPEC_CHOICE:
		return store_choice(spec, text, value, err);
	case TS_OPTION_SPEC_INTEGER:
		return store_integer(spec, text, value, err);
	case TS_OPTION_SPEC_TIME:
		return ts_quantity_time(spec->name, text, value, err);
	case TS_OPTION_SPEC_TEXT:
		*(const char **)value = text;
		return TS_OK;
	default:
		return ts_error_set(err, TS_EINVAL, "option '--%s' takes a list", spec->name);
	}
}

const struct ts_option_spec *ts_option_spec_find(const struct ts_option_spec *specs, size_t count,
						 const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(specs[i].name, name))
			return &specs[i];
	return NULL;
}
