/// init of the guest: builds the scenario's network, runs its flows, writes what was measured.
///
/// All of it is one process. A process that never sleeps stops the virtual clock, and one that
/// runs takes no virtual time, so that nothing here disturbs what is measured.
#define _GNU_SOURCE
#include "drops.h"
#include "flow_accounting.h"
#include "network.h"
#include "input.h"
#include "queue.h"
#include "report.h"
#include "socket.h"
#include "tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LONGEST_DRAIN_NS (3600 * NS_PER_S)
/* Tokens of the epoll instance, in addition to those of sockets. */
#define TOKEN_TIMER (1ULL << 40)
#define TOKEN_TAP (TOKEN_TIMER + 1)
#define TOKEN_DROPS (TOKEN_TIMER + 2)

static struct input input;
static struct network network;
static int poll_all, timer;
static int64_t tap_latest = INT64_MIN;
static int64_t next_sample; /* counts from 1 */
static int next_change;
static int64_t *next_packet; /* of each CBR flow */

static void mount_all(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) || mount("sys", "/sys", "sysfs", 0, NULL))
		die("mount: %m");
}

static void poll_add(int file, uint64_t token)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = token};

	if (epoll_ctl(poll_all, EPOLL_CTL_ADD, file, &event))
		die("epoll: %m");
}

static int64_t cbr_time(const struct input_flow *flow, int64_t packet)
{
	return flow->start_ns + llround((double)packet * flow->interval_ns);
}

static void earlier(int64_t *when, int64_t candidate)
{
	if (candidate < *when)
		*when = candidate;
}

/// When something is due next.
static int64_t next_time(int64_t now)
{
	int64_t when = input.duration_ns;

	if (next_sample <= input_samples(&input))
		earlier(&when, next_sample * input.interval_ns);
	if (next_change < input.changes)
		earlier(&when, input.change[next_change].at_ns);
	for (int i = 0; i < input.flows; i++) {
		const struct input_flow *flow = &input.flow[i];

		if (flow->tcp && flow->connect_ns > now)
			earlier(&when, flow->connect_ns);
		if (flow->start_ns > now)
			earlier(&when, flow->start_ns);
		else if (flow->stop_ns > now)
			earlier(&when, flow->stop_ns);
		if (!flow->tcp && cbr_time(flow, next_packet[i]) < flow->stop_ns)
			earlier(&when, cbr_time(flow, next_packet[i]));
	}
	return when;
}

static void set_timer(int64_t when)
{
	int64_t at = START_NS + when;
	struct itimerspec setting = {.it_value = {at / NS_PER_S, at % NS_PER_S}};

	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, NULL))
		die("timer: %m");
}

static void sample(int64_t index)
{
	for (int i = 0; i < input.flows; i++) {
		struct flow_interval *interval = &counts_of_flow(i)->interval[index];
		struct tcp_state state;

		if (!input.flow[i].tcp || !flow_started(i))
			continue;
		state = flow_state(i);
		if (counts_of_flow(i)->socket)
			counts_of_flow(i)->socket[index] = (struct socket_interval){
			    state.delivered_bytes, state.connected ? state.delivery_Bps : 0,
			    state.connected ? state.pacing_Bps : 0};
		if (!state.connected)
			continue;
		interval->cwnd_segments = state.cwnd_segments;
		interval->ssthresh_segments = state.ssthresh_segments;
		interval->rtt_us = state.rtt_samples ? state.rtt_sample_us : 0;
	}
	/* The discipline counts a merged packet as one; so the accounting counts the waiting segments. */
	for (int i = 0; i < input.monitors && !input.offload; i++) {
		const struct input_monitor *monitor = &input.monitor[i];
		int device = device_index(&input.link[monitor->link], monitor->link,
					  monitor->direction == AHEAD ? DEVICE_M : DEVICE_N);

		counts_of_monitor(i)->interval[index].queue_packets =
		    queue_state(network.wire, device).packets;
	}
}

/// Give a direction of a link its new values. What is being transmitted or under way keeps its time.
static void make_change(const struct input_change *change)
{
	struct input_link *link = &input.link[change->link];
	struct input_queue *queue = &link->queue[change->direction];
	bool ahead = change->direction == AHEAD, has_rate = queue->rate_Bps != change->rate_Bps;

	queue->rate_Bps = change->rate_Bps;
	queue->line_Bps = change->line_Bps;
	queue->delay_ns = change->delay_ns;
	queue->loss = change->loss;
	if (has_rate)
		change_rate(network.wire,
			    device_index(link, change->link, ahead ? DEVICE_M : DEVICE_N), queue);
	change_wire(network.wire, device_index(link, change->link, ahead ? DEVICE_B : DEVICE_A),
		    queue);
}

/// Do everything that is due at `now`.
static void act(int64_t now)
{
	for (; next_sample <= input_samples(&input) && next_sample * input.interval_ns <= now;
	     next_sample++)
		sample(next_sample - 1);
	for (; next_change < input.changes && input.change[next_change].at_ns <= now; next_change++)
		make_change(&input.change[next_change]);
	for (int i = 0; i < input.flows; i++) {
		const struct input_flow *flow = &input.flow[i];

		if (flow->tcp && flow->connect_ns <= now && !flow_connected(i))
			flow_connect(i);
		if (flow->start_ns <= now && !flow_started(i))
			flow_start(i);
		if (flow->stop_ns <= now)
			flow_stop(i);
		if (flow->tcp)
			continue;
		for (; cbr_time(flow, next_packet[i]) <= now &&
		       cbr_time(flow, next_packet[i]) < flow->stop_ns;
		     next_packet[i]++)
			flow_send(i);
	}
}

static void read_tap(void)
{
	tap_latest = tap_drain(account_packet, tap_latest);
	drops_read();
	drops_replay(tap_latest, account_drop);
}

/// Handle what comes until the scenario's time `until`.
static void run_until(int64_t until, bool acting)
{
	struct epoll_event events[64];
	int64_t due = acting ? next_time(-1) : until;

	set_timer(due);
	for (;;) {
		int count = epoll_wait(poll_all, events, 64, -1);

		for (int i = 0; i < count; i++) {
			uint64_t token = events[i].data.u64, expired;

			if (token == TOKEN_TAP || token == TOKEN_DROPS)
				read_tap();
			else if (token != TOKEN_TIMER)
				socket_event(token);
			else if (read(timer, &expired, sizeof(expired)) > 0) {
				if (acting)
					act(due);
				if (due >= until)
					return;
				due = next_time(due);
				set_timer(due);
			}
		}
	}
}

/// Let the network empty, so that every packet is seen to arrive or to be dropped.
static void drain(void)
{
	for (int i = 0; i < input.flows; i++)
		flow_stop(i);
	for (int64_t waited = 0;; waited += 2 * NS_PER_S) {
		run_until(input.duration_ns + waited + 2 * NS_PER_S, false);
		read_tap();
		drops_replay(INT64_MAX, account_drop);
		if (!accounting_outstanding())
			break;
		if (waited > LONGEST_DRAIN_NS)
			die("packets are not conserved: %lu neither arrived nor were dropped",
			    (unsigned long)accounting_outstanding());
	}
	tap_check();
}

/// The queues' own counters must agree with what the drop monitor reported one by one.
static void check_drops(void)
{
	uint64_t drops = 0;

	for (int i = 0; i < input.links; i++) {
		const struct input_link *link = &input.link[i];

		for (int device = DEVICE_A; device <= DEVICE_N; device++) {
			int index = device_index(link, i, device);

			drops += device < DEVICE_M ? wire_state(network.wire, index).drops
						   : queue_state(network.wire, index).drops;
		}
	}
	if (drops != total_counts()->drops)
		die("packets are not conserved: the queues counted %lu drops, %lu were seen",
		    (unsigned long)drops, (unsigned long)total_counts()->drops);
}

int main(void)
{
	/* A file for each namespace and socket. */
	const struct rlimit files = {1 << 19, 1 << 19};

	umask(022);
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("files: %m");
	mount_all();
	start_clock();
	input_read("/input", &input);
	network_build(&input, &network);
	accounting_open(&input);
	poll_all = epoll_create1(EPOLL_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	next_packet = allocate(input.flows, sizeof(*next_packet));
	next_sample = 1;
	poll_add(timer, TOKEN_TIMER);
	poll_add(tap_open(), TOKEN_TAP);
	poll_add(drops_open(), TOKEN_DROPS);
	sockets_open(&input, &network, poll_all);
	if (scenario_now() >= 0)
		die("the set-up took too long");
	run_until(input.duration_ns, true);
	drain();
	check_drops();
	accounting_close();
	report_results(&input);
	switch_off();
}
