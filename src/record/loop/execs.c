/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listens to each exec on the machine through the kernel's process connector, if permitted (it
 * needs CAP_NET_ADMIN), so that even children that live only milliseconds are seen. Without it the
 * recorder relies on the scans of children.c.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/loop/record_internal.h"

/* Delay before listening again; grows while the processes that exec are not ours. */
#define REARM_NS (5 * TS_NS_PER_MS)
#define REARM_GREATEST_NS (80 * TS_NS_PER_MS)
/* Most fork-only processes between a followed process and one that execs. */
#define ANCESTORS 4
/* How long to remember that a process is not ours. */
#define UNFOLLOWED_NS (2 * TS_NS_PER_S)

/* Offset of the event type in a message. */
#define WHAT_OFFSET \
	(NLMSG_LENGTH(0) + offsetof(struct cn_msg, data) + offsetof(struct proc_event, what))

/* Passes only exec events: forks and exits, including those of threads, are far more frequent. */
static int filter_execs(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WHAT_OFFSET),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXEC), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { .len = TS_ARRAY_SIZE(code), .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int listen_to_kernel(int fd)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	enum proc_cn_mcast_op operation = PROC_CN_MCAST_LISTEN;
	struct cn_msg connector = { .id = { .idx = CN_IDX_PROC, .val = CN_VAL_PROC },
				    .len = sizeof(operation) };
	struct nlmsghdr header = { .nlmsg_len = NLMSG_LENGTH(sizeof(connector) + sizeof(operation)),
				   .nlmsg_type = NLMSG_DONE };
	struct iovec vector[] = { { &header, sizeof(header) },
				  { &connector, sizeof(connector) },
				  { &operation, sizeof(operation) } };

	static_assert(sizeof(header) == NLMSG_HDRLEN, "parts follow each other without a gap");
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	return writev(fd, vector, TS_ARRAY_SIZE(vector)) < 0 ? -1 : 0;
}

static void arm(struct ts_recorder *recorder, int operation)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT,
				     .data.ptr = &recorder->execs_ready };

	epoll_ctl(recorder->epoll, operation, recorder->execs, &event);
	recorder->execs_armed = true;
}

void ts_execs_open(struct ts_recorder *recorder)
{
	int fd;

	if (recorder->execs >= 0)
		return;
	fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	if (fd < 0)
		return;
	if (filter_execs(fd) || listen_to_kernel(fd)) {
		close(fd);
		return;
	}
	recorder->execs = fd;
	recorder->execs_pause_ns = REARM_NS;
	arm(recorder, EPOLL_CTL_ADD);
}

/* Areas from before the exec belong to another program. */
static void replace_areas(struct ts_recorder *recorder, pid_t pid, uint64_t when_ns)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];

		if (target->pid == pid && target->created_ns < (int64_t)when_ns)
			target->replaced = true;
	}
}

static struct ts_unfollowed *unfollowed_slot(struct ts_recorder *recorder, pid_t pid)
{
	return &recorder->unfollowed[(unsigned int)pid % TS_ARRAY_SIZE(recorder->unfollowed)];
}

static bool is_unfollowed(struct ts_recorder *recorder, pid_t pid)
{
	const struct ts_unfollowed *slot = unfollowed_slot(recorder, pid);

	return slot->pid == pid && recorder->now_ns < slot->until_ns;
}

static void set_unfollowed(struct ts_recorder *recorder, pid_t pid)
{
	*unfollowed_slot(recorder, pid) =
		(struct ts_unfollowed){ .pid = pid, .until_ns = recorder->now_ns + UNFOLLOWED_NS };
}

/* The event may arrive after the area of the new program was found. */
static void start_anew(struct ts_recorder *recorder, struct ts_child *child, uint64_t when_ns)
{
	recorder->execs_pause_ns = REARM_NS;
	replace_areas(recorder, child->pid, when_ns);
	child->seen_ns = recorder->now_ns;
	child->check_ns = 0;
	child->checks = 0;
	child->has_area = child->area_ns >= (int64_t)when_ns;
	child->executed = true;
	ts_children_name(child);
	ts_process_user(child->pid, &child->user);
	child->is_others = ts_children_is_others(recorder, child->pid, child->parent);
}

/* Follows a process if it descends from a followed one. */
static void look_at(struct ts_recorder *recorder, pid_t pid, uint64_t when_ns)
{
	struct ts_child *child = ts_children_find(recorder, pid);
	pid_t parent, at;

	if (child) {
		start_anew(recorder, child, when_ns);
		return;
	}
	if (is_unfollowed(recorder, pid))
		return;
	parent = ts_process_parent(pid);
	at = parent;
	for (int i = 0; i < ANCESTORS && at > 1 && !is_unfollowed(recorder, at); i++) {
		if (ts_children_find(recorder, at)) {
			child = ts_children_add(recorder, pid, parent);
			if (child)
				start_anew(recorder, child, when_ns);
			return;
		}
		at = at == recorder->self ? 0 : ts_process_parent(at);
	}
	set_unfollowed(recorder, parent);
}

static void read_events(struct ts_recorder *recorder)
{
	_Alignas(struct nlmsghdr) char buffer[4096];

	for (;;) {
		struct sockaddr_nl from = { 0 };
		socklen_t length = sizeof(from);
		struct proc_event event;
		ssize_t bytes = recvfrom(recorder->execs, buffer, sizeof(buffer), 0,
					 (struct sockaddr *)&from, &length);

		/* Events were lost: the next scan finds the processes that are still alive. */
		if (bytes < 0 && errno == ENOBUFS) {
			recorder->scan_ns = 0;
			continue;
		}
		if (bytes <= 0)
			return;
		/* Accept messages of the kernel only; programs can send, too. */
		if (from.nl_pid ||
		    (size_t)bytes < NLMSG_LENGTH(sizeof(struct cn_msg) + sizeof(event)))
			continue;
		memcpy(&event, buffer + NLMSG_LENGTH(sizeof(struct cn_msg)), sizeof(event));
		if (event.what == PROC_EVENT_EXEC)
			look_at(recorder, event.event_data.exec.process_tgid, event.timestamp_ns);
	}
}

void ts_execs_pass(struct ts_recorder *recorder)
{
	if (recorder->execs < 0)
		return;
	if (recorder->execs_ready) {
		recorder->execs_ready = recorder->execs_armed = false;
		recorder->execs_pause_ns = TS_MIN(recorder->execs_pause_ns * 2, REARM_GREATEST_NS);
		read_events(recorder);
		recorder->execs_ns = recorder->now_ns + recorder->execs_pause_ns;
	}
	if (!recorder->execs_armed && recorder->now_ns >= recorder->execs_ns)
		arm(recorder, EPOLL_CTL_MOD);
}

int64_t ts_execs_due(const struct ts_recorder *recorder)
{
	return recorder->execs >= 0 && !recorder->execs_armed ? recorder->execs_ns : INT64_MAX;
}

void ts_execs_close(struct ts_recorder *recorder)
{
	if (recorder->execs >= 0)
		close(recorder->execs);
}
