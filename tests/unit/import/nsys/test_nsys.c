/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports of Nsight Systems: databases of three generations of its schema, made with SQL;
 * references; unknown tables; inconsistent and damaged files.
 */
#include "tracesmith_config.h"

#include "unit/import/import_support.h"

#ifdef TS_HAVE_SQLITE

#include <sqlite3.h>

struct database {
	unsigned char *data;
	size_t bytes;
};

/* Pages of 512 bytes, so that small databases have many. */
static struct database make(const char *sql)
{
	struct database db;
	sqlite3_int64 bytes;
	sqlite3 *handle;
	char *message = NULL;

	TS_CHECK_INT(sqlite3_open(":memory:", &handle), SQLITE_OK);
	sqlite3_exec(handle, "PRAGMA page_size=512", NULL, NULL, NULL);
	if (sqlite3_exec(handle, sql, NULL, NULL, &message))
		ts_test_fail(__FILE__, __LINE__, "%s", message);
	db.data = sqlite3_serialize(handle, "main", &bytes, 0);
	TS_CHECK(db.data != NULL);
	db.bytes = (size_t)bytes;
	sqlite3_close(handle);
	return db;
}

static void import_data(struct imported *imported, const void *data, size_t bytes, bool in_pieces)
{
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = ts_import_memory(writer, "test.sqlite", data, bytes, in_pieces ? 61 : 0,
					in_pieces ? 16 : 0, NULL, &imported->result,
					&imported->err);
	imported->reader = finish_and_read(writer, path);
}

static void import_sql(struct imported *imported, const char *sql)
{
	struct database db = make(sql);

	import_data(imported, db.data, db.bytes, true);
	sqlite3_free(db.data);
	if (imported->rc)
		ts_test_fail(__FILE__, __LINE__, "%s", imported->err.message);
	TS_CHECK_STR(imported->result.format, "nsys");
}

static void check_sql(const char *file, int line, const char *sql, const char *table,
		      const char *expected)
{
	struct imported imported;

	import_sql(&imported, sql);
	check_table(file, line, imported.reader, table, expected);
	release_imported(&imported);
}

#define CHECK_SQL(sql, table, expected) check_sql(__FILE__, __LINE__, sql, table, expected)

/* Hardware 0, machine 1, processes 42 and 43, threads 7 and 8. */
#define PID "((1<<48)|(42<<24))"
#define TID "((1<<48)|(42<<24)|7)"
#define PID2 "((1<<48)|(43<<24))"
#define TID2 "((1<<48)|(43<<24)|8)"

#define STRINGS                                                                                         \
	"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"                         \
	"INSERT INTO StringIds VALUES (1,'k<int>(int *)'),(2,'k'),(3,'cudaLaunchKernel_v7000'),"        \
	"(4,'cuMemAlloc_v2'),(5,'registered'),(6,'main'),(7,'/bin/app'),(8,'ncclDevKernel_AllReduce')," \
	"(9,'worker'),(10,'read'),(11,'MPI_Allreduce');"

/* ---- 2021: fewer columns, INT, no enum labels, no producer name ---- */

#define OF_2021                                                                                    \
	STRINGS                                                                                    \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL,"          \
	" eventClass INT NOT NULL, globalTid INT, correlationId INT, nameId INT NOT NULL,"         \
	" returnValue INT NOT NULL, callchainId INT);"                                             \
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100,200,0," TID ",9,3,0,NULL),"           \
	" (300,310,1," TID ",10,4,2,1);"                                                           \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL,"           \
	" deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL,"                   \
	" correlationId INT, globalPid INT, demangledName INT NOT NULL, shortName INT,"            \
	" registersPerThread INT NOT NULL, gridX INT, gridY INT, gridZ INT, blockX INT,"           \
	" blockY INT, blockZ INT, staticSharedMemory INT, dynamicSharedMemory INT,"                \
	" localMemoryPerThread INT, localMemoryTotal INT, gridId INT);"                            \
	"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"                                            \
	" (1000,1500,0,1,7,9," PID ",1,2,32,2,3,4,128,2,1,16,1024,8,4096,77);"                     \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL,"           \
	" deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT,"            \
	" bytes INT NOT NULL, copyKind INT NOT NULL, srcKind INT, dstKind INT);"                   \
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2000,2600,0,1,7,11," PID ",4096,1,0,2);"   \
	"CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT, rangeId INT,"       \
	" category INT, color INT, text TEXT, globalTid INT, endGlobalTid INT, textId INT,"        \
	" domainId INT, uint64Value INT, int64Value INT, doubleValue REAL, uint32Value INT,"       \
	" int32Value INT, floatValue REAL);"                                                       \
	"INSERT INTO NVTX_EVENTS VALUES"                                                           \
	" (50,NULL,75,NULL,NULL,NULL,'lib'," TID ",NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL),"    \
	" (60,900,59,NULL,3,255,'step'," TID ",NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL),"        \
	" (70,NULL,33,NULL,3,NULL,'io'," TID ",NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL),"        \
	" (80,800,60,17,NULL,NULL,NULL," TID "," TID ",5,1,NULL,NULL,1.5,NULL,NULL,NULL),"         \
	" (90,NULL,34,NULL,NULL,NULL,'here'," TID ",NULL,NULL,0,NULL,-4,NULL,NULL,NULL,NULL),"     \
	" (95,NULL,39,NULL,NULL,NULL,'rank 0'," TID ",NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL)," \
	" (96,NULL,59,NULL,NULL,NULL,'open'," TID ",NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL);"   \
	"CREATE TABLE CUDA_CALLCHAINS (id INT, symbol INT, module INT, unresolved INT,"            \
	" originalIP INT, stackDepth INT, PRIMARY KEY (id, stackDepth));"                          \
	"INSERT INTO CUDA_CALLCHAINS VALUES (1,2,7,NULL,5,0),(1,6,7,NULL,6,1);"                    \
	"CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, busLocation TEXT, totalMemory INT);"     \
	"INSERT INTO TARGET_INFO_GPU VALUES (0,'Tesla V100','0000:03:00.0',16000);"

/* ---- 2022: additions in the schema of Nsight Systems 2022 and 2023 ---- */

#define OF_2022                                                                                                \
	STRINGS                                                                                                \
	"CREATE TABLE EXPORT_META_DATA (name TEXT NOT NULL, value TEXT);"                                      \
	"INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_PRODUCT_VERSION','2022.2.1.31');"                        \
	"CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER NOT NULL, devStateName TEXT,"                  \
	" name TEXT NOT NULL, nameEnum INTEGER, value TEXT NOT NULL);"                                         \
	"INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1<<48,'','Hostname',619,'node1'),"                         \
	" (1<<48,'','CpuCores',1,'128'),(1<<48,'','OsDescription',605,'Linux');"                               \
	"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);"      \
	"INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1687813257637297504,'a','b');"                     \
	"CREATE TABLE TARGET_INFO_CUDA_STREAM (streamId INTEGER, hwId INTEGER, vmId INTEGER,"                  \
	" processId INTEGER, contextId INTEGER, priority INTEGER, flag INTEGER);"                              \
	"INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (12,0,1,42,1,4294967291,1);"                               \
	"CREATE TABLE TARGET_INFO_CUDA_NULL_STREAM (streamId INTEGER, hwId INTEGER,"                           \
	" vmId INTEGER, processId INTEGER, deviceId INTEGER, contextId INTEGER);"                              \
	"INSERT INTO TARGET_INFO_CUDA_NULL_STREAM VALUES (7,0,1,42,0,1);"                                      \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER,"               \
	" contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,"                      \
	" value INTEGER, bytes INTEGER, graphNodeId INTEGER, memKind INTEGER);"                                \
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1,2,0,1,7,5," PID ",255,64,NULL,2),"                   \
	" (3,5,0,1,12,6," PID ",0,32,4,NULL);"                                                                 \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER,"                        \
	" deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,"                       \
	" globalPid INTEGER, syncType INTEGER, eventId INTEGER);"                                              \
	"INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (6,9,0,1,4294967295,7," PID                    \
	",4,0);"                                                                                               \
	"CREATE TABLE OSRT_API (start INTEGER, end INTEGER, eventClass INTEGER,"                               \
	" globalTid INTEGER, nameId INTEGER, returnValue INTEGER, nestingLevel INTEGER, callchainId INTEGER);" \
	"INSERT INTO OSRT_API VALUES (10,20,27," TID ",10,4096,0,3);"                                          \
	"CREATE TABLE OSRT_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER,"                            \
	" kernelMode INTEGER, originalIP INTEGER, stackDepth INTEGER);"                                        \
	"INSERT INTO OSRT_CALLCHAINS VALUES (3,10,7,1,1,0),(3,6,7,0,2,1);"                                     \
	"CREATE TABLE COMPOSITE_EVENTS (id INTEGER PRIMARY KEY, start INTEGER, cpu INTEGER,"                   \
	" threadState INTEGER, globalTid INTEGER, cpuCycles INTEGER);"                                         \
	"INSERT INTO COMPOSITE_EVENTS VALUES (1,11,3,1," TID ",5000),(2,12,NULL,6," TID ",1);"                 \
	"CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER);"   \
	"INSERT INTO SAMPLING_CALLCHAINS VALUES (1,6,7,1),(1,2,7,0);"                                          \
	"CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER);"                                            \
	"INSERT INTO MPI_RANKS VALUES (" TID ",3);"                                                            \
	"CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER,"                  \
	" textId INTEGER, size INTEGER);"                                                                      \
	"INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (30,40," TID ",11,1024);"                                   \
	"CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);"                      \
	"INSERT INTO ThreadNames VALUES (9,20," TID ");"                                                       \
	"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"                                  \
	"INSERT INTO PROCESSES VALUES (" PID ",42,'./app'),((1<<48)|(1<<24),1,'systemd');"                     \
	"CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER);"              \
	"INSERT INTO ProcessStreams VALUES (" PID ",6,7);"

/* ---- 2024 and later: enum labels, graphs, metrics, memory, green contexts ---- */

#define OF_2024                                                                                               \
	STRINGS                                                                                               \
	"CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);"                                     \
	"INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION','3.16.1');"                             \
	"CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY, name TEXT, label TEXT);"                 \
	"INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (10,'CUDA_MEMCPY_KIND_PTOP','Peer-to-Peer');"               \
	"CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, uuid TEXT, totalMemory INTEGER);" \
	"INSERT INTO TARGET_INFO_GPU VALUES (1<<48,0,'H100','u0',80),(1<<48,1,'H100','u1',80);"               \
	"CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT);"       \
	"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0,0,42,'u0'),(1,0,43,'u1');"                             \
	"CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (nullStreamId INTEGER, hwId INTEGER,"                     \
	" vmId INTEGER, processId INTEGER, deviceId INTEGER, contextId INTEGER);"                             \
	"INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (7,0,1,42,0,1);"                                    \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER,"                               \
	" eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER,"                      \
	" returnValue INTEGER, callchainId INTEGER);"                                                         \
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1,2,0," TID ",5,3,0,NULL),"                          \
	" (3,4,0," TID2 ",5,3,0,NULL);"                                                                       \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,"              \
	" contextId INTEGER, greenContextId INTEGER, streamId INTEGER, correlationId INTEGER,"                \
	" globalPid INTEGER, demangledName INTEGER, shortName INTEGER, mangledName INTEGER,"                  \
	" graphNodeId INTEGER, graphId INTEGER);"                                                             \
	"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10,20,0,1,NULL,7,5," PID ",8,2,2,6,2),"               \
	" (11,21,0,1,9,7,5," PID2 ",1,2,2,NULL,NULL);"                                                        \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER,"                           \
	" deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,"                      \
	" globalPid INTEGER, graphId INTEGER, graphExecId INTEGER);"                                          \
	"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (30,60,0,1,7,8," PID ",3,4);"                     \
	"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER,"                        \
	" deviceId INTEGER, contextId INTEGER, address INTEGER, pc INTEGER, bytes INTEGER,"                   \
	" memKind INTEGER, memoryOperationType INTEGER, name TEXT, correlationId INTEGER, streamId INTEGER);" \
	"INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1," PID ",0,1,4096,7,100,2,0,NULL,6,7),"            \
	" (2," PID ",0,1,4096,7,100,2,1,'v',9,NULL),(3," PID ",0,1,64,7,50,1,0,NULL,NULL,NULL);"              \
	"CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, sourceId INTEGER,"                             \
	" typeName TEXT, metricId INTEGER, metricName TEXT);"                                                 \
	"INSERT INTO TARGET_INFO_GPU_METRICS VALUES ((1<<48)|1,0,'t',4,'SMs Active [%]');"                    \
	"CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);"      \
	"INSERT INTO GPU_METRICS VALUES (5,(1<<48)|1,4,77),(6,(1<<48)|1,5,1);"                                \
	"CREATE TABLE TARGET_INFO_NETWORK_METRICS (metricsListId INTEGER, metricsIdx INTEGER, name TEXT);"    \
	"INSERT INTO TARGET_INFO_NETWORK_METRICS VALUES (0,0,'Bytes sent');"                                  \
	"CREATE TABLE NET_NIC_METRIC (start INTEGER, end INTEGER, globalId INTEGER,"                          \
	" portId INTEGER, metricsListId INTEGER, metricsIdx INTEGER, value REAL);"                            \
	"INSERT INTO NET_NIC_METRIC VALUES (7,8,2,1,0,0,2.5);"                                                \
	"CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, timestampType INTEGER,"                            \
	" source INTEGER, severity INTEGER, text TEXT, globalPid INTEGER);"                                   \
	"INSERT INTO DIAGNOSTIC_EVENT VALUES (9,1,2,3,'events were lost'," PID ");"                           \
	"CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INTEGER, end INTEGER,"                             \
	" globalPid INTEGER, deviceId INTEGER, address INTEGER, numberOfPageFaults INTEGER);"                 \
	"INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (70,80," PID ",0,4096,2);"

TS_TEST(devices_of_2021)
{
	CHECK_SQL(
		OF_2021, "gpu_op",
		"{'start':1000,'duration':500,'device':1,'stream':1,'kind':'kernel','name':'k<int>(int *)','category':'kernel','correlation':9,'context':1,'grid_x':2,'grid_y':3,'grid_z':4,'block_x':128,'block_y':2,'block_z':1,'registers':32,'shared_bytes':1040,'process':1,'args':{'dynamicSharedMemory':1024,'localMemoryPerThread':8,'localMemoryTotal':4096,'gridId':77}}\n"
		"{'start':2000,'duration':600,'device':1,'stream':1,'kind':'copy','name':'Memcpy HtoD (Pageable -> Device)','category':'gpu_memcpy','correlation':11,'context':1,'bytes':4096,'copy_kind':'host_to_device','process':1}\n");
	CHECK_SQL(
		OF_2021, "device",
		"{'id':1,'source':1,'host':1,'number':0,'name':'Tesla V100','vendor':'NVIDIA','memory_bytes':16000,'properties':{'id':0,'name':'Tesla V100','busLocation':'0000:03:00.0','totalMemory':16000}}\n");
}

TS_TEST(calls_of_2021)
{
	CHECK_SQL(
		OF_2021, "api_call",
		"{'start':100,'duration':100,'thread':1,'name':'cudaLaunchKernel','category':'cuda_runtime','correlation':9,'result':0}\n"
		"{'start':300,'duration':10,'thread':1,'name':'cuMemAlloc_v2','category':'cuda_driver','correlation':10,'result':2,'stack':2}\n");
}

TS_TEST(nvtx_of_2021)
{
	CHECK_SQL(
		OF_2021, "slice",
		"{'start':60,'duration':840,'thread':1,'name':'step','category':'nvtx','args':{'color':255,'category':'io'}}\n"
		"{'start':80,'duration':720,'thread':1,'name':'registered','category':'nvtx:lib','kind':'async','id':17,'args':{'doubleValue':1.5,'endGlobalTid':281475681353735}}\n"
		"{'start':96,'duration':-1,'thread':1,'name':'open','category':'nvtx'}\n");
	CHECK_SQL(
		OF_2021, "mark",
		"{'start':90,'thread':1,'name':'here','category':'nvtx','scope':'thread','args':{'int64Value':-4}}\n");
	CHECK_SQL(OF_2021, "thread", "{'id':1,'process':1,'tid':7,'name':'rank 0'}\n");
}

TS_TEST(places_of_2022)
{
	CHECK_SQL(OF_2022, "host", "{'id':1,'name':'node1','system':'Linux','processors':128}\n");
	CHECK_SQL(OF_2022, "process", "{'id':1,'source':1,'host':1,'pid':42,'name':'./app'}\n");
	CHECK_SQL(OF_2022, "thread", "{'id':1,'process':1,'tid':7,'name':'worker'}\n");
	CHECK_SQL(OF_2022, "stream",
		  "{'id':1,'device':1,'number':7,'name':'default stream'}\n"
		  "{'id':2,'device':1,'number':12,'priority':-5}\n");
	CHECK_SQL(OF_2022, "source",
		  "{'id':1,'name':'test.sqlite','format':'nsys','rank':3,'clock':1}\n");
	CHECK_SQL(OF_2022, "clock_sync",
		  "{'clock':1,'reference':1687813257637297504,'method':'utcEpochNs'}\n");
	CHECK_SQL(
		OF_2022, "meta",
		"{'source':1,'key':'EXPORT_META_DATA','value':{'name':'EXPORT_PRODUCT_VERSION','value':'2022.2.1.31'}}\n"
		"{'source':1,'key':'TARGET_INFO_SYSTEM_ENV','value':{'globalVid':281474976710656,'devStateName':'','name':'Hostname','nameEnum':619,'value':'node1'}}\n"
		"{'source':1,'key':'TARGET_INFO_SYSTEM_ENV','value':{'globalVid':281474976710656,'devStateName':'','name':'CpuCores','nameEnum':1,'value':'128'}}\n"
		"{'source':1,'key':'TARGET_INFO_SYSTEM_ENV','value':{'globalVid':281474976710656,'devStateName':'','name':'OsDescription','nameEnum':605,'value':'Linux'}}\n"
		"{'source':1,'key':'TARGET_INFO_SESSION_START_TIME','value':{'utcEpochNs':1687813257637297504,'utcTime':'a','localTime':'b'}}\n"
		"{'source':1,'key':'TARGET_INFO_CUDA_STREAM','value':{'streamId':12,'hwId':0,'vmId':1,'processId':42,'contextId':1,'priority':4294967291,'flag':1}}\n"
		"{'source':1,'key':'TARGET_INFO_CUDA_NULL_STREAM','value':{'streamId':7,'hwId':0,'vmId':1,'processId':42,'deviceId':0,'contextId':1}}\n"
		"{'source':1,'key':'MPI_RANKS','value':{'globalTid':281475681353735,'rank':3}}\n"
		"{'source':1,'key':'ProcessStreams','value':{'globalPid':281475681353728,'filenameId':'main','contentId':'/bin/app'}}\n"
		"{'source':1,'key':'PROCESSES','value':{'listed':2,'with_events':1}}\n");
}

TS_TEST(events_of_2022)
{
	CHECK_SQL(
		OF_2022, "gpu_op",
		"{'start':1687813257637297505,'duration':1,'device':1,'stream':1,'kind':'fill','name':'Memset (Device)','category':'gpu_memset','correlation':5,'context':1,'bytes':64,'process':1,'args':{'value':255}}\n"
		"{'start':1687813257637297507,'duration':2,'device':1,'stream':2,'kind':'fill','name':'Memset','category':'gpu_memset','correlation':6,'context':1,'bytes':32,'graph_node':4,'process':1,'args':{'value':0}}\n"
		"{'start':1687813257637297510,'duration':3,'device':1,'kind':'sync','name':'Context Sync','category':'cuda_sync','correlation':7,'context':1,'process':1,'args':{'eventId':0}}\n");
	CHECK_SQL(
		OF_2022, "slice",
		"{'start':1687813257637297514,'duration':10,'thread':1,'name':'read','category':'OSRT_API','stack':2,'args':{'returnValue':4096,'nestingLevel':0}}\n"
		"{'start':1687813257637297534,'duration':10,'thread':1,'name':'MPI_Allreduce','category':'MPI_COLLECTIVES_EVENTS','args':{'size':1024}}\n");
	CHECK_SQL(
		OF_2022, "sample",
		"{'start':1687813257637297515,'thread':1,'stack':3,'weight':1,'cpu':3,'name':'nsys','state':'running','args':{'cpuCycles':5000}}\n"
		"{'start':1687813257637297516,'thread':1,'weight':1,'name':'nsys','state':'unscheduled','args':{'cpuCycles':1}}\n");
	CHECK_SQL(OF_2022, "frame",
		  "{'name':'read','mapping':1,'kind':'kernel'}\n"
		  "{'name':'main','mapping':1,'kind':'native'}\n"
		  "{'name':'k','mapping':1,'kind':'native'}\n");
	CHECK_SQL(OF_2022, "stack",
		  "{'frame':2}\n"
		  "{'parent':1,'frame':1}\n"
		  "{'parent':1,'frame':3}\n");
}

TS_TEST(events_of_2024)
{
	CHECK_SQL(
		OF_2024, "gpu_op",
		"{'start':10,'duration':10,'device':1,'stream':1,'kind':'collective','name':'ncclDevKernel_AllReduce','category':'kernel','correlation':5,'context':1,'graph':2,'graph_node':6,'process':1}\n"
		"{'start':11,'duration':10,'device':2,'stream':2,'kind':'kernel','name':'k<int>(int *)','category':'kernel','correlation':4294967301,'context':1,'process':2,'args':{'greenContextId':9}}\n"
		"{'start':30,'duration':30,'device':1,'stream':1,'kind':'graph','name':'CUDA graph','category':'cuda_graph','correlation':8,'context':1,'graph':3,'process':1,'args':{'graphExecId':4}}\n"
		"{'start':70,'duration':10,'device':1,'name':'CUDA_UM_GPU_PAGE_FAULT_EVENTS','category':'CUDA_UM_GPU_PAGE_FAULT_EVENTS','process':1,'args':{'deviceId':0,'address':4096,'numberOfPageFaults':2}}\n");
	CHECK_SQL(
		OF_2024, "api_call",
		"{'start':1,'duration':1,'thread':1,'name':'cudaLaunchKernel','category':'cuda_runtime','correlation':5,'result':0}\n"
		"{'start':3,'duration':1,'thread':2,'name':'cudaLaunchKernel','category':'cuda_runtime','correlation':4294967301,'result':0}\n");
	CHECK_SQL(
		OF_2024, "allocation",
		"{'start':1,'device':1,'stream':1,'address':4096,'bytes':100,'pool':'Device','args':{'pc':7,'contextId':1,'correlationId':6}}\n"
		"{'start':2,'device':1,'kind':'free','address':4096,'bytes':100,'pool':'Device','args':{'name':'v','pc':7,'contextId':1,'correlationId':9}}\n"
		"{'start':3,'address':64,'bytes':50,'pool':'Pinned','args':{'pc':7,'contextId':1}}\n");
	CHECK_SQL(
		OF_2024, "counter",
		"{'start':5,'device':2,'name':'SMs Active [%]','category':'GPU_METRICS','args':{'value':77}}\n"
		"{'start':6,'device':2,'name':'metric 5','category':'GPU_METRICS','args':{'value':1}}\n"
		"{'start':7,'name':'Bytes sent','category':'NET_NIC_METRIC','id':'2:1','args':{'value':2.5}}\n");
	CHECK_SQL(
		OF_2024, "mark",
		"{'start':9,'thread':3,'name':'events were lost','category':'DIAGNOSTIC_EVENT','scope':'process','args':{'timestampType':1,'source':2,'severity':3}}\n");
	CHECK_SQL(
		OF_2024, "device",
		"{'id':1,'source':1,'host':1,'number':0,'name':'H100','vendor':'NVIDIA','uuid':'u0','memory_bytes':80,'properties':{'vmId':281474976710656,'id':0,'name':'H100','uuid':'u0','totalMemory':80}}\n"
		"{'id':2,'source':1,'host':1,'number':1,'name':'H100','vendor':'NVIDIA','uuid':'u1','memory_bytes':80,'properties':{'vmId':281474976710656,'id':1,'name':'H100','uuid':'u1','totalMemory':80}}\n");
	CHECK_SQL(
		OF_2024, "meta",
		"{'source':1,'key':'META_DATA_EXPORT','value':{'name':'EXPORT_SCHEMA_VERSION','value':'3.16.1'}}\n"
		"{'source':1,'key':'TARGET_INFO_CUDA_DEVICE','value':{'gpuId':0,'cudaId':0,'pid':42,'uuid':'u0'}}\n"
		"{'source':1,'key':'TARGET_INFO_CUDA_DEVICE','value':{'gpuId':1,'cudaId':0,'pid':43,'uuid':'u1'}}\n"
		"{'source':1,'key':'TARGET_INFO_CUDA_CONTEXT_INFO','value':{'nullStreamId':7,'hwId':0,'vmId':1,'processId':42,'deviceId':0,'contextId':1}}\n");
	CHECK_SQL(OF_2024, "loss", "");
}

/* ---- unknown tables ---- */

#define UNKNOWN                                                                           \
	STRINGS                                                                           \
	"CREATE TABLE NEW_LIBRARY_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER," \
	" nameId INTEGER, depth INTEGER, ratio REAL, note TEXT, srcFile INTEGER);"        \
	"INSERT INTO NEW_LIBRARY_EVENTS VALUES (1,5," TID ",2,3,0.5,'x',7),"              \
	" (6,NULL," TID ",999,NULL,NULL,NULL,NULL);"                                      \
	"CREATE TABLE NEW_FACTS (a INTEGER, b TEXT, c REAL, d BLOB);"                     \
	"INSERT INTO NEW_FACTS VALUES (1,'t\"',2.5,x'00'),(NULL,NULL,NULL,NULL);"         \
	"CREATE TABLE MANY_FACTS (a INTEGER);"                                            \
	"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 1007)"    \
	" INSERT INTO MANY_FACTS SELECT x FROM c;"                                        \
	"CREATE VIEW SEEN AS SELECT 1 AS start, 2 AS end, " TID " AS globalTid;"

TS_TEST(unknown_tables)
{
	struct imported imported;

	CHECK_SQL(
		UNKNOWN, "slice",
		"{'start':1,'duration':4,'thread':1,'name':'k','category':'NEW_LIBRARY_EVENTS','args':{'depth':3,'ratio':0.5,'note':'x','srcFile':'/bin/app'}}\n"
		"{'start':6,'duration':-1,'thread':1,'name':'NEW_LIBRARY_EVENTS','category':'NEW_LIBRARY_EVENTS'}\n");
	CHECK_SQL(
		UNKNOWN, "loss",
		"{'start':6,'source':1,'what':'MANY_FACTS','count':7,'reason':'row of table MANY_FACTS'}\n");
	import_sql(&imported, UNKNOWN);
	TS_CHECK_STR(imported.result.note, "lost: 7 rows of table MANY_FACTS");
	TS_CHECK_INT(imported.result.events, 2);
	release_imported(&imported);
}

/* A row with a time is an event, even without an owner; bytes are counted. */
#define OF_NOBODY                                                                     \
	STRINGS                                                                       \
	"CREATE TABLE NEW_SWITCH_EVENTS (timestamp INTEGER, port INTEGER, raw BLOB);" \
	"INSERT INTO NEW_SWITCH_EVENTS VALUES (5,1,NULL),(6,2,x'00ff');"              \
	"CREATE TABLE NEW_SWITCH_SPANS (start INTEGER, end INTEGER, textId INTEGER);" \
	"INSERT INTO NEW_SWITCH_SPANS VALUES (7,9,9);"

TS_TEST(times_without_threads)
{
	CHECK_SQL(
		OF_NOBODY, "mark",
		"{'start':5,'thread':1,'name':'NEW_SWITCH_EVENTS','category':'NEW_SWITCH_EVENTS','args':{'port':1}}\n"
		"{'start':6,'thread':1,'name':'NEW_SWITCH_EVENTS','category':'NEW_SWITCH_EVENTS','args':{'port':2}}\n");
	CHECK_SQL(
		OF_NOBODY, "slice",
		"{'start':7,'duration':2,'thread':1,'name':'worker','category':'NEW_SWITCH_SPANS'}\n");
	CHECK_SQL(
		OF_NOBODY, "loss",
		"{'start':6,'source':1,'what':'argument','count':1,'reason':'binary argument'}\n");
}

/* ---- inconsistent files ---- */

TS_TEST(a_view_is_no_table)
{
	CHECK_SQL(
		STRINGS
		"CREATE TABLE t (a); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE"
		" c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS start, x AS end FROM c;",
		"gpu_op", "");
}

TS_TEST(computed_columns_are_not_read)
{
	CHECK_SQL(STRINGS "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER AS"
			  " (start + 1), demangledName INTEGER AS (length(zeroblob(1000000))));"
			  "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start) VALUES (5);",
		  "gpu_op",
		  "{'start':5,'duration':-1,'kind':'kernel','category':'kernel','process':1}\n");
}

TS_TEST(wrong_types)
{
	const char *sql = STRINGS
		"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, demangledName, gridX);"
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('now',2,0,7,1,1),(NULL,2,0,7,1,1),"
		" (5,3,0,7,1,1),(x'00',2,0,7,1,1),(1,'later','first','x',zeroblob(100000),'many'),"
		" (-9223372036854775807,9223372036854775807,0,7,1,1),(1.0,2.5,0,7,-1,1e300);";
	struct imported imported;

	CHECK_SQL(
		sql, "gpu_op",
		"{'start':1,'duration':-1,'kind':'kernel','category':'kernel','process':1}\n"
		"{'start':1,'duration':1,'device':1,'stream':1,'kind':'kernel','category':'kernel','process':1}\n");
	import_sql(&imported, sql);
	TS_CHECK_STR(imported.result.note,
		     "lost: 3 events without time, 2 events that end before they start");
	release_imported(&imported);
}

/* Three calls with the given numbers of their chains. */
#define CALLS_OF_CHAINS(first, second, third)                                                            \
	STRINGS                                                                                          \
	"CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER);" \
	"INSERT INTO CUDA_CALLCHAINS VALUES (1,2,NULL,0),(2,6,NULL,0);"                                  \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, callchainId INT);" \
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10,11," TID "," first "),"                      \
	" (20,21," TID "," second "),(30,31," TID "," third ");"

/* Versions refer to chains by id, with 0 for none, or count them from 0: the rows tell which. */
TS_TEST(numbers_of_chains)
{
	static const struct {
		const char *sql;
		int64_t stacks[3];
	} cases[] = {
		{ CALLS_OF_CHAINS("NULL", "1", "2"), { 0, 1, 2 } },
		{ CALLS_OF_CHAINS("0", "NULL", "1"), { 1, 0, 2 } },
		{ CALLS_OF_CHAINS("0", "1", "2"), { 0, 1, 2 } },
		{ CALLS_OF_CHAINS("0", "0", "1"), { 0, 0, 1 } },
		{ CALLS_OF_CHAINS("2", "NULL", "NULL"), { 2, 0, 0 } },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		char expected[512] = "";

		for (int k = 0; k < 3; k++) {
			size_t length = strlen(expected);

			snprintf(expected + length, sizeof(expected) - length,
				 "{'start':%d,'duration':1,'thread':1,'category':'cuda_runtime'",
				 10 * (k + 1));
			length = strlen(expected);
			if (cases[i].stacks[k])
				snprintf(expected + length, sizeof(expected) - length,
					 ",'stack':%d}\n", (int)cases[i].stacks[k]);
			else
				snprintf(expected + length, sizeof(expected) - length, "}\n");
		}
		CHECK_SQL(cases[i].sql, "api_call", expected);
	}
}

/* Stacks whose rows are out of order, duplicated, or out of bounds. */
TS_TEST(odd_stacks)
{
	const char *sql = STRINGS
		"CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER);"
		"INSERT INTO CUDA_CALLCHAINS VALUES (1,2,NULL,5),(1,6,NULL,9),(1,9,NULL,7),(2,2,NULL,0),"
		" (1,3,NULL,0),(2,2,NULL,0),(NULL,2,NULL,NULL);"
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 5000)"
		" INSERT INTO CUDA_CALLCHAINS SELECT 4,2,NULL,x FROM c;";
	struct imported imported;

	CHECK_SQL(
		sql, "loss",
		"{'start':0,'source':1,'what':'frame','count':906,'reason':'frame outside its stack or beyond depth 4096'}\n");
	import_sql(&imported, sql);
	release_imported(&imported);
}

TS_TEST(other_databases)
{
	static const struct {
		const char *sql, *message;
	} cases[] = {
		{ "CREATE TABLE a (b); CREATE TABLE c (d)", "it has the tables a, c" },
		{ "CREATE TABLE a (b); DROP TABLE a", "it has no tables" },
		{ "CREATE TABLE t (b); CREATE VIEW StringIds AS SELECT 1", "it has the tables t" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct database db = make(cases[i].sql);
		struct imported imported;

		import_data(&imported, db.data, db.bytes, false);
		TS_CHECK_INT(imported.rc, TS_EFORMAT);
		if (!strstr(imported.err.message, cases[i].message))
			ts_test_fail(__FILE__, __LINE__, "%s", imported.err.message);
		release_imported(&imported);
		sqlite3_free(db.data);
	}
}

TS_TEST(format_must_fit)
{
	struct ts_import_options options = { .size = sizeof(options), .format = "rocpd" };
	struct database db = make(OF_2021);
	struct ts_import_result result;
	struct ts_error err;
	char path[64];
	struct ts_writer *writer = open_writer(path);

	TS_CHECK_INT(
		ts_import_memory(writer, "t", db.data, db.bytes, 0, 0, &options, &result, &err),
		TS_EFORMAT);
	TS_CHECK_STR(
		err.message,
		"input 't': is an Nsight Systems export, which --format rocpd cannot read; omit --format");
	sqlite3_free(db.data);
	ts_reader_close(finish_and_read(writer, path));
}

/* ---- damage ---- */

static int stop_at_once(void *context, uint64_t done, uint64_t total)
{
	int *left = context;

	return --*left < 0;
}

TS_TEST(canceled)
{
	const char *sql = STRINGS
		"CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);"
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 30000)"
		" INSERT INTO OSRT_API SELECT x, x + 1, 5, 2 FROM c;";
	struct database db = make(sql);
	int left = 3;
	struct ts_import_options options = { .size = sizeof(options),
					     .progress = stop_at_once,
					     .context = &left };
	struct ts_import_result result;
	struct ts_error err;
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_reader *reader;

	TS_CHECK_INT(
		ts_import_memory(writer, "t", db.data, db.bytes, 0, 0, &options, &result, &err),
		TS_ECANCELED);
	TS_CHECK(result.events > 0 && result.events < 30000);
	TS_CHECK_STR(result.note, "lost: the unread rest of the file");
	sqlite3_free(db.data);
	reader = finish_and_read(writer, path);
	TS_CHECK_INT(ts_reader_rows(reader, TS_TABLE_SLICE), result.events);
	ts_reader_close(reader);
}

/*
 * Truncated anywhere: an error or everything; never less without an error. What came before is
 * kept.
 */
TS_TEST(cut_anywhere)
{
	struct database db = make(OF_2021);
	struct imported imported;
	uint64_t all, most = 0;

	import_data(&imported, db.data, db.bytes, false);
	TS_CHECK_INT(imported.rc, TS_OK);
	all = imported.result.events;
	release_imported(&imported);
	for (size_t bytes = 1; bytes < db.bytes; bytes += 307) {
		import_data(&imported, db.data, bytes, false);
		if (imported.rc != TS_EFORMAT && imported.result.events < all)
			ts_test_fail(__FILE__, __LINE__, "%zu bytes: %s", bytes,
				     imported.err.message);
		TS_CHECK(imported.result.events <= all);
		most = TS_MAX(most, imported.rc ? imported.result.events : 0);
		release_imported(&imported);
	}
	TS_CHECK(most > 0);
	sqlite3_free(db.data);
}

/* A page in the middle of NVTX's table: earlier ranges are kept, with names. */
TS_TEST(damage_among_ranges)
{
	const char *sql = STRINGS
		"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, domainId INTEGER);"
		"INSERT INTO NVTX_EVENTS VALUES (1,NULL,75,'lib'," TID ",1);"
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 400)"
		" INSERT INTO NVTX_EVENTS SELECT x, x + 1, 59, iif(x = 300, 'needle', 'range')," TID
		", 1 FROM c;";
	struct database db = make(sql);
	unsigned char *needle = memmem(db.data, db.bytes, "needle", 6);
	struct imported imported;

	TS_CHECK(needle != NULL);
	db.data[(size_t)(needle - db.data) / 512 * 512] = 0x77;
	import_data(&imported, db.data, db.bytes, false);
	TS_CHECK_INT(imported.rc, TS_EFORMAT);
	TS_CHECK(imported.result.events > 200 && imported.result.events < 300);
	TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_SLICE), imported.result.events);
	release_imported(&imported);
	sqlite3_free(db.data);
}

/* Data left in a writer's log is not in the database: a note says so, and no file is modified. */
TS_TEST(log_beside_it)
{
	struct ts_import_result result;
	struct ts_reader *reader;
	struct ts_writer *writer;
	struct ts_error err;
	char path[64], database[64], beside[80];
	sqlite3 *handle;

	temporary_path(database);
	TS_CHECK_INT(sqlite3_open(database, &handle), SQLITE_OK);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	TS_CHECK_INT(sqlite3_exec(handle,
				  STRINGS "PRAGMA journal_mode=WAL;"
					  "INSERT INTO StringIds VALUES (100,'in the log')",
				  NULL, NULL, NULL),
		     SQLITE_OK);
	sqlite3_close(handle);
	snprintf(beside, sizeof(beside), "%s-wal", database);
	TS_CHECK_INT(access(beside, F_OK), 0);
	writer = open_writer(path);
	/* Nothing else is in it. */
	TS_CHECK_INT(ts_import_file(writer, database, NULL, &result, &err), TS_EFORMAT);
	TS_CHECK(strstr(err.message, "lost: the rows in the -wal file next to the database"));
	TS_CHECK(strstr(result.note, "lost: the rows in the -wal file next to the database"));
	reader = finish_and_read(writer, path);
	TS_CHECK_INT(ts_reader_rows(reader, TS_TABLE_LOSS), 1);
	ts_reader_close(reader);
	TS_CHECK_INT(unlink(beside), 0);
	snprintf(beside, sizeof(beside), "%s-shm", database);
	unlink(beside);
	unlink(database);
}

/* No flipped byte causes a crash, a hang, or an error without a message. */
TS_TEST(flipped_bytes)
{
	struct database db = make(OF_2021);
	uint32_t random = 1;

	for (int i = 0; i < 400; i++) {
		struct imported imported;
		unsigned char before;
		size_t at;

		random = random * 1664525 + 1013904223;
		at = random % db.bytes;
		before = db.data[at];
		db.data[at] ^= (unsigned char)(1 + (random >> 24) % 255);
		import_data(&imported, db.data, db.bytes, false);
		TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
		TS_CHECK(imported.rc == TS_OK || imported.err.message[0]);
		release_imported(&imported);
		db.data[at] = before;
	}
	sqlite3_free(db.data);
}

#else

TS_TEST(without_sqlite)
{
	static const char data[32] = "SQLite format 3";
	struct imported imported;

	import_bytes(&imported, data, sizeof(data), false);
	TS_CHECK_INT(imported.rc, TS_ECAP);
	TS_CHECK(strstr(imported.err.message, "install libsqlite3-dev") != NULL);
	release_imported(&imported);
}

#endif
