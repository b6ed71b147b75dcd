/* SPDX-License-Identifier: Apache-2.0 */
/* Build options that a compiler gets, and those that might name files. */
#include "tracesmith_config.h"

#include "unit/runner.h"

#ifdef TS_HAVE_OPENCL

#include "replay/targets/opencl/opencl_options.h"

static bool clean(const char *options, const char *kept, const char *left_out)
{
	TS_SCOPED(ts_text) a = { 0 }, b = { 0 };
	bool is_complete = ts_opencl_options_clean(options, &a, &b);

	TS_CHECK_STR(ts_text_cstr(&a), kept);
	TS_CHECK_STR(ts_text_cstr(&b), left_out);
	return is_complete;
}

TS_TEST(options_that_pass)
{
	TS_CHECK(clean(NULL, "-w", ""));
	TS_CHECK(clean("", "-w", ""));
	TS_CHECK(clean("  -DN=4   -D  M=\"a b\" -UX -cl-std=CL2.0\t-cl-fast-relaxed-math ",
		       "-w -DN=4 -D M=\"a b\" -UX -cl-std=CL2.0 -cl-fast-relaxed-math", ""));
	TS_CHECK(clean("-w -Werror -Wno-x -g -O3 -cl-nv-maxrregcount=32 -nv-verbose",
		       "-w -g -O3 -cl-nv-maxrregcount=32 -nv-verbose", ""));
	TS_CHECK(clean("-D PATH=/usr/x -ffast-math -DF(x)=((x)<<2) -DN=-1 -D A=\"1 - 2\"",
		       "-w -D PATH=/usr/x -ffast-math -DF(x)=((x)<<2) -DN=-1 -D A=\"1 - 2\"", ""));
}

TS_TEST(options_that_might_name_files)
{
	TS_CHECK(clean("-I/usr/include -I . -D A", "-w -D A", "-I/usr/include -I ."));
	TS_CHECK(clean("-include /etc/passwd -isystem x -iquote y", "-w",
		       "-include /etc/passwd -isystem x -iquote y"));
	TS_CHECK(clean("@file -DA @\"b c\"", "-w -DA", "@file @\"b c\""));
	TS_CHECK(clean("-Xclang -load -fplugin=x.so -fmodule-map-file=y -fmodules", "-w",
		       "-Xclang -load -fplugin=x.so -fmodule-map-file=y -fmodules"));
	TS_CHECK(clean("-o /tmp/x -save-temps -MF z -Wl,-rpath=x -cl-x=/y --sysroot=/z", "-w",
		       "-o /tmp/x -save-temps -MF z -Wl,-rpath=x -cl-x=/y --sysroot=/z"));
	TS_CHECK(clean("\"-I/x y\" '-include' -\\I/z", "-w", "\"-I/x y\" '-include' -\\I/z"));
	/* These write files. */
	TS_CHECK(clean("-ftime-trace -fsave-optimization-record -gsplit-dwarf -ftest-coverage",
		       "-w",
		       "-ftime-trace -fsave-optimization-record -gsplit-dwarf -ftest-coverage"));
}

/* A driver may split at every space, and may or may not remove quotes. */
TS_TEST(macros_that_are_left_out)
{
	static const char *const macros[] = {
		"-DA=\"x -I/etc\"",
		"-D \"A=x -include /etc/passwd\"",
		"-D -I/etc",
		"-D '-include'",
		"-D",
		"\"-DA=1\"",
		"-DA=\"x \\-include y\"",
		"-DA=\"x @file\"",
		"-D A=x\\ -I/etc",
		"-DA=__has_include(</etc/passwd>)",
		"-DA=__has\"\"_include",
		"-DA=__has\\_include",
		"-DA(x)=__has##x",
		"-DA=%:%:",
		"-DA=_Pragma(\"x\")",
		"-DA=__asm__",
		"-DA=/*",
		"-DA=\"1\n#include <a>\"",
		"-DA=\xc2\xa0",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(macros); i++)
		TS_CHECK(!clean(macros[i], "-w", macros[i]));
}

#else

TS_TEST(no_opencl)
{
	ts_test_skip("this build has no OpenCL");
}

#endif
