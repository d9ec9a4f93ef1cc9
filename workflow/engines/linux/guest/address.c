#include "address.h"

#define SOURCES 0x0a000001u	 /* 10.0.0.1 on */
#define DESTINATIONS 0x0a800001u /* 10.128.0.1 on */
#define MOST_FLOWS 0x7ffff0u

uint32_t source_address(int flow)
{
	return SOURCES + (uint32_t)flow;
}

uint32_t destination_address(int flow)
{
	return DESTINATIONS + (uint32_t)flow;
}

int flow_of(uint32_t source, uint32_t destination, bool *forth)
{
	*forth = destination >= DESTINATIONS;
	if (source - SOURCES < MOST_FLOWS && source - SOURCES == destination - DESTINATIONS)
		return (int)(source - SOURCES);
	if (destination - SOURCES < MOST_FLOWS && destination - SOURCES == source - DESTINATIONS)
		return (int)(destination - SOURCES);
	return -1;
}
