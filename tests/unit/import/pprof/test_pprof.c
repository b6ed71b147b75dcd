/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof profiles, built field by field: types, locations, labels, any order; rejected and damaged
 * files.
 */
#include "base/proto.h"
#include "unit/import/import_support.h"

/* A profile and its texts. */
struct profile {
	struct ts_text out;
	const char *texts[64];
	size_t text_count;
};

static void begin(struct profile *p)
{
	memset(p, 0, sizeof(*p));
	p->texts[p->text_count++] = "";
}

static uint64_t text(struct profile *p, const char *string)
{
	for (size_t i = 0; i < p->text_count; i++)
		if (!strcmp(p->texts[i], string))
			return i;
	TS_CHECK(p->text_count < TS_ARRAY_SIZE(p->texts));
	p->texts[p->text_count] = string;
	return p->text_count++;
}

static void put_texts(struct profile *p)
{
	for (size_t i = 0; i < p->text_count; i++)
		ts_proto_put_bytes(&p->out, 6, p->texts[i], strlen(p->texts[i]));
}

static void put_type(struct profile *p, uint32_t field, const char *type, const char *unit)
{
	size_t open = ts_proto_open(&p->out, field);

	ts_proto_put_uint(&p->out, 1, text(p, type));
	ts_proto_put_uint(&p->out, 2, text(p, unit));
	ts_proto_close(&p->out, open);
}

static void put_packed(struct profile *p, uint32_t field, const int64_t *values, size_t count)
{
	size_t open = ts_proto_open(&p->out, field);

	for (size_t i = 0; i < count; i++)
		ts_proto_put_varint(&p->out, (uint64_t)values[i]);
	ts_proto_close(&p->out, open);
}

static void put_label(struct profile *p, const char *key, const char *string, int64_t number,
		      const char *unit)
{
	size_t open = ts_proto_open(&p->out, 3);

	ts_proto_put_uint(&p->out, 1, text(p, key));
	if (string)
		ts_proto_put_uint(&p->out, 2, text(p, string));
	else
		ts_proto_put_int(&p->out, 3, number);
	if (unit)
		ts_proto_put_uint(&p->out, 4, text(p, unit));
	ts_proto_close(&p->out, open);
}

static void put_mapping(struct profile *p)
{
	size_t open = ts_proto_open(&p->out, 3);

	ts_proto_put_uint(&p->out, 1, 1);
	ts_proto_put_uint(&p->out, 2, 0x1000);
	ts_proto_put_uint(&p->out, 3, 0x9000);
	ts_proto_put_uint(&p->out, 4, 0x40);
	ts_proto_put_uint(&p->out, 5, text(p, "/bin/prog"));
	ts_proto_put_uint(&p->out, 6, text(p, "00ff"));
	ts_proto_close(&p->out, open);
}

/* A location whose lines are functions first, first + 1 ... */
static void put_location(struct profile *p, uint64_t id, uint64_t mapping, uint64_t address,
			 uint64_t first, size_t lines)
{
	size_t open = ts_proto_open(&p->out, 4);

	ts_proto_put_uint(&p->out, 1, id);
	ts_proto_put_uint(&p->out, 2, mapping);
	ts_proto_put_uint(&p->out, 3, address);
	for (size_t i = 0; i < lines; i++) {
		size_t line = ts_proto_open(&p->out, 4);

		ts_proto_put_uint(&p->out, 1, first + i);
		ts_proto_put_uint(&p->out, 2, 10 * (first + i));
		ts_proto_close(&p->out, line);
	}
	ts_proto_close(&p->out, open);
}

static void put_function(struct profile *p, uint64_t id, const char *name, const char *file)
{
	size_t open = ts_proto_open(&p->out, 5);

	ts_proto_put_uint(&p->out, 1, id);
	ts_proto_put_uint(&p->out, 2, text(p, name));
	ts_proto_put_uint(&p->out, 4, text(p, file));
	ts_proto_close(&p->out, open);
}

#define BIG_ID 0xfedcba9876543210u

static void put_samples(struct profile *p)
{
	static const int64_t deep[] = { 1, (int64_t)BIG_ID }, values[] = { 3, 30 };
	static const int64_t other[] = { 1, -10 };
	size_t open = ts_proto_open(&p->out, 2);

	put_packed(p, 1, deep, 2);
	put_packed(p, 2, values, 2);
	put_label(p, "request", "a b", 0, NULL);
	put_label(p, "size", NULL, -64, "bytes");
	ts_proto_close(&p->out, open);
	open = ts_proto_open(&p->out, 2);
	/* Not packed: the older form. */
	ts_proto_put_uint(&p->out, 1, 3);
	ts_proto_put_int(&p->out, 2, other[0]);
	ts_proto_put_int(&p->out, 2, other[1]);
	put_label(p, "thread", "worker", 0, NULL);
	put_label(p, "tid", NULL, 9, NULL);
	put_label(p, "pid", "7", 0, NULL);
	ts_proto_close(&p->out, open);
}

static void put_code(struct profile *p)
{
	put_mapping(p);
	put_location(p, 1, 1, 0x1234, 1, 2);
	put_location(p, BIG_ID, 1, 0x2000, 3, 1);
	put_location(p, 3, 0, 0, 4, 2);
	put_function(p, 1, "inlined", "a.c");
	put_function(p, 2, "outer", "a.c");
	put_function(p, 3, "main", "b.c");
	put_function(p, 4, "inner", "w.py");
	put_function(p, 5, "work", "w.py");
}

static void put_facts(struct profile *p)
{
	ts_proto_put_uint(&p->out, 7, text(p, "drop"));
	ts_proto_put_int(&p->out, 9, 1700000000000000000);
	ts_proto_put_int(&p->out, 10, 5000);
	put_type(p, 11, "cpu", "microseconds");
	ts_proto_put_int(&p->out, 12, 10);
	ts_proto_put_uint(&p->out, 13, text(p, "said"));
}

static void make_cpu(struct profile *p)
{
	begin(p);
	put_type(p, 1, "samples", "count");
	put_type(p, 1, "cpu", "microseconds");
	put_samples(p);
	put_code(p);
	put_facts(p);
	put_texts(p);
	TS_CHECK(!p->out.failed);
}

static void import_profile(struct imported *imported, const char *data, size_t bytes,
			   bool in_pieces)
{
	struct ts_import_options options = { .size = sizeof(options), .format = "pprof" };
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = ts_import_memory(writer, "test.pb", data, bytes, in_pieces ? 7 : 0,
					in_pieces ? 16 : 0, &options, &imported->result,
					&imported->err);
	imported->reader = finish_and_read(writer, path);
}

static void check_profile(const char *file, int line, const struct ts_text *profile,
			  const char *table, const char *expected)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_profile(&imported, profile->data, profile->length, in_pieces);
		if (imported.rc)
			ts_test_fail(file, line, "%s", imported.err.message);
		check_table(file, line, imported.reader, table, expected);
		release_imported(&imported);
	}
}

#define CHECK_PROFILE(p, table, expected) \
	check_profile(__FILE__, __LINE__, &(p)->out, table, expected)

#define SAMPLES                                                                                    \
	"{'start':1700000000000000000,'thread':1,'stack':2,'weight':30000,"                        \
	"'name':'cpu/microseconds','args':{'request':'a b','size/bytes':-64,'samples/count':3}}\n" \
	"{'start':1700000000000000000,'thread':2,'stack':4,'weight':-10000,"                       \
	"'name':'cpu/microseconds','args':{'samples/count':1}}\n"

TS_TEST(a_profile)
{
	struct profile p;

	make_cpu(&p);
	CHECK_PROFILE(&p, "sample", SAMPLES);
	CHECK_PROFILE(&p, "process",
		      "{'id':1,'source':1,'name':'prog'}\n"
		      "{'id':2,'source':1,'pid':7,'name':'prog'}\n");
	CHECK_PROFILE(&p, "thread",
		      "{'id':1,'process':1}\n{'id':2,'process':2,'tid':9,'name':'worker'}\n");
	CHECK_PROFILE(&p, "mapping",
		      "{'process':1,'path':'/bin/prog','build_id':'00ff','address':4096,"
		      "'bytes':32768,'file_offset':64}\n");
	CHECK_PROFILE(&p, "clock_sync",
		      "{'clock':1,'time':1700000000000000000,'reference':1700000000000000000,"
		      "'method':'pprof time_nanos'}\n");
	CHECK_PROFILE(&p, "meta",
		      "{'source':1,'key':'period','value':10}\n"
		      "{'source':1,'key':'period_type','value':'cpu'}\n"
		      "{'source':1,'key':'period_unit','value':'microseconds'}\n"
		      "{'source':1,'key':'time_nanos','value':1700000000000000000}\n"
		      "{'source':1,'key':'duration_nanos','value':5000}\n"
		      "{'source':1,'key':'drop_frames','value':'drop'}\n"
		      "{'source':1,'key':'comment','value':'said'}\n");
	ts_text_release(&p.out);
}

TS_TEST(code_with_and_without_addresses)
{
	struct profile p;

	make_cpu(&p);
	CHECK_PROFILE(
		&p, "frame",
		"{'name':'main','file':'b.c','line':30,'mapping':1,'pc':4096,'kind':'native'}\n"
		"{'name':'inlined','file':'a.c','line':10,'mapping':1,'pc':564,'kind':'native'}\n"
		"{'name':'inner','file':'w.py','line':40,'kind':'python'}\n"
		"{'name':'work','file':'w.py','line':50,'kind':'python'}\n");
	CHECK_PROFILE(&p, "stack",
		      "{'frame':1}\n{'parent':1,'frame':2}\n{'frame':4}\n{'parent':3,'frame':3}\n");
	CHECK_PROFILE(&p, "symbol",
		      "{'frame':1,'name':'main','file':'b.c','line':30}\n"
		      "{'frame':2,'name':'inlined','file':'a.c','line':10}\n"
		      "{'frame':2,'depth':1,'name':'outer','file':'a.c','line':20}\n");
	ts_text_release(&p.out);
}

TS_TEST(any_order)
{
	struct profile p;

	/* Once to collect the texts, which then come first. */
	make_cpu(&p);
	ts_text_clear(&p.out);
	put_texts(&p);
	put_facts(&p);
	put_code(&p);
	put_samples(&p);
	put_type(&p, 1, "samples", "count");
	put_type(&p, 1, "cpu", "microseconds");
	CHECK_PROFILE(&p, "sample", SAMPLES);
	ts_text_release(&p.out);
}

/* Selects the value that is the weight. */
TS_TEST(the_type_that_counts)
{
	static const struct {
		const char *types[3], *units[3], *wanted;
		const char *name;
		int64_t weight;
	} cases[] = {
		{ { "a", "b", "c" }, { "count", "bytes", "count" }, NULL, "c/count", 3 },
		{ { "a", "b", "c" }, { "count", "bytes", "count" }, "b", "b/bytes", 2 },
		{ { "a", "b", "c" }, { "count", "bytes", "count" }, "d", "c/count", 3 },
		{ { "a", "cpu", "c" },
		  { "count", "milliseconds", "count" },
		  NULL,
		  "cpu/milliseconds",
		  2000000 },
		{ { "cpu", "b", "wall" },
		  { "count", "bytes", "seconds" },
		  NULL,
		  "wall/seconds",
		  3000000000 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		static const int64_t values[] = { 1, 2, 3 };
		struct imported imported;
		struct profile p;
		struct ts_text out;
		char expected[128];
		size_t open;

		begin(&p);
		for (size_t j = 0; j < 3; j++)
			put_type(&p, 1, cases[i].types[j], cases[i].units[j]);
		open = ts_proto_open(&p.out, 2);
		put_packed(&p, 2, values, 3);
		ts_proto_close(&p.out, open);
		if (cases[i].wanted)
			ts_proto_put_uint(&p.out, 14, text(&p, cases[i].wanted));
		put_texts(&p);
		import_profile(&imported, p.out.data, p.out.length, false);
		TS_CHECK_INT(imported.rc, TS_OK);
		ts_text_init(&out);
		dump_table(imported.reader, &out, "sample");
		snprintf(expected, sizeof(expected), "'weight':%lld,'name':'%s'",
			 (long long)cases[i].weight, cases[i].name);
		if (!strstr(ts_text_cstr(&out), expected))
			ts_test_fail(__FILE__, __LINE__, "%s is not in %s", expected,
				     ts_text_cstr(&out));
		ts_text_release(&out);
		release_imported(&imported);
		ts_text_release(&p.out);
	}
}

TS_TEST(what_is_lost_is_counted)
{
	static const int64_t values[] = { 1, INT64_MAX }, nowhere[] = { 77, 78 };
	struct profile p;
	size_t open;

	begin(&p);
	put_type(&p, 1, "samples", "count");
	put_type(&p, 1, "cpu", "seconds");
	for (size_t i = 0; i < 2; i++) {
		open = ts_proto_open(&p.out, 2);
		put_packed(&p, 1, nowhere, 2);
		put_packed(&p, 2, values, i + 1);
		ts_proto_close(&p.out, open);
	}
	open = ts_proto_open(&p.out, 2);
	put_packed(&p, 1, nowhere, 2);
	put_packed(&p, 2, nowhere, 2);
	ts_proto_close(&p.out, open);
	put_texts(&p);
	CHECK_PROFILE(&p, "loss",
		      "{'start':0,'source':1,'what':'sample','count':1,"
		      "'reason':'sample with fewer values than the profile has types'}\n"
		      "{'start':0,'source':1,'what':'sample','count':1,"
		      "'reason':'sample whose time exceeds 64 bits'}\n"
		      "{'start':0,'source':1,'what':'frame','count':2,"
		      "'reason':'frame whose location is missing from the profile'}\n");
	ts_text_release(&p.out);
}

TS_TEST(what_a_sample_says_and_the_profile_does_not_know)
{
	static const int64_t values[] = { 5, 6, 7 };
	struct profile p;
	size_t open;

	begin(&p);
	put_type(&p, 1, "samples", "count");
	open = ts_proto_open(&p.out, 2);
	put_packed(&p, 2, values, 3);
	ts_proto_put_bytes(&p.out, 1, "\xff", 1);
	/* Field 1 is the key, 2 the text. */
	ts_proto_put_bytes(&p.out, 3, "\x08\x63\x18\x05", 4);
	ts_proto_put_bytes(&p.out, 3, "\x08\x01\x10\x63", 4);
	ts_proto_close(&p.out, open);
	put_texts(&p);
	CHECK_PROFILE(&p, "sample", "{'start':0,'thread':1,'weight':5,'name':'samples/count'}\n");
	CHECK_PROFILE(&p, "loss",
		      "{'start':0,'source':1,'what':'message','count':1,"
		      "'reason':'damaged message of the profile'}\n"
		      "{'start':0,'source':1,'what':'argument','count':2,"
		      "'reason':'label whose string is missing from the profile'}\n"
		      "{'start':0,'source':1,'what':'value','count':2,"
		      "'reason':'sample value without a type in the profile'}\n");
	ts_text_release(&p.out);
}

/* A few bytes of zstd can hold any number of locations. */
TS_TEST(a_stack_without_end)
{
	static int64_t deep[300000];
	const int64_t value = 1;
	struct imported imported;
	struct profile p;
	size_t open;

	for (size_t i = 0; i < TS_ARRAY_SIZE(deep); i++)
		deep[i] = 1;
	begin(&p);
	put_type(&p, 1, "samples", "count");
	open = ts_proto_open(&p.out, 2);
	put_packed(&p, 1, deep, TS_ARRAY_SIZE(deep));
	put_packed(&p, 2, &value, 1);
	ts_proto_close(&p.out, open);
	put_location(&p, 1, 0, 0, 1, 1);
	put_function(&p, 1, "f", "f.c");
	put_texts(&p);
	import_profile(&imported, p.out.data, p.out.length, false);
	TS_CHECK_INT(imported.rc, 0);
	TS_CHECK_STR(imported.result.note, "lost: 1 stack cut at 65,536 frames");
	TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_STACK), TS_STACK_MAX_DEPTH);
	release_imported(&imported);
	ts_text_release(&p.out);
}

TS_TEST(what_is_a_profile_and_what_is_not)
{
	struct profile p;
	struct ts_text out = { 0 };
	size_t open;

	make_cpu(&p);
	TS_CHECK(ts_pprof_probe(p.out.data, p.out.length));
	/* The beginning of a long one. */
	TS_CHECK(ts_pprof_probe(p.out.data, p.out.length / 2));
	TS_CHECK(!ts_perfetto_probe(p.out.data, p.out.length));
	ts_text_release(&p.out);
	/* A Perfetto packet: timestamp (8), sequence (10). */
	open = ts_proto_open(&out, 1);
	ts_proto_put_uint(&out, 8, 1000);
	ts_proto_put_uint(&out, 10, 1);
	ts_proto_close(&out, open);
	TS_CHECK(!ts_pprof_probe(out.data, out.length));
	/* One whose fields happen to be 1 and 2, as in a message of another kind. */
	ts_text_clear(&out);
	open = ts_proto_open(&out, 1);
	ts_proto_put_bytes(&out, 1, "a", 1);
	ts_proto_close(&out, open);
	TS_CHECK(!ts_pprof_probe(out.data, out.length));
	ts_text_release(&out);
	TS_CHECK(!ts_pprof_probe("", 0));
	TS_CHECK(!ts_pprof_probe("\n\n\n\n", 4));
	TS_CHECK(!ts_pprof_probe("{\"a\":1}", 7));
	TS_CHECK(!ts_pprof_probe("t 20849 15813.771392: 1 cycles:\n", 32));
}

TS_TEST(a_profile_that_breaks_off)
{
	struct profile p;

	/* Texts first: a profile without any says nothing. */
	make_cpu(&p);
	ts_text_clear(&p.out);
	put_type(&p, 1, "samples", "count");
	put_type(&p, 1, "cpu", "microseconds");
	put_texts(&p);
	put_code(&p);
	put_samples(&p);
	for (size_t cut = 0; cut <= p.out.length; cut++) {
		struct imported imported;

		import_profile(&imported, p.out.data, cut, cut & 1);
		TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
		TS_CHECK_INT(ts_reader_rows(imported.reader, TS_TABLE_SAMPLE),
			     imported.result.events);
		/* The last sample is shorter than this. */
		if (cut + 60 > p.out.length && cut < p.out.length && imported.rc) {
			TS_CHECK(strstr(imported.err.message, "is truncated") != NULL);
			TS_CHECK(ts_reader_rows(imported.reader, TS_TABLE_LOSS) > 0);
		}
		if (cut + 1 == p.out.length)
			TS_CHECK_INT(imported.result.events, 1);
		release_imported(&imported);
	}
	ts_text_release(&p.out);
}

TS_TEST(damaged_bytes)
{
	struct profile p;

	make_cpu(&p);
	for (size_t i = 0; i < p.out.length; i++) {
		static const unsigned char flips[] = { 0x80, 0xff, 0x01, 0x40 };
		struct imported imported;

		p.out.data[i] = (char)(p.out.data[i] ^ flips[i % sizeof(flips)]);
		import_profile(&imported, p.out.data, p.out.length, i & 1);
		TS_CHECK(imported.rc == TS_OK || imported.rc == TS_EFORMAT);
		release_imported(&imported);
		p.out.data[i] = (char)(p.out.data[i] ^ flips[i % sizeof(flips)]);
	}
	ts_text_release(&p.out);
}
