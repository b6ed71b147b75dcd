/* SPDX-License-Identifier: Apache-2.0 */
/* Time of functions: own and total, recursion, intervals, order. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/top/top_functions.h"
#include "unit/runner.h"

/* A stack of functions, innermost first: "cba" is c, called by b, called by a. */
static void add(struct ts_top_functions *functions, const char *stack, int64_t weight_ns)
{
	ts_top_functions_begin(functions);
	for (size_t i = 0; stack[i]; i++) {
		const char name[] = { stack[i], '\0' };
		uint32_t number = ts_top_functions_intern(functions, name, "x.py", stack[i]);

		ts_top_functions_frame(functions, number, i == 0, weight_ns);
	}
}

/* Sorted by name. */
static const char *order(const struct ts_top_functions *functions, bool by_total, size_t limit)
{
	static char text[64];
	struct ts_top_function *list;
	size_t count = ts_top_functions_list(functions, by_total, limit, &list);

	for (size_t i = 0; i < count; i++)
		text[i] = list[i].name[0];
	text[count] = '\0';
	free(list);
	return text;
}

static struct ts_top_function get(const struct ts_top_functions *functions, const char *name)
{
	for (size_t i = 0; i < functions->count; i++) {
		if (!strcmp(functions->functions[i].name, name))
			return functions->functions[i];
	}
	return (struct ts_top_function){ .self_ns = -1 };
}

TS_TEST(own_and_total)
{
	struct ts_top_functions functions;

	ts_top_functions_init(&functions);
	add(&functions, "ba", 10);
	add(&functions, "cba", 20);
	add(&functions, "a", 3);
	ts_top_functions_turn(&functions);
	TS_CHECK_INT(get(&functions, "a").self_ns, 3);
	TS_CHECK_INT(get(&functions, "a").total_ns, 33);
	TS_CHECK_INT(get(&functions, "b").self_ns, 10);
	TS_CHECK_INT(get(&functions, "b").total_ns, 30);
	TS_CHECK_INT(get(&functions, "c").self_ns, 20);
	TS_CHECK_INT(get(&functions, "c").total_ns, 20);
	TS_CHECK_STR(order(&functions, false, 10), "cba");
	TS_CHECK_STR(order(&functions, true, 10), "abc");
	TS_CHECK_STR(order(&functions, true, 2), "ab");
	ts_top_functions_release(&functions);
}

TS_TEST(recursion_counts_once)
{
	struct ts_top_functions functions;

	ts_top_functions_init(&functions);
	add(&functions, "fgfgf", 7);
	add(&functions, "gff", 5);
	ts_top_functions_turn(&functions);
	TS_CHECK_INT(get(&functions, "f").self_ns, 7);
	TS_CHECK_INT(get(&functions, "f").total_ns, 12);
	TS_CHECK_INT(get(&functions, "g").self_ns, 5);
	TS_CHECK_INT(get(&functions, "g").total_ns, 12);
	ts_top_functions_release(&functions);
}

TS_TEST(intervals)
{
	struct ts_top_functions functions;

	ts_top_functions_init(&functions);
	add(&functions, "a", 100);
	ts_top_functions_turn(&functions);
	add(&functions, "b", 1);
	/* The current interval does not count yet. */
	TS_CHECK_STR(order(&functions, false, 10), "a");
	ts_top_functions_turn(&functions);
	TS_CHECK_INT(get(&functions, "a").recent_self_ns, 0);
	TS_CHECK_INT(get(&functions, "a").self_ns, 100);
	TS_CHECK_INT(get(&functions, "b").recent_total_ns, 1);
	/* Recent time sorts before earlier time. */
	TS_CHECK_STR(order(&functions, false, 10), "ba");
	ts_top_functions_clear(&functions);
	TS_CHECK_STR(order(&functions, false, 10), "");
	add(&functions, "b", 2);
	ts_top_functions_turn(&functions);
	TS_CHECK_INT(get(&functions, "b").self_ns, 2);
	ts_top_functions_release(&functions);
}

TS_TEST(names_are_kept_apart)
{
	struct ts_top_functions functions;
	uint32_t first, second, third;

	ts_top_functions_init(&functions);
	first = ts_top_functions_intern(&functions, "run", "a.py", 1);
	second = ts_top_functions_intern(&functions, "run", "a.py", 2);
	third = ts_top_functions_intern(&functions, "run", "b.py", 1);
	TS_CHECK(first != second && second != third && first != third);
	TS_CHECK_INT(ts_top_functions_intern(&functions, "run", "a.py", 2), second);
	TS_CHECK_STR(functions.functions[third].file, "b.py");
	TS_CHECK_STR(functions.functions[third].name, "run");
	/* An unknown number is ignored. */
	ts_top_functions_begin(&functions);
	ts_top_functions_frame(&functions, TS_TOP_NO_FUNCTION, true, 1);
	ts_top_functions_turn(&functions);
	TS_CHECK_STR(order(&functions, false, 10), "");
	ts_top_functions_release(&functions);
}
