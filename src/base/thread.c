/* SPDX-License-Identifier: Apache-2.0 */
/* Library threads that do not handle the program's signals. */
#include "base/thread.h"

#include <signal.h>
#include <stdio.h>

#include "base/memory.h"

int ts_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *context),
		    void *context)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP };
	sigset_t others, before;
	char short_name[16];
	int error;

	sigfillset(&others);
	for (size_t i = 0; i < TS_ARRAY_SIZE(crashes); i++)
		sigdelset(&others, crashes[i]);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	error = pthread_create(ret_thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	snprintf(short_name, sizeof(short_name), "%s", name);
	if (!error)
		pthread_setname_np(*ret_thread, short_name);
	return error;
}
