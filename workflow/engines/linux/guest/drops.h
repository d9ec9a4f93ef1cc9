/// The kernel's drop monitor: every packet that the wire drops, with time and place.
#pragma once

#include "tap.h"

/// Start the monitor; readable when something was dropped.
int drops_open(void);

/// Queue what the monitor reported since the last call.
void drops_read(void);

/// Hand every queued drop before `until_ns` to `see`, in order of time. `device` of the packet is
/// where it came in: A or B, then its queue dropped it; M or N, then the wire lost it.
void drops_replay(int64_t until_ns, void (*see)(const struct packet *packet, bool of_flow));
