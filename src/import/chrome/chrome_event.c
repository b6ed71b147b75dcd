/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses one event: members in any order and of any type. Only texts are stored, so that an event
 * cut by the buffer can be restarted. Arguments are read at once if phase and category come first,
 * as in Kineto files; else after the complete event.
 */
#include "import/chrome/chrome_import.h"

/* ---- ids ---- */

/* Decimal digits that fit an int64, except the value that means "none". */
static bool is_number(const struct ts_json_string *string, int64_t *ret_number)
{
	return !string->escaped && string->length && string->text[0] != '+' &&
	       !ts_parse_int64(string->text, string->length, ret_number) &&
	       *ret_number != TS_ABSENT;
}

static int keep_id_text(struct ts_chrome *c, const struct ts_json_string *string,
			struct ts_chrome_id *ret_id)
{
	*ret_id = (struct ts_chrome_id){ .text = ts_chrome_keep_text(c, string) };
	return ret_id->text ? TS_OK : TS_ENOMEM;
}

int ts_chrome_read_id(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_id *ret_id,
		      bool *ret_good)
{
	struct ts_json_string string = { 0 };
	struct ts_json_number number = { 0 };
	int64_t value;
	int rc, first;

	*ret_good = true;
	if (TS_LIKELY(ts_chrome_plain_int(js, &value))) {
		*ret_id = (struct ts_chrome_id){ .number = value };
		return TS_OK;
	}
	first = ts_json_peek(js);
	if (first == '-' || (first >= '0' && first <= '9')) {
		rc = ts_json_scan_number(js, &number);
		if (TS_UNLIKELY(rc))
			return rc;
		if (TS_LIKELY(number.kind == TS_JSON_INT && number.integer != TS_ABSENT)) {
			*ret_id = (struct ts_chrome_id){ .number = number.integer };
			return TS_OK;
		}
		string = (struct ts_json_string){ .text = number.text, .length = number.length };
		rc = ts_chrome_check_length(js, &string);
		return rc ? rc : keep_id_text(c, &string, ret_id);
	}
	if (first == '"') {
		rc = ts_json_scan_string(js, &string);
		if (rc || (rc = ts_chrome_check_length(js, &string)))
			return rc;
		if (!is_number(&string, &value))
			return keep_id_text(c, &string, ret_id);
		*ret_id = (struct ts_chrome_id){ .number = value };
		return TS_OK;
	}
	*ret_good = false;
	*ret_id = (struct ts_chrome_id){ 0 };
	return ts_json_skip(js);
}

/* ---- times ---- */

/*
 * Common microseconds: up to 16 digits, optionally a point and up to 3 more, then the end of the
 * value. False for everything else, with js unchanged.
 */
static inline bool scan_plain_us(struct ts_json *js, int64_t *ret_ns)
{
	const char *p = js->next, *end = js->end - p > 21 ? p + 21 : js->end, *point;
	uint64_t value = 0;
	int decimals = 0;

	for (; p < end && ts_json_is_digit_(*p); p++)
		value = value * 10 + (uint64_t)(*p - '0');
	if (p == end || p == js->next || p - js->next > 16 ||
	    (*js->next == '0' && p - js->next > 1))
		return false;
	if (*p == '.') {
		for (point = ++p; p < end && ts_json_is_digit_(*p) && decimals < 3; p++, decimals++)
			value = value * 10 + (uint64_t)(*p - '0');
		if (p == end || p == point)
			return false;
	}
	if (*p != ',' && *p != '}' && !ts_json_is_space_(*p))
		return false;
	for (; decimals < 3; decimals++)
		value *= 10;
	if (value > INT64_MAX)
		return false;
	*ret_ns = (int64_t)value;
	js->next = p;
	return true;
}

/* Microseconds, a number or a string; *ret_good is false otherwise. */
static int read_time(struct ts_json *js, int64_t *ret_ns, bool *ret_good)
{
	struct ts_json_string string = { 0 };
	const char *at;
	int rc, first = ts_json_peek(js);

	if (TS_LIKELY(scan_plain_us(js, ret_ns))) {
		*ret_good = true;
		return TS_OK;
	}
	at = js->next;
	if (first == '"') {
		rc = ts_json_scan_string(js, &string);
		if (rc)
			return rc;
		*ret_good = !ts_json_decimal_ns(string.text, string.text + string.length, ret_ns) &&
			    *ret_ns != TS_ABSENT;
		return TS_OK;
	}
	if (first == '-' || (first >= '0' && first <= '9')) {
		rc = ts_json_scan_us(js, ret_ns);
		if (TS_LIKELY(!rc)) {
			*ret_good = *ret_ns != TS_ABSENT;
			return TS_OK;
		}
		if (rc == TS_JSON_MORE)
			return rc;
	}
	/* Another type, or a number out of range: skipping validates it. */
	*ret_good = false;
	js->next = at;
	return ts_json_skip(js);
}

/* ---- members ---- */

static void keep_beside(struct ts_chrome_event *event, const struct ts_json_string *key,
			const struct ts_chrome_raw *value, enum ts_chrome_member member)
{
	if (event->beside_count == TS_CHROME_MAX_BESIDE) {
		event->dropped++;
		return;
	}
	event->beside[event->beside_count++] =
		(struct ts_chrome_beside){ .key = *key, .value = *value, .member = member };
}

static int read_other(struct ts_json *js, struct ts_chrome_event *event,
		      const struct ts_json_string *key, enum ts_chrome_member member)
{
	struct ts_chrome_raw *value = &event->member[member];
	int rc;

	ts_json_skip_space(js);
	value->at = js->next;
	rc = ts_json_skip(js);
	if (TS_UNLIKELY(rc))
		return rc;
	value->end = js->next;
	if (TS_UNLIKELY((size_t)(value->end - value->at) > TS_IMPORT_MAX_STRING))
		return ts_json_bad(js, value->at, "a value is longer than 64 MiB");
	event->has |= TS_CHROME_HAS(member);
	keep_beside(event, key, value, member);
	return TS_OK;
}

static int read_id_member(struct ts_json *js, struct ts_chrome_event *event,
			  const struct ts_json_string *key)
{
	struct ts_chrome_raw *value = &event->member[TS_CHROME_ID];
	struct ts_json_number number = { 0 };
	int rc, first = ts_json_peek(js);

	event->has &= ~(uint32_t)TS_CHROME_HAS_ID_NUMBER;
	value->at = js->next;
	if (TS_LIKELY(ts_chrome_plain_int(js, &event->id_number))) {
		value->end = js->next;
		event->has |= TS_CHROME_HAS(TS_CHROME_ID) | TS_CHROME_HAS_ID_NUMBER;
		keep_beside(event, key, value, TS_CHROME_ID);
		return TS_OK;
	}
	if (first != '-' && !(first >= '0' && first <= '9'))
		return read_other(js, event, key, TS_CHROME_ID);
	rc = ts_json_scan_number(js, &number);
	if (TS_UNLIKELY(rc))
		return rc;
	value->end = js->next;
	event->has |= TS_CHROME_HAS(TS_CHROME_ID);
	if (number.kind == TS_JSON_INT && number.integer != TS_ABSENT) {
		event->id_number = number.integer;
		event->has |= TS_CHROME_HAS_ID_NUMBER;
	}
	keep_beside(event, key, value, TS_CHROME_ID);
	return TS_OK;
}

static int read_duration(struct ts_json *js, struct ts_chrome_event *event,
			 const struct ts_json_string *key)
{
	struct ts_chrome_raw *value = &event->member[TS_CHROME_DUR];
	bool good;
	int rc;

	ts_json_skip_space(js);
	value->at = js->next;
	rc = read_time(js, &event->dur, &good);
	if (TS_UNLIKELY(rc))
		return rc;
	value->end = js->next;
	event->has |= TS_CHROME_HAS(TS_CHROME_DUR) | TS_CHROME_HAS_DURATION;
	if (!good) {
		event->has &= ~(uint32_t)TS_CHROME_HAS_DURATION;
		event->wrong++;
	}
	keep_beside(event, key, value, TS_CHROME_DUR);
	return TS_OK;
}

static int read_phase(struct ts_json *js, struct ts_chrome_event *event,
		      const struct ts_json_string *key)
{
	int rc, first = ts_json_peek(js);

	if (first != '"') {
		event->wrong++;
		return read_other(js, event, key, TS_CHROME_OTHER);
	}
	rc = ts_json_scan_string(js, &event->phase_text);
	if (rc || (rc = ts_chrome_check_length(js, &event->phase_text)))
		return rc;
	event->phase = event->phase_text.length == 1 ? event->phase_text.text[0] : 0;
	event->has |= TS_CHROME_HAS_PHASE;
	return TS_OK;
}

static int read_name(struct ts_json *js, struct ts_chrome_event *event,
		     const struct ts_json_string *key)
{
	int rc, first = ts_json_peek(js);

	if (first != '"')
		return read_other(js, event, key, TS_CHROME_OTHER);
	rc = ts_json_scan_string(js, &event->name);
	if (TS_UNLIKELY(rc))
		return rc;
	event->has |= TS_CHROME_HAS_NAME;
	return ts_chrome_check_length(js, &event->name);
}

static int read_category(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_event *event,
			 const struct ts_json_string *key)
{
	struct ts_json_string text = { 0 };
	int rc, first = ts_json_peek(js);

	if (first != '"')
		return read_other(js, event, key, TS_CHROME_OTHER);
	rc = ts_json_scan_string(js, &text);
	if (rc || (rc = ts_chrome_check_length(js, &text)))
		return rc;
	event->category = text.length ? ts_chrome_category(c, &text) : 0;
	event->has |= TS_CHROME_HAS_CATEGORY;
	return event->category == UINT32_MAX ? TS_ENOMEM : TS_OK;
}

/*
 * The table for which the arguments can be read right now; 0: not known yet, or not as arguments.
 */
static enum ts_table_id table_so_far(const struct ts_chrome *c, const struct ts_chrome_event *event)
{
	const struct ts_kineto_category *meaning = &c->categories[event->category].meaning;

	if (event->phase == 'X')
		return event->has & TS_CHROME_HAS_CATEGORY && !meaning->needs_stream
			       ? meaning->table
			       : 0;
	return event->phase == 0 || event->phase == 'M' || event->phase == 'P' ? 0 : TS_TABLE_SLICE;
}

static int read_args_member(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_event *event,
			    const struct ts_json_string *key)
{
	struct ts_chrome_args *args = event->arguments;
	enum ts_table_id table = table_so_far(c, event);
	int rc, first = ts_json_peek(js);

	if (first != '{')
		return read_other(js, event, key, TS_CHROME_OTHER);
	event->args.at = js->next;
	args->table = 0;
	args->has_duration = event->has & TS_CHROME_HAS_DURATION;
	args->duration = event->dur;
	if (table) {
		ts_chrome_start_args(c, args, table, event->category);
		rc = ts_chrome_read_args(c, js, args, false);
		/* Too many for a shape: they are kept as one value, see ts_chrome_finish_args(). */
		if (TS_UNLIKELY(rc == TS_CHROME_TOO_MANY)) {
			args->table = 0;
			js->next = event->args.at;
			rc = ts_json_skip(js);
		}
	} else {
		rc = ts_json_skip(js);
	}
	event->args.end = js->next;
	event->has |= TS_CHROME_HAS_ARGS;
	return rc;
}

static int read_native_member(struct ts_chrome *c, struct ts_json *js,
			      struct ts_chrome_event *event, const struct ts_json_string *key)
{
	int rc, first = ts_json_peek(js);

	if (!c->native.active || first != '{')
		return read_other(js, event, key, TS_CHROME_OTHER);
	event->native.at = js->next;
	rc = ts_json_skip(js);
	event->native.end = js->next;
	event->has |= TS_CHROME_HAS_NATIVE;
	return rc;
}

static int read_entity(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_event *event,
		       struct ts_chrome_id *id)
{
	bool good;
	int rc = ts_chrome_read_id(c, js, id, &good);

	event->wrong += !good;
	return rc;
}

static int read_start(struct ts_json *js, struct ts_chrome_event *event)
{
	bool good;
	int rc = read_time(js, &event->ts, &good);

	event->has &= ~(uint32_t)TS_CHROME_HAS_TIME;
	if (!rc && good)
		event->has |= TS_CHROME_HAS_TIME;
	return rc;
}

/* ---- keys ---- */

/* A key of up to 7 bytes as a number, the first byte lowest; here up to 6. */
#define KEY(...) KEY_OF(__VA_ARGS__, 0, 0, 0, 0, 0)
#define KEY_OF(a, b, c, d, e, f, ...)                                                     \
	((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24 | \
	 (uint64_t)(e) << 32 | (uint64_t)(f) << 40)

/* That number for any key; 0 for longer keys and the empty one. */
static inline uint64_t key_number(const struct ts_json_string *key)
{
	uint64_t number = 0;

	if (key->length > 7)
		return 0;
	for (size_t i = 0; i < key->length; i++)
		number |= (uint64_t)(unsigned char)key->text[i] << 8 * i;
	return number;
}

/* The lowest bit set marks the first byte with this value; 0: none. */
static inline uint64_t bytes_equal(uint64_t word, char value)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t other = word ^ ones * (unsigned char)value;

	return (other - ones) & ~other & ones << 7;
}

/*
 * The key at js, with preceding white space and the colon after it. Nearly all keys are short: they
 * are found, measured and converted to a number in one 64-bit word.
 */
static inline int scan_member_key(struct ts_json *js, struct ts_json_string *key, uint64_t *number)
{
	const char *p = ts_json_find_token_(js->next, js->end);
	int rc;

	if (TS_LIKELY(js->end - p >= 16 && *p == '"')) {
		uint64_t word, quotes;
		unsigned int length;

		memcpy(&word, p + 1, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		word = __builtin_bswap64(word);
#endif
		quotes = bytes_equal(word, '"');
		length = quotes ? (unsigned int)__builtin_ctzll(quotes) >> 3 : 8;
		if (TS_LIKELY(length < 8 && p[length + 2] == ':')) {
			word &= (UINT64_C(1) << 8 * length) - 1;
			/* After a backslash the quote may be part of the key. */
			if (TS_LIKELY(!bytes_equal(word, '\\'))) {
				*key = (struct ts_json_string){ .text = p + 1, .length = length };
				*number = word;
				js->next = p + length + 3;
				return TS_OK;
			}
		}
	}
	rc = ts_json_scan_key(js, key);
	if (!rc)
		rc = ts_chrome_check_length(js, key);
	if (!rc)
		*number = key->escaped ? 0 : key_number(key);
	return rc;
}

static int read_member(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_event *event,
		       const struct ts_json_string *key, uint64_t number)
{
	switch (number) {
	case KEY('p', 'h'):
		return read_phase(js, event, key);
	case KEY('c', 'a', 't'):
		return read_category(c, js, event, key);
	case KEY('n', 'a', 'm', 'e'):
		return read_name(js, event, key);
	case KEY('p', 'i', 'd'):
		return read_entity(c, js, event, &event->pid);
	case KEY('t', 'i', 'd'):
		event->has |= TS_CHROME_HAS_TID;
		return read_entity(c, js, event, &event->tid);
	case KEY('t', 's'):
		return read_start(js, event);
	case KEY('d', 'u', 'r'):
		return read_duration(js, event, key);
	case KEY('a', 'r', 'g', 's'):
		return read_args_member(c, js, event, key);
	case KEY('i', 'd'):
		return read_id_member(js, event, key);
	case KEY('s'):
		return read_other(js, event, key, TS_CHROME_S);
	case KEY('b', 'p'):
		return read_other(js, event, key, TS_CHROME_BP);
	case KEY('i', 'd', '2'):
		return read_other(js, event, key, TS_CHROME_ID2);
	case KEY('s', 'f'):
		return read_other(js, event, key, TS_CHROME_SF);
	case KEY('s', 't', 'a', 'c', 'k'):
		return read_other(js, event, key, TS_CHROME_STACK);
	case KEY('c', 'p', 'u'):
		return read_other(js, event, key, TS_CHROME_CPU);
	case KEY('w', 'e', 'i', 'g', 'h', 't'):
		return read_other(js, event, key, TS_CHROME_WEIGHT);
	default:
		if (ts_json_string_is(key, "tracesmith"))
			return read_native_member(c, js, event, key);
		return read_other(js, event, key, TS_CHROME_OTHER);
	}
}

int ts_chrome_read_event(struct ts_chrome *c, struct ts_chrome_event *event)
{
	struct ts_json *js = c->js;
	struct ts_json_string key = { 0 };
	uint64_t number;
	bool more = false;
	int rc, first = ts_json_peek(js);

	event->has = 0;
	event->phase = 0;
	event->category = 0;
	event->wrong = 0;
	event->dropped = 0;
	event->beside_count = 0;
	event->pid = (struct ts_chrome_id){ 0 };
	event->tid = (struct ts_chrome_id){ 0 };
	event->dur = 0;
	event->arguments->table = 0;
	event->name.length = 0;
	if (TS_UNLIKELY(first != '{'))
		return ts_json_skip(js);
	rc = ts_chrome_enter_object(js, &more);
	event->has |= TS_CHROME_IS_OBJECT | (more ? TS_CHROME_HAS_ANY : 0);
	while (!rc && more) {
		rc = scan_member_key(js, &key, &number);
		if (TS_LIKELY(!rc))
			rc = read_member(c, js, event, &key, number);
		if (TS_LIKELY(!rc))
			rc = ts_json_next(js, '}', &more);
	}
	return rc;
}
