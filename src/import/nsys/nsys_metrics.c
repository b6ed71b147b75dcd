/* SPDX-License-Identifier: Apache-2.0 */
/* Sampled metrics of GPUs and network cards: rows of `counter`, one series per metric. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "import/nsys/nsys.h"

/* Names of metrics by two numbers. */
static int read_metric_names(struct ts_nsys *n, const char *name, const char *first,
			     const char *second, const char *text)
{
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, name);
	const char *const columns[] = { first, second, text };
	struct ts_sqlite_query query;
	int rc;

	if (!table)
		return TS_OK;
	table->is_taken = true;
	rc = ts_sqlite_select(n->db, &query, table->name, columns, TS_ARRAY_SIZE(columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0)
		rc = ts_pairmap_put(&n->metrics, (uint64_t)ts_sqlite_int(&query, 0),
				    (uint64_t)ts_sqlite_int(&query, 1),
				    ts_sqlite_string(&query, 2));
	ts_sqlite_end(&query);
	return rc;
}

static uint32_t metric_name(struct ts_nsys *n, int64_t first, int64_t second)
{
	uint64_t name;
	char text[64];

	if (ts_pairmap_get(&n->metrics, (uint64_t)first, (uint64_t)second, &name) && name)
		return (uint32_t)name;
	snprintf(text, sizeof(text), "metric %" PRId64, second);
	return ts_nsys_literal(n, text);
}

/*
 * The device of a metrics type: its last byte is the GPU number. With a single machine the rest is
 * ignored.
 */
static int64_t metric_device(struct ts_nsys *n, int64_t type)
{
	int64_t host = n->entities->hosts.count == 1
			       ? n->entities->hosts.first_id
			       : ts_entities_host(n->entities, (uint64_t)type >> 48);

	return ts_entities_device(n->entities, host, (uint64_t)type & 0xff, type & 0xff);
}

static int read_gpu_metrics(struct ts_nsys *n)
{
	enum { TIME, TYPE, METRIC, VALUE };
	static const char *const columns[] = { "timestamp", "typeId", "metricId", "value" };
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, "GPU_METRICS");
	uint32_t category = ts_nsys_literal(n, "GPU_METRICS");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	int rc =
		read_metric_names(n, "TARGET_INFO_GPU_METRICS", "typeId", "metricId", "metricName");

	if (rc || !table)
		return rc;
	table->is_taken = true;
	ts_nsys_args_add(n, &args, "value", VALUE, NULL);
	rc = ts_sqlite_select(n->db, &query, table->name, columns, TS_ARRAY_SIZE(columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		struct ts_counter_row row = ts_counter_none;
		int64_t type = ts_sqlite_int(&query, TYPE), none;

		rc = TS_OK;
		row.start = ts_sqlite_int(&query, TIME);
		if (!ts_nsys_span(n, row.start, TS_ABSENT, &none))
			continue;
		row.device = type == TS_ABSENT ? 0 : metric_device(n, type);
		row.name = metric_name(n, type, ts_sqlite_int(&query, METRIC));
		row.category = category;
		row.shape = ts_nsys_args_read(n, &args, &query);
		ts_nsys_add_event(n, TS_TABLE_COUNTER, &row, args.values);
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}

static int read_nic_metrics(struct ts_nsys *n)
{
	enum { START, CARD, PORT, LIST, INDEX, VALUE };
	static const char *const columns[] = { "start",         "globalId",   "portId",
					       "metricsListId", "metricsIdx", "value" };
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, "NET_NIC_METRIC");
	uint32_t category = ts_nsys_literal(n, "NET_NIC_METRIC");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	int rc;

	ts_pairmap_clear(&n->metrics);
	rc = read_metric_names(n, "TARGET_INFO_NETWORK_METRICS", "metricsListId", "metricsIdx",
			       "name");
	if (rc || !table)
		return rc;
	table->is_taken = true;
	ts_nsys_args_add(n, &args, "value", VALUE, NULL);
	rc = ts_sqlite_select(n->db, &query, table->name, columns, TS_ARRAY_SIZE(columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		struct ts_counter_row row = ts_counter_none;
		char id[64];
		int64_t none;

		rc = TS_OK;
		row.start = ts_sqlite_int(&query, START);
		if (!ts_nsys_span(n, row.start, TS_ABSENT, &none))
			continue;
		snprintf(id, sizeof(id), "\"%" PRId64 ":%" PRId64 "\"", ts_sqlite_int(&query, CARD),
			 ts_sqlite_int(&query, PORT));
		row.id = ts_nsys_literal(n, id);
		row.name =
			metric_name(n, ts_sqlite_int(&query, LIST), ts_sqlite_int(&query, INDEX));
		row.category = category;
		row.shape = ts_nsys_args_read(n, &args, &query);
		ts_nsys_add_event(n, TS_TABLE_COUNTER, &row, args.values);
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}

int ts_nsys_read_metrics(struct ts_nsys *n)
{
	int rc = read_gpu_metrics(n);

	return rc ? rc : read_nic_metrics(n);
}
