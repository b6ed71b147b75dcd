/* SPDX-License-Identifier: Apache-2.0 */
/* FIFOs that nobody else has open, and calls that wait when the user asks to stop. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/memory.h"
#include "unit/runner.h"

static void make_fifo(char path[64])
{
	snprintf(path, 64, "/tmp/ts-io-%d", (int)getpid());
	TS_CHECK_INT(mkfifo(path, 0600), 0);
}

TS_TEST(opening_a_fifo_does_not_wait)
{
	int reader, writer;
	char path[64], byte;

	make_fifo(path);
	TS_CHECK_INT(ts_io_open(path, O_WRONLY, 0), -1);
	TS_CHECK_INT(errno, ENXIO);
	reader = ts_io_open(path, O_RDONLY, 0);
	TS_CHECK(reader >= 0);
	TS_CHECK_INT(ts_read_some(reader, &byte, 1), 0);
	writer = ts_io_open(path, O_WRONLY, 0);
	TS_CHECK(writer >= 0);
	TS_CHECK(!(fcntl(reader, F_GETFL) & O_NONBLOCK) && !(fcntl(writer, F_GETFL) & O_NONBLOCK));
	TS_CHECK(fcntl(writer, F_GETFD) & FD_CLOEXEC);
	close(reader);
	close(writer);
	unlink(path);
}

static volatile sig_atomic_t is_asked;

static int asked(void)
{
	return is_asked;
}

static void on_alarm(int number)
{
	(void)number;
	is_asked = 1;
}

static void interrupt_often(void)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

TS_TEST(reads_and_writes_that_wait_can_be_stopped)
{
	static char much[1 << 20];
	struct ts_error err;
	int ends[2];
	char byte;

	TS_CHECK_INT(pipe(ends), 0);
	ts_io_set_stop(asked);
	interrupt_often();
	TS_CHECK_INT(ts_read_some(ends[0], &byte, 1), -1);
	TS_CHECK_INT(errno, ECANCELED);
	TS_CHECK_INT(ts_write_all(ends[1], much, sizeof(much), &err), TS_ECANCELED);
	close(ends[0]);
	close(ends[1]);
}

static void *write_later(void *context)
{
	/* Some signals later. */
	while (!is_asked)
		usleep(1000);
	TS_CHECK_INT(write(*(int *)context, "x", 1), 1);
	return NULL;
}

TS_TEST(other_signals_do_not_end_a_read)
{
	pthread_t thread;
	int ends[2];
	char byte = 0;

	TS_CHECK_INT(pipe(ends), 0);
	interrupt_often();
	TS_CHECK_INT(pthread_create(&thread, NULL, write_later, &ends[1]), 0);
	TS_CHECK_INT(ts_read_some(ends[0], &byte, 1), 1);
	TS_CHECK_INT(byte, 'x');
	pthread_join(thread, NULL);
	close(ends[0]);
	close(ends[1]);
}
