/* SPDX-License-Identifier: Apache-2.0 */
/* perf records other than samples: processes and their mappings, and the leading comments. */
#include "import/perf/perf_import.h"

#include <string.h>

#include "base/text.h"

static const struct ts_loss_kind loss_early = {
	.what = "record",
	.one = "perf record without time",
	.many = "perf records without time",
};
static const struct ts_loss_kind loss_samples = {
	.what = "sample",
	.one = "sample lost by perf",
	.many = "samples lost by perf",
};

/* Two numbers with a separator at the front of the text, which is advanced past them. */
static bool take_pair(struct ts_perf_text *text, char mark, int64_t *ret_first, int64_t *ret_second)
{
	int64_t *to = ret_first;
	size_t from = 0, i = 0;

	for (;; i++) {
		char c = i < text->length ? text->text[i] : 0;

		if ((c >= '0' && c <= '9') || (c == '-' && i == from))
			continue;
		if (!ts_perf_decimal((struct ts_perf_text){ text->text + from, i - from }, to))
			return false;
		if (to == ret_second)
			break;
		if (c != mark)
			return false;
		to = ret_second;
		from = i + 1;
	}
	text->text += i;
	text->length -= i;
	return true;
}

/* "name:12/34" */
static bool take_name(struct ts_perf *p, struct ts_perf_text text, bool is_exec)
{
	size_t colon = text.length;
	struct ts_perf_text ids;
	int64_t pid, tid;

	while (colon > 0 && text.text[colon - 1] != ':')
		colon--;
	ids = (struct ts_perf_text){ text.text + colon, text.length - colon };
	if (colon < 2 || !take_pair(&ids, '/', &pid, &tid))
		return false;
	ts_perf_name_thread(p, pid, tid, ts_import_string(p->import, text.text, colon - 1),
			    is_exec);
	return true;
}

/* "(pid:tid):(parent's pid:tid)" */
static bool take_task(struct ts_perf *p, struct ts_perf_text text, int64_t time, bool is_exit)
{
	int64_t pid, tid, parent, parent_tid, process;
	struct ts_process_row *row;

	if (!ts_perf_starts(text, "("))
		return false;
	text.text++;
	text.length--;
	if (!take_pair(&text, ':', &pid, &tid) || !ts_perf_starts(text, "):("))
		return false;
	text.text += 3;
	text.length -= 3;
	if (!take_pair(&text, ':', &parent, &parent_tid))
		return false;
	ts_perf_name_thread(p, pid, tid, 0, false);
	process = ts_perf_process(p, pid);
	parent = parent == pid ? 0 : ts_perf_process(p, parent);
	if (!process || pid != tid || (!is_exit && !parent))
		return true;
	row = ts_entities_process_row(&p->entities, process);
	if (is_exit) {
		row->end = time;
	} else {
		row->parent = parent;
		/* What ran before perf did has time 0. */
		row->start = time ? time : TS_ABSENT;
	}
	return true;
}

static bool take_hex(struct ts_perf_text *text, int64_t *ret_value)
{
	size_t length = 0;
	uint64_t value;

	if (ts_perf_starts(*text, "0x")) {
		text->text += 2;
		text->length -= 2;
	}
	while (length < text->length && memchr("0123456789abcdef", text->text[length], 16))
		length++;
	if (!ts_perf_hex((struct ts_perf_text){ text->text, length }, &value))
		return false;
	*ret_value = (int64_t)value;
	text->text += length;
	text->length -= length;
	return true;
}

static bool skip(struct ts_perf_text *text, const char *what)
{
	if (!ts_perf_starts(*text, what))
		return false;
	text->text += strlen(what);
	text->length -= strlen(what);
	return true;
}

/* Forty digits in angle brackets, if present. */
static uint32_t find_build_id(struct ts_perf *p, struct ts_perf_text text)
{
	const char *open = memchr(text.text, '<', text.length), *close;

	if (!open)
		return 0;
	close = memchr(open, '>', text.length - (size_t)(open - text.text));
	return close && close > open + 1
		       ? ts_import_string(p->import, open + 1, (size_t)(close - open - 1))
		       : 0;
}

/* "12/34: [0xaaaa0000(0x21000) @ 0 fe:00 1253709 0]: r-xp /path" */
static bool take_mapping(struct ts_perf *p, struct ts_perf_text text, int64_t time)
{
	struct ts_mapping_row row = ts_mapping_none;
	int64_t pid, tid;
	const char *end;
	size_t inside;

	text = ts_perf_trim(text.text, text.length);
	if (!take_pair(&text, '/', &pid, &tid) || !skip(&text, ": [") ||
	    !take_hex(&text, &row.address) || !skip(&text, "(") || !take_hex(&text, &row.bytes) ||
	    !skip(&text, ") @ ") || !take_hex(&text, &row.file_offset))
		return false;
	end = memmem(text.text, text.length, "]: ", 3);
	if (!end)
		return false;
	inside = (size_t)(end - text.text);
	row.build_id = find_build_id(p, (struct ts_perf_text){ text.text, inside });
	text = (struct ts_perf_text){ end + 3, text.length - inside - 3 };
	ts_perf_word(&text);
	row.path =
		ts_import_string(p->import, text.text, TS_MIN(text.length, TS_IMPORT_MAX_STRING));
	/* Kernel mappings have process -1. */
	row.process = pid < 0 ? 0 : ts_perf_process(p, pid);
	row.mapped = time ? time : TS_ABSENT;
	ts_writer_new_id(p->writer, TS_TABLE_MAPPING);
	ts_writer_add(p->writer, TS_TABLE_MAPPING, &row, NULL);
	return true;
}

static bool take_loss(struct ts_perf *p, struct ts_perf_text text)
{
	struct ts_perf_text word;
	int64_t count = 0;

	while (text.length) {
		word = ts_perf_word(&text);
		if (ts_perf_starts(word, "lost") && text.length &&
		    ts_perf_decimal(ts_perf_word(&text), &count))
			break;
	}
	if (count > 0)
		ts_entities_add_loss(&p->entities, &loss_samples, (uint64_t)count);
	return count > 0;
}

/* Records without a table: a mark with perf's text. */
static void add_mark(struct ts_perf *p, const struct ts_perf_head *head)
{
	struct ts_mark_row mark = ts_mark_none;
	struct ts_perf_text text = head->record;
	struct ts_perf_text name = ts_perf_word(&text);

	if (!head->has_time || !head->time) {
		ts_entities_add_loss(&p->entities, &loss_early, 1);
		return;
	}
	if (name.length > 1 && name.text[name.length - 1] == ':')
		name.length--;
	mark.start = head->time;
	mark.thread = ts_perf_thread(p, head);
	mark.name = ts_import_string(p->import, name.text - 12,
				     TS_MIN(name.length + 12, TS_IMPORT_MAX_STRING));
	mark.category = ts_import_string(p->import, "perf", 4);
	ts_row_args_clear(&p->args);
	if (head->has_cpu)
		ts_row_args_add(&p->args, p->keys[TS_PERF_KEY_CPU], TS_ARG_INT, head->cpu);
	if (text.length)
		ts_row_args_add(&p->args, p->keys[TS_PERF_KEY_TEXT], TS_ARG_STRING,
				ts_import_string(p->import, text.text,
						 TS_MIN(text.length, TS_IMPORT_MAX_STRING)));
	ts_perf_mark(p, &mark);
}

void ts_perf_record(struct ts_perf *p, const struct ts_perf_head *head)
{
	struct ts_perf_text text = head->record;
	int64_t time = head->has_time ? head->time : 0;
	bool is_taken = false;

	if (time)
		p->entities.time = time;
	if (skip(&text, "COMM exec: "))
		is_taken = take_name(p, text, true);
	else if (skip(&text, "COMM: "))
		is_taken = take_name(p, text, false);
	else if (skip(&text, "FORK"))
		is_taken = take_task(p, text, time, false);
	else if (skip(&text, "EXIT"))
		is_taken = take_task(p, text, time, true);
	else if (skip(&text, "MMAP2 ") || skip(&text, "MMAP "))
		is_taken = take_mapping(p, text, time);
	else if (skip(&text, "LOST"))
		is_taken = take_loss(p, text);
	if (!is_taken)
		add_mark(p, head);
}

/* ---- comments ---- */

static bool is_key(struct ts_perf_text text, const char *key)
{
	return text.length == strlen(key) && ts_perf_starts(text, key);
}

static void add_host_metadata(struct ts_perf *p, struct ts_perf_text key, struct ts_perf_text value)
{
	struct ts_perf_text rest = value;
	struct ts_host_row *row;
	int64_t number;

	if (!is_key(key, "hostname") && !is_key(key, "os release") &&
	    !is_key(key, "nrcpus online") && !is_key(key, "total memory"))
		return;
	if (!p->host)
		p->host = ts_entities_host(&p->entities, 0);
	if (!p->host) {
		p->rc = TS_ENOMEM;
		return;
	}
	row = ts_entities_host_row(&p->entities, p->host);
	if (is_key(key, "hostname"))
		row->name = ts_import_string(p->import, value.text, value.length);
	else if (is_key(key, "os release"))
		row->system = ts_import_string(p->import, value.text, value.length);
	else if (is_key(key, "nrcpus online") && ts_perf_decimal(value, &number))
		row->processors = number;
	else if (is_key(key, "total memory") && ts_perf_decimal(ts_perf_word(&rest), &number) &&
		 is_key(rest, "kB") && !__builtin_mul_overflow(number, 1024, &number))
		row->memory_bytes = number;
}

/* "2026-11-16 09:07:26.443684 = 1794820046.443684 (TOD) = 16575.333223865 (monotonic)" */
static void add_clock_metadata(struct ts_perf *p, struct ts_perf_text value)
{
	struct ts_clock_sync_row row = ts_clock_sync_none;
	int64_t times[2] = { 0, 0 };
	size_t found = 0;

	while (found < 2) {
		const char *equals = memmem(value.text, value.length, "= ", 2);
		struct ts_perf_head head;
		char line[64];
		struct ts_perf_text word;

		if (!equals)
			return;
		value.length -= (size_t)(equals + 2 - value.text);
		value.text = equals + 2;
		word = ts_perf_word(&value);
		/* Event lines have a time followed by a colon. */
		if (word.length + 1 >= sizeof(line))
			return;
		memcpy(line, word.text, word.length);
		line[word.length] = ':';
		if (!ts_perf_parse_head(line, word.length + 1, &head) || !head.has_time)
			return;
		times[found++] = head.time;
	}
	row.clock = p->entities.clock;
	row.time = times[1];
	row.reference = times[0];
	/* The time of day is given in us. */
	row.uncertainty_ns = 1000;
	row.method = ts_import_string(p->import, "perf clock data", 15);
	ts_writer_add(p->writer, TS_TABLE_CLOCK_SYNC, &row, NULL);
}

void ts_perf_comment(struct ts_perf *p, struct ts_perf_text line)
{
	const char *colon = memchr(line.text, ':', line.length);
	struct ts_perf_text key, value;
	struct ts_text json;

	if (!colon || line.length > TS_IMPORT_MAX_STRING / 8)
		return;
	key = ts_perf_trim(line.text + 1, (size_t)(colon - line.text) - 1);
	value = ts_perf_trim(colon + 1, line.length - (size_t)(colon + 1 - line.text));
	if (!key.length || !value.length)
		return;
	add_host_metadata(p, key, value);
	if (is_key(key, "reference time"))
		add_clock_metadata(p, value);
	ts_text_init(&json);
	ts_text_append(&json, key.text, key.length);
	ts_text_append_char(&json, 0);
	ts_text_append_json(&json, value.text, value.length);
	if (json.failed)
		p->rc = TS_ENOMEM;
	else
		ts_entities_meta(&p->entities, json.data, json.data + key.length + 1,
				 json.length - key.length - 1);
	ts_text_release(&json);
}
