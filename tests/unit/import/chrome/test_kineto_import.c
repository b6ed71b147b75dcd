/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's dialect: categories, arguments with a column, arrows, devices and streams, ranks. */
#include "model/kineto_names.h"
#include "unit/import/import_support.h"

#define X(category, rest) \
	"{'ph':'X','cat':'" category "','name':'n','pid':0,'tid':7,'ts':1,'dur':2" rest "}"
#define ARROW(ph, rest) \
	"{'ph':'" ph "','id':9,'pid':0,'tid':7,'ts':1,'cat':'ac2g','name':'ac2g'" rest "}"
#define GPU(kind, category)                                                 \
	"{'start':1000,'duration':2000,'device':1,'stream':1,'kind':'" kind \
	"','name':'n','category':'" category "'"
#define CALL "{'start':1000,'duration':2000,'thread':1,'name':'n','category':'cuda_runtime'"

TS_TEST(categories)
{
	static const struct {
		const char *category;
		enum ts_table_id table;
		enum ts_gpu_op_kind kind;
	} cases[] = {
		{ "kernel", TS_TABLE_GPU_OP, TS_GPU_OP_KERNEL },
		{ "Kernel", TS_TABLE_GPU_OP, TS_GPU_OP_KERNEL },
		{ "gpu_memcpy", TS_TABLE_GPU_OP, TS_GPU_OP_COPY },
		{ "Memset", TS_TABLE_GPU_OP, TS_GPU_OP_FILL },
		{ "cuda_sync", TS_TABLE_GPU_OP, TS_GPU_OP_SYNC },
		{ "cuda_driver", TS_TABLE_API_CALL, TS_GPU_OP_OTHER },
		{ "privateuse1_runtime", TS_TABLE_API_CALL, TS_GPU_OP_OTHER },
		{ "cpu_op", TS_TABLE_SLICE, TS_GPU_OP_OTHER },
		{ "gpu_user_annotation", TS_TABLE_SLICE, TS_GPU_OP_OTHER },
		{ "", TS_TABLE_SLICE, TS_GPU_OP_OTHER },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct ts_kineto_category meaning =
			ts_kineto_category(cases[i].category, strlen(cases[i].category));

		TS_CHECK_INT(meaning.table, cases[i].table);
		TS_CHECK_INT(meaning.kind, cases[i].kind);
	}
}

TS_TEST(kinds_from_names)
{
	static const struct {
		const char *name;
		enum ts_gpu_op_kind kind;
		enum ts_copy_kind copy;
	} cases[] = {
		{ "ncclDevKernel_AllReduce(x)", TS_GPU_OP_COLLECTIVE, TS_COPY_UNKNOWN },
		{ "void rcclKernel<int>", TS_GPU_OP_COLLECTIVE, TS_COPY_UNKNOWN },
		{ "hcclAllReduce", TS_GPU_OP_COLLECTIVE, TS_COPY_UNKNOWN },
		{ "void at::native::kernel", TS_GPU_OP_KERNEL, TS_COPY_UNKNOWN },
		{ "ncc", TS_GPU_OP_KERNEL, TS_COPY_UNKNOWN },
		{ "", TS_GPU_OP_KERNEL, TS_COPY_UNKNOWN },
		{ "Memcpy HtoD (Pageable -> Device)", TS_GPU_OP_KERNEL, TS_COPY_HOST_TO_DEVICE },
		{ "Memcpy DtoH (x)", TS_GPU_OP_KERNEL, TS_COPY_DEVICE_TO_HOST },
		{ "Memcpy DtoD", TS_GPU_OP_KERNEL, TS_COPY_DEVICE_TO_DEVICE },
		{ "Memcpy PtoP", TS_GPU_OP_KERNEL, TS_COPY_PEER_TO_PEER },
		{ "Memcpy", TS_GPU_OP_KERNEL, TS_COPY_UNKNOWN },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		size_t length = strlen(cases[i].name);

		TS_CHECK_INT(ts_kineto_kind(TS_GPU_OP_KERNEL, cases[i].name, length),
			     cases[i].kind);
		TS_CHECK_INT(ts_kineto_copy_kind(cases[i].name, length), cases[i].copy);
	}
	TS_CHECK_INT(ts_kineto_kind(TS_GPU_OP_FILL, "nccl", 4), TS_GPU_OP_FILL);
}

TS_TEST(columns_of_a_kernel)
{
	const char *json = "[" X("kernel",
				 ",'args':{'External id':5,'queued':0,'device':3,'context':1,"
				 "'stream':20,'correlation':9,'registers per thread':30,"
				 "'shared memory':64,'blocks per SM':5.3,'grid': [4, 106, 1],"
				 "'block': [128, 1, 1],'est. achieved occupancy %':33}") "]";

	CHECK_ROWS(json, "gpu_op",
		   GPU("kernel",
		       "kernel") ",'correlation':9,'context':1,'grid_x':4,'grid_y':106,'grid_z':1,"
				 "'block_x':128,'block_y':1,"
				 "'block_z':1,'registers':30,'shared_bytes':64,"
				 "'args':{'External id':5,'queued':0,'device':3,"
				 "'context':1,'stream':20,'correlation':9,"
				 "'registers per thread':30,'shared memory':64,"
				 "'blocks per SM':5.3,'grid':[4,106,1],'block':[128,1,1],"
				 "'est. achieved occupancy %':33}}\n");
	CHECK_ROWS(json, "device", "{'id':1,'source':1,'number':3}\n");
	CHECK_ROWS(json, "stream", "{'id':1,'device':1,'number':20,'thread':1}\n");
	CHECK_ROWS(json, "thread", "{'id':1,'process':1,'tid':7}\n");
	/* Arguments that have a column only keep their position; the rest is stored once. */
	CHECK_ROWS(json, "shape",
		   "{'shape':1,'key':'External id','type':1}\n"
		   "{'shape':1,'key':'queued','type':1}\n"
		   "{'shape':1,'key':'device','type':7,'column':1003}\n"
		   "{'shape':1,'key':'context','type':7,'column':9}\n"
		   "{'shape':1,'key':'stream','type':7,'column':1004}\n"
		   "{'shape':1,'key':'correlation','type':7,'column':8}\n"
		   "{'shape':1,'key':'registers per thread','type':7,'column':18}\n"
		   "{'shape':1,'key':'shared memory','type':7,'column':19}\n"
		   "{'shape':1,'key':'blocks per SM','type':2}\n"
		   "{'shape':1,'key':'grid','type':7,'column':1000}\n"
		   "{'shape':1,'key':'block','type':7,'column':1001}\n"
		   "{'shape':1,'key':'est. achieved occupancy %','type':1}\n");
}

TS_TEST(values_of_the_wrong_form_have_no_column)
{
	CHECK_ROWS("[" X("kernel",
			 ",'args':{'correlation':'9','context':1.5,'bytes':null,'grid':[1,2],"
			 "'block':[1,2,'3'],'device':'x','stream':[7]}") "]",
		   "gpu_op",
		   GPU("kernel", "kernel") ",'args':{'correlation':'9','context':1.5,'bytes':null,"
					   "'grid':[1,2],'block':[1,2,'3'],"
					   "'device':'x','stream':[7]}}\n");
	CHECK_ROWS("[" X("kernel", ",'args':{'grid':[1,2,3,4],'block':[],"
				   "'correlation':-9223372036854775808}") "]",
		   "gpu_op",
		   GPU("kernel", "kernel") ",'args':{'grid':[1,2,3,4],'block':[],"
					   "'correlation':-9223372036854775808}}\n");
	/* A repeated key is an ordinary argument. */
	CHECK_ROWS("[" X("cuda_runtime", ",'args':{'correlation':1,'correlation':2,'bytes':3}") "]",
		   "api_call",
		   CALL ",'correlation':1,'args':{'correlation':1,'correlation':2,'bytes':3}}\n");
}

TS_TEST(bandwidth)
{
	/* 256 bytes in 2000 ns, wherever the duration is in the event. */
	CHECK_ROWS("[{'ph':'X','cat':'gpu_memcpy','args':{'memory bandwidth (GB/s)':0.128,"
		   "'bytes':256},'ts':1,"
		   "'dur':2},{'args':{'bytes':256,'memory bandwidth (GB/s)':0.128},'dur':2,'ts':3,"
		   "'ph':'X',"
		   "'cat':'gpu_memcpy'},{'ph':'X','ts':5,'dur':2,'cat':'gpu_memcpy',"
		   "'args':{'bytes':256,"
		   "'memory bandwidth (GB/s)':0.129}},"
		   "{'ph':'X','ts':7,'dur':256,'cat':'gpu_memcpy','args':{'bytes':256000,"
		   "'memory bandwidth (GB/s)':1}}]",
		   "shape",
		   "{'shape':1,'key':'memory bandwidth (GB/s)','type':7,'column':1002}\n"
		   "{'shape':1,'key':'bytes','type':7,'column':20}\n"
		   "{'shape':2,'key':'bytes','type':7,'column':20}\n"
		   "{'shape':2,'key':'memory bandwidth (GB/s)','type':7,'column':1002}\n"
		   "{'shape':3,'key':'bytes','type':7,'column':20}\n"
		   "{'shape':3,'key':'memory bandwidth (GB/s)','type':2}\n"
		   "{'shape':4,'key':'bytes','type':7,'column':20}\n"
		   "{'shape':4,'key':'memory bandwidth (GB/s)','type':1}\n");
}

TS_TEST(members_in_any_order)
{
	CHECK_ROWS(
		"[{'args':{'correlation':9,'stream':2},'cat':'kernel','dur':2,'name':'n',"
		"'ph':'X','pid':0,"
		"'tid':7,'ts':1}]",
		"gpu_op",
		GPU("kernel", "kernel") ",'correlation':9,'args':{'correlation':9,'stream':2}}\n");
	/* The last of two counts, even if the arguments were read for the first. */
	CHECK_ROWS("[" X("cpu_op", ",'args':{'correlation':9},'cat':'cuda_runtime'") "]",
		   "api_call", CALL ",'correlation':9,'args':{'correlation':9}}\n");
}

TS_TEST(device_and_stream_without_arguments)
{
	const char *json =
		"[" X("gpu_memset", "") ",{'ph':'X','cat':'kernel','ts':2,'pid':'a','tid':'b'}]";

	CHECK_ROWS(json, "gpu_op",
		   GPU("fill", "gpu_memset") "}\n"
					     "{'start':2000,'stream':2,'kind':'kernel',"
					     "'category':'kernel'}\n");
	CHECK_ROWS(json, "device", "{'id':1,'source':1,'number':0}\n");
	CHECK_ROWS(json, "stream",
		   "{'id':1,'device':1,'number':7,'thread':1}\n"
		   "{'id':2,'thread':2}\n");
}

TS_TEST(synchronisation_needs_a_stream)
{
	const char *json = "[" X("cuda_sync", ",'args':{'stream':7}") "," X(
		"cuda_sync", ",'args':{'stream':'all'}") "," X("cuda_sync", "") "]";

	CHECK_ROWS(json, "gpu_op", GPU("sync", "cuda_sync") ",'args':{'stream':7}}\n");
	CHECK_ROWS(json, "slice",
		   "{'start':1000,'duration':2000,'thread':1,'name':'n','category':'cuda_sync',"
		   "'args':{"
		   "'stream':'all'}}\n"
		   "{'start':1000,'duration':2000,'thread':1,'name':'n','category':'cuda_sync'}\n");
}

/* ---- arrows ---- */

#define LAUNCH X("cuda_runtime", ",'args':{'correlation':9}")
#define LAUNCHED CALL ",'correlation':9"

TS_TEST(arrows)
{
	CHECK_ROWS("[" LAUNCH "," ARROW("s", "") "]", "api_call",
		   LAUNCHED ",'arrow':'out','args':{'correlation':9}}\n");
	CHECK_ROWS("[" LAUNCH "," ARROW("f", "") "]", "api_call",
		   LAUNCHED ",'arrow':'in','args':{'correlation':9}}\n");
	CHECK_ROWS("[" LAUNCH "," ARROW("f", ",'bp':'e'") "]", "api_call",
		   LAUNCHED ",'arrow':'in_enclosing','args':{'correlation':9}}\n");
	CHECK_ROWS("[" LAUNCH "," ARROW("f", ",'args':{}") "]", "flow", "");
	CHECK_ROWS("[" X("kernel", ",'args':{'correlation':9}") "," ARROW("f", ",'bp':'e'") "]",
		   "gpu_op",
		   GPU("kernel", "kernel") ",'correlation':9,'arrow':'in_enclosing',"
					   "'args':{'correlation':9}}\n");
}

TS_TEST(flows_that_are_no_arrows)
{
	static const char *const others[] = {
		ARROW("t", ""),
		ARROW("s", ",'bp':'e'"),
		ARROW("f", ",'bp':'x'"),
		ARROW("s", ",'args':{'k':1}"),
		ARROW("s", ",'tts':1"),
		ARROW("s", ",'id':8"),
		ARROW("s", ",'id':'9'"),
		ARROW("s", ",'tid':8"),
		ARROW("s", ",'ts':1.001"),
		ARROW("s", ",'name':'x'"),
		ARROW("s", ",'cat':'async'"),
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(others); i++) {
		struct ts_text json;
		struct imported imported;

		ts_text_init(&json);
		ts_text_printf(&json, "[%s,%s]", LAUNCH, others[i]);
		import_bytes(&imported, json.data, json.length, i % 2);
		TS_CHECK_INT(imported.rc, 0);
		CHECK_TABLE(imported.reader, "api_call", LAUNCHED ",'args':{'correlation':9}}\n");
		TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_FLOW), 1);
		release_imported(&imported);
		ts_text_release(&json);
	}
	/* The second one, and one that does not follow its event directly. */
	CHECK_ROWS(
		"[" LAUNCH "," ARROW("s", "") "," ARROW("f", "") "]", "flow",
		"{'start':1000,'thread':1,'kind':'end','id':9,'name':'ac2g','category':'ac2g'}\n");
	CHECK_ROWS("[" LAUNCH ",{'ph':'i','ts':1}," ARROW("s", "") "]", "flow",
		   "{'start':1000,'thread':1,'id':9,'name':'ac2g','category':'ac2g'}\n");
	CHECK_ROWS("[" X("cpu_op", ",'args':{'correlation':9}") "," ARROW("s", "") "]", "flow",
		   "{'start':1000,'thread':1,'id':9,'name':'ac2g','category':'ac2g'}\n");
}

/* ---- metadata of the file ---- */

TS_TEST(devices_and_rank)
{
	const char *json =
		"{'schemaVersion':1,'deviceProperties':[{'id':1,'name':'H100',"
		"'totalGlobalMem': 80},"
		"{'id':0,'name':''},{'name':'no id'},5],"
		"'distributedInfo':{'backend':'nccl','rank':3,'world_size':8},'traceEvents':[" X(
			"kernel", ",'args':{'device':1}") "]}";

	CHECK_ROWS(json, "device",
		   "{'id':1,'source':1,'number':1,'name':'H100','memory_bytes':80,"
		   "'properties':{'id':1,"
		   "'name':'H100','totalGlobalMem':80}}\n"
		   "{'id':2,'source':1,'number':0,'properties':{'id':0,'name':''}}\n");
	CHECK_ROWS(json, "source",
		   "{'id':1,'name':'test.json','format':'kineto','rank':3,'world_size':8,"
		   "'clock':1}\n");
	CHECK_ROWS(json, "meta",
		   "{'source':1,'key':'schemaVersion','value':1}\n"
		   "{'source':1,'key':'deviceProperties','value':[{'id':1,'name':'H100',"
		   "'totalGlobalMem':80},"
		   "{'id':0,'name':''},{'name':'no id'},5]}\n"
		   "{'source':1,'key':'distributedInfo','value':{'backend':'nccl','rank':3,"
		   "'world_size':8}}\n");
}

TS_TEST(what_counts_as_an_event)
{
	const char *json = "{'schemaVersion':1,'traceEvents':[" LAUNCH "," ARROW("s", "") "," X(
		"kernel",
		"") "," X("cpu_op",
			  "") ",{'ph':'i','ts':1},{'ph':'C','ts':1},"
			      "{'ph':'M','name':'process_name','args':{'name':'p'}},"
			      "{'ph':'s','ts':1,'id':1},{'ph':'B','ts':1},{'ph':'E','ts':2}]}";
	struct imported imported;

	import_bytes(&imported, json, strlen(json), false);
	TS_CHECK_INT(imported.rc, 0);
	TS_CHECK_INT(imported.result.events, 6);
	TS_CHECK_INT(imported.result.bytes, strlen(json));
	TS_CHECK_STR(imported.result.format, "kineto");
	release_imported(&imported);
}
