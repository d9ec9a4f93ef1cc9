/// Flow accounting: counts of flows and monitors from the packets seen and the packets dropped.
///
/// A flow's data packet is sent when it enters the wire at its source and received when it leaves
/// the wire at its destination; in between it may be dropped. Nothing is inferred: at the end every
/// packet that was still out must turn up as one or the other. Where offload merges segments into
/// one packet, all counts are of segments: a merged packet counts as its segments.
#pragma once

#include "input.h"
#include "tap.h"

struct flow_interval {
	uint64_t ip_bytes, delay_ns;
	uint32_t received, drops, retransmissions;
	uint32_t cwnd_segments, ssthresh_segments, rtt_us; /* 0: none */
};

/// What the sockets of a flow say at a sample.
struct socket_interval {
	uint64_t delivered_bytes; /* so far */
	uint64_t delivery_Bps, pacing_Bps;
};

struct flow_counts {
	uint64_t sent, received, dropped, retransmissions;
	uint64_t ip_bytes;	/* until the flow's stop */
	uint64_t payload_bytes; /* likewise; of CBR */
	uint64_t delay_sum_ns;
	int64_t delay_largest_ns;
	struct flow_interval *interval;
	struct socket_interval *socket; /* of a flow with `sampled`, else null */
};

struct monitor_interval {
	uint64_t ip_bytes;
	uint32_t queue_packets, device_packets, drops;
	int32_t joined; /* with offload: how many more wait at its end than at its beginning */
};

struct monitor_counts {
	struct monitor_interval *interval;
};

void accounting_open(const struct input *input);
struct flow_counts *counts_of_flow(int flow);
struct monitor_counts *counts_of_monitor(int monitor);

void account_packet(const struct packet *packet);
void account_drop(const struct packet *packet, bool of_flow);

/// Compute what needs the whole run: the queues' lengths where offload merges segments.
void accounting_close(void);

/// Data packets that are neither received nor dropped yet.
uint64_t accounting_outstanding(void);

/// Upper edge of the 10 us bin that `share` of the flow's delays do not exceed.
int64_t delay_quantile(int flow, double share);

struct total_counts {
	uint64_t drops; /* of all packets, merged ones counted once, in the wire, ever */
	uint64_t control_drops, transmissions;
};
const struct total_counts *total_counts(void);
