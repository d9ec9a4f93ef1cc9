/// Queue disciplines: the scenario's queue behind a shaper, and the wire (rate, delay, loss).
#pragma once

#include "input.h"

/// Send all that comes into device `from` out of device `to`.
void redirect(int socket, int from, int to, bool kept);

void add_queue(int socket, int device, const struct input_queue *queue);
void add_wire(int socket, int device, const struct input_queue *queue);

/// Give the shaper at `device` the queue's rate; the wire at `device` its rate, delay and loss.
void change_rate(int socket, int device, const struct input_queue *queue);
void change_wire(int socket, int device, const struct input_queue *queue);

struct queue_state {
	uint32_t packets, drops;
};

/// State of the scenario's queue at `device`; of the wire at `device`.
struct queue_state queue_state(int socket, int device);
struct queue_state wire_state(int socket, int device);
