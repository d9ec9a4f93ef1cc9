/// The results as plain numbers, written into the launcher's folder once all is measured.
#pragma once

#include "plan.h"

void report_results(const struct plan *plan);
void report_failure(const char *text);
