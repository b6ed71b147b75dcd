/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of perf script: parsing lines, events, threads, frames, records; rejected and damaged
 * texts.
 */
#include "import/perf/perf_line.h"
#include "unit/import/import_support.h"

static void import_text(struct imported *imported, const char *text, size_t bytes, bool in_pieces)
{
	struct ts_import_options options = { .size = sizeof(options), .format = "perf" };
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = ts_import_memory(writer, "test.txt", text, bytes, in_pieces ? 7 : 0,
					in_pieces ? 16 : 0, &options, &imported->result,
					&imported->err);
	imported->reader = finish_and_read(writer, path);
}

static void check_text(const char *file, int line, const char *text, const char *table,
		       const char *expected)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_text(&imported, text, strlen(text), in_pieces);
		if (imported.rc)
			ts_test_fail(file, line, "%s", imported.err.message);
		check_table(file, line, imported.reader, table, expected);
		release_imported(&imported);
	}
}

#define CHECK_TEXT(text, table, expected) check_text(__FILE__, __LINE__, text, table, expected)
#define CHECK_SPAN(span, expected)                                                       \
	do {                                                                             \
		char span_[256];                                                         \
		snprintf(span_, sizeof(span_), "%.*s", (int)(span).length, (span).text); \
		ts_test_check_str(__FILE__, __LINE__, expected, span_, expected);        \
	} while (0)

/* ---- lines ---- */

TS_TEST(first_lines)
{
	static const struct {
		const char *line, *comm;
		int64_t pid, tid, cpu, time, period;
		const char *event, *rest;
	} cases[] = {
		{ "t 20849 15813.771392:     250000 cpu-clock: ", "t", -9, 20849, -9,
		  15813771392000, 250000, "cpu-clock", "" },
		{ "Web Content 123/456 [001] 1.000002: cycles:u: ", "Web Content", 123, 456, 1,
		  1000002000, -9, "cycles:u", "" },
		{ "a 12 34/56 1.000000009:          1 cpu/event=0x3c,umask=1/P: ", "a 12", 34, 56,
		  -9, 1000000009, 1, "cpu/event=0x3c,umask=1/P", "" },
		{ "        swapper     0/0     [000] Sp    16575.334943881:  5 x:  7f ", "swapper",
		  0, 0, 0, 16575334943881, 5, "x", "7f" },
		{ "  kworker/0:0H-ev    10 [002] 3.000001: sched:sched_wakeup: comm=a pid=1",
		  "kworker/0:0H-ev", -9, 10, 2, 3000001000, -9, "sched:sched_wakeup",
		  "comm=a pid=1" },
		{ ":1234 -1/-1 3.000001: x: ", ":1234", -1, -1, -9, 3000001000, -9, "x", "" },
		{ "a 7 2026-11-16 09:07:26.443684 3.000001: x: ", "a", -9, 7, -9, 3000001000, -9,
		  "x", "" },
		/* A name that looks like a time with a colon. */
		{ "1.000001: b 7 3.000001: x: ", "1.000001: b", -9, 7, -9, 3000001000, -9, "x",
		  "" },
		{ "a 7 [003] 5000 cycles: ", "a", -9, 7, 3, -9, 5000, "cycles", "" },
		{ "a b 7/8 5000 cycles:  1f f (g)", "a b", 7, 8, -9, -9, 5000, "cycles",
		  "1f f (g)" },
		{ "a 7 3.000001:     250000 ", "a", -9, 7, -9, 3000001000, 250000, "", "" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct ts_perf_head head;

		if (!ts_perf_parse_head(cases[i].line, strlen(cases[i].line), &head))
			ts_test_fail(__FILE__, __LINE__, "refused: %s", cases[i].line);
		CHECK_SPAN(head.comm, cases[i].comm);
		TS_CHECK_INT(head.has_pid ? head.pid : -9, cases[i].pid);
		TS_CHECK_INT(head.has_tid ? head.tid : -9, cases[i].tid);
		TS_CHECK_INT(head.has_cpu ? head.cpu : -9, cases[i].cpu);
		TS_CHECK_INT(head.has_time ? head.time : -9, cases[i].time);
		TS_CHECK_INT(head.has_period ? head.period : -9, cases[i].period);
		CHECK_SPAN(head.event, cases[i].event);
		CHECK_SPAN(head.rest, cases[i].rest);
	}
}

TS_TEST(frames)
{
	static const struct {
		const char *line;
		uint64_t ip;
		const char *symbol, *object;
		bool is_inlined;
	} cases[] = {
		{ "ffff800080360f64 do_wp_page+0x23c ([kernel.kallsyms])", 0xffff800080360f64,
		  "do_wp_page", "[kernel.kallsyms]", false },
		{ "870 operator()(int) const+0x1c (/usr/lib/x y.so (deleted))", 0x870,
		  "operator()(int) const", "/usr/lib/x y.so (deleted)", false },
		{ "870 std::map<int, (anonymous namespace)::x>::operator+(int)+0x1 (/a)", 0x870,
		  "std::map<int, (anonymous namespace)::x>::operator+(int)", "/a", false },
		{ "870 a + 0x (/a)", 0x870, "a + 0x", "/a", false },
		{ "870 f(int, char)", 0x870, "f(int, char)", "", false },
		{ "870 f (/tmp/a) b)", 0x870, "f", "/tmp/a) b", false },
		{ "870 f (/tmp/a (b)", 0x870, "f (/tmp/a", "b", false },
		{ "870 [unknown] ([unknown])", 0x870, "", "", false },
		{ "870 inner (inlined)", 0x870, "inner", "", true },
		{ "870", 0x870, "", "", false },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct ts_perf_text line = { cases[i].line, strlen(cases[i].line) };
		struct ts_perf_frame frame;

		TS_CHECK(ts_perf_parse_frame(line, &frame));
		TS_CHECK(frame.ip == cases[i].ip);
		CHECK_SPAN(frame.symbol, cases[i].symbol);
		CHECK_SPAN(frame.object, cases[i].object);
		TS_CHECK_INT(frame.is_inlined, cases[i].is_inlined);
	}
}

TS_TEST(what_is_perf_and_what_is_not)
{
	static const char *const good[] = {
		"t 20849 15813.771392:     250000 cpu-clock: \n\t1 f (a)\n",
		"\n# ========\n# captured on    : Mon Nov 16 08:54:47 2026\n",
		"#\na b 1/2 [001] 1.000000001: sched:sched_switch: x=1\n",
		"a 0 0.000000: PERF_RECORD_COMM: a:1/1\n",
	};
	static const char *const bad[] = {
		"",
		"\n\n",
		"# a comment\n",
		"# ========\nname,value\n",
		"[    0.000000] Linux version 6.1\n",
		"2026-11-16 09:07:26.443684: error: x\n",
		"          <idle>-0     [001] d.h. 1234.567890: sched_switch: prev_comm=a\n",
		"bash-1234 [000] 1234.567890: sched_switch: prev_comm=a\n",
		"a 1 1.5: cycles:\n",
		"a 1 1.000001 cycles:\n",
		"a x 1.000001: cycles:\n",
		"a 1 1.000001: something else\n",
		"a 7 5000 cycles:\n",
		"time,pid\n1.000001,7\n",
		"{\"traceEvents\":[]}",
		"a 1 1.000001: \x01: \n",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(good); i++)
		if (!ts_perf_probe(good[i], strlen(good[i])))
			ts_test_fail(__FILE__, __LINE__, "refused: %s", good[i]);
	for (size_t i = 0; i < TS_ARRAY_SIZE(bad); i++)
		if (ts_perf_probe(bad[i], strlen(bad[i])))
			ts_test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
}

/* ---- events ---- */

#define TWO_SAMPLES                                                 \
	"a b 7/8 [001] 1.000002:     250000 cpu-clock:u: \n"        \
	"\tffff800080360f64 do_wp_page+0x23c ([kernel.kallsyms])\n" \
	"\t             870 hot+0x1c (/bin/a)\n"                    \
	"\t             900 main+0x4 (/bin/a)\n"                    \
	"\n"                                                        \
	"a 7/7 [000] 1.000003:       5000 cycles: \n"               \
	"\t             870 hot+0x1c (/bin/a)\n"                    \
	"\t             900 main+0x4 (/bin/a)\n"                    \
	"\n"

TS_TEST(samples)
{
	CHECK_TEXT(TWO_SAMPLES, "sample",
		   "{'start':1000002000,'thread':1,'stack':3,'weight':250000,'cpu':1,"
		   "'name':'cpu-clock:u'}\n"
		   "{'start':1000003000,'thread':2,'stack':2,'cpu':0,'name':'cycles',"
		   "'args':{'period':5000}}\n");
	CHECK_TEXT(TWO_SAMPLES, "frame",
		   "{'name':'do_wp_page','mapping':1,'kind':'kernel'}\n"
		   "{'name':'hot','mapping':2,'pc':2160,'kind':'native'}\n"
		   "{'name':'main','mapping':2,'pc':2304,'kind':'native'}\n");
	CHECK_TEXT(TWO_SAMPLES, "stack",
		   "{'frame':3}\n{'parent':1,'frame':2}\n{'parent':2,'frame':1}\n");
	CHECK_TEXT(TWO_SAMPLES, "mapping", "{'path':'[kernel.kallsyms]'}\n{'path':'/bin/a'}\n");
	CHECK_TEXT(TWO_SAMPLES, "process", "{'id':1,'source':1,'pid':7,'name':'a'}\n");
	CHECK_TEXT(TWO_SAMPLES, "thread",
		   "{'id':1,'process':1,'tid':8,'name':'a b'}\n"
		   "{'id':2,'process':1,'tid':7,'name':'a'}\n");
}

TS_TEST(kinds_of_frames)
{
	CHECK_TEXT(
		"a 7 1.000002: 1 cycles: \n"
		"\tffff800080360f64 [unknown] ([unknown])\n"
		"\tffffffffff600000 gettime ([vsyscall])\n"
		"\t             870 nf_hook ([nf_tables])\n"
		"\t             871 py::work.<locals>.f:/home/a.py (/tmp/perf-7.map)\n"
		"\t             872 JS:*g a.js:1:2 (/tmp/perf-7.map)\n"
		"\t             873 h (inlined)\n"
		"\t    ffff8d957740 strchr+0x0 (/lib/c.so)\n"
		"\t    ffff8d957744 [unknown] (/lib/c.so)\n"
		"  ??:0\n"
		"\t             874 i (/lib/c.so)\n"
		"  src/i.c:12 (discriminator 3)\n\n",
		"frame",
		"{'pc':-140735337328796,'kind':'kernel'}\n"
		"{'name':'gettime','mapping':1,'kind':'native'}\n"
		"{'name':'nf_hook','mapping':2,'kind':'kernel'}\n"
		"{'name':'work.<locals>.f','file':'/home/a.py','kind':'python'}\n"
		"{'name':'JS:*g a.js:1:2','mapping':3,'kind':'script'}\n"
		"{'name':'h','kind':'native'}\n"
		"{'name':'strchr','mapping':4,'kind':'native'}\n"
		"{'mapping':4,'pc':281473057126212,'kind':'native'}\n"
		"{'name':'i','mapping':4,'pc':2164,'kind':'native'}\n"
		"{'name':'i','file':'src/i.c','line':12,'mapping':4,'pc':2164,'kind':'native'}\n");
}

TS_TEST(frames_on_the_first_line)
{
	CHECK_TEXT("a 7 1.000002: 1 page-faults:     aaaab1430638 [unknown] (//anon)     "
		   "aaaab121fde4 add+0x1 (/bin/a)\n"
		   "a 7 1.000003: 1 page-faults:     aaaab1430638 aaaab121fde4 add+0x1 (/bin/a)\n"
		   "a 7 1.000003: 1 page-faults:     aaaab1430638 aaaab121fde4 (anonymous "
		   "namespace)::f() (/bin/a)\n"
		   "a 7 1.000004: cycles:  aaaab121fde4 add+0x1 (/bin/a) 0x1/0x2/P/-/-/0  "
		   "0x3/0x4/P/-/-/1 \n"
		   "a 7 1.000005: cycles:  aaaab121fde4 add (/bin/a) \n"
		   "a 7 1.000006: cycles:                0 \n\t aaaab121fde4 add (/bin/a)\n\n"
		   "a 7 1.000007: cycles: |OP LOAD|LVL L1\n",
		   "sample",
		   "{'start':1000002000,'thread':1,'stack':1,'name':'page-faults',"
		   "'args':{'period':1,'addr':'0xaaaab1430638'}}\n"
		   "{'start':1000003000,'thread':1,'stack':1,'name':'page-faults',"
		   "'args':{'period':1,'addr':'0xaaaab1430638'}}\n"
		   "{'start':1000003000,'thread':1,'stack':2,'name':'page-faults',"
		   "'args':{'period':1,'addr':'0xaaaab1430638'}}\n"
		   "{'start':1000004000,'thread':1,'stack':1,'name':'cycles',"
		   "'args':{'brstack':'0x1/0x2/P/-/-/0  0x3/0x4/P/-/-/1'}}\n"
		   "{'start':1000005000,'thread':1,'stack':1,'name':'cycles'}\n"
		   "{'start':1000006000,'thread':1,'stack':1,'name':'cycles',"
		   "'args':{'addr':'0x0'}}\n"
		   "{'start':1000007000,'thread':1,'name':'cycles',"
		   "'args':{'text':'|OP LOAD|LVL L1'}}\n");
}

/* However long the first one's name is. */
TS_TEST(two_frames_on_a_long_line)
{
	struct ts_text line = { 0 };

	ts_text_append_str(&line, "a 7 1.000002: 1 page-faults: 1000 ");
	for (int i = 0; i < 4096; i++)
		ts_text_append_str(&line, "a) ");
	ts_text_append_str(&line, "(/bin/x) 2000 add+0x1 (/bin/a)\n");
	TS_CHECK(!line.failed);
	/* The first number after a bracket starts the second one. */
	CHECK_TEXT(ts_text_cstr(&line), "sample",
		   "{'start':1000002000,'thread':1,'stack':1,'name':'page-faults',"
		   "'args':{'period':1,'addr':'0x1000'}}\n");
	CHECK_TEXT(ts_text_cstr(&line), "frame",
		   "{'name':'add','mapping':1,'pc':8192,'kind':'native'}\n");
	ts_text_release(&line);
}

TS_TEST(tracepoints)
{
	CHECK_TEXT("a 7 [000] 1.000002: sched:sched_switch: prev_comm=Web Content prev_pid=7 "
		   "prev_state=R ==> next_comm=c next_pid=0008 x=\n"
		   "a 7 [000] 1.000003: raw_syscalls:sys_enter: NR 64 (1, 2)\n"
		   "a 7 [000] 1.000004: kmem:kmalloc: ptr=0x10, bytes=-5\n\t870 f (/bin/a)\n\n",
		   "mark",
		   "{'start':1000002000,'thread':1,'name':'sched:sched_switch','category':'sched',"
		   "'args':{'prev_comm':'Web Content','prev_pid':7,'prev_state':'R',"
		   "'next_comm':'c','next_pid':'0008','x':'','cpu':0}}\n"
		   "{'start':1000003000,'thread':1,'name':'raw_syscalls:sys_enter',"
		   "'category':'raw_syscalls','args':{'text':'NR 64 (1, 2)','cpu':0}}\n");
	CHECK_TEXT("a 7 [000] 1.000004: kmem:kmalloc: ptr=0x10, bytes=-5\n\t870 f (/bin/a)\n\n",
		   "sample",
		   "{'start':1000004000,'thread':1,'stack':1,'cpu':0,'name':'kmem:kmalloc',"
		   "'args':{'ptr':'0x10','bytes':-5}}\n");
}

#define RECORDS                                                                               \
	"swapper 0/0 0.000000: PERF_RECORD_FORK(7:7):(1:1)\n"                                 \
	"a 0 0.000000: PERF_RECORD_COMM: perf-exec:7/7\n"                                     \
	"a 7 2.000001: PERF_RECORD_COMM exec: prog:7/7\n"                                     \
	"a 7 2.000002: PERF_RECORD_MMAP2 7/7: [0x1000(0x200) @ 0x40 <00ff>]: r-xp /bin/a b\n" \
	"a 7 2.000003: PERF_RECORD_FORK(7:8):(7:7)\n"                                         \
	"a 7 2.000004: PERF_RECORD_FORK(9:9):(7:7)\n"                                         \
	"x:y 8 2.000005: PERF_RECORD_COMM: x:y:7/8\n"                                         \
	"renamed 7 2.000006: 1 cycles: \n"                                                    \
	"x:y 8 2.000007: 1 cycles: \n"                                                        \
	"a 9 2.000008: PERF_RECORD_EXIT(9:9):(7:7)\n"                                         \
	"a 7 [001] 2.000009: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid: 1/2\n"    \
	"a 7 2.000010: PERF_RECORD_LOST lost 12\n"                                            \
	"a 0 0.000000: PERF_RECORD_KSYMBOL addr 1\n"

TS_TEST(records)
{
	CHECK_TEXT(RECORDS, "process",
		   "{'id':1,'source':1,'pid':7,'parent':2,'name':'prog'}\n"
		   "{'id':2,'source':1,'pid':1}\n"
		   "{'id':3,'source':1,'pid':9,'parent':1,'start':2000004000,'end':2000008000}\n");
	CHECK_TEXT(RECORDS, "thread",
		   "{'id':1,'process':1,'tid':7,'name':'a'}\n"
		   "{'id':2,'process':1,'tid':8,'name':'x:y'}\n"
		   "{'id':3,'process':3,'tid':9}\n");
	CHECK_TEXT(RECORDS, "mapping",
		   "{'process':1,'path':'/bin/a b','build_id':'00ff','address':4096,'bytes':512,"
		   "'file_offset':64,'mapped':2000002000}\n");
	CHECK_TEXT(RECORDS, "mark",
		   "{'start':2000009000,'thread':1,'name':'PERF_RECORD_SWITCH_CPU_WIDE',"
		   "'category':'perf','args':{'cpu':1,'text':'OUT preempt  next pid/tid: 1/2'}}\n");
	CHECK_TEXT(RECORDS, "loss",
		   "{'start':2000010000,'source':1,'what':'sample','count':12,"
		   "'reason':'sample lost by perf'}\n"
		   "{'start':2000010000,'source':1,'what':'record','count':1,"
		   "'reason':'perf record without time'}\n");
}

TS_TEST(header)
{
	static const char text[] =
		"# ========\n# hostname : box\n# os release : 6.1\n# nrcpus online : 4\n"
		"# total memory : 2 kB\n# cmdline : perf record a:b \n"
		"# reference time: 2026-01-05 10:00:00.000001 = 1767607200.000001 (TOD) = "
		"10.000000001 (monotonic)\n# ========\n#\na 7 1.000001: x: \n\n";

	CHECK_TEXT(text, "host",
		   "{'id':1,'name':'box','system':'6.1','processors':4,'memory_bytes':2048}\n");
	CHECK_TEXT(text, "clock_sync",
		   "{'clock':1,'time':10000000001,'reference':1767607200000001000,"
		   "'uncertainty_ns':1000,'method':'perf clock data'}\n");
	CHECK_TEXT("# cmdline : perf record \"a\" \na 7 1.000001: x: \n\n", "meta",
		   "{'source':1,'key':'cmdline','value':'perf record \\'a\\''}\n");
}

TS_TEST(what_is_lost_is_counted)
{
	CHECK_TEXT("a 7 1.000001: x: \n\nsomething else\n"
		   "a 7 99999999999.000001: x: \n\t1 f (a)\n\n",
		   "loss",
		   "{'start':1000001000,'source':1,'what':'line','count':1,"
		   "'reason':'line not recognized as perf script output'}\n"
		   "{'start':1000001000,'source':1,'what':'event','count':1,"
		   "'reason':'event whose time exceeds 64 bits'}\n");
}

TS_TEST(text_that_is_something_else)
{
	struct imported imported;

	import_text(&imported, "hello\nworld\n", 12, false);
	TS_CHECK_INT(imported.rc, TS_EFORMAT);
	TS_CHECK(strstr(imported.err.message, "no line looks like") != NULL);
	release_imported(&imported);
}

/* ---- damage ---- */

static uint64_t events_of(const char *text, size_t bytes, bool in_pieces, int *ret_rc)
{
	struct imported imported;
	uint64_t events;

	import_text(&imported, text, bytes, in_pieces);
	TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
	TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_SAMPLE) +
			     ts_reader_rows(imported.reader, TS_TABLE_MARK),
		     imported.result.events);
	if (imported.rc)
		TS_CHECK(ts_reader_rows(imported.reader, TS_TABLE_LOSS) > 0);
	events = imported.result.events;
	*ret_rc = imported.rc;
	release_imported(&imported);
	return events;
}

TS_TEST(a_text_that_breaks_off_keeps_what_came_before)
{
	static const char text[] = TWO_SAMPLES RECORDS TWO_SAMPLES;
	const size_t complete = sizeof(TWO_SAMPLES) - 1, bytes = sizeof(text) - 1;

	for (size_t cut = 1; cut < bytes; cut += 3) {
		int rc;
		uint64_t events = events_of(text, cut, cut & 1, &rc);

		/* At the end of a line nothing shows that more was to come. */
		TS_CHECK_INT(rc, text[cut - 1] == '\n' ? TS_OK : TS_EFORMAT);
		TS_CHECK(cut < complete || events >= 2);
		TS_CHECK(events <= 7);
	}
}

TS_TEST(damaged_bytes)
{
	static const char text[] = "# hostname : b\n" TWO_SAMPLES RECORDS;
	static const char bytes[] = { '\0', '\n', ' ', '(', ')', '/', ':', '9', '\xff' };
	char copy[sizeof(text)];
	int rc;

	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		memcpy(copy, text, sizeof(text));
		copy[i] = bytes[i % sizeof(bytes)];
		events_of(copy, sizeof(text) - 1, i & 1, &rc);
	}
}
