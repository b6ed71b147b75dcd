/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's end of the socket of a program that started it (record/control/control.h): says
 * when it records, how it ended, and why it could not; stops when asked. The program may end or
 * close the socket: the recording goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "record/control/control.h"

int ts_record_control_open(const char *text)
{
	int64_t fd;

	if (ts_parse_int64(text, strlen(text), &fd) || fd < 3 || fd > INT32_MAX ||
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) || fcntl((int)fd, F_SETFL, O_NONBLOCK))
		return -1;
	return (int)fd;
}

/* A summary is larger than the buffer of no socket. */
static void send_line(struct ts_record *record, const struct ts_text *line)
{
	if (record->control_fd <= 0 || line->failed)
		return;
	fcntl(record->control_fd, F_SETFL, 0);
	for (size_t sent = 0; sent < line->length;) {
		ssize_t bytes = send(record->control_fd, line->data + sent, line->length - sent,
				     MSG_NOSIGNAL);

		if (bytes > 0)
			sent += (size_t)bytes;
		else if (errno != EINTR)
			break;
	}
	fcntl(record->control_fd, F_SETFL, O_NONBLOCK);
}

void ts_record_control_started(struct ts_record *record)
{
	TS_SCOPED(ts_text) line = { 0 };

	if (record->control_started)
		return;
	record->control_started = true;
	ts_text_printf(&line, TS_CONTROL_RECORDING " %d\n", (int)getpid());
	send_line(record, &line);
}

void ts_record_control_finished(struct ts_record *record, const struct ts_text *json)
{
	TS_SCOPED(ts_text) line = { 0 };

	/* A command may end before the recorder has looked at it for the first time. */
	ts_record_control_started(record);
	ts_text_printf(&line, TS_CONTROL_FINISHED " %d ",
		       record->command && record->command_ended ? record->wait_status : -1);
	ts_text_append(&line, json->data, json->length);
	send_line(record, &line);
	record->control_finished = true;
}

void ts_record_control_failed(struct ts_record *record, int exit_code)
{
	TS_SCOPED(ts_text) line = { 0 };
	const char *message = ts_report_last_error();

	if (record->control_fd <= 0)
		return;
	if (!record->control_finished) {
		ts_text_printf(&line, TS_CONTROL_FAILED " %d ", exit_code);
		for (; *message; message++)
			ts_text_append_char(&line, *message == '\n' ? ' ' : *message);
		ts_text_append_char(&line, '\n');
		send_line(record, &line);
	}
	close(record->control_fd);
	record->control_fd = 0;
}

bool ts_record_control_wants_stop(struct ts_record *record)
{
	char word[sizeof(TS_CONTROL_STOP)];
	ssize_t bytes;

	if (record->control_fd <= 0)
		return false;
	bytes = recv(record->control_fd, word, sizeof(word), MSG_DONTWAIT);
	/* Closed at the other end: nobody asks any more. */
	if (bytes == 0) {
		close(record->control_fd);
		record->control_fd = 0;
	}
	return bytes > 0;
}
