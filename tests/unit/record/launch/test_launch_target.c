/* SPDX-License-Identifier: Apache-2.0 */
/* Starting programs: what they inherit, and how failures are reported. */
#include "record/launch/launch_target.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/schema.h>

#include "unit/runner.h"

static char folder[64];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/launch-XXXXXX");
	TS_CHECK(mkdtemp(folder) != NULL);
	TS_CHECK_INT(chdir(folder), 0);
}

static void remove_folder(void)
{
	TS_CHECK_INT(chdir("/"), 0);
	rmdir(folder);
}

/* A library that is harmless when preloaded. */
static const char *stand_in_agent(void)
{
	Dl_info info;

	TS_CHECK(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) != 0);
	return info.dli_fname;
}

static struct ts_launch_options plain(char **argv)
{
	return (struct ts_launch_options){ .argv = argv,
					   .agent = stand_in_agent(),
					   .session = 0xab,
					   .enabled = true,
					   .step_open = TS_ABSENT,
					   .step_close = TS_ABSENT };
}

static int run(const struct ts_launch_options *options)
{
	struct ts_error err;
	pid_t pid;
	int status;

	TS_CHECK_INT(ts_launch_start(options, &pid, &err), TS_OK);
	TS_CHECK_INT(waitpid(pid, &status, 0), pid);
	return status;
}

/* The contents of the file "out", written by a command; removes it. */
static const char *output_of(struct ts_launch_options options, const char *command)
{
	static char text[8192];
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	FILE *file;
	size_t got;

	options.argv = argv;
	TS_CHECK_INT(run(&options), 0);
	file = fopen("out", "r");
	TS_CHECK(file != NULL);
	got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	unlink("out");
	text[got] = '\0';
	return text;
}

TS_TEST(settings_are_one_variable)
{
	struct ts_launch_options options = plain(NULL);
	char text[256];

	ts_launch_format(&options, text, sizeof(text));
	TS_CHECK_STR(text, "session=00000000000000ab;mode=stream;enabled=1");
	options.enabled = false;
	options.step_open = 3;
	options.step_close = 5;
	options.max_steps = 7;
	options.redact = true;
	options.budget = 4096;
	options.backends = "cuda,python";
	ts_launch_format(&options, text, sizeof(text));
	TS_CHECK_STR(text, "session=00000000000000ab;mode=stream;enabled=0;steps=3-5;max_steps=7;"
			   "redact=1;budget=4096;backends=cuda,python");
	options = plain(NULL);
	options.replayable = TS_REPLAY_CHECKED;
	options.from_start = true;
	options.snapshot_limit = 100;
	options.window_timeout_ns = 200;
	ts_launch_format(&options, text, sizeof(text));
	TS_CHECK_STR(text, "session=00000000000000ab;mode=stream;enabled=1;replayable=2;"
			   "from_start=1;snapshot_limit=100;window_timeout=200");
	options.keep_contents = 300;
	ts_launch_format(&options, text, sizeof(text));
	TS_CHECK_STR(text, "session=00000000000000ab;mode=stream;enabled=1;replayable=2;"
			   "from_start=1;snapshot_limit=100;window_timeout=200;keep_contents=300");
}

TS_TEST(program_gets_the_two_variables)
{
	char expected[1024];

	make_folder();
	unsetenv("LD_PRELOAD");
	setenv("KEPT", "yes", 1);
	snprintf(expected, sizeof(expected),
		 "%s|session=00000000000000ab;mode=stream;enabled=1|yes\n", stand_in_agent());
	TS_CHECK_STR(output_of(plain(NULL), "echo \"$LD_PRELOAD|$TRACESMITH_AGENT|$KEPT\" >out"),
		     expected);
	remove_folder();
}

TS_TEST(other_preloads_stay_and_another_agent_goes)
{
	char expected[1024], before[1024];

	make_folder();
	snprintf(before, sizeof(before), "/x/libtracesmith-agent.so:%s", stand_in_agent());
	snprintf(expected, sizeof(expected), "%s:%s\n", stand_in_agent(), stand_in_agent());
	setenv("LD_PRELOAD", before, 1);
	TS_CHECK_STR(output_of(plain(NULL), "echo \"$LD_PRELOAD\" >out"), expected);
	remove_folder();
}

/* With stand-ins for the agent and for the OpenCL library; strips the agent's folder. */
static const char *variables_of(const char *backends, const char *preloads, const char *layers)
{
	struct ts_launch_options options = plain(NULL);
	char agent[128];

	snprintf(agent, sizeof(agent), "%s/libtracesmith-agent.so", folder);
	options.agent = agent;
	options.backends = backends;
	setenv("LD_PRELOAD", preloads, 1);
	if (layers)
		setenv("OPENCL_LAYERS", layers, 1);
	else
		unsetenv("OPENCL_LAYERS");
	return output_of(options,
			 "echo \"$LD_PRELOAD|${OPENCL_LAYERS-none}\" | sed \"s#$PWD#.#g\" >out");
}

TS_TEST(opencl_is_entered_by_layer_and_by_name)
{
	char tool_folder[256], expected[512];

	make_folder();
	TS_CHECK_INT(symlink(stand_in_agent(), "libtracesmith-agent.so"), 0);
	snprintf(tool_folder, sizeof(tool_folder), "%s", stand_in_agent());
	TS_CHECK_STR(variables_of("host,opencl", "", NULL),
		     "./libtracesmith-agent.so|./libtracesmith-agent.so\n");
	TS_CHECK_INT(symlink(stand_in_agent(), "libtracesmith-opencl.so"), 0);
	TS_CHECK_STR(
		variables_of("opencl", "", ""),
		"./libtracesmith-agent.so:./libtracesmith-opencl.so|./libtracesmith-agent.so\n");
	/* The program's own entries stay; those of an outer recording are removed. */
	snprintf(
		expected, sizeof(expected),
		"./libtracesmith-agent.so:./libtracesmith-opencl.so:%s|./libtracesmith-agent.so:/x/other.so:relative.so\n",
		tool_folder);
	snprintf(tool_folder, sizeof(tool_folder),
		 "/y/libtracesmith-agent.so %s /y/libtracesmith-opencl.so", stand_in_agent());
	TS_CHECK_STR(variables_of("a,opencl,b", tool_folder,
				  "/y/libtracesmith-agent.so:/x/other.so:relative.so"),
		     expected);
	/* Not requested: only the agent is added. */
	TS_CHECK_STR(variables_of("openclx", "", NULL), "./libtracesmith-agent.so|none\n");
	TS_CHECK_STR(variables_of(NULL, "", "/y/libtracesmith-agent.so"),
		     "./libtracesmith-agent.so|none\n");
	TS_CHECK_STR(variables_of(NULL, "", "/y/libtracesmith-agent.so:/x/other.so"),
		     "./libtracesmith-agent.so|/x/other.so\n");
	unlink("libtracesmith-agent.so");
	unlink("libtracesmith-opencl.so");
	remove_folder();
}

/* The same for CUDA, with the library that NVTX loads. */
static const char *cuda_variables_of(const char *backends, const char *preloads,
				     const char *injection)
{
	struct ts_launch_options options = plain(NULL);
	char agent[128];

	snprintf(agent, sizeof(agent), "%s/libtracesmith-agent.so", folder);
	options.agent = agent;
	options.backends = backends;
	setenv("LD_PRELOAD", preloads, 1);
	if (injection)
		setenv("NVTX_INJECTION64_PATH", injection, 1);
	else
		unsetenv("NVTX_INJECTION64_PATH");
	return output_of(
		options,
		"echo \"$LD_PRELOAD|${NVTX_INJECTION64_PATH-none}\" | sed \"s#$PWD#.#g\" >out");
}

TS_TEST(cuda_is_entered_by_name_and_nvtx_finds_it)
{
	const char *both =
		"./libtracesmith-agent.so:./libtracesmith-backend-cuda.so|./libtracesmith-backend-cuda.so\n";

	make_folder();
	TS_CHECK_INT(symlink(stand_in_agent(), "libtracesmith-agent.so"), 0);
	/* Built without it: no variable names a missing file. */
	TS_CHECK_STR(cuda_variables_of("cuda", "", NULL), "./libtracesmith-agent.so|none\n");
	TS_CHECK_INT(symlink(stand_in_agent(), "libtracesmith-backend-cuda.so"), 0);
	TS_CHECK_STR(cuda_variables_of("cuda", "", NULL), both);
	TS_CHECK_STR(cuda_variables_of("host,cuda", "", ""), both);
	/* Those of an outer recording are removed; the user's choice stays. */
	TS_CHECK_STR(cuda_variables_of("cuda", "/y/libtracesmith-backend-cuda.so",
				       "/y/libtracesmith-backend-cuda.so"),
		     both);
	TS_CHECK_STR(cuda_variables_of("cuda", "", "/x/other.so"),
		     "./libtracesmith-agent.so:./libtracesmith-backend-cuda.so|/x/other.so\n");
	TS_CHECK_STR(cuda_variables_of("cudax", "", NULL), "./libtracesmith-agent.so|none\n");
	TS_CHECK_STR(cuda_variables_of("host", "", "/y/libtracesmith-backend-cuda.so"),
		     "./libtracesmith-agent.so|none\n");
	TS_CHECK_STR(cuda_variables_of("host", "", "/x/other.so"),
		     "./libtracesmith-agent.so|/x/other.so\n");
	unlink("libtracesmith-agent.so");
	unlink("libtracesmith-backend-cuda.so");
	remove_folder();
}

TS_TEST(signals_are_those_of_the_caller)
{
	struct ts_launch_options options = plain(NULL);
	sigset_t ours, callers, ignored;
	const char *text;

	make_folder();
	/* A shell that runs the tests in the background ignores some. */
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&callers);
	sigaddset(&callers, SIGUSR2);
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGHUP);
	sigfillset(&ours);
	sigprocmask(SIG_SETMASK, &ours, NULL);
	options.signal_mask = &callers;
	options.signals_ignored = &ignored;
	text = output_of(options, "exec grep -E 'SigBlk|SigIgn' /proc/self/status >out");
	/* SIGUSR2 is 12, SIGHUP is 1. */
	TS_CHECK(strstr(text, "SigBlk:\t0000000000000800") != NULL);
	text = strstr(text, "SigIgn:\t");
	/* 32 and 33 belong to the C library, which lets nobody change them. */
	TS_CHECK(text && (strtoull(text + 8, NULL, 16) & ~UINT64_C(0x180000000)) == 1);
	remove_folder();
}

TS_TEST(exit_status_is_the_programs)
{
	char *exits[] = { (char *)"sh", (char *)"-c", (char *)"exit 7", NULL };
	char *dies[] = { (char *)"sh", (char *)"-c", (char *)"kill -9 $$", NULL };
	struct ts_launch_options options = plain(exits);

	TS_CHECK_INT(WEXITSTATUS(run(&options)), 7);
	options.argv = dies;
	TS_CHECK_INT(WTERMSIG(run(&options)), SIGKILL);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	TS_CHECK(fd >= 0);
	TS_CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	TS_CHECK_INT(fchmod(fd, mode), 0);
	close(fd);
}

static int start_code(const char *program, char message[TS_ERROR_MESSAGE_BYTES])
{
	char *argv[] = { (char *)program, NULL };
	struct ts_launch_options options = plain(argv);
	struct ts_error err;
	pid_t pid = 0;
	int code = ts_launch_start(&options, &pid, &err);

	TS_CHECK_INT(pid, 0);
	snprintf(message, TS_ERROR_MESSAGE_BYTES, "%s", err.message);
	return code;
}

TS_TEST(failures_are_told_as_by_a_shell)
{
	char message[TS_ERROR_MESSAGE_BYTES];

	make_folder();
	write_file("plain", "text", 0600);
	write_file("orphan", "#!/no/such/interpreter\n", 0700);
	TS_CHECK_INT(start_code("no-such-program", message), TS_ENOTFOUND);
	TS_CHECK_STR(message, "cannot start 'no-such-program': no such program");
	TS_CHECK_INT(start_code("./no-such-file", message), TS_ENOTFOUND);
	TS_CHECK_INT(start_code("./plain", message), TS_EIO);
	TS_CHECK_STR(message, "cannot start './plain': Permission denied");
	TS_CHECK_INT(start_code("./orphan", message), TS_EIO);
	TS_CHECK(strstr(message, "interpreter") != NULL);
	TS_CHECK_INT(ts_launch_check("no-such-program", NULL), TS_ENOTFOUND);
	TS_CHECK_INT(ts_launch_check("./plain", NULL), TS_EIO);
	TS_CHECK_INT(ts_launch_check("/", NULL), TS_EIO);
	TS_CHECK_INT(ts_launch_check("", NULL), TS_ENOTFOUND);
	TS_CHECK_INT(ts_launch_check("sh", NULL), TS_OK);
	/* No zombie remains. */
	TS_CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
	unlink("plain");
	unlink("orphan");
	remove_folder();
}

/* Like execvp(), runs a file without a magic number with the shell. */
TS_TEST(script_without_a_first_line_is_run)
{
	char *argv[] = { (char *)"./script", NULL };
	struct ts_launch_options options = plain(argv);

	make_folder();
	write_file("script", "exit 5\n", 0700);
	TS_CHECK_INT(WEXITSTATUS(run(&options)), 5);
	unlink("script");
	remove_folder();
}
