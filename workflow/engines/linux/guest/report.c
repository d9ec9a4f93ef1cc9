#define _GNU_SOURCE
#include "report.h"

#include "flow_accounting.h"
#include "output.h"
#include "socket.h"

#include <inttypes.h>
#include <stdio.h>

static void report_flow(FILE *file, const struct input *input, int number)
{
	const struct flow_counts *flow = counts_of_flow(number);
	const struct tcp_state state = input->flow[number].tcp ? flow_state(number)
							      : (struct tcp_state){0};

	fprintf(file,
		"flow %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %" PRId64 " %u %" PRIu64 " %u %" PRId64 "\n",
		number, flow->sent, flow->received, flow->dropped, flow->retransmissions,
		flow->ip_bytes, input->flow[number].tcp ? state.delivered_bytes : flow->payload_bytes,
		flow->delay_sum_ns, delay_quantile(number, 0.95), state.rtt_samples,
		state.rtt_sum_us, state.timeouts, flow_complete_ns(number));
}

static void report_sample(FILE *file, const struct input *input, int64_t index)
{
	for (int i = 0; i < input->flows; i++) {
		const struct flow_interval *at = &counts_of_flow(i)->interval[index];
		const struct socket_interval *socket = counts_of_flow(i)->socket;
		uint64_t before = socket && index ? socket[index - 1].delivered_bytes : 0;

		fprintf(file, "f %" PRIu64 " %" PRIu64 " %u %u %u %u %u %u", at->ip_bytes,
			at->delay_ns, at->received, at->drops, at->retransmissions,
			at->cwnd_segments, at->ssthresh_segments, at->rtt_us);
		if (socket)
			fprintf(file, " %" PRIu64 " %" PRIu64 " %" PRIu64,
				socket[index].delivered_bytes - before, socket[index].delivery_Bps,
				socket[index].pacing_Bps);
		fprintf(file, "\n");
	}
	for (int i = 0; i < input->monitors; i++) {
		const struct monitor_interval *at = &counts_of_monitor(i)->interval[index];

		fprintf(file, "m %" PRIu64 " %u %u\n", at->ip_bytes,
			at->queue_packets + at->device_packets, at->drops);
	}
}

void report_results(const struct input *input)
{
	const struct total_counts *totals = total_counts();
	FILE *file = create("results");

	if (!file)
		die("results: %m");
	for (int i = 0; i < input->flows; i++)
		report_flow(file, input, i);
	for (int64_t index = 0; index < input_samples(input); index++)
		report_sample(file, input, index);
	fprintf(file, "total %" PRIu64 " %" PRIu64 "\nend\n", totals->control_drops,
		totals->transmissions);
	if (fclose(file))
		die("results: %m");
}
