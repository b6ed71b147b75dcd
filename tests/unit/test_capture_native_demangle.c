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

/* Names of kernels are wanted whole: some are longer than anybody wants to see in a stack. Here 21 times one type of 500 letters. */
TS_TEST(long_names_are_left_or_whole)
{
	static char name[1024] = "_Z1f500";
	char *plain;

	memset(name + 7, 'k', 500);
	for (int i = 0; i < 20; i++)
		memcpy(name + 507 + i * 2, "S_", 2);
	check_name(name, NULL);
	plain = ts_demangle_long(name);
	if (!plain)
		ts_test_skip("no libstdc++.so.6 here");
	TS_CHECK_INT(strlen(plain), 21 * 500 + 20 * strlen(", ") + strlen("f()"));
	free(plain);
}
