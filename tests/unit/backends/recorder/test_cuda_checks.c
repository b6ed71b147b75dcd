/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreting errors and settings of CUDA drivers on machines that are not at hand. */
#include "backends/recorder/cuda_checks.h"

#include <string.h>

#include "base/finding.h"
#include "unit/runner.h"

#define BIT(capability) (UINT64_C(1) << (capability))

/* An ordinary user on an ordinary machine. */
static struct ts_machine user(void)
{
	return (struct ts_machine){ .uid = 1000 };
}

static void expect(const struct ts_finding *finding, enum ts_check_state state, const char *text,
		   const char *fix)
{
	if (finding->state != state)
		ts_test_fail(__FILE__, __LINE__, "%s: '%s'", ts_check_state_name(finding->state),
			     finding->text);
	if (!strstr(finding->text, text))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", finding->text, text);
	if (fix ? !strstr(finding->fix, fix) : finding->fix[0] != '\0')
		ts_test_fail(__FILE__, __LINE__, "'%s' is not '%s'", finding->fix, fix ? fix : "");
}

TS_TEST(cuda_codes)
{
	static const struct {
		int code;
		enum ts_check_state state;
		const char *text, *fix;
	} cases[] = {
		{ 34, TS_CHECK_NO, "stub", "grep -v /stubs" },
		{ 100, TS_CHECK_NO, "sees no GPU", "unset CUDA_VISIBLE_DEVICES" },
		{ 802, TS_CHECK_NO, "Fabric Manager", "systemctl start nvidia-fabricmanager" },
		{ 803, TS_CHECK_NO, "differ", "reboot" },
		{ 804, TS_CHECK_NO, "compat", "grep -v /compat" },
		{ 807, TS_CHECK_NO, "MPS", NULL },
		{ 999, TS_CHECK_NO, "nvidia_uvm", "nvidia-modprobe -u" },
		{ 4711, TS_CHECK_UNKNOWN, "4711", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ts_finding finding = { 0 };

		ts_classify_cuda(cases[i].code, &finding);
		expect(&finding, cases[i].state, cases[i].text, cases[i].fix);
	}
}

static struct ts_finding counters(struct ts_machine machine, int admin_only, unsigned int driver)
{
	struct ts_finding finding = { 0 };

	ts_classify_gpu_counters(&machine, admin_only, driver, &finding);
	return finding;
}

TS_TEST(counters_by_right)
{
	struct ts_machine machine = user();
	struct ts_finding finding = counters(machine, 0, 580);

	expect(&finding, TS_CHECK_YES, "all users", NULL);
	finding = counters(machine, 1, 580);
	expect(&finding, TS_CHECK_NO, "only for administrators",
	       "options nvidia NVreg_RestrictProfilingToAdminUsers=0");
	TS_CHECK(strstr(finding.note, "lets every user") != NULL);
	machine.capabilities = BIT(TS_CAP_PERFMON);
	finding = counters(machine, 1, 580);
	expect(&finding, TS_CHECK_YES, "CAP_PERFMON", NULL);
	/* Drivers before 565 require more. */
	finding = counters(machine, 1, 550);
	expect(&finding, TS_CHECK_NO, "only for administrators", "update-initramfs");
	machine.capabilities = BIT(TS_CAP_SYS_ADMIN);
	finding = counters(machine, 1, 550);
	expect(&finding, TS_CHECK_YES, "CAP_SYS_ADMIN", NULL);
	machine = user();
	machine.container = TS_CONTAINER_DOCKER;
	finding = counters(machine, 1, 580);
	expect(&finding, TS_CHECK_NO, "only for administrators", "--cap-add PERFMON");
	finding = counters(machine, 1, 550);
	expect(&finding, TS_CHECK_NO, "only for administrators", "--cap-add SYS_ADMIN");
	TS_CHECK(strstr(finding.note, "trusted images only") != NULL);
	finding = counters(machine, TS_SETTING_NONE, 0);
	expect(&finding, TS_CHECK_UNKNOWN, "does not report it", NULL);
}
