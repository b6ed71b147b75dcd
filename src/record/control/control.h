/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between a recorder and the program that started it with <tracesmith/record.h>: lines
 * over a stream socket:
 *
 *	recording PID            the recorder records
 *	finished STATUS JSON     the trace is complete; STATUS of the command as of waitpid(), or -1
 *	failed CODE MESSAGE      there is no recording, or it could not be finished; an exit code
 *	stop                     to the recorder: finish the recording
 *
 * The recorder is started as `tracesmith record --control FD ...` with its end of the socket.
 */
#ifndef TS_RECORD_CONTROL_CONTROL_H
#define TS_RECORD_CONTROL_CONTROL_H

#define TS_CONTROL_RECORDING "recording"
#define TS_CONTROL_FINISHED "finished"
#define TS_CONTROL_FAILED "failed"
#define TS_CONTROL_STOP "stop\n"

#endif
