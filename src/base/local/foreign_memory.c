/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_vm_readv() on ourselves: fast, but forbidden in some sandboxes, and unable to read
 * memory of devices. Otherwise the bytes go through a pipe: write() copies from any memory that the
 * program itself could read, and reports the rest as EFAULT.
 */
#include "base/local/foreign_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * Of the smallest pages: a gap in memory never begins inside one. Also what an empty pipe accepts
 * without blocking, even that of a user who has too many.
 */
#define PAGE 4096u
#define PIECES 256u

unsigned int ts_foreign_methods = TS_FOREIGN_VM_READV | TS_FOREIGN_PIPE;

static size_t total_of(const struct iovec *pieces, size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += pieces[i].iov_len;
	return total;
}

/* At most PIECES pieces. Returns the bytes copied; fewer if something is missing or forbidden. */
static size_t read_directly(void *to, const struct iovec *pieces, size_t count)
{
	struct iovec local = { to, total_of(pieces, count) };
	ssize_t copied;

	if (!(ts_foreign_methods & TS_FOREIGN_VM_READV))
		return 0;
	copied = process_vm_readv(getpid(), &local, 1, pieces, count, 0);
	return copied > 0 ? (size_t)copied : 0;
}

/* At most a page, through an empty pipe, which is empty again afterwards. */
static size_t pass_through(const int ends[2], void *to, const void *from, size_t bytes)
{
	size_t got = 0;
	ssize_t sent;

	do
		sent = write(ends[1], from, bytes);
	while (sent < 0 && errno == EINTR);
	while (sent > 0 && got < (size_t)sent) {
		ssize_t part = read(ends[0], (char *)to + got, (size_t)sent - got);

		if (part <= 0 && errno != EINTR)
			break;
		got += part > 0 ? (size_t)part : 0;
	}
	return got;
}

static size_t up_to_page_end(const char *from, size_t bytes)
{
	size_t left = PAGE - (uintptr_t)from % PAGE;

	return left < bytes ? left : bytes;
}

/*
 * The pipe lives as short as possible: a program may close or count its descriptors. Its thread is
 * not canceled here, with locks of the caller.
 */
static size_t read_by_pipe(char *to, const char *from, size_t bytes)
{
	size_t done = 0, got = 1;
	int ends[2], cancel_state;

	if (!(ts_foreign_methods & TS_FOREIGN_PIPE) || pipe2(ends, O_CLOEXEC))
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	while (done < bytes && got) {
		got = pass_through(ends, to + done, from + done,
				   up_to_page_end(from + done, bytes - done));
		done += got;
	}
	close(ends[0]);
	close(ends[1]);
	pthread_setcancelstate(cancel_state, &cancel_state);
	return done;
}

/* What is left after a short result, to the first byte that neither way can read. */
static size_t read_rest(char *to, const char *from, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		size_t page = up_to_page_end(from + done, bytes - done);
		struct iovec piece = { (void *)(uintptr_t)(from + done), bytes - done };
		size_t got = read_directly(to + done, &piece, 1);

		/* The kernel need not copy the part before a gap. */
		piece.iov_len = page;
		if (!got && page < bytes - done)
			got = read_directly(to + done, &piece, 1);
		if (!got)
			return done + read_by_pipe(to + done, from + done, bytes - done);
		done += got;
	}
	return done;
}

/* Piece by piece, which shows what is missing. */
static size_t read_each(char *to, const struct iovec *pieces, size_t count)
{
	size_t done = 0, got;

	for (size_t i = 0; i < count; i++) {
		got = read_rest(to + done, pieces[i].iov_base, pieces[i].iov_len);
		done += got;
		if (got < pieces[i].iov_len)
			break;
	}
	return done;
}

size_t ts_foreign_gather(void *to, const struct iovec *pieces, size_t count)
{
	int saved = errno;
	size_t done = 0;

	for (size_t i = 0; i < count; i += PIECES) {
		size_t some = count - i < PIECES ? count - i : PIECES;
		size_t wanted = total_of(pieces + i, some);
		size_t got = read_directly((char *)to + done, pieces + i, some);

		if (got < wanted)
			got = read_each((char *)to + done, pieces + i, some);
		done += got;
		if (got < wanted)
			break;
	}
	errno = saved;
	return done;
}

size_t ts_foreign_read(void *to, const void *from, size_t bytes)
{
	struct iovec piece = { (void *)(uintptr_t)from, bytes };

	return ts_foreign_gather(to, &piece, 1);
}
