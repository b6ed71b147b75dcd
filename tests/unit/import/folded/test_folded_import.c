/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks: lines, frames with files, detection, lines that are none. */
#include "import/common/frame_file.h"
#include "unit/import/import_support.h"

static void import_text(struct imported *imported, const char *text, bool in_pieces)
{
	struct ts_import_options options = { .size = sizeof(options), .format = "folded" };
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = ts_import_memory(writer, "test.txt", text, strlen(text), in_pieces ? 7 : 0,
					in_pieces ? 16 : 0, &options, &imported->result,
					&imported->err);
	imported->reader = finish_and_read(writer, path);
}

static void check_text(const char *file, int line, const char *text, const char *note,
		       const char *table, const char *expected)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_text(&imported, text, in_pieces);
		if (imported.rc)
			ts_test_fail(file, line, "%s", imported.err.message);
		TS_CHECK_STR(imported.result.note, note);
		check_table(file, line, imported.reader, table, expected);
		release_imported(&imported);
	}
}

#define CHECK_TEXT(text, note, table, expected) \
	check_text(__FILE__, __LINE__, text, note, table, expected)

#define SAMPLE(stack, weight)                                                          \
	"{'start':0,'thread':1,'stack':" stack ",'weight':" weight ",'name':'samples/" \
	"count'}\n"

TS_TEST(lines)
{
	static const char text[] = "# a comment\n"
				   "main;work;read file 12\n"
				   "main;work 3\r\n"
				   "\n"
				   "main 2.6\n"
				   "main;;x -4\n"
				   "idle\t7";

	CHECK_TEXT(text, "", "sample",
		   SAMPLE("3", "12") SAMPLE("2", "3") SAMPLE("1", "3") SAMPLE("5", "-4")
			   SAMPLE("6", "7"));
	CHECK_TEXT(text, "", "frame",
		   "{'name':'main'}\n{'name':'work'}\n{'name':'read file'}\n{}\n{'name':'x'}\n"
		   "{'name':'idle'}\n");
	CHECK_TEXT(text, "", "stack",
		   "{'frame':1}\n{'parent':1,'frame':2}\n{'parent':2,'frame':3}\n"
		   "{'parent':1,'frame':4}\n{'parent':4,'frame':5}\n{'frame':6}\n");
}

TS_TEST(frames_with_files)
{
	CHECK_TEXT("f (a.py:3);g (/lib/x.so);void h (int);operator() (b.js:9) 1\n", "", "frame",
		   "{'name':'f','file':'a.py','line':3,'kind':'python'}\n"
		   "{'name':'g','file':'/lib/x.so'}\n"
		   "{'name':'void h (int)'}\n"
		   "{'name':'operator()','file':'b.js','line':9,'kind':'script'}\n");
}

static void check_split(const char *text, size_t name, const char *path, int64_t line)
{
	struct ts_frame_file file;
	char found[64];

	ts_frame_file_split(text, strlen(text), &file);
	snprintf(found, sizeof(found), "%.*s", (int)file.path_length, file.path ? file.path : "");
	TS_CHECK_INT(file.name_length, name);
	TS_CHECK_STR(found, path);
	TS_CHECK_INT(file.line, line);
}

TS_TEST(texts_of_frames)
{
	check_split("", 0, "", TS_ABSENT);
	check_split(")", 1, "", TS_ABSENT);
	check_split("f ()", 4, "", TS_ABSENT);
	check_split("f (:3)", 6, "", TS_ABSENT);
	check_split("f (x:3)", 1, "x", 3);
	check_split(" (x:3)", 0, "x", 3);
	check_split("f (x:-3)", 8, "", TS_ABSENT);
	check_split("f (a.b:c)", 1, "a.b:c", TS_ABSENT);
	check_split("f(a.py:3)", 9, "", TS_ABSENT);
	check_split("f (b) (a.py:3)", 5, "a.py", 3);
}

TS_TEST(lines_that_are_none)
{
	CHECK_TEXT("a;b 1\nno number\n12\na;b x1\na;b 1e99\n",
		   "lost: 4 lines that are not a stack and a number", "sample", SAMPLE("2", "1"));
}

TS_TEST(what_is_folded_and_what_is_not)
{
	static const char *const others[] = { "",           "\n\n",           "main 3\n",
					      "a;b\n",      "a;b 1\nwords\n", "a;b \x01 3\n",
					      "# nothing\n" };

	TS_CHECK(ts_folded_probe("a;b 3", 5));
	TS_CHECK(ts_folded_probe("main 3\na;b 3\n", 13));
	/* The bytes end inside a line. */
	TS_CHECK(ts_folded_probe("a;b 3\na;c", 9));
	for (size_t i = 0; i < TS_ARRAY_SIZE(others); i++)
		TS_CHECK(!ts_folded_probe(others[i], strlen(others[i])));
}

TS_TEST(deep_stacks_are_cut)
{
	struct ts_text text = { 0 };
	struct imported imported;

	for (int i = 0; i < 70000; i++)
		ts_text_append_str(&text, "f;");
	ts_text_append_str(&text, "g 1\n");
	import_text(&imported, ts_text_cstr(&text), false);
	TS_CHECK_INT(imported.rc, 0);
	TS_CHECK_STR(imported.result.note, "lost: 1 stack cut at 65,536 frames");
	TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_STACK), TS_STACK_MAX_DEPTH);
	release_imported(&imported);
	ts_text_release(&text);
}
