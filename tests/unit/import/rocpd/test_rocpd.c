/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocpd databases, built after the schema that rocprofiler-sdk publishes: with and without the
 * suffix of names, times in the rows or in their own table, several processes, damage. Skipped if
 * the tool is built without SQLite.
 */
#include "unit/import/import_as.h"

#include "tracesmith_config.h"

#ifdef TS_HAVE_SQLITE
#include <sqlite3.h>

struct bytes {
	/* For sqlite3_free(). */
	char *data;
	size_t length;
};

/* Every "@" is the suffix of a name. */
static void run_sql(sqlite3 *db, const char *sql, const char *ending)
{
	struct ts_text text = { 0 };
	char *message = NULL;

	for (const char *p = sql; *p; p++)
		if (*p == '@')
			ts_text_append_str(&text, ending);
		else
			ts_text_append_char(&text, *p);
	if (sqlite3_exec(db, ts_text_cstr(&text), NULL, NULL, &message))
		ts_test_fail(__FILE__, __LINE__, "%s: %s", message, ts_text_cstr(&text));
	ts_text_release(&text);
}

static struct bytes make_database(const char *const *parts, const char *const *endings)
{
	struct bytes bytes;
	sqlite3_int64 length;
	sqlite3 *db;

	TS_CHECK_INT(sqlite3_open(":memory:", &db), SQLITE_OK);
	for (; *endings; endings++)
		for (const char *const *part = parts; *part; part++)
			run_sql(db, *part, *endings);
	bytes.data = (char *)sqlite3_serialize(db, "main", &length, 0);
	TS_CHECK(bytes.data != NULL);
	bytes.length = (size_t)length;
	TS_CHECK_INT(sqlite3_close(db), SQLITE_OK);
	return bytes;
}

static void import_database(struct imported *imported, const struct bytes *bytes, size_t length)
{
	struct ts_import_options options = { .size = sizeof(options) };
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = ts_import_memory(writer, "test.db", bytes->data, length, 0, 0, &options,
					&imported->result, &imported->err);
	imported->reader = finish_and_read(writer, path);
}

static void check_database(int line, const char *const *parts, const char *const *endings,
			   const char *table, const char *expected)
{
	struct bytes bytes = make_database(parts, endings);
	struct imported imported;

	import_database(&imported, &bytes, bytes.length);
	if (imported.rc)
		ts_test_fail(__FILE__, line, "%s", imported.err.message);
	ts_test_check_str(__FILE__, line, "format", imported.result.format, "rocpd");
	check_table(__FILE__, line, imported.reader, table, expected);
	release_imported(&imported);
	sqlite3_free(bytes.data);
}

static const char *const none[] = { "", NULL };
static const char *const one[] = { "_0000abcd_0000_7000_8000_00000000cafe", NULL };
static const char *const two[] = { "_a", "_b", NULL };

/* Common to both schemas. */
#define INFO_TABLES                                                                                \
	"CREATE TABLE rocpd_metadata@(id INTEGER PRIMARY KEY, tag TEXT, value TEXT);"              \
	"INSERT INTO rocpd_metadata@(tag, value) VALUES('schema_version', '3');"                   \
	"CREATE TABLE rocpd_string@(id INTEGER PRIMARY KEY, guid TEXT, string TEXT);"              \
	"INSERT INTO rocpd_string@(id, string) VALUES(1,'KERNEL_DISPATCH'),(2,'HIP_RUNTIME_API')," \
	"(3,'hipLaunchKernel'),(4,'MEMORY_COPY'),(5,'MEMORY_COPY_HOST_TO_DEVICE'),"                \
	"(6,'MARKER_CORE_RANGE_API'),(7,'roctxThreadRangeA'),(8,''),(9,'MEMORY_ALLOCATION');"      \
	"CREATE TABLE rocpd_info_node@(id INTEGER PRIMARY KEY, machine_id TEXT, hostname TEXT,"    \
	" system_name TEXT, release TEXT);"                                                        \
	"INSERT INTO rocpd_info_node@ VALUES(1,'m','h','Linux','6');"                              \
	"CREATE TABLE rocpd_info_process@(id INTEGER PRIMARY KEY, nid INT, pid INT, init INT,"     \
	" fini INT, command TEXT);"                                                                \
	"INSERT INTO rocpd_info_process@ VALUES(7,1,7,10,900,'./a -x');"                           \
	"CREATE TABLE rocpd_info_thread@(id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT,"       \
	" name TEXT);"                                                                             \
	"INSERT INTO rocpd_info_thread@ VALUES(20,1,7,20,'main');"                                 \
	"CREATE TABLE rocpd_info_agent@(id INTEGER PRIMARY KEY, nid INT, pid INT, type TEXT,"      \
	" absolute_index INT, type_index INT, name TEXT, product_name TEXT, vendor_name TEXT,"     \
	" extdata TEXT);"                                                                          \
	"INSERT INTO rocpd_info_agent@ VALUES(0,1,7,'CPU',0,0,'cpu','cpu','CPU','{}'),"            \
	"(1,1,7,'GPU',1,0,'gfx90a','MI250','AMD','{\"cu_count\":104}');"                           \
	"CREATE TABLE rocpd_info_kernel_symbol@(id INTEGER PRIMARY KEY, kernel_name TEXT,"         \
	" display_name TEXT, sgpr_count INT, arch_vgpr_count INT, accum_vgpr_count INT);"          \
	"INSERT INTO rocpd_info_kernel_symbol@ VALUES(3,'_Z1kv.kd','k()',16,12,4);"                \
	"CREATE TABLE rocpd_info_pmc@(id INTEGER PRIMARY KEY, name TEXT);"                         \
	"INSERT INTO rocpd_info_pmc@ VALUES(9,'SQ_WAVES');"                                        \
	"CREATE TABLE rocpd_event@(id INTEGER PRIMARY KEY, category_id INT, stack_id INT,"         \
	" correlation_id INT, extdata TEXT DEFAULT '{}');"                                         \
	"INSERT INTO rocpd_event@(id,category_id,stack_id,correlation_id,extdata) VALUES"          \
	"(1,2,8,0,'{}'),(2,1,8,0,'{}'),(3,4,9,0,'{}'),(4,6,31,0,'{\"message\":\"a \\u0041\"}'),"   \
	"(5,6,32,0,'{\"message\":\"now\"}'),(6,9,33,0,'{}'),(7,9,34,0,'{}');"                      \
	"CREATE TABLE rocpd_arg@(id INTEGER PRIMARY KEY, event_id INT, position INT, type TEXT,"   \
	" name TEXT, value TEXT);"                                                                 \
	"INSERT INTO rocpd_arg@(event_id,position,type,name,value) VALUES(1,0,'int','n','3'),"     \
	"(1,1,'int','m','4');"                                                                     \
	"CREATE TABLE rocpd_pmc_event@(id INTEGER PRIMARY KEY, event_id INT, pmc_id INT,"          \
	" value REAL);"                                                                            \
	"INSERT INTO rocpd_pmc_event@(event_id,pmc_id,value) VALUES(2,9,1.5),(2,9,2),(99,9,1);"

/* Times and locations in the rows. */
static const char *const flat[] = {
	INFO_TABLES,
	"CREATE TABLE rocpd_track@(id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, name_id INT);"
	"INSERT INTO rocpd_track@ VALUES(1,1,7,20,6);"
	"CREATE TABLE rocpd_region@(id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, start INT,"
	" end INT, name_id INT, event_id INT, extdata TEXT DEFAULT '{}');"
	"INSERT INTO rocpd_region@(id,nid,pid,tid,start,end,name_id,event_id) VALUES"
	"(8,1,7,20,50,70,3,1),(31,1,7,20,40,80,7,4);"
	"CREATE TABLE rocpd_sample@(id INTEGER PRIMARY KEY, track_id INT, timestamp INT,"
	" event_id INT);"
	"INSERT INTO rocpd_sample@ VALUES(32,1,60,5);"
	"CREATE TABLE rocpd_kernel_dispatch@(id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT,"
	" agent_id INT, kernel_id INT, dispatch_id INT, queue_id INT, stream_id INT, start INT,"
	" end INT, private_segment_size INT, group_segment_size INT, workgroup_size_x INT,"
	" workgroup_size_y INT, workgroup_size_z INT, grid_size_x INT, grid_size_y INT,"
	" grid_size_z INT, region_name_id INT, event_id INT, extdata TEXT DEFAULT '{}');"
	"INSERT INTO rocpd_kernel_dispatch@ VALUES"
	"(1,1,7,20,1,3,1,2,6,100,130,0,256,64,1,1,128,2,1,8,2,'{}');"
	"CREATE TABLE rocpd_memory_copy@(id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT,"
	" start INT, end INT, name_id INT, dst_agent_id INT, dst_address INT, src_agent_id INT,"
	" src_address INT, size INT, queue_id INT, stream_id INT, event_id INT);"
	"INSERT INTO rocpd_memory_copy@ VALUES(1,1,7,20,5,9,5,1,4096,0,16,64,NULL,6,3);"
	"CREATE TABLE rocpd_memory_allocate@(id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT,"
	" agent_id INT, type TEXT, level TEXT, start INT, end INT, address INT, size INT,"
	" event_id INT);"
	"INSERT INTO rocpd_memory_allocate@ VALUES(1,1,7,20,1,'ALLOC','REAL',5,9,4096,512,6),"
	"(2,1,7,20,NULL,'FREE','REAL',15,16,4096,0,7),"
	"(3,1,7,20,1,'ALLOC','SCRATCH',25,26,0,0,NULL);",
	NULL
};

/* Both in their own tables. */
static const char *const apart[] = {
	INFO_TABLES,
	"CREATE TABLE rocpd_timestamp@(id INTEGER PRIMARY KEY, value INT, phase INT, track_id INT);"
	"INSERT INTO rocpd_timestamp@ VALUES(1,100,1,2),(2,130,2,2),(3,50,1,1),(4,70,2,1);"
	"CREATE TABLE rocpd_track@(id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, agent_id INT,"
	" queue_id INT, stream_id INT, name_id INT);"
	"INSERT INTO rocpd_track@ VALUES(1,1,7,20,NULL,NULL,NULL,2),(2,1,7,20,1,2,6,1);"
	"CREATE TABLE rocpd_region@(id INTEGER PRIMARY KEY, track_id INT, name_id INT,"
	" start_id INT, end_id INT, event_id INT);"
	"INSERT INTO rocpd_region@ VALUES(8,1,3,3,4,1);"
	"CREATE TABLE rocpd_kernel_dispatch@(id INTEGER PRIMARY KEY, track_id INT, kernel_id INT,"
	" dispatch_id INT, start_id INT, end_id INT, private_segment_size INT,"
	" group_segment_size INT, workgroup_size_x INT, workgroup_size_y INT, workgroup_size_z INT,"
	" grid_size_x INT, grid_size_y INT, grid_size_z INT, region_name_id INT, event_id INT);"
	"INSERT INTO rocpd_kernel_dispatch@ VALUES(1,2,3,1,1,2,0,256,64,1,1,128,2,1,NULL,2);",
	NULL
};

#define KERNEL(process, stream, correlation)                                                      \
	"{'start':100,'duration':30,'device':1,'stream':" stream ",'kind':'kernel','name':'k()'," \
	"'category':'KERNEL_DISPATCH','correlation':" correlation                                 \
	",'grid_x':2,'grid_y':2,'grid_z':1,'block_x':64,'block_y':1,'block_z':1,'registers':12,"  \
	"'shared_bytes':256,'process':" process ",'arrow':'in','args':{'thread_id':20,"           \
	"'queue_id':2,'kernel_id':3,'dispatch_id':1,'private_segment_size':0,"                    \
	"'accum_vgpr_count':4,'sgpr_count':16}}\n"
#define COPY(process, stream, correlation)                                                     \
	"{'start':5,'duration':4,'device':1,'stream':" stream ",'kind':'copy','name':"         \
	"'MEMORY_COPY_HOST_TO_DEVICE','category':'MEMORY_COPY','correlation':" correlation     \
	",'bytes':64,'copy_kind':'host_to_device','process':" process ",'arrow':'in','args':{" \
	"'thread_id':20,'src_agent_id':0,'dst_agent_id':1,'src_address':16,'dst_address':4096}}\n"
#define CALL                                                                        \
	"{'start':50,'duration':20,'thread':1,'name':'hipLaunchKernel','category':" \
	"'HIP_RUNTIME_API','correlation':8,'arrow':'out','args':{'n':'3','m':'4'}}\n"

static void check_flat(const char *const *endings)
{
	check_database(__LINE__, flat, endings, "gpu_op",
		       COPY("1", "1", "9") KERNEL("1", "1", "8"));
	check_database(__LINE__, flat, endings, "api_call", CALL);
	check_database(__LINE__, flat, endings, "slice",
		       "{'start':25,'duration':1,'thread':1,'name':'SCRATCH_MEMORY_ALLOC','args':{"
		       "'agent_id':1}}\n"
		       "{'start':40,'duration':40,'thread':1,'name':'a A','category':'roctx'}\n");
	check_database(
		__LINE__, flat, endings, "mark",
		"{'start':60,'thread':1,'name':'now','category':'roctx','scope':'thread'}\n");
	check_database(__LINE__, flat, endings, "counter",
		       "{'start':100,'device':1,'name':'SQ_WAVES','category':'counter_collection',"
		       "'args':{'value':3.5}}\n");
	check_database(__LINE__, flat, endings, "allocation",
		       "{'start':5,'thread':1,'device':1,'address':4096,'bytes':512,'args':{"
		       "'operation':'REAL ALLOC','duration_ns':4}}\n"
		       "{'start':15,'thread':1,'device':1,'kind':'free','address':4096,'bytes':512,"
		       "'args':{'operation':'REAL FREE','duration_ns':1}}\n");
	check_database(__LINE__, flat, endings, "device",
		       "{'id':1,'source':1,'host':1,'number':0,'name':'MI250','vendor':'AMD',"
		       "'properties':{'cu_count':104}}\n");
	check_database(
		__LINE__, flat, endings, "process",
		"{'id':1,'source':1,'host':1,'pid':7,'command':['./a -x'],'start':10,'end':900}"
		"\n");
	check_database(__LINE__, flat, endings, "thread",
		       "{'id':1,'process':1,'tid':20,'name':'main'}\n");
	check_database(__LINE__, flat, endings, "loss",
		       "{'start':100,'source':1,'what':'value','count':1,'reason':"
		       "'value without time or event'}\n");
}

TS_TEST(without_ending)
{
	check_flat(none);
}

TS_TEST(with_ending)
{
	check_flat(one);
}

TS_TEST(times_in_a_table)
{
	check_database(__LINE__, apart, one, "gpu_op", KERNEL("1", "1", "8"));
	check_database(__LINE__, apart, none, "api_call", CALL);
}

/* Numbers are per process: those of the second are kept apart. */
TS_TEST(two_processes)
{
	check_database(__LINE__, flat, two, "gpu_op",
		       COPY("1", "1", "9") COPY("2", "2", "17592186044425") KERNEL("1", "1", "8")
			       KERNEL("2", "2", "17592186044424"));
}

/* Strings of the first are unreadable: the rest of it, and all of the second, is there. */
TS_TEST(damage_of_one_process)
{
	struct bytes bytes = make_database(flat, two);
	char *needle = memmem(bytes.data, bytes.length, "hipLaunchKernel", 15);
	struct imported imported;

	TS_CHECK(needle != NULL);
	bytes.data[(size_t)(needle - bytes.data) / 4096 * 4096] = 0x77;
	import_database(&imported, &bytes, bytes.length);
	TS_CHECK_INT(imported.rc, TS_EFORMAT);
	TS_CHECK(strstr(imported.err.message, "rocpd_string_a"));
	TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_GPU_OP), 4);
	release_imported(&imported);
	sqlite3_free(bytes.data);
}

TS_TEST(tables_that_nobody_knows)
{
	static const char *const parts[] = {
		"CREATE TABLE rocpd_string(id INTEGER PRIMARY KEY, string TEXT);"
		"CREATE TABLE rocpd_tomorrow(id INTEGER PRIMARY KEY); INSERT INTO rocpd_tomorrow "
		"VALUES(1);",
		NULL
	};

	check_database(__LINE__, parts, none, "loss",
		       "{'start':0,'source':1,'what':'table','count':1,'reason':"
		       "'unknown table'}\n");
}

TS_TEST(hostile_numbers)
{
	static const char *const parts[] = {
		INFO_TABLES
		"CREATE TABLE rocpd_kernel_dispatch@(id INTEGER PRIMARY KEY, pid, agent_id, kernel_id,"
		" stream_id, start, end, workgroup_size_x, grid_size_x, event_id);"
		"INSERT INTO rocpd_kernel_dispatch@ VALUES"
		"(-9223372036854775807,9223372036854775807,-5,'x',-1,9223372036854775807,"
		"-9223372036854775807,0,-1,9223372036854775807),(2,7,1,3,6,'no',1e300,1,1,1),"
		"(3,7,1,3,6,0,0,1,1,1);",
		NULL
	};

	check_database(__LINE__, parts, none, "gpu_op",
		       "{'start':9223372036854775807,'device':2,'stream':1,'kind':'kernel','name':"
		       "'kernel -9223372036854775808','process':2}\n");
}

TS_TEST(damage)
{
	struct bytes bytes = make_database(flat, one);
	struct imported imported;

	for (size_t cut = 512; cut < bytes.length; cut += 4096 + 333) {
		import_database(&imported, &bytes, cut);
		TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
		release_imported(&imported);
	}
	for (size_t at = 100; at < bytes.length; at += 1511) {
		bytes.data[at] ^= (char)(1 << at % 7);
		import_database(&imported, &bytes, bytes.length);
		TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
		TS_CHECK(!imported.rc || imported.err.message[0]);
		release_imported(&imported);
		bytes.data[at] ^= (char)(1 << at % 7);
	}
	sqlite3_free(bytes.data);
}

#else

TS_TEST(without_sqlite)
{
	ts_test_skip("this is built without SQLite");
}

#endif
