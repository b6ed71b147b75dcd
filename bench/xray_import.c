/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an XRay log in FDR mode (version 5), as a program with several threads would: a random
 * walk through calls of 500 functions up to 24 deep, buffers of 16 KiB, occasional CPU changes.
 *
 *	xray_import FILE RECORDS [HZ]   RECORDS entries and exits; HZ of the TSC, default 2.9e9
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define DEPTH 24
#define FUNCTIONS 500
#define BUFFER_BYTES 16384

struct thread {
	uint32_t open[DEPTH];
	int depth;
	uint64_t tsc;
	uint16_t cpu;
};

static uint64_t state = 88172645463325252u;

/* xorshift64: the same file each time. */
static uint32_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

static size_t put_metadata(char *p, unsigned int kind, const void *data, size_t bytes)
{
	memset(p, 0, 16);
	p[0] = (char)(kind << 1 | 1);
	memcpy(p + 1, data, bytes);
	return 16;
}

static size_t put_cpu(char *p, struct thread *thread)
{
	char data[10];

	memcpy(data, &thread->cpu, 2);
	memcpy(data + 2, &thread->tsc, 8);
	return put_metadata(p, 2, data, sizeof(data));
}

static size_t put_function(char *p, struct thread *thread)
{
	uint32_t delta = 20 + next() % 400, word;

	if (thread->depth == 0 || (thread->depth < DEPTH && next() & 1)) {
		thread->open[thread->depth] = 1 + next() % FUNCTIONS;
		word = thread->open[thread->depth++] << 4;
	} else {
		word = thread->open[--thread->depth] << 4 | 1 << 1;
	}
	thread->tsc += delta;
	memcpy(p, &word, 4);
	memcpy(p + 4, &delta, 4);
	return 8;
}

/* Writes one buffer of a thread; returns its number of records. */
static uint64_t put_buffer(FILE *file, struct thread *thread, int number, uint64_t most)
{
	char buffer[BUFFER_BYTES], extents[16];
	int32_t tid = 1001 + number, pid = 1000;
	uint64_t seconds = thread->tsc / 1000000000, records = 0, bytes;
	int32_t rest = (int32_t)(thread->tsc % 1000000000 / 1000);
	char wall[12];
	size_t used = 0;

	memcpy(wall, &seconds, 8);
	memcpy(wall + 8, &rest, 4);
	used += put_metadata(buffer + used, 0, &tid, 4);
	used += put_metadata(buffer + used, 4, wall, sizeof(wall));
	used += put_metadata(buffer + used, 9, &pid, 4);
	used += put_cpu(buffer + used, thread);
	while (used + 24 <= BUFFER_BYTES && records < most) {
		if (next() % 512 == 0) {
			thread->cpu = (uint16_t)(next() % 64);
			used += put_cpu(buffer + used, thread);
		}
		used += put_function(buffer + used, thread);
		records++;
	}
	bytes = used;
	put_metadata(extents, 7, &bytes, 8);
	fwrite(extents, 1, sizeof(extents), file);
	fwrite(buffer, 1, used, file);
	return records;
}

int main(int argc, char **argv)
{
	struct thread threads[THREADS];
	uint64_t records = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t header[4] = { 5 | 1 << 16 | (uint64_t)3 << 32, 2900000000, BUFFER_BYTES, 0 };
	FILE *file = argc > 2 ? fopen(argv[1], "wb") : NULL;

	if (!file || !records) {
		fprintf(stderr, "usage: xray_import FILE RECORDS [HZ]\n");
		return 2;
	}
	if (argc > 3)
		header[1] = strtoull(argv[3], NULL, 10);
	memset(threads, 0, sizeof(threads));
	for (int i = 0; i < THREADS; i++)
		threads[i].tsc = 5000000000000 + (uint64_t)i * 1000;
	fwrite(header, 1, sizeof(header), file);
	for (int i = 0; records; i = (i + 1) % THREADS)
		records -= put_buffer(file, &threads[i], i, records);
	return fclose(file) ? 1 : 0;
}
