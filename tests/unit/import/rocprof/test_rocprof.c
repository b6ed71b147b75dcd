/* SPDX-License-Identifier: Apache-2.0 */
/* rocprofv3's JSON: every section, any order, several processes, damage, and malformed records. */
#include "unit/import/import_as.h"

#define METADATA(pid)                                                                               \
	"'metadata':{'node':{'machine_id':'m','hostname':'h','system_name':'Linux','release':'6'}," \
	"'pid':" pid ",'init_time':10,'fini_time':900,'command':['./a','-x'],"                      \
	"'config':{'kernel_rename':false}}"
#define AGENTS                                                                                 \
	"'agents':[{'id':{'handle':70},'type':1,'cpu_cores_count':8,'node_id':0,'mem_banks':[" \
	"{'size_in_bytes':1000}]},{'id':{'handle':71},'type':2,'node_id':1,"                   \
	"'logical_node_type_id':0,'name':'gfx90a','product_name':'MI250','vendor_name':'AMD'," \
	"'mem_banks':[{'size_in_bytes':64}]},{'id':{'handle':72},'type':2,'node_id':2,"        \
	"'logical_node_type_id':1,'name':'gfx90a','product_name':''}]"
#define STRINGS                                                                                    \
	"'strings':{'callback_records':[{'kind':'X','operations':['wrong']}],'buffer_records':["   \
	"{'kind':'NONE','operations':[]},{'kind':'KERNEL_DISPATCH','operations':['a','b','c']},"   \
	"{'kind':'HIP_RUNTIME_API','operations':['hipGetDevice','hipLaunchKernel']},"              \
	"{'kind':'MEMORY_COPY','operations':['MEMORY_COPY_NONE','MEMORY_COPY_HOST_TO_DEVICE',"     \
	"'MEMORY_COPY_DEVICE_TO_DEVICE']},"                                                        \
	"{'kind':'MARKER_CORE_API','operations':['roctxMarkA','roctxRangePushA',"                  \
	"'roctxRangeStartA']},{'kind':'MEMORY_ALLOCATION','operations':['NONE',"                   \
	"'MEMORY_ALLOCATION_ALLOCATE','MEMORY_ALLOCATION_FREE']},"                                 \
	"{'kind':'SCRATCH_MEMORY','operations':['SCRATCH_MEMORY_ALLOC']}],"                        \
	"'marker_api':[{'key':31,'value':'step \\u0041'},{'key':32,'value':'range'},"              \
	"{'key':33,'value':'whole'}],'correlation_id':{'external':[{'key':5,'value':'renamed'}]}," \
	"'counters':{'dimension_ids':[]},'pc_sample_instructions':['s_endpgm'],"                   \
	"'pc_sample_comments':['k.cpp:12']}"
#define SYMBOLS                                                                              \
	"'kernel_symbols':[{'kernel_id':3,'kernel_name':'_Z1kv.kd','formatted_kernel_name':" \
	"'k()','demangled_kernel_name':'k() [clone .kd]','arch_vgpr_count':12,"              \
	"'accum_vgpr_count':4,'sgpr_count':16},{'kernel_id':4,'formatted_kernel_name':"      \
	"'ncclDevKernel_Generic'},{'kernel_id':5,'kernel_name':'plain'}]"
#define COUNTERS "'counters':[{'id':{'handle':9},'name':'SQ_WAVES'}]"
#define INFO(pid) METADATA(pid) "," AGENTS "," COUNTERS "," STRINGS "," SYMBOLS
#define DISPATCH(start, end, kernel, correlation, grid)                                               \
	"{'size':184,'kind':1,'operation':2,'thread_id':20,'correlation_id':{'internal':" correlation \
	",'external':0},'start_timestamp':" start ",'end_timestamp':" end                             \
	",'dispatch_info':{'size':72,'agent_id':{'handle':71},'queue_id':{'handle':2},"               \
	"'kernel_id':" kernel ",'dispatch_id':1,'private_segment_size':0,"                            \
	"'group_segment_size':256,'workgroup_size':{'x':64,'y':1,'z':1},'grid_size':{'x':" grid       \
	",'y':2,'z':1}},'stream_id':{'handle':6}}"
#define KERNELS(records) "'buffer_records':{'kernel_dispatch':[" records "]}"
#define FILE_OF(processes) "{'rocprofiler-sdk-tool':[" processes "]}"
#define RECORDS(section, record) \
	FILE_OF("{" INFO("7") ",'buffer_records':{'" section "':[" record "]}}")
#define ROW(start, duration, name, correlation)                                                    \
	"{'start':" start ",'duration':" duration ",'device':1,'stream':1,'kind':'kernel','name':" \
	"'" name "','category':'KERNEL_DISPATCH','correlation':" correlation                       \
	",'grid_x':2,'grid_y':2,'grid_z':1,'block_x':64,'block_y':1,'block_z':1,"                  \
	"'registers':12,'shared_bytes':256,'process':1,'arrow':'in','args':{'thread_id':20,"       \
	"'queue_id':2,'kernel_id':3,'dispatch_id':1,'private_segment_size':0,"                     \
	"'accum_vgpr_count':4,'sgpr_count':16}}\n"

TS_TEST(dispatches)
{
	ROWS_AS("rocprof",
		FILE_OF("{" INFO("7") "," KERNELS(DISPATCH("100", "130", "3", "8", "128")) "}"),
		"gpu_op", ROW("100", "30", "k()", "8"));
	/*
	 * Collectives are recognized by their names; kernels without a name, or with a name only.
	 */
	ROWS_AS("rocprof",
		FILE_OF("{" INFO("7") "," KERNELS(DISPATCH("100", "130", "4", "0", "64")) "}"),
		"gpu_op",
		"{'start':100,'duration':30,'device':1,'stream':1,'kind':'collective','name':"
		"'ncclDevKernel_Generic','category':'KERNEL_DISPATCH','grid_x':1,'grid_y':2,"
		"'grid_z':1,'block_x':64,'block_y':1,'block_z':1,'shared_bytes':256,'process':1,"
		"'args':{'thread_id':20,'queue_id':2,'kernel_id':4,'dispatch_id':1,"
		"'private_segment_size':0}}\n");
	/* Work-items that do not fill a block stay as arguments. */
	ROWS_AS("rocprof",
		FILE_OF("{" INFO("7") "," KERNELS(DISPATCH("100", "130", "77", "0", "65")) "}"),
		"gpu_op",
		"{'start':100,'duration':30,'device':1,'stream':1,'kind':'kernel','name':"
		"'kernel 77','category':'KERNEL_DISPATCH','grid_x':2,'grid_y':2,'grid_z':1,"
		"'block_x':64,'block_y':1,'block_z':1,'shared_bytes':256,'process':1,'args':{"
		"'thread_id':20,'queue_id':2,'kernel_id':77,'dispatch_id':1,"
		"'private_segment_size':0,'grid_size_x':65,'grid_size_y':2,'grid_size_z':1}}\n");
}

TS_TEST(entities)
{
	const char *json =
		FILE_OF("{" INFO("7") "," KERNELS(DISPATCH("100", "130", "3", "8", "128")) "}");

	ROWS_AS("rocprof", json, "host",
		"{'id':1,'name':'h','system':'Linux 6','processors':8,'memory_bytes':1000}\n");
	ROWS_AS("rocprof", json, "process",
		"{'id':1,'source':1,'host':1,'pid':7,'command':['./a','-x'],'start':10,'end':900}"
		"\n");
	ROWS_AS("rocprof", json, "stream", "{'id':1,'device':1,'number':6}\n");
	ROWS_AS("rocprof", json, "device",
		"{'id':1,'source':1,'host':1,'number':0,'name':'MI250','vendor':'AMD',"
		"'memory_bytes':64,'properties':{'id':{'handle':71},'type':2,'node_id':1,"
		"'logical_node_type_id':0,'name':'gfx90a','product_name':'MI250','vendor_name':"
		"'AMD','mem_banks':[{'size_in_bytes':64}]}}\n"
		"{'id':2,'source':1,'host':1,'number':1,'name':'gfx90a','properties':{'id':{"
		"'handle':72},'type':2,'node_id':2,'logical_node_type_id':1,'name':'gfx90a',"
		"'product_name':''}}\n");
	ROWS_AS("rocprof", json, "loss", "");
}

/* Names are right in any order. */
TS_TEST(any_order)
{
	const char *expected = ROW("100", "30", "k()", "8");

	ROWS_AS("rocprof",
		FILE_OF("{" KERNELS(DISPATCH("100", "130", "3", "8", "128")) "," INFO("7") "}"),
		"gpu_op", expected);
	ROWS_AS("rocprof",
		FILE_OF("{" SYMBOLS "," KERNELS(
			DISPATCH("100", "130", "3", "8", "128")) "," COUNTERS "," STRINGS "," AGENTS
								 "," METADATA("7") "}"),
		"gpu_op", expected);
	ROWS_AS("rocprof",
		FILE_OF("{" METADATA("7") "," STRINGS "," KERNELS(
			DISPATCH("100", "130", "3", "8", "128")) "," AGENTS "," SYMBOLS "}"),
		"gpu_op", expected);
}

TS_TEST(renamed_kernels)
{
	ROWS_AS("rocprof",
		RECORDS("kernel_dispatch",
			"{'kind':1,'operation':2,'correlation_id':{'internal':1,'external':5},"
			"'start_timestamp':1,'end_timestamp':2,'dispatch_info':{'agent_id':{"
			"'handle':71},'queue_id':{'handle':2},'kernel_id':5}}"),
		"gpu_op",
		"{'start':1,'duration':1,'device':1,'stream':1,'kind':'kernel','name':'renamed',"
		"'category':'KERNEL_DISPATCH','correlation':1,'process':1,'arrow':'in','args':{"
		"'queue_id':2,'kernel_id':5,'external_correlation_id':5}}\n");
	/* Without a stream, the queue serves as one. */
	ROWS_AS("rocprof",
		RECORDS("kernel_dispatch",
			"{'kind':1,'start_timestamp':1,'end_timestamp':2,'dispatch_info':{"
			"'agent_id':{'handle':71},'queue_id':{'handle':2},'kernel_id':5}}"),
		"stream", "{'id':1,'device':1,'number':2,'name':'queue 2'}\n");
}

TS_TEST(copies)
{
	ROWS_AS("rocprof",
		RECORDS("memory_copy",
			"{'kind':3,'operation':1,'thread_id':20,'correlation_id':{'internal':4},"
			"'start_timestamp':5,'end_timestamp':9,'dst_agent_id':{'handle':71},"
			"'src_agent_id':{'handle':70},'bytes':4096,'src_address':'0x10'},"
			"{'kind':3,'operation':2,'start_timestamp':15,'end_timestamp':19,"
			"'dst_agent_id':{'handle':72},'src_agent_id':{'handle':71},'bytes':1},"
			"{'kind':3,'operation':0,'start_timestamp':25,'end_timestamp':29,"
			"'dst_agent_id':{'handle':70},'src_agent_id':{'handle':71}}"),
		"gpu_op",
		"{'start':5,'duration':4,'device':1,'kind':'copy','name':"
		"'MEMORY_COPY_HOST_TO_DEVICE','category':'MEMORY_COPY','correlation':4,'bytes':4096,"
		"'copy_kind':'host_to_device','process':1,'arrow':'in','args':{'src_address':'0x10',"
		"'thread_id':20,'src_agent_id':70,'dst_agent_id':71}}\n"
		"{'start':15,'duration':4,'device':2,'kind':'copy','name':"
		"'MEMORY_COPY_DEVICE_TO_DEVICE','category':'MEMORY_COPY','bytes':1,'copy_kind':"
		"'peer_to_peer','process':1,'args':{'src_agent_id':71,'dst_agent_id':72}}\n"
		"{'start':25,'duration':4,'device':1,'kind':'copy','name':'MEMORY_COPY_NONE',"
		"'category':'MEMORY_COPY','copy_kind':'device_to_host','process':1,'args':{"
		"'src_agent_id':71,'dst_agent_id':70}}\n");
}

TS_TEST(calls)
{
	ROWS_AS("rocprof",
		RECORDS("hip_api",
			"{'size':1,'kind':2,'operation':1,'correlation_id':{'internal':8,'external':"
			"0},'start_timestamp':50,'end_timestamp':70,'thread_id':20,'args':[{'type':"
			"'int','name':'n','value':'3'}],'retval':{'hipError_t_retval':0}},"
			"{'kind':2,'operation':0,'correlation_id':{'internal':9},"
			"'start_timestamp':80,'end_timestamp':81,'thread_id':20}"),
		"api_call",
		"{'start':50,'duration':20,'thread':1,'name':'hipLaunchKernel','category':"
		"'HIP_RUNTIME_API','correlation':8,'result':0,'arrow':'out','args':{'n':'3'}}\n"
		"{'start':80,'duration':1,'thread':1,'name':'hipGetDevice','category':"
		"'HIP_RUNTIME_API','correlation':9}\n");
}

TS_TEST(markers)
{
	const char *json = RECORDS(
		"marker_api",
		"{'kind':4,'operation':0,'correlation_id':{'internal':31},'start_timestamp':5,"
		"'end_timestamp':5,'thread_id':20},{'kind':4,'operation':1,'correlation_id':{"
		"'internal':32},'start_timestamp':6,'end_timestamp':16,'thread_id':20},{'kind':4,"
		"'operation':2,'correlation_id':{'internal':33},'start_timestamp':7,"
		"'end_timestamp':0,'thread_id':21}");

	ROWS_AS("rocprof", json, "mark",
		"{'start':5,'thread':1,'name':'step A','category':'roctx','scope':'thread'}\n");
	ROWS_AS("rocprof", json, "slice",
		"{'start':6,'duration':10,'thread':1,'name':'range','category':'roctx'}\n{'start':7,'duration':-1,'thread':2,'name':'whole','category':'roctx',"
		"'kind':'async','id':'0.33'}\n");
}

TS_TEST(memory)
{
	ROWS_AS("rocprof",
		RECORDS("memory_allocation",
			"{'kind':5,'operation':1,'thread_id':20,'correlation_id':{'internal':3},"
			"'start_timestamp':5,'end_timestamp':9,'agent_id':{'handle':71},'address':"
			"'0x00001000','allocation_size':512},{'kind':5,'operation':2,'thread_id':20,"
			"'start_timestamp':15,'end_timestamp':16,'agent_id':{'handle':0},'address':"
			"'0x00001000','allocation_size':0}"),
		"allocation",
		"{'start':5,'thread':1,'device':1,'address':4096,'bytes':512,'args':"
		"{'operation':'MEMORY_ALLOCATION_ALLOCATE','duration_ns':4}}\n"
		"{'start':15,'thread':1,'device':1,'kind':'free','address':4096,'bytes':512,'args':"
		"{'operation':'MEMORY_ALLOCATION_FREE','duration_ns':1}}\n");
}

TS_TEST(other_sections)
{
	ROWS_AS("rocprof",
		RECORDS("scratch_memory",
			"{'kind':6,'operation':0,'agent_id':{'handle':71},'queue_id':{'handle':2},"
			"'thread_id':20,'start_timestamp':5,'end_timestamp':9,'flags':2}"),
		"slice",
		"{'start':5,'duration':4,'thread':1,'name':'SCRATCH_MEMORY_ALLOC','category':"
		"'scratch_memory','args':{'flags':2,'agent_id':71,'queue_id':2}}\n");
	ROWS_AS("rocprof",
		RECORDS("of_tomorrow", "{'operation':3,'start_timestamp':5,'end_timestamp':9,"
				       "'what':{'a':[1]},'node':{'handle':4},'big':"
				       "18446744073709551615,'is':true,'none':null,'r':0.5}"),
		"slice",
		"{'start':5,'duration':4,'name':'of_tomorrow','category':'of_tomorrow','args':{'what':{'a':[1]},'node':4,'big':18446744073709551615,'is':true,"
		"'none':null,'r':0.5,'operation':3}}\n");
	ROWS_AS("rocprof", RECORDS("kfd_event_queue", "{'operation':0,'timestamp':5,'pid':7}"),
		"mark",
		"{'start':5,'name':'kfd_event_queue','category':'kfd_event_queue','scope':'thread',"
		"'args':{'pid':7,'operation':0}}\n");
}

#define COLLECTED                                                                               \
	"'callback_records':{'counter_collection':[{'dispatch_data':{'correlation_id':{"        \
	"'internal':8},'start_timestamp':100,'end_timestamp':130,'dispatch_info':{'agent_id':{" \
	"'handle':71},'queue_id':{'handle':2},'kernel_id':3,'dispatch_id':1}},'records':[{"     \
	"'counter_id':{'handle':9},'value':1.5},{'counter_id':{'handle':9},'value':2},{"        \
	"'counter_id':{'handle':8},'value':NaN}],'thread_id':20}]}"

TS_TEST(counters)
{
	const char *with = FILE_OF("{" COLLECTED "," INFO("7") "," KERNELS(
		DISPATCH("100", "130", "3", "8", "128")) "}");
	const char *alone = FILE_OF("{" INFO("7") "," COLLECTED "," KERNELS("") "}");
	const char *expected =
		"{'start':100,'device':1,'name':'counter 8','category':'counter_collection','args':{"
		"'value':'NaN'}}\n{'start':100,'device':1,'name':'SQ_WAVES','category':"
		"'counter_collection','args':{'value':3.5}}\n";

	ROWS_AS("rocprof", with, "counter", expected);
	ROWS_AS("rocprof", with, "gpu_op", ROW("100", "30", "k()", "8"));
	/* Without a kernel trace, kernels come from the counters. */
	ROWS_AS("rocprof", alone, "counter", expected);
	ROWS_AS("rocprof", alone, "gpu_op",
		"{'start':100,'duration':30,'device':1,'stream':1,'kind':'kernel','name':'k()',"
		"'category':'counter_collection','correlation':8,'registers':12,'process':1,'arrow':"
		"'in','args':{'thread_id':20,'queue_id':2,'kernel_id':3,'dispatch_id':1,"
		"'accum_vgpr_count':4,'sgpr_count':16}}\n");
}

TS_TEST(program_counters)
{
	const char *json =
		RECORDS("pc_sample_host_trap",
			"{'record':{'exec_mask':3,'timestamp':50,'dispatch_id':1,'corr_id':{"
			"'internal':8},'pc':{'code_object_id':1,'code_object_offset':64}},"
			"'inst_index':0}");

	ROWS_AS("rocprof", json, "sample",
		"{'start':50,'stack':1,'weight':1,'name':'pc_sample_host_trap','args':{'exec_mask':"
		"3,'dispatch_id':1,'correlation_id':8}}\n");
	ROWS_AS("rocprof", json, "frame",
		"{'name':'s_endpgm','file':'k.cpp','line':12,'pc':64,'kind':'instruction'}\n");
}

/*
 * Correlations count from 1 in every process; in the trace they are unique. Devices of one machine
 * are the same.
 */
TS_TEST(processes)
{
	const char *json = FILE_OF(
		"{" INFO("7") "," KERNELS(DISPATCH("100", "130", "3", "8", "128")) "},{" INFO(
			"8") "," KERNELS(DISPATCH("200", "230", "3", "8", "128")) "}");

	ROWS_AS("rocprof", json, "gpu_op",
		ROW("100", "30", "k()", "8") "{'start':200,'duration':30,'device':1,'stream':2,"
					     "'kind':'kernel','name':'k()','category':"
					     "'KERNEL_DISPATCH','correlation':17592186044424,"
					     "'grid_x':2,'grid_y':2,'grid_z':1,'block_x':64,"
					     "'block_y':1,'block_z':1,'registers':12,"
					     "'shared_bytes':256,'process':2,'arrow':'in','args':"
					     "{'thread_id':20,'queue_id':2,'kernel_id':3,"
					     "'dispatch_id':1,'private_segment_size':0,"
					     "'accum_vgpr_count':4,'sgpr_count':16}}\n");
	ROWS_AS("rocprof", json, "stream",
		"{'id':1,'device':1,'number':6}\n{'id':2,'device':1,'number':6}\n");
	ROWS_AS("rocprof", json, "host",
		"{'id':1,'name':'h','system':'Linux 6','processors':8,'memory_bytes':1000}\n");
}

/* ---- malformed records ---- */

TS_TEST(times)
{
	/* Never stamped; none; beyond an int64: none of these is used. */
	ROWS_AS("rocprof",
		RECORDS("hip_api",
			"{'kind':2,'start_timestamp':0,'end_timestamp':0},{'kind':2},"
			"{'start_timestamp':18446744073709551615,'end_timestamp':1},7,[]"),
		"api_call", "");
	ROWS_AS("rocprof",
		RECORDS("hip_api",
			"{'kind':2,'start_timestamp':0,'end_timestamp':0},{'kind':2},"
			"{'start_timestamp':18446744073709551615,'end_timestamp':1},7,[]"),
		"loss",
		"{'start':0,'source':1,'what':'record','count':3,'reason':"
		"'record without times'}\n{'start':0,'source':1,'what':'record',"
		"'count':2,'reason':'value that is not a record'}\n");
	ROWS_AS("rocprof",
		RECORDS("hip_api", "{'kind':2,'start_timestamp':-5,'end_timestamp':-3},{'kind':2,"
				   "'start_timestamp':9,'end_timestamp':4}"),
		"api_call",
		"{'start':-5,'duration':2,'name':'hipGetDevice','category':'HIP_RUNTIME_API'}\n"
		"{'start':9,'name':'hipGetDevice','category':'HIP_RUNTIME_API'}\n");
}

TS_TEST(huge_numbers)
{
	ROWS_AS("rocprof",
		RECORDS("kernel_dispatch",
			"{'kind':99999999999,'operation':-1,'thread_id':18446744073709551615,"
			"'correlation_id':{'internal':18446744073709551615,'external':1e300},"
			"'start_timestamp':1,'end_timestamp':2,'dispatch_info':{'agent_id':{"
			"'handle':18446744073709551615},'queue_id':{'handle':-1},'kernel_id':1e99,"
			"'workgroup_size':{'x':0,'y':18446744073709551615,'z':1},'grid_size':{'x':5,"
			"'y':1,'z':7}}}"),
		"gpu_op",
		"{'start':1,'duration':1,'device':3,'stream':1,'kind':'kernel','name':'kernel 0',"
		"'category':'kernel_dispatch','grid_y':1,'grid_z':7,'block_x':0,'block_z':1,"
		"'process':1,'args':{'thread_id':18446744073709551615,'queue_id':"
		"18446744073709551615,'grid_size_x':5,'grid_size_y':1,'grid_size_z':7}}\n");
}

TS_TEST(odd_sections)
{
	ROWS_AS("rocprof",
		"{'rocprofiler-sdk-tool':{" INFO("7") ",'buffer_records':[1],'x':{'y':1},"
						      "'summary':[]}}",
		"loss",
		"{'start':0,'source':1,'what':'section','count':2,'reason':"
		"'entry of a section without times'}\n");
	ROWS_AS("rocprof",
		"{'rocprofiler-sdk-tool':[1,null,{'metadata':3,'agents':4,'strings':5,"
		"'kernel_symbols':[6],'counters':{},'buffer_records':{'hip_api':7}}]}",
		"gpu_op", "");
	ERROR_AS("rocprof", "{'rocprofiler-sdk-tool':[{}]} x", "unexpected data after", NULL, NULL);
}

TS_TEST(deep_nesting)
{
	TS_SCOPED(ts_text) json = { 0 };
	struct imported imported;

	ts_text_append_str(&json, "{'rocprofiler-sdk-tool':[{'buffer_records':{'hip_api':[{'x':");
	for (int i = 0; i < 100000; i++)
		ts_text_append_char(&json, '[');
	import_bytes_as(&imported, "rocprof", json.data, json.length, false);
	TS_CHECK_INT(imported.rc, TS_EFORMAT);
	release_imported(&imported);
	ts_text_clear(&json);
	ts_text_append_str(&json, "{'rocprofiler-sdk-tool':[{'buffer_records':{'hip_api':[");
	for (int i = 0; i < 5000; i++)
		ts_text_append_str(&json, "{'record':");
	import_bytes_as(&imported, "rocprof", json.data, json.length, true);
	TS_CHECK_INT(imported.rc, TS_EFORMAT);
	release_imported(&imported);
}

/* ---- damage ---- */

#define COMPLETE                                                                               \
	FILE_OF("{" INFO("7") "," COLLECTED ",'buffer_records':{'kernel_dispatch':[" DISPATCH( \
		"100", "130", "3", "8",                                                        \
		"128") "," DISPATCH("200", "230", "3", "9",                                    \
				    "128") "],'hip_api':[{'kind':2,"                           \
					   "'operation':1,"                                    \
					   "'start_timestamp':50,"                             \
					   "'end_timestamp':70,"                               \
					   "'thread_id':20}]}},{" INFO("8") "}")

static uint64_t events_of(const char *data, size_t bytes, bool in_pieces)
{
	struct imported imported;
	uint64_t events;

	import_bytes_as(&imported, "rocprof", data, bytes, in_pieces);
	TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
	TS_CHECK(!imported.rc || imported.err.message[0]);
	events = imported.result.events;
	release_imported(&imported);
	return events;
}

/* Everything before the cut is kept: a longer prefix never gives fewer events. */
TS_TEST(cut_anywhere)
{
	size_t bytes = strlen(COMPLETE);
	uint64_t before = 0, events;

	for (size_t cut = 30; cut < bytes; cut += 37) {
		events = events_of(COMPLETE, cut, cut % 2);
		TS_CHECK(events >= before);
		before = events;
	}
	TS_CHECK_INT(events_of(COMPLETE, bytes, true), 5);
	ERROR_AS("rocprof",
		 "{'rocprofiler-sdk-tool':[{" INFO(
			 "7") ",'buffer_records':{'kernel_dispatch':[" DISPATCH("100", "130", "3",
										"8", "128") ",{'ki",
		 "the file is truncated; everything before it was kept", "gpu_op",
		 ROW("100", "30", "k()", "8"));
	/* Held records, too, though their names never came. */
	TS_CHECK_INT(events_of("{'rocprofiler-sdk-tool':[{" KERNELS(
				       DISPATCH("100", "130", "3", "8", "128")) ",'str",
			       strlen("{'rocprofiler-sdk-tool':[{" KERNELS(
				       DISPATCH("100", "130", "3", "8", "128")) ",'str"),
			       false),
		     1);
}

TS_TEST(flipped_bytes)
{
	size_t bytes = strlen(COMPLETE);
	char *copy = malloc(bytes);

	TS_CHECK(copy != NULL);
	for (size_t at = 30; at < bytes; at += 23) {
		memcpy(copy, COMPLETE, bytes);
		copy[at] ^= (char)(1 << at % 7);
		events_of(copy, bytes, at % 2);
	}
	free(copy);
}
