#include "fail.h"

#include "output.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <unistd.h>

void switch_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

void die(const char *format, ...)
{
	char text[400];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	report_failure(text);
	switch_off();
}
