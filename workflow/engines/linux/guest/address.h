/// The addresses of a flow's two ends, in host byte order. Each flow has its own, so that routes can
/// distinguish flows.
#pragma once

#include <stdbool.h>
#include <stdint.h>

uint32_t source_address(int flow);
uint32_t destination_address(int flow);

/// The flow that a packet from `source` to `destination` belongs to and whether it goes forth, or -1.
int flow_of(uint32_t source, uint32_t destination, bool *forth);
