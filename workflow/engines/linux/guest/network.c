#define _GNU_SOURCE
#include "network.h"

#include "address.h"
#include "netlink.h"
#include "queue.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/// All devices have this address: every link has two ends, and none asks for addresses.
static const uint8_t hardware_address[6] = {2, 0, 0, 0, 0, 1};

int device_index(const struct input_link *link, int number, enum device device)
{
	static const unsigned in[] = {TAP_IN_A, TAP_IN_B, 0, 0};
	static const unsigned out[] = {TAP_OUT_A, TAP_OUT_B, TAP_OUT_M, TAP_OUT_N};

	return (16 + 4 * number + (int)device) | INDEX_WIRE |
	       (link->taps & in[device] ? INDEX_TAP_IN : 0) |
	       (link->taps & out[device] ? INDEX_TAP_OUT : 0);
}

void enter_namespace(int namespace)
{
	if (setns(namespace, CLONE_NEWNET))
		die("setns: %m");
}

static int current_namespace(void)
{
	int file = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (file < 0)
		die("/proc/self/ns/net: %m");
	return file;
}

static void device_attributes(struct request *request, const char *name, const struct input *input)
{
	request_put_text(request, IFLA_IFNAME, name);
	request_put(request, IFLA_ADDRESS, hardware_address, sizeof(hardware_address));
	request_put_u32(request, IFLA_MTU, input->mtu);
	/* Without offload every segment is a separate packet from the socket on. With it, a pair of
	 * veth keeps its defaults: what the sender merged passes whole, and nothing else is merged. */
	if (!input->offload)
		request_put_u32(request, IFLA_GSO_MAX_SEGS, 1);
	else if (input->offload > 1)
		request_put_u32(request, IFLA_GSO_MAX_SIZE, input->offload);
}

static void add_pair(const struct input *input, int wire, int index, const char *name, int peer_index,
		     const char *peer_name, int peer_namespace)
{
	struct ifinfomsg one = {.ifi_index = index}, other = {.ifi_index = peer_index};
	struct nlattr *info, *data, *peer;
	struct request request;

	request_begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &one, sizeof(one));
	device_attributes(&request, name, input);
	info = request_nest(&request, IFLA_LINKINFO);
	request_put_text(&request, IFLA_INFO_KIND, "veth");
	data = request_nest(&request, IFLA_INFO_DATA);
	peer = request_nest(&request, VETH_INFO_PEER);
	memcpy((char *)&request + request.header.nlmsg_len, &other, sizeof(other));
	request.header.nlmsg_len += NLMSG_ALIGN(sizeof(other));
	device_attributes(&request, peer_name, input);
	if (peer_namespace >= 0)
		request_put_u32(&request, IFLA_NET_NS_FD, (uint32_t)peer_namespace);
	request_end(&request, peer);
	request_end(&request, data);
	request_end(&request, info);
	netlink_do(wire, &request, name);
}

static void set_up(int socket, int index)
{
	struct ifinfomsg state = {
	    .ifi_index = index, .ifi_flags = IFF_UP | IFF_NOARP, .ifi_change = IFF_UP | IFF_NOARP};
	struct request request;

	if (index == 1) /* loopback */
		state.ifi_flags = state.ifi_change = IFF_UP;
	request_begin(&request, RTM_NEWLINK, 0, &state, sizeof(state));
	netlink_do(socket, &request, "link up");
}

static int node_index(int link, int side)
{
	return 16 + 2 * link + side;
}

/// A node's end of link 7 is named e7; the wire's devices are a7, b7, m7 and n7.
static void add_link(const struct input *input, const struct network *network, int number)
{
	const struct input_link *link = &input->link[number];
	char name[4][IFNAMSIZ], end[IFNAMSIZ];
	int index[4];

	for (int device = DEVICE_A; device <= DEVICE_N; device++) {
		snprintf(name[device], IFNAMSIZ, "%c%d", "abmn"[device], number);
		index[device] = device_index(link, number, device);
	}
	snprintf(end, sizeof(end), "e%d", number);
	for (int side = 0; side < 2; side++)
		add_pair(input, network->wire, index[side], name[side], node_index(number, side), end,
			 network->node_namespace[link->node[side]]);
	add_pair(input, network->wire, index[DEVICE_M], name[DEVICE_M], index[DEVICE_N],
		 name[DEVICE_N], -1);
	for (int device = DEVICE_A; device <= DEVICE_N; device++)
		set_up(network->wire, index[device]);
	redirect(network->wire, index[DEVICE_A], index[DEVICE_M], input->device_queue);
	redirect(network->wire, index[DEVICE_N], index[DEVICE_B], input->device_queue);
	redirect(network->wire, index[DEVICE_B], index[DEVICE_N], input->device_queue);
	redirect(network->wire, index[DEVICE_M], index[DEVICE_A], input->device_queue);
	add_queue(network->wire, index[DEVICE_M], &link->queue[AHEAD]);
	add_wire(network->wire, index[DEVICE_B], &link->queue[AHEAD]);
	add_queue(network->wire, index[DEVICE_N], &link->queue[BACK]);
	add_wire(network->wire, index[DEVICE_A], &link->queue[BACK]);
}

static void add_address(int socket, uint32_t address)
{
	struct ifaddrmsg what = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1};
	struct request request;

	request_begin(&request, RTM_NEWADDR, NLM_F_CREATE, &what, sizeof(what));
	request_put_u32(&request, IFA_LOCAL, htonl(address));
	request_put_u32(&request, IFA_ADDRESS, htonl(address));
	netlink_do(socket, &request, "address");
}

static void add_route(int socket, const struct input *input, const struct input_route *route)
{
	struct rtmsg what = {.rtm_family = AF_INET,
			     .rtm_dst_len = 32,
			     .rtm_table = RT_TABLE_MAIN,
			     .rtm_protocol = RTPROT_STATIC,
			     .rtm_scope = RT_SCOPE_LINK,
			     .rtm_type = RTN_UNICAST};
	int side = input->link[route->link].node[1] == route->node;
	uint32_t address =
	    route->to_source ? source_address(route->flow) : destination_address(route->flow);
	struct request request;
	struct nlattr *metrics;
	uint32_t features = 0;

	request_begin(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &what, sizeof(what));
	request_put_u32(&request, RTA_DST, htonl(address));
	request_put_u32(&request, RTA_OIF, (uint32_t)node_index(route->link, side));
	metrics = request_nest(&request, RTA_METRICS);
	if (route->initial_window)
		request_put_u32(&request, RTAX_INITCWND, route->initial_window);
	if (route->minimum_rto_ms)
		request_put_u32(&request, RTAX_RTO_MIN, route->minimum_rto_ms);
	if (route->quick_ack)
		request_put_u32(&request, RTAX_QUICKACK, 1);
	/* Of this flow alone: a node's settings would be of all. */
	if (route->ecn)
		features |= RTAX_FEATURE_ECN;
	if (route->sack)
		features |= RTAX_FEATURE_SACK;
	if (route->timestamps)
		features |= RTAX_FEATURE_TIMESTAMP;
	if (features)
		request_put_u32(&request, RTAX_FEATURES, features);
	/* The kernel uses some only if they are locked. */
	request_put_u32(&request, RTAX_LOCK,
			route->minimum_rto_ms ? 1 << RTAX_RTO_MIN | 1 << RTAX_FEATURES : 0);
	request_end(&request, metrics);
	netlink_do(socket, &request, "route");
}

/// Set a node up: addresses, routes, and what every connection of it shares.
static void configure_node(const struct input *input, const struct network *network, int node)
{
	char receive_buffers[48];
	int socket;

	enter_namespace(network->node_namespace[node]);
	socket = netlink_open(NETLINK_ROUTE);
	set_up(socket, 1);
	for (int link = 0; link < input->links; link++)
		for (int side = 0; side < 2; side++)
			if (input->link[link].node[side] == node)
				set_up(socket, node_index(link, side));
	for (int flow = 0; flow < input->flows; flow++) {
		if (input->flow[flow].source == node)
			add_address(socket, source_address(flow));
		if (input->flow[flow].destination == node)
			add_address(socket, destination_address(flow));
	}
	for (int route = 0; route < input->routes; route++)
		if (input->route[route].node == node)
			add_route(socket, input, &input->route[route]);
	write_text("/proc/sys/net/ipv4/ip_forward", "1");
	write_text("/proc/sys/net/ipv4/tcp_ecn", "0");
	write_text("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
	/* First values are the kernel's; its last ones would depend on the guest's memory. */
	write_text("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 67108864");
	snprintf(receive_buffers, sizeof(receive_buffers), "4096 131072 %" PRIu32,
		 input->most_receive_buffer);
	write_text("/proc/sys/net/ipv4/tcp_rmem", receive_buffers);
	close(socket);
}

void network_build(const struct input *input, struct network *network)
{
	network->node_namespace = allocate(input->nodes, sizeof(int));
	network->wire_namespace = current_namespace();
	network->wire = netlink_open(NETLINK_ROUTE);
	/* Many packets may be under way at one instant, none of which takes the processor any time. */
	write_text("/proc/sys/net/core/netdev_max_backlog", "10000000");
	/* One entry for each flow and hop, in all nodes together. */
	write_text("/proc/sys/net/ipv4/neigh/default/gc_thresh3", "1000000");
	for (int node = 0; node < input->nodes; node++) {
		if (unshare(CLONE_NEWNET))
			die("unshare: %m");
		network->node_namespace[node] = current_namespace();
	}
	enter_namespace(network->wire_namespace);
	for (int link = 0; link < input->links; link++)
		add_link(input, network, link);
	for (int node = 0; node < input->nodes; node++)
		configure_node(input, network, node);
	enter_namespace(network->wire_namespace);
}
