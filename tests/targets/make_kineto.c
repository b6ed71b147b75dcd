/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_kineto EVENTS [SEED]: prints a PyTorch profiler trace of that many events, as fast as the
 * pipe accepts it. Names, arguments, times and flows imitate a training loop: operators on two
 * threads, launches, and their kernels and copies on two streams. For tests of memory use, kills
 * and speed.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const operators[] = {
	"aten::linear",
	"aten::addmm",
	"aten::relu",
	"aten::conv2d",
	"aten::batch_norm",
	"aten::add_",
	"aten::mul",
	"aten::copy_",
	"aten::to",
	"aten::empty",
	"aten::transpose",
	"aten::as_strided",
	"aten::native_layer_norm",
	"aten::softmax",
	"aten::bmm",
	"autograd::engine::evaluate_function: AddmmBackward0",
};
static const char *const kernels[] = {
	"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
	"ampere_sgemm_128x64_tn",
	"void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_args)",
	"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
};

static uint64_t state;

/* xorshift64*: the same events for the same seed on every machine. */
static uint64_t next_random(uint64_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * UINT64_C(2685821657736338717) >> 33) % below;
}

/* ns as microseconds with three digits, as the profiler writes them. */
#define US "%" PRIu64 ".%03" PRIu64
#define US_OF(ns) (ns) / 1000, (ns) % 1000

static void put_operator(uint64_t time, uint64_t number)
{
	uint64_t rows = UINT64_C(1) << next_random(8), duration = 800 + next_random(30000);

	printf("  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 4242, \"tid\": %d,\n"
	       "    \"ts\": " US ", \"dur\": " US
	       ",\n    \"args\": {\n      \"External id\": %" PRIu64
	       ",\"Record function id\": 0, \"Sequence number\": %" PRIu64
	       ", \"Fwd thread id\": 0, "
	       "\"Input Dims\": [[%" PRIu64
	       ", 1024], [1024, 4096], []], \"Input type\": [\"float\", \"float\", \"Scalar\"]\n    }\n  },\n",
	       operators[next_random(16)], number % 3 ? 4242 : 4250, US_OF(time), US_OF(duration),
	       number, number / 2, rows);
}

/* A launch, its kernel or copy, and the two ends of the arrow between them: 2 events. */
static void put_launch(uint64_t time, uint64_t number)
{
	uint64_t start = time + 4000 + next_random(9000), duration = 1500 + next_random(90000);
	int copy = next_random(8) == 0, stream = number % 5 ? 7 : 20;

	printf("  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"%s\", \"pid\": 4242, \"tid\": 4242,\n"
	       "    \"ts\": " US ", \"dur\": " US
	       ",\n    \"args\": {\n      \"External id\": %" PRIu64
	       ", \"cbid\": %d, \"correlation\": %" PRIu64 "\n    }\n  },\n",
	       copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", US_OF(time),
	       US_OF(3000 + next_random(4000)), number, copy ? 41 : 211, number);
	printf("  {\n    \"ph\": \"s\", \"id\": %" PRIu64
	       ", \"pid\": 4242, \"tid\": 4242, \"ts\": " US
	       ",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n",
	       number, US_OF(time));
	if (copy)
		printf("  {\n    \"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pinned -> Device)\", \"pid\": 0, \"tid\": %d,\n"
		       "    \"ts\": " US ", \"dur\": " US
		       ",\n    \"args\": {\n      \"External id\": %" PRIu64
		       ", \"device\": 0, \"context\": 1, \"stream\": %d, \"correlation\": %" PRIu64
		       ", \"bytes\": %" PRIu64 ", \"memory bandwidth (GB/s)\": 12.5\n    }\n  },\n",
		       stream, US_OF(start), US_OF(duration), number, stream, number,
		       (1 + next_random(64)) * 4096);
	else
		printf("  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d,\n"
		       "    \"ts\": " US ", \"dur\": " US
		       ",\n    \"args\": {\n      \"External id\": %" PRIu64
		       ", \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": %d, \"correlation\": %" PRIu64
		       ", \"registers per thread\": 32, \"shared memory\": 0, \"blocks per SM\": %" PRIu64
		       ".5, \"warps per SM\": %" PRIu64 ".25, \"grid\": [%" PRIu64
		       ", 1, 1], \"block\": [128, 1, 1], "
		       "\"est. achieved occupancy %%\": %" PRIu64 "\n    }\n  },\n",
		       kernels[next_random(4)], stream, US_OF(start), US_OF(duration), number,
		       stream, number, next_random(20), next_random(60), 1 + next_random(512),
		       next_random(101));
	printf("  {\n    \"ph\": \"f\", \"id\": %" PRIu64 ", \"pid\": 0, \"tid\": %d, \"ts\": " US
	       ",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  },\n",
	       number, stream, US_OF(start));
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	uint64_t time = 0;

	state = argc > 2 ? strtoull(argv[2], NULL, 10) * 2 + 1 : 1;
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	fputs("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\"id\": 0, \"name\": \"Example Accelerator\", \"totalGlobalMem\": 85899345920}\n  ],\n"
	      "  \"baseTimeNanoseconds\": 1700000000000000000,\n  \"displayTimeUnit\": \"ms\",\n  \"traceEvents\": [\n",
	      stdout);
	for (uint64_t done = 0; done < events;) {
		time += 200 + next_random(6000);
		if (done + 2 <= events && next_random(5) < 2) {
			put_launch(time, done);
			done += 2;
		} else {
			put_operator(time, done);
			done++;
		}
	}
	/* The last one has no trailing comma; metadata is not an event. */
	fputs("  {\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": 4242, \"tid\": 0,\n"
	      "    \"args\": {\n      \"name\": \"python\"\n    }\n  }\n  ],\n  \"traceName\": \"made\"\n}\n",
	      stdout);
	return fflush(stdout) || ferror(stdout);
}
