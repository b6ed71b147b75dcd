/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Basic ("naive") mode: records of 32 bytes, each with its thread. Records of a thread are in
 * order; threads are interleaved in runs.
 */
#include "import/xray/xray.h"

#define RECORD_BYTES 32u
#define VERSION_WITH_PID 3

static const struct ts_loss_kind loss_kind = { .what = "event",
					       .one = "record of unknown kind",
					       .many = "records of unknown kinds" };
static const struct ts_loss_kind loss_argument = { .what = "argument",
						   .one = "argument without a preceding call",
						   .many = "arguments without a preceding call" };

struct basic {
	struct ts_xray *x;
	struct ts_xray_thread *thread;
	uint32_t pid, tid; /* of that thread */
	uint32_t function; /* last function entered with an argument; its argument follows */
	bool wants_argument;
};

static int find_thread(struct basic *basic, const char *pid_at, const char *tid_at)
{
	uint32_t pid = basic->x->header.version >= VERSION_WITH_PID ? ts_xray_u32(pid_at) : 0;
	uint32_t tid = ts_xray_u32(tid_at);

	if (TS_LIKELY(basic->thread && basic->pid == pid && basic->tid == tid))
		return TS_OK;
	basic->thread = ts_xray_thread(
		basic->x, basic->x->header.version >= VERSION_WITH_PID ? (int64_t)pid : TS_ABSENT,
		tid);
	basic->pid = pid;
	basic->tid = tid;
	return basic->thread ? TS_OK : ts_xray_out_of_memory(basic->x);
}

/* Belongs to the previous record, else to nothing. */
static int read_argument(struct basic *basic, const char *p)
{
	uint32_t pid = basic->x->header.version >= VERSION_WITH_PID ? ts_xray_u32(p + 12) : 0;

	if (!basic->wants_argument || basic->function != ts_xray_u32(p + 4) ||
	    basic->tid != ts_xray_u32(p + 8) || basic->pid != pid) {
		ts_entities_add_loss(&basic->x->entities, &loss_argument, 1);
		return TS_OK;
	}
	return ts_xray_argument(basic->x, basic->thread, ts_xray_u64(p + 16));
}

static int read_record(struct basic *basic, const char *p)
{
	uint16_t type = ts_xray_u16(p);
	unsigned int kind = (uint8_t)p[3];
	int rc;

	if (type == 1)
		return read_argument(basic, p);
	if (type != 0 || kind > TS_XRAY_ENTRY_ARG) {
		ts_entities_add_loss(&basic->x->entities, &loss_kind, 1);
		return TS_OK;
	}
	rc = find_thread(basic, p + 20, p + 16);
	if (rc)
		return rc;
	basic->function = ts_xray_u32(p + 4);
	basic->wants_argument = kind == TS_XRAY_ENTRY || kind == TS_XRAY_ENTRY_ARG;
	return ts_xray_function(basic->x, basic->thread, kind, basic->function, (uint8_t)p[2],
				ts_xray_u64(p + 8));
}

int ts_xray_read_basic(struct ts_xray *x)
{
	struct ts_json *js = &x->import->stream.js;
	struct basic basic = { .x = x };
	int rc = TS_OK;

	js->next += TS_XRAY_HEADER_BYTES;
	while (!rc) {
		size_t held;

		rc = ts_import_need(x->import, RECORD_BYTES, &held, x->err);
		if (rc || held == 0)
			return rc;
		if (held < RECORD_BYTES)
			return ts_import_cut(x->import,
					     ts_input_stream_at(&x->import->stream, js->next),
					     x->err);
		while (!rc && (size_t)(js->end - js->next) >= RECORD_BYTES) {
			rc = read_record(&basic, js->next);
			js->next += RECORD_BYTES;
		}
	}
	return rc;
}
