/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: a program that crashes first says where, for machines without a debugger. Frames are
 * "file(+offset)".
 */
#include <execinfo.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#define FRAMES 48

static void on_crash(int number, siginfo_t *info, void *context)
{
	void *frames[FRAMES];
	char text[120];
	int length = snprintf(text, sizeof(text), "CRASH: signal %d, address %p, process %d\n",
			      number, info->si_addr, (int)getpid());

	(void)context;
	if (write(STDERR_FILENO, text, (size_t)length) == length)
		backtrace_symbols_fd(frames, backtrace(frames, FRAMES), STDERR_FILENO);
	signal(number, SIG_DFL);
	raise(number);
}

__attribute__((constructor)) static void start(void)
{
	static const int signals[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL };
	struct sigaction action = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_NODEFER };
	void *frames[2];

	backtrace(frames, 2); /* loads what it needs */
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
}
