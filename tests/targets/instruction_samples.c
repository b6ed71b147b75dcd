/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits two kernels of a cubin, their launches from two call sites, and samples of their
 * instructions. There is no device: all values are synthetic, so that tests know them.
 *
 *	instruction_samples CUBIN [serialized|nocode] [kill]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/sample.h>

#define KERNEL "_Z5scaleIfEvPT_PKS0_i"
#define MODULE "cubin:00000000c0ffee00"

static struct ts_emit_site calls = TS_CALL_SITE("cuLaunchKernel", "cuda_driver");
static struct ts_emit_site scale = TS_GPU_OP_SITE(KERNEL, "kernel");
static struct ts_emit_site scoreboard = TS_SAMPLE_SITE("pc", "long_scoreboard");
static struct ts_emit_site waiting = TS_SAMPLE_SITE("pc", "wait");

static bool is_serialized;

/* ---- launches ---- */

static void __attribute__((noinline)) launch(uint64_t correlation, int64_t device_ns)
{
	uint64_t start = ts_now();
	struct ts_accelerator_call call = { .size = sizeof(call),
					    .stack = ts_accelerator_stack(),
					    .start = start,
					    .correlation = correlation };
	struct ts_gpu_op op = { .size = sizeof(op),
				.kind = 1,
				.correlation = correlation,
				.queued = TS_UNKNOWN,
				.submitted = TS_UNKNOWN,
				.start = (int64_t)correlation * 1000000,
				.end = (int64_t)correlation * 1000000 + device_ns,
				.bytes = TS_UNKNOWN };

	ts_accelerator_call_with(&calls, &call);
	ts_accelerator_op(&scale, &op);
}

static void __attribute__((noinline)) launch_often(void)
{
	/* One call site, regardless of loop optimizations. */
	for (volatile uint64_t i = 1; i <= 3; i++)
		launch(i, 100000);
	__asm__ volatile("");
}

static void __attribute__((noinline)) launch_once(void)
{
	launch(4, 100000);
	__asm__ volatile("");
}

/* ---- samples ---- */

static void sample(struct ts_emit_site *site, uint32_t code, uint32_t offset, int64_t count,
		   uint32_t correlation)
{
	uint64_t frame = ts_code_frame(code, offset);
	struct ts_sample sample = { .size = sizeof(sample),
				    .tid = is_serialized ? correlation : 0,
				    .state = TS_SAMPLE_ON_DEVICE,
				    .weight_ns = count,
				    .frames = &frame,
				    .count = 1 };

	ts_sample(site, &sample, NULL, 0);
}

static void sample_all(void)
{
	uint32_t code = ts_code(TS_CODE_DEVICE, KERNEL, MODULE, 0);
	uint32_t plain = ts_code(TS_CODE_DEVICE, "plain", MODULE, 0);

	sample(&scoreboard, code, 0xd0, 600, 1);
	sample(&waiting, code, 0xd0, 200, 1);
	sample(&waiting, code, 0x100, 150, 4);
	sample(&scoreboard, code, 0x100, 20, 2);
	sample(&waiting, code, 0x190, 30, 4);
	sample(&waiting, plain, 0xa0, 7, 0);
}

/* ---- code ---- */

static int store_code(const char *path)
{
	static char image[1 << 20];
	FILE *file = fopen(path, "rb");
	size_t bytes;

	if (!file)
		return 1;
	bytes = fread(image, 1, sizeof(image), file);
	fclose(file);
	return ts_accelerator_module(MODULE, image, bytes) ? 0 : 1;
}

static bool has_argument(int argc, char **argv, const char *argument)
{
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], argument) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	is_serialized = has_argument(argc, argv, "serialized");
	ts_accelerator_clock(0, ts_now(), 0, 1000, "test");
	launch_often();
	launch_once();
	sample_all();
	if (!has_argument(argc, argv, "nocode") && store_code(argv[1]))
		puts("the code was not stored");
	if (has_argument(argc, argv, "kill"))
		raise(SIGKILL);
	return 0;
}
