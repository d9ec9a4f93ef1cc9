/// A plain Linux experiment: `ip` and `tc` as typed by hand, and a sender and a receiver as iperf's.
///
/// The first process of a machine with nothing in it but this program, iproute2 and /input, which is
/// the list of commands, a line each, done one after the other:
///   ip ..., tc ...                   iproute2; what it prints goes to the results
///   write NODE FILE TEXT             sysctl -w, within a node
///   show NODE FILE                   sysctl, within a node
///   receive NODE PORT                accept one connection and read it to its end
///   send NODE ADDRESS PORT CONTROL START_NS
///                                    connect at that time of the monotonic clock and write for ever
///   watch FIRST_NS INTERVAL_NS       from now on, connections say how they are at these times
///   until NS                         wait for that time
///   end                              kill all, switch off
/// A socket is as the kernel makes it, but for its congestion control.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long first_ns, interval_ns;
static char buffer[1 << 17];

static void need(int good, const char *what)
{
	if (good)
		return;
	printf("failed %s: %m\nend\n", what);
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
}

static void sleep_until(long ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void enter(const char *node)
{
	char path[64];

	snprintf(path, sizeof(path), "/run/netns/%s", node);
	need(!setns(open(path, O_RDONLY), CLONE_NEWNET), node);
}

/// Print a connection's state at each sampling time, in a separate process.
static void watch(int socket, const char *role, const char *port)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	if (fork())
		return;
	for (long k = 0;; k++) {
		sleep_until(first_ns + k * interval_ns);
		memset(&info, 0, sizeof(info));
		getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size);
		printf("%s %s %ld %u %u %u %llu %u %u\n", role, port, k, info.tcpi_snd_cwnd, info.tcpi_snd_ssthresh,
		       info.tcpi_total_retrans, (unsigned long long)info.tcpi_bytes_received,
		       info.tcpi_segs_in, info.tcpi_data_segs_out);
		fflush(stdout);
	}
}

static void receive(const char *node, const char *port)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	int listener, connection;

	if (fork())
		return;
	enter(node);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	need(!bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
	need(!listen(listener, 1), "listen");
	connection = accept(listener, NULL, NULL);
	watch(connection, "receiver", port);
	while (read(connection, buffer, sizeof(buffer)) > 0)
		;
	_exit(0);
}

static void send_to(const char *node, const char *address, const char *port, const char *control,
		    const char *start_ns)
{
	struct sockaddr_in there = {.sin_family = AF_INET,
				    .sin_port = htons(atoi(port)),
				    .sin_addr.s_addr = inet_addr(address)};
	int connection;

	if (fork())
		return;
	enter(node);
	connection = socket(AF_INET, SOCK_STREAM, 0);
	need(!setsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, control, strlen(control)), control);
	sleep_until(atol(start_ns));
	need(!connect(connection, (struct sockaddr *)&there, sizeof(there)), "connect");
	watch(connection, "sender", port);
	while (write(connection, buffer, sizeof(buffer)) > 0)
		;
	_exit(0);
}

/// iproute2 came with its libraries and its loader, all in one folder.
static void run(char **words, const char *program)
{
	char *all[64] = {"/ld.so", "--library-path", "/"};
	int status, count = 3;

	all[count++] = (char *)program;
	for (words++; *words && count < 63; words++)
		all[count++] = *words;
	if (!fork()) {
		execv(all[0], all);
		_exit(1);
	}
	wait(&status);
	need(status == 0, all[4]);
}

static void file(char **w, const char *text)
{
	int there;

	if (!fork()) {
		there = open(w[2], O_RDONLY); /* some there is only one of */
		enter(w[1]);
		if (access(w[2], F_OK) == 0)
			there = open(w[2], text ? O_WRONLY : O_RDONLY);
		if (text)
			need(write(there, text, strlen(text)) > 0, w[2]);
		else {
			buffer[read(there, buffer, sizeof(buffer) - 1)] = 0;
			printf("shown %s %s", w[2], buffer);
			fflush(stdout);
		}
		_exit(0); /* exit would put back the commands read ahead */
	}
	wait(NULL);
}

static const char *join(char **words)
{
	static char text[256];

	text[0] = 0;
	for (; *words; words++) {
		strcat(text, *words);
		strcat(text, " ");
	}
	return text;
}

static void command(char **w)
{
	if (!strcmp(w[0], "ip") || !strcmp(w[0], "tc"))
		run(w, w[0][0] == 'i' ? "/ip" : "/tc");
	else if (!strcmp(w[0], "write"))
		file(w, join(w + 3));
	else if (!strcmp(w[0], "show"))
		file(w, NULL);
	else if (!strcmp(w[0], "receive"))
		receive(w[1], w[2]);
	else if (!strcmp(w[0], "send"))
		send_to(w[1], w[2], w[3], w[4], w[5]);
	else if (!strcmp(w[0], "watch")) {
		first_ns = atol(w[1]);
		interval_ns = atol(w[2]);
	} else if (!strcmp(w[0], "until"))
		sleep_until(atol(w[1]));
	else
		need(0, w[0]);
}

int main(void)
{
	char line[512];
	FILE *input = fopen("/input", "re");

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/out", 0755);
	mkdir("/run", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("none", "/out", "hostfs", 0, NULL);
	freopen("/out/results", "a", stdout);
	dup2(fileno(stdout), 2);
	while (fgets(line, sizeof(line), input)) {
		char *words[64] = {0}, *rest = line;
		int count = 0;

		while (count < 63 && (words[count] = strsep(&rest, " \n")))
			count += *words[count] != 0;
		words[count] = NULL;
		fflush(stdout);
		if (count && strcmp(words[0], "end"))
			command(words);
	}
	kill(-1, SIGKILL);
	printf("end\n");
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
}
