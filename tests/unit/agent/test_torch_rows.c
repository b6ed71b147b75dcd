/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of torch_trace as the agent stores them: modules, serials, ranks, and flight mode. */
#include <math.h>
#include <pthread.h>

#include <tracesmith/torch.h>

#include "unit/agent/agent_support.h"

static struct ts_torch_row plain_row(uint32_t module)
{
	return (struct ts_torch_row){ .size = sizeof(struct ts_torch_row),
				      .start_ns = 1000,
				      .duration_ns = 20,
				      .step = 3,
				      .seq = 4,
				      .module = module,
				      .stage = TS_TORCH_BACKWARD,
				      .allocated = 1.5,
				      .max_allocated = 2.5,
				      .cached = 3.5,
				      .device = 1,
				      .rank = TS_TORCH_NO_RANK,
				      .device_ns = TS_TORCH_ABSENT };
}

static struct ts_live_torch payload_of(const uint64_t *record)
{
	struct ts_live_torch payload;

	memcpy(&payload, record + 2, sizeof(payload));
	return payload;
}

TS_TEST(a_path_has_one_number)
{
	uint32_t first = ts_torch_module("model.a"), second = ts_torch_module("model.b");
	char path[32];

	TS_CHECK(first && second && first != second);
	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "many.%d", i);
		TS_CHECK(ts_torch_module(path));
	}
	TS_CHECK_INT(ts_torch_module("model.a"), first);
	TS_CHECK_INT(ts_torch_module("model.b"), second);
	TS_CHECK(ts_torch_module(NULL) == ts_torch_module(""));
}

TS_TEST(a_row_and_its_time_are_stored)
{
	uint32_t module = ts_torch_module("encoder.0");
	struct ts_torch_row row = plain_row(module);
	struct ts_live_torch_time time;
	struct agent_reader reader;
	struct ts_live_record head;
	struct ts_live_torch torch;
	const uint64_t *record;
	uint64_t serials[2];
	char name[64];

	setenv("RANK", "5", 1);
	agent_begin("enabled=1");
	serials[0] = ts_torch_row(&row); /* the first event of the process */
	row.rank = 7;
	row.device = TS_TORCH_HOST;
	serials[1] = ts_torch_row(&row); /* the hot path */
	TS_CHECK(serials[0] && serials[1] && serials[0] < serials[1]);
	ts_torch_device_time(serials[1], 123);
	ts_torch_device_time(0, 124);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_TORCH), 2);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_TORCH_TIME), 1);
	record = agent_find(&reader, TS_LIVE_TORCH, 0, &head);
	torch = payload_of(record);
	TS_CHECK_STR(agent_site_name(head.site, name, sizeof(name)), "encoder.0");
	TS_CHECK(torch.serial == serials[0]);
	TS_CHECK_INT(torch.start_ns, 1000);
	TS_CHECK_INT(torch.duration_ns, 20);
	TS_CHECK_INT(torch.step, 3);
	TS_CHECK_INT(torch.sequence, 4);
	TS_CHECK(torch.allocated == 1.5 && torch.max_allocated == 2.5 && torch.cached == 3.5);
	TS_CHECK_INT(ts_live_device_of(torch.device_stage), 1);
	TS_CHECK_INT(ts_live_kind_of(torch.device_stage), TS_TORCH_BACKWARD);
	TS_CHECK_INT(torch.rank, 5);
	TS_CHECK_INT(torch.device_ns, TS_TORCH_ABSENT);
	torch = payload_of(agent_find(&reader, TS_LIVE_TORCH, 1, &head));
	TS_CHECK_INT(torch.rank, 7);
	TS_CHECK_INT(ts_live_device_of(torch.device_stage), TS_LIVE_DEVICE_MASK);
	memcpy(&time, agent_find(&reader, TS_LIVE_TORCH_TIME, 0, &head) + 2, sizeof(time));
	TS_CHECK(time.serial == serials[1]);
	TS_CHECK_INT(time.device_ns, 123);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(nothing_is_stored_while_events_are_off)
{
	struct ts_torch_row row = plain_row(0);

	agent_begin("enabled=0");
	TS_CHECK(!ts_torch_row(&row));
	TS_CHECK(!ts_torch_row(NULL));
	agent_end(true);
}

TS_TEST(a_struct_of_an_older_program_is_read)
{
	struct ts_torch_row row = plain_row(ts_torch_module("old"));
	struct agent_reader reader;
	struct ts_live_record head;
	struct ts_live_torch torch;

	agent_begin("enabled=1");
	row.rank = 3;
	row.device_ns = 5;
	row.size = offsetof(struct ts_torch_row, rank);
	TS_CHECK(ts_torch_row(&row));
	row.size = offsetof(struct ts_torch_row, device);
	TS_CHECK(!ts_torch_row(&row));
	agent_open_reader(&reader);
	agent_drain(&reader);
	torch = payload_of(agent_find(&reader, TS_LIVE_TORCH, 0, &head));
	TS_CHECK_INT(torch.rank, -1);
	TS_CHECK_INT(torch.device_ns, TS_TORCH_ABSENT);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(a_child_uses_its_parents_modules)
{
	uint32_t module = ts_torch_module("shared");
	struct ts_torch_row row = plain_row(module);
	struct agent_reader reader;
	struct ts_live_record head;
	char name[64];
	pid_t child;

	agent_begin("enabled=1");
	TS_CHECK(ts_torch_row(&row));
	child = fork();
	if (child == 0) {
		TS_CHECK_INT(ts_torch_module("shared"), module);
		TS_CHECK(ts_torch_row(&row));
		agent_open_reader(&reader);
		agent_drain(&reader);
		TS_CHECK_INT(agent_count(&reader, TS_LIVE_TORCH), 1);
		agent_find(&reader, TS_LIVE_TORCH, 0, &head);
		TS_CHECK_STR(agent_site_name(head.site, name, sizeof(name)), "shared");
		_exit(0);
	}
	agent_join_child(child);
	agent_end(true);
}

/* More paths than the dictionary has space for. */
TS_TEST(paths_are_in_the_records_once_the_dictionary_is_full)
{
	struct agent_reader reader;
	struct ts_live_record head;
	char path[512], name[512];
	const uint64_t *record;
	uint64_t dynamic = 0;

	agent_begin("enabled=1");
	for (int i = 0; i < 3000; i++) {
		struct ts_torch_row row;

		snprintf(path, sizeof(path), "%0*d", 400, i);
		row = plain_row(ts_torch_module(path));
		TS_CHECK(ts_torch_row(&row));
	}
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_TORCH), 3000);
	for (unsigned int i = 2990; i < 3000; i++) {
		record = agent_find(&reader, TS_LIVE_TORCH, i, &head);
		if (head.site)
			continue;
		dynamic++;
		record += 2 + TS_LIVE_WORDS(struct ts_live_torch);
		snprintf(path, sizeof(path), "%0*u", 400, i);
		TS_CHECK_STR(agent_string(&record, name, sizeof(name)), path);
	}
	TS_CHECK_INT(dynamic, 10);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(flight_mode_keeps_ten_thousand_rows_a_thread)
{
	uint32_t module = ts_torch_module("kept");
	struct ts_torch_row row = plain_row(module);
	struct ts_live_torch torch;
	struct agent_reader reader;
	struct ts_live_record head;
	uint64_t rows;

	agent_begin("enabled=1;mode=flight");
	for (int64_t i = 0; i < 100000; i++) {
		uint64_t serial;

		row.step = i;
		serial = ts_torch_row(&row);
		TS_CHECK(serial);
		ts_torch_device_time(serial, i);
	}
	agent_open_reader(&reader);
	agent_drain(&reader);
	rows = agent_count(&reader, TS_LIVE_TORCH);
	TS_CHECK(rows >= 10000);
	torch = payload_of(agent_find(&reader, TS_LIVE_TORCH, (unsigned int)rows - 1, &head));
	TS_CHECK_INT(torch.step, 99999);
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- threads that name the same modules at once ---- */

enum { THREADS = 4, PATHS = 500 };

static void *name_modules(void *numbers_of)
{
	uint32_t *numbers = numbers_of;
	char path[32];

	for (int i = 0; i < PATHS; i++) {
		snprintf(path, sizeof(path), "at.once.%d", i);
		numbers[i] = ts_torch_module(path);
	}
	return NULL;
}

TS_TEST(threads_may_name_modules_at_once)
{
	static uint32_t numbers[THREADS][PATHS];
	struct agent_reader reader;
	struct ts_live_record head;
	pthread_t threads[THREADS];
	char path[32], name[64];

	for (int i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, name_modules, numbers[i]), 0);
	for (int i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_join(threads[i], NULL), 0);
	agent_begin("enabled=1");
	for (int i = 0; i < THREADS; i++) {
		for (int k = 0; k < PATHS; k++) {
			struct ts_torch_row row = plain_row(numbers[i][k]);

			TS_CHECK(numbers[i][k] && ts_torch_row(&row));
		}
	}
	agent_open_reader(&reader);
	agent_drain(&reader);
	for (unsigned int n = 0; n < THREADS * PATHS; n++) {
		TS_CHECK(agent_find(&reader, TS_LIVE_TORCH, n, &head) != NULL);
		snprintf(path, sizeof(path), "at.once.%u", n % PATHS);
		TS_CHECK_STR(agent_site_name(head.site, name, sizeof(name)), path);
	}
	agent_close_reader(&reader);
	agent_end(true);
}
