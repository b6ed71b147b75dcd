/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope files: sampled and evented profiles, any order of members, damage. */
#include "unit/import/import_support.h"

#define SCHEMA "'$schema':'https://www.speedscope.app/file-format-schema.json'"
#define FRAMES                                                                                    \
	"'shared':{'frames':[{'name':'main','file':'a.py','line':3,'col':7},{'name':'w\\u00e9'}," \
	"{'name':'read'}]}"

#define FILE_OF(members) "{" SCHEMA "," members "}"

static void import_file(struct imported *imported, const char *json, bool in_pieces)
{
	struct ts_import_options options = { .size = sizeof(options), .format = "speedscope" };
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = import_quoted(writer, "test.json", json, strlen(json), in_pieces ? 7 : 0,
				     in_pieces ? 16 : 0, &options, &imported->result,
				     &imported->err);
	imported->reader = finish_and_read(writer, path);
}

static void check_file(const char *file, int line, const char *json, const char *table,
		       const char *expected)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_file(&imported, json, in_pieces);
		if (imported.rc)
			ts_test_fail(file, line, "%s", imported.err.message);
		check_table(file, line, imported.reader, table, expected);
		release_imported(&imported);
	}
}

#define CHECK_FILE(json, table, expected) check_file(__FILE__, __LINE__, json, table, expected)

TS_TEST(samples_of_time)
{
	const char *json = FILE_OF(
		FRAMES
		",'name':'prog','exporter':'py-spy@1','activeProfileIndex':0,'profiles':["
		"{'type':'sampled','name':'thread 1','unit':'microseconds','startValue':5,'endValue':9,"
		"'samples':[[0,1],[0],[]],'weights':[1.5,2,0.0004]},"
		"{'weights':[1],'samples':[[2]],'unit':'seconds','name':'other','type':'sampled'}]");

	CHECK_FILE(
		json, "sample",
		"{'start':0,'thread':2,'stack':3,'weight':1000000000,'name':'time/nanoseconds'}\n"
		"{'start':5000,'thread':1,'stack':2,'weight':1500,'name':'time/nanoseconds'}\n"
		"{'start':6500,'thread':1,'stack':1,'weight':2000,'name':'time/nanoseconds'}\n"
		"{'start':8500,'thread':1,'weight':0,'name':'time/nanoseconds'}\n");
	CHECK_FILE(json, "frame",
		   "{'name':'main','file':'a.py','line':3,'column':7,'kind':'python'}\n"
		   "{'name':'w\xc3\xa9'}\n{'name':'read'}\n");
	CHECK_FILE(json, "thread",
		   "{'id':1,'process':1,'name':'thread 1'}\n{'id':2,'process':1,'name':'other'}\n");
	CHECK_FILE(json, "process", "{'id':1,'source':1,'name':'prog'}\n");
	CHECK_FILE(json, "meta", "{'source':1,'key':'exporter','value':'py-spy@1'}\n");
}

TS_TEST(samples_of_other_units)
{
	CHECK_FILE(FILE_OF(FRAMES
			   ",'profiles':[{'type':'sampled','unit':'none','samples':[[0],[1]],"
			   "'weights':[3,4]},{'type':'sampled','unit':'bytes','samples':[[2]],"
			   "'weights':[4096]}]"),
		   "sample",
		   "{'start':0,'thread':1,'stack':1,'weight':3,'name':'samples/count'}\n"
		   "{'start':0,'thread':1,'stack':2,'weight':4,'name':'samples/count'}\n"
		   "{'start':0,'thread':2,'stack':3,'weight':4096,'name':'memory/bytes'}\n");
}

/* Python's json.dumps() writes a space before each value. */
TS_TEST(members_of_other_types)
{
	const char *json = FILE_OF("'shared': {'frames': [{'name': 'main', 'file': null, 'line': "
				   "null, 'col': 'x'}, 5]}, 'name': null, 'exporter': 7,"
				   "'profiles': [{'type': 'sampled', 'name': null, 'unit': 'none',"
				   "'samples': [[0]], 'weights': [3]}]");

	CHECK_FILE(json, "sample",
		   "{'start':0,'thread':1,'stack':1,'weight':3,'name':'samples/count'}\n");
	CHECK_FILE(json, "frame", "{'name':'main'}\n{}\n");
}

/* As our exporter writes them: profiles before frames. */
TS_TEST(spans)
{
	CHECK_FILE(
		FILE_OF("'profiles':[{'type':'evented','name':'t','unit':'milliseconds','startValue':0,"
			"'endValue':9,'events':[{'type':'O','frame':0,'at':1},"
			"{'at':2.5,'frame':1,'type':'O'},{'type':'C','frame':1,'at':3},"
			"{'type':'C','frame':0,'at':4},{'type':'O','frame':2,'at':5}]}]," FRAMES),
		"slice",
		"{'start':1000000,'duration':3000000,'thread':1,'name':'main','args':{'file':'a.py',"
		"'line':3}}\n"
		"{'start':2500000,'duration':500000,'thread':1,'name':'w\xc3\xa9'}\n"
		"{'start':5000000,'duration':-1,'thread':1,'name':'read'}\n");
}

static void check_note(const char *json, const char *note)
{
	struct imported imported;

	import_file(&imported, json, false);
	TS_CHECK_INT(imported.rc, 0);
	TS_CHECK_STR(imported.result.note, note);
	release_imported(&imported);
}

TS_TEST(what_is_lost_is_counted)
{
	check_note("{" SCHEMA "," FRAMES
		   ",'profiles':[{'type':'sampled','unit':'none','samples':[[0,9,-1,'x'],[1],[2]],"
		   "'weights':[1,'two']},{'type':'pie'},7]}",
		   "lost: 3 frames that the file does not list, 2 samples without a weight, 2 "
		   "profiles of unknown types");
	check_note(
		"{" SCHEMA "," FRAMES
		",'profiles':[{'type':'evented','unit':'none','events':[{'type':'C','frame':0,"
		"'at':1},{'type':'O','frame':0,'at':2},{'type':'O','frame':1,'at':3},"
		"{'type':'C','frame':0,'at':4},{'type':'X','frame':0,'at':5},"
		"{'type':'O','frame':8,'at':5},{'type':'O','frame':0},5]}]}",
		"lost: 1 end of a span that has not begun, 1 span that ended with another one around "
		"it, 4 events without a type, a frame or a time");
}

static void check_fails(const char *json, const char *message, uint64_t samples)
{
	struct imported imported;

	import_file(&imported, json, false);
	TS_CHECK_INT(imported.rc, TS_EFORMAT);
	if (!strstr(imported.err.message, message))
		ts_test_fail(__FILE__, __LINE__, "%s", imported.err.message);
	TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_SAMPLE), samples);
	release_imported(&imported);
}

TS_TEST(damaged_files)
{
	/* The second profile is cut: the first is complete. */
	check_fails("{" SCHEMA "," FRAMES
		    ",'profiles':[{'type':'sampled','unit':'none','samples':[[0]],'weights':[1]},"
		    "{'type':'sampled','unit':'none','samples':[[0],",
		    "the file is truncated; everything before it was kept", 1);
	check_fails("{" SCHEMA "," FRAMES ",'profiles':[{'type' 5}]}", "expected ':' after a key",
		    0);
	check_fails("{" SCHEMA "," FRAMES ",'profiles':[]}",
		    "no profile in it has samples or events", 0);
	check_fails("{" SCHEMA "}", "no profile in it has samples or events", 0);
}

TS_TEST(detection)
{
	static const char *const others[] = { "", "{", "[]", "{\"profiles\":[]}", "speedscope" };
	const char *file = "\xef\xbb\xbf {\"$schema\":"
			   "\"https://www.speedscope.app/file-format-schema.json\"";

	TS_CHECK(ts_speedscope_probe(file, strlen(file)));
	for (size_t i = 0; i < TS_ARRAY_SIZE(others); i++)
		TS_CHECK(!ts_speedscope_probe(others[i], strlen(others[i])));
}
