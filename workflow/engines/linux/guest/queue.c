#include "queue.h"

#include "address.h"
#include "netlink.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <math.h>
#include <string.h>

#define LEAF_PARENT TC_H_MAKE(1u << 16, 1)
#define RED_PARENT TC_H_MAKE(2u << 16, 1)
#define RED_FIFO_PARENT TC_H_MAKE(3u << 16, 1)
#define TICK_NS 64 /* unit of time of the traffic control interface */
#define DEEPEST 1000000
#define MOST_NUMBERS 3000u /* that fit into a request */

/* Of kernel/links.patch. */
enum { TCA_NETEM_ORDERED = 32, TCA_NETEM_LISTED_TO, TCA_NETEM_LISTED };
enum { TCA_OPPORTUNITIES_START = 1, TCA_OPPORTUNITIES_SERIES };

/// Begin a request that makes something, or changes what is there.
static void begin_either(bool is_new, struct request *request, uint16_t type, int device,
			 uint32_t parent, uint32_t handle, const char *kind)
{
	struct tcmsg what = {
	    .tcm_family = AF_UNSPEC, .tcm_ifindex = device, .tcm_handle = handle, .tcm_parent = parent};

	if (type == RTM_NEWTFILTER)
		what.tcm_info = TC_H_MAKE(1u << 16, htons(ETH_P_ALL));
	request_begin(request, type, is_new ? NLM_F_CREATE | NLM_F_EXCL : 0, &what, sizeof(what));
	request_put_text(request, TCA_KIND, kind);
}

static void begin(struct request *request, uint16_t type, int device, uint32_t parent,
		  uint32_t handle, const char *kind)
{
	begin_either(true, request, type, device, parent, handle, kind);
}

/// Put the first numbers of a list, as many as fit; the rest is left in the list.
static void put_piece(struct request *request, uint16_t attribute, struct numbers *rest)
{
	size_t count = rest->count < MOST_NUMBERS ? rest->count : MOST_NUMBERS;

	request_put(request, attribute, rest->number, count * sizeof(*rest->number));
	rest->number += count;
	rest->count -= count;
}

void redirect(int socket, int from, int to, bool kept)
{
	/* Kept, the packet itself goes on: it is its sender's memory until netem has transmitted it
	 * (kernel/hosts.patch). Otherwise a copy goes on and the original is consumed: what waits in the
	 * network does not hold the sender back. */
	struct tc_mirred target = {.action = TC_ACT_STOLEN,
				   .eaction = kept ? TCA_EGRESS_REDIR : TCA_EGRESS_MIRROR,
				   .ifindex = (uint32_t)to};
	struct nlattr *options, *actions, *first, *details;
	struct request request;

	begin(&request, RTM_NEWQDISC, from, TC_H_INGRESS, TC_H_MAKE(TC_H_INGRESS, 0), "ingress");
	netlink_do(socket, &request, "ingress");
	begin(&request, RTM_NEWTFILTER, from, TC_H_MAKE(TC_H_INGRESS, 0), 0, "matchall");
	options = request_nest(&request, TCA_OPTIONS);
	actions = request_nest(&request, TCA_MATCHALL_ACT);
	first = request_nest(&request, 1);
	request_put_text(&request, TCA_ACT_KIND, "mirred");
	details = request_nest(&request, TCA_ACT_OPTIONS);
	request_put(&request, TCA_MIRRED_PARMS, &target, sizeof(target));
	request_end(&request, details);
	request_end(&request, first);
	request_end(&request, actions);
	request_end(&request, options);
	netlink_do(socket, &request, "redirect");
}

/// Sizes of packets from here on are those of IP and the link's frame, for Ethernet's header.
static void count_frames(struct request *request, const struct input_queue *queue)
{
	struct tc_sizespec sizes = {.overhead = (int)queue->frame_bytes - ETH_HLEN, .linklayer = TC_LINKLAYER_ETHERNET};
	struct nlattr *stab = request_nest(request, TCA_STAB);

	request_put(request, TCA_STAB_BASE, &sizes, sizeof(sizes));
	request_end(request, stab);
}

static struct tc_ratespec rate_of(const struct input_queue *queue)
{
	struct tc_ratespec rate = {.linklayer = TC_LINKLAYER_ETHERNET};

	rate.rate = queue->rate_Bps < UINT32_MAX ? (uint32_t)queue->rate_Bps : UINT32_MAX;
	return rate;
}

/// The bucket that pays first: it cuts merged packets that it cannot hold (tbf_segment).
static void add_tbf(int socket, int device, const struct input_queue *queue)
{
	const struct tc_tbf_qopt bucket = {.rate = rate_of(queue)};
	struct request request;
	struct nlattr *options;

	begin(&request, RTM_NEWQDISC, device, TC_H_ROOT, 1u << 16, "tbf");
	count_frames(&request, queue);
	options = request_nest(&request, TCA_OPTIONS);
	request_put(&request, TCA_TBF_PARMS, &bucket, sizeof(bucket));
	request_put(&request, TCA_TBF_RATE64, &queue->rate_Bps, sizeof(queue->rate_Bps));
	request_put_u32(&request, TCA_TBF_BURST, queue->burst_bytes);
	request_end(&request, options);
	netlink_do(socket, &request, "tbf");
}

static void set_class(bool is_new, int socket, int device, const struct input_queue *queue)
{
	double burst_ns = queue->burst_bytes * 1e9 / queue->rate_Bps;
	struct tc_htb_opt class = {.quantum = 200000};
	struct nlattr *options;
	struct request request;

	class.ceil = class.rate = rate_of(queue);
	class.buffer = class.cbuffer = (uint32_t)(burst_ns / TICK_NS);
	begin_either(is_new, &request, RTM_NEWTCLASS, device, 1u << 16, LEAF_PARENT, "htb");
	options = request_nest(&request, TCA_OPTIONS);
	request_put(&request, TCA_HTB_RATE64, &queue->rate_Bps, sizeof(queue->rate_Bps));
	request_put(&request, TCA_HTB_CEIL64, &queue->rate_Bps, sizeof(queue->rate_Bps));
	request_put(&request, TCA_HTB_PARMS, &class, sizeof(class));
	request_end(&request, options);
	netlink_do(socket, &request, "htb class");
}

static void add_shaper(int socket, int device, const struct input_queue *queue)
{
	struct tc_htb_glob root = {.version = 3, .rate2quantum = 10, .defcls = 1};
	struct nlattr *options;
	struct request request;

	begin(&request, RTM_NEWQDISC, device, TC_H_ROOT, 1u << 16, "htb");
	count_frames(&request, queue);
	options = request_nest(&request, TCA_OPTIONS);
	request_put(&request, TCA_HTB_INIT, &root, sizeof(root));
	request_end(&request, options);
	netlink_do(socket, &request, "htb");
	set_class(true, socket, device, queue);
}

void change_rate(int socket, int device, const struct input_queue *queue)
{
	set_class(false, socket, device, queue);
}

static void add_opportunities(int socket, int device, const struct input_queue *queue)
{
	struct numbers rest = queue->opportunities_ms;
	const uint64_t start_ns = START_NS;
	bool is_new = true;

	do {
		struct request request;
		struct nlattr *options;

		begin_either(is_new, &request, RTM_NEWQDISC, device, TC_H_ROOT, 1u << 16,
			     "opportunities");
		count_frames(&request, queue);
		options = request_nest(&request, TCA_OPTIONS);
		request_put(&request, TCA_OPPORTUNITIES_START, &start_ns, sizeof(start_ns));
		put_piece(&request, TCA_OPPORTUNITIES_SERIES, &rest);
		request_end(&request, options);
		netlink_do(socket, &request, "opportunities");
		is_new = false;
	} while (rest.count);
}

static void put_fifo(struct request *request, uint32_t limit)
{
	struct tc_fifo_qopt fifo = {.limit = limit};

	request_put(request, TCA_OPTIONS, &fifo, sizeof(fifo));
}

static void put_pfifo(struct request *request, const struct input_queue *queue)
{
	put_fifo(request, number(queue->discipline, "limit_packets"));
}

static void put_bfifo(struct request *request, const struct input_queue *queue)
{
	put_fifo(request, number(queue->discipline, "limit_bytes"));
}

/// Put a parameter of the discipline, by its name in the input.
static void put(struct request *request, int attribute, const struct input_queue *queue,
		const char *name)
{
	request_put_u32(request, attribute, number(queue->discipline, name));
}

/// How the average decays while idle (Floyd and Jacobson 1993, section 11): by how many powers of two
/// after each of 256 cells of idle time. Returns log2 of a cell's microseconds.
static uint8_t red_idle_table(double weight, double packet_us, uint8_t *table)
{
	double powers_per_us = -log2(1.0 - weight) / packet_us;
	uint8_t log_cell = 0;

	while (log_cell < 31 && 31 / powers_per_us / (double)(1u << log_cell) >= 256)
		log_cell++;
	for (int i = 0; i < 256; i++) {
		double powers = (double)((uint64_t)i << log_cell) * powers_per_us;

		table[i] = (uint8_t)(powers < 31 ? powers : 31);
	}
	return log_cell;
}

static void put_red(struct request *request, const struct input_queue *queue)
{
	struct statement *given = queue->discipline;
	int halvings = number(given, "weight_halvings");
	struct tc_red_qopt red = {.qth_min = number(given, "minimum_bytes"),
				  .qth_max = number(given, "maximum_bytes"),
				  .Wlog = halvings,
				  .Plog = 31,
				  .flags = flag(given, "ecn") ? TC_RED_ECN : 0};
	double packet_us = number(given, "mean_packet_bytes") * 1e6 / (double)queue->rate_Bps;
	double probability = real(given, "maximum_probability");
	uint8_t table[256];
	struct nlattr *options = request_nest(request, TCA_OPTIONS);

	red.Scell_log = red_idle_table(ldexp(1, -halvings), packet_us, table);
	request_put(request, TCA_RED_PARMS, &red, sizeof(red));
	request_put(request, TCA_RED_STAB, table, sizeof(table));
	request_put_u32(request, TCA_RED_MAX_P, (uint32_t)(probability * UINT32_MAX));
	request_end(request, options);
}

/// RED starts its idle period when a dequeue finds it empty. HTB never dequeues an empty queue, and TBF
/// only peeks; but a peek into ETS dequeues from its first band. The packet that TBF peeks at has left
/// RED: it is the first packet of the device queue. RED keeps its packets in a child queue, which is
/// limited in bytes unless another one is set.
static void add_red(int socket, int device, const struct input_queue *queue)
{
	const uint8_t one = 1;
	struct request request;
	struct nlattr *options;

	add_tbf(socket, device, queue);
	begin(&request, RTM_NEWQDISC, device, LEAF_PARENT, 2u << 16, "ets");
	options = request_nest(&request, TCA_OPTIONS);
	request_put(&request, TCA_ETS_NBANDS, &one, sizeof(one));
	request_put(&request, TCA_ETS_NSTRICT, &one, sizeof(one));
	request_end(&request, options);
	netlink_do(socket, &request, "ets");

	begin(&request, RTM_NEWQDISC, device, RED_PARENT, 3u << 16, "red");
	put_red(&request, queue);
	netlink_do(socket, &request, "red");

	begin(&request, RTM_NEWQDISC, device, RED_FIFO_PARENT, 4u << 16, "pfifo");
	put_pfifo(&request, queue);
	netlink_do(socket, &request, "red fifo");
}

static void put_codel(struct request *request, const struct input_queue *queue)
{
	struct nlattr *options = request_nest(request, TCA_OPTIONS);

	put(request, TCA_CODEL_LIMIT, queue, "limit_packets");
	put(request, TCA_CODEL_TARGET, queue, "target_us");
	put(request, TCA_CODEL_INTERVAL, queue, "interval_us");
	put(request, TCA_CODEL_ECN, queue, "ecn");
	request_end(request, options);
}

static void put_fq_codel(struct request *request, const struct input_queue *queue)
{
	struct nlattr *options = request_nest(request, TCA_OPTIONS);

	put(request, TCA_FQ_CODEL_LIMIT, queue, "limit_packets");
	put(request, TCA_FQ_CODEL_TARGET, queue, "target_us");
	put(request, TCA_FQ_CODEL_INTERVAL, queue, "interval_us");
	put(request, TCA_FQ_CODEL_FLOWS, queue, "buckets");
	put(request, TCA_FQ_CODEL_QUANTUM, queue, "quantum_bytes");
	put(request, TCA_FQ_CODEL_ECN, queue, "ecn");
	/* Its limit is in packets alone. */
	request_put_u32(request, TCA_FQ_CODEL_MEMORY_LIMIT, UINT32_MAX);
	request_end(request, options);
}

static void put_pie(struct request *request, const struct input_queue *queue)
{
	struct nlattr *options = request_nest(request, TCA_OPTIONS);

	put(request, TCA_PIE_LIMIT, queue, "limit_packets");
	put(request, TCA_PIE_TARGET, queue, "target_us");
	put(request, TCA_PIE_TUPDATE, queue, "update_interval_us");
	put(request, TCA_PIE_ECN, queue, "ecn");
	request_put_u32(request, TCA_PIE_BYTEMODE, 0);
	request_put_u32(request, TCA_PIE_DQ_RATE_ESTIMATOR, 0);
	request_end(request, options);
}

static void put_fq_pie(struct request *request, const struct input_queue *queue)
{
	struct nlattr *options = request_nest(request, TCA_OPTIONS);

	put(request, TCA_FQ_PIE_LIMIT, queue, "limit_packets");
	put(request, TCA_FQ_PIE_TARGET, queue, "target_us");
	put(request, TCA_FQ_PIE_TUPDATE, queue, "update_interval_us");
	put(request, TCA_FQ_PIE_FLOWS, queue, "buckets");
	put(request, TCA_FQ_PIE_QUANTUM, queue, "quantum_bytes");
	put(request, TCA_FQ_PIE_ECN, queue, "ecn");
	request_put_u32(request, TCA_FQ_PIE_BYTEMODE, 0);
	request_put_u32(request, TCA_FQ_PIE_DQ_RATE_ESTIMATOR, 0);
	/* Its limit is in packets alone. */
	request_put_u32(request, TCA_FQ_PIE_MEMORY_LIMIT, UINT32_MAX);
	request_end(request, options);
}

static void put_cake(struct request *request, const struct input_queue *queue)
{
	struct nlattr *options = request_nest(request, TCA_OPTIONS);

	put(request, TCA_CAKE_MEMORY, queue, "memory_limit_bytes");
	put(request, TCA_CAKE_TARGET, queue, "target_us");
	put(request, TCA_CAKE_RTT, queue, "interval_us");
	/* A merged packet crosses the network whole, as through the other kinds. */
	request_put_u32(request, TCA_CAKE_SPLIT_GSO, 0);
	request_end(request, options);
}

static void add_discipline(int socket, int device, const struct input_queue *queue,
			   const char *kind)
{
	static const struct {
		const char *kind;
		void (*put)(struct request *, const struct input_queue *);
	} known[] = {{"pfifo", put_pfifo}, {"bfifo", put_bfifo}, {"codel", put_codel},
		     {"fq_codel", put_fq_codel}, {"pie", put_pie}, {"fq_pie", put_fq_pie},
		     {"cake", put_cake}};
	struct request request;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i].kind, kind)) {
			begin(&request, RTM_NEWQDISC, device, LEAF_PARENT, 2u << 16, kind);
			known[i].put(&request, queue);
			netlink_do(socket, &request, kind);
			return;
		}
	statement_refuse(queue->discipline, "kind", "unknown");
}

void add_queue(int socket, int device, const struct input_queue *queue)
{
	const char *kind = text(queue->discipline, "kind");

	if (!strcmp(kind, "red")) {
		add_red(socket, device, queue);
	} else {
		if (queue->opportunities_ms.count)
			add_opportunities(socket, device, queue);
		else if (queue->cuts)
			add_tbf(socket, device, queue);
		else
			add_shaper(socket, device, queue);
		add_discipline(socket, device, queue, kind);
	}
	statement_end(queue->discipline);
}

/// Set the wire's values; losses in `listed` come in addition to earlier ones.
static void set_wire(bool is_new, int socket, int device, const struct input_queue *queue,
		     struct numbers *listed)
{
	struct tc_netem_qopt netem = {.limit = DEEPEST, .loss = queue->loss};
	struct tc_netem_rate rate = {.rate = UINT32_MAX};
	/* netem's delay is the middle of what it draws from. */
	int64_t jitter = (int64_t)queue->jitter_ns / 2;
	int64_t delay = (int64_t)queue->delay_ns + jitter;
	struct request request;
	struct nlattr *options;

	if (queue->line_Bps < UINT32_MAX)
		rate.rate = (uint32_t)queue->line_Bps;
	begin_either(is_new, &request, RTM_NEWQDISC, device, TC_H_ROOT, 1u << 16, "netem");
	count_frames(&request, queue);
	options = request_nest(&request, TCA_OPTIONS);
	/* netem's fixed part has no attribute header. */
	memcpy((char *)&request + request.header.nlmsg_len, &netem, sizeof(netem));
	request.header.nlmsg_len += NLMSG_ALIGN(sizeof(netem));
	request_put(&request, TCA_NETEM_LATENCY64, &delay, sizeof(delay));
	request_put(&request, TCA_NETEM_JITTER64, &jitter, sizeof(jitter));
	request_put(&request, TCA_NETEM_RATE, &rate, sizeof(rate));
	request_put(&request, TCA_NETEM_RATE64, &queue->line_Bps, sizeof(queue->line_Bps));
	if (queue->ordered)
		request_put(&request, TCA_NETEM_ORDERED, NULL, 0);
	if (listed->count) {
		request_put_u32(&request, TCA_NETEM_LISTED_TO,
				htonl(destination_address(queue->listed_flow)));
		put_piece(&request, TCA_NETEM_LISTED, listed);
	}
	request_end(&request, options);
	netlink_do(socket, &request, "netem");
}

void add_wire(int socket, int device, const struct input_queue *queue)
{
	struct numbers rest = queue->listed;

	set_wire(true, socket, device, queue, &rest);
	while (rest.count)
		set_wire(false, socket, device, queue, &rest);
}

void change_wire(int socket, int device, const struct input_queue *queue)
{
	struct numbers none = {0};

	set_wire(false, socket, device, queue, &none);
}

static struct queue_state read_state(int socket, int device, uint32_t parent)
{
	struct tcmsg what = {.tcm_family = AF_UNSPEC, .tcm_ifindex = device, .tcm_parent = parent};
	const struct nlmsghdr *answer;
	const struct nlattr *stats;
	struct tc_stats numbers;
	struct request request;

	request_begin(&request, RTM_GETQDISC, NLM_F_ECHO, &what, sizeof(what));
	answer = netlink_get(socket, &request, "queue state");
	stats = attribute_find((const char *)NLMSG_DATA(answer) + NLMSG_ALIGN(sizeof(what)),
			       answer->nlmsg_len - NLMSG_SPACE(sizeof(what)), TCA_STATS);
	if (!stats || attribute_size(stats) < offsetof(struct tc_stats, backlog))
		die("queue state: no counters");
	memset(&numbers, 0, sizeof(numbers));
	memcpy(&numbers, attribute_data(stats),
	       attribute_size(stats) < sizeof(numbers) ? attribute_size(stats) : sizeof(numbers));
	return (struct queue_state){.packets = numbers.qlen, .drops = numbers.drops};
}

struct queue_state queue_state(int socket, int device)
{
	return read_state(socket, device, LEAF_PARENT);
}

struct queue_state wire_state(int socket, int device)
{
	return read_state(socket, device, TC_H_ROOT);
}
