/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a parsed event to a row, as in the phase and category table of docs/chrome.md. A flow
 * arrow that directly follows a call or gpu_op is stored in that row.
 */
#include "import/chrome/chrome_rows.h"
#include "import/chrome/chrome_import.h"

void ts_chrome_add_in_clock(struct ts_chrome *c, uint32_t clock, enum ts_table_id table,
			    const void *row, const int64_t *values)
{
	const uint32_t counted = UINT32_C(1) << TS_TABLE_SLICE | UINT32_C(1) << TS_TABLE_GPU_OP |
				 UINT32_C(1) << TS_TABLE_API_CALL | UINT32_C(1) << TS_TABLE_SAMPLE |
				 UINT32_C(1) << TS_TABLE_MARK | UINT32_C(1) << TS_TABLE_COUNTER;

	if (TS_UNLIKELY(clock != c->clock)) {
		c->clock = clock;
		c->newest.table = 0;
		ts_writer_set_clock(c->writer, clock);
	}
	ts_writer_add(c->writer, table, row, values);
	c->events += counted >> table & 1;
}

void ts_chrome_add(struct ts_chrome *c, uint32_t thread, enum ts_table_id table, const void *row,
		   const int64_t *values)
{
	ts_chrome_add_in_clock(c, thread ? c->threads[thread - 1].clock : (uint32_t)c->source,
			       table, row, values);
}

/* ---- arguments ---- */

/* Reads the arguments again: for another table, or once bytes and duration are known. */
static int read_args_again(struct ts_chrome *c, struct ts_chrome_event *event,
			   enum ts_table_id table, int64_t bytes)
{
	static const struct ts_json_string key = { .text = "args", .length = 4 };
	struct ts_chrome_args *args = event->arguments;
	struct ts_json js = ts_chrome_reopen(&event->args);
	int rc;

	args->has_duration = true;
	args->duration = event->dur;
	ts_chrome_start_args(c, args, table, event->category);
	args->bytes = bytes;
	rc = ts_chrome_read_args(c, &js, args, false);
	if (rc == TS_CHROME_TOO_MANY) {
		/* Too many for a shape: kept as one value, which an export restores. */
		js = ts_chrome_reopen(&event->args);
		ts_chrome_start_args(c, args, table, event->category);
		rc = ts_chrome_add_arg(c, &key, &js, args, true);
	}
	if (rc == TS_EFORMAT) {
		c->js->error_at = js.error_at;
		c->js->reason = js.reason;
	}
	return rc;
}

int ts_chrome_finish_args(struct ts_chrome *c, struct ts_chrome_event *event,
			  enum ts_table_id table, uint32_t taken)
{
	struct ts_chrome_args *args = event->arguments;
	enum ts_table_id columns =
		table == TS_TABLE_API_CALL || table == TS_TABLE_GPU_OP ? table : TS_TABLE_SLICE;
	int rc = TS_OK;

	if (!(event->has & TS_CHROME_HAS_ARGS))
		ts_chrome_start_args(c, args, columns, event->category);
	else if (args->table != columns)
		rc = read_args_again(c, event, columns, TS_ABSENT);
	if (!rc && event->has & TS_CHROME_HAS_ARGS && args->undecided && args->bytes != TS_ABSENT)
		rc = read_args_again(c, event, columns, args->bytes);
	for (uint32_t i = 0; i < event->beside_count && !rc; i++) {
		const struct ts_chrome_beside *beside = &event->beside[i];
		struct ts_json js = ts_chrome_reopen(&beside->value);

		if (beside->member && taken & TS_CHROME_HAS(beside->member))
			continue;
		rc = ts_chrome_add_arg(c, &beside->key, &js, args, true);
		if (rc == TS_CHROME_TOO_MANY) {
			event->dropped++;
			rc = TS_OK;
		}
	}
	if (TS_UNLIKELY(event->dropped))
		ts_chrome_lose(c, TS_CHROME_LOSS_MANY, event->dropped);
	return rc;
}

/* ---- columns that several tables have ---- */

uint32_t ts_chrome_event_name(struct ts_chrome *c, const struct ts_chrome_event *event)
{
	/* Viewers require a name in every event, so exports write an empty one. */
	return event->has & TS_CHROME_HAS_NAME && event->name.length
		       ? ts_chrome_string(c, &event->name)
		       : 0;
}

/* `id` as JSON if it is a number or string, else `id2` if it is an object. */
uint32_t ts_chrome_event_id(struct ts_chrome *c, const struct ts_chrome_event *event,
			    uint32_t *taken)
{
	const struct ts_chrome_raw *id = &event->member[TS_CHROME_ID];
	const struct ts_chrome_raw *id2 = &event->member[TS_CHROME_ID2];

	if (event->has & TS_CHROME_HAS(TS_CHROME_ID) &&
	    (*id->at == '"' || *id->at == '-' || (*id->at >= '0' && *id->at <= '9'))) {
		*taken |= TS_CHROME_HAS(TS_CHROME_ID);
		return ts_chrome_raw_json(c, id);
	}
	if (event->has & TS_CHROME_HAS(TS_CHROME_ID2) && *id2->at == '{') {
		*taken |= TS_CHROME_HAS(TS_CHROME_ID2);
		return ts_chrome_raw_json(c, id2);
	}
	return 0;
}

/* True if the member is exactly this text (including quotes). */
bool ts_chrome_member_is(const struct ts_chrome_event *event, enum ts_chrome_member member,
			 const char *text)
{
	const struct ts_chrome_raw *raw = &event->member[member];
	size_t length = strlen(text);

	return event->has & TS_CHROME_HAS(member) && (size_t)(raw->end - raw->at) == length &&
	       memcmp(raw->at, text, length) == 0;
}

/* Time and thread of an event; false if it lacks one, which is counted. */
bool ts_chrome_resolve_event(struct ts_chrome *c, const struct ts_chrome_event *event,
			     uint32_t *ret_thread, int64_t *ret_time)
{
	if (!(event->has & TS_CHROME_HAS_TIME)) {
		ts_chrome_lose(c, TS_CHROME_LOSS_TIME, 1);
		return false;
	}
	*ret_thread = ts_chrome_thread(c, &event->pid, &event->tid);
	if (*ret_thread != UINT32_MAX)
		*ret_time = ts_chrome_time(c, *ret_thread, event->ts);
	return true;
}

/* ---- X ---- */

/* Is there a "stream" argument, the first with that key, with an int value? */
static bool has_stream(const struct ts_chrome_event *event)
{
	struct ts_json js = ts_chrome_reopen(&event->args);
	int64_t value;

	return event->has & TS_CHROME_HAS_ARGS && !ts_json_find_member(&js, "stream") &&
	       ts_chrome_scan_int(&js, &value) && value != TS_ABSENT;
}

static int store_slice(struct ts_chrome *c, struct ts_chrome_event *event, uint32_t thread,
		       int64_t start)
{
	struct ts_slice_row row = ts_slice_none;
	uint32_t taken = TS_CHROME_HAS(TS_CHROME_DUR);
	int rc;

	row.id = ts_chrome_event_id(c, event, &taken);
	row.stack = ts_chrome_stack(c, event, &taken);
	rc = ts_chrome_finish_args(c, event, TS_TABLE_SLICE, taken);
	if (rc)
		return rc;
	row.start = start;
	row.duration = event->dur;
	row.thread = c->threads[thread].row.id;
	row.name = ts_chrome_event_name(c, event);
	row.category = c->categories[event->category].string;
	row.shape = ts_chrome_shape(c, event->arguments);
	TS_CHROME_TABLE_COLUMNS(c, event, TS_TABLE_SLICE, thread, &row);
	ts_chrome_add(c, thread + 1, TS_TABLE_SLICE, &row, event->arguments->values);
	return TS_OK;
}

static int64_t arg_column(const struct ts_chrome_args *args, enum ts_kineto_arg arg)
{
	return args->in_column & UINT32_C(1) << arg ? args->column[arg] : TS_ABSENT;
}

/* Adds a row, and records where a flow arrow must be to belong to it. */
static void add_with_arrow(struct ts_chrome *c, enum ts_table_id table, uint32_t thread,
			   const void *row, int64_t correlation, int64_t arrow,
			   const int64_t *values)
{
	ts_chrome_add(c, thread + 1, table, row, values);
	if (correlation == TS_ABSENT || arrow != TS_ARROW_NONE)
		return;
	c->newest.table = table;
	c->newest.thread = thread;
	c->newest.start = *(const int64_t *)row;
	c->newest.correlation = correlation;
}

static int store_api_call(struct ts_chrome *c, struct ts_chrome_event *event, uint32_t thread,
			  int64_t start)
{
	struct ts_api_call_row row = ts_api_call_none;
	uint32_t taken = TS_CHROME_HAS(TS_CHROME_DUR);
	int rc;

	row.stack = ts_chrome_stack(c, event, &taken);
	rc = ts_chrome_finish_args(c, event, TS_TABLE_API_CALL, taken);
	if (rc)
		return rc;
	row.start = start;
	row.duration = event->dur;
	row.thread = c->threads[thread].row.id;
	row.name = ts_chrome_event_name(c, event);
	row.category = c->categories[event->category].string;
	row.correlation = arg_column(event->arguments, TS_KINETO_ARG_CORRELATION);
	row.shape = ts_chrome_shape(c, event->arguments);
	TS_CHROME_TABLE_COLUMNS(c, event, TS_TABLE_API_CALL, thread, &row);
	add_with_arrow(c, TS_TABLE_API_CALL, thread, &row, row.correlation, row.arrow,
		       event->arguments->values);
	return TS_OK;
}

static void fill_geometry(const struct ts_chrome_args *args, struct ts_gpu_op_row *row)
{
	if (args->in_column & UINT32_C(1) << TS_KINETO_ARG_GRID) {
		row->grid_x = args->grid[0];
		row->grid_y = args->grid[1];
		row->grid_z = args->grid[2];
	}
	if (args->in_column & UINT32_C(1) << TS_KINETO_ARG_BLOCK) {
		row->block_x = args->block[0];
		row->block_y = args->block[1];
		row->block_z = args->block[2];
	}
}

static int store_gpu_op(struct ts_chrome *c, struct ts_chrome_event *event, uint32_t thread,
			int64_t start)
{
	const struct ts_chrome_category *category = &c->categories[event->category];
	const struct ts_chrome_args *args;
	struct ts_gpu_op_row row = ts_gpu_op_none;
	uint32_t taken = TS_CHROME_HAS(TS_CHROME_DUR);
	int rc;

	row.stack = ts_chrome_stack(c, event, &taken);
	rc = ts_chrome_finish_args(c, event, TS_TABLE_GPU_OP, taken);
	args = event->arguments;
	if (!rc)
		rc = ts_chrome_set_gpu_op_entities(c, thread, args, &row);
	if (rc)
		return rc;
	row.start = start;
	row.duration = event->dur;
	row.name = ts_chrome_event_name(c, event);
	row.category = category->string;
	row.kind = ts_kineto_kind(category->meaning.kind, event->name.text, event->name.length);
	if (row.kind == TS_GPU_OP_COPY)
		row.copy_kind = ts_kineto_copy_kind(event->name.text, event->name.length);
	row.correlation = arg_column(args, TS_KINETO_ARG_CORRELATION);
	row.context = arg_column(args, TS_KINETO_ARG_CONTEXT);
	row.registers = arg_column(args, TS_KINETO_ARG_REGISTERS);
	row.shared_bytes = arg_column(args, TS_KINETO_ARG_SHARED_BYTES);
	row.bytes = arg_column(args, TS_KINETO_ARG_BYTES);
	fill_geometry(args, &row);
	row.shape = ts_chrome_shape(c, args);
	TS_CHROME_TABLE_COLUMNS(c, event, TS_TABLE_GPU_OP, thread, &row);
	add_with_arrow(c, TS_TABLE_GPU_OP, thread, &row, row.correlation, row.arrow, args->values);
	return TS_OK;
}

static int store_complete(struct ts_chrome *c, struct ts_chrome_event *event)
{
	const struct ts_kineto_category *meaning = &c->categories[event->category].meaning;
	enum ts_table_id table = meaning->table;
	uint32_t thread;
	int64_t start;

	if (!ts_chrome_resolve_event(c, event, &thread, &start))
		return TS_OK;
	if (thread == UINT32_MAX)
		return TS_ENOMEM;
	if (!(event->has & TS_CHROME_HAS_DURATION) || event->dur < 0)
		event->dur = 0;
	if (TS_UNLIKELY(meaning->needs_stream) && !has_stream(event))
		table = TS_TABLE_SLICE;
	if (TS_UNLIKELY(event->has & TS_CHROME_HAS_NATIVE))
		table = ts_chrome_native_table(event, table);
	if (table == TS_TABLE_GPU_OP)
		return store_gpu_op(c, event, thread, start);
	if (table == TS_TABLE_API_CALL)
		return store_api_call(c, event, thread, start);
	return store_slice(c, event, thread, start);
}

/* ---- s, t, f ---- */

/* Is it the flow arrow of the newest row, and nothing more? */
static bool is_arrow(struct ts_chrome *c, const struct ts_chrome_event *event, bool enclosing)
{
	const uint32_t needed = TS_CHROME_HAS_ID_NUMBER | TS_CHROME_HAS_NAME | TS_CHROME_HAS_TIME;
	uint32_t thread;

	if ((event->phase != 's' && event->phase != 'f') ||
	    !c->categories[event->category].is_arrow || (event->has & needed) != needed ||
	    event->has & TS_CHROME_HAS_NATIVE || event->id_number != c->newest.correlation ||
	    !ts_json_string_is(&event->name, TS_KINETO_ARROW))
		return false;
	/* No members but `id` and, at the end, `bp`; no arguments. */
	if (event->beside_count != 1 + (uint32_t)enclosing || (enclosing && event->phase != 'f'))
		return false;
	if (event->has & TS_CHROME_HAS_ARGS &&
	    (!event->arguments->table || c->nodes[event->arguments->node].depth))
		return false;
	thread = ts_chrome_thread(c, &event->pid, &event->tid);
	return thread == c->newest.thread &&
	       ts_chrome_time(c, thread, event->ts) == c->newest.start;
}

/* Stores a flow arrow in the row it belongs to; false: it is not one. */
static bool draw_arrow(struct ts_chrome *c, const struct ts_chrome_event *event)
{
	bool enclosing = ts_chrome_member_is(event, TS_CHROME_BP, "\"e\"");
	int column = c->newest.table == TS_TABLE_GPU_OP ? (int)TS_COLUMN_OF(gpu_op, arrow)
							: (int)TS_COLUMN_OF(api_call, arrow);

	if (!is_arrow(c, event, enclosing))
		return false;
	ts_writer_amend(c->writer, c->newest.table, column,
			event->phase == 's' ? TS_ARROW_OUT
			: enclosing         ? TS_ARROW_IN_ENCLOSING
					    : TS_ARROW_IN);
	return true;
}

/* ---- all ---- */

int ts_chrome_store(struct ts_chrome *c, struct ts_chrome_event *event)
{
	bool drawn = c->newest.table && draw_arrow(c, event);

	c->newest.table = 0;
	if (drawn ||
	    (TS_UNLIKELY(event->has & TS_CHROME_HAS_NATIVE) && ts_chrome_native_is_drawn(event)))
		return TS_OK;
	if (TS_UNLIKELY(event->wrong))
		ts_chrome_lose(c, TS_CHROME_LOSS_MEMBER, event->wrong);
	if (TS_UNLIKELY(!(event->has & TS_CHROME_HAS_PHASE))) {
		/*
		 * Some tools end the list with an empty object, to avoid handling the last comma.
		 */
		if (!(event->has & TS_CHROME_IS_OBJECT) || event->has & TS_CHROME_HAS_ANY)
			ts_chrome_lose(c, TS_CHROME_LOSS_ITEM, 1);
		return TS_OK;
	}
	switch (event->phase) {
	case 'X':
		return store_complete(c, event);
	case 'B':
	case 'E':
		return ts_chrome_store_half(c, event, event->phase == 'E', false);
	case 'b':
	case 'S':
		return ts_chrome_store_half(c, event, false, true);
	case 'e':
	case 'F':
		return ts_chrome_store_half(c, event, true, true);
	case 's':
	case 't':
	case 'f':
		return ts_chrome_store_flow(c, event);
	case 'C':
		return ts_chrome_store_counter(c, event);
	case 'n':
	case 'T':
	case 'p':
		return ts_chrome_store_mark(c, event, "n");
	case 'i':
	case 'I':
		return ts_chrome_store_mark(c, event, "");
	case 'P':
		return ts_chrome_store_p(c, event);
	case 'M':
		return ts_chrome_store_metadata(c, event);
	default:
		return ts_chrome_store_mark(c, event, NULL);
	}
}
