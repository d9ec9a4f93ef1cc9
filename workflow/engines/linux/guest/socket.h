/// The two ends of a flow: plain sockets, driven by the clock and by epoll.
#pragma once

#include "network.h"
#include "input.h"

struct connection; /* opaque */

struct tcp_state {
	bool connected;
	uint32_t cwnd_segments, ssthresh_segments; /* 0: infinite */
	uint32_t rtt_samples, rtt_sample_us, timeouts;
	uint64_t rtt_sum_us, delivered_bytes; /* in order, to the receiver */
	bool sack, timestamps, ecn;
	uint32_t segment_bytes; /* in force */
	uint64_t delivery_Bps, pacing_Bps;
};

/// Make both ends; nothing is sent yet. `poll` is an epoll instance.
void sockets_open(const struct input *input, const struct network *network, int poll);

bool flow_connected(int flow);
/// Begin the handshake of a TCP flow.
void flow_connect(int flow);
bool flow_started(int flow);
/// From now on there are data.
void flow_start(int flow);
/// Fall silent: no new data, no retransmissions; what is in the network still arrives.
void flow_stop(int flow);
/// Send one packet of a CBR flow.
void flow_send(int flow);

/// What the kernel says of a TCP flow now, or said when it stopped.
struct tcp_state flow_state(int flow);

/// When the receiver of a transfer had all of it; 0: it has not.
int64_t flow_complete_ns(int flow);

/// Handle an event of the epoll instance.
void socket_event(uint64_t token);
