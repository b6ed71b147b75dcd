/* SPDX-License-Identifier: Apache-2.0 */
/* Names shortened to a column: what goes first, and that different names stay different. */
#include <stdlib.h>
#include <string.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "cli/common/fit_names.h"
#include "cli/common/text_table.h"

#include "unit/runner.h"

#define ADD "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
#define MUL "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_mul<float>, "
#define REST \
	"std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"

static struct ts_arena arena;

/* One name by itself; valid until the next call. */
static const char *fit(const char *name, size_t width)
{
	ts_arena_release(&arena);
	TS_CHECK_INT(ts_fit_names(&arena, &name, 1, width), TS_OK);
	return name;
}

static void fit_two(const char *names[2], const char *first, const char *second, size_t width)
{
	names[0] = first;
	names[1] = second;
	ts_arena_release(&arena);
	TS_CHECK_INT(ts_fit_names(&arena, names, 2, width), TS_OK);
}

TS_TEST(a_name_that_fits_stays)
{
	TS_CHECK_STR(fit("void at::f<4>(int)", 18), "void at::f<4>(int)");
	TS_CHECK_STR(fit("", 6), "");
}

TS_TEST(what_says_least_goes_first)
{
	TS_CHECK_STR(fit(ADD REST, 76),
		     "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, array<char*, 3ul>>");
	TS_CHECK_STR(fit(ADD REST, 64),
		     "vectorized_elementwise_kernel<4, CUDAFunctor_add<…>, array<…>>");
	TS_CHECK_STR(fit(ADD REST, 40), "vectorized_elementwise_kernel<4, CUDAFu…");
	TS_CHECK_STR(fit("at::(anonymous namespace)::f(int) const", 10), "f");
	TS_CHECK_STR(fit("f(a::b)::{lambda(a::c)#1}::operator()() const", 44),
		     "f(b)::{lambda(c)#1}::operator()");
	/* Not a call, and nothing to collapse. */
	TS_CHECK_STR(fit("Memcpy HtoD (Pageable -> Device)", 20), "Memcpy HtoD (Pageab…");
}

/* A hostile name must not take time in proportion to the square of its depth. */
TS_TEST(a_name_of_brackets)
{
	enum { DEPTH = 400000 };
	char *name = malloc(DEPTH + 1);

	TS_CHECK(name);
	memset(name, '(', DEPTH);
	name[0] = 'f';
	name[DEPTH] = '\0';
	TS_CHECK_STR(fit(name, 8), "f((((((…");
	free(name);
}

TS_TEST(brackets_in_names_of_python_are_no_arguments)
{
	const char *names[2];

	TS_CHECK_STR(fit("matmul.<locals>.<listcomp>", 20), "matmul.<listcomp>");
	TS_CHECK_STR(fit("matmul.<locals>.<listcomp>.<listcomp>", 20), "matmul.<list…stcomp>");
	fit_two(names, "matmul.<locals>.<listcomp>.<listcomp>", "matmul.<locals>.<listcomp>", 20);
	TS_CHECK_STR(names[0], "matmul.<list…stcomp>");
	TS_CHECK_STR(names[1], "matmul.<listcomp>");
}

TS_TEST(both_ends_of_a_word_and_the_end_of_a_path)
{
	TS_CHECK_STR(fit("nvjet_sm90_tst_32x64_64x16_4x2_h_bz_NTN", 20), "nvjet_sm90_t…_bz_NTN");
	TS_CHECK_STR(fit("/usr/lib/python3/threading.py", 16), "…n3/threading.py");
}

TS_TEST(different_names_read_differently)
{
	const char *names[2];

	fit_two(names, ADD REST, MUL REST, 40);
	TS_CHECK_STR(names[0], "vectorized_eleme…CUDAFunctor_add<float>…");
	TS_CHECK_STR(names[1], "vectorized_eleme…CUDAFunctor_mul<float>…");
	/* They differ in what is otherwise left out. */
	fit_two(names, "void a::kernel_of_some_length<1>(int)",
		"void b::kernel_of_some_length<1>(int)", 20);
	TS_CHECK(strcmp(names[0], names[1]) != 0);
	fit_two(names, "kernel_of_some_length<1>(int)", "kernel_of_some_length<1>(long)", 20);
	TS_CHECK(strcmp(names[0], names[1]) != 0);
	/* Equal names stay equal. */
	fit_two(names, ADD REST, ADD REST, 40);
	TS_CHECK_STR(names[0], names[1]);
}

/* Names that differ in one place or another, repeat, are broken, or are not ASCII. */
static const char *const nasty[] = {
	(ADD REST),
	(MUL REST),
	("void at::native::vectorized_elementwise_kernel<2, at::native::CUDAFunctor_add<float>, " REST),
	("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<half>, " REST),
	"at::native::vectorized_elementwise_kernel",
	"void void void",
	"<<<<<<<<<<<<<<<<<<<<<<<<",
	">>>>>>>>>>>>>>>>>>>>>>>>",
	"))))))))))))))((((((((((",
	"((((((((((((((((((((((((",
	"a::b::c::d::e::f::g::h::i::",
	"::::::::::::::::::::::::",
	"(anonymous namespace)::(anonymous namespace)::",
	"a -> b -> c -> d -> e -> f",
	"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 1",
	"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 2",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbc",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbcd",
	"/usr/lib/python3/threading.py",
	"/usr/lib/python2/threading.py",
	"aten::mm",
	"aten::mm",
	"",
};

TS_TEST(every_width)
{
	size_t count = TS_ARRAY_SIZE(nasty);

	for (size_t width = TS_FIT_NAMES_MINIMUM; width <= 200; width++) {
		const char *names[TS_ARRAY_SIZE(nasty)];

		memcpy(names, nasty, sizeof(nasty));
		ts_arena_release(&arena);
		TS_CHECK_INT(ts_fit_names(&arena, names, count, width), TS_OK);
		for (size_t i = 0; i < count; i++) {
			TS_CHECK(ts_text_shown_width(names[i], strlen(names[i])) <= width);
			for (size_t k = 0; k < i; k++)
				TS_CHECK(!strcmp(names[i], names[k]) ==
					 !strcmp(nasty[i], nasty[k]));
		}
	}
	ts_arena_release(&arena);
}

TS_TEST(no_names)
{
	TS_CHECK_INT(ts_fit_names(&arena, NULL, 0, 10), TS_OK);
}
