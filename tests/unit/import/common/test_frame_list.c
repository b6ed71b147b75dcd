/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of a Chrome file: stack frames and samples in either order, stacks of events, V8 profiles.
 */
#include "unit/import/import_support.h"

#define FRAMES                                                                   \
	"'stackFrames':{'3':{'name':'inner','parent':'2'},"                      \
	"'1':{'name':'main','category':'c','line':'12','column':3,'file':'a.c'," \
	"'kind':'native','odd':[1]},"                                            \
	"'2':{'name':'outer','parent':1}}"
#define SAMPLES                                                                              \
	"'samples':[{'ts':'5','pid':1,'tid':'2','cpu':'-1','name':'s','weight':'4','sf':3}," \
	"{'ts':6,'tid':2,'pid':1,'weight':1.5,'sf':'1','tick':true}]"
#define SAMPLE_ROWS                                                            \
	"{'start':5000,'thread':1,'stack':3,'weight':4,'cpu':-1,'name':'s'}\n" \
	"{'start':6000,'thread':1,'stack':1,'beside':{'weight':1.5,'tick':true}}\n"
#define STACK_ROWS "{'frame':2}\n{'parent':1,'frame':3}\n{'parent':2,'frame':1}\n"

TS_TEST(samples_and_frames_in_either_order)
{
	static const char *const orders[] = {
		"{" FRAMES "," SAMPLES ",'traceEvents':[]}",
		"{" SAMPLES "," FRAMES ",'traceEvents':[]}",
		"{'traceEvents':[]," SAMPLES "," FRAMES "}",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(orders); i++) {
		CHECK_ROWS(orders[i], "sample", SAMPLE_ROWS);
		CHECK_ROWS(orders[i], "stack", STACK_ROWS);
		CHECK_ROWS(orders[i], "frame",
			   "{'name':'inner'}\n"
			   "{'name':'main','file':'a.c','line':12,'column':3,'kind':'native',"
			   "'category':'c'}\n"
			   "{'name':'outer'}\n");
	}
}

TS_TEST(samples_without_frames)
{
	CHECK_ROWS("{" SAMPLES "}", "sample",
		   "{'start':5000,'thread':1,'weight':4,'cpu':-1,'name':'s','beside':{'sf':3}}\n"
		   "{'start':6000,'thread':1,'beside':{'weight':1.5,'tick':true,'sf':'1'}}\n");
	CHECK_ROWS("{" FRAMES ",'samples':[{'ts':1,'sf':77},{'ts':2,'sf':[1]}]}", "sample",
		   "{'start':1000,'thread':1,'beside':{'sf':77}}\n"
		   "{'start':2000,'thread':1,'beside':{'sf':[1]}}\n");
}

TS_TEST(frames_that_go_round_in_a_circle)
{
	const char *json =
		"{'stackFrames':{'a':{'name':'a','parent':'b'},'b':{'name':'b',"
		"'parent':'a'},'c':{'name':'c','parent':'c'},'d':{'name':'d','parent':'none'},"
		"'e':5},'samples':[{'ts':1,'sf':'a'},{'ts':2,'sf':'b'},{'ts':3,'sf':'c'},"
		"{'ts':4,'sf':'d'},{'ts':5,'sf':'e'}]}";

	CHECK_ROWS(json, "sample",
		   "{'start':1000,'thread':1,'stack':2}\n"
		   "{'start':2000,'thread':1,'stack':1}\n"
		   "{'start':3000,'thread':1,'stack':3}\n"
		   "{'start':4000,'thread':1,'stack':4}\n"
		   "{'start':5000,'thread':1,'beside':{'sf':'e'}}\n");
	CHECK_ROWS(json, "stack",
		   "{'frame':2}\n"
		   "{'parent':1,'frame':1}\n"
		   "{'frame':3}\n"
		   "{'frame':4}\n");
}

TS_TEST(deep_stacks_are_cut)
{
	struct ts_text json;
	struct imported imported;

	ts_text_init(&json);
	ts_text_append_str(&json, "{'stackFrames':{'0':{'name':'f'}");
	for (int i = 1; i <= 70000; i++)
		ts_text_printf(&json, ",'%d':{'name':'f','parent':%d}", i, i - 1);
	ts_text_append_str(&json, "},'samples':[{'ts':1,'sf':70000}]}");
	import_bytes(&imported, json.data, json.length, false);
	TS_CHECK_INT(imported.rc, 0);
	TS_CHECK_STR(imported.result.note, "lost: 1 stack cut at 65,536 frames");
	release_imported(&imported);
	ts_text_release(&json);
}

TS_TEST(stacks_of_events)
{
	CHECK_ROWS("{" FRAMES ",'traceEvents':[{'ph':'X','ts':1,'sf':2},{'ph':'X','ts':2,'sf':9},"
		   "{'ph':'B','ts':3,'sf':'1'},{'ph':'E','ts':4,'sf':1}]}",
		   "slice",
		   "{'start':1000,'thread':1,'stack':2}\n"
		   "{'start':2000,'thread':1,'beside':{'sf':9}}\n"
		   "{'start':3000,'duration':1000,'thread':1,'stack':1,'beside':{'sf':1}}\n");
	/* Not read yet: kept in `beside`. */
	CHECK_ROWS("{'traceEvents':[{'ph':'i','ts':1,'sf':2}]," FRAMES "}", "mark",
		   "{'start':1000,'thread':1,'beside':{'sf':2}}\n");
	CHECK_ROWS("[{'ph':'i','ts':1,'stack':['main','f']},{'ph':'i','ts':2,'stack':[1]},"
		   "{'ph':'i','ts':3,'stack':[]}]",
		   "mark",
		   "{'start':1000,'thread':1,'stack':2}\n"
		   "{'start':2000,'thread':1,'beside':{'stack':[1]}}\n"
		   "{'start':3000,'thread':1,'beside':{'stack':[]}}\n");
	CHECK_ROWS("[{'ph':'P','ts':1,'name':'perf','stack':['main','f'],'args':{'k':1}}]",
		   "sample", "{'start':1000,'thread':1,'stack':2,'name':'perf','args':{'k':1}}\n");
	/* A sample without a stack is no sample. */
	CHECK_ROWS("[{'ph':'P','ts':1}]", "mark", "{'start':1000,'thread':1,'phase':'P'}\n");
}

/* ---- V8 ---- */

#define LOCATION "'url':'a.js','lineNumber':4,'columnNumber':0,'codeType':'JS','scriptId':'1'"

TS_TEST(profile_in_chunks)
{
	const char *json = "[{'ph':'P','name':'Profile','id':'0x1','pid':1,'tid':2,'ts':100,"
			   "'args':{'data':{'startTime':100}}},"
			   "{'args':{'data':{'cpuProfile':{'nodes':["
			   "{'id':1,'callFrame':{'functionName':'(root)'}},"
			   "{'id':2,'parent':1,'callFrame':{'functionName':'f'," LOCATION "}}],"
			   "'samples':[2,1]},'lines':[1,1],'timeDeltas':[10,-5]}},"
			   "'ph':'P','name':'ProfileChunk','id':'0x1','pid':1,'tid':9,'ts':120},"
			   "{'ph':'P','name':'ProfileChunk','id':'0x1','pid':1,'tid':9,'ts':130,"
			   "'args':{'data':{'cpuProfile':{'nodes':["
			   "{'id':3,'parent':2,'callFrame':{'functionName':'g'," LOCATION "}}],"
			   "'samples':[3,99]},'timeDeltas':[20,1]}}}]";

	/* On the thread of the Profile event; times continue from chunk to chunk. */
	CHECK_ROWS(json, "sample",
		   "{'start':105000,'thread':1,'stack':1,'name':'CpuProfile'}\n"
		   "{'start':110000,'thread':1,'stack':2,'name':'CpuProfile'}\n"
		   "{'start':125000,'thread':1,'stack':3,'name':'CpuProfile'}\n"
		   "{'start':126000,'thread':1,'name':'CpuProfile'}\n");
	CHECK_ROWS(json, "stack",
		   "{'frame':1}\n"
		   "{'parent':1,'frame':2}\n"
		   "{'parent':2,'frame':3}\n");
	CHECK_ROWS(
		json, "frame",
		"{'name':'(root)'}\n"
		"{'name':'f','file':'a.js','line':5,'column':1,'kind':'script','category':'JS'}\n"
		"{'name':'g','file':'a.js','line':5,'column':1,'kind':'script','category':'JS'}\n");
	CHECK_ROWS(json, "mark", "");
}

TS_TEST(profile_in_one_event)
{
	const char *json =
		"[{'ph':'I','name':'CpuProfile','pid':1,'tid':2,'ts':100,"
		"'args':{'data':{'cpuProfile':{'nodes':["
		"{'id':1,'callFrame':{'functionName':'a'},'hitCount':0,'children':[2,3]},"
		"{'id':2,'callFrame':{'functionName':'b'},'children':[]},"
		"{'id':3,'callFrame':{'functionName':'c'}}],"
		"'startTime':50,'endTime':70,'samples':[2,3,1],'timeDeltas':[1,2]}}}}]";

	CHECK_ROWS(json, "sample",
		   "{'start':51000,'thread':1,'stack':2,'name':'CpuProfile'}\n"
		   "{'start':53000,'thread':1,'stack':3,'name':'CpuProfile'}\n");
	CHECK_ROWS(json, "stack",
		   "{'frame':1}\n"
		   "{'parent':1,'frame':2}\n"
		   "{'parent':1,'frame':3}\n");
	CHECK_ROWS(json, "loss",
		   "{'start':53000,'source':1,'what':'event','count':1,"
		   "'reason':'event without time'}\n");
}

TS_TEST(not_a_profile)
{
	CHECK_ROWS("[{'ph':'P','name':'Profile','ts':1,'args':{'data':5}},"
		   "{'ph':'I','ts':2,'args':{'data':'\\'cpuProfile\\'','cpuProfile':1}}]",
		   "mark",
		   "{'start':1000,'thread':1,'name':'Profile','phase':'P','args':{'data':5}}\n"
		   "{'start':2000,'thread':1,'args':{'data':'\\'cpuProfile\\'','cpuProfile':1}}\n");
}
