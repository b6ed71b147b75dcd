/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that are not compiled, and rejected build options. */
#include "tracesmith_config.h"

#include "unit/runner.h"

#ifdef TS_HAVE_OPENCL

#include "replay/targets/opencl/opencl_source.h"

static bool includes(const char *source)
{
	return ts_opencl_source_includes(source, strlen(source));
}

TS_TEST(plain_source_does_not_include)
{
	TS_CHECK(!includes(""));
	TS_CHECK(!includes("kernel void f(global int *a) { a[0] = 1; }\n"));
	TS_CHECK(!includes("#define include 3\n#pragma once\n#if 1\n#endif\n"));
	TS_CHECK(!includes("// #include <a.h>\n"));
	TS_CHECK(!includes("/* \n#include <a.h>\n*/ kernel void f() {}"));
	TS_CHECK(!includes("constant char *s = \"\\\"\n#x include\";"));
	TS_CHECK(!includes("constant char c = '\"'; int include;\n#define a '#'\n"));
	TS_CHECK(!includes("#includes \"a.h\"\n"));
	TS_CHECK(!includes("a #include <b.h>\n"));
	TS_CHECK(!includes("/* never closed #include"));
}

TS_TEST(includes_are_found_however_spelled)
{
	TS_CHECK(includes("#include <a.h>\n"));
	TS_CHECK(includes("  \t#  include \"/etc/passwd\""));
	TS_CHECK(includes("int a;\r\n#include \"b\"\r\n"));
	TS_CHECK(includes("int a;\r#include \"b\"\r"));
	TS_CHECK(includes("/* c */ # /* d */ include MACRO\n"));
	TS_CHECK(includes("#in\\\nclude <a.h>\n"));
	TS_CHECK(includes("\\\n#\\\r\ninclude <a.h>\n"));
	TS_CHECK(includes("#inc\\  \t\nlude <a.h>\n"));
	TS_CHECK(includes("\?\?=include <a.h>\n"));
	TS_CHECK(includes("#inc\?\?/\nlude <a.h>\n"));
	TS_CHECK(includes("%:include <a.h>\n"));
	TS_CHECK(includes("#if 0\n#include <a.h>\n#endif\n"));
	TS_CHECK(includes("#import <a.h>\n"));
	TS_CHECK(includes("#include_next <a.h>\n"));
	TS_CHECK(includes("#embed \"a\"\n"));
	TS_CHECK(includes("// comment \\\n goes on\n#include <a>\n"));
	TS_CHECK(includes("char *s = \"never closed\n#include <a>\n"));
	/* Text after a NUL byte counts, too. */
	TS_CHECK(ts_opencl_source_includes("int a;\0\n#include <a>", 21));
}

static void check_options(const char *options, const char *kept, const char *left_out)
{
	TS_SCOPED(ts_text) a = { 0 }, b = { 0 };

	ts_opencl_options_clean(options, &a, &b);
	TS_CHECK_STR(ts_text_cstr(&a), kept);
	TS_CHECK_STR(ts_text_cstr(&b), left_out);
}

TS_TEST(options_that_pass)
{
	check_options(NULL, "", "");
	check_options("", "", "");
	check_options("  -DN=4   -D M=\"a b\" -UX -cl-std=CL2.0\t-cl-fast-relaxed-math ",
		      "-DN=4 -D M=\"a b\" -UX -cl-std=CL2.0 -cl-fast-relaxed-math", "");
	check_options("-w -Werror -g -O3 -cl-nv-maxrregcount=32 -nv-verbose",
		      "-w -Werror -g -O3 -cl-nv-maxrregcount=32 -nv-verbose", "");
	check_options("-D PATH=/usr/x -ffast-math", "-D PATH=/usr/x -ffast-math", "");
	check_options("-D", "-D", "");
}

TS_TEST(options_that_might_name_files)
{
	check_options("-I/usr/include -I . -D A", "-D A", "-I/usr/include -I .");
	check_options("-include /etc/passwd -isystem x -iquote y", "",
		      "-include /etc/passwd -isystem x -iquote y");
	check_options("@file -DA @\"b c\"", "-DA", "@file @\"b c\"");
	check_options("-Xclang -load -fplugin=x.so -fmodule-map-file=y", "",
		      "-Xclang -load -fplugin=x.so -fmodule-map-file=y");
	check_options("-o /tmp/x -save-temps -MF z -Wl,-rpath=x -cl-x=/y --sysroot=/z", "",
		      "-o /tmp/x -save-temps -MF z -Wl,-rpath=x -cl-x=/y --sysroot=/z");
	check_options("\"-I/x y\" '-include' -\\I/z", "", "\"-I/x y\" '-include' -\\I/z");
}

#else

TS_TEST(no_opencl)
{
	ts_test_skip("this build has no OpenCL");
}

#endif
