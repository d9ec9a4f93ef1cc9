/// What to build and run, worked out by the launcher from the scenario: a statement a line.
#pragma once

#include "statement.h"

enum { AHEAD, BACK }; /* a to b, b to a */

struct input_queue {
	struct statement *discipline; /* kind and parameters, which queue.c reads by name */
	uint64_t rate_Bps; /* 8 times this is the link's rate in bit/s */
	uint64_t line_Bps; /* at which a packet passes: the same without a shaper; 0: at once */
	uint64_t delay_ns, jitter_ns;
	uint32_t loss; /* of 2^32-1 */
	bool ordered; /* packets arrive in their order, whatever the delay becomes */
	int listed_flow;
	struct numbers listed; /* which of this flow's data packets are lost */
	struct numbers opportunities_ms; /* when 1500 bytes may leave, instead of the rate */
	uint32_t burst_bytes;
	uint32_t frame_bytes; /* beyond IP, of each packet */
	bool cuts; /* its shaper is TBF, which cuts merged packets beyond its burst */
};

struct input_link {
	int node[2];
	unsigned taps; /* bits of enum tap in network.h */
	struct input_queue queue[2];
};

struct input_route {
	int node, link;
	int flow;
	bool to_source;
	uint32_t initial_window, minimum_rto_ms;
	bool quick_ack, ecn, sack, timestamps;
};

struct input_flow {
	bool tcp;
	int source, destination;
	int64_t start_ns, stop_ns;
	int64_t connect_ns; /* of TCP: at most start_ns */
	int source_link, source_side; /* where its packets enter the network */
	int last_link, last_side;     /* and where they leave it */
	char control[16];
	uint32_t segment_bytes;
	uint32_t maximum_window, receive_buffer; /* both 0: as the kernel tunes them */
	bool sack, timestamps, ecn;
	bool sampled; /* its socket's rates are in the samples */
	uint64_t transfer_bytes; /* of TCP; 0: without end */
	uint32_t payload_bytes;
	double interval_ns;
};

/// New values of a direction of a link.
struct input_change {
	int64_t at_ns;
	int link, direction;
	uint64_t rate_Bps, line_Bps, delay_ns;
	uint32_t loss;
};

struct input_monitor {
	int link, direction;
};

struct input {
	int64_t duration_ns, interval_ns;
	uint32_t mtu;
	uint32_t offload; /* 1 and more: hosts send segments merged into one packet; 2 and more: its bound */
	bool device_queue; /* a packet is its sender's memory until it is transmitted */
	uint32_t most_receive_buffer; /* ceiling of the buffers that the kernel tunes */
	int nodes, links, routes, flows, monitors, changes;
	struct input_link *link;
	struct input_route *route;
	struct input_flow *flow;
	struct input_monitor *monitor;
	struct input_change *change; /* in the order of their times */
};

/// Read the input; set the kernel parameters that it names.
void input_read(const char *path, struct input *input);

static inline int64_t input_samples(const struct input *input)
{
	return input->duration_ns / input->interval_ns;
}
