/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL C that a replay compiles, and what it refuses because it might reach files. */
#include "code/local/opencl_c.h"

#include <stdlib.h>
#include <string.h>

#include "base/local/macros.h"
#include "unit/runner.h"

static char normal[4096];

/* The reason, or NULL; the result is in `normal`. */
static const char *normalize_bytes(const char *source, size_t bytes)
{
	/* Exactly as large as promised, so that sanitizers see more. */
	char *copy = malloc(bytes ? bytes : 1);
	size_t length = 0;
	const char *refused = ts_opencl_c_normalize(source, bytes, copy, &length);

	TS_CHECK(length <= bytes && bytes < sizeof(normal));
	memcpy(normal, copy, length);
	normal[length] = 0;
	free(copy);
	return refused;
}

static const char *normalize(const char *source)
{
	return normalize_bytes(source, strlen(source));
}

static void check_kept(const char *source, const char *expected)
{
	const char *refused = normalize(source);

	TS_CHECK_STR(refused ? refused : "", "");
	TS_CHECK_STR(normal, expected);
}

static void check_same(const char *source)
{
	check_kept(source, source);
}

static void check_refused(const char *source, const char *why)
{
	const char *refused = normalize(source);

	TS_CHECK_STR(refused ? refused : "", why);
}

TS_TEST(plain_source_stays)
{
	check_same("");
	check_same("kernel void f(global int *a) { a[0] = a[1] % 3 ? 0x1p-3f : .5e+3; }\n");
	check_same("#define include 3\n#pragma once\n#if 1\n#elif X\n#endif\n#\n");
	check_same("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma unroll 4\n");
	check_same("#pragma clang loop unroll(full)\n#pragma GCC diagnostic ignored \"-Wx\"\n");
	check_same("#define CAT(a, b) a##_##b\n#define TEXT(x) #x\n%:define OTHER 1\n");
	check_same("_Pragma(\"unroll 4\") for (;;) ;\n");
	check_same("constant char *s = \"/* // \\\" # \xc3\xa9\", c = '\"';\n");
	check_same("#error you can't\n#if 0\nit's\n#endif\n");
	check_same("int n = b + '0'; char e = u8'a';\n");
	check_same("asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(lane));\n");
}

TS_TEST(comments_and_splices_go)
{
	check_kept("a // #include <a.h>\nb", "a \nb");
	check_kept("/* \n#include <a.h>\n*/ kernel\nx", "  kernel\n\n\nx");
	check_kept("/* never closed #include", " ");
	check_kept("// spliced \\\n#include <a>\nx", "\n\nx");
	check_kept("#de\\\nfine A /* b\n */ 1\r\nint\\  \n x;\r", "#define A   1\n\n\nint x;\n\n");
	check_kept("a /\\\n* c *\\\n/ b\n", "a   b\n\n\n");
	check_kept("\xef\xbb\xbfint a;\n\v\f", "int a;\n  ");
	TS_CHECK(!normalize_bytes("int a;\n\0", 9));
	TS_CHECK_STR(normal, "int a;\n");
	/* A name of a file in a line's number is only for messages. */
	check_kept("# 5 \"/a\" 1\n#line 7 \"/b\"\n", "# 5       \n#line 7     \n");
}

TS_TEST(includes_are_refused_however_spelled)
{
	static const char *const sources[] = {
		"#include <a.h>\n",
		"  \t#  include \"/etc/passwd\"",
		"int a;\r\n#include \"b\"\r\n",
		"int a;\r#include \"b\"\r",
		"/* c */ # /* d */ include MACRO\n",
		"#in\\\nclude <a.h>\n",
		"\\\n#\\\r\ninclude <a.h>\n",
		"#inc\\  \t\nlude <a.h>\n",
		"%:include <a.h>\n",
		"%\\\n:include <a.h>\n",
		"#if 0\n#include <a.h>\n#endif\n",
		"#import <a.h>\n",
		"#include_next <a.h>\n",
		"#embed \"a\"\n",
		"// comment \\\n goes on\n#include <a>\n",
		"char *s = \"never closed\n#include <a>\n",
		"\xef\xbb\xbf#include <a>\n",
		"F(\n#include <a>\n)\n",
		"/**/#include <a>\n",
		"a /* \n */ b\n#include <a>\n",
		"#if A(</*>)\n#endif */\n#include <a>\n",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(sources); i++)
		check_refused(sources[i], "includes files");
	TS_CHECK_STR(normalize_bytes("int a;\0\n#include <a>", 20), "has control characters");
}

/* The compiler gets the result: it cannot see a header's name where this saw a comment. */
TS_TEST(a_name_that_looks_like_a_comment)
{
	check_refused("#if __has_include(</*>)\n#endif\n#include <a>\n/* */", "may ask for files");
	check_kept("#if A(</*>)\n#endif\n#include <a>\n/* */", "#if A(< ");
}

TS_TEST(other_ways_to_files)
{
	static const char files[] = "may ask for files";

	check_refused("#if defined(__has_include)\n", files);
	check_refused("#if __has_\\\ninclude_next(<a>)\n", files);
	check_refused("#define A __has_embed\n", files);
	check_refused("import <a>;\n", files);
	check_refused("#pragma GCC dependency \"/a\"\n", "has a #pragma that may name files");
	check_refused("#pragma push_macro(\"asm\")\n", "has a #pragma that may name files");
	check_refused("#pragma comment(lib, \"/a\")\n", "has a #pragma that may name files");
	check_refused("#pragma\n", "has a #pragma that may name files");
	check_refused("_Pragma(\"GCC dependency \\\"/a\\\"\")", "uses _Pragma");
	check_refused("#define P(x) _Pragma(#x)\n", "uses _Pragma");
	check_refused("#define _Pragma(x) x\n", "defines _Pragma or asm");
	check_refused("#undef __asm__\n", "defines _Pragma or asm");
	check_refused("#line F\n", "has a #line without a number");
	check_refused("#ident \"a\"\n", "has an unknown directive");
	check_refused("#includes \"a.h\"\n", "has an unknown directive");
	check_refused("##include <a>\n", "has an unknown directive");
}

/* Where compilers differ in what they see. */
TS_TEST(ambiguous_source)
{
	static const char characters[] =
		"has characters that C does not use outside of strings and comments";

	check_refused("\?\?=include <a.h>\n", "uses trigraphs");
	check_refused("#inc\?\?/\nlude <a.h>\n", "uses trigraphs");
	check_refused("?\\\n?=include <a.h>\n", "uses trigraphs");
	check_refused("// \?\?/\n#include <a>\n", "uses trigraphs");
	check_refused("R\"(\n#include <a>\n)\"\n", "has raw strings");
	check_refused("int a = 1'0 + '\"' /* \n", "has an apostrophe after a number");
	check_refused("int a = 1e+'0'\n", "has an apostrophe after a number");
	check_refused("it's /* a comment?\n", "has an unclosed literal");
	check_refused("\"\\", "has a line that ends with a backslash");
	check_refused("\"\\\\\n  \nx", "has a line that ends with a backslash");
	check_refused("\xc2\xa0#include <a>\n", characters);
	check_refused("#\xe2\x80\xa8include <a>\n", "has an unknown directive");
	check_refused("\\u00a0#include <a>\n", characters);
	check_refused("@import a;\n", characters);
	check_refused("\x1a#include <a>\n", "has control characters");
}
