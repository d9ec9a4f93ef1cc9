#include "input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void read_queue(const char *line, struct input *input)
{
	struct input_queue queue = {0};
	int link, direction, ecn, cuts;
	double *v = queue.value;

	if (sscanf(line,
		   "queue %d %d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu32
		   " %" SCNu32 " %d %d %11s %lf %lf %lf %lf %lf %lf %lf %lf",
		   &link, &direction, &queue.rate_Bps, &queue.line_Bps, &queue.delay_ns,
		   &queue.jitter_ns, &queue.loss, &queue.burst_bytes, &queue.frame_bytes, &ecn, &cuts, queue.kind, v, v + 1, v + 2, v + 3, v + 4, v + 5,
		   v + 6, v + 7) != 20 ||
	    link < 0 || link >= input->links || direction < AHEAD || direction > BACK)
		die("input: %s", line);
	queue.ecn = ecn;
	queue.cuts = cuts;
	input->cuts |= cuts;
	input->link[link].queue[direction] = queue;
}

static bool read_tcp(const char *line, struct input_flow *flow)
{
	int sack, timestamps, ecn, sampled;

	flow->tcp = true;
	if (sscanf(line,
		   "tcp %d %d %" SCNd64 " %" SCNd64 " %d %d %d %d %15s %" SCNu32 " %" SCNu32
		   " %" SCNu32 " %d %d %" SCNd64 " %" SCNu64 " %d %d",
		   &flow->source, &flow->destination, &flow->start_ns, &flow->stop_ns,
		   &flow->source_link, &flow->source_side, &flow->last_link, &flow->last_side,
		   flow->control, &flow->segment_bytes, &flow->maximum_window,
		   &flow->receive_buffer, &sack, &timestamps, &flow->connect_ns,
		   &flow->transfer_bytes, &ecn, &sampled) != 18)
		return false;
	flow->sack = sack;
	flow->timestamps = timestamps;
	flow->ecn = ecn;
	flow->sampled = sampled;
	return true;
}

static bool read_cbr(const char *line, struct input_flow *flow)
{
	return sscanf(line,
		      "cbr %d %d %" SCNd64 " %" SCNd64 " %d %d %d %d %" SCNu32 " %lf",
		      &flow->source, &flow->destination, &flow->start_ns, &flow->stop_ns,
		      &flow->source_link, &flow->source_side, &flow->last_link, &flow->last_side,
		      &flow->payload_bytes, &flow->interval_ns) == 10;
}

static bool read_route(const char *line, struct input_route *route)
{
	int to_source, quick_ack, ecn;

	if (sscanf(line, "route %d %d %d %d %" SCNu32 " %" SCNu32 " %d %d", &route->node, &route->link,
		   &route->flow, &to_source, &route->initial_window, &route->minimum_rto_ms,
		   &quick_ack, &ecn) != 8)
		return false;
	route->to_source = to_source;
	route->quick_ack = quick_ack;
	route->ecn = ecn;
	return true;
}

static void read_parameter(const char *line)
{
	char module[24], name[24], value[24], path[128];

	if (sscanf(line, "parameter %23[a-z_] %23[a-z_] %23[0-9]", module, name, value) != 3)
		die("input: %s", line);
	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	write_text(path, value);
}

static void read_sizes(const char *line, struct input *input)
{
	if (sscanf(line, "run %" SCNd64 " %" SCNd64 " %" SCNu32 " %d %d %d %d %d %" SCNu32 " %" SCNu32,
		   &input->duration_ns, &input->interval_ns, &input->mtu, &input->nodes, &input->links,
		   &input->routes, &input->flows, &input->monitors, &input->offload,
		   &input->most_receive_buffer) != 10)
		die("input: %s", line);
	input->link = allocate(input->links, sizeof(*input->link));
	input->route = allocate(input->routes, sizeof(*input->route));
	input->flow = allocate(input->flows, sizeof(*input->flow));
	input->monitor = allocate(input->monitors, sizeof(*input->monitor));
}

void input_read(const char *path, struct input *input)
{
	char line[512];
	int links = 0, routes = 0, flows = 0, monitors = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		die("%s: %m", path);
	while (fgets(line, sizeof(line), file)) {
		bool good = true;

		if (!strncmp(line, "run ", 4))
			read_sizes(line, input);
		else if (!strncmp(line, "queue ", 6))
			read_queue(line, input);
		else if (!strncmp(line, "parameter ", 10))
			read_parameter(line);
		else if (!strncmp(line, "link ", 5) && links < input->links) {
			struct input_link *link = &input->link[links++];
			good = sscanf(line, "link %d %d %u", &link->node[0], &link->node[1],
				      &link->taps) == 3;
		} else if (!strncmp(line, "route ", 6) && routes < input->routes)
			good = read_route(line, &input->route[routes++]);
		else if (!strncmp(line, "tcp ", 4) && flows < input->flows)
			good = read_tcp(line, &input->flow[flows++]);
		else if (!strncmp(line, "cbr ", 4) && flows < input->flows)
			good = read_cbr(line, &input->flow[flows++]);
		else if (!strncmp(line, "monitor ", 8) && monitors < input->monitors) {
			struct input_monitor *monitor = &input->monitor[monitors++];
			good = sscanf(line, "monitor %d %d", &monitor->link, &monitor->direction) == 2;
		} else
			good = false;
		if (!good)
			die("input: %s", line);
	}
	fclose(file);
	if (links != input->links || routes != input->routes || flows != input->flows ||
	    monitors != input->monitors)
		die("input: incomplete");
}
