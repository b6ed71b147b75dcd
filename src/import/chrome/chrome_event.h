/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One parsed Chrome event: which members it has, and where. Pointers are valid until the next
 * refill.
 */
#ifndef TS_IMPORT_CHROME_CHROME_EVENT_H
#define TS_IMPORT_CHROME_CHROME_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "import/chrome/chrome_args.h"

struct ts_chrome;

/* One value in the buffer. */
struct ts_chrome_raw {
	const char *at, *end;
};

/* A pid or tid: a number, or (text not 0) an id in ts_chrome.texts. */
struct ts_chrome_id {
	int64_t number;
	uint32_t text;
};

/* Members for which some table has a column; otherwise they are kept as extra members. */
enum ts_chrome_member {
	TS_CHROME_OTHER,
	TS_CHROME_ID,
	TS_CHROME_ID2,
	TS_CHROME_S,
	TS_CHROME_BP,
	TS_CHROME_SF,
	TS_CHROME_STACK,
	TS_CHROME_DUR,
	TS_CHROME_WEIGHT,
	TS_CHROME_CPU,
	TS_CHROME_MEMBER_COUNT
};

#define TS_CHROME_HAS(member) (UINT32_C(1) << (member))
enum {
	TS_CHROME_HAS_PHASE = 1 << 16,
	TS_CHROME_HAS_NAME = 1 << 17,
	TS_CHROME_HAS_TIME = 1 << 18,
	TS_CHROME_HAS_DURATION = 1 << 19, /* usable */
	TS_CHROME_HAS_ARGS = 1 << 20,     /* an object */
	TS_CHROME_HAS_NATIVE = 1 << 21,   /* "tracesmith", in a TraceSmith export */
	TS_CHROME_HAS_ID_NUMBER = 1 << 22,
	TS_CHROME_HAS_TID = 1 << 23,
	TS_CHROME_HAS_CATEGORY = 1 << 24,
	TS_CHROME_HAS_ANY = 1 << 25, /* a member */
	TS_CHROME_IS_OBJECT = 1 << 26,
};

struct ts_chrome_beside {
	struct ts_json_string key;
	struct ts_chrome_raw value;
	enum ts_chrome_member member;
};

/* Further members are dropped and counted: a shape cannot hold them. */
#define TS_CHROME_MAX_BESIDE TS_SHAPE_MAX_FIELDS

/* Points into the buffer: valid until the next refill. */
struct ts_chrome_event {
	uint32_t has;
	char phase;        /* 0: phase_text is not one letter */
	uint32_t category; /* index into categories; 0: none */
	uint32_t wrong;    /* members of an invalid type */
	uint32_t dropped;  /* members beyond the limit */
	uint32_t beside_count;
	struct ts_json_string phase_text;
	struct ts_json_string name;
	struct ts_chrome_id pid, tid;
	int64_t ts, dur;
	int64_t id_number;
	struct ts_chrome_raw args, native;
	struct ts_chrome_raw member[TS_CHROME_MEMBER_COUNT]; /* those that `has` says */
	struct ts_chrome_beside beside[TS_CHROME_MAX_BESIDE];
	struct ts_chrome_args *arguments;
};

/*
 * Common integers: up to 18 digits after at most one space, then the end of the value. False for
 * everything else, with js unchanged.
 */
static inline bool ts_chrome_plain_int(struct ts_json *js, int64_t *ret_value)
{
	const char *p = js->next, *digits;
	uint64_t value = 0;

	if (TS_UNLIKELY(js->end - p < 24))
		return false;
	p += *p == ' ';
	for (digits = p; ts_json_is_digit_(*p); p++) {
		if (TS_UNLIKELY(p - digits == 18))
			return false;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	if (TS_UNLIKELY(p == digits || (*digits == '0' && p - digits > 1) ||
			(*p != ',' && *p != '}' && !ts_json_is_space_(*p))))
		return false;
	*ret_value = (int64_t)value;
	js->next = p;
	return true;
}

/* Enters an object whose brace is at js->next: ts_json_enter() without the call. */
static inline int ts_chrome_enter_object(struct ts_json *js, bool *more)
{
	const char *p = ts_json_find_token_(js->next + 1, js->end);

	if (TS_UNLIKELY(p == js->end))
		return ts_json_cut(js);
	*more = *p != '}';
	js->next = p + !*more;
	return TS_OK;
}

/* Reads the value at js. TS_OK also if it is not an object or has no "ph": `has` tells. */
int ts_chrome_read_event(struct ts_chrome *c, struct ts_chrome_event *event);

/* A pid, a tid, or any other id with the same rules. */
int ts_chrome_read_id(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_id *ret_id,
		      bool *ret_good);

#endif
