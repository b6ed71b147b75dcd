/* SPDX-License-Identifier: Apache-2.0 */
/* Names without arguments. */
#include <string.h>

#include "model/short_name.h"
#include "unit/runner.h"

static void check_short(int line, const char *name, const char *expected)
{
	char buffer[256];
	size_t length = ts_short_name(name, strlen(name), buffer);

	if (length != strlen(expected) || memcmp(buffer, expected, length) != 0)
		ts_test_fail(__FILE__, line, "'%s' became '%.*s'", name, (int)length, buffer);
}
#define CHECK_SHORT(name, expected) check_short(__LINE__, name, expected)

TS_TEST(short_names)
{
	CHECK_SHORT("aten::mm", "aten::mm");
	CHECK_SHORT("void a::b<c<d>, (e)1>::f<4>(g const*, int)", "a::b::f");
	CHECK_SHORT("void (anonymous namespace)::k<1>(int)", "(anonymous namespace)::k");
	CHECK_SHORT("f(decltype(x->y))", "f");
	CHECK_SHORT("graph_0x7f00aB12_run", "graph_0_run");
	CHECK_SHORT("a)b>c", "a)b>c");
	/* Nothing would be left, so the name stays. */
	CHECK_SHORT("<lambda>", "<lambda>");
	CHECK_SHORT("", "");
	CHECK_SHORT("void ", "void ");
	CHECK_SHORT("never<closed", "never");
}
