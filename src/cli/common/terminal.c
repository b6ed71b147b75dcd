/* SPDX-License-Identifier: Apache-2.0 */
/* See terminal.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/common/terminal.h"

static bool is_dumb(void)
{
	const char *term = getenv("TERM");

	return !term || !strcmp(term, "dumb");
}

static size_t width_of(int fd)
{
	struct winsize size;

	if (!isatty(fd))
		return 0;
	if (ioctl(fd, TIOCGWINSZ, &size) || size.ws_col == 0)
		return 80;
	return size.ws_col;
}

bool ts_terminal_stdout(void)
{
	/* Called for every row, so cached. */
	static int known = -1;

	if (known < 0)
		known = isatty(STDOUT_FILENO);
	return known == 1;
}

bool ts_terminal_stderr(void)
{
	return isatty(STDERR_FILENO) && !is_dumb();
}

int64_t *ts_terminal_width_option(void)
{
	static int64_t width = -1;

	return &width;
}

size_t ts_terminal_stdout_width(void)
{
	int64_t width = *ts_terminal_width_option();

	return width < 0 ? width_of(STDOUT_FILENO) : (size_t)width;
}

size_t ts_terminal_stderr_width(void)
{
	return width_of(STDERR_FILENO);
}

bool ts_terminal_colour(void)
{
	const char *no_color = getenv("NO_COLOR");

	return ts_terminal_stdout() && !is_dumb() && !(no_color && *no_color);
}
