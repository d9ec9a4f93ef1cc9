/// What all parts of the guest program share.
#pragma once

#include "fail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_S 1000000000LL

/// Virtual time of the scenario's second 0, the same in every run. Late enough for any set-up: the
/// kernel brings up 100 devices a second (linkwatch), and drops what others are given until then.
#define START_NS (300 * NS_PER_S)

/// Like calloc, but never returns NULL.
void *allocate(size_t count, size_t size);

/// Write a text into a file of /proc or /sys.
void write_text(const char *path, const char *text);

/// Nanoseconds of the scenario's time; of the clock that packets are stamped with.
int64_t scenario_now(void);
int64_t from_packet_clock(int64_t realtime_ns);
void start_clock(void);
