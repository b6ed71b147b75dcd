/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input: wrong types, malformed and truncated files, limits. Nothing crashes; good data is
 * kept.
 */
#include <errno.h>

#include "unit/import/import_support.h"

#define A "{'ph':'X','ts':1,'dur':2,'name':'a'}"
#define A_ROW "{'start':1000,'duration':2000,'thread':1,'name':'a'}\n"

/* ---- not a trace ---- */

TS_TEST(unknown_content)
{
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_import_result result;
	struct ts_error err;

	TS_CHECK_INT(import_quoted(writer, "x", "PK\x03\x04 zip", 8, 0, 0, NULL, &result, &err),
		     TS_EFORMAT);
	TS_CHECK_STR(
		err.message,
		"input 'x': unknown format "
		"('tracesmith import --list' shows all, --format forces one); the file begins with \"PK\\x03\\x04 zip\"");
	TS_CHECK_STR(result.format, "unknown");
	TS_CHECK_INT(import_quoted(writer, "x", "", 0, 0, 0, NULL, &result, &err), TS_EFORMAT);
	TS_CHECK_STR(err.message, "input 'x': the file is empty; nothing to import");
	TS_CHECK_INT(import_quoted(writer, "x", "5", 1, 0, 0, NULL, NULL, NULL), TS_EFORMAT);
	TS_CHECK_INT(import_quoted(writer, "x", "'a'", 3, 0, 0, NULL, NULL, NULL), TS_EFORMAT);
	TS_CHECK_INT(import_quoted(writer, "x", "  \n", 3, 0, 0, NULL, NULL, NULL), TS_EFORMAT);
	TS_CHECK_INT(ts_import_file(writer, "/nonexistent/file", NULL, &result, &err),
		     TS_ENOTFOUND);
	TS_CHECK_INT(ts_import_file(NULL, "x", NULL, &result, &err), TS_EINVAL);
	ts_writer_close(writer);
	unlink(path);
}

TS_TEST(object_without_events)
{
	CHECK_ERROR("{'schema':'1.1.1','nodes':[{'id':1}]}",
		    "input 'test.json': an execution trace of PyTorch", "slice", "");
	CHECK_ERROR("{'workload_graph':[{'Id':1}]}", "an execution trace", NULL, NULL);
	CHECK_ERROR("{'nodes':[{'id':1}]}", "input 'test.json': JSON without \"traceEvents\"", NULL,
		    NULL);
	CHECK_ERROR("{}", "without \"traceEvents\"", NULL, NULL);
	CHECK_ERROR("{'traceEvents':5}", "without \"traceEvents\"", NULL, NULL);
}

/* ---- malformed ---- */

TS_TEST(object_form_cut_anywhere)
{
	const char *complete = "{'k':[1,2],'stackFrames':{'1':{'name':'f'}},'traceEvents':[" A "," A
			       "],'samples':[{'ts':1,'sf':1}],'z':'e'}";
	const char *events = strstr(complete, "'traceEvents':[");
	size_t first = (size_t)(events - complete) + strlen("'traceEvents':[" A);
	size_t second = first + strlen("," A);

	for (size_t cut = 1; cut < strlen(complete); cut++) {
		struct imported imported;
		char byte[64];

		import_bytes(&imported, complete, cut, cut % 2);
		snprintf(byte, sizeof(byte), "byte %zu: the file is truncated", cut);
		TS_CHECK_INT(imported.rc, TS_EFORMAT);
		TS_CHECK(strstr(imported.err.message, byte) != NULL);
		CHECK_TABLE(imported.reader, "slice",
			    cut < first    ? ""
			    : cut < second ? A_ROW
					   : A_ROW A_ROW);
		TS_CHECK_STR(imported.result.note, "lost: the unread rest of the file");
		TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_LOSS), 1);
		release_imported(&imported);
	}
}

TS_TEST(syntax_errors)
{
	CHECK_ERROR("[" A ",{'ph':}]", "byte 44: expected", "slice", A_ROW);
	CHECK_ERROR("[" A " " A "]", "byte 38: expected ',' or ']' after a value", "slice", A_ROW);
	CHECK_ERROR("[" A ",,]", "byte 38: expected a value", "slice", A_ROW);
	CHECK_ERROR("[" A "}", "byte 37: expected ',' or ']'", "slice", A_ROW);
	CHECK_ERROR("[" A "] x", "byte 39: unexpected data after the end of the trace", "slice",
		    A_ROW);
	CHECK_ERROR("[" A ",{'ph':'X','ts':1 'dur':2}]", "expected ',' or '}'", "slice", A_ROW);
	CHECK_ERROR("[" A ",{'ph' 'X'}]", "expected ':' after a key", "slice", A_ROW);
	CHECK_ERROR("[" A ",{ph:1}]", "expected a string", "slice", A_ROW);
	CHECK_ERROR("[" A ",{'ph':'X','ts':1,'args':{'a':1,}}]", "expected", "slice", A_ROW);
	CHECK_ERROR("[" A ",{'ph':'X','ts':1,'args':{'a':tru}}]", "expected", "slice", A_ROW);
	CHECK_ERROR("[" A ",{'name':'\\q'}]", "unknown escape", "slice", A_ROW);
	CHECK_ERROR("[" A ",{'ts':01}]", "must not begin with 0", "slice", A_ROW);
	CHECK_ERROR("{'traceEvents':[" A "],5}", "expected a string", "slice", A_ROW);
	CHECK_ERROR("{'traceEvents':[" A "]]", "expected ',' or '}'", "slice", A_ROW);
	CHECK_ERROR("[" A ",{'ph':]", "everything before it was kept", "slice", A_ROW);
}

TS_TEST(nesting)
{
	struct ts_text json;

	for (int depth = 1000; depth <= 3000; depth += 2000) {
		struct imported imported;

		ts_text_init(&json);
		ts_text_append_str(&json, "[" A ",{'ph':'X','ts':1,'args':{'k':");
		for (int i = 0; i < depth; i++)
			ts_text_append_char(&json, '[');
		for (int i = 0; i < depth; i++)
			ts_text_append_char(&json, ']');
		ts_text_append_str(&json, "}}]");
		import_bytes(&imported, json.data, json.length, true);
		TS_CHECK_INT(imported.rc, depth > 1024 ? TS_EFORMAT : 0);
		if (imported.rc)
			TS_CHECK(strstr(imported.err.message, "nested too deeply") != NULL);
		release_imported(&imported);
		ts_text_release(&json);
	}
}

/* ---- wrong types ---- */

TS_TEST(members_of_the_wrong_type)
{
	CHECK_ROWS("[{'ph':'X','ts':1,'pid':{'a':1},'tid':[2],'dur':{},'name':[],'cat':7,"
		   "'args':null}]",
		   "slice", "{'start':1000,'thread':1,'beside':{'name':[],'cat':7,'args':null}}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'pid':{'a':1},'tid':[2]}]", "loss",
		   "{'start':0,'source':1,'what':'member','count':2,"
		   "'reason':'member of the wrong type'}\n");
	CHECK_ROWS(
		"[{'ph':'b','ts':1,'id':null},{'ph':'e','ts':2,'id':null}]", "slice",
		"{'start':1000,'duration':1000,'thread':1,'kind':'async','beside':{'id':null}}\n");
	CHECK_ROWS("[{'ph':'b','ts':1,'id2':5}]", "slice",
		   "{'start':1000,'duration':-1,'thread':1,'kind':'async','beside':{'id2':5}}\n");
}

TS_TEST(events_without_a_time)
{
	static const char *const times[] = {
		"",
		",'ts':null",
		",'ts':'x'",
		",'ts':NaN",
		",'ts':1e300",
		",'ts':{}",
		",'ts':-9223372036854775.808",
		",'ts':1,'ts':[]",
		",'ts':''",
		",'ts':9999999999999999.999",
		",'ts':9223372036854775.808",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(times); i++) {
		for (const char *phase = "XBEbeinCstfPR"; *phase; phase++) {
			struct imported imported;
			char json[160];

			snprintf(json, sizeof(json), "[" A ",{'ph':'%c','id':1,'sf':1%s}]", *phase,
				 times[i]);
			import_bytes(&imported, json, strlen(json), i % 2);
			TS_CHECK_INT(imported.rc, 0);
			TS_CHECK_INT(imported.result.events, 1);
			TS_CHECK_STR(imported.result.note, "lost: 1 event without time");
			release_imported(&imported);
		}
	}
}

TS_TEST(items_that_are_no_events)
{
	const char *json = "[5,'x',null,[1,2],{'a':1},{'ph':7,'ts':1},{},true,1.5e3," A "]";
	struct imported imported;

	CHECK_ROWS(json, "slice", A_ROW);
	import_bytes(&imported, json, strlen(json), false);
	TS_CHECK_STR(imported.result.note,
		     "lost: 8 items that are not events, 1 member of the wrong type");
	release_imported(&imported);
}

TS_TEST(duplicate_members)
{
	CHECK_ROWS("[{'ph':'i','ph':'X','ts':9,'ts':1,'name':'z','name':'a','dur':1,'dur':2,"
		   "'args':{'k':1},"
		   "'args':{'j':2},'pid':4,'pid':0}]",
		   "slice",
		   "{'start':1000,'duration':2000,'thread':1,'name':'a','args':{'j':2}}\n");
}

/* ---- limits ---- */

TS_TEST(strings_beyond_64_mib)
{
	static const struct {
		const char *before, *after;
	} cases[] = {
		{ "[" A ",{'ph':'X','ts':1,'name':'", "'}]" },
		{ "[" A ",{'ph':'X','ts':1,'cat':'c','args':{'k':'", "'}}]" },
		{ "[" A ",{'args':{'k':'", "'},'ph':'X','ts':1}]" },
		{ "[" A ",{'ph':'X','ts':1,'", "':1}]" },
		{ "[" A ",{'ph':'X','ts':1,'other':'", "'}]" },
	};
	const size_t bytes = (size_t)65 << 20;

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		size_t before = strlen(cases[i].before), after = strlen(cases[i].after);
		size_t length = before + bytes + after;
		char *json = malloc(length);
		struct imported imported;

		TS_CHECK(json != NULL);
		memcpy(json, cases[i].before, before);
		memset(json + before, 'x', bytes);
		memcpy(json + before + bytes, cases[i].after, after);
		import_bytes(&imported, json, length, false);
		TS_CHECK_INT(imported.rc, TS_EFORMAT);
		TS_CHECK(strstr(imported.err.message, "longer than 64 MiB") != NULL);
		TS_CHECK(strstr(imported.err.message, "byte ") != NULL);
		CHECK_TABLE(imported.reader, "slice", A_ROW);
		release_imported(&imported);
		free(json);
	}
}

static int stop(void *context, uint64_t done, uint64_t total)
{
	uint64_t *calls = context;

	TS_CHECK(done <= total);
	return ++*calls == 3;
}

TS_TEST(stopped_by_the_caller)
{
	uint64_t calls = 0;
	struct ts_import_options options = { .size = sizeof(options),
					     .progress = stop,
					     .context = &calls };
	struct ts_import_result result;
	struct ts_reader *reader;
	struct ts_error err;
	char path[64];
	struct ts_writer *writer = open_writer(path);

	TS_CHECK_INT(import_quoted(writer, "x", "[" A "," A "," A "," A "]", 5 + 4 * strlen(A), 64,
				   64, &options, &result, &err),
		     TS_ECANCELED);
	TS_CHECK(strstr(err.message, "input 'x': stopped at byte ") != NULL);
	TS_CHECK(result.events > 0);
	reader = finish_and_read(writer, path);
	TS_CHECK_INT(ts_reader_rows(reader, TS_TABLE_LOSS), 1);
	ts_reader_close(reader);
}

static ssize_t no_space(void *context, int fd, const void *data, size_t bytes)
{
	size_t *left = context;

	if (*left < bytes) {
		errno = ENOSPC;
		return -1;
	}
	*left -= bytes;
	return write(fd, data, bytes);
}

TS_TEST(full_disk)
{
	size_t left = 200;
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = -1,
					     .chunk_rows = 1024,
					     .write = no_space,
					     .write_context = &left };
	struct ts_text json;
	struct ts_writer *writer;
	struct ts_error err;
	char path[64];

	temporary_path(path);
	TS_CHECK_INT(ts_writer_open(&writer, path, &options, &err), 0);
	ts_text_init(&json);
	ts_text_append_char(&json, '[');
	for (int i = 0; i < 5000; i++)
		ts_text_append_str(&json, A ",");
	TS_CHECK_INT(import_quoted(writer, "x", json.data, json.length, 0, 4096, NULL, NULL, &err),
		     TS_ENOSPC);
	TS_CHECK_INT(err.code, TS_ENOSPC);
	ts_writer_close(writer);
	unlink(path);
	ts_text_release(&json);
}
