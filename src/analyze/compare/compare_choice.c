/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the options of a comparison. */
#include "analyze/compare/compare_choice.h"

#include <string.h>

#include "base/quantity.h"
#include "base/real.h"

#define TEXT_OPTION(option, member, called, text)                                                \
	{                                                                                        \
		.name = (option), .type = TS_OPTION_SPEC_TEXT, .value = (called), .doc = (text), \
		.offset = offsetof(struct ts_compare_choice, member),                            \
	}

static const struct ts_option_spec specs[] = {
	TEXT_OPTION("steps-b", steps_b, "N|A-B|all", "the steps of B, if numbered differently"),
	TEXT_OPTION("device", device, "gpu|cpu|all", "device work, host work, or both (default)"),
	TEXT_OPTION("threshold", threshold, "PCT",
		    "ignore changes up to this percentage (default 1)"),
	TEXT_OPTION("min-change", min_change, "TIME",
		    "ignore changes of a name's time up to this, per step (default 1us)"),
	{
		.name = "python",
		.type = TS_OPTION_SPEC_FLAG,
		.doc = "include Python functions",
		.offset = offsetof(struct ts_compare_choice, python),
	},
};

const struct ts_option_spec *ts_compare_choice_specs(size_t *ret_count)
{
	*ret_count = TS_ARRAY_SIZE(specs);
	return specs;
}

static int parse_device(const char *text, unsigned int *ret_sides, struct ts_error *err)
{
	if (!text || !strcmp(text, "all"))
		*ret_sides = TS_COMPARE_GPU | TS_COMPARE_CPU;
	else if (!strcmp(text, "gpu"))
		*ret_sides = TS_COMPARE_GPU;
	else if (!strcmp(text, "cpu"))
		*ret_sides = TS_COMPARE_CPU;
	else
		return ts_error_set(err, TS_EINVAL,
				    "option '--device' is gpu, cpu or all, not '%s'", text);
	return TS_OK;
}

static int parse_threshold(const char *text, double *ret_percent, struct ts_error *err)
{
	size_t digits, length;

	*ret_percent = TS_COMPARE_THRESHOLD;
	if (!text)
		return TS_OK;
	digits = strspn(text, "0123456789.");
	length = strlen(text);
	if (digits == 0 || strspn(text, ".") == digits ||
	    digits + (text[digits] == '%') != length || strchr(text, '.') != strrchr(text, '.'))
		return ts_error_set(err, TS_EINVAL,
				    "option '--threshold' needs a percentage such as 2.5, not '%s'",
				    text);
	*ret_percent = ts_real_parse(text);
	return TS_OK;
}

static int parse_min_change(const char *text, int64_t *ret_ns, struct ts_error *err)
{
	*ret_ns = TS_COMPARE_LEAST_NS;
	if (!text)
		return TS_OK;
	if (!strcmp(text, "0")) {
		*ret_ns = 0;
		return TS_OK;
	}
	return ts_quantity_time("min-change", text, ret_ns, err);
}

int ts_compare_choice_parse(const struct ts_compare_choice *choice,
			    struct ts_compare_options *options, struct ts_error *err)
{
	int rc = parse_device(choice->device, &options->sides, err);

	if (!rc)
		rc = parse_threshold(choice->threshold, &options->threshold, err);
	return rc ? rc : parse_min_change(choice->min_change, &options->least_ns, err);
}

unsigned int ts_compare_choice_load_flags(const struct ts_compare_choice *choice,
					  const struct ts_compare_options *options)
{
	if (!(options->sides & TS_COMPARE_CPU))
		return 0;
	return TS_COMPARE_LOAD_FLAGS | (choice->python ? TS_WORK_PYTHON : 0);
}

int ts_compare_nothing(const struct ts_compare_options *options, struct ts_error *err)
{
	const char *what = "device work, operators, annotations or calls";

	if (options->sides == TS_COMPARE_GPU)
		what = "device work (--device cpu compares what the host did)";
	else if (options->sides == TS_COMPARE_CPU)
		what = "operators, annotations or calls (--device gpu compares device work)";
	return ts_error_set(err, TS_ENOTFOUND, "nothing to compare: neither trace has %s", what);
}
