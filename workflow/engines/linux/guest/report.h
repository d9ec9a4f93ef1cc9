/// The results as plain numbers, written into the launcher's folder once all is measured.
#pragma once

#include "input.h"

void report_results(const struct input *input);
