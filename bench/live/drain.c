/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain JOURNAL [--rounds N]: measures how fast a recorder drains rings into its journal, in events
 * per CPU second. The program is its own target: in rounds, it fills its rings and drains them;
 * only draining is measured. As a peer, it copies the same bytes unchanged from shared memory to a
 * file. Prints the best round as one JSON line. Uses private headers.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/emit.h>

#include "../target_process.h"

#include "live/area.h"
#include "live/journal.h"

/*
 * Less than a ring of 4 MiB holds; this many rounds fill 64 MiB of journal, which then starts
 * again.
 */
#define EVENTS 150000
#define COPY_BYTES (1 << 20)

static const char *live;

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- target ---- */

static void fill_rings(void)
{
	for (int64_t i = 0; i < EVENTS; i++)
		TS_INSTANT("token", "decode", TS_INT("n", i));
}

static struct ts_area *area;

static void open_area(int directory, const char *name)
{
	struct ts_error err;

	if (ts_area_open(&area, directory, name, true, &err))
		die(err.message);
}

/* ---- recorder ---- */

static int append(void *context, struct ts_block *block, const void *payload, struct ts_error *err)
{
	return ts_journal_append(*(struct ts_journal **)context, block, payload, err);
}

/* CPU seconds per event of one pass over the filled rings. */
static double take(struct ts_journal **journal, uint64_t *ret_bytes)
{
	struct ts_block_sink sink = { append, journal };
	struct ts_drain_result result;
	struct ts_error err;
	uint64_t events = 0;
	double start = cpu_seconds();

	*ret_bytes = 0;
	do {
		if (ts_area_drain(area, 0, &sink, &result, &err))
			die(err.message);
		events += result.events;
		*ret_bytes += result.bytes;
	} while (result.events);
	if (events < EVENTS)
		die("events were lost");
	return (cpu_seconds() - start) / (double)events;
}

/* Peer: copies the same bytes from shared memory to a file. */
static double copy(const char *path, uint64_t bytes)
{
	static char buffer[COPY_BYTES];
	char name[96];
	int from, to;
	double start;

	snprintf(name, sizeof(name), "%s/copy", live);
	from = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (from < 0 || to < 0 || posix_fallocate(from, 0, (off_t)bytes))
		die("cannot make the files of the copy");
	start = cpu_seconds();
	for (uint64_t at = 0; at < bytes; at += COPY_BYTES) {
		ssize_t got = pread(from, buffer, COPY_BYTES, (off_t)at);

		if (got < 0 || write(to, buffer, (size_t)got) != got)
			die("cannot copy");
	}
	start = cpu_seconds() - start;
	close(from);
	close(to);
	unlink(name);
	return start / EVENTS;
}

/* A new journal, as after a checkpoint. */
static void begin_journal(struct ts_journal **journal, const char *path)
{
	struct ts_error err;

	if (*journal && ts_journal_bytes(*journal) < UINT64_C(64) << 20)
		return;
	ts_journal_close(*journal);
	if (ts_journal_create(journal, path, &err))
		die(err.message);
}

static void measure(const char *path, int rounds)
{
	double best = 1, best_copy = 1, first = 0, sum = 0;
	struct ts_journal *journal = NULL;
	char copied[1024];
	uint64_t bytes = 0;

	fill_rings();
	for_each_area(live, open_area);
	if (!area)
		die("no live area was made");
	snprintf(copied, sizeof(copied), "%s.copy", path);
	for (int round = 0; round < rounds; round++) {
		double cost, copy_cost;

		begin_journal(&journal, path);
		cost = take(&journal, &bytes);
		copy_cost = copy(copied, bytes);
		best = cost < best ? cost : best;
		best_copy = copy_cost < best_copy ? copy_cost : best_copy;
		first = round ? first : cost;
		sum += cost;
		fill_rings();
	}
	ts_journal_close(journal);
	ts_area_close(area);
	unlink(path);
	unlink(copied);
	printf("{\"bench\":\"drain\",\"rounds\":%d,\"bytes\":%" PRIu64
	       ",\"events_per_second\":%.0f,\"mean_events_per_second\":%.0f"
	       ",\"copy_events_per_second\":%.0f}\n",
	       rounds, bytes, 1 / best, (rounds - 1) / (sum - first), 1 / best_copy);
}

int main(int argc, char **argv)
{
	int rounds = argc > 3 && !strcmp(argv[2], "--rounds") ? (int)strtol(argv[3], NULL, 10) : 50;

	if (argc < 2 || argv[1][0] == '-' || rounds < 2) {
		fputs("usage: drain JOURNAL [--rounds N]\n", stderr);
		return 2;
	}
	live = become_target(argv, "session=5;enabled=1", NULL, NULL);
	measure(argv[1], rounds);
	end_target(live);
	return 0;
}
