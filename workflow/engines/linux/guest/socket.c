#define _GNU_SOURCE
#include "socket.h"

#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT 5001
#define TIMESTAMP_BYTES 12 /* the option, padded */
#define ESTABLISHED 1	   /* state of TCP_INFO */
enum role { SENDER, LISTENER, RECEIVER };

struct connection {
	int sender, listener, receiver;
	bool connected, started, stopped, clamped;
	uint64_t written, read; /* bytes of a transfer */
	int64_t complete_ns;	/* when the receiver has read the last of them; 0: not yet */
	struct tcp_state last;
};

static const struct input *the_input;
static const struct network *the_network;
static struct connection *connections;
static int the_poll;
static char zeros[1 << 16];

static void set(int file, int level, int option, int value, const char *what)
{
	if (setsockopt(file, level, option, &value, sizeof(value)))
		die("%s %d: %m", what, value);
}

static struct sockaddr_in end(uint32_t address)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(PORT),
				    .sin_addr.s_addr = htonl(address)};
}

/// A socket of a node, bound to an address; the choice of namespace is for life.
static int open_end(int node, int type, uint32_t address)
{
	struct sockaddr_in here = end(address);
	int file;

	enter_namespace(the_network->node_namespace[node]);
	file = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (file < 0 || bind(file, (struct sockaddr *)&here, sizeof(here)))
		die("socket: %m");
	enter_namespace(the_network->wire_namespace);
	return file;
}

static void watch(int flow, enum role role, int file, uint32_t events)
{
	struct epoll_event event = {.events = events,
				    .data.u64 = (uint64_t)flow << 2 | (uint64_t)role};

	if (epoll_ctl(the_poll, EPOLL_CTL_ADD, file, &event))
		die("epoll: %m");
}

/// Let the kernel discard all packets for this socket, without an answer.
static void deafen(int file)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {.len = 1, .filter = &nothing};

	if (setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		die("filter: %m");
}

/// The kernel's option counts the timestamp option into the segment.
static int kernel_segment(const struct input_flow *flow)
{
	return (int)flow->segment_bytes + (flow->timestamps ? TIMESTAMP_BYTES : 0);
}

static void clamp_window(int file, const struct input_flow *flow)
{
	set(file, IPPROTO_TCP, TCP_WINDOW_CLAMP, (int)flow->maximum_window, "window");
}

static void open_tcp(int number)
{
	const struct input_flow *flow = &the_input->flow[number];
	struct connection *connection = &connections[number];
	int sender = open_end(flow->source, SOCK_STREAM, source_address(number));
	int listener = open_end(flow->destination, SOCK_STREAM, destination_address(number));

	if (setsockopt(sender, IPPROTO_TCP, TCP_CONGESTION, flow->control, strlen(flow->control)))
		die("congestion control %s: %m", flow->control);
	/* DCTCP's receiver echoes each mark by itself (dctcp_ece_ack_update). */
	if (!strcmp(flow->control, "dctcp") &&
	    setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, flow->control, strlen(flow->control)))
		die("congestion control of the receiver: %m");
	set(sender, IPPROTO_TCP, TCP_MAXSEG, kernel_segment(flow), "segment");
	set(listener, IPPROTO_TCP, TCP_MAXSEG, kernel_segment(flow), "segment");
	if (flow->maximum_window) {
		set(listener, SOL_SOCKET, SO_RCVBUFFORCE, (int)flow->receive_buffer, "receive buffer");
		clamp_window(listener, flow);
	}
	if (listen(listener, 1))
		die("listen: %m");
	watch(number, LISTENER, listener, EPOLLIN);
	connection->sender = sender;
	connection->listener = listener;
}

static void open_cbr(int number)
{
	const struct input_flow *flow = &the_input->flow[number];
	struct sockaddr_in there = end(destination_address(number));

	connections[number].sender = open_end(flow->source, SOCK_DGRAM, source_address(number));
	/* Its rate is constant, however many packets wait in a device queue. */
	if (the_input->device_queue)
		set(connections[number].sender, SOL_SOCKET, SO_SNDBUFFORCE, 1 << 30, "send buffer");
	connections[number].receiver =
	    open_end(flow->destination, SOCK_DGRAM, destination_address(number));
	/* It exists, so that no errors come back; its packets are counted on arrival. */
	deafen(connections[number].receiver);
	if (connect(connections[number].sender, (struct sockaddr *)&there, sizeof(there)))
		die("connect: %m");
}

void sockets_open(const struct input *input, const struct network *network, int poll)
{
	the_input = input;
	the_network = network;
	the_poll = poll;
	connections = allocate(input->flows, sizeof(*connections));
	for (int flow = 0; flow < input->flows; flow++) {
		connections[flow].receiver = -1;
		if (input->flow[flow].tcp)
			open_tcp(flow);
		else
			open_cbr(flow);
	}
}

bool flow_connected(int flow)
{
	return connections[flow].connected;
}

bool flow_started(int flow)
{
	return connections[flow].started;
}

void flow_connect(int number)
{
	struct connection *connection = &connections[number];
	struct sockaddr_in there = end(destination_address(number));

	connection->connected = true;
	if (connect(connection->sender, (struct sockaddr *)&there, sizeof(there)) &&
	    errno != EINPROGRESS)
		die("connect: %m");
}

void flow_start(int number)
{
	connections[number].started = true;
	if (the_input->flow[number].tcp)
		watch(number, SENDER, connections[number].sender, EPOLLOUT);
}

struct tcp_state flow_state(int number)
{
	struct connection *connection = &connections[number];
	struct tcp_state *state = &connection->last;
	union {
		struct tcp_info info;
		uint32_t words[128];
	} answer = {0};
	socklen_t size = sizeof(answer);
	/* What our patch adds to the kernel's answer is its end: see kernel/counters.patch. */
	const uint32_t *ours;

	if (!connection->started || connection->stopped)
		return *state;
	if (getsockopt(connection->sender, IPPROTO_TCP, TCP_INFO, &answer, &size))
		die("TCP_INFO: %m");
	ours = answer.words + size / 4 - 6;
	if (ours[5] != 24)
		die("TCP_INFO: not the counters of this kernel");
	memcpy(&state->rtt_sum_us, ours, sizeof(state->rtt_sum_us));
	state->rtt_samples = ours[2];
	state->rtt_sample_us = ours[3];
	state->timeouts = ours[4];
	state->connected = answer.info.tcpi_state == ESTABLISHED && !connection->complete_ns;
	state->cwnd_segments = answer.info.tcpi_snd_cwnd;
	state->ssthresh_segments =
	    answer.info.tcpi_snd_ssthresh < 0x7fffffff ? answer.info.tcpi_snd_ssthresh : 0;
	state->sack = answer.info.tcpi_options & TCPI_OPT_SACK;
	state->timestamps = answer.info.tcpi_options & TCPI_OPT_TIMESTAMPS;
	state->ecn = answer.info.tcpi_options & TCPI_OPT_ECN;
	state->segment_bytes = answer.info.tcpi_snd_mss;
	state->delivery_Bps = answer.info.tcpi_delivery_rate;
	state->pacing_Bps = answer.info.tcpi_pacing_rate;
	if (connection->receiver >= 0) {
		size = sizeof(answer);
		if (getsockopt(connection->receiver, IPPROTO_TCP, TCP_INFO, &answer, &size))
			die("TCP_INFO: %m");
		state->delivered_bytes = answer.info.tcpi_bytes_received;
	}
	return *state;
}

/// The kernel must have agreed with itself on what the scenario asks for; but a SYN that is sent again
/// no longer asks for ECN (tcp_ecn_clear_syn).
static void check(int number)
{
	const struct input_flow *flow = &the_input->flow[number];
	struct tcp_state state = flow_state(number);

	if (state.connected && (state.sack != flow->sack || state.timestamps != flow->timestamps ||
				(state.ecn && !flow->ecn) || state.segment_bytes != flow->segment_bytes))
		die("flow %d: connected with sack %d, timestamps %d, ECN %d, segments of %u bytes", number,
		    state.sack, state.timestamps, state.ecn, state.segment_bytes);
}

/// Repair mode lets a connection go without a word. A deaf socket then listens in its place, so that
/// acknowledgements still under way are not answered by resets.
void flow_stop(int number)
{
	struct connection *connection = &connections[number];
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};

	if (!connection->started || connection->stopped)
		return;
	if (the_input->flow[number].tcp) {
		check(number);
		connection->stopped = true;
		connection->last.connected = false;
		epoll_ctl(the_poll, EPOLL_CTL_DEL, connection->sender, NULL);
		deafen(connection->sender);
		set(connection->sender, IPPROTO_TCP, TCP_REPAIR, 1, "repair");
		if (connect(connection->sender, &nobody, sizeof(nobody)))
			die("disconnect: %m");
		set(connection->sender, IPPROTO_TCP, TCP_REPAIR, -1, "repair");
		if (listen(connection->sender, 1))
			die("listen: %m");
	}
	connection->stopped = true;
}

void flow_send(int flow)
{
	ssize_t size = the_input->flow[flow].payload_bytes;

	if (send(connections[flow].sender, zeros, (size_t)size, 0) != size)
		die("send: %m");
}

static void accept_flow(int flow)
{
	int file = accept4(connections[flow].listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (file < 0)
		return;
	connections[flow].receiver = file;
	watch(flow, RECEIVER, file, EPOLLIN);
	epoll_ctl(the_poll, EPOLL_CTL_DEL, connections[flow].listener, NULL);
}

/// Hand a transfer's last bytes over: then they go, as at the end of a connection, without waiting for
/// the acknowledgement of those before (Nagle).
static void write_transfer(int flow)
{
	struct connection *connection = &connections[flow];
	uint64_t all = the_input->flow[flow].transfer_bytes;

	while (connection->written < all) {
		uint64_t left = all - connection->written;
		ssize_t size = write(connection->sender, zeros, left < sizeof(zeros) ? left : sizeof(zeros));

		if (size <= 0)
			return;
		connection->written += (uint64_t)size;
	}
	set(connection->sender, IPPROTO_TCP, TCP_NODELAY, 1, "no delay");
	epoll_ctl(the_poll, EPOLL_CTL_DEL, connection->sender, NULL);
}

/// Count what the receiver of a transfer has read.
static void count_transfer(int number, size_t size)
{
	const struct input_flow *flow = &the_input->flow[number];
	struct connection *connection = &connections[number];

	connection->read += size;
	if (size && connection->read == flow->transfer_bytes && !connection->stopped)
		connection->complete_ns = scenario_now();
}

int64_t flow_complete_ns(int flow)
{
	return connections[flow].complete_ns;
}

void socket_event(uint64_t token)
{
	static char sink[1 << 20];
	ssize_t size;
	int flow = (int)(token >> 2);
	struct connection *connection = &connections[flow];

	switch ((enum role)(token & 3)) {
	case SENDER:
		if (connection->stopped)
			break;
		if (the_input->flow[flow].transfer_bytes)
			write_transfer(flow);
		else
			while (write(connection->sender, zeros, sizeof(zeros)) > 0)
				;
		break;
	case LISTENER:
		accept_flow(flow);
		break;
	case RECEIVER:
		/* The first segment gave the kernel its ratio of payload to memory, and with that a new
		 * clamp out of the buffer (tcp_measure_rcv_mss). */
		if (!connection->clamped && the_input->flow[flow].maximum_window)
			clamp_window(connection->receiver, &the_input->flow[flow]);
		connection->clamped = true;
		/* One byte less would do; MSG_TRUNC spares the copy. */
		do {
			size = recv(connection->receiver, sink, sizeof(sink), MSG_TRUNC);
			if (size > 0 && the_input->flow[flow].transfer_bytes)
				count_transfer(flow, (size_t)size);
		} while (size == sizeof(sink));
		break;
	}
}
