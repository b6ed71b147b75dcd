/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of live_oracle's events, for the program that emits them (live_oracle.c) and the one
 * that finds them in a trace (live_scan.c); and the oracle file, which tests/crash/live_check.py
 * reads, too.
 */
#ifndef LIVE_EVENTS_H
#define LIVE_EVENTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How event `sequence` of a thread is emitted. */
enum event_kind {
	EVENT_INSTANT,
	EVENT_SPAN,
	EVENT_BEGIN,
	EVENT_END, /* without arguments: found by the end of its begin */
	EVENT_STRING,
	EVENT_DYNAMIC,
	EVENT_COUNTER,
	EVENT_TRACK,
	EVENT_PAIR, /* two words: the shortest checkable path through the library */
};

enum event_mode {
	MODE_INSTANT,
	MODE_SPAN,
	MODE_BEGIN,
	MODE_STRING,
	MODE_DYNAMIC,
	MODE_COUNTER,
	MODE_PAIR,
	MODE_MIXED,
};

/*
 * The oracle: a header of 64 bytes, then the slots of each process: those of its threads, then of
 * their handlers.
 */
struct oracle_header {
	char magic[8]; /* "ORACLE1" */
	uint32_t processes, threads;
	uint32_t mode;
	uint32_t signals; /* 1: handlers have slots */
	uint32_t first;   /* number of the first process */
	uint32_t reserved[9];
};

/* Written by its own thread only, each word after the counted emit has returned. */
struct oracle_slot {
	uint64_t returned; /* emits: the next event has this sequence */
	uint64_t steps;
	uint32_t pid, tid;
	uint64_t done; /* 1: this process is done emitting */
	uint64_t reserved[4];
};

#define MIXED_CYCLE 8

static inline enum event_kind event_kind_of(enum event_mode mode, uint64_t sequence)
{
	static const enum event_kind plain[] = {
		[MODE_INSTANT] = EVENT_INSTANT, [MODE_SPAN] = EVENT_SPAN,
		[MODE_BEGIN] = EVENT_BEGIN,     [MODE_STRING] = EVENT_STRING,
		[MODE_DYNAMIC] = EVENT_DYNAMIC, [MODE_COUNTER] = EVENT_COUNTER,
		[MODE_PAIR] = EVENT_PAIR,
	};
	static const enum event_kind mixed[MIXED_CYCLE] = {
		EVENT_INSTANT, EVENT_SPAN, EVENT_STRING,  EVENT_BEGIN,
		EVENT_DYNAMIC, EVENT_END,  EVENT_COUNTER, EVENT_TRACK,
	};

	if (mode == MODE_MIXED)
		return mixed[sequence % MIXED_CYCLE];
	if (mode == MODE_BEGIN)
		return sequence % 2 ? EVENT_END : EVENT_BEGIN;
	return plain[mode];
}

/* Over the three numbers that identify the event: detects another or half an event. */
static inline int64_t event_checksum(uint64_t process, uint64_t thread, uint64_t sequence)
{
	uint64_t value = (process << 52) + (thread << 40) + sequence;

	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (int64_t)(value ^ (value >> 31));
}

/* EVENT_PAIR has them in one word. */
static inline int64_t event_pack(uint64_t process, uint64_t thread, uint64_t sequence)
{
	return (int64_t)((process << 52) | (thread << 40) | sequence);
}

#define EVENT_TEXT_BYTES 2048

/* Various lengths, few distinct texts. */
static inline size_t event_text(uint64_t sequence, char *buffer)
{
	size_t length = sequence % 509 == 0 ? 1900 : (size_t)(sequence * 7 % 200);

	for (size_t i = 0; i < length; i++)
		buffer[i] = (char)('a' + (sequence + i) % 26);
	buffer[length] = 0;
	return length;
}

#define EVENT_NAME_BYTES 32

static inline void event_dynamic_name(uint64_t sequence, char *buffer)
{
	snprintf(buffer, EVENT_NAME_BYTES, "dynamic %u", (unsigned int)(sequence % 1000));
}

#endif
