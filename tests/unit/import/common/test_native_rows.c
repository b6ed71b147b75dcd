/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importing our own exports: the result is the same trace, in all tables. Also files that hold more
 * than today's exporter writes.
 */
#include <tracesmith/export.h>

#include "base/local/hash.h"
#include "unit/import/import_support.h"

/* Tables that must be the same; strings, shapes and frames may have other ids. */
static const char *const tables[] = {
	"source",  "host",       "process", "thread",      "device", "stream",  "mapping",
	"slice",   "api_call",   "gpu_op",  "allocation",  "flow",   "sample",  "symbol",
	"counter", "mark",       "window",  "torch_trace", "tensor", "command", "object",
	"blob",    "clock_sync", "loss",    "meta",
};

static void dump_all(struct ts_reader *reader, struct ts_text *out)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(tables); i++) {
		ts_text_printf(out, "== %s\n", tables[i]);
		dump_table(reader, out, tables[i]);
	}
}

static void export_to(struct ts_reader *reader, const char *path)
{
	FILE *file = fopen(path, "wb");
	struct ts_error err;

	TS_CHECK(file != NULL);
	if (ts_exporter_find("chrome")->run(reader, fileno(file), NULL, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	fclose(file);
}

/* Exports, imports and compares; takes the reader. */
static void check_round_trip(struct ts_reader *reader)
{
	struct ts_text before, after;
	struct ts_import_result result;
	struct ts_error err;
	struct ts_writer *writer;
	char json[64], path[64];

	ts_text_init(&before);
	ts_text_init(&after);
	dump_all(reader, &before);
	temporary_path(json);
	export_to(reader, json);
	ts_reader_close(reader);
	writer = open_writer(path);
	if (ts_import_file(writer, json, NULL, &result, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	unlink(json);
	TS_CHECK_STR(result.format, "tracesmith");
	TS_CHECK_STR(result.note, "");
	reader = finish_and_read(writer, path);
	dump_all(reader, &after);
	TS_CHECK_STR(ts_text_cstr(&after), ts_text_cstr(&before));
	ts_reader_close(reader);
	ts_text_release(&before);
	ts_text_release(&after);
}

static void check_json_round_trip(const char *first, const char *second)
{
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_error err;

	if (import_quoted(writer, "a.json", first, strlen(first), 0, 0, NULL, NULL, &err) ||
	    (second &&
	     import_quoted(writer, "b.json", second, strlen(second), 0, 0, NULL, NULL, &err)))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	check_round_trip(finish_and_read(writer, path));
}

#define KINETO                                                                                   \
	"{'schemaVersion':1,'deviceProperties':[{'id':0,'name':'H100'}],"                        \
	"'distributedInfo':{'rank':1,'world_size':2},'baseTimeNanoseconds':1700000000000000000," \
	"'traceEvents':["                                                                        \
	"{'ph':'X','cat':'cpu_op','name':'aten::add','pid':9,'tid':9,'ts':1.5,'dur':2.25,"       \
	"'args':{'External id':1,'Input Dims':[[1],[]],'x':0.1,'b':true,'n':null},'tts':5},"     \
	"{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernel','pid':9,'tid':9,'ts':2,"       \
	"'dur':1,"                                                                               \
	"'args':{'cbid':211,'correlation':5}},"                                                  \
	"{'ph':'s','id':5,'pid':9,'tid':9,'ts':2,'cat':'ac2g','name':'ac2g'},"                   \
	"{'ph':'X','cat':'kernel','name':'ncclDevKernel','pid':0,'tid':7,'ts':4,'dur':2,"        \
	"'args':{'device':0,'stream':7,'correlation':5,'grid':[1,2,3],'block':[4,5,6]}},"        \
	"{'ph':'f','id':5,'pid':0,'tid':7,'ts':4,'cat':'ac2g','name':'ac2g','bp':'e'},"          \
	"{'ph':'X','cat':'gpu_memcpy','name':'Memcpy DtoH (x)','pid':0,'tid':7,'ts':7,'dur':2,"  \
	"'args':{'device':0,'stream':7,'bytes':256,'memory bandwidth (GB/s)':0.128}},"           \
	"{'ph':'X','cat':'cuda_sync','name':'sync','pid':0,'tid':100007,'ts':8,"                 \
	"'args':{'stream':7}},"                                                                  \
	"{'ph':'X','cat':'kernel','name':'odd','pid':'GPU','tid':'q','ts':9},"                   \
	"{'ph':'s','id':1,'pid':9,'tid':9,'ts':2,'cat':'fwdbwd','name':'fwdbwd'},"               \
	"{'ph':'i','s':'g','name':'end','pid':'','tid':'','ts':20},"                             \
	"{'ph':'M','name':'process_name','pid':9,'args':{'name':'python'}},"                     \
	"{'ph':'M','name':'num_cpus','pid':9,'tid':9,'args':{'number':4}}]}"

TS_TEST(kineto_and_back)
{
	check_json_round_trip(KINETO, NULL);
}

TS_TEST(two_ranks_with_the_same_ids)
{
	check_json_round_trip(KINETO, KINETO);
	check_json_round_trip(KINETO, "[{'ph':'X','ts':1,'pid':9,'tid':9}]");
}

TS_TEST(chrome_and_back)
{
	check_json_round_trip(
		"{'stackFrames':{'a':{'name':'main','line':5},'b':{'name':'f','parent':'a'}},"
		"'samples':[{"
		"'ts':1,'sf':'b','weight':1,'cpu':2,'name':'x','k':1},"
		"{'ts':2}],'traceEvents':[{'ph':'B','ts':1,'name':'a','args':{'k':1}},"
		"{'ph':'E','ts':3,'args':{'j':'x'}},{'ph':'B','ts':4,'name':'open'},"
		"{'ph':'b','ts':1,'id':'0x1','cat':'c','name':'as','scope':'s'},"
		"{'ph':'e','ts':5,'id':'0x1','cat':'c','name':'as','scope':'s'},"
		"{'ph':'b','ts':2,'id2':{'local':'0x1'},'cat':'c','name':'as'},"
		"{'ph':'n','ts':2,'id':7,'name':'n'},{'ph':'C','ts':2,'name':'c','args':{'v':1.5}},"
		"{'ph':'R','ts':3,'s':'t'},{'ph':'O','ts':3,'id':'0x2',"
		"'args':{'snapshot':{'a':[]}}},"
		"{'ph':'X','ts':9,'dur':1,'sf':'b','id':4,'name':'with id'},"
		"{'ph':'i','ts':9,'stack':['p','q']},{'ph':'t','ts':9,'id':'x','bp':'e'},"
		"{'ph':'X','ts':9,'name':5,'args':[1]},{'ph':'X','ts':9,'name':'','cat':''}]}",
		NULL);
}

/* Rows that cannot come from a Chrome file. */
TS_TEST(every_table_and_back)
{
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_field fields[] = {
		{ .key = ts_writer_string(writer, "k", 1), .type = TS_ARG_INT },
		{ .key = ts_writer_string(writer, "b", 1), .type = TS_ARG_STRING, .beside = 1 }
	};
	uint32_t shape = ts_writer_shape(writer, fields, 2);
	uint32_t text = ts_writer_string(writer, "text", 4);
	uint32_t json = ts_writer_string(writer, "[1,2]", 5);
	uint32_t id = ts_writer_string(writer, "'0x7'", 5);
	const int64_t values[] = { 42, text };
	struct ts_source_row source = ts_source_none;
	struct ts_frame_row frame = ts_frame_none;
	struct ts_mapping_row mapping = ts_mapping_none;
	uint32_t stack, blob;

	source.id = ts_writer_new_id(writer, TS_TABLE_SOURCE);
	source.clock = source.id;
	source.name = text;
	ts_writer_add(writer, TS_TABLE_SOURCE, &source, NULL);
	ts_writer_add(writer, TS_TABLE_CLOCK_SYNC,
		      &(struct ts_clock_sync_row){
			      .clock = 1, .time = 10, .reference = 5000, .method = text },
		      NULL);
	ts_writer_set_clock(writer, 1);
	mapping.path = text;
	mapping.mapped = 77;
	mapping.process = 1;
	ts_writer_add(writer, TS_TABLE_MAPPING, &mapping, NULL);
	frame.mapping = 1;
	frame.pc = 0x1234;
	frame.kind = TS_FRAME_NATIVE;
	stack = ts_writer_stack(writer, 0, ts_writer_frame(writer, &frame));
	blob = ts_writer_blob(writer,
			      "\x00\x01\xff"
			      "abc",
			      6);
	for (int table = TS_TABLE_HOST; table <= TS_TABLE_META; table++) {
		const struct ts_table_info *info = ts_table_info((uint32_t)table);
		int64_t row[TS_MAX_COLUMNS];

		if (info->kind == TS_KIND_DICTIONARY || info->kind == TS_KIND_INTERNAL ||
		    table == TS_TABLE_CLOCK_SYNC || table == TS_TABLE_SYMBOL)
			continue;
		for (int i = 0; i < info->column_count; i++) {
			const struct ts_column_info *column = &info->columns[i];
			double real = 0.25;

			row[i] = 1000 + i;
			if (column->type == TS_COLUMN_STRING)
				row[i] = text;
			else if (column->type == TS_COLUMN_JSON)
				row[i] = strcmp(column->name, "id") == 0 ? id : json;
			else if (column->type == TS_COLUMN_ENUM || column->type == TS_COLUMN_BOOL)
				row[i] = 1;
			else if (column->type == TS_COLUMN_REF)
				row[i] = strcmp(column->refers, "stack") == 0  ? stack
					 : strcmp(column->refers, "blob") == 0 ? blob
									       : 1;
			else if (column->type == TS_COLUMN_SHAPE)
				row[i] = shape;
			else if (column->type == TS_COLUMN_FLOAT)
				memcpy(&row[i], &real, sizeof(real));
			else if (info->kind == TS_KIND_ENTITY && strcmp(column->name, "id") == 0)
				row[i] = ts_writer_new_id(writer, (enum ts_table_id)table);
		}
		/* Only one of a pair can be set, and a parent must not be the row itself. */
		if (table == TS_TABLE_PROCESS)
			row[TS_COLUMN_OF(process, pid_text)] = row[TS_COLUMN_OF(process, parent)] =
				0;
		if (table == TS_TABLE_THREAD)
			row[TS_COLUMN_OF(thread, tid_text)] = 0;
		if (table == TS_TABLE_FLOW)
			row[TS_COLUMN_OF(flow, id_json)] = 0;
		if (table == TS_TABLE_MARK)
			row[TS_COLUMN_OF(mark, phase)] = 0;
		TS_CHECK_INT(ts_writer_add(writer, (enum ts_table_id)table, row, values), 0);
	}
	check_round_trip(finish_and_read(writer, path));
}

/* ---- counters without a thread ---- */

static void add_counter(struct ts_writer *writer, int64_t start, int64_t process, int64_t device,
			int64_t thread)
{
	struct ts_field fields[] = {
		{ .key = ts_writer_string(writer, "used", 4), .type = TS_ARG_INT },
		{ .key = ts_writer_string(writer, "free", 4), .type = TS_ARG_INT }
	};
	const int64_t values[] = { start, -start };
	struct ts_counter_row row = ts_counter_none;

	row.start = start;
	row.process = process;
	row.device = device;
	row.thread = thread;
	row.name = ts_writer_string(writer, "memory_bytes", 12);
	row.category = ts_writer_string(writer, "m", 1);
	row.shape = ts_writer_shape(writer, fields, 2);
	ts_writer_add(writer, TS_TABLE_COUNTER, &row, values);
}

/* Processes 1 (with that pid) and 2 (pid 70), two devices of one kind and one unknown device. */
static struct ts_reader *read_metrics(int64_t pid)
{
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_source_row source = ts_source_none;
	struct ts_process_row process = ts_process_none;
	struct ts_thread_row thread = ts_thread_none;

	source.id = ts_writer_new_id(writer, TS_TABLE_SOURCE);
	source.clock = 1;
	ts_writer_add(writer, TS_TABLE_SOURCE, &source, NULL);
	ts_writer_add(writer, TS_TABLE_CLOCK_SYNC,
		      &(struct ts_clock_sync_row){ .clock = 1, .time = 0, .reference = 500000 },
		      NULL);
	process.source = 1;
	for (int i = 0; i < 2; i++) {
		process.id = ts_writer_new_id(writer, TS_TABLE_PROCESS);
		process.pid = i ? 70 : pid;
		process.name = ts_writer_string(writer, "p", 1);
		ts_writer_add(writer, TS_TABLE_PROCESS, &process, NULL);
	}
	/* Its slot in the file must not be taken for theirs. */
	thread.id = ts_writer_new_id(writer, TS_TABLE_THREAD);
	thread.process = 1;
	thread.tid = 0;
	ts_writer_add(writer, TS_TABLE_THREAD, &thread, NULL);
	for (int i = 0; i < 3; i++) {
		struct ts_device_row device = ts_device_none;

		device.id = ts_writer_new_id(writer, TS_TABLE_DEVICE);
		device.source = 1;
		device.number = i / 2 ? TS_ABSENT : 4;
		device.name = i / 2 ? 0 : ts_writer_string(writer, "Fast \"1\"", 8);
		ts_writer_add(writer, TS_TABLE_DEVICE, &device, NULL);
	}
	ts_writer_set_clock(writer, 1);
	add_counter(writer, 1000, 0, 0, 0);
	add_counter(writer, 2000, 1, 0, 0);
	add_counter(writer, 3000, 2, 0, 0);
	add_counter(writer, 4000, 0, 1, 0);
	add_counter(writer, 5000, 0, 2, 0);
	add_counter(writer, 6000, 0, 3, 0);
	add_counter(writer, 7000, 2, 1, 0);
	add_counter(writer, 8000, 0, 1, 1);
	add_counter(writer, 9000, 2, 0, 1);
	return finish_and_read(writer, path);
}

TS_TEST(counters_of_no_thread_and_back)
{
	check_round_trip(read_metrics(60));
	check_round_trip(read_metrics(0));
}

/* The events that viewers see, from "ph" to their time. */
static void check_shown(int64_t pid, const char *exporter, const char *const *expected)
{
	struct ts_reader *reader = read_metrics(pid);
	FILE *file = tmpfile();
	static char text[16384];
	const char *at = text;
	struct ts_error err;
	size_t length;

	TS_CHECK(file != NULL);
	if (ts_exporter_find(exporter)->run(reader, fileno(file), NULL, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_reader_close(reader);
	rewind(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = 0;
	fclose(file);
	replace_bytes(text, length, '"', '\'');
	for (; *expected; expected++) {
		at = strstr(at, *expected);
		if (!at)
			ts_test_fail(__FILE__, __LINE__, "no %s in its place:\n%s", *expected,
				     text);
	}
}

TS_TEST(viewers_see_counters_with_whom_they_are_about)
{
	static const char *const plain[] = {
		"{'ph':'M','name':'process_name','pid':0,'tid':0,'args':{'name':'system'}}",
		"'name':'memory_bytes','pid':0,'tid':0,'ts':1.000,'args':{'used':1000,'free':-1000},",
		"'tracesmith':{'thread':null}}",
		"'name':'memory_bytes','pid':60,'tid':60,'ts':2.000,",
		"'tracesmith':{'thread':null,'process':1}}",
		"'name':'memory_bytes','pid':70,'tid':70,'ts':3.000,",
		"'name':'Fast \\'1\\' 4 memory_bytes','pid':0,'tid':0,'ts':4.000,",
		"'tracesmith':{'thread':null,'device':1,'name':'memory_bytes'}}",
		"'name':'Fast \\'1\\' 4 #2 memory_bytes','pid':0,'tid':0,'ts':5.000,",
		"'name':'device #3 memory_bytes','pid':0,'tid':0,'ts':6.000,",
		"'name':'Fast \\'1\\' 4 memory_bytes','pid':70,'tid':70,'ts':7.000,",
		"'name':'memory_bytes','pid':60,'tid':0,'ts':8.000,",
		"'tracesmith':{'device':1}}",
		"'name':'memory_bytes','pid':60,'tid':0,'ts':9.000,",
		NULL,
	};
	/* A process with pid 0 keeps that for itself. */
	static const char *const zero[] = {
		"{'ph':'M','name':'process_name','pid':0,'tid':0,'args':{'name':'p'}}",
		"{'ph':'M','name':'process_name','pid':3000000000,'tid':0,'args':{'name':'system'}}",
		"'name':'memory_bytes','pid':3000000000,'tid':0,'ts':1.000,",
		"'name':'memory_bytes','pid':0,'tid':0,'ts':2.000,",
		NULL,
	};
	static const char *const array[] = {
		"{'name':'memory_bytes','cat':'m','ph':'C','ts':1.000,'pid':0,'tid':0,",
		"{'name':'memory_bytes','cat':'m','ph':'C','ts':2.000,'pid':60,'tid':0,",
		"{'name':'Fast \\'1\\' 4 memory_bytes','cat':'m','ph':'C','ts':4.000,'pid':0,'tid':0,",
		"{'name':'Fast \\'1\\' 4 #2 memory_bytes','cat':'m','ph':'C','ts':5.000,'pid':0,",
		"{'name':'Fast \\'1\\' 4 memory_bytes','cat':'m','ph':'C','ts':7.000,'pid':70,",
		NULL,
	};

	check_shown(60, "chrome", plain);
	check_shown(0, "chrome", zero);
	check_shown(60, "chrome-array", array);
}

/* ---- what such a file may hold ---- */

#define NATIVE(rows, rest) "{'tracesmith':{'format':1,'rows':{" rows "}}," rest "}"
#define WHO                                                                                     \
	"'source':[{'id':1,'name':'s','clock':1}],'clock_sync':[{'clock':1,'reference':1000}]," \
	"'process':[{'id':1,'source':1,'pid':5,'start':3000}],"                                 \
	"'thread':[{'id':1,'process':1,'tid':6,'chrome':[50,'x']}]"

TS_TEST(times_go_back_to_their_clock)
{
	const char *json = NATIVE(WHO,
				  "'baseTimeNanoseconds':400,'traceEvents':[{'ph':'X','pid':50,"
				  "'tid':'x','ts':2}]");
	struct imported imported;

	/* Trace time is ts + base. */
	CHECK_ROWS(json, "slice", "{'start':2400,'thread':1}\n");
	CHECK_ROWS(json, "process", "{'id':1,'source':1,'pid':5,'start':3000}\n");
	CHECK_ROWS(json, "clock_sync", "{'clock':1,'reference':1000}\n");
	import_bytes(&imported, json, strlen(json), false);
	for (size_t i = 0; i < ts_reader_chunk_count(imported.reader); i++)
		if (ts_reader_chunk(imported.reader, i)->table == TS_TABLE_SLICE)
			TS_CHECK_INT(ts_reader_chunk(imported.reader, i)->clock, 1);
	release_imported(&imported);
}

/*
 * A row without a source is in trace time, whatever clock the previous row has; one that only names
 * a queue uses the clock of that queue's source.
 */
TS_TEST(times_of_rows_that_name_no_source)
{
	const char *nobody =
		"{'tracesmith':{'format':1,'rows':{'source':[{'id':1,'name':'s','clock':1}],"
		"'clock_sync':[{'clock':1,'reference':1000}],'process':[{'id':1,"
		"'source':1,'start':3000},{'id':2,'start':3000}]}},'traceEvents':[]}";
	const char *queue =
		NATIVE(WHO ",'device':[{'id':1,'source':1}],'stream':[{'id':1,'device':1}]",
		       "'traceEvents':[{'ph':'M','name':'tracesmith_row','args':{'table':"
		       "'allocation','start':2000,'stream':1,'bytes':8}}]");
	struct imported imported;
	size_t found = 0;

	CHECK_ROWS(nobody, "process", "{'id':1,'source':1,'start':3000}\n{'id':2,'start':3000}\n");
	CHECK_ROWS(queue, "allocation", "{'start':2000,'stream':1,'bytes':8}\n");
	import_bytes(&imported, queue, strlen(queue), false);
	for (size_t i = 0; i < ts_reader_chunk_count(imported.reader); i++) {
		if (ts_reader_chunk(imported.reader, i)->table != TS_TABLE_ALLOCATION)
			continue;
		TS_CHECK_INT(ts_reader_chunk(imported.reader, i)->clock, 1);
		found++;
	}
	TS_CHECK_INT(found, 1);
	release_imported(&imported);
}

TS_TEST(metadata_and_other_members_are_ignored)
{
	const char *json = NATIVE(WHO,
				  "'k':1,'traceEvents':[{'ph':'M','name':'process_name','pid':50,"
				  "'args':{'name':'z'}},{'ph':'M','name':'odd','pid':50}]");

	CHECK_ROWS(json, "meta", "");
	CHECK_ROWS(json, "process", "{'id':1,'source':1,'pid':5,'start':3000}\n");
	CHECK_ROWS(json, "source", "{'id':1,'name':'s','clock':1}\n");
}

TS_TEST(columns_of_events)
{
	CHECK_ROWS(NATIVE(WHO,
			  "'traceEvents':[{'ph':'X','pid':50,'tid':'x','ts':2,'cat':'other',"
			  "'args':{'correlation':4},'tracesmith':{'table':'api_call','result':-5,"
			  "'duration':-1,'arrow':'in'}}]"),
		   "api_call",
		   "{'start':2000,'duration':-1,'thread':1,'category':'other','correlation':4,"
		   "'result':-5,"
		   "'arrow':'in','args':{'correlation':4}}\n");
	/* Times are trace time; a reference may be removed. */
	CHECK_ROWS(NATIVE(WHO, "'traceEvents':[{'ph':'X','pid':50,'tid':'x','ts':2,'cat':'kernel',"
			       "'tracesmith':{'queued':1500,'kind':'wait','stream':null,'device':0,"
			       "'process':1}}]"),
		   "gpu_op",
		   "{'start':2000,'kind':'wait','category':'kernel','queued':1500,'process':1}\n");
	/* No thread at all. */
	CHECK_ROWS(NATIVE(WHO, "'traceEvents':[{'ph':'C','pid':0,'tid':0,'ts':2,'name':'c'}]"),
		   "counter", "{'start':2000,'name':'c'}\n");
	CHECK_ROWS(NATIVE(WHO,
			  "'traceEvents':[{'ph':'C','pid':50,'tid':'x','ts':2,'name':'d c',"
			  "'tracesmith':{'name':'c','thread':null,'process':1,'start':null}}]"),
		   "counter", "{'start':2000,'name':'c','process':1}\n");
	CHECK_ROWS(NATIVE(WHO,
			  "'traceEvents':[{'ph':'C','pid':7,'tid':8,'name':'c','ts':1,"
			  "'tracesmith':{'thread':null,'process':9}},"
			  "{'ph':'C','pid':7,'tid':8,'name':'c','tracesmith':{'thread':null}}]"),
		   "thread", "{'id':1,'process':1,'tid':6}\n");
	CHECK_ROWS(NATIVE(WHO, "'traceEvents':[{'ph':'P','pid':50,'tid':'x','ts':2,"
			       "'tracesmith':{'table':'sample','state':'idle'}}]"),
		   "sample", "{'start':2000,'thread':1,'state':'idle'}\n");
	/* What the source left unset stays unset. */
	CHECK_ROWS(NATIVE(WHO, "'stackFrames':{'1':{'name':'f'}},'traceEvents':[{'ph':'i','pid':50,"
			       "'tid':'x','ts':2,'sf':1,'tracesmith':{'stack':0}}]"),
		   "mark", "{'start':2000,'thread':1,'beside':{'sf':1}}\n");
}

TS_TEST(rows_without_events)
{
	CHECK_ROWS(
		NATIVE(WHO,
		       "'traceEvents':[{'ph':'M','name':'tracesmith_row','args':{'table':'window',"
		       "'start':2000,'duration':5,'process':1,'name':'w','beside':{'b':'x'},"
		       "'args':{'a':[1]}}}]"),
		"window",
		"{'start':2000,'duration':5,'process':1,'name':'w','args':{'a':[1]},"
		"'beside':{'b':'x'}}\n");
	CHECK_ROWS(
		NATIVE(WHO,
		       "'stackFrames':{'7':{'name':'f','frame':30}},'traceEvents':[{'ph':'M',"
		       "'name':'tracesmith_row','args':{'table':'symbol','frame':30,'name':'n'}}]"),
		"symbol", "{'frame':1,'name':'n'}\n");
}

/*
 * Blobs of several rows, two of which share their first one; hash and size given by the file are
 * ignored.
 */
TS_TEST(chains_of_blobs_come_back)
{
	static const char rows[] = "{'hash':8696274497037089104,'bytes':3}\n"
				   "{'hash':7248448420886124688,'bytes':4,'previous':1}\n"
				   "{'hash':-4634603244625770076,'bytes':4,'previous':1}\n";
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_hash_stream hash;
	struct ts_reader *reader;
	uint32_t first = ts_writer_blob(writer, "abc", 3);

	for (const char *end = "de"; *end; end++) {
		ts_hash_stream_init(&hash);
		ts_hash_stream_add(&hash, "abc", 3);
		ts_hash_stream_add(&hash, end, 1);
		ts_writer_blob_piece(writer, first, ts_hash_stream_digest(&hash), 4, end, 1);
	}
	reader = finish_and_read(writer, path);
	check_round_trip(reader);
	CHECK_ROWS(NATIVE(WHO, "'traceEvents':[{'ph':'M','name':'tracesmith_row','args':"
			       "{'table':'blob','id':5,'data':'YWJj','hash':1,'bytes':99}},"
			       "{'ph':'M','name':'tracesmith_row','args':"
			       "{'table':'blob','id':6,'previous':5,'data':'ZA=='}},"
			       "{'ph':'M','name':'tracesmith_row','args':"
			       "{'table':'blob','id':7,'previous':5,'data':'ZQ=='}}]"),
		   "blob", rows);
}

TS_TEST(rows_that_make_no_sense)
{
	static const char *const rows[] = {
		"{'table':'nonsense'}",
		"{'table':5}",
		"{}",
		"5",
		"{'table':'window'}",
		"{'table':'state'}",
		"{'table':'string'}",
		"{'table':'blob'}",
		"{'table':'object','id':-1}",
		"{'table':'blob','data':'*'}",
		"{'table':'blob','previous':7,'data':'YWJj'}",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(rows); i++) {
		struct imported imported;
		char json[512];

		snprintf(
			json, sizeof(json),
			NATIVE(WHO, "'traceEvents':[{'ph':'M','name':'tracesmith_row','args':%s}]"),
			rows[i]);
		import_bytes(&imported, json, strlen(json), i % 2);
		TS_CHECK_INT(imported.rc, 0);
		TS_CHECK_STR(imported.result.note, "lost: 1 invalid row");
		release_imported(&imported);
	}
	CHECK_ROWS(NATIVE("'thread':[5,{},{'id':'x'},{'id':2,'process':{}}],'nonsense':[{}]",
			  "'traceEvents':[]"),
		   "thread", "{'id':2}\n");
}

TS_TEST(ids_of_the_file_and_of_the_trace)
{
	static const char *const file =
		NATIVE("'source':[{'id':3,'clock':3}],'process':[{'id':9,'source':3,'parent':4},"
		       "{'id':4,'source':3},{'id':1000000000000,'source':3}]",
		       "'traceEvents':[]");
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_reader *reader;

	for (int i = 0; i < 2; i++)
		TS_CHECK_INT(import_quoted(writer, "x", file, strlen(file), 0, 0, NULL, NULL, NULL),
			     0);
	reader = finish_and_read(writer, path);
	/* Same ids as in the file if the trace was empty; otherwise after the existing ones. */
	CHECK_TABLE(reader, "process",
		    "{'id':9,'source':3,'parent':4}\n"
		    "{'id':4,'source':3}\n"
		    "{'id':10,'source':3}\n"
		    "{'id':19,'source':6,'parent':14}\n"
		    "{'id':14,'source':6}\n"
		    "{'id':20,'source':6}\n");
	CHECK_TABLE(reader, "source",
		    "{'id':3,'clock':3}\n"
		    "{'id':6,'clock':6}\n");
	ts_reader_close(reader);
}

TS_TEST(newer_format)
{
	const char *json = "{'tracesmith':{'format':2,'rows':{}},'traceEvents':[]}";

	check_error(__FILE__, __LINE__, json, strlen(json), TS_EVERSION,
		    "newer TraceSmith (format 2)", NULL, NULL);
}
