/* SPDX-License-Identifier: Apache-2.0 */
/* Names of C++ and Rust, where this machine has a libstdc++ to ask. */
#include "capture/native/demangle.h"

#include <stdlib.h>
#include <string.h>

#include "unit/runner.h"

static void check_name(const char *name, const char *expected)
{
	char *plain = ts_demangle(name);

	if (!plain && expected)
		ts_test_skip("no libstdc++.so.6 here");
	TS_CHECK_STR(plain, expected);
	free(plain);
}

TS_TEST(names_of_cxx)
{
	check_name("_ZN3foo3barEv", "foo::bar()");
	check_name("_ZN2at6native3addERKNS_6TensorES3_",
		   "at::native::add(at::Tensor const&, at::Tensor const&)");
}

TS_TEST(names_of_rust_have_no_hash)
{
	check_name("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	check_name("_ZN4core3fmt5write17h0123456789abcdegE", "core::fmt::write::h0123456789abcdeg");
}

TS_TEST(other_names_are_left)
{
	static char long_name[10000] = "_Z";

	check_name("main", NULL);
	check_name("", NULL);
	check_name("_Z", NULL);
	check_name("_ZN3foo", NULL);
	memset(long_name + 2, 'A', sizeof(long_name) - 3);
	check_name(long_name, NULL);
}

/* Names of kernels are wanted whole: some are longer than anybody wants to see in a stack. */
TS_TEST(long_names_are_left_or_whole)
{
	static char name[8192];
	char *plain;

	memcpy(name, "_Z", 2);
	memcpy(name + 2, "7000", 4);
	memset(name + 6, 'k', 7000);
	memcpy(name + 7006, "i", 2);
	check_name(name, NULL);
	plain = ts_demangle_long(name);
	if (!plain)
		ts_test_skip("no libstdc++.so.6 here");
	TS_CHECK_INT(strlen(plain), 7000 + strlen("(int)"));
	free(plain);
}
