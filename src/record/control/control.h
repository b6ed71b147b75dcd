/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recorder and the program that started it by <tracesmith/record.h> say to each other, in
 * lines over a stream socket:
 *
 *	recording PID            the recorder records
 *	finished STATUS JSON     the trace is complete; STATUS of the command as of waitpid(), or -1
 *	failed CODE MESSAGE      there is no recording, or it could not be finished; an exit code
 *	stop                     to the recorder: finish the recording
 *
 * The recorder gets its end as `tracesmith record --control FD ...`.
 */
#ifndef TS_RECORD_CONTROL_CONTROL_H
#define TS_RECORD_CONTROL_CONTROL_H

#define TS_CONTROL_RECORDING "recording"
#define TS_CONTROL_FINISHED "finished"
#define TS_CONTROL_FAILED "failed"
#define TS_CONTROL_STOP "stop\n"

#endif
