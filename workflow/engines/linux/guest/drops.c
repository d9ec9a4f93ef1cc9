#include "drops.h"

#include "netlink.h"
#include "network.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/net_dropmon.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct drop {
	struct packet packet;
	bool of_flow;
};

static int monitor = -1;
static struct drop *waiting;
static size_t first, count, room;

static void command(struct request *request, uint16_t family, uint8_t number)
{
	struct genlmsghdr head = {.cmd = number, .version = 2};

	request_begin(request, family, 0, &head, sizeof(head));
}

static uint16_t family_of_monitor(int socket)
{
	struct request request;
	const struct nlmsghdr *answer;
	const struct nlattr *id;
	const size_t head = NLMSG_SPACE(sizeof(struct genlmsghdr));

	command(&request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	request_put_text(&request, CTRL_ATTR_FAMILY_NAME, "NET_DM");
	answer = netlink_get(socket, &request, "drop monitor");
	id = attribute_find((const char *)answer + head, answer->nlmsg_len - head,
			    CTRL_ATTR_FAMILY_ID);
	if (!id)
		die("drop monitor: no family");
	return *(const uint16_t *)attribute_data(id);
}

int drops_open(void)
{
	const int group = NET_DM_GRP_ALERT, buffer = 1 << 24;
	const uint8_t packets = NET_DM_ALERT_MODE_PACKET;
	int control = netlink_open(NETLINK_GENERIC);
	uint16_t family = family_of_monitor(control);
	struct request request;

	command(&request, family, NET_DM_CMD_CONFIG);
	request_put(&request, NET_DM_ATTR_ALERT_MODE, &packets, sizeof(packets));
	request_put_u32(&request, NET_DM_ATTR_TRUNC_LEN, 96);
	request_put_u32(&request, NET_DM_ATTR_QUEUE_LEN, 1 << 20);
	netlink_do(control, &request, "drop monitor: configure");
	monitor = netlink_open(NETLINK_GENERIC);
	if (setsockopt(monitor, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) ||
	    setsockopt(monitor, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
		die("drop monitor: %m");
	command(&request, family, NET_DM_CMD_START);
	netlink_do(control, &request, "drop monitor: start");
	return monitor;
}

static void keep(const struct drop *drop)
{
	if (first == count)
		first = count = 0;
	if (count == room) {
		room = room ? 2 * room : 1024;
		waiting = realloc(waiting, room * sizeof(*waiting));
		if (!waiting)
			die("out of memory");
	}
	waiting[count++] = *drop;
}

/// A drop counts if it struck in the wire; hosts discard packets too, once those have arrived.
static void understand(const struct nlmsghdr *message)
{
	const size_t head = NLMSG_SPACE(sizeof(struct genlmsghdr));
	const char *first_attribute = (const char *)message + head;
	size_t size = message->nlmsg_len - head;
	const struct nlattr *port = attribute_find(first_attribute, size, NET_DM_ATTR_IN_PORT);
	const struct nlattr *time = attribute_find(first_attribute, size, NET_DM_ATTR_TIMESTAMP);
	const struct nlattr *frame = attribute_find(first_attribute, size, NET_DM_ATTR_PAYLOAD);
	const struct nlattr *index = NULL;
	struct drop drop = {0};

	if (port)
		index = attribute_find(attribute_data(port), attribute_size(port),
				       NET_DM_ATTR_PORT_NETDEV_IFINDEX);
	if (!index || !time)
		return;
	memcpy(&drop.packet.device, attribute_data(index), sizeof(int));
	if (!(drop.packet.device & INDEX_WIRE))
		return;
	drop.packet.time_ns = from_packet_clock(*(const int64_t *)attribute_data(time));
	if (frame)
		drop.of_flow = packet_parse(attribute_data(frame), attribute_size(frame), &drop.packet);
	keep(&drop);
}

void drops_read(void)
{
	static char buffer[65536] __attribute__((aligned(8)));
	ssize_t size;

	while ((size = recv(monitor, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0) {
		const struct nlmsghdr *message = (const struct nlmsghdr *)buffer;

		for (; NLMSG_OK(message, (size_t)size); message = NLMSG_NEXT(message, size))
			if (message->nlmsg_type >= NLMSG_MIN_TYPE)
				understand(message);
	}
	if (size < 0 && errno != EAGAIN)
		die("drop monitor: %m");
}

void drops_replay(int64_t until_ns, void (*see)(const struct packet *packet, bool of_flow))
{
	while (first < count && waiting[first].packet.time_ns < until_ns) {
		see(&waiting[first].packet, waiting[first].of_flow);
		first++;
	}
}
