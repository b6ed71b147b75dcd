/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk data through the spool, against the reader that recorders use: contents, space, memory that
 * is gone, and everything that keeps a spool from being made.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "live/area_spool.h"
#include "live/discover.h"
#include "unit/agent/agent_support.h"

#define SETTINGS "enabled=1;replayable=1;from_start=1"
#define MIB ((uint64_t)1 << 20)

static unsigned char *make_content(uint64_t bytes)
{
	unsigned char *content = malloc(bytes);

	TS_CHECK(content != NULL);
	for (uint64_t i = 0; i < bytes; i++)
		content[i] = (unsigned char)((i ^ i >> 13) * 2654435761u >> 24);
	return content;
}

/* A recorder: drains the channel, reads parts in order, commits when that is due. */
struct taker {
	struct agent_reader reader;
	struct ts_spools *spools;
	unsigned char *content; /* of all parts, in order */
	uint64_t bytes, most, parts;
	bool commits;
	pthread_t thread;
	uint32_t stops;
};

static void take_parts(struct taker *taker)
{
	struct agent_cursor cursor = { .reader = &taker->reader };
	struct ts_live_record head;
	uint64_t seen = 0;
	const uint64_t *at;

	agent_drain(&taker->reader);
	while ((at = agent_next(&cursor, &head))) {
		struct ts_live_spooled part;

		if (head.kind != TS_LIVE_SPOOLED || seen++ < taker->parts)
			continue;
		memcpy(&part, at + 2, sizeof(part));
		TS_CHECK(taker->bytes + part.part.count <= taker->most);
		TS_CHECK_INT(ts_spools_read(taker->spools, agent_control(), &part, 0,
					    taker->content + taker->bytes, part.part.count),
			     0);
		taker->bytes += part.part.count;
		taker->parts++;
		ts_spools_decoded(taker->spools, agent_control(), &part);
		if (taker->commits && ts_spools_are_due(taker->spools)) {
			ts_spools_commit(taker->spools, true);
			ts_spools_release(taker->spools);
		}
	}
}

static void *take(void *argument)
{
	struct taker *taker = argument;
	struct timespec pause = { 0, 100000 };

	while (!__atomic_load_n(&taker->stops, __ATOMIC_ACQUIRE)) {
		take_parts(taker);
		nanosleep(&pause, NULL);
	}
	take_parts(taker);
	return NULL;
}

static void open_taker(struct taker *taker, uint64_t most)
{
	*taker = (struct taker){ .most = most, .content = calloc(1, most), .commits = true };
	agent_beat(1);
	agent_open_reader(&taker->reader);
	TS_CHECK_INT(ts_spools_new(&taker->spools, true, NULL), 0);
	TS_CHECK_INT(ts_spools_add_directory(taker->spools, taker->reader.directory_fd, NULL), 0);
}

static void start_taker(struct taker *taker)
{
	TS_CHECK_INT(pthread_create(&taker->thread, NULL, take, taker), 0);
}

static void stop_taker(struct taker *taker)
{
	__atomic_store_n(&taker->stops, 1, __ATOMIC_RELEASE);
	TS_CHECK_INT(pthread_join(taker->thread, NULL), 0);
}

static void close_taker(struct taker *taker)
{
	ts_spools_free(taker->spools);
	free(taker->content);
	agent_close_reader(&taker->reader);
}

static struct spool *spool(void)
{
	return &ts_process_tracer.core->channel.spool;
}

/* ---- contents ---- */

/* Five times what the spool holds: the writer waits, parts wrap, and nothing is lost. */
TS_TEST(a_blob_larger_than_the_spool_arrives_whole)
{
	uint64_t bytes = 21 * MIB + 12345;
	unsigned char *content = make_content(bytes);
	struct taker taker;

	agent_channel_patience_ns = INT64_C(60000000000);
	agent_spool_bytes = TS_SPOOL_LEAST;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	ts_replay_unlock();
	open_taker(&taker, 2 * bytes);
	start_taker(&taker);
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(ts_replay_blob(content, bytes), 1);
	TS_CHECK_INT(ts_replay_blob_unread(), 0);
	/* The same in odd pieces. */
	TS_CHECK_INT(ts_replay_blob_begin(bytes), 2);
	for (uint64_t at = 0; at < bytes; at += 333333)
		ts_replay_blob_part(content + at, 333333);
	ts_replay_unlock();
	stop_taker(&taker);
	TS_CHECK_INT(spool()->bytes, TS_SPOOL_LEAST);
	TS_CHECK_INT(taker.bytes, 2 * bytes);
	TS_CHECK_MEM(taker.content, content, bytes);
	TS_CHECK_MEM(taker.content + bytes, content, bytes);
	TS_CHECK_INT(agent_count(&taker.reader, TS_LIVE_BLOB), 0);
	TS_CHECK(!ts_replay_is_broken());
	close_taker(&taker);
	free(content);
	agent_end(true);
}

TS_TEST(small_blobs_stay_in_the_ring)
{
	unsigned char *content = make_content(40000);
	struct taker taker;

	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, 32767) > 0);
	TS_CHECK(spool()->header == NULL);
	TS_CHECK(ts_replay_blob(content, 32768) > 0);
	TS_CHECK(spool()->header != NULL);
	ts_replay_unlock();
	open_taker(&taker, MIB);
	take_parts(&taker);
	TS_CHECK_INT(taker.parts, 1);
	TS_CHECK_MEM(taker.content, content, 32768);
	TS_CHECK_INT(agent_count(&taker.reader, TS_LIVE_BLOB), 3);
	close_taker(&taker);
	free(content);
	agent_end(true);
}

/* What is filled in place arrives; without a blob, or after it, there is no space. */
TS_TEST(a_device_fills_the_spool_in_place)
{
	unsigned char *content = make_content(MIB);
	uint64_t bytes = MIB, at = 0;
	struct taker taker;
	void *space;

	agent_spool_bytes = TS_SPOOL_LEAST;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_blob_space(&bytes) == NULL);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob_begin(MIB) > 0);
	for (bytes = MIB; at < MIB && (space = ts_replay_blob_space(&bytes)); bytes = MIB) {
		TS_CHECK_INT(bytes, TS_SPOOL_LEAST / 16);
		memcpy(space, content + at, bytes);
		ts_replay_blob_filled(bytes + 1); /* ignored: more than there is */
		ts_replay_blob_filled(bytes);
		at += bytes;
	}
	TS_CHECK_INT(at, MIB);
	TS_CHECK(ts_replay_blob_space(&bytes) == NULL);
	ts_replay_unlock();
	open_taker(&taker, MIB);
	take_parts(&taker);
	TS_CHECK_INT(taker.bytes, MIB);
	TS_CHECK_MEM(taker.content, content, MIB);
	close_taker(&taker);
	free(content);
	agent_end(true);
}

/* If everything is consumed, the first bytes are used again: the rest stays untouched. */
TS_TEST(a_spool_that_is_empty_starts_over)
{
	unsigned char *content = make_content(MIB);
	struct taker taker;

	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	ts_replay_unlock();
	open_taker(&taker, 40 * MIB);
	for (unsigned int i = 0; i < 40; i++) {
		TS_CHECK(ts_replay_lock());
		TS_CHECK(ts_replay_blob(content, MIB) > 0);
		ts_replay_unlock();
		take_parts(&taker);
		ts_spools_commit(taker.spools, true);
		ts_spools_release(taker.spools);
	}
	TS_CHECK_INT(taker.bytes, 40 * MIB);
	TS_CHECK_MEM(taker.content + 39 * MIB, content, MIB);
	TS_CHECK_INT(spool()->to, 4 * MIB);
	close_taker(&taker);
	free(content);
	agent_end(true);
}

/* What the recorder has given back is allocated again, before it is touched. */
TS_TEST(returned_memory_is_allocated_again)
{
	unsigned char *content = make_content(MIB);

	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	TS_CHECK_INT(spool()->to, 4 * MIB);
	/* As if it had been larger. */
	spool()->to = TS_SPOOL_KEPT + 4 * MIB;
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	TS_CHECK_INT(spool()->to, TS_SPOOL_KEPT + 4 * MIB);
	spool()->header->returned = 1;
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	TS_CHECK_INT(spool()->to, TS_SPOOL_KEPT);
	spool()->from = TS_SPOOL_KEPT + MIB;
	spool()->to = TS_SPOOL_KEPT + 4 * MIB;
	spool()->header->returned = 2;
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	TS_CHECK_INT(spool()->from, 0);
	TS_CHECK_INT(spool()->to, 4 * MIB);
	ts_replay_unlock();
	free(content);
	agent_end(true);
}

/* ---- bulk ---- */

static uint64_t blocks_of(const char *ending)
{
	char path[sizeof(ts_process_tracer.core->path) + 16];
	struct stat status;

	snprintf(path, sizeof(path), "%s%s", ts_process_tracer.core->path, ending);
	TS_CHECK_INT(stat(path, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

/* Stores as many pieces of 1 MiB as there is space for. */
static uint32_t store_bulk(const unsigned char *content, uint32_t count)
{
	uint64_t bytes[TS_REPLAY_BULK_AT_MOST];
	uint32_t given;

	for (uint32_t i = 0; i < count; i++)
		bytes[i] = MIB;
	TS_CHECK(ts_replay_lock());
	given = ts_replay_bulk_begin(count, bytes);
	/* What is stored meanwhile passes through the ring. */
	TS_CHECK(ts_replay_blob(content, 40000) > 0);
	TS_CHECK_INT(ts_replay_bulk_begin(1, bytes), 0);
	ts_replay_unlock();
	TS_CHECK(!ts_replay_bulk_write(given, 0, content, 1));
	TS_CHECK(!ts_replay_bulk_write(0, MIB, content, 1));
	for (uint32_t i = 0; i < given; i++) {
		TS_CHECK(ts_replay_bulk_write(i, 0, content + i * MIB, MIB / 2));
		TS_CHECK(ts_replay_bulk_write(i, MIB / 2, content + i * MIB + MIB / 2, MIB / 2));
	}
	TS_CHECK(ts_replay_lock());
	for (uint32_t i = 0; i < given; i++)
		TS_CHECK(ts_replay_bulk_blob(i) > 0);
	ts_replay_bulk_end();
	ts_replay_unlock();
	return given;
}

/*
 * Pieces lie in several files; what is behind them in the spool is allocated without what they
 * skipped; a commit gives their memory back.
 */
TS_TEST(bulk_is_spread_and_its_memory_returned)
{
	unsigned char *content = make_content(40 * MIB);
	struct taker taker;

	agent_spool_bytes = 64 * MIB;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	ts_replay_unlock();
	open_taker(&taker, 200 * MIB);
	taker.commits = false;
	for (unsigned int round = 0; round < 3; round++) {
		uint64_t before = taker.bytes;

		TS_CHECK_INT(store_bulk(content, 40), 40);
		TS_CHECK(ts_replay_lock());
		TS_CHECK(ts_replay_blob(content, MIB) > 0);
		ts_replay_unlock();
		TS_CHECK_INT(blocks_of(".1.spool"), 3 * MIB);
		TS_CHECK_INT(blocks_of(".16.spool"), 2 * MIB);
		TS_CHECK_INT(spool()->to, 44 * MIB);
		TS_CHECK(blocks_of(".spool") < 9 * MIB);
		take_parts(&taker);
		TS_CHECK_INT(taker.bytes, before + 41 * MIB);
		TS_CHECK_MEM(taker.content + before, content, 40 * MIB);
		TS_CHECK_MEM(taker.content + before + 40 * MIB, content, MIB);
		ts_spools_commit(taker.spools, true);
		ts_spools_release(taker.spools);
		TS_CHECK_INT(blocks_of(".1.spool"), 0);
		TS_CHECK_INT(blocks_of(".16.spool"), 0);
		spool()->lane = 0;
	}
	/* No more than the spool holds, in all files together. */
	TS_CHECK_INT(store_bulk(content, 40), 40);
	TS_CHECK_INT(store_bulk(content, 40), 24);
	take_parts(&taker);
	close_taker(&taker);
	free(content);
	agent_end(true);
}

/* A piece that no record refers to, since it cannot be written or stored, is a hole. */
TS_TEST(bulk_that_cannot_be_written_is_left_out)
{
	const uint64_t bytes[] = { MIB, MIB, MIB, MIB };
	unsigned char *content = make_content(4 * MIB);
	char path[sizeof(ts_process_tracer.core->path) + 16];
	struct taker taker;

	agent_spool_bytes = 64 * MIB;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(ts_replay_bulk_begin(4, bytes), 4);
	ts_replay_unlock();
	snprintf(path, sizeof(path), "%s.2.spool", ts_process_tracer.core->path);
	TS_CHECK_INT(unlink(path), 0);
	for (uint32_t i = 0; i < 4; i++)
		TS_CHECK_INT(ts_replay_bulk_write(i, 0, content + i * MIB, MIB), i != 1);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_bulk_blob(0) > 0);
	TS_CHECK(ts_replay_bulk_blob(2) > 0);
	TS_CHECK_INT(blocks_of(".4.spool"), MIB);
	ts_replay_bulk_end();
	TS_CHECK_INT(blocks_of(".3.spool"), MIB);
	TS_CHECK_INT(blocks_of(".4.spool"), 0);
	TS_CHECK_INT(ts_replay_bulk_blob(0), 0);
	ts_replay_unlock();
	open_taker(&taker, 2 * MIB);
	take_parts(&taker);
	TS_CHECK_INT(taker.bytes, 2 * MIB);
	TS_CHECK_MEM(taker.content, content, MIB);
	TS_CHECK_MEM(taker.content + MIB, content + 2 * MIB, MIB);
	close_taker(&taker);
	free(content);
	agent_end(true);
}

/* Nor does it take space: nobody would ever release it, and what follows would wait in vain. */
TS_TEST(bulk_in_vain_takes_no_space)
{
	unsigned char *content = make_content(MIB);
	uint64_t bytes[TS_REPLAY_BULK_AT_MOST];

	agent_channel_patience_ns = 100000000;
	agent_spool_bytes = 64 * MIB;
	for (uint32_t i = 0; i < TS_REPLAY_BULK_AT_MOST; i++)
		bytes[i] = MIB;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(ts_replay_bulk_begin(TS_REPLAY_BULK_AT_MOST, bytes), 64);
	ts_replay_bulk_end();
	TS_CHECK_INT(spool()->header->head, 0);
	TS_CHECK_INT(ts_replay_bulk_begin(TS_REPLAY_BULK_AT_MOST, bytes), 64);
	TS_CHECK(ts_replay_bulk_blob(0) > 0);
	TS_CHECK(ts_replay_bulk_blob(2) > 0);
	ts_replay_bulk_end();
	TS_CHECK_INT(spool()->header->head, 3 * MIB);
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	TS_CHECK_INT(spool()->header->head, 4 * MIB);
	TS_CHECK(!ts_replay_is_broken());
	ts_replay_unlock();
	free(content);
	agent_end(true);
}

/* What is left of the spool looks as if there had been no bulk: nothing waits for a recorder. */
TS_TEST(bulk_in_vain_leaves_the_head_as_it_was)
{
	unsigned char *content = make_content(100001);
	const uint64_t bytes[] = { MIB, MIB };
	struct taker taker;

	agent_spool_bytes = 64 * MIB;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	ts_replay_unlock();
	open_taker(&taker, 300000);
	for (unsigned int round = 0; round < 2; round++) {
		TS_CHECK(ts_replay_lock());
		TS_CHECK(ts_replay_blob(content, 100001) > 0);
		/* Behind it, then from the start, since everything is consumed. */
		for (unsigned int i = 0; i < 2; i++) {
			TS_CHECK_INT(ts_replay_bulk_begin(2, bytes), 2);
			ts_replay_bulk_end();
			TS_CHECK_INT(spool()->header->head, round * 64 * MIB + 100001);
			take_parts(&taker);
			ts_spools_commit(taker.spools, true);
			ts_spools_release(taker.spools);
		}
		TS_CHECK_INT(spool()->header->consumed, spool()->header->head);
		ts_replay_unlock();
	}
	TS_CHECK_MEM(taker.content, content, 100001);
	TS_CHECK_MEM(taker.content + 100001, content, 100001);
	close_taker(&taker);
	free(content);
	agent_end(true);
}

/* The stream is broken meanwhile: nobody would release it, and the program may run for long. */
TS_TEST(bulk_of_a_broken_stream_takes_no_memory)
{
	unsigned char *content = make_content(MIB);
	const uint64_t bytes[] = { MIB, MIB };

	agent_spool_bytes = 64 * MIB;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(ts_replay_bulk_begin(2, bytes), 2);
	ts_replay_unlock();
	for (uint32_t i = 0; i < 2; i++)
		TS_CHECK(ts_replay_bulk_write(i, 0, content, MIB));
	__atomic_store_n(&ts_process_tracer.core->channel.broken, 1, __ATOMIC_RELEASE);
	TS_CHECK(!ts_replay_lock());
	TS_CHECK_INT(blocks_of(".2.spool"), MIB);
	ts_replay_bulk_end();
	TS_CHECK_INT(blocks_of(".1.spool"), 0);
	TS_CHECK_INT(blocks_of(".2.spool"), 0);
	TS_CHECK_INT(spool()->header->head, 0);
	free(content);
	agent_end(true);
}

TS_TEST(a_small_spool_has_no_space_for_bulk)
{
	const uint64_t bytes[] = { MIB };

	agent_spool_bytes = TS_SPOOL_LEAST;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(ts_replay_bulk_begin(1, bytes), TS_REPLAY_BULK_NEVER);
	TS_CHECK_INT(ts_replay_bulk_begin(0, bytes), 0);
	ts_replay_unlock();
	agent_end(true);
}

TS_TEST(a_snapshot_is_compared_with_the_space_of_the_trace)
{
	char why[200] = "";

	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_has_space(UINT64_MAX, why, sizeof(why)));
	agent_control()->output_space = 1000;
	TS_CHECK(ts_replay_has_space(1000, why, sizeof(why)));
	TS_CHECK_STR(why, "");
	TS_CHECK(!ts_replay_has_space(1001, why, sizeof(why)));
	TS_CHECK_STR(why, "its snapshot needs 1001 bytes, and the trace has space for 1000: free "
			  "space on its disk, raise its size limit, or write it elsewhere (-o)");
	agent_end(true);
}

/* ---- memory that is gone ---- */

TS_TEST(pages_that_cannot_be_read_are_zeros)
{
	const uint64_t page = 4096, pages = 32;
	unsigned char *content = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct taker taker;

	TS_CHECK(content != MAP_FAILED);
	signal(SIGSEGV, SIG_DFL); /* a sanitizer handles it */
	memset(content, 7, pages * page);
	TS_CHECK_INT(munmap(content + 3 * page, page), 0);
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	/* Through the spool, then through the ring. */
	TS_CHECK(ts_replay_blob(content + 100, pages * page - 100) > 0);
	TS_CHECK_INT(ts_replay_blob_unread(), page);
	TS_CHECK(ts_replay_blob(content + 2 * page, 3 * page) > 0);
	TS_CHECK_INT(ts_replay_blob_unread(), page);
	TS_CHECK(ts_replay_blob(content, page) > 0);
	TS_CHECK_INT(ts_replay_blob_unread(), 0);
	ts_replay_unlock();
	open_taker(&taker, MIB);
	take_parts(&taker);
	TS_CHECK_INT(taker.bytes, pages * page - 100);
	for (uint64_t i = 0; i < taker.bytes; i++)
		TS_CHECK_INT(taker.content[i], (i + 100) / page == 3 ? 0 : 7);
	close_taker(&taker);
	agent_end(true);
}

static unsigned char *lazy_page;

static void on_fault(int signal)
{
	mprotect(lazy_page, 4096, PROT_READ | PROT_WRITE);
	memset(lazy_page, 9, 4096);
}

/* A program that makes its memory readable in a handler is asked, as by the driver. */
TS_TEST(a_handler_of_the_program_may_page_in)
{
	unsigned char *content =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct taker taker;

	TS_CHECK(content != MAP_FAILED);
	lazy_page = content + 8192;
	mprotect(lazy_page, 4096, PROT_NONE);
	sigaction(SIGSEGV, &(struct sigaction){ .sa_handler = on_fault }, NULL);
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, 65536) > 0);
	TS_CHECK_INT(ts_replay_blob_unread(), 0);
	ts_replay_unlock();
	signal(SIGSEGV, SIG_DFL);
	open_taker(&taker, MIB);
	take_parts(&taker);
	TS_CHECK_INT(taker.content[8192], 9);
	close_taker(&taker);
	agent_end(true);
}

/* ---- nobody commits ---- */

/* Decoding alone frees nothing; it counts as progress as long as there is some. */
TS_TEST(a_full_spool_breaks_the_stream)
{
	unsigned char *content = make_content(MIB);
	struct taker taker;

	agent_channel_patience_ns = 100000000;
	agent_spool_bytes = TS_SPOOL_LEAST;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	ts_replay_unlock();
	open_taker(&taker, 8 * MIB);
	taker.commits = false;
	start_taker(&taker);
	TS_CHECK(ts_replay_lock());
	for (unsigned int i = 0; i < 6 && !ts_replay_is_broken(); i++)
		ts_replay_blob(content, MIB);
	ts_replay_unlock();
	TS_CHECK(ts_replay_is_broken());
	stop_taker(&taker);
	TS_CHECK(taker.bytes <= TS_SPOOL_LEAST);
	TS_CHECK_INT(agent_count(&taker.reader, TS_LIVE_COMMAND), 1);
	close_taker(&taker);
	free(content);
	agent_end(true);
}

/* A recorder that releases too much, or takes it back, is ignored. */
TS_TEST(a_wrong_consumed_is_ignored)
{
	unsigned char *content = make_content(MIB);

	agent_channel_patience_ns = 100000000;
	agent_spool_bytes = TS_SPOOL_LEAST;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	__atomic_store_n(&spool()->header->consumed, UINT64_MAX - 7, __ATOMIC_RELEASE);
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	TS_CHECK_INT(spool()->consumed, 0);
	TS_CHECK_INT(spool()->head, 2 * MIB);
	ts_replay_unlock();
	free(content);
	agent_end(true);
}

/* ---- no spool ---- */

static void check_goes_through_ring(void)
{
	unsigned char *content = make_content(100000);
	struct agent_reader reader;

	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, 100000) > 0);
	TS_CHECK(spool()->is_off);
	ts_replay_unlock();
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_SPOOLED), 0);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_BLOB), 7);
	agent_close_reader(&reader);
	free(content);
}

TS_TEST(without_space_blobs_go_through_the_ring)
{
	struct rlimit limit = { 6 * MIB, 6 * MIB };

	/* A budget of which half is not enough. */
	agent_begin(SETTINGS ";budget=2000000");
	check_goes_through_ring();
	agent_end(true);
	/* A limit of file sizes that the area does not reach. */
	agent_begin(SETTINGS ";budget=1000000000");
	TS_CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
	agent_spool_bytes = 256 * MIB;
	TS_CHECK(ts_replay_lock());
	ts_replay_unlock();
	TS_CHECK(spool()->header == NULL);
	agent_end(true);
}

/*
 * The file cannot grow any more: what is there is used, the rest goes through the ring. The next
 * attempt is made when the recorder has released something.
 */
TS_TEST(a_step_that_fails_uses_the_ring)
{
	unsigned char *content = make_content(6 * MIB);
	char path[sizeof(ts_process_tracer.core->path) + 8], moved[sizeof(path) + 8];
	struct taker taker;

	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	snprintf(path, sizeof(path), "%s.spool", ts_process_tracer.core->path);
	snprintf(moved, sizeof(moved), "%s.moved", path);
	TS_CHECK_INT(rename(path, moved), 0);
	TS_CHECK(ts_replay_blob(content, 6 * MIB) > 0);
	TS_CHECK(!ts_replay_is_broken());
	TS_CHECK_INT(spool()->to, 4 * MIB);
	TS_CHECK_INT(rename(moved, path), 0);
	TS_CHECK(ts_replay_blob(content, 4 * MIB) > 0);
	TS_CHECK_INT(spool()->to, 4 * MIB);
	ts_replay_unlock();
	open_taker(&taker, 11 * MIB);
	take_parts(&taker);
	TS_CHECK(agent_count(&taker.reader, TS_LIVE_BLOB) > 100);
	ts_spools_commit(taker.spools, true);
	ts_spools_release(taker.spools);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, 6 * MIB) > 0);
	TS_CHECK_INT(spool()->to, 8 * MIB);
	ts_replay_unlock();
	close_taker(&taker);
	free(content);
	agent_end(true);
}

/* ---- processes ---- */

/* A child has its own; what it does leaves its parent's alone. No descriptor is needed. */
TS_TEST(a_child_has_its_own_spool)
{
	unsigned char *content = make_content(MIB), *others = make_content(MIB);
	struct taker taker;
	pid_t pid;

	memset(others, 3, MIB);
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	ts_replay_unlock();
	pid = fork();
	if (pid == 0) {
		bool ok = ts_replay_lock() && ts_replay_blob(others, MIB) && spool()->header;

		_exit(ok ? 0 : 1);
	}
	agent_join_child(pid);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, MIB) > 0);
	ts_replay_unlock();
	open_taker(&taker, 2 * MIB);
	take_parts(&taker);
	TS_CHECK_INT(taker.bytes, 2 * MIB);
	TS_CHECK_MEM(taker.content, content, MIB);
	TS_CHECK_MEM(taker.content + MIB, content, MIB);
	close_taker(&taker);
	free(content);
	free(others);
	agent_end(true);
}

/* ---- another recording ---- */

/*
 * The first recording took everything but the last blob, and was killed before it committed: a
 * second one, which knows nothing of these parts, releases them, so that the program can go on. But
 * not before it has taken what is still in the ring, however often it commits until then.
 */
TS_TEST(another_recording_takes_over)
{
	unsigned char *content = make_content(8 * MIB);
	struct taker first, second;
	uint64_t referred;

	agent_channel_patience_ns = INT64_C(60000000000);
	agent_spool_bytes = TS_SPOOL_LEAST;
	agent_begin(SETTINGS);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, 3 * MIB) > 0);
	ts_replay_unlock();
	open_taker(&first, 4 * MIB);
	first.commits = false;
	take_parts(&first);
	close_taker(&first);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, MIB / 2) > 0);
	ts_replay_unlock();

	open_taker(&second, 9 * MIB);
	referred = ts_spools_referred(second.spools, agent_control());
	TS_CHECK_INT(referred, 3 * MIB + MIB / 2);
	ts_spools_tick(second.spools);
	ts_spools_tick(second.spools);
	TS_CHECK(!ts_spools_are_due(second.spools));
	ts_spools_commit(second.spools, true);
	ts_spools_release(second.spools);
	take_parts(&second);
	TS_CHECK_INT(second.bytes, MIB / 2);
	TS_CHECK_MEM(second.content, content, MIB / 2);

	ts_spools_take_over(second.spools, agent_control(), referred);
	ts_spools_tick(second.spools);
	ts_spools_tick(second.spools);
	TS_CHECK(ts_spools_are_due(second.spools));
	ts_spools_commit(second.spools, true);
	ts_spools_release(second.spools);
	start_taker(&second);
	TS_CHECK(ts_replay_lock());
	TS_CHECK(ts_replay_blob(content, 8 * MIB) > 0);
	ts_replay_unlock();
	stop_taker(&second);
	TS_CHECK_INT(second.bytes, 8 * MIB + MIB / 2);
	TS_CHECK_MEM(second.content + MIB / 2, content, 8 * MIB);
	close_taker(&second);
	free(content);
	agent_end(true);
}
