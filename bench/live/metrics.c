/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics host [--threads N]: measures the CPU time of one sample of the machine and of one
 * process. Peer: opens, reads and closes the same files without parsing them. Runs in a tight loop,
 * and with a sleep before each sample, as in real use, when caches are cold. metrics nvml: the same
 * for one sample of all GPUs, and the share of one GPU. Prints one JSON line. Uses private headers.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sample/metrics/host/host_metrics.h"
#include "sample/metrics/metric_sources.h"

#define TIGHT 2000
#define PACED 300
#define PAUSE_NS 20000000L
#define INTERVAL_NS INT64_C(100000000)

static void die(const char *message)
{
	fprintf(stderr, "metrics: %s\n", message);
	exit(1);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- a sink that counts ---- */

struct sums {
	uint64_t values, devices;
};

static void on_device(void *context, const struct ts_metrics_device *device)
{
	(void)device;
	((struct sums *)context)->devices++;
}

static void on_real(void *context, const struct ts_metrics_subject *subject, const char *name,
		    const char *series, double value)
{
	(void)subject, (void)name, (void)series, (void)value;
	((struct sums *)context)->values++;
}

static void on_integer(void *context, const struct ts_metrics_subject *subject, const char *name,
		       const char *series, int64_t value)
{
	(void)subject, (void)name, (void)series, (void)value;
	((struct sums *)context)->values++;
}

static void on_message(void *context, const char *text)
{
	(void)context, (void)text;
}

static struct ts_metrics_sink sink_of(struct sums *sums)
{
	return (struct ts_metrics_sink){
		.size = sizeof(struct ts_metrics_sink),
		.context = sums,
		.device = on_device,
		.real = on_real,
		.integer = on_integer,
		.message = on_message,
	};
}

/* ---- process to sample ---- */

static void *sleep_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static pid_t start_target(long threads)
{
	pid_t pid = fork();

	if (pid < 0)
		die("cannot start a process");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (long i = 1; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, sleep_for_ever, NULL))
			_exit(1);
	}
	sleep_for_ever(NULL);
	_exit(0);
}

/* ---- sampler and peer ---- */

struct host {
	struct ts_system_metrics *system;
	struct ts_process_metrics *process;
	struct sums sums;
	pid_t pid;
	int64_t now_ns; /* advances by 100 ms per sample, so that values read once a second count a
			   tenth */
};

static void take_ours(struct host *host)
{
	struct ts_metrics_sink sink = sink_of(&host->sums);

	host->now_ns += INTERVAL_NS;
	ts_system_metrics_sample(host->system, host->now_ns, &sink);
	if (!ts_process_metrics_sample(host->process, host->now_ns, &sink))
		die("the process has ended");
}

static void read_file(struct host *host, const char *path)
{
	static char buffer[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (read(fd, buffer, sizeof(buffer)) > 0)
		host->sums.values += (uint64_t)buffer[0] & 1;
	close(fd);
}

static void take_peer(struct host *host)
{
	static const char *const of_machine[] = { "stat",       "meminfo",      "net/dev",
						  "diskstats",  "pressure/cpu", "pressure/memory",
						  "pressure/io" };
	static const char *const of_process[] = { "stat", "statm", "io", "status" };
	char path[64];

	for (size_t i = 0; i < sizeof(of_machine) / sizeof(of_machine[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%s", of_machine[i]);
		read_file(host, path);
	}
	for (size_t i = 0; i < sizeof(of_process) / sizeof(of_process[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)host->pid, of_process[i]);
		read_file(host, path);
	}
}

static double cost_of(void (*take)(struct host *host), struct host *host)
{
	int64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	take(host);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1000;
}

static double ours_us[2], peer_us[2];

static void measure_rounds(struct host *host, int rounds, int paced)
{
	const struct timespec pause_time = { 0, PAUSE_NS };

	for (int i = 0; i < rounds; i++) {
		if (paced)
			nanosleep(&pause_time, NULL);
		ours_us[paced] += cost_of(take_ours, host) / rounds;
		if (paced)
			nanosleep(&pause_time, NULL);
		peer_us[paced] += cost_of(take_peer, host) / rounds;
	}
}

static void measure_host(long threads)
{
	struct host host = { .now_ns = clock_ns(CLOCK_MONOTONIC) };
	struct ts_error err;
	uint64_t values;

	host.pid = start_target(threads);
	usleep(200000);
	if (ts_system_metrics_open(&host.system, &err) ||
	    ts_process_metrics_open(&host.process, host.pid, 0, &err))
		die(err.message);
	take_ours(&host);
	host.sums = (struct sums){ 0 };
	for (int i = 0; i < 10; i++)
		take_ours(&host);
	values = host.sums.values;
	measure_rounds(&host, TIGHT, 0);
	measure_rounds(&host, PACED, 1);
	ts_process_metrics_close(host.process);
	ts_system_metrics_close(host.system);
	kill(host.pid, SIGKILL);
	waitpid(host.pid, NULL, 0);
	printf("{\"values_a_sample\": %.1f, \"tight_us\": %.2f, \"tight_peer_us\": %.2f, \"paced_us\": %.2f, "
	       "\"paced_peer_us\": %.2f}\n",
	       (double)values / 10, ours_us[0], peer_us[0], ours_us[1], peer_us[1]);
}

/* ---- GPUs ---- */

static void measure_nvml(void)
{
	const struct timespec interval = { 0, INTERVAL_NS };
	enum { SAMPLES = 100 };
	char why[256] = "no NVIDIA GPU here";
	struct sums sums = { 0 };
	struct ts_metrics_sink sink = sink_of(&sums);
	int64_t cpu, wall = 0;
	uint64_t devices;
	void *state = NULL;

	if (ts_metrics_nvml.open(&state, why, sizeof(why)) != TS_METRICS_READY) {
		printf("{\"devices\": 0, \"why\": \"%s\"}\n", why);
		return;
	}
	if (ts_metrics_nvml.sample(state, &sink) || !sums.devices)
		die("the first sample gives nothing");
	devices = sums.devices;
	sums.values = 0;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < SAMPLES; i++) {
		int64_t start;

		nanosleep(&interval, NULL);
		start = clock_ns(CLOCK_MONOTONIC);
		if (ts_metrics_nvml.sample(state, &sink))
			die("nothing can be read any more");
		wall += clock_ns(CLOCK_MONOTONIC) - start;
	}
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	ts_metrics_nvml.close(state);
	printf("{\"devices\": %llu, \"values_a_sample\": %.1f, \"cpu_us\": %.2f, \"wall_us\": %.2f}\n",
	       (unsigned long long)devices, (double)sums.values / SAMPLES,
	       (double)cpu / SAMPLES / 1000, (double)wall / SAMPLES / 1000);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "nvml"))
		measure_nvml();
	else if (argc == 2 && !strcmp(argv[1], "host"))
		measure_host(16);
	else if (argc == 4 && !strcmp(argv[1], "host") && !strcmp(argv[2], "--threads"))
		measure_host(strtol(argv[3], NULL, 10));
	else
		die("usage: metrics host [--threads N] | metrics nvml");
	return 0;
}
