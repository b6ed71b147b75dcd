/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome's trace-event JSON: forms of the file, phases, times, ids, arguments, pairs. */
#include "unit/import/import_support.h"

#define SLICE "{'start':1000,'duration':2000,'thread':1"

TS_TEST(array_form)
{
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'name':'a'}]", "slice", SLICE ",'name':'a'}\n");
	CHECK_ROWS(" \n"
		   "[ {'ph':'X','ts':1,'dur':2,'name':'a'} , {'ph':'X','ts':1,'dur':2,"
		   "'name':'b'} ] \n",
		   "slice", SLICE ",'name':'a'}\n" SLICE ",'name':'b'}\n");
	CHECK_ROWS("[]", "slice", "");
	CHECK_ROWS("\xef\xbb\xbf[{'ph':'X','ts':1,'dur':2,'name':'a'}]", "slice",
		   SLICE ",'name':'a'}\n");
}

TS_TEST(array_that_was_never_closed)
{
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'name':'a'}", "slice", SLICE ",'name':'a'}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'name':'a'},", "slice", SLICE ",'name':'a'}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'name':'a'},\n"
		   "]",
		   "slice", SLICE ",'name':'a'}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'name':'a'},{}]", "slice", SLICE ",'name':'a'}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'name':'a'},\n", "loss", "");
}

TS_TEST(array_cut_inside_an_event)
{
	const char *complete = "[{'ph':'X','ts':1,'dur':2,'name':'a'},"
			       "{'ph':'X','ts':1,'dur':2,'name':'b','args':{'k':[1]}}";
	size_t first = strlen("[{'ph':'X','ts':1,'dur':2,'name':'a'},");

	for (size_t cut = first + 1; cut < strlen(complete); cut++) {
		struct imported imported;

		import_bytes(&imported, complete, cut, cut % 2);
		TS_CHECK_INT(imported.rc, 0);
		TS_CHECK_INT(imported.result.events, 1);
		TS_CHECK_STR(imported.result.note,
			     "lost: 1 event truncated at the end of the file");
		CHECK_TABLE(imported.reader, "slice", SLICE ",'name':'a'}\n");
		CHECK_TABLE(imported.reader, "loss",
			    "{'start':1000,'source':1,'what':'event','count':1,"
			    "'reason':'event truncated at the end of the file'}\n");
		release_imported(&imported);
	}
}

TS_TEST(object_form)
{
	const char *json = "{'displayTimeUnit':'ns', 'other' : { 'a': [1, 2] },"
			   "'traceEvents':[{'ph':'X','ts':1,'dur':2,'name':'a'}]}";

	CHECK_ROWS(json, "slice", SLICE ",'name':'a'}\n");
	CHECK_ROWS(json, "meta",
		   "{'source':1,'key':'displayTimeUnit','value':'ns'}\n"
		   "{'source':1,'key':'other','value':{'a':[1,2]}}\n");
	CHECK_ROWS(json, "source", "{'id':1,'name':'test.json','format':'chrome','clock':1}\n");
	CHECK_ROWS("{'traceEvents':[{'ph':'X','ts':1,'dur':2,'name':'a'},]}", "slice",
		   SLICE ",'name':'a'}\n");
}

TS_TEST(base_time_anywhere)
{
	CHECK_ROWS(
		"{'traceEvents':[{'ph':'X','ts':1,'dur':2,'name':'a'}],'baseTimeNanoseconds':5000}",
		"clock_sync", "{'clock':1,'reference':5000,'method':'baseTimeNanoseconds'}\n");
	/* The reader returns trace time. */
	CHECK_ROWS("{'baseTimeNanoseconds':'5000','traceEvents':[{'ph':'X','ts':1,'dur':2,"
		   "'name':'a'}]}",
		   "slice", "{'start':6000,'duration':2000,'thread':1,'name':'a'}\n");
	CHECK_ROWS("{'baseTimeNanoseconds':[1],'traceEvents':[]}", "meta",
		   "{'source':1,'key':'baseTimeNanoseconds','value':[1]}\n");
}

TS_TEST(times)
{
	static const struct {
		const char *ts;
		const char *start;
	} cases[] = {
		{ "1712195495607293.168", "1712195495607293168" },
		{ "1", "1000" },
		{ "'1.5'", "1500" },
		{ "1.2345", "1235" },
		{ "0.0005", "1" },
		{ "-1.0005", "-1001" },
		{ "1.2e3", "1200000" },
		{ "0", "0" },
		{ "9223372036854775.807", "9223372036854775807" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		char json[128], expected[128];

		snprintf(json, sizeof(json), "[{'ph':'X','ts':%s,'dur':1}]", cases[i].ts);
		snprintf(expected, sizeof(expected), "{'start':%s,'duration':1000,'thread':1}\n",
			 cases[i].start);
		CHECK_ROWS(json, "slice", expected);
	}
}

TS_TEST(durations)
{
	CHECK_ROWS("[{'ph':'X','ts':1}]", "slice", "{'start':1000,'thread':1}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':-5}]", "slice", "{'start':1000,'thread':1}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':'2.5'}]", "slice",
		   "{'start':1000,'duration':2500,'thread':1}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':null}]", "slice", "{'start':1000,'thread':1}\n");
}

TS_TEST(ids_of_processes_and_threads)
{
	const char *json = "[{'ph':'X','ts':1,'dur':2,'pid':7,'tid':8},"
			   "{'ph':'X','ts':1,'dur':2,'pid':'7','tid':'8'},"
			   "{'ph':'X','ts':1,'dur':2,'pid':'Spans','tid':'x y'},"
			   "{'ph':'X','ts':1,'dur':2,'pid':'','tid':''},"
			   "{'ph':'X','ts':1,'dur':2,'pid':1.5,'tid':18446744073709551615},"
			   "{'ph':'X','ts':1,'dur':2,'name':'n'}]";

	CHECK_ROWS(json, "process",
		   "{'id':1,'source':1,'pid':7}\n"
		   "{'id':2,'source':1,'pid_text':'Spans'}\n"
		   "{'id':3,'source':1,'pid_text':''}\n"
		   "{'id':4,'source':1,'pid_text':'1.5'}\n"
		   "{'id':5,'source':1,'pid':0}\n");
	CHECK_ROWS(json, "thread",
		   "{'id':1,'process':1,'tid':8}\n"
		   "{'id':2,'process':2,'tid_text':'x y'}\n"
		   "{'id':3,'process':3,'tid_text':''}\n"
		   "{'id':4,'process':4,'tid_text':'18446744073709551615'}\n"
		   "{'id':5,'process':5,'tid':0}\n");
}

TS_TEST(metadata)
{
	const char *json =
		"[{'ph':'M','name':'process_name','pid':1,'tid':0,'args':{'name':'a'}},"
		"{'ph':'M','name':'process_name','pid':1,'tid':0,'args':{'name':'b'}},"
		"{'ph':'M','name':'process_labels','pid':1,'args':{'labels':'GPU 0'}},"
		"{'ph':'M','name':'process_sort_index','pid':1,'args':{'sort_index':-3}},"
		"{'ph':'M','name':'thread_name','pid':1,'tid':5,'args':{'name':'t\\u00e9'}},"
		"{'ph':'M','name':'thread_sort_index','pid':1,'tid':5,'args':{'sort_index':9}},"
		"{'ph':'M','name':'num_cpus','pid':1,'tid':5,'args':{'number': 4}},"
		"{'ph':'M','name':'thread_name','pid':1,'tid':5,'args':{'name':7}},"
		"{'ph':'M','name':'odd','pid':1}]";

	CHECK_ROWS(json, "process",
		   "{'id':1,'source':1,'pid':1,'name':'b','labels':'GPU 0','sort_index':-3}\n");
	CHECK_ROWS(json, "thread",
		   "{'id':1,'process':1,'tid':5,'name':'t\xc3\xa9','sort_index':9}\n");
	CHECK_ROWS(json, "meta",
		   "{'source':1,'process':1,'thread':1,'key':'num_cpus','value':{'number':4}}\n"
		   "{'source':1,'process':1,'thread':1,'key':'thread_name','value':{'name':7}}\n"
		   "{'source':1,'process':1,'key':'odd'}\n");
}

TS_TEST(repeated_metadata_makes_no_rows)
{
	struct ts_text json;
	struct imported imported;

	ts_text_init(&json);
	ts_text_append_char(&json, '[');
	for (int i = 0; i < 1000; i++)
		ts_text_append_str(&json, "{'ph':'M','name':'thread_name','pid':1,'tid':2,"
					  "'args':{'name':'worker'}},\n");
	ts_text_append_char(&json, ']');
	import_bytes(&imported, json.data, json.length, false);
	TS_CHECK_INT(imported.rc, 0);
	/* One when it was first seen, one with its name. */
	TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_THREAD), 2);
	TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_PROCESS), 1);
	release_imported(&imported);
	ts_text_release(&json);
}

/* ---- arguments ---- */

TS_TEST(types_of_arguments)
{
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'args':{'i':-5,'d':0.5,'e':1e3,'s':'t','t':true,"
		   "'f':false,"
		   "'n':null,'a': [1, 2] ,'o':{ 'x' : 1 },'big':18446744073709551616,'huge':1e400,"
		   "'m':-9223372036854775808,'z':-0}}]",
		   "slice",
		   SLICE ",'args':{'i':-5,'d':0.5,'e':1000.0,'s':'t','t':true,'f':false,'n':null,"
			 "'a':[1,2],'o':{"
			 "'x':1},'big':18446744073709551616,'huge':1e400,'m':-9223372036854775808,"
			 "'z':-0.0}}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'args':{'a':NaN,'b':-Infinity,'c':Infinity,'d':nan,"
		   "'e':[NaN]}}]",
		   "slice",
		   SLICE
		   ",'args':{'a':'NaN','b':'-Infinity','c':'Infinity','d':'NaN','e':['NaN']}}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'args':{'k':1,'k':2}}]", "slice",
		   SLICE ",'args':{'k':1,'k':2}}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'args':{}}]", "slice", SLICE "}\n");
}

TS_TEST(members_beside_the_arguments)
{
	/* In any order: arguments come first, other members after them. */
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'tts':7,'args':{'k':1},'cname':'good',"
		   "'bind_id':{ 'a': 1}}]",
		   "slice",
		   SLICE ",'args':{'k':1},'beside':{'tts':7,'cname':'good','bind_id':{'a':1}}}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'args':[1, 2]},{'ph':'X','ts':1,'dur':2,'args':'x'}]",
		   "slice", SLICE ",'beside':{'args':[1,2]}}\n" SLICE ",'beside':{'args':'x'}}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'name':5,'cat':null}]", "slice",
		   SLICE ",'beside':{'name':5,'cat':null}}\n");
	/* Another program's file may use our key. */
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'tracesmith':{'thread':9}}]", "slice",
		   SLICE ",'beside':{'tracesmith':{'thread':9}}}\n");
}

TS_TEST(shapes_alternate)
{
	struct ts_text json, expected;

	ts_text_init(&json);
	ts_text_init(&expected);
	ts_text_append_char(&json, '[');
	for (int i = 1; i < 60; i++) {
		static const char *const args[] = {
			"{'a':1,'b':2}", "{'a':1,'b':'x'}", "{'a':null,'b':2}",
			"{'b':2,'a':1}", "{'a':1}",         "{'a':1,'b':2,'c':[]}",
			"{'ab':1}",
		};

		ts_text_printf(&json, "%s{'ph':'X','ts':%d,'args':%s}", i > 1 ? "," : "", i,
			       args[i * 5 % 7]);
		ts_text_printf(&expected, "{'start':%d000,'thread':1,'args':%s}\n", i,
			       args[i * 5 % 7]);
	}
	ts_text_append_char(&json, ']');
	CHECK_ROWS(ts_text_cstr(&json), "slice", ts_text_cstr(&expected));
	ts_text_release(&json);
	ts_text_release(&expected);
}

TS_TEST(more_arguments_than_a_shape_holds)
{
	struct ts_text json;
	struct imported imported;
	struct ts_text out;

	ts_text_init(&json);
	ts_text_init(&out);
	ts_text_append_str(&json, "[{'ph':'X','ts':1,'args':{");
	for (int i = 0; i < 2000; i++)
		ts_text_printf(&json, "%s'k%d':%d", i ? "," : "", i, i);
	ts_text_append_str(&json, "}}]");
	import_bytes(&imported, json.data, json.length, true);
	TS_CHECK_INT(imported.rc, 0);
	dump_table(imported.reader, &out, "slice");
	/* One value of `beside`. */
	TS_CHECK(strstr(ts_text_cstr(&out), "'beside':{'args':{'k0':0,") != NULL);
	TS_CHECK(strstr(ts_text_cstr(&out), "'k1999':1999}") != NULL);
	TS_CHECK_STR(imported.result.note, "");
	release_imported(&imported);
	ts_text_release(&json);
	ts_text_release(&out);
}

TS_TEST(texts)
{
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'name':'a\\'b\\u00e9\\n\\ud83d\\ude00'}]", "slice",
		   SLICE ",'name':'a\\'b\xc3\xa9\\n\xf0\x9f\x98\x80'}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'name':'a\xff\xfe z','cat':'\xc3'}]", "slice",
		   SLICE ",'name':'a\xef\xbf\xbd\xef\xbf\xbd z','category':'\xef\xbf\xbd'}\n");
	CHECK_ROWS("[{'ph':'X','ts':1,'dur':2,'args':{'k\\u0041':'\xff','j':['\xff']}}]", "slice",
		   SLICE ",'args':{'kA':'\xef\xbf\xbd','j':['\xef\xbf\xbd']}}\n");
}

/* ---- phases ---- */

TS_TEST(begin_and_end)
{
	/* Matches by name, or the innermost; arguments of both, the end's take precedence. */
	CHECK_ROWS(
		"[{'ph':'B','ts':1,'name':'a','args':{'x':1,'y':2}},{'ph':'B','ts':2,'name':'b'},"
		"{'ph':'E','ts':3,'name':'a','args':{'y':3,'z':4}},{'ph':'E','ts':5}]",
		"slice",
		"{'start':1000,'duration':2000,'thread':1,'name':'a','args':{'x':1,'y':3,'z':4}}\n"
		"{'start':2000,'duration':3000,'thread':1,'name':'b'}\n");
	/* In time order, whatever their order in the file. */
	CHECK_ROWS("[{'ph':'E','ts':9,'name':'a'},{'ph':'B','ts':4,'name':'b'},{'ph':'E','ts':6,"
		   "'name':'b'},"
		   "{'ph':'B','ts':1,'name':'a'}]",
		   "slice",
		   "{'start':1000,'duration':8000,'thread':1,'name':'a'}\n"
		   "{'start':4000,'duration':2000,'thread':1,'name':'b'}\n");
	/* An end without a name closes the innermost span, not the one without a name. */
	CHECK_ROWS("[{'ph':'B','ts':1},{'ph':'B','ts':2,'name':'b'},{'ph':'E','ts':3},"
		   "{'ph':'E','ts':5}]",
		   "slice",
		   "{'start':1000,'duration':4000,'thread':1}\n"
		   "{'start':2000,'duration':1000,'thread':1,'name':'b'}\n");
	/* Threads do not mix. */
	CHECK_ROWS("[{'ph':'B','ts':1,'tid':1},{'ph':'B','ts':2,'tid':2},{'ph':'E','ts':3,'tid':1},"
		   "{'ph':'E','ts':4,'tid':2}]",
		   "slice",
		   "{'start':1000,'duration':2000,'thread':1}\n"
		   "{'start':2000,'duration':2000,'thread':2}\n");
}

TS_TEST(begin_without_end_and_end_without_begin)
{
	const char *json =
		"[{'ph':'E','ts':1,'name':'x'},{'ph':'B','ts':2,'name':'a'},{'ph':'E','ts':3},"
		"{'ph':'E','ts':4},{'ph':'B','ts':5,'name':'b'}]";
	struct imported imported;

	CHECK_ROWS(json, "slice",
		   "{'start':2000,'duration':1000,'thread':1,'name':'a'}\n"
		   "{'start':5000,'duration':-1,'thread':1,'name':'b'}\n");
	import_bytes(&imported, json, strlen(json), false);
	TS_CHECK_STR(imported.result.note, "lost: 2 ends without begin");
	TS_CHECK_INT(imported.result.events, 2);
	release_imported(&imported);
}

TS_TEST(equal_times_keep_their_order)
{
	CHECK_ROWS("[{'ph':'B','ts':1,'name':'a'},{'ph':'E','ts':1,'name':'a'},{'ph':'B','ts':1,"
		   "'name':'b'},"
		   "{'ph':'E','ts':2,'name':'b'}]",
		   "slice",
		   "{'start':1000,'thread':1,'name':'a'}\n"
		   "{'start':1000,'duration':1000,'thread':1,'name':'b'}\n");
}

/* More begins and ends than the buffer holds, each thread shuffled within a window. */
TS_TEST(many_pairs)
{
	struct ts_text json;
	struct imported imported;
	const int count = 700000;

	ts_text_init(&json);
	ts_text_append_char(&json, '[');
	for (int i = 0; i < count; i++) {
		int at = (i ^ 1) * 10;

		ts_text_printf(&json, "{'ph':'E','ts':%d},{'ph':'B','ts':%d},", at + 5, at);
	}
	import_bytes(&imported, json.data, json.length, false);
	TS_CHECK_INT(imported.rc, 0);
	TS_CHECK_STR(imported.result.note, "");
	TS_CHECK_INT(imported.result.events, count);
	release_imported(&imported);
	ts_text_release(&json);
}

TS_TEST(asynchronous)
{
	CHECK_ROWS("[{'ph':'b','ts':1,'cat':'c','name':'a','id':5,'args':{'x':1}},"
		   "{'ph':'b','ts':2,'cat':'c','name':'b','id':5},{'ph':'n','ts':3,'cat':'c',"
		   "'name':'m','id':5},"
		   "{'ph':'b','ts':3,'cat':'d','name':'a','id':5},"
		   "{'ph':'e','ts':4,'cat':'c','name':'a','id':5,'tid':9},"
		   "{'ph':'e','ts':6,'cat':'c','name':'b','id':5}]",
		   "slice",
		   "{'start':1000,'duration':3000,'thread':1,'name':'a','category':'c',"
		   "'kind':'async','id':5,"
		   "'args':{'x':1}}\n"
		   "{'start':2000,'duration':4000,'thread':1,'name':'b','category':'c',"
		   "'kind':'async','id':5}\n"
		   "{'start':3000,'duration':-1,'thread':1,'name':'a','category':'d',"
		   "'kind':'async','id':5}\n");
	/* Ids as written; scopes and processes are separate; global ids span processes. */
	CHECK_ROWS(
		"[{'ph':'S','ts':1,'id':'0x1'},{'ph':'F','ts':2,'id':'0x1'},"
		"{'ph':'b','ts':3,'id2':{ 'local': '0x1'}},{'ph':'e','ts':4,"
		"'id2':{ 'local': '0x1'},'pid':1},"
		"{'ph':'b','ts':5,'id2':{'global':7}},{'ph':'e','ts':6,'id2':{'global':7},'pid':1},"
		"{'ph':'b','ts':7,'id':1,'scope':'s'},{'ph':'e','ts':8,'id':1}]",
		"slice",
		"{'start':1000,'duration':1000,'thread':1,'kind':'async','id':'0x1'}\n"
		"{'start':3000,'duration':-1,'thread':1,'kind':'async','id':{'local':'0x1'}}\n"
		"{'start':5000,'duration':1000,'thread':1,'kind':'async','id':{'global':7}}\n"
		"{'start':7000,'duration':-1,'thread':1,'kind':'async','id':1,"
		"'beside':{'scope':'s'}}\n");
	CHECK_ROWS("[{'ph':'T','ts':1,'id':1,'args':{'step':'x'}},{'ph':'p','ts':2,'id':1}]",
		   "mark",
		   "{'start':1000,'thread':1,'phase':'n','id':1,'args':{'step':'x'}}\n"
		   "{'start':2000,'thread':1,'phase':'n','id':1}\n");
}

TS_TEST(marks)
{
	CHECK_ROWS("[{'ph':'i','ts':1,'s':'t','name':'a'},{'ph':'I','ts':2,'s':'p'},"
		   "{'ph':'i','ts':3,'s':'g','args':{'k':1}},{'ph':'i','ts':4,'s':'x'},"
		   "{'ph':'R','ts':5,'cat':'c','s':'t'},{'ph':'O','ts':6,'id':'0x1',"
		   "'args':{'snapshot':{}}},"
		   "{'ph':'(','ts':7},{'ph':'long','ts':8},{'ph':'i','ts':9,'dur':5}]",
		   "mark",
		   "{'start':1000,'thread':1,'name':'a','scope':'thread'}\n"
		   "{'start':2000,'thread':1,'scope':'process'}\n"
		   "{'start':3000,'thread':1,'scope':'global','args':{'k':1}}\n"
		   "{'start':4000,'thread':1,'beside':{'s':'x'}}\n"
		   "{'start':5000,'thread':1,'category':'c','scope':'thread','phase':'R'}\n"
		   "{'start':6000,'thread':1,'phase':'O','id':'0x1','args':{'snapshot':{}}}\n"
		   "{'start':7000,'thread':1,'phase':'('}\n"
		   "{'start':8000,'thread':1,'phase':'long'}\n"
		   "{'start':9000,'thread':1,'beside':{'dur':5}}\n");
}

TS_TEST(counters)
{
	CHECK_ROWS("[{'ph':'C','ts':1,'name':'mem','args':{'used':5,'free':1.5}},"
		   "{'ph':'C','ts':2,'name':'mem','id':3,'args':{'used':6}}]",
		   "counter",
		   "{'start':1000,'thread':1,'name':'mem','args':{'used':5,'free':1.5}}\n"
		   "{'start':2000,'thread':1,'name':'mem','id':3,'args':{'used':6}}\n");
}

TS_TEST(flows)
{
	CHECK_ROWS(
		"[{'ph':'s','ts':1,'id':7,'name':'f','cat':'c'},{'ph':'t','ts':2,'id':7,'bp':'e'},"
		"{'ph':'f','ts':3,'id':7,'bp':'e'},{'ph':'f','ts':4,'id':'0xab','bp':'x'},"
		"{'ph':'s','ts':5},"
		"{'ph':'s','ts':6,'id2':{'local':1},'args':{'k':1}}]",
		"flow",
		"{'start':1000,'thread':1,'id':7,'name':'f','category':'c'}\n"
		"{'start':2000,'thread':1,'kind':'step','enclosing':true,'id':7}\n"
		"{'start':3000,'thread':1,'kind':'end','enclosing':true,'id':7}\n"
		"{'start':4000,'thread':1,'kind':'end','id_json':'0xab','beside':{'bp':'x'}}\n"
		"{'start':5000,'thread':1}\n"
		"{'start':6000,'thread':1,'id_json':{'local':1},'args':{'k':1}}\n");
}

TS_TEST(several_files_in_one_trace)
{
	static const char *const files[] = {
		"{'baseTimeNanoseconds':100,'traceEvents':["
		"{'ph':'X','ts':1,'dur':2,'pid':1}"
		"]}",
		"{'baseTimeNanoseconds':200,'traceEvents':["
		"{'ph':'X','ts':1,'dur':2,'pid':1}"
		"]}",
		"["
		"{'ph':'X','ts':1,'dur':2,'pid':1}"
		"]",
	};
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_reader *reader;

	for (size_t i = 0; i < TS_ARRAY_SIZE(files); i++)
		TS_CHECK_INT(import_quoted(writer, "dir/rank.json", files[i], strlen(files[i]), 0,
					   0, NULL, NULL, NULL),
			     0);
	reader = finish_and_read(writer, path);
	CHECK_TABLE(reader, "source",
		    "{'id':1,'name':'rank.json','format':'kineto','clock':1}\n"
		    "{'id':2,'name':'rank.json','format':'kineto','clock':2}\n"
		    "{'id':3,'name':'rank.json','format':'chrome','clock':3}\n");
	CHECK_TABLE(reader, "process",
		    "{'id':1,'source':1,'pid':1}\n"
		    "{'id':2,'source':2,'pid':1}\n"
		    "{'id':3,'source':3,'pid':1}\n");
	CHECK_TABLE(reader, "slice",
		    "{'start':1100,'duration':2000,'thread':1}\n"
		    "{'start':1200,'duration':2000,'thread':2}\n"
		    "{'start':1000,'duration':2000,'thread':3}\n");
	ts_reader_close(reader);
}
