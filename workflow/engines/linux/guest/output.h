/// Files in the launcher's folder, all that the guest sees of the host.
#pragma once

#include <stdio.h>

/// Open a new file; NULL if it cannot be made. The first call makes the host visible: too late to
/// matter, if all is measured or the run has failed.
FILE *create(const char *name);

/// Write the reason to the console and into the file `failure`.
void report_failure(const char *text);
