#include "input.h"

#include <stdio.h>
#include <string.h>

static void copy_text(char *target, size_t size, struct statement *statement, const char *name)
{
	const char *value = text(statement, name);

	if (strlen(value) >= size)
		statement_refuse(statement, name, "too long");
	strcpy(target, value);
}

static void read_run(struct statement *run, struct input *input)
{
	input->duration_ns = number(run, "duration_ns");
	input->interval_ns = number(run, "interval_ns");
	input->mtu = number(run, "mtu");
	input->offload = number(run, "offload");
	input->device_queue = flag(run, "device_queue");
	input->most_receive_buffer = number(run, "most_receive_buffer");
	input->nodes = number(run, "nodes");
	input->links = number(run, "links");
	input->routes = number(run, "routes");
	input->flows = number(run, "flows");
	input->monitors = number(run, "monitors");
	input->changes = number(run, "changes");
	input->link = allocate(input->links, sizeof(*input->link));
	input->route = allocate(input->routes, sizeof(*input->route));
	input->flow = allocate(input->flows, sizeof(*input->flow));
	input->monitor = allocate(input->monitors, sizeof(*input->monitor));
	input->change = allocate(input->changes, sizeof(*input->change));
}

static void read_parameter(struct statement *parameter)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", text(parameter, "module"),
		 text(parameter, "name"));
	write_text(path, text(parameter, "value"));
}

static void read_link(struct statement *statement, const struct input *input,
		      struct input_link *link)
{
	link->node[0] = number_below(statement, "a", input->nodes);
	link->node[1] = number_below(statement, "b", input->nodes);
	link->taps = number(statement, "taps");
}

static struct input_queue *queue_of(struct statement *statement, const struct input *input)
{
	struct input_link *link = &input->link[number_below(statement, "link", input->links)];

	return &link->queue[number_below(statement, "direction", 2)];
}

static void read_listed(struct statement *statement, const struct input *input)
{
	struct input_queue *queue = queue_of(statement, input);

	queue->listed_flow = number_below(statement, "flow", input->flows);
	queue->listed = numbers(statement, "data_packets");
}

static void read_opportunities(struct statement *statement, const struct input *input)
{
	queue_of(statement, input)->opportunities_ms = numbers(statement, "at_ms");
}

static void read_change(struct statement *statement, const struct input *input,
			struct input_change *change)
{
	change->at_ns = number(statement, "at_ns");
	change->link = number_below(statement, "link", input->links);
	change->direction = number_below(statement, "direction", 2);
	change->rate_Bps = number(statement, "rate_Bps");
	change->line_Bps = number(statement, "line_Bps");
	change->delay_ns = number(statement, "delay_ns");
	change->loss = number(statement, "loss");
}

/// What a queue's discipline takes is read when it is set up: see queue.c.
static void read_queue(struct statement *statement, struct input *input)
{
	struct input_queue *queue = queue_of(statement, input);

	if (queue->discipline)
		statement_refuse(statement, "direction", "has a queue");
	queue->discipline = statement;
	queue->rate_Bps = number(statement, "rate_Bps");
	queue->line_Bps = number(statement, "line_Bps");
	queue->delay_ns = number(statement, "delay_ns");
	queue->jitter_ns = number(statement, "jitter_ns");
	queue->loss = number(statement, "loss");
	queue->ordered = flag(statement, "ordered");
	queue->burst_bytes = number(statement, "burst_bytes");
	queue->frame_bytes = number(statement, "frame_bytes");
	queue->cuts = flag(statement, "cuts");
}

static void read_route(struct statement *statement, const struct input *input,
		       struct input_route *route)
{
	route->node = number_below(statement, "node", input->nodes);
	route->link = number_below(statement, "link", input->links);
	route->flow = number_below(statement, "flow", input->flows);
	route->to_source = flag(statement, "to_source");
	route->initial_window = number(statement, "initial_window");
	route->minimum_rto_ms = number(statement, "minimum_rto_ms");
	route->quick_ack = flag(statement, "quick_ack");
	route->ecn = flag(statement, "ecn");
	route->sack = flag(statement, "sack");
	route->timestamps = flag(statement, "timestamps");
}

static void read_flow(struct statement *statement, const struct input *input,
		      struct input_flow *flow)
{
	flow->source = number_below(statement, "source", input->nodes);
	flow->destination = number_below(statement, "destination", input->nodes);
	flow->start_ns = number(statement, "start_ns");
	flow->stop_ns = number(statement, "stop_ns");
	flow->source_link = number_below(statement, "source_link", input->links);
	flow->source_side = number_below(statement, "source_side", 2);
	flow->last_link = number_below(statement, "last_link", input->links);
	flow->last_side = number_below(statement, "last_side", 2);
}

static void read_tcp(struct statement *statement, const struct input *input,
		     struct input_flow *flow)
{
	read_flow(statement, input, flow);
	flow->tcp = true;
	copy_text(flow->control, sizeof(flow->control), statement, "control");
	flow->connect_ns = number(statement, "connect_ns");
	flow->segment_bytes = number(statement, "segment_bytes");
	flow->maximum_window = number(statement, "maximum_window");
	flow->receive_buffer = number(statement, "receive_buffer");
	flow->sack = flag(statement, "sack");
	flow->timestamps = flag(statement, "timestamps");
	flow->ecn = flag(statement, "ecn");
	flow->sampled = flag(statement, "sampled");
	flow->transfer_bytes = number(statement, "transfer_bytes");
}

static void read_cbr(struct statement *statement, const struct input *input,
		     struct input_flow *flow)
{
	read_flow(statement, input, flow);
	flow->payload_bytes = number(statement, "payload_bytes");
	flow->interval_ns = real(statement, "interval_ns");
}

static void read_monitor(struct statement *statement, const struct input *input,
			 struct input_monitor *monitor)
{
	monitor->link = number_below(statement, "link", input->links);
	monitor->direction = number_below(statement, "direction", 2);
}

/// How many statements of each word were read.
struct counts {
	int links, routes, flows, monitors, changes;
};

static int next(int *count, int most, const struct statement *statement)
{
	if (*count == most)
		statement_refuse(statement, "number of these", "larger than `run` says");
	return (*count)++;
}

static void read_statement(struct statement *statement, struct input *input, struct counts *counts)
{
	int *links = &counts->links, *routes = &counts->routes;
	int *flows = &counts->flows, *monitors = &counts->monitors;

	if (statement_is(statement, "parameter"))
		read_parameter(statement);
	else if (statement_is(statement, "link"))
		read_link(statement, input, &input->link[next(links, input->links, statement)]);
	else if (statement_is(statement, "route"))
		read_route(statement, input, &input->route[next(routes, input->routes, statement)]);
	else if (statement_is(statement, "tcp"))
		read_tcp(statement, input, &input->flow[next(flows, input->flows, statement)]);
	else if (statement_is(statement, "cbr"))
		read_cbr(statement, input, &input->flow[next(flows, input->flows, statement)]);
	else if (statement_is(statement, "monitor"))
		read_monitor(statement, input,
			     &input->monitor[next(monitors, input->monitors, statement)]);
	else if (statement_is(statement, "listed"))
		read_listed(statement, input);
	else if (statement_is(statement, "opportunities"))
		read_opportunities(statement, input);
	else if (statement_is(statement, "change"))
		read_change(statement, input,
			    &input->change[next(&counts->changes, input->changes, statement)]);
	else
		statement_refuse(statement, "word", "unknown");
}

static void check_complete(const struct input *input, const struct counts *counts)
{
	if (counts->links != input->links || counts->routes != input->routes ||
	    counts->flows != input->flows || counts->monitors != input->monitors ||
	    counts->changes != input->changes)
		die("input: fewer statements than `run` says");
	for (int i = 0; i < input->links; i++)
		if (!input->link[i].queue[AHEAD].discipline || !input->link[i].queue[BACK].discipline)
			die("input: link %d: a direction without a queue", i);
}

void input_read(const char *path, struct input *input)
{
	struct counts counts = {0};
	struct statement *statement;
	FILE *file = fopen(path, "re");

	if (!file)
		die("%s: %m", path);
	while ((statement = statement_read(file))) {
		if (statement_is(statement, "run"))
			read_run(statement, input);
		else if (statement_is(statement, "queue")) {
			read_queue(statement, input);
			continue; /* which ends in queue.c */
		} else
			read_statement(statement, input, &counts);
		statement_end(statement);
	}
	fclose(file);
	check_complete(input, &counts);
}
