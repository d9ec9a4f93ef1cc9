/* Linked into the guest of the linux engine when its lines are counted (executed_lines.py): writes
 * the counters of gcov to COUNTERS, a folder of the host, before the machine is switched off. */
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel's root of the host is the folder of the run. */
#define HOST_ROOT "../../../../../../../../../../../../../../../.."

void __gcov_dump(void);
int __real_reboot(int how);
int __wrap_reboot(int how);

int __wrap_reboot(int how)
{
	mkdir("/counters", 0755);
	if (!mount("none", "/counters", "hostfs", 0, HOST_ROOT COUNTERS)) {
		setenv("GCOV_PREFIX", "/counters", 1);
		setenv("GCOV_PREFIX_STRIP", "99", 1);
		__gcov_dump();
		sync();
	}
	return __real_reboot(how);
}
