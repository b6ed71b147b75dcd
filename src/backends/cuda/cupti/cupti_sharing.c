/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other users of CUPTI in the program (docs/cuda.md, section 3.1), most often torch.profiler. CUPTI
 * supports one subscriber and one pair of buffer callbacks. Both are ours; what others register is
 * stored here and called when it is their turn. The cupti* functions here replace the real ones, by
 * name or through dlsym(). Where we are not involved, they only forward.
 *
 *	other tool calls      what happens
 *	subscribe             our callback calls its callback, for what it enabled
 *	register callbacks    its buffer callbacks and its clock are stored
 *	enable a kind         we step aside: CUPTI's buffer requests go to it
 *	disable the last one  we resume when its buffers are returned. It flushes for that; the
 *	                      helper flushes again and waits some seconds at most. Buffers that
 *	                      come later are still returned to it
 *	finalize              we stop for good
 *
 * `lock` guards what is stored. Nothing is called while it is held.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "backends/cuda/cupti/cupti_device.h"

#define EXPORTED __attribute__((visibility("default")))
#define DOMAINS 16u
#define NUMBERS 2048u
#define THEIR_BUFFERS 1024u /* tracked at once */
/* How long we wait for their buffers: after they flushed, and if they never do. */
#define FLUSHED_WAIT_NS 2000000000
#define UNFLUSHED_WAIT_NS 5000000000

/* The functions that others call, as CUPTI declares them. */
#define CUPTI_FUNCTION(name, parameters) EXPORTED int cupti##name parameters;
CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The only other subscriber that we support; its address is the handle that the other tool gets. */
static struct {
	cupti_callback callback; /* atomic; NULL: none */
	void *data;
	uint8_t is_on[DOMAINS][NUMBERS];
} other;

static cupti_requested other_requested; /* these three: atomic */
static cupti_completed other_completed;
static cupti_timestamp other_timestamp;
static uint8_t kinds[CUPTI_KIND_LIMIT]; /* enabled by others; 1: for all, 2: for some contexts */
static uint8_t *counted[THEIR_BUFFERS]; /* their buffers that CUPTI holds; atomic */
static uint32_t held;                   /* number of these; atomic */
static uint64_t disabled_at; /* ts_now() when the last kind was disabled; 0: some are enabled */
static bool was_flushed;     /* by them, since then */

/* ---- callbacks for other tools ---- */

bool cuda_other_tool_wants(uint32_t domain, uint32_t number)
{
	return domain < DOMAINS && number < NUMBERS &&
	       __atomic_load_n(&other.is_on[domain][number], __ATOMIC_RELAXED);
}

void cuda_other_tool_callback(uint32_t domain, uint32_t number, const void *data)
{
	cupti_callback callback = __atomic_load_n(&other.callback, __ATOMIC_ACQUIRE);

	if (callback && cuda_other_tool_wants(domain, number))
		callback(other.data, domain, number, data);
}

static bool change_counted(uint8_t *from, uint8_t *to)
{
	for (uint32_t i = 0; i < THEIR_BUFFERS; i++) {
		uint8_t *found = from;

		if (__atomic_compare_exchange_n(&counted[i], &found, to, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

bool cuda_other_tool_requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	cupti_requested theirs = __atomic_load_n(&other_requested, __ATOMIC_ACQUIRE);

	if (!theirs)
		return false;
	theirs(buffer, bytes, most_records);
	if (*buffer && change_counted(NULL, *buffer))
		__atomic_add_fetch(&held, 1, __ATOMIC_ACQ_REL);
	return true;
}

/*
 * They may reuse its memory at once: it is forgotten before the callback, and counted as held until
 * they have it.
 */
void cuda_other_tool_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			       size_t valid)
{
	cupti_completed theirs = __atomic_load_n(&other_completed, __ATOMIC_ACQUIRE);
	bool was_counted = buffer && change_counted(buffer, NULL);

	if (theirs)
		theirs(context, stream, buffer, bytes, valid);
	if (was_counted)
		__atomic_sub_fetch(&held, 1, __ATOMIC_ACQ_REL);
}

cupti_timestamp cuda_other_tool_timestamp(void)
{
	return __atomic_load_n(&other_timestamp, __ATOMIC_ACQUIRE);
}

/* ---- forwarding ---- */

static void *next(const char *name)
{
	int saved = errno;
	void *found = cuda_cupti_mapped(name);

	errno = saved;
	return found;
}

#define GO_ON(name, types, arguments)                                 \
	do {                                                          \
		int(*real) types = (int(*) types)next("cupti" #name); \
		return real ? real arguments : CUPTI_NOT_INITIALIZED; \
	} while (0)

/* ---- subscribers ---- */

static int subscribe(void **subscriber, cupti_callback callback, void *data)
{
	int result = CUPTI_OTHER_SUBSCRIBER;

	if (!subscriber || !callback)
		return CUPTI_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	if (!other.callback) {
		other.data = data;
		__atomic_store_n(&other.callback, callback, __ATOMIC_RELEASE);
		*subscriber = &other;
		result = CUPTI_OK;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static bool has_subscription(void)
{
	return cuda_device_reach() && cuda_subscriber_handle();
}

int cuptiSubscribe(void **subscriber, cupti_callback callback, void *data)
{
	if (!has_subscription())
		GO_ON(Subscribe, (void **, cupti_callback, void *), (subscriber, callback, data));
	return subscribe(subscriber, callback, data);
}

int cuptiSubscribe_v2(void **subscriber, cupti_callback callback, void *data, void *parameters)
{
	if (!has_subscription())
		GO_ON(Subscribe_v2, (void **, cupti_callback, void *, void *),
		      (subscriber, callback, data, parameters));
	return subscribe(subscriber, callback, data);
}

/* A callback that both use stays enabled. */
static int switch_callback(uint32_t on, uint32_t domain, uint32_t number)
{
	if (!on && cuda_subscriber_wants(domain, number))
		return CUPTI_OK;
	return cupti.EnableCallback(on, cuda_subscriber_handle(), domain, number);
}

static int switch_domain(uint32_t on, uint32_t domain)
{
	int result = cupti.EnableDomain ? cupti.EnableDomain(on, cuda_subscriber_handle(), domain)
					: CUPTI_NOT_INITIALIZED;

	for (uint32_t number = 0; !on && number < NUMBERS; number++)
		if (cuda_subscriber_wants(domain, number))
			cupti.EnableCallback(1, cuda_subscriber_handle(), domain, number);
	if (result == CUPTI_OK)
		memset(other.is_on[domain], on != 0, sizeof(other.is_on[domain]));
	if (!on && domain == CUPTI_DOMAIN_DRIVER)
		cuda_device_settle();
	return result;
}

int cuptiUnsubscribe(void *subscriber)
{
	if (subscriber != &other)
		GO_ON(Unsubscribe, (void *), (subscriber));
	pthread_mutex_lock(&lock);
	__atomic_store_n(&other.callback, NULL, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	for (uint32_t domain = 0; domain < DOMAINS; domain++)
		for (uint32_t number = 0; number < NUMBERS; number++)
			if (other.is_on[domain][number]) {
				other.is_on[domain][number] = 0;
				if (cuda_device_reach())
					switch_callback(0, domain, number);
			}
	cuda_device_settle();
	return CUPTI_OK;
}

int cuptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t number)
{
	int result;

	if (subscriber != &other || !cuda_device_reach())
		GO_ON(EnableCallback, (uint32_t, void *, uint32_t, uint32_t),
		      (on, subscriber == &other ? cuda_subscriber_handle() : subscriber, domain,
		       number));
	if (domain >= DOMAINS || number >= NUMBERS)
		return CUPTI_INVALID_PARAMETER;
	result = switch_callback(on, domain, number);
	if (result == CUPTI_OK)
		__atomic_store_n(&other.is_on[domain][number], on != 0, __ATOMIC_RELAXED);
	if (!on && domain == CUPTI_DOMAIN_DRIVER && cuda_subscriber_wants(domain, number))
		cuda_device_settle();
	return result;
}

int cuptiEnableDomain(uint32_t on, void *subscriber, uint32_t domain)
{
	if (subscriber != &other || !cuda_device_reach())
		GO_ON(EnableDomain, (uint32_t, void *, uint32_t),
		      (on, subscriber == &other ? cuda_subscriber_handle() : subscriber, domain));
	return domain < DOMAINS ? switch_domain(on, domain) : CUPTI_INVALID_PARAMETER;
}

int cuptiEnableAllDomains(uint32_t on, void *subscriber)
{
	int result = CUPTI_OK;

	if (subscriber != &other || !cuda_device_reach())
		GO_ON(EnableAllDomains, (uint32_t, void *),
		      (on, subscriber == &other ? cuda_subscriber_handle() : subscriber));
	for (uint32_t domain = 1; domain < CUPTI_DOMAINS && result == CUPTI_OK; domain++)
		result = switch_domain(on, domain);
	return result;
}

int cuptiGetCallbackState(uint32_t *on, void *subscriber, uint32_t domain, uint32_t number)
{
	if (subscriber != &other)
		GO_ON(GetCallbackState, (uint32_t *, void *, uint32_t, uint32_t),
		      (on, subscriber, domain, number));
	if (!on || domain >= DOMAINS || number >= NUMBERS)
		return CUPTI_INVALID_PARAMETER;
	*on = other.is_on[domain][number];
	return CUPTI_OK;
}

/* ---- activities ---- */

int cuptiActivityRegisterCallbacks(cupti_requested requested, cupti_completed completed)
{
	if (!cuda_device_reach())
		GO_ON(ActivityRegisterCallbacks, (cupti_requested, cupti_completed),
		      (requested, completed));
	if (!requested || !completed)
		return CUPTI_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	__atomic_store_n(&other_completed, completed, __ATOMIC_RELEASE);
	__atomic_store_n(&other_requested, requested, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return CUPTI_OK;
}

int cuptiActivityRegisterTimestampCallback(cupti_timestamp timestamp)
{
	if (!cuda_device_reach())
		GO_ON(ActivityRegisterTimestampCallback, (cupti_timestamp), (timestamp));
	if (!timestamp)
		return CUPTI_INVALID_PARAMETER;
	__atomic_store_n(&other_timestamp, timestamp, __ATOMIC_RELEASE);
	if (cuda_device_state() == CUDA_DEVICE_ASIDE)
		cuda_device_lend_clock();
	return CUPTI_OK;
}

/* While CUPTI uses our clock, its timestamp is not the one that they expect. */
int cuptiGetTimestamp(uint64_t *ns)
{
	cupti_timestamp theirs = cuda_other_tool_timestamp();
	enum cuda_device_state state = cuda_device_state();
	struct timespec now;

	if (state != CUDA_DEVICE_ON && state != CUDA_DEVICE_IDLE)
		GO_ON(GetTimestamp, (uint64_t *), (ns));
	if (!ns)
		return CUPTI_INVALID_PARAMETER;
	if (theirs) {
		*ns = theirs();
		return CUPTI_OK;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	*ns = (uint64_t)now.tv_sec * CUDA_NS_PER_SECOND + (uint64_t)now.tv_nsec;
	return CUPTI_OK;
}

enum { FOR_ALL = 1, FOR_CONTEXT = 2 };

/* Under the lock. */
static bool has_kinds(void)
{
	for (uint32_t kind = 0; kind < CUPTI_KIND_LIMIT; kind++)
		if (kinds[kind])
			return true;
	return false;
}

static void mark(uint32_t kind, uint8_t how, bool is_on)
{
	if (kind >= CUPTI_KIND_LIMIT)
		return;
	pthread_mutex_lock(&lock);
	kinds[kind] = (uint8_t)(is_on ? kinds[kind] | how : kinds[kind] & ~how);
	disabled_at = has_kinds() ? 0 : ts_now();
	was_flushed = false;
	pthread_mutex_unlock(&lock);
}

/* Resumes if the other tool has stopped. */
static void look(bool may_wait)
{
	bool is_over, is_late;

	pthread_mutex_lock(&lock);
	is_over = disabled_at && !__atomic_load_n(&held, __ATOMIC_ACQUIRE);
	is_late = disabled_at && !may_wait &&
		  ts_ticks_ns(ts_now() - disabled_at) >
			  (was_flushed ? FLUSHED_WAIT_NS : UNFLUSHED_WAIT_NS);
	pthread_mutex_unlock(&lock);
	if ((is_over || is_late) && cuda_device_state() == CUDA_DEVICE_ASIDE)
		cuda_device_come_back();
}

void cuda_other_tool_poll(void)
{
	bool is_due;

	pthread_mutex_lock(&lock);
	is_due = disabled_at && was_flushed;
	pthread_mutex_unlock(&lock);
	/* What was running when it flushed may be complete by now. */
	if (is_due)
		cupti.ActivityFlushAll(0);
	look(false);
}

/* Ours are disabled before theirs are enabled: a kind that both use is theirs alone. */
static void begin_kind(uint32_t kind, uint8_t how)
{
	if (!cuda_device_reach())
		return;
	mark(kind, how, true);
	cuda_device_step_aside();
}

static int begun_kind(int result, uint32_t kind, uint8_t how)
{
	if (result != CUPTI_OK)
		mark(kind, how, false);
	return result;
}

int cuptiActivityEnable(uint32_t kind)
{
	int (*real)(uint32_t) = (int (*)(uint32_t))next("cuptiActivityEnable");

	begin_kind(kind, FOR_ALL);
	return begun_kind(real ? real(kind) : CUPTI_NOT_INITIALIZED, kind, FOR_ALL);
}

int cuptiActivityEnableAndDump(uint32_t kind)
{
	int (*real)(uint32_t) = (int (*)(uint32_t))next("cuptiActivityEnableAndDump");

	begin_kind(kind, FOR_ALL);
	return begun_kind(real ? real(kind) : CUPTI_NOT_INITIALIZED, kind, FOR_ALL);
}

int cuptiActivityEnableContext(void *context, uint32_t kind)
{
	int (*real)(void *, uint32_t) =
		(int (*)(void *, uint32_t))next("cuptiActivityEnableContext");

	begin_kind(kind, FOR_CONTEXT);
	return begun_kind(real ? real(context, kind) : CUPTI_NOT_INITIALIZED, kind, FOR_CONTEXT);
}

/* They cannot disable a kind that they did not enable. */
static bool is_theirs(uint32_t kind)
{
	enum cuda_device_state state = cuda_device_state();

	return (state != CUDA_DEVICE_ON && state != CUDA_DEVICE_IDLE) || kind >= CUPTI_KIND_LIMIT ||
	       kinds[kind];
}

int cuptiActivityDisable(uint32_t kind)
{
	int (*real)(uint32_t) = (int (*)(uint32_t))next("cuptiActivityDisable");
	int result;

	if (!is_theirs(kind))
		return CUPTI_OK;
	result = real ? real(kind) : CUPTI_NOT_INITIALIZED;
	mark(kind, FOR_ALL, false);
	look(true);
	return result;
}

int cuptiActivityDisableContext(void *context, uint32_t kind)
{
	int (*real)(void *, uint32_t) =
		(int (*)(void *, uint32_t))next("cuptiActivityDisableContext");
	int result;

	if (!is_theirs(kind))
		return CUPTI_OK;
	result = real ? real(context, kind) : CUPTI_NOT_INITIALIZED;
	mark(kind, FOR_CONTEXT, false);
	look(true);
	return result;
}

static void flushed(void)
{
	pthread_mutex_lock(&lock);
	was_flushed = disabled_at != 0;
	pthread_mutex_unlock(&lock);
	look(true);
}

/*
 * While the activities are ours, a flush of another tool is not forced: it would truncate records
 * of running work.
 */
static uint32_t flag_for(uint32_t flag)
{
	enum cuda_device_state state = cuda_device_state();

	return state == CUDA_DEVICE_ON || state == CUDA_DEVICE_IDLE ? 0 : flag;
}

int cuptiActivityFlushAll(uint32_t flag)
{
	int (*real)(uint32_t) = (int (*)(uint32_t))next("cuptiActivityFlushAll");
	int result = real ? real(flag_for(flag)) : CUPTI_NOT_INITIALIZED;

	flushed();
	return result;
}

int cuptiActivityFlush(void *context, uint32_t stream, uint32_t flag)
{
	int (*real)(void *, uint32_t, uint32_t) =
		(int (*)(void *, uint32_t, uint32_t))next("cuptiActivityFlush");
	int result = real ? real(context, stream, flag_for(flag)) : CUPTI_NOT_INITIALIZED;

	flushed();
	return result;
}

int cuptiFinalize(void)
{
	int saved = errno;

	cuda_device_refuse("another tool stopped CUPTI");
	cuda_cupti_end();
	if (cuda_device_state() != CUDA_DEVICE_FORKED)
		cuda_helper_await();
	errno = saved;
	GO_ON(Finalize, (void), ());
}

/* ---- by name ---- */

void *cuda_other_tool(const char *name)
{
#define OURS(function)                                 \
	{                                              \
#function, (void *)(uintptr_t)function \
	}
	static const struct {
		const char *name;
		void *function;
	} ours[] = {
		OURS(cuptiSubscribe),
		OURS(cuptiSubscribe_v2),
		OURS(cuptiUnsubscribe),
		OURS(cuptiEnableCallback),
		OURS(cuptiEnableDomain),
		OURS(cuptiEnableAllDomains),
		OURS(cuptiGetCallbackState),
		OURS(cuptiActivityRegisterCallbacks),
		OURS(cuptiActivityRegisterTimestampCallback),
		OURS(cuptiGetTimestamp),
		OURS(cuptiActivityEnable),
		OURS(cuptiActivityEnableAndDump),
		OURS(cuptiActivityEnableContext),
		OURS(cuptiActivityDisable),
		OURS(cuptiActivityDisableContext),
		OURS(cuptiActivityFlushAll),
		OURS(cuptiActivityFlush),
		OURS(cuptiFinalize),
	};
#undef OURS
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(ours[i].name, name))
			return ours[i].function;
	return NULL;
}
