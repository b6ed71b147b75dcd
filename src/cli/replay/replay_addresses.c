/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the tool again without address space randomisation: a target may need host memory at the
 * recorded addresses, which must then be free.
 */
#include "cli/replay/replay_addresses.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/common/report.h"

/* Set in the second process, which must not start a third. */
#define AGAIN "TRACESMITH_REPLAY_AGAIN"
#define ASK 0xffffffffu

static bool is_fixed(void)
{
	int flags = personality(ASK);

	return flags != -1 && flags & ADDR_NO_RANDOMIZE;
}

/* NUL-terminated arguments, as the kernel has them. */
static void read_command_line(struct ts_text *text)
{
	int file = ts_io_open("/proc/self/cmdline", O_RDONLY, 0);
	char part[4096];
	ssize_t count;

	if (file < 0)
		return;
	while ((count = read(file, part, sizeof(part))) > 0)
		ts_text_append(text, part, (size_t)count);
	close(file);
}

static char **list_arguments(char *text, size_t length)
{
	size_t count = 0;
	char **arguments;

	for (size_t i = 0; i < length; i++)
		count += !text[i];
	arguments = calloc(count + 1, sizeof(*arguments));
	for (size_t i = 0, at = 0; arguments && i < count; i++, at += strlen(text + at) + 1)
		arguments[i] = text + at;
	return arguments;
}

static void start_again(void)
{
	TS_SCOPED(ts_text) text = { 0 };
	TS_AUTO_FREE char **arguments = NULL;

	read_command_line(&text);
	if (!text.length)
		return;
	arguments = list_arguments(text.data, text.length);
	if (arguments && !setenv(AGAIN, "1", 1))
		execv("/proc/self/exe", arguments);
}

void ts_replay_fix_addresses(void)
{
	const char *why = NULL;

	if (!is_fixed() && !getenv(AGAIN)) {
		int flags = personality(ASK);

		if (flags == -1 || personality((unsigned int)flags | ADDR_NO_RANDOMIZE) == -1)
			why = strerror(errno);
		else
			start_again();
	}
	unsetenv(AGAIN);
	if (is_fixed() && !why)
		return;
	ts_report_note(
		"address space randomisation cannot be switched off here%s%s: a range of host "
		"memory may not be free at its recorded address",
		why ? ": " : "", why ? why : "");
}
