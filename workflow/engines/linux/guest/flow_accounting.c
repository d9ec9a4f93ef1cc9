#include "flow_accounting.h"

#include "address.h"
#include "network.h"

#include <stdlib.h>
#include <string.h>

#define BIN_NS 10000

/// A data packet under way; in order of sending, so that the wanted one is near the head.
struct journey {
	int64_t sent_ns;
	uint16_t id;
	bool over;
};

struct account {
	struct journey *journey;
	size_t first, count, room;
	bool started;
	uint32_t first_sequence;
	int64_t highest; /* bytes sent so far, relative to the first */
	uint32_t *bin;
	size_t bins;
	int source_device, last_device;
	struct flow_counts public;
};

struct transmitter {
	int entrance; /* where packets come in that go to its queue */
	int device;
	int64_t free_ns; /* when the transmission under way ends */
	uint64_t line_Bps; /* at which a packet passes now; 0: at once */
	int next_change;
	struct monitor_counts public;
};

static const struct input *the_input;
static struct account *accounts;
static struct transmitter *transmitters;
static struct total_counts totals;
static uint64_t outstanding;

static void *grow(void *memory, size_t count, size_t size)
{
	memory = realloc(memory, count * size);
	if (!memory)
		die("the guest's memory is too small for this scenario");
	return memory;
}

void accounting_open(const struct input *input)
{
	the_input = input;
	accounts = allocate(input->flows, sizeof(*accounts));
	transmitters = allocate(input->monitors, sizeof(*transmitters));
	for (int i = 0; i < input->flows; i++) {
		const struct input_flow *flow = &input->flow[i];

		accounts[i].public.interval =
		    allocate(input_samples(input), sizeof(struct flow_interval));
		if (flow->sampled)
			accounts[i].public.socket =
			    allocate(input_samples(input), sizeof(struct socket_interval));
		accounts[i].source_device =
		    device_index(&input->link[flow->source_link], flow->source_link,
				 flow->source_side ? DEVICE_B : DEVICE_A);
		accounts[i].last_device = device_index(&input->link[flow->last_link], flow->last_link,
						       flow->last_side ? DEVICE_B : DEVICE_A);
	}
	for (int i = 0; i < input->monitors; i++) {
		const struct input_monitor *monitor = &input->monitor[i];

		transmitters[i].public.interval =
		    allocate(input_samples(input), sizeof(struct monitor_interval));
		transmitters[i].entrance =
		    device_index(&input->link[monitor->link], monitor->link,
				 monitor->direction == AHEAD ? DEVICE_A : DEVICE_B);
		transmitters[i].device =
		    device_index(&input->link[monitor->link], monitor->link,
				 monitor->direction == AHEAD ? DEVICE_M : DEVICE_N);
		transmitters[i].line_Bps =
		    input->link[monitor->link].queue[monitor->direction].line_Bps;
	}
}

struct flow_counts *counts_of_flow(int flow)
{
	return &accounts[flow].public;
}

struct monitor_counts *counts_of_monitor(int monitor)
{
	return &transmitters[monitor].public;
}

const struct total_counts *total_counts(void)
{
	return &totals;
}

uint64_t accounting_outstanding(void)
{
	return outstanding;
}

/// The interval that a time falls into, its end included; -1 if none.
static int64_t interval_of(int64_t time_ns)
{
	int64_t index = time_ns <= 0 ? 0 : (time_ns - 1) / the_input->interval_ns;

	return index < input_samples(the_input) ? index : -1;
}

/// The bytes of a flow's segments, or 0 where nothing can be merged.
static uint32_t segment_bytes(int flow)
{
	return flow >= 0 && the_input->flow[flow].tcp ? the_input->flow[flow].segment_bytes : 0;
}

/// Number of segments in a (merged) packet.
static uint32_t segments_of(const struct packet *packet, uint32_t size)
{
	return size && packet->payload_bytes > size ? (packet->payload_bytes + size - 1) / size : 1;
}

/// One segment of a merged packet, as the kernel would cut it (inet_gso_segment): with its own
/// headers and the next identification.
static struct packet segment_of(const struct packet *packet, uint32_t size, uint32_t number)
{
	uint32_t before = number * size, headers = packet->ip_bytes - packet->payload_bytes;
	struct packet segment = *packet;

	segment.id = (uint16_t)(packet->id + number);
	segment.sequence = packet->sequence + before;
	segment.payload_bytes = packet->payload_bytes - before;
	if (size && segment.payload_bytes > size)
		segment.payload_bytes = size;
	segment.ip_bytes = headers + segment.payload_bytes;
	return segment;
}

static void count_retransmission(struct account *account, const struct packet *packet)
{
	int64_t begin;

	if (!account->started) {
		account->started = true;
		account->first_sequence = packet->sequence;
	}
	/* Sequence numbers wrap; what is sent is never 2 GiB from the highest sent. */
	begin = account->highest + (int32_t)(packet->sequence - account->first_sequence -
					     (uint32_t)account->highest);
	if (begin < account->highest) {
		int64_t index = interval_of(packet->time_ns);

		account->public.retransmissions++;
		if (index >= 0)
			account->public.interval[index].retransmissions++;
	}
	if (begin + packet->payload_bytes > account->highest)
		account->highest = begin + packet->payload_bytes;
}

static void sent(struct account *account, bool tcp, const struct packet *packet)
{
	if (packet->time_ns > the_input->duration_ns)
		return;
	if (tcp)
		count_retransmission(account, packet);
	if (account->first == account->count)
		account->first = account->count = 0;
	if (account->count == account->room) {
		size_t keep = account->count - account->first;

		memmove(account->journey, account->journey + account->first,
			keep * sizeof(struct journey));
		account->first = 0;
		account->count = keep;
		if (2 * keep >= account->room) {
			account->room = account->room ? 2 * account->room : 64;
			account->journey =
			    grow(account->journey, account->room, sizeof(struct journey));
		}
	}
	account->journey[account->count++] =
	    (struct journey){.sent_ns = packet->time_ns, .id = packet->id};
	account->public.sent++;
	outstanding++;
}

/// End the journey of a packet: return when it was sent, or -1 if no such packet is under way.
static int64_t end_journey(struct account *account, const struct packet *packet)
{
	for (size_t i = account->first; i < account->count; i++) {
		struct journey *journey = &account->journey[i];

		if (journey->over || journey->id != packet->id)
			continue;
		journey->over = true;
		outstanding--;
		while (account->first < account->count && account->journey[account->first].over)
			account->first++;
		return journey->sent_ns;
	}
	return -1;
}

static void count_delay(struct account *account, int64_t delay_ns)
{
	size_t bin = (size_t)(delay_ns / BIN_NS);

	if (bin >= account->bins) {
		size_t bins = 2 * bin + 64;

		account->bin = grow(account->bin, bins, sizeof(uint32_t));
		memset(account->bin + account->bins, 0, (bins - account->bins) * sizeof(uint32_t));
		account->bins = bins;
	}
	account->bin[bin]++;
	account->public.delay_sum_ns += (uint64_t)delay_ns;
	if (delay_ns > account->public.delay_largest_ns)
		account->public.delay_largest_ns = delay_ns;
}

static void received(struct account *account, int64_t stop_ns, const struct packet *packet)
{
	int64_t sent_ns = end_journey(account, packet);
	int64_t index = interval_of(packet->time_ns);
	int64_t delay_ns = packet->time_ns - sent_ns;

	if (sent_ns < 0) {
		if (packet->time_ns <= the_input->duration_ns)
			die("a packet arrived that was not under way");
		return;
	}
	if (packet->time_ns > the_input->duration_ns)
		return;
	account->public.received++;
	count_delay(account, delay_ns);
	if (packet->time_ns <= stop_ns) {
		account->public.ip_bytes += packet->ip_bytes;
		account->public.payload_bytes += packet->payload_bytes;
	}
	if (index >= 0) {
		struct flow_interval *interval = &account->public.interval[index];

		interval->received++;
		interval->ip_bytes += packet->ip_bytes;
		interval->delay_ns += (uint64_t)delay_ns;
	}
}

/// Go on to the rate with which a packet leaves at `time_ns`.
static void change_line(struct transmitter *transmitter, const struct input_monitor *monitor,
			int64_t time_ns)
{
	for (; transmitter->next_change < the_input->changes; transmitter->next_change++) {
		const struct input_change *change = &the_input->change[transmitter->next_change];

		if (change->at_ns >= time_ns)
			return;
		if (change->link == monitor->link && change->direction == monitor->direction)
			transmitter->line_Bps = change->line_Bps;
	}
}

/// Follow a monitored link's transmitter: the shaper has just let this packet go.
static void transmitted(int number, const struct packet *packet)
{
	const struct input_monitor *monitor = &the_input->monitor[number];
	const struct input_queue *queue = &the_input->link[monitor->link].queue[monitor->direction];
	struct transmitter *transmitter = &transmitters[number];
	struct monitor_interval *intervals = transmitter->public.interval;
	int64_t begin_ns =
	    packet->time_ns > transmitter->free_ns ? packet->time_ns : transmitter->free_ns;
	int64_t sample, index;

	change_line(transmitter, monitor, packet->time_ns);
	transmitter->free_ns = begin_ns;
	if (transmitter->line_Bps)
		transmitter->free_ns += (int64_t)((uint64_t)(packet->ip_bytes + queue->frame_bytes) *
						  NS_PER_S / transmitter->line_Bps);
	index = interval_of(transmitter->free_ns);
	if (index >= 0 && transmitter->free_ns <= the_input->duration_ns)
		intervals[index].ip_bytes += packet->ip_bytes;
	/* Between shaper and transmission it waits in the device. */
	for (sample = interval_of(packet->time_ns + 1);
	     sample >= 0 && sample < input_samples(the_input) &&
	     (sample + 1) * the_input->interval_ns < begin_ns;
	     sample++)
		intervals[sample].device_packets++;
}

/// Note that a packet began or ceased to wait in a monitored queue.
static void joined(int number, int64_t time_ns, int change)
{
	int64_t index = interval_of(time_ns);

	if (the_input->offload && index >= 0)
		transmitters[number].public.interval[index].joined += change;
}

/// The flow between two addresses if it is one of the input's, else -1.
static int known_flow(const struct packet *packet, bool *forth)
{
	int flow = flow_of(packet->source, packet->destination, forth);

	return flow < the_input->flows ? flow : -1;
}

static void see_segment(int flow, bool data, const struct packet *segment)
{
	totals.transmissions += segment->out && segment->time_ns <= the_input->duration_ns;
	for (int i = 0; i < the_input->monitors; i++)
		if (segment->out && transmitters[i].device == segment->device) {
			transmitted(i, segment);
			joined(i, segment->time_ns, -1);
		} else if (!segment->out && transmitters[i].entrance == segment->device) {
			joined(i, segment->time_ns, 1);
		}
	if (!data)
		return;
	if (!segment->out && segment->device == accounts[flow].source_device)
		sent(&accounts[flow], the_input->flow[flow].tcp, segment);
	if (segment->out && segment->device == accounts[flow].last_device)
		received(&accounts[flow], the_input->flow[flow].stop_ns, segment);
}

void account_packet(const struct packet *packet)
{
	bool forth;
	int flow = known_flow(packet, &forth);
	uint32_t size = segment_bytes(flow), count = segments_of(packet, size);

	for (uint32_t i = 0; i < count; i++) {
		struct packet segment = segment_of(packet, size, i);

		see_segment(flow, flow >= 0 && forth && segment.payload_bytes, &segment);
	}
}

/// The direction of a link in which a packet that came in here goes on.
static int direction_from(int device)
{
	enum device from = index_device(device);

	return from == DEVICE_A || from == DEVICE_N ? AHEAD : BACK;
}

/// Was it the monitored queue, or the wire behind it, that dropped a packet which came in here?
static bool watches(const struct input_monitor *monitor, int device)
{
	return index_link(device) == monitor->link && direction_from(device) == monitor->direction;
}

static void lose_segment(int flow, bool data, const struct packet *segment)
{
	int64_t index = interval_of(segment->time_ns);

	if (data && end_journey(&accounts[flow], segment) < 0 &&
	    segment->time_ns <= the_input->duration_ns)
		die("a packet was dropped that was not under way");
	if (segment->time_ns > the_input->duration_ns)
		return;
	totals.control_drops += !data;
	if (data)
		accounts[flow].public.dropped++;
	if (index < 0)
		return;
	if (data)
		accounts[flow].public.interval[index].drops++;
	for (int i = 0; i < the_input->monitors; i++) {
		if (watches(&the_input->monitor[i], segment->device))
			transmitters[i].public.interval[index].drops++;
		if (transmitters[i].entrance == segment->device)
			joined(i, segment->time_ns, -1);
	}
}

/// Is this what TBF cut? It reports the whole, which is larger than its burst, too if no segment found
/// room (tbf_segment).
static bool is_cut(const struct packet *packet, uint32_t segments)
{
	const struct input_queue *queue =
	    &the_input->link[index_link(packet->device)].queue[direction_from(packet->device)];
	uint32_t headers = packet->ip_bytes - packet->payload_bytes + queue->frame_bytes;

	return queue->cuts && packet->payload_bytes + segments * headers > queue->burst_bytes;
}

void account_drop(const struct packet *packet, bool of_flow)
{
	bool forth = false;
	int flow = of_flow ? known_flow(packet, &forth) : -1;
	uint32_t size = segment_bytes(flow), count = segments_of(packet, size);

	if (count > 1 && is_cut(packet, count))
		return;
	totals.drops++;
	for (uint32_t i = 0; i < count; i++) {
		struct packet segment = segment_of(packet, size, i);

		lose_segment(flow, flow >= 0 && forth && segment.payload_bytes, &segment);
	}
}

void accounting_close(void)
{
	for (int i = 0; i < the_input->monitors && the_input->offload; i++) {
		struct monitor_interval *intervals = transmitters[i].public.interval;
		int64_t waiting = 0;

		for (int64_t sample = 0; sample < input_samples(the_input); sample++) {
			waiting += intervals[sample].joined;
			intervals[sample].queue_packets = (uint32_t)waiting;
		}
	}
}

int64_t delay_quantile(int flow, double share)
{
	const struct account *account = &accounts[flow];
	uint64_t seen = 0;

	for (size_t bin = 0; bin < account->bins; bin++) {
		seen += account->bin[bin];
		if ((double)seen >= share * (double)account->public.received) {
			int64_t edge = (int64_t)(bin + 1) * BIN_NS;

			return edge < account->public.delay_largest_ns
				   ? edge
				   : account->public.delay_largest_ns;
		}
	}
	return account->public.delay_largest_ns;
}
