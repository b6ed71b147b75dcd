/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that the decoder's files share. Included only by record/decode and by the
 * checkpoint files of record/recording.
 */
#ifndef TS_RECORD_DECODE_DECODE_INTERNAL_H
#define TS_RECORD_DECODE_DECODE_INTERNAL_H

#include "record/decode/decode_state.h"

/* ---- cursor over the words of a record ---- */

struct decode_cursor {
	const uint64_t *next, *end;
	bool bad;
};

static inline uint64_t decode_take_word(struct decode_cursor *cursor)
{
	if (TS_UNLIKELY(cursor->next >= cursor->end)) {
		cursor->bad = true;
		return 0;
	}
	return *cursor->next++;
}

/* A payload of live_records.h; zeros if it does not fit. */
static inline void decode_take(struct decode_cursor *cursor, void *ret_payload, size_t bytes)
{
	if (TS_UNLIKELY((size_t)(cursor->end - cursor->next) * 8 < bytes)) {
		cursor->bad = true;
		cursor->next = cursor->end;
		memset(ret_payload, 0, bytes);
		return;
	}
	memcpy(ret_payload, cursor->next, bytes);
	cursor->next += bytes / 8;
}

/* A string of a record; "" if it does not fit. */
static inline const char *decode_take_string(struct decode_cursor *cursor, uint32_t *ret_length)
{
	const char *bytes = ts_live_string_unpack(&cursor->next, cursor->end, ret_length);

	if (bytes)
		return bytes;
	cursor->bad = true;
	*ret_length = 0;
	return "";
}

/* A decoded record. */
struct decode_event {
	const uint64_t *record; /* its words */
	uint32_t words;
	uint8_t kind, flags;
	int64_t ns; /* its time in clock 1 */
	struct decode_thread *thread;
	/* By kind. */
	uint64_t duration, start, number;
	uint64_t correlation;
	int64_t result;
	struct ts_live_subject subject; /* with SUBJECT */
	const struct ts_live_gpu_op *op;
	const struct ts_live_gpu_op_more *more; /* with MORE */
	const struct ts_live_allocation *allocation;
	const struct ts_live_torch *torch;
	const uint64_t *waits;
	uint64_t stack; /* with STACK_IS */
	struct ts_live_sample sample;
	const uint64_t *frames; /* with STACK */
	uint64_t frame_count;
	/* Name and arguments. */
	uint32_t name, category, shape;
	const int64_t *values;
	int64_t storage[TS_LIVE_FIELDS];
};

/* ---- decoder.c ---- */

struct decode_area *decode_find_area(struct ts_decoder *decoder, uint64_t id);
struct decode_area *decode_add_area(struct ts_decoder *decoder, uint64_t id);
/* NULL: no memory, or limit exceeded. */
struct decode_ring *decode_get_ring(struct ts_decoder *decoder, struct decode_area *area,
				    uint32_t ring);
/* Sets what an AREA block describes. A STATE block or the first records follow. */
int decode_set_about(struct ts_decoder *decoder, struct decode_area *area,
		     const struct ts_block_area *about);
int decode_no_memory(struct ts_decoder *decoder);

/* Whether strings in arguments of the area's events are not stored. */
static inline bool decode_is_redacted(const struct ts_decoder *decoder,
				      const struct decode_area *area)
{
	return decoder->open.redact || (area->about && area->about->control.always_redact);
}
/* Whether no argument is: those of this category are values of the program's variables. */
static inline bool decode_is_hidden(const struct ts_decoder *decoder,
				    const struct decode_area *area, const char *category,
				    size_t length)
{
	return decode_is_redacted(decoder, area) && length == strlen("watch") &&
	       memcmp(category, "watch", length) == 0;
}

/* ---- decode_entity.c ---- */

uint32_t decode_string(struct ts_decoder *decoder, const char *text, size_t length);
uint32_t decode_text(struct ts_decoder *decoder, const char *text);
/* A fixed, perhaps unterminated, text of a struct. */
uint32_t decode_fixed(struct ts_decoder *decoder, const char *text, size_t bytes);
void decode_meta(struct ts_decoder *decoder, int64_t process, const char *key, const char *json);
/* Writes source, host and facts at the start of a file. */
void decode_preamble(struct ts_decoder *decoder);

struct decode_process *decode_get_process(struct ts_decoder *decoder, uint64_t pid,
					  uint64_t start_time, uint64_t image, bool any_image);
struct decode_process *decode_add_process(struct ts_decoder *decoder, uint64_t pid);
void decode_free_process(struct decode_process *process);
void decode_set_process_texts(struct ts_decoder *decoder, struct decode_process *process,
			      const char *name, size_t name_bytes, const char *command,
			      size_t command_bytes);
void decode_write_process(struct ts_decoder *decoder, struct decode_process *process);
void decode_end_process(struct ts_decoder *decoder, struct decode_process *process);
/* A process known from counters without a start time; NULL: none. */
struct decode_process *decode_find_external(struct ts_decoder *decoder, uint64_t pid);
/* Marks it as described by an area. */
void decode_know_process(struct ts_decoder *decoder, struct decode_process *process);
/* The process that a counter refers to. Writes its row if needed. NULL: no memory, or unknown. */
struct decode_process *decode_subject_process(struct ts_decoder *decoder,
					      const struct decode_area *area, uint32_t pid,
					      uint64_t start_time, int64_t ns);

/*
 * Finds or adds a thread by serial (0: rings without a THREAD record), or a track. NULL: no memory,
 * or too many.
 */
struct decode_thread *decode_get_thread(struct ts_decoder *decoder, struct decode_area *area,
					uint64_t key, bool is_track);
/* Writes its row if needed. `area` is NULL if none owns it; then its process has a row. */
void decode_use_thread(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_thread *thread);
void decode_write_thread(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_thread *thread);
/* `name` is not NUL-terminated; at most `bytes` are used. */
void decode_name_thread(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_thread *thread, const char *name, size_t bytes,
			enum decode_namer namer);
/* Drops a reference; frees it with the last. */
void decode_release_thread(struct decode_thread *thread);
/* Its area forgets it. */
void decode_disown_thread(struct decode_thread *thread);
/* Forgets threads that own no ring and have no open spans. */
void decode_forget_threads(struct decode_area *area);

/* ---- decode_source.c ---- */

/* Writes the row of the recording's own source at the start of a file. */
void decode_write_origin(struct ts_decoder *decoder);
/* Notes the rank of a process. One that is not known or not valid changes nothing. */
void decode_set_rank(struct ts_decoder *decoder, struct decode_process *process,
		     const struct ts_rank *rank);
/* The id of a source, whose row is written if needed. */
int64_t decode_use_source(struct ts_decoder *decoder, uint32_t source);
/* The same for that of a process; NULL: the recording's own. */
int64_t decode_source_of(struct ts_decoder *decoder, const struct decode_process *process);
/* For loading state. */
bool decode_add_source(struct ts_decoder *decoder, const struct ts_rank *rank);

/* ---- decode_site.c ---- */

/* New entries of the dictionary. */
void decode_add_sites(struct ts_decoder *decoder, struct decode_area *area, const void *bytes,
		      size_t count);
void decode_resolve_site(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_site *site);
/* The demangled name of a kernel. */
uint32_t decode_kernel_name(struct ts_decoder *decoder, const struct decode_area *area,
			    const char *name, size_t length);

/* ---- decode_device.c ---- */

/*
 * The device with that number in the area. Writes its row if needed. NULL: no memory, or too many.
 */
struct decode_device *decode_use_device(struct ts_decoder *decoder, struct decode_area *area,
					uint32_t number);
/* A DEVICE record. False as above. */
bool decode_describe_device(struct ts_decoder *decoder, struct decode_area *area,
			    const struct decode_described *described);
/*
 * For loading state: adds a device with an id higher than all others, and an area's number for it.
 */
struct decode_device *decode_add_device(struct ts_decoder *decoder, int64_t id);
void decode_index_device(struct ts_decoder *decoder, const struct decode_device *device);
struct decode_device_number *decode_find_number(const struct decode_area *area, uint32_t number);
struct decode_device *decode_find_device(const struct ts_decoder *decoder, int64_t id);
bool decode_call_device(struct ts_decoder *decoder, struct decode_area *area, uint32_t number,
			struct decode_device *device);

/* ---- decode_clock.c ---- */

/* Converts a counter of the recording, or CLOCK_MONOTONIC, to ns of clock 1. */
int64_t decode_scale(const struct ts_decoder *decoder, uint64_t counter);
int64_t decode_monotonic(const struct ts_decoder *decoder, int64_t monotonic_ns);
/* Converts a counter of an area. */
int64_t decode_other_time(const struct ts_decoder *decoder, const struct decode_area *area,
			  uint64_t counter);
void decode_add_anchor(struct ts_decoder *decoder, const struct ts_block_clock *clock);
/* Writes clock rows at the start of a file: the origin and the known anchors. */
void decode_clock_rows(struct ts_decoder *decoder);
void decode_area_anchor(struct ts_decoder *decoder, const struct decode_area *area);

static inline int64_t decode_time(const struct ts_decoder *decoder, const struct decode_area *area,
				  uint64_t counter)
{
	if (TS_LIKELY(area->native)) {
		unsigned __int128 ns = (unsigned __int128)counter * decoder->open.counter_mult >>
				       32;

		return TS_LIKELY(ns < DECODE_LATEST_NS) ? (int64_t)ns : DECODE_LATEST_NS;
	}
	return decode_other_time(decoder, area, counter);
}

/* Trace time of an instant of clock 1, by the anchors known so far, as a reader converts it. */
int64_t decode_trace_time(const struct ts_decoder *decoder, int64_t ns);
/* Writes the points of device clocks that precede the newest anchor; or all waiting ones. */
void decode_write_points(struct ts_decoder *decoder, bool all);
/*
 * Before the file may be read: writes a provisional row for clocks whose only point is still
 * waiting.
 */
void decode_assume_points(struct ts_decoder *decoder);
bool decode_put_point(struct ts_decoder *decoder, const struct decode_waiting_point *waiting);
/* Adds a DEVICE_CLOCK record, or an estimate if there was none. */
void decode_add_point(struct ts_decoder *decoder, struct decode_device_clock *clock,
		      const struct decode_clock_point *point, const char *method,
		      size_t method_bytes, bool is_guessed);
/* Whether its values are in range. */
bool decode_is_point(const struct decode_clock_point *point);
/* Ensures that its rows are in the file, or wait for an anchor. */
void decode_use_clock(struct ts_decoder *decoder, struct decode_device_clock *clock);
/* Converts a device time to clock 1; TS_ABSENT: unknown. */
int64_t decode_host_time(const struct decode_device_clock *clock, int64_t device_ns);

/* ---- decode_accelerator.c ---- */

/* A correlation that is unique in the recording; TS_ABSENT for 0. */
int64_t decode_correlation(struct ts_decoder *decoder, struct decode_process *process,
			   uint64_t number);
/* Decode CALL and GPU_OP. True: the row was added. */
bool decode_call(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		 const struct decode_event *event);
bool decode_gpu_op(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		   const struct decode_event *event);
/* Decodes STREAM, DEVICE_CLOCK, LOST and FACT. False: invalid. */
bool decode_accelerator_record(struct ts_decoder *decoder, struct decode_area *area,
			       const struct decode_event *event);
/* Writes all facts again, into a new file. */
void decode_facts(struct ts_decoder *decoder, struct decode_area *area);
void decode_free_accelerator(struct decode_area *area);

/* ---- decode_allocation.c ---- */

bool decode_allocation(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_ring *ring, const struct decode_event *event);

/* ---- decode_torch.c ---- */

/* Decodes TORCH: adds a row, or holds it back until its device time comes. */
bool decode_torch(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		  const struct decode_event *event);
/* TORCH_TIME. False: invalid. */
bool decode_torch_time(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_ring *ring, const struct decode_event *event);
/* Writes all rows that are held back; the state of a checkpoint has none. */
void decode_write_torch(struct ts_decoder *decoder, struct decode_area *area);
void decode_free_torch(struct decode_ring *ring);

/* ---- decode_calls.c ---- */

/* A call enqueued a command. False: no memory. */
bool decode_wait_for_call(struct ts_decoder *decoder, struct decode_area *area,
			  uint64_t correlation);
/* A command arrived, or a window excluded it: stop waiting. */
void decode_forget_call(struct ts_decoder *decoder, struct decode_area *area, uint64_t correlation);
/* For loading state. */
bool decode_put_calls(struct ts_decoder *decoder, struct decode_area *area,
		      const struct decode_call_page *page);
/* Reports calls whose commands never arrived. */
void decode_report_calls(struct ts_decoder *decoder, struct decode_area *area);
void decode_free_calls(struct decode_area *area);

/* ---- decode_stream.c ---- */

/* The queue with these numbers. Writes its row if needed. NULL: no memory. */
struct decode_stream *decode_use_stream(struct ts_decoder *decoder, struct decode_area *area,
					uint32_t device, uint32_t stream, uint32_t context);
/* A STREAM record. False: invalid. */
bool decode_stream_record(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_cursor *cursor);
bool decode_add_stream(struct ts_decoder *decoder, struct decode_area *area,
		       const struct decode_stream *stream);

/* ---- decode_channel.c ---- */

/* OBJECT, GONE, COMMAND, BLOB, SPOOLED. False: invalid. */
bool decode_channel_record(struct ts_decoder *decoder, struct decode_area *area,
			   struct decode_ring *ring, const struct decode_event *event);
struct decode_channel *decode_get_channel(struct ts_decoder *decoder, struct decode_area *area);
void decode_free_channel(struct decode_area *area);
/* Some of its records were dropped on a full disk: the window cannot be replayed. */
void decode_channel_cut(struct ts_decoder *decoder, struct decode_area *area);
/* Content of a blob is gone: the same for this window, or the next one. */
void decode_channel_gone(struct ts_decoder *decoder, struct decode_area *area, uint64_t blob,
			 int64_t ns);
/* Forgets ids of the previous file. */
void decode_channel_moves(struct ts_decoder *decoder, struct decode_area *area);
bool decode_put_object(struct ts_decoder *decoder, struct decode_channel *channel,
		       const struct decode_object *object);

/* ---- decode_blob.c ---- */

/* A BLOB record. False: invalid. */
bool decode_blob_record(struct ts_decoder *decoder, struct decode_channel *channel,
			struct decode_ring *ring, struct decode_cursor *cursor, int64_t ns);
/* A SPOOLED record. False: invalid. */
bool decode_spooled_record(struct ts_decoder *decoder, struct decode_area *area,
			   struct decode_ring *ring, struct decode_cursor *cursor, int64_t ns);
/*
 * The row of a complete blob; 0: unknown. `keep`: an object refers to it, so it may be needed much
 * later.
 */
uint32_t decode_blob_id(struct ts_decoder *decoder, struct decode_channel *channel, uint64_t number,
			bool keep);
bool decode_put_blob(struct ts_decoder *decoder, struct decode_channel *channel, uint64_t number,
		     uint32_t id);
void decode_drop_half(struct decode_channel *channel);

/* ---- decode_ring.c ---- */

int decode_ring_block(struct ts_decoder *decoder, struct decode_area *area,
		      const struct ts_block *block, const uint64_t *words);
/* Start and duration of a span or call. */
int64_t decode_span(const struct ts_decoder *decoder, const struct decode_area *area,
		    const struct decode_event *event, int64_t *ret_duration);
/* Writes rows for all open spans of the area. */
void decode_open_spans(struct ts_decoder *decoder, struct decode_area *area);
bool decode_push(struct decode_area *area, struct decode_stack *stack, const void *record,
		 size_t bytes, uint32_t flags);

/* ---- decode_stack.c ---- */

/* The stack of an event's frames. */
uint32_t decode_frames(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_ring *ring, struct decode_thread *thread,
		       const struct decode_event *event);
/* A stack by dictionary entry; 0: none. */
uint32_t decode_stack(struct ts_decoder *decoder, struct decode_area *area,
		      struct decode_ring *ring, uint64_t number, int64_t ns);
/* Either of these, by what the event has. */
uint32_t decode_any_stack(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_ring *ring, struct decode_thread *thread,
			  const struct decode_event *event);
/* Forgets ids of the previous file. */
void decode_stacks_move(struct ts_decoder *decoder);

/* ---- decode_sample.c ---- */

/* Adds a row of `sample`. True: it was added. */
bool decode_sample(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		   const struct decode_event *event);
/* The stack of a mark or a call. Also adds a row of `sample` if it came as frames. */
uint32_t decode_event_stack(struct ts_decoder *decoder, struct decode_area *area,
			    struct decode_ring *ring, const struct decode_event *event,
			    int64_t start_ns);
/* A THREAD_OF record. False: invalid. */
bool decode_thread_of(struct ts_decoder *decoder, const struct decode_area *area,
		      const struct decode_event *event);
/*
 * A THREAD record gives the tid of an area's thread. If samples already created that thread, merges
 * the two and returns the result.
 */
struct decode_thread *decode_join_thread(struct ts_decoder *decoder, struct decode_area *area,
					 struct decode_thread *thread, uint32_t tid, int64_t ns);
/* Registers it under (process, tid). False: no memory. */
bool decode_see_thread(struct ts_decoder *decoder, int64_t process, struct decode_thread *thread);
/* Forgets stack ids of the previous file. */
void decode_samples_move(struct ts_decoder *decoder);
void decode_free_seen(struct ts_decoder *decoder);

/* ---- decode_pc_samples.c ---- */

/* Whether a SAMPLE is of a device instruction, not of a thread. */
bool decode_is_instruction(const struct decode_event *event);
bool decode_instruction(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_ring *ring, const struct decode_event *event);

/* ---- decoder.c ---- */

/* Whether the file already has the rows of entities that a STATE block says are written. */
bool decode_has_rows(const struct ts_decoder *decoder);

/* ---- decode_loss.c ---- */

/* Whether the area's part of a checkpoint may be in a damaged part of the journal. */
bool decode_has_lost_state(const struct ts_decoder *decoder, const struct decode_area *area);
void decode_lose(struct ts_decoder *decoder, struct decode_ring *ring, enum decode_loss why,
		 uint64_t count, int64_t from_ns, int64_t to_ns);
/* An unknown number of events of the area was in a damaged part of the journal: one row. */
void decode_lose_unknown(struct ts_decoder *decoder, struct decode_area *area);
/* Write loss rows for a ring, an area, or all areas. */
void decode_report_ring(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_ring *ring);
void decode_report_area(struct ts_decoder *decoder, struct decode_area *area);
void decode_report_all(struct ts_decoder *decoder);
void decode_loss_row(struct ts_decoder *decoder, const struct decode_process *process,
		     int64_t thread, const char *what, const char *reason, int64_t count,
		     int64_t from_ns, int64_t to_ns);
void decode_loss_block(struct ts_decoder *decoder, const struct ts_block *block,
		       const struct ts_block_loss *loss);
void decode_end_losses(struct ts_decoder *decoder, struct decode_area *area,
		       const struct ts_block_end *end);

/* ---- decode_window.c ---- */

bool decode_search_gates(const struct decode_area *area, int64_t ns);

/* True if a WINDOW block excludes events at this time. */
static inline bool decode_is_outside(const struct decode_area *area, int64_t ns)
{
	const struct decode_gate *newest;

	if (TS_LIKELY(area->gate_count == 0))
		return false;
	newest = &area->gates[area->gate_count - 1];
	return ns >= newest->from_ns ? !newest->open : decode_search_gates(area, ns);
}

/* What the area has from before is not part of this recording. */
void decode_begin_area(struct decode_area *area, int64_t ns);
void decode_window_block(struct ts_decoder *decoder, struct decode_area *area,
			 const struct ts_block_window *window);
void decode_window_record(struct ts_decoder *decoder, struct decode_area *area,
			  const struct ts_live_window_record *record);
void decode_open_windows(struct ts_decoder *decoder, struct decode_area *area);
/* A CLOCK block, the end of an area (NULL: of all), or an EXPORT block arrived. */
void decode_closed_wait(struct ts_decoder *decoder, const struct decode_area *area, bool end);
/* A command stream ended: its windows need not wait for it. */
void decode_closed_stream(struct ts_decoder *decoder, const struct decode_area *area);
void decode_closed_exported(struct ts_decoder *decoder, const struct ts_block_export *exported);
int decode_report_closed(struct ts_decoder *decoder);

/* ---- checkpoint_channel.c ---- */

/*
 * Save calls, queues, device clocks and command streams as STATE blocks, of the recording and of an
 * area. `out` is a scratch buffer.
 */
int decode_save_numbers(const struct ts_decoder *decoder, const struct ts_block_sink *sink,
			struct ts_text *out, struct ts_error *err);
int decode_save_points(const struct ts_decoder *decoder, const struct ts_block_sink *sink,
		       struct ts_text *out, struct ts_error *err);
int decode_save_accelerator(const struct ts_decoder *decoder, const struct decode_area *area,
			    const struct ts_block_sink *sink, struct ts_text *out,
			    struct ts_error *err);
/* Whether a payload is one of these. Loading returns false if it is damaged. */
bool decode_is_more_state(const void *payload, size_t bytes);
bool decode_load_more_state(struct ts_decoder *decoder, uint64_t area, const void *payload,
			    size_t bytes);
/* The same for threads known from samples (checkpoint_sample.c). */
int decode_save_seen(struct ts_decoder *decoder, const struct ts_block_sink *sink,
		     struct ts_text *out, struct ts_error *err);
bool decode_load_seen(struct ts_decoder *decoder, const void *payload, size_t bytes);
/* The same for ranks (checkpoint_source.c). */
int decode_save_sources(const struct ts_decoder *decoder, const struct ts_block_sink *sink,
			struct ts_text *out, struct ts_error *err);
bool decode_load_sources(struct ts_decoder *decoder, const void *payload, size_t bytes);
/* Appends a STATE block. */
int decode_put_state(const struct ts_block_sink *sink, uint64_t area, const struct ts_text *out,
		     struct ts_error *err);

/* ---- checkpoint.c ---- */

int decode_load_state(struct ts_decoder *decoder, const struct ts_block *block,
		      const void *payload);

#endif
