/* SPDX-License-Identifier: Apache-2.0 */
/* Processes as listed by the system: process_tree describes them, process_stats their usage. */
#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_kinds.h"

/* One process of a tree; its name is the first word of its command line. */
static void read_process(struct ts_perfetto *p, uint32_t machine, const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	int64_t pid = TS_ABSENT, above = 0, process, parent;
	uint32_t name = 0, command = 0;
	bool is_command = true;
	struct ts_process_row *row;

	ts_text_clear(&p->json);
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			pid = (int32_t)field.value;
			break;
		case 2:
			above = (int32_t)field.value;
			break;
		case 3:
			if (!name)
				name = ts_perfetto_string(p, &field);
			ts_text_append_char(&p->json, p->json.length ? ',' : '[');
			ts_text_append_json(&p->json, field.bytes ? field.bytes : "", field.length);
			break;
		case 9:
			is_command = !field.value;
			break;
		}
	}
	if (pid == TS_ABSENT)
		return;
	if (p->json.length && is_command) {
		ts_text_append_char(&p->json, ']');
		command = ts_writer_string(p->writer, p->json.data, p->json.length);
	}
	parent = above > 0 ? ts_perfetto_process(p, machine, above) : 0;
	process = ts_perfetto_process(p, machine, pid);
	if (!process)
		return;
	row = ts_entities_process_row(&p->entities, process);
	row->parent = parent;
	if (name && !row->name)
		row->name = name;
	if (command && !row->command)
		row->command = command;
}

static void read_thread(struct ts_perfetto *p, uint32_t machine, const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	int64_t tid = TS_ABSENT, pid = TS_ABSENT, thread;
	uint32_t name = 0;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			tid = (int32_t)field.value;
		else if (field.number == 2)
			name = ts_perfetto_string(p, &field);
		else if (field.number == 3)
			pid = (int32_t)field.value;
	}
	if (tid == TS_ABSENT || pid == TS_ABSENT)
		return;
	thread = ts_perfetto_thread(p, machine, pid, tid);
	if (thread && name && !ts_entities_thread_row(&p->entities, thread)->name)
		ts_entities_thread_row(&p->entities, thread)->name = name;
}

void ts_perfetto_read_process_tree(struct ts_perfetto *p, const struct ts_perfetto_packet *packet)
{
	struct ts_proto_reader message = ts_proto_message(&packet->data);
	struct ts_proto_field field;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			read_process(p, packet->machine, &field);
		else if (field.number == 2)
			read_thread(p, packet->machine, &field);
	}
}

/* Names from Perfetto's schema. */
static const char *series(uint32_t number)
{
	static const char *const names[] = {
		[2] = "vm_size_kb",           [3] = "vm_rss_kb",
		[4] = "rss_anon_kb",          [5] = "rss_file_kb",
		[6] = "rss_shmem_kb",         [7] = "vm_swap_kb",
		[8] = "vm_locked_kb",         [9] = "vm_hwm_kb",
		[10] = "oom_score_adj",       [13] = "chrome_private_footprint_kb",
		[16] = "smr_rss_kb",          [17] = "smr_pss_kb",
		[18] = "smr_pss_anon_kb",     [19] = "smr_pss_file_kb",
		[20] = "smr_pss_shmem_kb",    [21] = "runtime_user_mode",
		[22] = "runtime_kernel_mode", [23] = "smr_swap_pss_kb",
		[24] = "dmabuf_rss_kb",       [14] = "chrome_peak_resident_set_kb",
	};

	return number < TS_ARRAY_SIZE(names) ? names[number] : NULL;
}

static void read_stats(struct ts_perfetto *p, uint32_t machine, const struct ts_proto_field *from,
		       int64_t time)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_counter_row row = ts_counter_none;
	struct ts_proto_field field;
	int64_t pid = TS_ABSENT;

	ts_row_args_clear(&p->args);
	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			pid = (int32_t)field.value;
		else if (field.type == TS_PROTO_VARINT && series(field.number))
			ts_row_args_add(&p->args, ts_perfetto_text(p, series(field.number)),
					TS_ARG_INT, (int64_t)field.value);
	}
	if (pid == TS_ABSENT || !p->args.field_count)
		return;
	row.start = time;
	row.process = ts_perfetto_process(p, machine, pid);
	row.name = ts_perfetto_text(p, "process_stats");
	row.shape = ts_row_args_shape(&p->args, p->writer);
	ts_perfetto_add(p, TS_TABLE_COUNTER, &row, p->args.values);
}

void ts_perfetto_read_process_stats(struct ts_perfetto *p, const struct ts_perfetto_packet *packet,
				    int64_t time)
{
	struct ts_proto_reader message = ts_proto_message(&packet->data);
	struct ts_proto_field field;

	while (ts_proto_next(&message, &field))
		if (field.number == 1)
			read_stats(p, packet->machine, &field, time);
}
