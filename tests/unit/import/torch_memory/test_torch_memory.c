/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch memory snapshots: pickle opcodes, entries, blocks, annotations, sums; pickles that would
 * execute code, are damaged, or expand without limit. Pickles are written as JSON with ' for ", and
 * `&N value` and `*N` for the memo.
 */
#include "unit/import/import_support.h"

/* ---- pickles ---- */

static void put_size(struct ts_text *out, uint64_t number, int bytes)
{
	for (int i = 0; i < bytes; i++)
		ts_text_append_char(out, (char)(number >> 8 * i));
}

static const char *put_value(struct ts_text *out, const char *p);

static const char *put_items(struct ts_text *out, const char *p, char close)
{
	ts_text_append_char(out, '(');
	while (*++p != close) {
		if (*p != ',' && *p != ':')
			p = put_value(out, p) - 1;
	}
	ts_text_append_char(out, close == '}' ? 'u' : 'e');
	return p + 1;
}

static const char *put_number(struct ts_text *out, const char *p)
{
	char *end;
	long long number = strtoll(p, &end, 10);

	if (number >= 0 && number < 256) {
		ts_text_append_char(out, 'K');
		put_size(out, (uint64_t)number, 1);
	} else {
		ts_text_append_str(out, "\x8a\x08");
		put_size(out, (uint64_t)number, 8);
	}
	return end;
}

static const char *put_memo(struct ts_text *out, const char *p)
{
	bool puts = *p == '&';
	char *end;
	unsigned long number = strtoul(p + 1, &end, 10);

	p = end;
	if (!puts) {
		ts_text_append_char(out, 'j');
	} else if (p[1] == '[' || p[1] == '{') {
		/* Memoized while it is empty, as Python does: so it can contain itself. */
		ts_text_append_char(out, p[1] == '[' ? ']' : '}');
		ts_text_append_char(out, 'r');
		put_size(out, number, 4);
		return put_items(out, p + 1, p[1] == '[' ? ']' : '}');
	} else {
		p = put_value(out, p + 1);
		ts_text_append_char(out, 'r');
	}
	put_size(out, number, 4);
	return p;
}

static const char *put_value(struct ts_text *out, const char *p)
{
	const char *end;

	switch (*p) {
	case '{':
		ts_text_append_char(out, '}');
		return put_items(out, p, '}');
	case '[':
		ts_text_append_char(out, ']');
		return put_items(out, p, ']');
	case '\'':
		end = strchr(p + 1, '\'');
		ts_text_append_char(out, 'X');
		put_size(out, (uint64_t)(end - p - 1), 4);
		ts_text_append(out, p + 1, (size_t)(end - p - 1));
		return end + 1;
	case 't':
		ts_text_append_char(out, '\x88');
		return p + 4;
	case 'n':
		ts_text_append_char(out, 'N');
		return p + 4;
	case '&':
	case '*':
		return put_memo(out, p);
	default:
		return put_number(out, p);
	}
}

static struct ts_text pickle_of(const char *json)
{
	struct ts_text out = { 0 };

	ts_text_append_str(&out, "\x80\x02");
	put_value(&out, json);
	ts_text_append_char(&out, '.');
	TS_CHECK(!out.failed);
	return out;
}

/* ---- imports ---- */

static void import_pickle(struct imported *imported, const void *data, size_t bytes, size_t step)
{
	struct ts_import_options options = { .size = sizeof(options), .format = "torch-memory" };
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = ts_import_memory(writer, "s.pickle", data, bytes, step, step ? 16 : 0,
					&options, &imported->result, &imported->err);
	imported->reader = finish_and_read(writer, path);
}

static void check_bytes(int line, const void *data, size_t bytes, const char *table,
			const char *expected, const char *note)
{
	for (size_t step = 0; step < 8; step += 7) {
		struct imported imported;

		import_pickle(&imported, data, bytes, step);
		if (imported.rc)
			ts_test_fail(__FILE__, line, "%s", imported.err.message);
		check_table(__FILE__, line, imported.reader, table, expected);
		ts_test_check_str(__FILE__, line, "note", imported.result.note, note);
		release_imported(&imported);
	}
}

static void check_snapshot(int line, const char *json, const char *table, const char *expected,
			   const char *note)
{
	struct ts_text pickle = pickle_of(json);

	check_bytes(line, pickle.data, pickle.length, table, expected, note);
	ts_text_release(&pickle);
}

static void check_refused(int line, const void *data, size_t bytes, const char *message)
{
	for (size_t step = 0; step < 8; step += 7) {
		struct imported imported;

		import_pickle(&imported, data, bytes, step);
		ts_test_check_int(__FILE__, line, "code", imported.rc, TS_EFORMAT);
		if (!strstr(imported.err.message, message))
			ts_test_fail(__FILE__, line, "\"%s\" is not in: %s", message,
				     imported.err.message);
		ts_test_check_int(__FILE__, line, "events", (int64_t)imported.result.events, 0);
		release_imported(&imported);
	}
}

#define CHECK_SNAPSHOT(json, table, expected) check_snapshot(__LINE__, json, table, expected, "")
#define CHECK_REFUSED(bytes, message) check_refused(__LINE__, bytes, sizeof(bytes) - 1, message)

#define ENTRY(action, addr, size, time, rest) \
	"{'action':'" action "','addr':" addr ",'size':" size ",'stream':7,'time_us':" time rest "}"
#define TRACE(entries, segments) "{'segments':[" segments "],'device_traces':[[" entries "]]}"
#define SEGMENT(address, size, rest, blocks)                                                   \
	"{'device':0,'address':" address ",'total_size':" size ",'stream':7,'blocks':[" blocks \
	"]" rest "}"
#define BLOCK(address, size, requested, state, rest)                                            \
	"{'address':" address ",'size':" size ",'requested_size':" requested ",'state':'" state \
	"'" rest "}"
/* An allocation has kind 0, which is not shown. */
#define TAKEN ""
#define GIVEN "'kind':'free',"
#define ROW(start, kind, address, bytes, pool)                                                  \
	"{'start':" start ",'device':1,'stream':1," kind "'address':" address ",'bytes':" bytes \
	",'pool':'" pool "'"

/* ---- entries ---- */

TS_TEST(what_is_taken_and_given_back)
{
	CHECK_SNAPSHOT(
		TRACE(ENTRY("alloc", "4096", "100", "5", "") "," ENTRY(
			      "alloc", "8192", "50", "6",
			      ",'user_metadata':'fwd','compile_context':'N/A'") "," ENTRY("free_requested",
											  "4096",
											  "100",
											  "7",
											  "") "," ENTRY("free_completed",
													"4096",
													"100",
													"9",
													",'user_metadata':''"),
		      ""),
		"allocation",
		ROW("5000", TAKEN, "4096", "100", "torch") ",'total_bytes':100,'reserved_bytes':0}\n" ROW(
			"6000", TAKEN, "8192", "50",
			"torch") ",'total_bytes':150,'reserved_bytes':0,'args':{'user_metadata':'fwd'}}\n" ROW("9000",
													       GIVEN,
													       "4096",
													       "100",
													       "torch") ",'total_bytes':50,'reserved_bytes':0,'args':{'pending_ns':2000}}\n");
}

TS_TEST(requests_that_say_more)
{
	/* Another stack, one without completion, and two in a row. */
	const char *json = TRACE(
		ENTRY("alloc", "1", "10", "1", "") "," ENTRY("free_requested", "1", "10", "2", ",'frames':[{'filename':'a.py','line':3,'name':'f'}]") "," ENTRY(
			"free_completed", "1", "10", "3",
			"") "," ENTRY("free_requested", "2", "20", "4",
				      "") "," ENTRY("free_requested", "2", "20", "5", ""),
		"");

	CHECK_SNAPSHOT(
		json, "mark",
		"{'start':2000,'thread':1,'name':'free_requested','category':'torch_memory','stack':1,"
		"'args':{'device':0,'addr':1,'size':10,'stream':7}}\n"
		"{'start':4000,'thread':1,'name':'free_requested','category':'torch_memory',"
		"'args':{'device':0,'addr':2,'size':20,'stream':7}}\n"
		"{'start':5000,'thread':1,'name':'free_requested','category':'torch_memory',"
		"'args':{'device':0,'addr':2,'size':20,'stream':7}}\n");
	CHECK_SNAPSHOT(json, "frame", "{'name':'f','file':'a.py','line':3,'kind':'python'}\n");
}

TS_TEST(requests_with_other_arguments)
{
	/* Of as many: one with another text, one with another pool, one that says the same. */
	const char *json = TRACE(
		ENTRY("free_requested", "1", "10", "1", ",'user_metadata':'a'") "," ENTRY("free_completed", "1", "10", "2", ",'user_metadata':'b'") "," ENTRY(
			"free_requested", "2", "20", "3",
			",'pool_id':[1,2]") "," ENTRY("free_completed", "2", "20", "4",
						      ",'pool_id':[1,3]") "," ENTRY("free_requested",
										    "3", "30", "5",
										    ",'pool_id':[1,2]") "," ENTRY("free_completed",
														  "3",
														  "30",
														  "6",
														  ",'pool_id':[1,2]"),
		"");

	CHECK_SNAPSHOT(json, "mark",
		       "{'start':1000,'thread':1,'name':'free_requested','category':'torch_memory',"
		       "'args':{'device':0,'addr':1,'size':10,'stream':7,'user_metadata':'a'}}\n"
		       "{'start':3000,'thread':1,'name':'free_requested','category':'torch_memory',"
		       "'args':{'device':0,'addr':2,'size':20,'stream':7,'pool_id':[1,2]}}\n");
}

TS_TEST(a_wait_whose_beginning_is_not_told_has_no_length)
{
	check_snapshot(
		__LINE__,
		TRACE("{'action':'alloc','addr':1,'size':10},{'action':'free_requested','addr':1,'size':10},"
		      "{'action':'free_completed','addr':1,'size':10}",
		      ""),
		"allocation",
		"{'start':0,'device':1,'address':1,'bytes':10,'pool':'torch','total_bytes':10,'reserved_bytes':0}\n"
		"{'start':2,'device':1,'kind':'free','address':1,'bytes':10,'pool':'torch','total_bytes':0,'reserved_bytes':0}\n",
		"lost: 3 missing times (order used instead)");
}

TS_TEST(a_block_that_waits_is_in_use_where_nothing_was_given_back)
{
	CHECK_SNAPSHOT(
		TRACE(ENTRY("alloc", "1", "10", "1", ""),
		      SEGMENT("1", "100", "", BLOCK("50", "16", "12", "active_pending_free", ""))),
		"allocation",
		ROW("1000", TAKEN, "1", "100", "torch segments") ",'reserved_bytes':100,'args':{'before_recording':true}}\n" ROW(
			"1000", TAKEN, "50", "12",
			"torch") ",'total_bytes':12,'args':{'before_recording':true}}\n" ROW("1000",
											     TAKEN,
											     "1",
											     "10",
											     "torch") ",'total_bytes':22,'reserved_bytes':100}\n");
}

TS_TEST(requests_are_frees_where_completions_are_left_out)
{
	CHECK_SNAPSHOT(
		TRACE(ENTRY("alloc", "1", "10", "1", "") "," ENTRY("free_requested", "1", "10", "2",
								   ""),
		      SEGMENT("1", "100", "", BLOCK("1", "16", "10", "active_pending_free", ""))),
		"allocation",
		"{'start':1000,'device':1,'stream':1,'address':1,'bytes':100,'pool':'torch segments','reserved_bytes':100,'args':{'before_recording':true}}\n" ROW(
			"1000", TAKEN, "1", "10",
			"torch") ",'total_bytes':10,'reserved_bytes':100}\n" ROW("2000", GIVEN, "1",
										 "10",
										 "torch") ",'total_bytes':0,'reserved_bytes':100}\n");
}

TS_TEST(other_actions_are_marks)
{
	CHECK_SNAPSHOT(
		TRACE("{'action':'oom','device_free':77,'size':5,'stream':0,'time_us':2,'frames':[]},{'action':'snapshot','addr':0,'size':0,'stream':0,'time_us':3},"
		      "{'action':'user_defined','time_us':4,'list':[1,{'k':null}],'flag':true}",
		      ""),
		"mark",
		"{'start':2000,'thread':1,'name':'oom','category':'torch_memory','args':{'device':0,'size':5,'stream':0,'device_free':77}}\n"
		"{'start':3000,'thread':1,'name':'snapshot','category':'torch_memory','args':{'device':0,'addr':0,'size':0,'stream':0}}\n"
		"{'start':4000,'thread':1,'name':'user_defined','category':'torch_memory','args':{'device':0,'list':[1,{'k':null}],'flag':true}}\n");
}

TS_TEST(without_times_the_order_stands_for_them)
{
	check_snapshot(
		__LINE__,
		"{'segments':[],'device_traces':[[],[{'action':'alloc','addr':1,'size':10},{'action':'free_completed','addr':1,'size':10}]]}",
		"allocation",
		"{'start':0,'device':1,'address':1,'bytes':10,'pool':'torch','total_bytes':10,'reserved_bytes':0}\n"
		"{'start':1,'device':1,'kind':'free','address':1,'bytes':10,'pool':'torch','total_bytes':0,'reserved_bytes':0}\n",
		"lost: 2 missing times (order used instead)");
	check_snapshot(
		__LINE__, TRACE(ENTRY("alloc", "1", "2", "9223372036854775807", ""), ""), "loss",
		"{'start':0,'source':1,'what':'time','count':1,'reason':'missing time (order used instead)'}\n",
		"lost: 1 missing time (order used instead)");
	check_snapshot(
		__LINE__,
		TRACE("{'action':'alloc','addr':1,'time_us':1},5,{'addr':1,'time_us':1}", ""),
		"allocation", "", "lost: 3 entries without an action, address or size");
}

TS_TEST(times_that_go_back)
{
	check_snapshot(
		__LINE__,
		TRACE(ENTRY("alloc", "1", "10", "5", "") "," ENTRY("free_completed", "1", "10", "4",
								   ""),
		      ""),
		"allocation",
		ROW("5000", TAKEN, "1", "10", "torch") ",'total_bytes':10,'reserved_bytes':0}\n" ROW(
			"5000", GIVEN, "1", "10", "torch") ",'total_bytes':0,'reserved_bytes':0}\n",
		"lost: 1 time that goes backwards (time of the previous entry used)");
}

/* ---- earlier allocations ---- */

TS_TEST(blocks_from_before)
{
	/*
	 * One is freed, one is still allocated and has its stack, one is pending; requested, not
	 * rounded sizes.
	 */
	CHECK_SNAPSHOT(
		TRACE(ENTRY("free_completed", "4096", "100", "5", ""),
		      SEGMENT("4096", "2048", "",
			      "{'size':512,'state':'inactive'}," BLOCK("4608", "512", "500", "active_allocated", ",'frames':[{'filename':'?\?','line':0,'name':'at::empty'}]") ",{'size':512,'state':'active_pending_free'}," BLOCK(
				      "5632", "512", "1", "inactive", ""))),
		"allocation",
		ROW("5000", TAKEN, "4096", "100", "torch") ",'total_bytes':100,'args':{'before_recording':true}}\n" ROW("5000", TAKEN, "4096", "2048", "torch segments") ",'reserved_bytes':2048,'args':{'before_recording':true}}\n" ROW(
			"5000", TAKEN, "4608", "500",
			"torch") ",'total_bytes':600,'stack':1,'args':{'before_recording':true}}\n" ROW("5000",
													TAKEN,
													"5120",
													"512",
													"torch") ",'total_bytes':1112,'args':{'before_recording':true}}\n" ROW("5000",
																					       GIVEN,
																					       "4096",
																					       "100",
																					       "torch") ",'total_bytes':1012,'reserved_bytes':2048}\n");
	/* A list is the segments of an old snapshot. */
	CHECK_SNAPSHOT(
		"[" SEGMENT(
			"10", "30", "",
			"{'size':20,'state':'active_allocated','history':[{'addr':10,'real_size':15,'frames':[]}]}") "]",
		"allocation",
		ROW("0", TAKEN, "10", "30", "torch segments") ",'reserved_bytes':30,'args':{'before_recording':true}}\n" ROW(
			"0", TAKEN, "10", "15",
			"torch") ",'total_bytes':15,'args':{'before_recording':true}}\n");
}

TS_TEST(segments)
{
	/*
	 * Plain segments have addresses; of mapped ones 40 existed before: 60 at the end, 30 more,
	 * 10 less.
	 */
	CHECK_SNAPSHOT(
		TRACE(ENTRY("segment_alloc", "1", "5", "1", "") "," ENTRY(
			      "segment_map", "1000", "30", "2",
			      "") "," ENTRY("segment_unmap", "1000", "10", "3",
					    "") "," ENTRY("segment_free", "1", "5", "4", ""),
		      SEGMENT("900", "60", ",'is_expandable':true", "")),
		"allocation",
		"{'start':1000,'device':1,'bytes':40,'pool':'torch segments','reserved_bytes':40,'args':{'before_recording':true}}\n"
		"{'start':1000,'device':1,'stream':1,'address':1,'bytes':5,'pool':'torch segments','reserved_bytes':45}\n"
		"{'start':2000,'device':1,'stream':1,'bytes':30,'pool':'torch segments','reserved_bytes':75,'args':{'address':1000,'action':'segment_map'}}\n"
		"{'start':3000,'device':1,'stream':1,'kind':'free','bytes':10,'pool':'torch segments','reserved_bytes':65,'args':{'address':1000,'action':'segment_unmap'}}\n"
		"{'start':4000,'device':1,'stream':1,'kind':'free','address':1,'bytes':5,'pool':'torch segments','reserved_bytes':60}\n");
}

/* ---- stacks, settings, annotations ---- */

TS_TEST(stacks_are_made_once)
{
	const char *json = TRACE(
		"{'action':'alloc','addr':1,'size':1,'time_us':1,'frames':&1 [&2 {'filename':'a.py','line':1,'name':'in'},{'filename':'<string>','line':2,'name':'out'}]},"
		"{'action':'alloc','addr':2,'size':1,'time_us':2,'frames':*1},{'action':'alloc','addr':3,'size':1,'time_us':3,'frames':[*2]}",
		"");

	CHECK_SNAPSHOT(json, "frame",
		       "{'name':'in','file':'a.py','line':1,'kind':'python'}\n"
		       "{'name':'out','file':'<string>','line':2,'kind':'python'}\n");
	CHECK_SNAPSHOT(json, "stack", "{'frame':2}\n{'parent':1,'frame':1}\n{'frame':1}\n");
	CHECK_SNAPSHOT(
		json, "allocation",
		"{'start':1000,'device':1,'address':1,'bytes':1,'pool':'torch','total_bytes':1,'reserved_bytes':0,'stack':2}\n"
		"{'start':2000,'device':1,'address':2,'bytes':1,'pool':'torch','total_bytes':2,'reserved_bytes':0,'stack':2}\n"
		"{'start':3000,'device':1,'address':3,'bytes':1,'pool':'torch','total_bytes':3,'reserved_bytes':0,'stack':3}\n");
}

TS_TEST(settings)
{
	CHECK_SNAPSHOT(
		"{'segments':[],'device_traces':[],'allocator_settings':{'conf':'a','list':[1,true,null,-5]}}",
		"meta",
		"{'source':1,'key':'allocator_settings','value':{'conf':'a','list':[1,true,null,-5]}}\n");
}

#define NOTE(name, stage, time) \
	"{'name':'" name "','stage':'" stage "','device':0,'time_us':" time "}"

TS_TEST(annotations)
{
	const char *json = "{'segments':[],'device_traces':[],'external_annotations':[" NOTE(
		"a", "START",
		"1") "," NOTE("b", "START",
			      "2") "," NOTE("b", "END",
					    "3") "," NOTE("c", "START",
							  "4") "," NOTE("a", "END",
									"5") "," NOTE("x", "END",
										      "6") ",{'k':'v','device':0,'time_us':7}]}";

	CHECK_SNAPSHOT(
		json, "slice",
		"{'start':1000,'duration':4000,'thread':1,'name':'a','category':'torch_memory','kind':'async','id':1}\n"
		"{'start':2000,'duration':1000,'thread':1,'name':'b','category':'torch_memory'}\n"
		"{'start':4000,'duration':-1,'thread':1,'name':'c','category':'torch_memory'}\n");
	CHECK_SNAPSHOT(
		json, "mark",
		"{'start':6000,'thread':1,'name':'x','category':'torch_memory','args':{'stage':'END'}}\n"
		"{'start':7000,'thread':1,'name':'annotation','category':'torch_memory','args':{'k':'v'}}\n");
}

/* ---- pickle ---- */

/* The same value in opcodes of all protocols. */
TS_TEST(opcodes)
{
	static const char first[] =
		"(dp0\nS'device_traces'\np1\n(lp2\n(lp3\n(dp4\nVa\\u0063tion\np5\nS'al\\x6coc'\nsS'addr'\nI1\nsS'size'\nL20L\nsS'time_us'\nL3L\nsS'f'\nF0.5\nsS'b'\nI01\nsaas.";
	static const char last[] =
		"\x80\x05\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94\x8d\x0d\x00\x00\x00\x00\x00\x00\x00"
		"device_traces\x94]\x94]\x94}\x94(\x8c\x06"
		"action\x94U\x05"
		"alloc\x8c\x04"
		"addrM\x01\x00T\x04\x00\x00\x00sizeJ\x14\x00\x00\x00\x8c\x07time_us\x8b\x01\x00\x00\x00\x03\x8c\x01"
		"fG\x3f\xe0\x00\x00\x00\x00\x00\x00\x8c\x01"
		"b\x88N2"
		"00uaas.";
	const char *row =
		"{'start':3000,'device':1,'address':1,'bytes':20,'pool':'torch','total_bytes':20,'reserved_bytes':0,'args':{'f':0.5,'b':true}}\n";

	check_bytes(__LINE__, first, sizeof(first) - 1, "allocation", row, "");
	check_bytes(__LINE__, last, sizeof(last) - 1, "allocation", row, "");
}

TS_TEST(containers_as_arguments)
{
	static const char bytes[] =
		"\x80\x04}\x8c\x0d"
		"device_traces]]}(\x8c\x06"
		"action\x8c\x01"
		"x\x8c\x01"
		"a"
		"K\x01\x85\x8c\x01"
		"bK\x01K\x02\x86\x8c\x01"
		"cK\x01K\x02K\x03\x87\x8c\x01"
		"d(K\x04t\x8c\x01"
		"e)\x8c\x01"
		"f\x8f(K\x05\x90\x8c\x01g(K\x06\x91\x8c\x01hC\x02hi\x8c\x01i\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01\x8c\x01j\x8a\x00"
		"uaas.";

	check_bytes(
		__LINE__, bytes, sizeof(bytes) - 1, "mark",
		"{'start':0,'thread':1,'name':'x','category':'torch_memory','args':{'device':0,'a':[1],'b':[1,2],'c':[1,2,3],'d':[4],'e':[],'f':[5],'g':[6],'h':'hi','j':0}}\n",
		"lost: 1 missing time (order used instead), 1 value that is too large or of unknown type");
}

TS_TEST(nothing_is_run)
{
	CHECK_REFUSED("\x80\x02"
		      "cos\nsystem\nX\x02\x00\x00\x00ls\x85R.",
		      "byte 2: the pickle asks Python to import 'os.system'");
	CHECK_REFUSED("\x80\x04\x8c\x02os\x8c\x06system\x93.", "asks Python to import 'os.system'");
	CHECK_REFUSED("\x80\x02}R.", "asks Python to call a function");
	CHECK_REFUSED("\x80\x02}}b.", "asks Python to call a function");
	CHECK_REFUSED("(ios\nsystem\n.", "asks Python to import 'os.system'");
	CHECK_REFUSED("\x80\x02(}o.", "asks Python to call a function");
	CHECK_REFUSED("\x80\x02})\x81.", "asks Python to call a function");
	CHECK_REFUSED("\x80\x02\x82\x01.", "asks for a class by extension code");
	CHECK_REFUSED("\x80\x02Pid\n.", "an external object");
	CHECK_REFUSED("\x80\x05\x97.", "an external buffer");
	CHECK_REFUSED("\x80\x02}R.", "the file was rejected, and none of its code was run");
	/* Also after valid data. */
	CHECK_REFUSED("\x80\x02}(X\x08\x00\x00\x00segments]X\x01\x00\x00\x00"
		      "xcbuiltins\neval\n.",
		      "'builtins.eval'");
}

TS_TEST(not_a_snapshot)
{
	CHECK_REFUSED("\x80\x02K\x05.", "a pickle, but not a memory snapshot");
	CHECK_REFUSED("\x80\x02}X\x01\x00\x00\x00"
		      "aK\x01s.",
		      "as torch.cuda.memory._dump_snapshot() writes it");
	CHECK_REFUSED("\x80\x02].", "not a memory snapshot");
	CHECK_REFUSED("\x80\x06}.", "pickle protocol above 5");
	CHECK_REFUSED("\x80\x02\xff", "not a pickle opcode");
	CHECK_REFUSED("\x80\x02h\x05.", "never stored");
	CHECK_REFUSED("\x80\x02"
		      "a.",
		      "missing value");
	CHECK_REFUSED("\x80\x02"
		      "e.",
		      "missing mark");
	CHECK_REFUSED("\x80\x02}(K\x01u.", "key without a value");
	CHECK_REFUSED("\x80\x02K\x01(K\x02"
		      "e.",
		      "items without a list");
	CHECK_REFUSED("\x80\x02}}.", "exactly one value");
	CHECK_REFUSED("\x80\x02IK\n.", "not an integer");
	CHECK_REFUSED("\x80\x02Sabc\n.", "not a quoted string");
	CHECK_REFUSED("\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\x7f", "longer than 64 MiB");
	CHECK_REFUSED("\x80\x02X\xff\xff\xff\x03"
		      "abc",
		      "the file is truncated");
}

TS_TEST(content_behind_the_end)
{
	static const char bytes[] = "\x80\x02}X\x08\x00\x00\x00segments]s.more";

	check_bytes(
		__LINE__, bytes, sizeof(bytes) - 1, "loss",
		"{'start':0,'source':1,'what':'file','reason':'data after the end of the snapshot'}\n",
		"lost: the data after the end of the snapshot");
}

/* ---- hostile input ---- */

TS_TEST(what_stands_at_many_places_is_looked_at_once)
{
	/* An entry, the list of entries, a list that contains itself. */
	check_snapshot(
		__LINE__,
		"{'segments':[],'device_traces':&1 [&2 [&3 {'action':'alloc','addr':1,'size':1,'time_us':1},*3,*3],*2,*1]}",
		"allocation",
		"{'start':1000,'device':1,'address':1,'bytes':1,'pool':'torch','total_bytes':1,'reserved_bytes':0}\n",
		"lost: 3 duplicate entries, 3 entries without an action, address or size");
	/* As stacks, too. */
	check_snapshot(
		__LINE__,
		"{'segments':[],'device_traces':[[&3 {'action':'alloc','addr':1,'size':1,'time_us':1,'frames':&4 [*3,*4]}]]}",
		"stack", "{'frame':1}\n", "lost: 6 details of frames");
}

TS_TEST(doubled_and_doubled)
{
	/* 2^40 values, if expanded. */
	struct ts_text json = { 0 };
	struct ts_text pickle;

	ts_text_append_str(&json,
			   "{'segments':[],'device_traces':[[{'action':'x','time_us':1,'k':");
	for (int i = 0; i < 40; i++)
		ts_text_printf(&json, "[&%d ", i + 1);
	ts_text_append_str(&json, "[]");
	for (int i = 40; i > 0; i--)
		ts_text_printf(&json, ",*%d]", i);
	ts_text_append_str(&json, "}]]}");
	pickle = pickle_of(ts_text_cstr(&json));
	check_bytes(
		__LINE__, pickle.data, pickle.length, "mark",
		"{'start':1000,'thread':1,'name':'x','category':'torch_memory','args':{'device':0}}\n",
		"lost: 1 value that is too large or of unknown type");
	ts_text_release(&pickle);
	ts_text_release(&json);
}

TS_TEST(nested_deeply)
{
	struct ts_text pickle = { 0 };

	ts_text_append_str(&pickle, "\x80\x02}X\x08");
	ts_text_append(&pickle, "\0\0\0segments]sX\x01\0\0\0k", 19);
	for (int i = 0; i < 100000; i++)
		ts_text_append_char(&pickle, ']');
	for (int i = 1; i < 100000; i++)
		ts_text_append_char(&pickle, 'a');
	ts_text_append_str(&pickle, "s.");
	check_bytes(__LINE__, pickle.data, pickle.length, "meta", "",
		    "lost: 1 value that is too large or of unknown type");
	ts_text_release(&pickle);
}

/* ---- damaged input ---- */

#define COMPLETE                                                                                                     \
	TRACE(ENTRY("alloc", "1", "10", "1", ",'frames':[&1 {'filename':'a.py','line':1,'name':'f'},*1]") "," ENTRY( \
		      "alloc", "2", "10", "2",                                                                       \
		      ",'frames':[*1]") "," ENTRY("free_requested", "1", "10", "3",                                  \
						  "") "," ENTRY("free_completed", "1", "10", "3",                    \
								""),                                                 \
	      SEGMENT("1", "100", "", BLOCK("50", "16", "10", "active_allocated", "")))

TS_TEST(cut_anywhere)
{
	struct ts_text complete = pickle_of(COMPLETE);
	int64_t before = 0;

	for (size_t cut = 3; cut < complete.length; cut++) {
		struct imported imported;
		int64_t rows;

		import_pickle(&imported, complete.data, cut, cut % 9);
		TS_CHECK_INT(imported.rc, TS_EFORMAT);
		rows = (int64_t)ts_reader_rows(imported.reader, TS_TABLE_ALLOCATION);
		/* A request is a mark until its completion. */
		TS_CHECK(rows >= before);
		TS_CHECK(strstr(imported.err.message, "the file is truncated") != NULL);
		TS_CHECK(!rows == !strstr(imported.err.message, "everything before it was kept"));
		if (rows)
			TS_CHECK_STR(imported.result.note, "lost: the unread rest of the file");
		before = rows;
		release_imported(&imported);
	}
	TS_CHECK_INT(before, 5);
	ts_text_release(&complete);
}

TS_TEST(every_byte_changed)
{
	struct ts_text complete = pickle_of(COMPLETE);

	for (size_t at = 0; at < complete.length; at++) {
		for (unsigned int bit = at % 4; bit < 8; bit += 4) {
			struct imported imported;

			complete.data[at] = (char)(complete.data[at] ^ (1 << bit));
			import_pickle(&imported, complete.data, complete.length, bit);
			TS_CHECK(!imported.rc || imported.rc == TS_EFORMAT);
			TS_CHECK(!imported.rc || imported.err.message[0]);
			release_imported(&imported);
			complete.data[at] = (char)(complete.data[at] ^ (1 << bit));
		}
	}
	ts_text_release(&complete);
}

static int stop_at_once(void *context, uint64_t done, uint64_t total)
{
	return 1;
}

TS_TEST(stopped)
{
	struct ts_import_options options = { .size = sizeof(options), .progress = stop_at_once };
	struct ts_text complete = pickle_of(COMPLETE);
	struct ts_import_result result;
	struct ts_error err;
	char path[64];
	struct ts_writer *writer = open_writer(path);

	TS_CHECK_INT(ts_import_memory(writer, "s", complete.data, complete.length, 7, 16, &options,
				      &result, &err),
		     TS_ECANCELED);
	ts_reader_close(finish_and_read(writer, path));
	ts_text_release(&complete);
}

TS_TEST(probe)
{
	TS_CHECK(ts_torch_memory_probe("\x80\x02}", 3));
	TS_CHECK(ts_torch_memory_probe("\x80\x05\x95", 3));
	TS_CHECK(!ts_torch_memory_probe("\x80\x01}", 3));
	TS_CHECK(!ts_torch_memory_probe("\x80", 1));
	TS_CHECK(ts_torch_memory_probe("(dp0\nVsegments\np1\n", 18));
	TS_CHECK(!ts_torch_memory_probe("(dp0\nVother\np1\n", 15));
	TS_CHECK(ts_torch_memory_probe("}q\0(X\x08\0\0\0segments", 17));
	TS_CHECK(!ts_torch_memory_probe("{\"segments\":[]}", 15));
}
