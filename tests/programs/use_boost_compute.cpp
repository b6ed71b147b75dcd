// SPDX-License-Identifier: Apache-2.0
// Boost.Compute: algorithms on device vectors agree with those of the standard library. Exit code
// 1: a result is wrong.
#define CL_TARGET_OPENCL_VERSION 120
#include <boost/compute/algorithm/accumulate.hpp>
#include <boost/compute/algorithm/count_if.hpp>
#include <boost/compute/algorithm/inclusive_scan.hpp>
#include <boost/compute/algorithm/sort.hpp>
#include <boost/compute/algorithm/transform.hpp>
#include <boost/compute/container/vector.hpp>
#include <boost/compute/functional/math.hpp>
#include <boost/compute/lambda.hpp>
#include <boost/compute/system.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace compute = boost::compute;

static void check(const char *what, bool is_right)
{
	std::printf("%s: %s\n", what, is_right ? "equal" : "differs");
	if (!is_right)
		std::exit(1);
}

int main()
{
	compute::device device = compute::system::default_device();
	compute::context context(device);
	compute::command_queue queue(context, device);
	std::vector<int> numbers(1500), found(1500), expected;
	std::vector<float> roots(1500);

	for (std::size_t i = 0; i < numbers.size(); i++)
		numbers[i] = int(i * 7919 % 1009);
	compute::vector<int> on_device(numbers.begin(), numbers.end(), queue);
	compute::vector<int> scanned(numbers.size(), context);
	compute::vector<float> floats(numbers.begin(), numbers.end(), queue);

	check("sum", compute::accumulate(on_device.begin(), on_device.end(), 0, queue) ==
			     std::accumulate(numbers.begin(), numbers.end(), 0));
	using compute::lambda::_1;
	check("count", compute::count_if(on_device.begin(), on_device.end(), _1 > 500, queue) ==
			       std::size_t(std::count_if(numbers.begin(), numbers.end(),
							 [](int n) { return n > 500; })));

	expected = numbers;
	std::partial_sum(numbers.begin(), numbers.end(), expected.begin());
	compute::inclusive_scan(on_device.begin(), on_device.end(), scanned.begin(), queue);
	compute::copy(scanned.begin(), scanned.end(), found.begin(), queue);
	check("scan", found == expected);

	compute::transform(floats.begin(), floats.end(), floats.begin(),
			   compute::sqrt<float>(), queue);
	compute::copy(floats.begin(), floats.end(), roots.begin(), queue);
	check("roots", std::fabs(roots[700] - std::sqrt(float(numbers[700]))) < 1e-4);

	compute::sort(on_device.begin(), on_device.end(), queue);
	compute::copy(on_device.begin(), on_device.end(), found.begin(), queue);
	expected = numbers;
	std::sort(expected.begin(), expected.end());
	check("sort", found == expected);
	return 0;
}
