/// The end of a run.
#pragma once

void switch_off(void) __attribute__((noreturn));

/// Say why the run cannot go on (to the console and the launcher) and switch the machine off.
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
