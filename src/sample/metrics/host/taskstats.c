/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context switches from the kernel's taskstats, through generic netlink. Opens a socket per query:
 * these are made once a second, and hold no descriptor in between.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/memory.h"
#include "sample/metrics/host/taskstats.h"

#define ANSWER_BYTES 4096u

struct question {
	struct nlmsghdr header;
	struct genlmsghdr generic;
	struct nlattr attribute;
	char data[16];
};

struct answer {
	size_t length;
	union {
		struct nlmsghdr header;
		char bytes[ANSWER_BYTES];
	} u;
};

/* The netlink family id of "TASKSTATS"; 0: not queried yet. */
static atomic_int known_family;

/* ---- questions ---- */

static int open_socket(void)
{
	/* The kernel answers immediately, or not at all. */
	struct timeval patience = { .tv_usec = 100000 };
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&self, sizeof(self)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

static int receive(int fd, struct answer *ret_answer)
{
	struct nlmsgerr refusal;
	ssize_t got;

	do {
		got = recv(fd, ret_answer->u.bytes, sizeof(ret_answer->u.bytes), 0);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if ((size_t)got < NLMSG_HDRLEN || ret_answer->u.header.nlmsg_len > (size_t)got)
		return -EPROTO;
	ret_answer->length = ret_answer->u.header.nlmsg_len;
	if (ret_answer->u.header.nlmsg_type != NLMSG_ERROR)
		return 0;
	if (ret_answer->length < NLMSG_LENGTH(sizeof(refusal)))
		return -EPROTO;
	memcpy(&refusal, ret_answer->u.bytes + NLMSG_HDRLEN, sizeof(refusal));
	return refusal.error < 0 ? refusal.error : -EPROTO;
}

static int query(int fd, int family, uint8_t command, uint16_t type, const void *data, size_t bytes,
		 struct answer *ret_answer)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct question question = {
		.header = { .nlmsg_type = (uint16_t)family, .nlmsg_flags = NLM_F_REQUEST },
		.generic = { .cmd = command, .version = 1 },
		.attribute = { .nla_type = type, .nla_len = (uint16_t)(NLA_HDRLEN + bytes) },
	};

	ret_answer->length = 0;
	memcpy(question.data, data, bytes);
	question.header.nlmsg_len =
		(uint32_t)(offsetof(struct question, data) + NLA_ALIGN((uint32_t)bytes));
	if (sendto(fd, &question, question.header.nlmsg_len, 0, (const struct sockaddr *)&kernel,
		   sizeof(kernel)) < 0)
		return -errno;
	return receive(fd, ret_answer);
}

/* ---- answers ---- */

struct span {
	const char *at;
	size_t length;
};

/* The payload of the attribute of this type. */
static bool find_attribute(struct span list, uint16_t type, struct span *ret_content)
{
	while (list.length >= NLA_HDRLEN) {
		struct nlattr attribute;
		size_t aligned;

		memcpy(&attribute, list.at, sizeof(attribute));
		if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > list.length)
			return false;
		if ((attribute.nla_type & NLA_TYPE_MASK) == type) {
			*ret_content = (struct span){ list.at + NLA_HDRLEN,
						      attribute.nla_len - (size_t)NLA_HDRLEN };
			return true;
		}
		aligned = TS_MIN((size_t)NLA_ALIGN(attribute.nla_len), list.length);
		list.at += aligned;
		list.length -= aligned;
	}
	return false;
}

static struct span attributes(const struct answer *answer)
{
	size_t begin = NLMSG_HDRLEN + GENL_HDRLEN;

	if (answer->length < begin)
		return (struct span){ NULL, 0 };
	return (struct span){ answer->u.bytes + begin, answer->length - begin };
}

/* The id, or a negative errno. */
static int find_family(int fd)
{
	struct answer answer;
	struct span content;
	uint16_t number;
	int family = atomic_load(&known_family);

	if (family > 0)
		return family;
	family = query(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
		       TASKSTATS_GENL_NAME, sizeof(TASKSTATS_GENL_NAME), &answer);
	if (family < 0)
		return family;
	if (!find_attribute(attributes(&answer), CTRL_ATTR_FAMILY_ID, &content) ||
	    content.length < sizeof(number))
		return -EPROTO;
	memcpy(&number, content.at, sizeof(number));
	atomic_store(&known_family, number);
	return number;
}

static int query_switches(int fd, pid_t pid, struct ts_switches *ret_switches)
{
	struct taskstats stats;
	struct answer answer;
	struct span group, content;
	uint32_t number = (uint32_t)pid;
	int family = find_family(fd);

	if (family < 0)
		return family;
	family = query(fd, family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_TGID, &number,
		       sizeof(number), &answer);
	if (family < 0)
		return family;
	/* Newer kernels append members, older ones have fewer. */
	if (!find_attribute(attributes(&answer), TASKSTATS_TYPE_AGGR_TGID, &group) ||
	    !find_attribute(group, TASKSTATS_TYPE_STATS, &content) ||
	    content.length < offsetof(struct taskstats, nivcsw) + sizeof(stats.nivcsw))
		return -EPROTO;
	memcpy(&stats, content.at, TS_MIN(content.length, sizeof(stats)));
	ret_switches->voluntary = stats.nvcsw;
	ret_switches->involuntary = stats.nivcsw;
	return 0;
}

int ts_taskstats_read(pid_t pid, struct ts_switches *ret_switches)
{
	int fd = open_socket(), error;

	if (fd < 0)
		return fd;
	error = query_switches(fd, pid, ret_switches);
	close(fd);
	return error;
}
