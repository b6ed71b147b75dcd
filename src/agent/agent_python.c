/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the frames of the Python interpreter in this process from its data structures. The only
 * Python function it calls is the one that returns the calling thread's state, which needs no lock.
 * The thread is inside a call, so its frames do not change. The first stack is read through the
 * kernel: if the layout known for this version is wrong, that read fails instead of crashing the
 * program.
 */
#include "agent/agent_python_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tracesmith/error.h>

#include "live/local/live_layout.h"

#define MOST_CODE_BYTES 512u
#define MOST_FAILURES 8u

struct agent_python agent_python;
__thread struct agent_python_buffer *agent_python_buffer __attribute__((tls_model("initial-exec")));

uint32_t agent_python_parse(const char *text)
{
	uint32_t requested = 0;

	while (text && *text) {
		size_t length = strcspn(text, ",");

		if (length == 5 && !strncmp(text, "marks", length))
			requested |= AGENT_PYTHON_MARKS;
		else if (length == 5 && !strncmp(text, "calls", length))
			requested |= AGENT_PYTHON_CALLS;
		text += length + (text[length] == ',');
	}
	return requested;
}

/* ---- finding Python ---- */

static uint64_t address_of(const char *symbol)
{
	return (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, symbol);
}

/* Upper half of PY_VERSION_HEX, such as 0x030b; 0: unknown. */
static unsigned int version_of(void)
{
	const unsigned long *number = dlsym(RTLD_DEFAULT, "Py_Version");
	const char *(*text_of)(void);
	unsigned long major, minor;
	void *symbol;
	char *dot;

	if (number)
		return (unsigned int)(*number >> 16) & 0xffff;
	symbol = dlsym(RTLD_DEFAULT, "Py_GetVersion");
	memcpy(&text_of, &symbol, sizeof(text_of));
	if (!text_of)
		return 0;
	major = strtoul(text_of(), &dot, 10);
	minor = *dot == '.' ? strtoul(dot + 1, NULL, 10) : 0;
	return (unsigned int)(major << 8 | (minor & 0xff));
}

static bool find_layout(unsigned int version)
{
	uint64_t runtime = address_of("_PyRuntime"), unused;
	unsigned int minor = version & 0xff;
	bool is_debug = address_of("_Py_NegativeRefcount") || address_of("_Py_RefTotal");

	if (version >> 8 != 3 || minor < TS_PYTHON_OLDEST_MINOR || minor > TS_PYTHON_NEWEST_MINOR)
		return false;
	if (minor <= 12)
		return ts_python_layout_of_version(&agent_python.layout, minor, is_debug);
	return runtime &&
	       ts_python_layout_of_runtime(&agent_python.layout, (const void *)(uintptr_t)runtime,
					   TS_PYTHON_DEBUG_OFFSETS_BYTES, &unused) == 0;
}

/* Reports the outcome once, as a fact of the process. */
static void report(const char *what)
{
	char json[128];
	struct agent_note note = { .kind = TS_LIVE_FACT,
				   .text_count = 2,
				   .texts = { "python_stacks", json } };

	snprintf(json, sizeof(json), "\"%s\"", what);
	agent_emit_note(&ts_process_tracer, &note);
}

static void report_unknown(void)
{
	uint32_t version = __atomic_exchange_n(&agent_python.unknown, 0, __ATOMIC_RELAXED);
	char text[64];

	if (!version)
		return;
	snprintf(text, sizeof(text), "not read: unsupported Python %u.%u", version >> 8 & 0xff,
		 version & 0xff);
	report(text);
}

/* The lock is held. */
static void look(void)
{
	void *this_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	uint64_t code_type = address_of("PyCode_Type");
	unsigned int version;

	if (!this_thread || !code_type)
		return;
	version = version_of();
	if (!find_layout(version)) {
		agent_python.unknown = version | 0x10000;
		__atomic_store_n(&agent_python.state, PYTHON_OFF, __ATOMIC_RELEASE);
		return;
	}
	memcpy(&agent_python.this_thread, &this_thread, sizeof(agent_python.this_thread));
	agent_python.code_type = code_type;
	agent_python.name = agent_python.layout.code.qualified_name != TS_PYTHON_NONE &&
					    agent_python.layout.code.qualified_name
				    ? agent_python.layout.code.qualified_name
				    : agent_python.layout.code.name;
	agent_python.loop = address_of("_PyEval_EvalFrameDefault");
	__atomic_store_n(&agent_python.state, PYTHON_FOUND, __ATOMIC_RELEASE);
}

static bool try_lock(void)
{
	uint32_t none = 0;

	return __atomic_compare_exchange_n(&agent_python.lock, &none, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void unlock(void)
{
	__atomic_store_n(&agent_python.lock, 0, __ATOMIC_RELEASE);
}

void agent_python_look(void)
{
	int saved_errno = errno;

	if (try_lock()) {
		if (agent_python.state == PYTHON_MISSING)
			look();
		unlock();
	}
	errno = saved_errno;
}

/* ---- first stack, through the kernel ---- */

static bool check_frame(struct ts_python_process_view *view,
			const struct ts_python_raw_frame *frame, uint8_t *table)
{
	struct ts_python_code_identity identity;
	struct ts_python_code_text text;
	uint8_t copy[MOST_CODE_BYTES];

	return agent_python.layout.code.bytes <= sizeof(copy) &&
	       ts_python_memory_read(view->memory, frame->code, copy,
				     agent_python.layout.code.bytes) &&
	       ts_python_code_identify(&agent_python.layout, frame->code, agent_python.code_type,
				       copy, &identity) &&
	       ts_python_code_read(view, &identity, &text, table, PYTHON_TABLE_BYTES) &&
	       text.name[0] &&
	       agent_python_line(view->memory, frame, &text, table, identity.first_line) >= 0;
}

static bool check_stack(uint64_t thread)
{
	struct ts_python_memory memory = { .pid = getpid() };
	struct ts_python_process_view view = { .memory = &memory,
					       .layout = &agent_python.layout,
					       .code_type = agent_python.code_type };
	bool is_complete;
	size_t depth = ts_python_walk(&view, thread, agent_python_buffer->raw,
				      PYTHON_CHECKED_FRAMES, &is_complete);

	if (!depth || (!is_complete && depth < PYTHON_CHECKED_FRAMES))
		return false;
	for (size_t i = 0; i < depth; i++)
		if (!check_frame(&view, &agent_python_buffer->raw[i], agent_python_buffer->table))
			return false;
	return true;
}

static void check(uint64_t thread)
{
	char text[64];

	if (!try_lock())
		return;
	if (agent_python.state == PYTHON_FOUND && agent_python_remember() && check_stack(thread)) {
		__atomic_store_n(&agent_python.state, PYTHON_CHECKED, __ATOMIC_RELEASE);
		snprintf(text, sizeof(text), "3.%u", agent_python.layout.minor);
		report(text);
	} else if (agent_python.state == PYTHON_FOUND && ++agent_python.failures >= MOST_FAILURES) {
		__atomic_store_n(&agent_python.state, PYTHON_OFF, __ATOMIC_RELEASE);
		report("not read: frames not found where this version keeps them");
	}
	unlock();
}

/* ---- taking a stack ---- */

static bool is_wanted(const struct core *core, uint32_t what)
{
	unsigned int word = what == AGENT_PYTHON_MARKS ? TS_CONFIG_PYTHON_MARKS
						       : TS_CONFIG_PYTHON_CALLS;

	return (agent_python_requested & what) &&
	       __atomic_load_n(&core->control->config[word], __ATOMIC_RELAXED);
}

/* Address of the thread's state; 0: it has none, or Python was not found. */
static uint64_t thread_state(void)
{
	uint32_t state = __atomic_load_n(&agent_python.state, __ATOMIC_ACQUIRE);
	uint64_t thread;

	if (AGENT_UNLIKELY(agent_python.unknown))
		report_unknown();
	if (state != PYTHON_FOUND && state != PYTHON_CHECKED)
		return 0;
	thread = (uint64_t)(uintptr_t)agent_python.this_thread();
	if (!thread)
		return 0;
	if (AGENT_UNLIKELY(!agent_python_buffer)) {
		agent_python_buffer = agent_memory(sizeof(*agent_python_buffer));
		if (!agent_python_buffer)
			return 0;
		agent_watch_thread(agent_writer);
	}
	return agent_python_buffer->is_busy ? 0 : thread;
}

bool agent_python_frames(struct core *core, struct agent_python_stack *ret_stack)
{
	int saved_errno = errno;
	uint64_t thread = thread_state();
	uint32_t depth = 0;

	if (thread) {
		agent_python_buffer->is_busy = true;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (AGENT_UNLIKELY(agent_python.state == PYTHON_FOUND))
			check(thread);
		if (agent_python.state == PYTHON_CHECKED)
			depth = agent_python_walk(core, thread);
		*ret_stack = (struct agent_python_stack){
			agent_python_buffer->frames + PYTHON_MOST_DEPTH - depth,
			agent_python_buffer->is_entry + PYTHON_MOST_DEPTH - depth, depth
		};
		if (!depth)
			agent_python_done();
	}
	errno = saved_errno;
	return depth != 0;
}

bool agent_python_take(struct core *core, uint32_t what, struct agent_stack *ret_stack)
{
	struct agent_python_stack stack;

	if (!is_wanted(core, what) || !agent_python_frames(core, &stack))
		return false;
	*ret_stack = (struct agent_stack){ stack.frames, stack.count };
	return true;
}

uint64_t agent_python_loop(void)
{
	return __atomic_load_n(&agent_python.state, __ATOMIC_ACQUIRE) == PYTHON_CHECKED
		       ? agent_python.loop
		       : 0;
}

void agent_python_done(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	agent_python_buffer->is_busy = false;
}

void agent_python_thread_exit(void)
{
	struct agent_python_buffer *previous = agent_python_buffer;

	agent_python_buffer = NULL;
	if (previous)
		munmap(previous, sizeof(*previous));
}
