#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t realtime_minus_monotonic;

void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		die("the guest's memory is too small for this scenario");
	return memory;
}

void write_text(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
		die("%s: cannot write %s: %m", path, text);
	close(file);
}

static int64_t read_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * NS_PER_S + time.tv_nsec;
}

/// Reading the clock costs virtual time here, so the offset comes from the tightest of some tries.
void start_clock(void)
{
	struct timespec tick;
	int64_t tick_ns, best = INT64_MAX;

	for (int i = 0; i < 8; i++) {
		int64_t before = read_clock(CLOCK_MONOTONIC);
		int64_t real = read_clock(CLOCK_REALTIME);
		int64_t after = read_clock(CLOCK_MONOTONIC);

		if (after - before < best) {
			best = after - before;
			realtime_minus_monotonic = real - (before + after) / 2;
		}
	}
	/* The offset is whole ticks or nothing; what is below is the cost of reading. */
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	tick_ns = tick.tv_sec * NS_PER_S + tick.tv_nsec;
	realtime_minus_monotonic +=
	    realtime_minus_monotonic < 0 ? -tick_ns / 2 : tick_ns / 2;
	realtime_minus_monotonic -= realtime_minus_monotonic % tick_ns;
}

int64_t scenario_now(void)
{
	return read_clock(CLOCK_MONOTONIC) - START_NS;
}

int64_t from_packet_clock(int64_t realtime_ns)
{
	return realtime_ns - realtime_minus_monotonic - START_NS;
}
