/* SPDX-License-Identifier: Apache-2.0 */
/* rocprofv3's CSV files: each kind, columns in any order, old names, damage. */
#include "unit/import/import_as.h"

TS_TEST(kernels)
{
	const char *csv =
		"'Kind','Agent_Id','Queue_Id','Stream_Id','Thread_Id','Dispatch_Id','Kernel_Id',"
		"'Kernel_Name','Correlation_Id','Start_Timestamp','End_Timestamp','LDS_Block_Size',"
		"'Scratch_Size','VGPR_Count','Accum_VGPR_Count','SGPR_Count','Workgroup_Size_X',"
		"'Workgroup_Size_Y','Workgroup_Size_Z','Grid_Size_X','Grid_Size_Y','Grid_Size_Z'\n"
		"'KERNEL_DISPATCH','Agent 4',1,3,20,1,10,'void add<float>(float*, int)',7,100,130,512,"
		"0,8,0,16,64,1,1,1024,8,1\n";

	ROWS_AS("rocprof-csv", csv, "gpu_op",
		"{'start':100,'duration':30,'device':1,'stream':1,'kind':'kernel','name':"
		"'void add<float>(float*, int)','category':'KERNEL_DISPATCH','correlation':7,"
		"'grid_x':16,'grid_y':8,'grid_z':1,'block_x':64,'block_y':1,'block_z':1,"
		"'registers':8,'shared_bytes':512,'arrow':'in','args':{'thread_id':20,'queue_id':1,"
		"'kernel_id':10,'dispatch_id':1,'private_segment_size':0,'accum_vgpr_count':0,"
		"'sgpr_count':16}}\n");
	ROWS_AS("rocprof-csv", csv, "device", "{'id':1,'source':1,'number':4}\n");
	ROWS_AS("rocprof-csv", csv, "stream", "{'id':1,'device':1,'number':3}\n");
}

TS_TEST(any_order_and_old_names)
{
	ROWS_AS("rocprof-csv",
		"'End_Timestamp','Start_Timestamp','Kernel_Name','More','Agent_Id','Text'\r\n"
		"9,5,'a ''b'' k',3,1,x\r\n\r\n",
		"gpu_op",
		"{'start':5,'duration':4,'device':1,'kind':'kernel','name':'a \\'b\\' k','args':{"
		"'More':3,'Text':'x'}}\n");
	ROWS_AS("rocprof-csv",
		"KernelName,gpu-id,queue-id,pid,tid,grd,wgr,lds,scr,arch_vgpr,BeginNs,EndNs\n"
		"k,2,0,7,8,256,64,0,0,12,100,104\n",
		"gpu_op",
		"{'start':100,'duration':4,'device':1,'stream':1,'kind':'kernel','name':'k',"
		"'registers':12,'shared_bytes':0,'process':1,'args':{'thread_id':8,'queue_id':0,"
		"'private_segment_size':0,'grd':256,'wgr':64}}\n");
}

TS_TEST(copies)
{
	ROWS_AS("rocprof-csv",
		"'Kind','Direction','Stream_Id','Source_Agent_Id','Destination_Agent_Id',"
		"'Correlation_Id','Start_Timestamp','End_Timestamp'\n'MEMORY_COPY',"
		"'MEMORY_COPY_HOST_TO_DEVICE',1,'Agent 0','Agent 4',9,5,8\n'MEMORY_COPY',"
		"'MEMORY_COPY_DEVICE_TO_HOST',1,'Agent 4','Agent 0',0,15,18\n",
		"gpu_op",
		"{'start':5,'duration':3,'device':1,'stream':1,'kind':'copy','name':"
		"'MEMORY_COPY_HOST_TO_DEVICE','category':'MEMORY_COPY','correlation':9,'copy_kind':"
		"'host_to_device','arrow':'in','args':{'src_agent_id':0,'dst_agent_id':4}}\n"
		"{'start':15,'duration':3,'device':1,'stream':1,'kind':'copy','name':"
		"'MEMORY_COPY_DEVICE_TO_HOST','category':'MEMORY_COPY','copy_kind':'device_to_host',"
		"'args':{'src_agent_id':4,'dst_agent_id':0}}\n");
}

#define FUNCTIONS                                                                          \
	"'Domain','Function','Process_Id','Thread_Id','Correlation_Id','Start_Timestamp'," \
	"'End_Timestamp'\n"

TS_TEST(functions)
{
	ROWS_AS("rocprof-csv",
		FUNCTIONS "'HIP_RUNTIME_API','hipLaunchKernel',7,8,5,10,14\n"
			  "'HSA_CORE_API','hsa_init',9,10,5,20,24\n",
		"api_call",
		"{'start':10,'duration':4,'thread':1,'name':'hipLaunchKernel','category':"
		"'HIP_RUNTIME_API','correlation':5,'arrow':'out'}\n"
		"{'start':20,'duration':4,'thread':2,'name':'hsa_init','category':'HSA_CORE_API',"
		"'correlation':17592186044421}\n");
	ROWS_AS("rocprof-csv", FUNCTIONS "'MARKER_CORE_API','step, one',7,8,5,10,14\n", "slice",
		"{'start':10,'duration':4,'thread':1,'name':'step, one','category':'roctx'}\n");
	ROWS_AS("rocprof-csv", FUNCTIONS "'MARKER_CORE_API','now',7,8,5,10,10\n", "mark",
		"{'start':10,'thread':1,'name':'now','category':'roctx','scope':'thread'}\n");
}

TS_TEST(counters)
{
	const char *csv =
		"'Correlation_Id','Dispatch_Id','Agent_Id','Queue_Id','Process_Id','Thread_Id',"
		"'Grid_Size','Kernel_Id','Kernel_Name','Workgroup_Size','LDS_Block_Size',"
		"'Counter_Name','Counter_Value','Start_Timestamp','End_Timestamp'\n"
		"1,1,'Agent 1',2,7,8,256,5,'k',64,0,'A',1.92e-01,100,110\n"
		"1,1,'Agent 1',2,7,8,256,5,'k',64,0,'B',16384,100,110\n";

	ROWS_AS("rocprof-csv", csv, "counter",
		"{'start':100,'device':1,'name':'A','category':'counter_collection','args':{'value':"
		"0.192}}\n{'start':100,'device':1,'name':'B','category':'counter_collection','args':"
		"{'value':16384.0}}\n");
	ROWS_AS("rocprof-csv", csv, "gpu_op",
		"{'start':100,'duration':10,'device':1,'stream':1,'kind':'kernel','name':'k',"
		"'category':'counter_collection','correlation':1,'shared_bytes':0,'process':1,"
		"'arrow':'in','args':{'thread_id':8,'queue_id':2,'kernel_id':5,'dispatch_id':1,"
		"'Grid_Size':256,'Workgroup_Size':64}}\n");
}

TS_TEST(memory_and_scratch)
{
	ROWS_AS("rocprof-csv",
		"'Kind','Operation','Agent_Id','Allocation_Size','Address','Correlation_Id',"
		"'Start_Timestamp','End_Timestamp'\n'MEMORY_ALLOCATION',"
		"'MEMORY_ALLOCATION_ALLOCATE','Agent 4',1024,'0x00001000',1,5,8\n"
		"'MEMORY_ALLOCATION','MEMORY_ALLOCATION_FREE','',0,'0x00001000',2,15,18\n",
		"allocation",
		"{'start':5,'device':1,'address':4096,'bytes':1024,'args':{"
		"'operation':'MEMORY_ALLOCATION_ALLOCATE','duration_ns':3}}\n"
		"{'start':15,'device':1,'kind':'free','address':4096,'bytes':1024,'args':{"
		"'operation':'MEMORY_ALLOCATION_FREE','duration_ns':3}}\n");
	ROWS_AS("rocprof-csv",
		"'Kind','Operation','Agent_Id','Queue_Id','Thread_Id','Alloc_Flags',"
		"'Start_Timestamp','End_Timestamp'\n'SCRATCH_MEMORY','SCRATCH_MEMORY_ALLOC',"
		"'Agent 4',1,20,0,5,8\n",
		"slice",
		"{'start':5,'duration':3,'thread':1,'name':'SCRATCH_MEMORY_ALLOC','category':"
		"'SCRATCH_MEMORY','args':{'agent_id':4,'queue_id':1,"
		"'Alloc_Flags':0}}\n");
}

TS_TEST(samples)
{
	ROWS_AS("rocprof-csv",
		"'Sample_Timestamp','Exec_Mask','Dispatch_Id','Instruction',"
		"'Instruction_Comment','Correlation_Id'\n50,3,1,'s_endpgm','k.cpp:12',8\n",
		"sample",
		"{'start':50,'stack':1,'weight':1,'name':'pc_sampling','args':{'dispatch_id':1,"
		"'Instruction_Comment':'k.cpp:12','Exec_Mask':3}}\n");
}

TS_TEST(refused)
{
	ERROR_AS("rocprof-csv", "'Name','Calls','TotalDurationNs','AverageNs'\n'k',1,2,3\n",
		 "import the *_trace.csv", NULL, NULL);
	ERROR_AS("rocprof-csv", "'Node_Id','Logical_Node_Id','Agent_Type','Name'\n0,0,'CPU','x'\n",
		 "no rocprofv3 events", NULL, NULL);
}

TS_TEST(damage)
{
	static const char csv[] = FUNCTIONS "'HIP_RUNTIME_API','hipLaunchKernel',7,8,5,10,14\n"
					    "'HIP_RUNTIME_API','hip,Free',7,8,6,20,24\n";
	size_t header = strlen(FUNCTIONS);
	uint64_t before = 0;
	char copy[sizeof(csv)];
	struct imported imported;

	for (size_t cut = header; cut < sizeof(csv); cut++) {
		import_bytes_as(&imported, "rocprof-csv", csv, cut, cut % 2);
		TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
		TS_CHECK(imported.result.events >= before);
		before = imported.result.events;
		release_imported(&imported);
	}
	TS_CHECK_INT(before, 2);
	for (size_t at = header; at < sizeof(csv) - 1; at++) {
		memcpy(copy, csv, sizeof(csv));
		copy[at] ^= (char)(1 << at % 7);
		import_bytes_as(&imported, "rocprof-csv", copy, sizeof(csv) - 1, at % 2);
		TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
		release_imported(&imported);
	}
	ERROR_AS("rocprof-csv", FUNCTIONS "'HIP_RUNTIME_API','hipFree',7,8,5,10,14\n'HIP_RUNT",
		 "the file is truncated; everything before it was kept", "api_call",
		 "{'start':10,'duration':4,'thread':1,'name':'hipFree','category':"
		 "'HIP_RUNTIME_API','correlation':5}\n");
	ERROR_AS("rocprof-csv",
		 FUNCTIONS "'HIP_RUNTIME_API','hipFree',7,8,5,10,14\n'HIP_RUNTIME_API','hip',7",
		 "the file is truncated; everything before it was kept", NULL, NULL);
	ROWS_AS("rocprof-csv", FUNCTIONS "'HIP_RUNTIME_API','hipFree',7\n", "loss",
		"{'start':0,'source':1,'what':'line','count':1,'reason':"
		"'line with the wrong number of fields'}\n");
}
