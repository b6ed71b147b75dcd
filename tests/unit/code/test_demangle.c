/* SPDX-License-Identifier: Apache-2.0 */
/* C++ and Rust names, if this machine has a libstdc++. */
#include "code/demangle.h"

#include <stdio.h>
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

/*
 * Kernel names are kept in full: some are longer than a stack would show. Here 21 times one type of
 * 500 letters.
 */
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

/* "_", "0_", ... "Z_", "10_" */
static void put_reference(char *name, size_t bytes, unsigned int number)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t length = strlen(name);

	if (number == 0)
		snprintf(name + length, bytes - length, "S_");
	else if (number <= 36)
		snprintf(name + length, bytes - length, "S%c_", digits[number - 1]);
	else
		snprintf(name + length, bytes - length, "S%c%c_", digits[(number - 1) / 36],
			 digits[(number - 1) % 36]);
}

/*
 * B<A, A>, then each time B of the previous one, twice. In full, 400 bytes would expand beyond any
 * memory.
 */
TS_TEST(names_that_double_are_left)
{
	for (unsigned int links = 8; links <= 60; links += 4) {
		char name[1000] = "_Z1f1BI1AS0_E";
		char *plain;

		for (unsigned int i = 0; i < links; i++) {
			strncat(name, "S_I", sizeof(name) - strlen(name) - 1);
			put_reference(name, sizeof(name), i + 2);
			put_reference(name, sizeof(name), i + 2);
			strncat(name, "E", sizeof(name) - strlen(name) - 1);
		}
		plain = ts_demangle_long(name);
		if (!plain && links == 8)
			ts_test_skip("no libstdc++.so.6 here");
		TS_CHECK((plain != NULL) == (links <= 8 || (plain && strlen(plain) <= 65536)));
		if (links >= 20)
			TS_CHECK(!plain);
		free(plain);
	}
}

/*
 * The same with parameters: each template takes the previous one as an argument, and shows it
 * twice.
 */
TS_TEST(names_that_double_by_parameters_are_left)
{
	char name[2000] = "_Z1gI";
	unsigned int levels = 24;

	for (unsigned int i = 0; i < levels; i++)
		strncat(name, "L_Z1gI", sizeof(name) - strlen(name) - 1);
	strncat(name, "1AEvT_T_", sizeof(name) - strlen(name) - 1);
	for (unsigned int i = 0; i < levels; i++)
		strncat(name, "EEvT_T_", sizeof(name) - strlen(name) - 1);
	check_name(name, NULL);
}

/* libstdc++ 12 does not return from this one. */
TS_TEST(names_without_end_are_left)
{
	check_name(
		"_ZN4llvm15GraphWriterBaseIXsrU3fooNS_18BlockFrequencyInfoENS_1cvS3_GraphWriterIS2_"
		"EEED2Ev",
		NULL);
}

/* With lambdas, packs, values and references to all of them. */
TS_TEST(names_of_kernels)
{
	check_name(
		"_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_16gelu_kernel_cudaERNS_"
		"18TensorIteratorBaseEENKUlvE_clEvENKUlvE0_clEvEUlfE_St5arrayIPcLm2EEEEviT0_T1_",
		"void at::native::vectorized_elementwise_kernel<4, "
		"at::native::gelu_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::operator()() "
		"const::{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, "
		"2ul> >(int, at::native::gelu_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::"
		"operator()() const::{lambda()#2}::operator()() const::{lambda(float)#1}, "
		"std::array<char*, 2ul>)");
	check_name("_Z3runIJ1A1BS1_EEvDpRKT_", "void run<A, B, B>(A const&, B const&, B const&)");
}
