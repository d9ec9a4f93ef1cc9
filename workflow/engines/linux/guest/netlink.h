/// Requests to the kernel over netlink: built in place, answered at once, fatal where refused.
#pragma once

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

struct request {
	struct nlmsghdr header;
	char body[16384];
};

/// Open a socket to `protocol` in the network namespace that the caller is in.
int netlink_open(int protocol);

void request_begin(struct request *request, uint16_t type, uint16_t flags, const void *fixed,
		   size_t size);
void request_put(struct request *request, uint16_t attribute, const void *data, size_t size);
void request_put_u32(struct request *request, uint16_t attribute, uint32_t value);
void request_put_text(struct request *request, uint16_t attribute, const char *text);
struct nlattr *request_nest(struct request *request, uint16_t attribute);
void request_end(struct request *request, struct nlattr *nest);

/// Send and wait for the acknowledgement; `what` names the request where the kernel refuses it.
void netlink_do(int socket, struct request *request, const char *what);

/// Send and return the first answer (valid until the next call).
const struct nlmsghdr *netlink_get(int socket, struct request *request, const char *what);

/// Return the attribute among `size` bytes at `first`, or NULL.
const struct nlattr *attribute_find(const void *first, size_t size, uint16_t attribute);
static inline const void *attribute_data(const struct nlattr *attribute)
{
	return (const char *)attribute + NLA_HDRLEN;
}
static inline size_t attribute_size(const struct nlattr *attribute)
{
	return attribute->nla_len - NLA_HDRLEN;
}
