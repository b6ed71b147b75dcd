/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for events other than complete spans: flows, begins and ends, instants, counters and
 * samples, as in the phase table of docs/chrome.md.
 */
#include "import/chrome/chrome_import.h"
#include "import/chrome/chrome_rows.h"

/* ---- s, t, f ---- */

int ts_chrome_store_flow(struct ts_chrome *c, struct ts_chrome_event *event)
{
	struct ts_flow_row row = ts_flow_none;
	uint32_t taken = 0, thread;
	int rc;

	if (!ts_chrome_resolve_event(c, event, &thread, &row.start))
		return TS_OK;
	if (thread == UINT32_MAX)
		return TS_ENOMEM;
	if (event->has & TS_CHROME_HAS_ID_NUMBER) {
		row.id = event->id_number;
		taken |= TS_CHROME_HAS(TS_CHROME_ID);
	} else {
		row.id_json = ts_chrome_event_id(c, event, &taken);
	}
	if (ts_chrome_member_is(event, TS_CHROME_BP, "\"e\"")) {
		row.enclosing = 1;
		taken |= TS_CHROME_HAS(TS_CHROME_BP);
	}
	rc = ts_chrome_finish_args(c, event, TS_TABLE_FLOW, taken);
	if (rc)
		return rc;
	row.kind = event->phase == 's'   ? TS_FLOW_START
		   : event->phase == 't' ? TS_FLOW_STEP
					 : TS_FLOW_END;
	row.thread = c->threads[thread].row.id;
	row.name = ts_chrome_event_name(c, event);
	row.category = c->categories[event->category].string;
	row.shape = ts_chrome_shape(c, event->arguments);
	TS_CHROME_TABLE_COLUMNS(c, event, TS_TABLE_FLOW, thread, &row);
	ts_chrome_add(c, thread + 1, TS_TABLE_FLOW, &row, event->arguments->values);
	return TS_OK;
}

/* ---- B, E, b, e, S, F ---- */

/* Hash of what an async slice is matched by. */
static uint64_t async_lane(const struct ts_chrome *c, const struct ts_chrome_event *event,
			   uint32_t thread, uint32_t taken)
{
	enum ts_chrome_member member = taken & TS_CHROME_HAS(TS_CHROME_ID) ? TS_CHROME_ID
									   : TS_CHROME_ID2;
	const struct ts_chrome_raw *id = &event->member[member];
	struct {
		uint64_t process, category, id, scope;
	} key = { 0 };

	/* Hashes the text, not its string id: the writer may give one text two ids. */
	if (taken & TS_CHROME_HAS(member))
		key.id = ts_hash64(id->at, (size_t)(id->end - id->at));
	/* A global id is shared by all processes. */
	if (member == TS_CHROME_ID || !key.id ||
	    !memmem(id->at, (size_t)(id->end - id->at), "\"global\"", 8))
		key.process = c->threads[thread].process + 1;
	key.category = event->category;
	for (uint32_t i = 0; i < event->beside_count; i++) {
		const struct ts_chrome_beside *beside = &event->beside[i];

		if (ts_json_string_is(&beside->key, "scope"))
			key.scope = ts_hash64(beside->value.at,
					      (size_t)(beside->value.end - beside->value.at));
	}
	return ts_hash64(&key, sizeof(key)) | UINT64_C(1) << 63;
}

int ts_chrome_store_half(struct ts_chrome *c, struct ts_chrome_event *event, bool is_end,
			 bool is_async)
{
	struct ts_chrome_half half = { .is_end = is_end, .is_async = is_async };
	struct ts_slice_row row = ts_slice_none;
	uint32_t taken = 0, thread;
	int rc;

	if (!ts_chrome_resolve_event(c, event, &thread, &row.start))
		return TS_OK;
	if (thread == UINT32_MAX)
		return TS_ENOMEM;
	row.id = ts_chrome_event_id(c, event, &taken);
	row.stack = is_end ? 0 : ts_chrome_stack(c, event, &taken);
	rc = ts_chrome_finish_args(c, event, TS_TABLE_SLICE, taken);
	if (rc)
		return rc;
	half.lane = is_async ? async_lane(c, event, thread, taken) : thread;
	row.name = ts_chrome_event_name(c, event);
	row.category = c->categories[event->category].string;
	TS_CHROME_TABLE_COLUMNS(c, event, TS_TABLE_SLICE, thread, &row);
	half.time = row.start;
	half.thread = thread;
	half.name = (uint32_t)row.name;
	half.category = (uint32_t)row.category;
	half.id = (uint32_t)row.id;
	half.stack = (uint32_t)row.stack;
	half.shape = ts_chrome_shape(c, event->arguments);
	half.value_count = (uint16_t)event->arguments->value_count;
	return ts_chrome_add_half(c, &half, event->arguments->values);
}

/* ---- i, I, n, C and all others ---- */

/* May it be a V8 profile, or a chunk of one? */
static bool holds_profile(const struct ts_chrome_event *event)
{
	if (!(event->has & TS_CHROME_HAS_ARGS))
		return false;
	return (event->phase == 'P' && ts_json_string_is(&event->name, "Profile")) ||
	       memmem(event->args.at, (size_t)(event->args.end - event->args.at), "\"cpuProfile\"",
		      12);
}

int ts_chrome_store_mark(struct ts_chrome *c, struct ts_chrome_event *event, const char *phase)
{
	struct ts_mark_row row = ts_mark_none;
	uint32_t taken = 0, thread;
	bool stored;
	int rc;

	if (holds_profile(event)) {
		rc = ts_chrome_store_profile(c, event, &stored);
		if (rc || stored)
			return rc;
	}
	if (!ts_chrome_resolve_event(c, event, &thread, &row.start))
		return TS_OK;
	if (thread == UINT32_MAX)
		return TS_ENOMEM;
	row.id = ts_chrome_event_id(c, event, &taken);
	row.stack = ts_chrome_stack(c, event, &taken);
	row.scope = ts_chrome_member_is(event, TS_CHROME_S, "\"t\"")   ? TS_SCOPE_THREAD
		    : ts_chrome_member_is(event, TS_CHROME_S, "\"p\"") ? TS_SCOPE_PROCESS
		    : ts_chrome_member_is(event, TS_CHROME_S, "\"g\"") ? TS_SCOPE_GLOBAL
								       : TS_SCOPE_UNSAID;
	if (row.scope != TS_SCOPE_UNSAID)
		taken |= TS_CHROME_HAS(TS_CHROME_S);
	rc = ts_chrome_finish_args(c, event, TS_TABLE_MARK, taken);
	if (rc)
		return rc;
	row.thread = c->threads[thread].row.id;
	row.name = ts_chrome_event_name(c, event);
	row.category = c->categories[event->category].string;
	if (!phase)
		row.phase = ts_chrome_string(c, &event->phase_text);
	else if (*phase)
		row.phase = ts_chrome_text(c, phase);
	row.shape = ts_chrome_shape(c, event->arguments);
	TS_CHROME_TABLE_COLUMNS(c, event, TS_TABLE_MARK, thread, &row);
	ts_chrome_add(c, thread + 1, TS_TABLE_MARK, &row, event->arguments->values);
	return TS_OK;
}

/*
 * An event of a TraceSmith export without a thread: its columns name the source and so the clock.
 */
static int store_counter_of(struct ts_chrome *c, struct ts_chrome_event *event)
{
	const struct ts_table_info *info = ts_table_info(TS_TABLE_COUNTER);
	struct ts_counter_row row = ts_counter_none;
	uint32_t taken = 0;
	int64_t start;
	int rc;

	if (!(event->has & TS_CHROME_HAS_TIME)) {
		ts_chrome_lose(c, TS_CHROME_LOSS_TIME, 1);
		return TS_OK;
	}
	start = ts_chrome_shifted_time(c, event->ts, c->base_ns);
	row.id = ts_chrome_event_id(c, event, &taken);
	rc = ts_chrome_finish_args(c, event, TS_TABLE_COUNTER, taken);
	if (rc)
		return rc;
	row.name = ts_chrome_event_name(c, event);
	row.category = c->categories[event->category].string;
	row.shape = ts_chrome_shape(c, event->arguments);
	ts_chrome_set_columns(c, &event->native, info, 0, (int64_t *)&row);
	row.start = start;
	ts_chrome_native_add(c, info, (int64_t *)&row, event->arguments->values);
	return TS_OK;
}

int ts_chrome_store_counter(struct ts_chrome *c, struct ts_chrome_event *event)
{
	struct ts_counter_row row = ts_counter_none;
	uint32_t taken = 0, thread;
	int rc;

	if (TS_UNLIKELY(event->has & TS_CHROME_HAS_NATIVE) && ts_chrome_native_has_no_thread(event))
		return store_counter_of(c, event);
	if (!ts_chrome_resolve_event(c, event, &thread, &row.start))
		return TS_OK;
	if (thread == UINT32_MAX)
		return TS_ENOMEM;
	row.id = ts_chrome_event_id(c, event, &taken);
	rc = ts_chrome_finish_args(c, event, TS_TABLE_COUNTER, taken);
	if (rc)
		return rc;
	row.thread = c->threads[thread].row.id;
	row.name = ts_chrome_event_name(c, event);
	row.category = c->categories[event->category].string;
	row.shape = ts_chrome_shape(c, event->arguments);
	TS_CHROME_TABLE_COLUMNS(c, event, TS_TABLE_COUNTER, thread, &row);
	ts_chrome_add(c, thread + 1, TS_TABLE_COUNTER, &row, event->arguments->values);
	return TS_OK;
}

/* ---- samples ---- */

/* An integer, or a string that contains one. */
static bool int_member(const struct ts_chrome_event *event, enum ts_chrome_member member,
		       int64_t *ret_value, uint32_t *taken)
{
	const struct ts_chrome_raw *raw = &event->member[member];
	size_t quotes = 0;

	if (!(event->has & TS_CHROME_HAS(member)))
		return false;
	if (*raw->at == '"')
		quotes = 1;
	if (ts_parse_int64(raw->at + quotes, (size_t)(raw->end - raw->at) - 2 * quotes, ret_value))
		return false;
	*taken |= TS_CHROME_HAS(member);
	return true;
}

static int hold_sample(struct ts_chrome *c, const struct ts_chrome_event *event, uint32_t thread,
		       const struct ts_sample_row *row)
{
	const struct ts_chrome_raw *sf = &event->member[TS_CHROME_SF];
	struct ts_chrome_held_sample held = { .row = *row, .thread = thread };
	struct ts_json_string text = { .text = sf->at + 1, .length = (size_t)(sf->end - sf->at) };

	held.frame = ts_chrome_frame_key(c, sf);
	held.value_count = event->arguments->value_count;
	if (!ts_parse_int64(sf->at, (size_t)(sf->end - sf->at), &held.sf)) {
		held.sf_type = TS_ARG_INT;
	} else if (*sf->at == '"') {
		text.length -= 2;
		text.escaped = memchr(text.text, '\\', text.length) != NULL;
		held.sf_type = TS_ARG_STRING;
		held.sf = ts_chrome_string(c, &text);
	} else {
		held.sf_type = TS_ARG_JSON;
		held.sf = ts_chrome_raw_json(c, sf);
	}
	return ts_chrome_hold_sample(c, &held, event->arguments->values);
}

int ts_chrome_store_sample(struct ts_chrome *c, struct ts_chrome_event *event)
{
	struct ts_sample_row row = ts_sample_none;
	uint32_t taken = 0, thread;
	bool waits = event->has & TS_CHROME_HAS(TS_CHROME_SF) && !c->stacks.read;
	int rc;

	if (!ts_chrome_resolve_event(c, event, &thread, &row.start))
		return TS_OK;
	if (thread == UINT32_MAX)
		return TS_ENOMEM;
	if (waits)
		taken = TS_CHROME_HAS(TS_CHROME_SF);
	else
		row.stack = ts_chrome_stack(c, event, &taken);
	int_member(event, TS_CHROME_WEIGHT, &row.weight, &taken);
	int_member(event, TS_CHROME_CPU, &row.cpu, &taken);
	rc = ts_chrome_finish_args(c, event, TS_TABLE_SAMPLE, taken);
	if (rc)
		return rc;
	row.thread = c->threads[thread].row.id;
	row.name = ts_chrome_event_name(c, event);
	row.shape = ts_chrome_shape(c, event->arguments);
	TS_CHROME_TABLE_COLUMNS(c, event, TS_TABLE_SAMPLE, thread, &row);
	if (waits)
		return hold_sample(c, event, thread, &row);
	ts_chrome_add(c, thread + 1, TS_TABLE_SAMPLE, &row, event->arguments->values);
	return TS_OK;
}

int ts_chrome_store_p(struct ts_chrome *c, struct ts_chrome_event *event)
{
	if (event->has & (TS_CHROME_HAS(TS_CHROME_SF) | TS_CHROME_HAS(TS_CHROME_STACK)) ||
	    (event->has & TS_CHROME_HAS_NATIVE &&
	     ts_chrome_native_table(event, TS_TABLE_MARK) == TS_TABLE_SAMPLE))
		return ts_chrome_store_sample(c, event);
	return ts_chrome_store_mark(c, event, NULL);
}
