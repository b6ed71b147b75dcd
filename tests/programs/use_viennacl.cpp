// SPDX-License-Identifier: Apache-2.0
// ViennaCL: vectors, a dense product and a sparse system solved with conjugate gradients, compared
// with the host. Exit code 1: a result is wrong.
#define VIENNACL_WITH_OPENCL 1
#include <viennacl/compressed_matrix.hpp>
#include <viennacl/linalg/cg.hpp>
#include <viennacl/linalg/inner_prod.hpp>
#include <viennacl/linalg/norm_2.hpp>
#include <viennacl/linalg/prod.hpp>
#include <viennacl/matrix.hpp>
#include <viennacl/vector.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

static void check(const char *what, double found, double expected)
{
	bool is_right = std::fabs(found - expected) <= 1e-3 * (1 + std::fabs(expected));

	std::printf("%s: %g, expected %g\n", what, found, expected);
	if (!is_right)
		std::exit(1);
}

static void vectors()
{
	const std::size_t count = 1000;
	std::vector<float> a(count), b(count), sum(count);
	viennacl::vector<float> x(count), y(count), z(count);
	double product = 0, square = 0;

	for (std::size_t i = 0; i < count; i++) {
		a[i] = float(i % 13) / 13;
		b[i] = float(i % 7) - 3;
		product += double(a[i]) * b[i];
		square += double(b[i]) * b[i];
	}
	viennacl::copy(a, x);
	viennacl::copy(b, y);
	z = 2.0f * x + y;
	viennacl::copy(z, sum);
	check("sum", sum[500], 2 * a[500] + b[500]);
	check("inner product", float(viennacl::linalg::inner_prod(x, y)), product);
	check("norm", float(viennacl::linalg::norm_2(y)), std::sqrt(square));
}

static void matrices()
{
	const std::size_t size = 40;
	std::vector<std::vector<float>> a(size, std::vector<float>(size)), c = a;
	viennacl::matrix<float> x(size, size), y(size, size);
	double expected = 0;

	for (std::size_t i = 0; i < size * size; i++)
		a[i / size][i % size] = float(i % 11) / 11;
	for (std::size_t k = 0; k < size; k++)
		expected += double(a[3][k]) * a[k][5];
	viennacl::copy(a, x);
	y = viennacl::linalg::prod(x, x);
	viennacl::copy(y, c);
	check("matrix product", c[3][5], expected);
}

/* The second difference: the solution for a constant right side is a parabola. */
static void sparse_system()
{
	const unsigned size = 64;
	std::vector<std::map<unsigned, float>> rows(size);
	std::vector<float> right(size, 1), solution(size);
	viennacl::compressed_matrix<float> matrix(size, size);
	viennacl::vector<float> b(size), x;

	for (unsigned i = 0; i < size; i++) {
		rows[i][i] = 2;
		if (i > 0)
			rows[i][i - 1] = -1;
		if (i + 1 < size)
			rows[i][i + 1] = -1;
	}
	viennacl::copy(rows, matrix);
	viennacl::copy(right, b);
	x = viennacl::linalg::solve(matrix, b, viennacl::linalg::cg_tag(1e-6, 200));
	viennacl::copy(x, solution);
	check("solution", solution[31], 32 * (size + 1 - 32) / 2.0);
}

int main()
{
	vectors();
	matrices();
	sparse_system();
	return 0;
}
