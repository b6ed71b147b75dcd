/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the options of a replay against each other and against what the target can do. */
#include "base/text.h"
#include "replay/check/values.h"
#include "replay/replay.h"

/* The first option that the target does not support; NULL: none. */
static const char *unsupported_option(const struct ts_replay_options *options,
				      unsigned int *ret_need)
{
	const struct {
		const char *name;
		unsigned int need;
		bool is_given;
	} given[] = {
		{ "device", TS_REPLAY_CAN_PICK_DEVICE, options->device },
		{ "stream", TS_REPLAY_CAN_SELECT, options->streams },
		{ "from", TS_REPLAY_CAN_SELECT, options->from },
		{ "to", TS_REPLAY_CAN_SELECT, options->to },
		{ "step", TS_REPLAY_CAN_SELECT, options->has_steps },
		{ "kernel", TS_REPLAY_CAN_SELECT, options->kernel },
		{ "pace", TS_REPLAY_CAN_PACE, options->pace },
		{ "check", TS_REPLAY_CAN_CHECK, options->check },
		{ "as", TS_REPLAY_CAN_CHECK | TS_REPLAY_CAN_DUMP, options->value_type },
		{ "at", TS_REPLAY_CAN_DUMP, options->dump_at },
		{ "replace-kernel", TS_REPLAY_CAN_REPLACE_KERNEL, options->replacement_count },
		{ "time-limit", TS_REPLAY_CAN_LIMIT_TIME, options->time_limit_ns },
		{ "skip-unsupported", TS_REPLAY_CAN_SELECT, options->skip_unsupported },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(given); i++) {
		if (given[i].is_given && !(options->target->can & given[i].need)) {
			*ret_need = given[i].need;
			return given[i].name;
		}
	}
	return NULL;
}

static int check_capabilities(const struct ts_replay_options *options, struct ts_error *err)
{
	TS_SCOPED(ts_text) others = { 0 };
	unsigned int need = 0;
	const char *option = unsupported_option(options, &need);

	if (!option)
		return TS_OK;
	for (size_t i = 0; ts_replay_targets[i]; i++)
		if (ts_replay_targets[i]->can & need)
			ts_text_printf(&others, "%s%s", others.length ? ", " : "",
				       ts_replay_targets[i]->name);
	return ts_error_set(err, TS_EINVAL,
			    "target '%s' does not support '--%s'; targets that do: %s",
			    options->target->name, option, ts_text_cstr(&others));
}

int ts_replay_check_options(const struct ts_replay_options *options, struct ts_error *err)
{
	int rc;

	if (!options->target || options->repeat < 1)
		return ts_error_set(err, TS_EINVAL, "a replay needs a target and at least one run");
	rc = check_capabilities(options, err);
	if (rc)
		return rc;
	if (options->value_type && !ts_value_type_find(options->value_type))
		return ts_error_set(err, TS_EINVAL, "'%s' is not a value type; types are %s",
				    options->value_type, ts_value_type_names());
	if (ts_value_tolerance_is_set(&options->tolerance) &&
	    options->target->can & TS_REPLAY_CAN_HASH_PAGES)
		return ts_error_set(
			err, TS_EINVAL,
			"'--tolerance' does not apply to target '%s', which compares hashes of pages",
			options->target->name);
	if (options->kernel_number && !options->kernel)
		return ts_error_set(err, TS_EINVAL, "a number of a launch needs '--kernel'");
	if (ts_value_tolerance_is_set(&options->tolerance) && !options->value_type)
		return ts_error_set(err, TS_EINVAL,
				    "'--tolerance' needs a value type ('--as f32')");
	return options->target->check_options ? options->target->check_options(options, err)
					      : TS_OK;
}
