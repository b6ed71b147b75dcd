/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by chrome_rows.c and chrome_marks.c. */
#ifndef TS_IMPORT_CHROME_CHROME_ROWS_H
#define TS_IMPORT_CHROME_CHROME_ROWS_H

#include "import/chrome/chrome_import.h"

/* Columns common to several tables. */
uint32_t ts_chrome_event_name(struct ts_chrome *c, const struct ts_chrome_event *event);
/* `id` as JSON if it is a number or string, else `id2` if it is an object; adds it to *taken. */
uint32_t ts_chrome_event_id(struct ts_chrome *c, const struct ts_chrome_event *event,
			    uint32_t *taken);

/* True if the member is exactly this text (including quotes). */
bool ts_chrome_member_is(const struct ts_chrome_event *event, enum ts_chrome_member member,
			 const char *text);

/*
 * Time and thread (UINT32_MAX: out of memory) of an event; false if it lacks one, which is counted.
 */
bool ts_chrome_resolve_event(struct ts_chrome *c, const struct ts_chrome_event *event,
			     uint32_t *ret_thread, int64_t *ret_time);

#define TS_CHROME_TABLE_COLUMNS(c, event, table, thread, row)                   \
	do {                                                                    \
		if (TS_UNLIKELY((event)->has & TS_CHROME_HAS_NATIVE))           \
			ts_chrome_native_columns(c, event, table, thread, row); \
	} while (0)

/* By phase. */
int ts_chrome_store_flow(struct ts_chrome *c, struct ts_chrome_event *event);
int ts_chrome_store_half(struct ts_chrome *c, struct ts_chrome_event *event, bool is_end,
			 bool is_async);
/* `phase` NULL: as in the event; "": a plain instant. */
int ts_chrome_store_mark(struct ts_chrome *c, struct ts_chrome_event *event, const char *phase);
int ts_chrome_store_counter(struct ts_chrome *c, struct ts_chrome_event *event);
int ts_chrome_store_p(struct ts_chrome *c, struct ts_chrome_event *event);

#endif
