#include "netlink.h"

#include "common.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int netlink_open(int protocol)
{
	struct sockaddr_nl local = {.nl_family = AF_NETLINK};
	int one = 1;
	int file = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (file < 0 || bind(file, (struct sockaddr *)&local, sizeof(local)))
		die("netlink: %m");
	setsockopt(file, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	return file;
}

static void append(struct request *request, const void *data, size_t size)
{
	size_t end = NLMSG_ALIGN(request->header.nlmsg_len);

	if (end + NLMSG_ALIGN(size) > sizeof(*request))
		die("netlink: request too long");
	if (size)
		memcpy((char *)request + end, data, size);
	request->header.nlmsg_len = end + NLMSG_ALIGN(size);
}

void request_begin(struct request *request, uint16_t type, uint16_t flags, const void *fixed,
		   size_t size)
{
	memset(request, 0, sizeof(*request));
	request->header.nlmsg_len = NLMSG_HDRLEN;
	request->header.nlmsg_type = type;
	request->header.nlmsg_flags = NLM_F_REQUEST | flags;
	append(request, fixed, size);
}

void request_put(struct request *request, uint16_t attribute, const void *data, size_t size)
{
	struct nlattr head = {.nla_len = NLA_HDRLEN + size, .nla_type = attribute};

	append(request, &head, sizeof(head));
	append(request, data, size);
}

void request_put_u32(struct request *request, uint16_t attribute, uint32_t value)
{
	request_put(request, attribute, &value, sizeof(value));
}

void request_put_text(struct request *request, uint16_t attribute, const char *text)
{
	request_put(request, attribute, text, strlen(text) + 1);
}

struct nlattr *request_nest(struct request *request, uint16_t attribute)
{
	struct nlattr *nest =
	    (struct nlattr *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));

	request_put(request, attribute | NLA_F_NESTED, NULL, 0);
	return nest;
}

void request_end(struct request *request, struct nlattr *nest)
{
	nest->nla_len = (char *)request + request->header.nlmsg_len - (char *)nest;
}

static const struct nlmsghdr *exchange(int socket, struct request *request, const char *what)
{
	static char answer[65536] __attribute__((aligned(8)));
	ssize_t size;

	if (send(socket, request, request->header.nlmsg_len, 0) < 0)
		die("%s: %m", what);
	size = recv(socket, answer, sizeof(answer), 0);
	if (size < (ssize_t)sizeof(struct nlmsghdr))
		die("%s: no answer: %m", what);
	return (const struct nlmsghdr *)answer;
}

/// The kernel's own words, if it gave any, are in the extended acknowledgement.
static void refused(const struct nlmsghdr *answer, const char *what, int error)
{
	const char *words = "";
	size_t before = NLMSG_HDRLEN + sizeof(struct nlmsgerr);

	if ((answer->nlmsg_flags & NLM_F_ACK_TLVS) && (answer->nlmsg_flags & NLM_F_CAPPED) &&
	    answer->nlmsg_len > before) {
		const struct nlattr *text = attribute_find(
		    (const char *)answer + before, answer->nlmsg_len - before, NLMSGERR_ATTR_MSG);
		if (text)
			words = attribute_data(text);
	}
	die("%s: %s %s", what, strerror(error), words);
}

void netlink_do(int socket, struct request *request, const char *what)
{
	const struct nlmsghdr *answer;
	const struct nlmsgerr *status;

	request->header.nlmsg_flags |= NLM_F_ACK;
	answer = exchange(socket, request, what);
	status = NLMSG_DATA(answer);
	if (answer->nlmsg_type != NLMSG_ERROR)
		die("%s: unexpected answer", what);
	if (status->error)
		refused(answer, what, -status->error);
}

const struct nlmsghdr *netlink_get(int socket, struct request *request, const char *what)
{
	const struct nlmsghdr *answer = exchange(socket, request, what);

	if (answer->nlmsg_type == NLMSG_ERROR)
		refused(answer, what, -((const struct nlmsgerr *)NLMSG_DATA(answer))->error);
	return answer;
}

const struct nlattr *attribute_find(const void *first, size_t size, uint16_t attribute)
{
	const char *at = first;
	const char *end = at + size;

	while (end - at >= NLA_HDRLEN) {
		const struct nlattr *item = (const struct nlattr *)at;

		if (item->nla_len < NLA_HDRLEN || item->nla_len > end - at)
			break;
		if ((item->nla_type & NLA_TYPE_MASK) == attribute)
			return item;
		at += NLA_ALIGN(item->nla_len);
	}
	return NULL;
}
