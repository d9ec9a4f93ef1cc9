/// The packet tap: every packet at the flagged devices of the wire, with the time, in order.
#pragma once

#include "common.h"

struct packet {
	int64_t time_ns; /* of the scenario */
	int device;	 /* index */
	bool out;
	uint16_t id; /* IP identification: a flow's packets count up */
	uint32_t source, destination, ip_bytes, payload_bytes;
	uint32_t sequence; /* of TCP */
};

/// Parse an Ethernet frame of `size` captured bytes; false if it is not one of a flow's.
bool packet_parse(const uint8_t *frame, size_t size, struct packet *packet);

/// Open the tap in this namespace; readable when something is in it.
int tap_open(void);

/// Hand every packet in the tap to `see`; return the time of the last one, or `latest`.
int64_t tap_drain(void (*see)(const struct packet *packet), int64_t latest);

/// Die if the tap has ever overflowed.
void tap_check(void);
