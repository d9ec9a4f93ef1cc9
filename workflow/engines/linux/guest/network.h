/// The scenario's network out of kernel parts.
///
/// Each node is a network namespace. A link is three veth pairs; what lies between the nodes is in
/// the first namespace, the "wire":
///
///   node a          wire                                                     node b
///   e<l> ======= A ---> M ================ N ---> B ======= e<l>
///                    redirect          redirect
///   a to b: HTB (or opportunities) and the scenario's queue at M, netem (rate, delay, loss) at B
///   b to a: HTB (or opportunities) and the scenario's queue at N, netem (rate, delay, loss) at A
///
/// HTB lets a packet go when the last one's transmission ends, so what waits is in the queue; netem
/// adds the packet's own transmission and the propagation. Nodes have no queues, so
/// that a packet's time at A (or B) is the time IP sent it.
#pragma once

#include "input.h"

/// The four devices of a link in the wire.
enum device { DEVICE_A, DEVICE_B, DEVICE_M, DEVICE_N };

/// Bits of input_link.taps, and of the index of a device (above TAP_SHIFT).
enum tap {
	TAP_IN_A = 1,
	TAP_OUT_A = 2,
	TAP_IN_B = 4,
	TAP_OUT_B = 8,
	TAP_OUT_M = 16,
	TAP_OUT_N = 32,
};
#define INDEX_TAP_IN (1 << 20)
#define INDEX_TAP_OUT (1 << 21)
#define INDEX_WIRE (1 << 22)

int device_index(const struct input_link *link, int number, enum device device);
static inline int index_link(int index)
{
	return ((index & 0xfffff) - 16) / 4;
}
static inline enum device index_device(int index)
{
	return (enum device)((index & 0xfffff) % 4);
}

struct network {
	int *node_namespace;
	int wire_namespace;
	int wire; /* netlink socket of the wire */
};

void network_build(const struct input *input, struct network *network);
void enter_namespace(int namespace);
