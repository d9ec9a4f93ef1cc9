#include "tap.h"

#include "network.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* Blocks are handed over when full, or after so long. */
#define BLOCK_BYTES (1 << 18)
#define BLOCKS 32
#define RETIRE_MS 500
#define SNAP_BYTES 96

static int tap = -1;
static uint8_t *ring;
static unsigned next_block;

/// Keep what goes in at a device flagged IN and what goes out at one flagged OUT.
static void attach_filter(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(SKF_AD_OFF + SKF_AD_IFINDEX)),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, INDEX_TAP_OUT, 3, 0),
	    BPF_STMT(BPF_RET | BPF_K, 0),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(SKF_AD_OFF + SKF_AD_IFINDEX)),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, INDEX_TAP_IN, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SNAP_BYTES),
	    BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};

	if (setsockopt(tap, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		die("tap: filter: %m");
}

int tap_open(void)
{
	struct tpacket_req3 request = {.tp_block_size = BLOCK_BYTES,
				       .tp_block_nr = BLOCKS,
				       .tp_frame_size = 256,
				       .tp_frame_nr = BLOCK_BYTES / 256 * BLOCKS,
				       .tp_retire_blk_tov = RETIRE_MS};
	struct sockaddr_ll all = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int version = TPACKET_V3;

	/* Bound only once the filter is there, so that nothing else gets in. */
	tap = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (tap < 0)
		die("tap: %m");
	attach_filter();
	if (setsockopt(tap, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(tap, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		die("tap: ring: %m");
	ring = mmap(NULL, (size_t)BLOCK_BYTES * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, tap, 0);
	if (ring == MAP_FAILED || bind(tap, (struct sockaddr *)&all, sizeof(all)))
		die("tap: %m");
	return tap;
}

bool packet_parse(const uint8_t *frame, size_t size, struct packet *packet)
{
	struct iphdr ip;
	size_t head;

	if (size < ETH_HLEN + sizeof(ip) || frame[12] != 8 || frame[13] != 0)
		return false;
	memcpy(&ip, frame + ETH_HLEN, sizeof(ip));
	head = ETH_HLEN + 4u * ip.ihl;
	packet->source = ntohl(ip.saddr);
	packet->destination = ntohl(ip.daddr);
	packet->id = ntohs(ip.id);
	packet->ip_bytes = ntohs(ip.tot_len);
	packet->sequence = 0;
	packet->payload_bytes = 0;
	if (ip.protocol == IPPROTO_TCP && size >= head + sizeof(struct tcphdr)) {
		struct tcphdr tcp;

		memcpy(&tcp, frame + head, sizeof(tcp));
		packet->sequence = ntohl(tcp.seq);
		packet->payload_bytes = packet->ip_bytes - 4u * ip.ihl - 4u * tcp.doff;
	} else if (ip.protocol == IPPROTO_UDP) {
		packet->payload_bytes = packet->ip_bytes - 4u * ip.ihl - sizeof(struct udphdr);
	}
	return true;
}

static int64_t drain_block(struct tpacket_block_desc *block,
			   void (*see)(const struct packet *packet), int64_t latest)
{
	const uint8_t *at = (uint8_t *)block + block->hdr.bh1.offset_to_first_pkt;

	for (unsigned i = 0; i < block->hdr.bh1.num_pkts; i++) {
		const struct tpacket3_hdr *head = (const struct tpacket3_hdr *)at;
		const struct sockaddr_ll *where =
		    (const void *)(at + TPACKET_ALIGN(sizeof(struct tpacket3_hdr)));
		struct packet packet = {.device = where->sll_ifindex,
					.out = where->sll_pkttype == PACKET_OUTGOING};

		packet.time_ns = from_packet_clock(head->tp_sec * NS_PER_S + head->tp_nsec);
		latest = packet.time_ns;
		if (packet_parse(at + head->tp_mac, head->tp_snaplen, &packet))
			see(&packet);
		at += head->tp_next_offset;
	}
	return latest;
}

int64_t tap_drain(void (*see)(const struct packet *packet), int64_t latest)
{
	for (;;) {
		struct tpacket_block_desc *block =
		    (void *)(ring + (size_t)BLOCK_BYTES * next_block);

		if (!(block->hdr.bh1.block_status & TP_STATUS_USER))
			return latest;
		latest = drain_block(block, see, latest);
		block->hdr.bh1.block_status = TP_STATUS_KERNEL;
		next_block = (next_block + 1) % BLOCKS;
	}
}

void tap_check(void)
{
	struct tpacket_stats_v3 stats;
	socklen_t size = sizeof(stats);

	if (getsockopt(tap, SOL_PACKET, PACKET_STATISTICS, &stats, &size) || stats.tp_drops)
		die("the packet tap overflowed");
}
