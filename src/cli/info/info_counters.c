/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduces each counter of a trace to a few numbers and a graph. Rows come in time order: a value
 * holds until the next one, and a rate covers the time since the one before. Memory grows with the
 * number of series, not of rows.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/ns.h"
#include "cli/common/progress.h"
#include "cli/info/info_counters.h"
#include "trace/row_query.h"

/*
 * Counters without a thread were sampled by a recorder. Sampling may pause, or a value may become
 * unreadable, so a sampled value holds for a few intervals only.
 */
#define HOLD_NS INT64_C(500000000)
#define HOLD_INTERVALS 5

/* Below this, sums over time stay finite. */
#define GREATEST_VALUE 1e285

/* ---- counters and series ---- */

/* Once full, new series are only counted, so that memory stays bounded. */
static bool is_full(const struct ts_counters *all)
{
	return all->series_count >= TS_COUNTERS_SERIES || all->counter_count >= TS_COUNTERS_SERIES;
}

/* A number for the text of a string id. TS_ENOTFOUND: the table is full. */
static int text_of(struct ts_counters *all, int64_t string, int64_t *ret_text)
{
	struct ts_string text;
	uint64_t known;
	uint32_t id;

	if (ts_map_get(&all->text_ids, (uint64_t)string, &known)) {
		*ret_text = (int64_t)known;
		return TS_OK;
	}
	text = ts_reader_string(all->reader, string);
	if (is_full(all))
		id = ts_strmap_find(&all->texts, text.data, text.length);
	else
		id = ts_strmap_intern(&all->texts, text.data, text.length, NULL);
	*ret_text = id;
	if (id == TS_STRMAP_NONE)
		return is_full(all) ? TS_ENOTFOUND : TS_ENOMEM;
	return is_full(all) ? TS_OK : ts_map_put(&all->text_ids, (uint64_t)string, id);
}

static enum ts_counter_subject subject_of(const struct ts_counter_row *row)
{
	if (row->thread)
		return TS_COUNTER_THREAD;
	if (row->device)
		return row->process ? TS_COUNTER_PROCESS_ON_DEVICE : TS_COUNTER_DEVICE;
	return row->process ? TS_COUNTER_PROCESS : TS_COUNTER_SYSTEM;
}

/* Recorders sample rates and percentages of time over the time since the sample before. */
static bool is_rate(const struct ts_counters *all, const struct ts_counter_row *row)
{
	struct ts_string name = ts_reader_string(all->reader, row->name);
	const char *unit = ts_counter_unit(name.data, name.length);

	return !row->thread &&
	       (!strcmp(unit, "per_s") || !strcmp(unit, "bytes_per_s") || !strcmp(unit, "percent"));
}

static int add_counter(struct ts_counters *all, const struct ts_counter_row *row)
{
	if (ts_grow_array((void **)&all->counters, &all->counter_capacity, all->counter_count + 1,
			  sizeof(*all->counters)))
		return TS_ENOMEM;
	all->counters[all->counter_count++] = (struct ts_counter){
		.row = *row,
		.subject = subject_of(row),
		.is_rate = is_rate(all, row),
	};
	return TS_OK;
}

/* Finds or adds the counter of a row. TS_ENOTFOUND: the table is full. */
static int find_counter(struct ts_counters *all, const struct ts_counter_row *row,
			struct ts_counter **ret_counter)
{
	int64_t identity[6] = { row->thread, row->process, row->device };
	bool is_new = false;
	uint32_t index;
	int rc;

	rc = text_of(all, row->name, &identity[3]);
	if (!rc)
		rc = text_of(all, row->category, &identity[4]);
	if (!rc)
		rc = text_of(all, row->id, &identity[5]);
	if (rc)
		return rc;
	if (is_full(all))
		index = ts_strmap_find(&all->keys, (const char *)identity, sizeof(identity));
	else
		index = ts_strmap_intern(&all->keys, (const char *)identity, sizeof(identity),
					 &is_new);
	if (index == TS_STRMAP_NONE)
		return is_full(all) ? TS_ENOTFOUND : TS_ENOMEM;
	if (is_new && add_counter(all, row))
		return TS_ENOMEM;
	*ret_counter = &all->counters[index];
	return TS_OK;
}

static struct ts_counter_series *add_series(struct ts_counters *all, struct ts_counter *counter,
					    int64_t key)
{
	struct ts_counter_series *series;

	if (ts_grow_array((void **)&all->series, &all->series_capacity, all->series_count + 1,
			  sizeof(*all->series)))
		return NULL;
	series = &all->series[all->series_count++];
	*series = (struct ts_counter_series){
		.counter = (uint32_t)(counter - all->counters),
		.order = (uint32_t)all->series_count,
		.key = key,
		.least = INFINITY,
		.greatest = -INFINITY,
		.least_integer = INT64_MAX,
		.greatest_integer = INT64_MIN,
	};
	return series;
}

/* Finds or adds a series. TS_ENOTFOUND: the table is full. */
static int find_series(struct ts_counters *all, struct ts_counter *counter, int64_t key,
		       struct ts_counter_series **ret_series)
{
	uint64_t owner = (uint64_t)(counter - all->counters), known = 0;
	int64_t text;
	int rc = text_of(all, key, &text);

	if (rc)
		return rc;
	if (!ts_pairmap_get(&all->indices, owner, (uint64_t)text, &known)) {
		if (is_full(all))
			return TS_ENOTFOUND;
		known = all->series_count;
		if (!add_series(all, counter, key) ||
		    ts_pairmap_put(&all->indices, owner, (uint64_t)text, known))
			return TS_ENOMEM;
	}
	*ret_series = &all->series[known];
	return TS_OK;
}

/* ---- values ---- */

static int64_t saturated_sum(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The longest time that a sampled value may stand for. */
static int64_t longest_hold(const struct ts_counter_series *series)
{
	int64_t longest = HOLD_NS;

	if (series->interval_ns > HOLD_NS / HOLD_INTERVALS &&
	    __builtin_mul_overflow(series->interval_ns, HOLD_INTERVALS, &longest))
		longest = INT64_MAX;
	return longest;
}

/* Ends the current value at `until`, or after the longest time that it may hold. */
static void settle(const struct ts_counters *all, struct ts_counter_series *series, int64_t until)
{
	const struct ts_counter *counter = &all->counters[series->counter];

	if (!series->holds)
		return;
	series->holds = false;
	/* A rate has been added, unless it is a single one, which covers an unknown time. */
	if (counter->is_rate) {
		if (!series->interval_ns)
			ts_resample_add(series->graph, series->since_ns, series->since_ns,
					series->newest);
		return;
	}
	/* Before the second value the interval is unknown. */
	if (counter->subject != TS_COUNTER_THREAD && series->interval_ns > 0)
		until = TS_MIN(until, saturated_sum(series->since_ns, longest_hold(series)));
	ts_resample_add(series->graph, series->since_ns, until, series->newest);
}

/* Adds a rate for the time since the value before. */
static void add_rate(struct ts_counter_series *series, int64_t now_ns, double rate)
{
	int64_t before = series->since_ns, interval = ts_ns_between(before, now_ns);

	if (series->holds && !series->interval_ns) {
		/* The first one covers a time that is unknown: about as much as this one. */
		ts_resample_add(series->graph, ts_ns_sub(before, interval), before, series->newest);
		series->interval_ns = interval;
	} else if (series->holds && interval <= longest_hold(series)) {
		series->interval_ns = interval;
	}
	if (series->interval_ns)
		ts_resample_add(series->graph, ts_ns_sub(now_ns, series->interval_ns), now_ns,
				rate);
}

static int start_graph(struct ts_counters *all, struct ts_counter_series *series)
{
	series->graph = ts_arena_alloc(&all->arena, sizeof(*series->graph));
	if (!series->graph)
		return TS_ENOMEM;
	ts_resample_init(series->graph, all->range.from, all->range.to);
	return TS_OK;
}

/* Ends the value before, which this one replaces. */
static void add_gauge(struct ts_counters *all, struct ts_counter_series *series, int64_t now_ns)
{
	bool goes_on = series->holds;

	settle(all, series, now_ns);
	if (goes_on)
		series->interval_ns = ts_ns_between(series->since_ns, now_ns);
}

static int add_number(struct ts_counters *all, struct ts_counter_series *series, int64_t now_ns,
		      double value)
{
	if (!(fabs(value) <= GREATEST_VALUE)) {
		settle(all, series, now_ns);
		series->not_drawn++;
		return TS_OK;
	}
	if (!series->graph && start_graph(all, series))
		return TS_ENOMEM;
	if (all->counters[series->counter].is_rate)
		add_rate(series, now_ns, value);
	else
		add_gauge(all, series, now_ns);
	if (series->values++ == 0)
		series->first_ns = now_ns;
	series->last_ns = series->since_ns = now_ns;
	series->newest = value;
	series->least = TS_MIN(series->least, value);
	series->greatest = TS_MAX(series->greatest, value);
	series->holds = true;
	return TS_OK;
}

static int add_integer(struct ts_counters *all, struct ts_counter_series *series, int64_t now_ns,
		       int64_t value)
{
	series->newest_integer = value;
	series->least_integer = TS_MIN(series->least_integer, value);
	series->greatest_integer = TS_MAX(series->greatest_integer, value);
	return add_number(all, series, now_ns, (double)value);
}

static int add_real(struct ts_counters *all, struct ts_counter_series *series, int64_t now_ns,
		    int64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	series->is_real = true;
	return add_number(all, series, now_ns, value);
}

static int add_value(struct ts_counters *all, struct ts_counter_series *series, int64_t now_ns,
		     unsigned int type, int64_t value)
{
	switch (type) {
	case TS_ARG_INT:
	case TS_ARG_BOOL:
		return add_integer(all, series, now_ns, value);
	case TS_ARG_DOUBLE:
		return add_real(all, series, now_ns, value);
	case TS_ARG_STRING:
	case TS_ARG_JSON:
		settle(all, series, now_ns);
		series->texts++;
		series->newest_text = value;
		return TS_OK;
	default:
		settle(all, series, now_ns);
		return TS_OK;
	}
}

static int take_fields(struct ts_counters *all, struct ts_counter *counter,
		       const struct ts_counter_row *row, const int64_t *values)
{
	const struct ts_shape *shape = ts_reader_shape(all->reader, row->shape);
	struct ts_counter_series *series;

	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];
		int64_t value = values && ts_arg_has_value(field->type) ? *values++ : 0;
		int rc;

		if (field->beside || field->type == TS_ARG_COLUMN)
			continue;
		rc = find_series(all, counter, field->key, &series);
		if (!rc)
			rc = add_value(all, series, row->start, field->type, value);
		if (rc == TS_ENOTFOUND)
			all->left_out++;
		else if (rc)
			return rc;
	}
	return TS_OK;
}

static int take_row(void *context, const struct ts_row *shown, struct ts_error *err)
{
	struct ts_counters *all = context;
	struct ts_counter_row row;
	struct ts_counter *counter;
	int rc;

	memcpy(&row, shown->columns, sizeof(row));
	all->rows++;
	rc = find_counter(all, &row, &counter);
	if (rc == TS_ENOTFOUND) {
		all->left_out++;
		return TS_OK;
	}
	if (!rc)
		rc = take_fields(all, counter, &row, shown->values);
	return rc ? ts_error_set(err, rc, "no memory for the counters of a trace") : TS_OK;
}

/* The last value of a sampled series holds for one more interval, until its process exits. */
static void settle_all(struct ts_counters *all)
{
	for (size_t i = 0; i < all->series_count; i++) {
		struct ts_counter_series *series = &all->series[i];
		const struct ts_counter *counter = &all->counters[series->counter];
		const struct ts_process_row *process;
		int64_t until = all->range.to;

		if (counter->subject != TS_COUNTER_THREAD)
			until = TS_MIN(until, saturated_sum(series->since_ns, series->interval_ns));
		process = ts_reader_entity(all->reader, TS_TABLE_PROCESS, counter->row.process);
		if (process && process->end != TS_ABSENT && process->end > series->since_ns)
			until = TS_MIN(until, process->end);
		settle(all, series, until);
	}
}

/* ---- subjects ---- */

/* "0: NVIDIA H100": the number and the model, with the vendor unless the model contains it. */
static void append_device(const struct ts_counters *all, struct ts_text *out, int64_t id)
{
	const struct ts_device_row *device = ts_reader_entity(all->reader, TS_TABLE_DEVICE, id);
	struct ts_string vendor, model;

	if (!device) {
		ts_text_printf(out, "#%lld", (long long)id);
		return;
	}
	vendor = ts_reader_string(all->reader, device->vendor);
	model = ts_reader_string(all->reader, device->name);
	ts_text_append_int(out, device->number == TS_ABSENT ? id : device->number);
	if (vendor.length || model.length)
		ts_text_append_char(out, ':');
	if (vendor.length && strncasecmp(vendor.data, model.data, vendor.length)) {
		ts_text_append_char(out, ' ');
		ts_text_append(out, vendor.data, vendor.length);
	}
	if (model.length) {
		ts_text_append_char(out, ' ');
		ts_text_append(out, model.data, model.length);
	}
}

static void append_where(const struct ts_counters *all, struct ts_text *out,
			 const struct ts_counter *counter)
{
	const struct ts_row row = {
		.table = ts_table_info(TS_TABLE_COUNTER),
		.columns = (const int64_t *)(const void *)&counter->row,
	};

	if (counter->row.thread) {
		ts_text_append_str(out, "thread ");
		ts_show_cell(&all->show, out, &row, TS_COLUMN_OF(counter, thread));
	} else if (counter->row.process) {
		ts_text_append_str(out, "process ");
		ts_show_cell(&all->show, out, &row, TS_COLUMN_OF(counter, process));
	} else if (!counter->row.device) {
		ts_text_append_str(out, "system");
	}
	if (counter->row.device) {
		ts_text_append_str(out, out->length ? " on device " : "device ");
		append_device(all, out, counter->row.device);
	}
}

static int name_subjects(struct ts_counters *all)
{
	TS_SCOPED(ts_text) where = { 0 };

	for (size_t i = 0; i < all->counter_count; i++) {
		ts_text_clear(&where);
		append_where(all, &where, &all->counters[i]);
		all->counters[i].where =
			ts_arena_strdup_len(&all->arena, ts_text_cstr(&where), where.length);
		if (where.failed || !all->counters[i].where)
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* ---- order ---- */

static int compare_int64(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int64_t pid_of(struct ts_reader *reader, int64_t id)
{
	const struct ts_process_row *process = ts_reader_entity(reader, TS_TABLE_PROCESS, id);

	return process ? process->pid : 0;
}

static int64_t number_of(struct ts_reader *reader, int64_t id)
{
	const struct ts_device_row *device = ts_reader_entity(reader, TS_TABLE_DEVICE, id);

	return device ? device->number : 0;
}

static int compare_strings(struct ts_reader *reader, int64_t a, int64_t b)
{
	struct ts_string first = ts_reader_string(reader, a), second = ts_reader_string(reader, b);
	int order = memcmp(first.data, second.data, TS_MIN(first.length, second.length));

	return order ? order : compare_int64((int64_t)first.length, (int64_t)second.length);
}

static int compare_counters(struct ts_reader *reader, const struct ts_counter *a,
			    const struct ts_counter *b)
{
	int order = compare_int64(a->subject, b->subject);

	if (!order)
		order = compare_int64(pid_of(reader, a->row.process),
				      pid_of(reader, b->row.process));
	if (!order)
		order = compare_int64(number_of(reader, a->row.device),
				      number_of(reader, b->row.device));
	if (!order)
		order = compare_int64(a->row.process, b->row.process);
	if (!order)
		order = compare_int64(a->row.thread, b->row.thread);
	if (!order)
		order = compare_int64(a->row.device, b->row.device);
	if (!order)
		order = compare_strings(reader, a->row.name, b->row.name);
	return order ? order : compare_strings(reader, a->row.id, b->row.id);
}

static int compare_series(const void *a, const void *b, void *context)
{
	const struct ts_counters *all = context;
	const struct ts_counter_series *first = a, *second = b;
	int order = 0;

	if (first->counter != second->counter)
		order = compare_counters(all->reader, &all->counters[first->counter],
					 &all->counters[second->counter]);
	if (!order)
		order = compare_int64(first->counter, second->counter);
	/* Series of one counter stay in order of first appearance. */
	return order ? order : compare_int64(first->order, second->order);
}

static void sort_series(struct ts_counters *all)
{
	if (all->series_count)
		qsort_r(all->series, all->series_count, sizeof(*all->series), compare_series, all);
}

/* ---- entry points ---- */

static int walk(struct ts_counters *all, const struct ts_filter *filter, struct ts_error *err)
{
	struct ts_progress progress;
	struct ts_row_query query = {
		.tables = TS_TABLE_BIT(TS_TABLE_COUNTER),
		.from = INT64_MIN,
		.to = INT64_MAX,
		.masks[TS_TABLE_COUNTER] = TS_MASK_ALL,
		.filter = filter,
		.limit = UINT64_MAX,
		.emit = take_row,
		.context = all,
		.progress = ts_progress_step,
		.progress_context = &progress,
	};
	int rc;

	ts_progress_start(&progress, "info", TS_PROGRESS_ROWS);
	rc = ts_row_query_run(all->reader, &query, err);
	ts_progress_stop(&progress);
	return rc;
}

int ts_counters_collect(struct ts_counters *counters, const char *path,
			const struct ts_filter_options *filters, struct ts_error *err)
{
	TS_AUTO(ts_filter) filter = NULL;
	int rc;

	counters->path = path;
	ts_strmap_init(&counters->texts, 0);
	ts_strmap_init(&counters->keys, 0);
	ts_show_init(&counters->show, counters->reader);
	rc = ts_trace_range(counters->reader, &counters->range, err);
	if (!rc)
		rc = ts_filter_options_compile(&filter, counters->reader, filters, err);
	if (!rc)
		rc = walk(counters, filter, err);
	if (rc)
		return rc;
	settle_all(counters);
	if (name_subjects(counters))
		return ts_error_set(err, TS_ENOMEM, "no memory for the counters of a trace");
	sort_series(counters);
	return TS_OK;
}

void ts_counters_release(struct ts_counters *counters)
{
	free(counters->counters);
	free(counters->series);
	ts_map_release(&counters->text_ids);
	ts_strmap_release(&counters->texts);
	ts_strmap_release(&counters->keys);
	ts_pairmap_release(&counters->indices);
	ts_arena_release(&counters->arena);
	*counters = (struct ts_counters){ 0 };
}
