/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of what an import of a Perfetto file loses. */
#include "import/perfetto/perfetto_kinds.h"

#include "base/memory.h"

#define KIND(variable, thing, ...) \
	const struct ts_loss_kind ts_perfetto_loss_##variable = { .what = thing, __VA_ARGS__ }

KIND(ftrace, "ftrace", .one = "ftrace event", .many = "ftrace events");
KIND(no_zlib, "packet", .one = "compressed packet, which a build without zlib cannot read",
     .many = "compressed packets, which a build without zlib cannot read");
KIND(unpack, "packet", .one = "damaged compressed packet", .many = "damaged compressed packets");
KIND(broken, "packet", .one = "damaged packet", .many = "damaged packets");
KIND(state, "packet", .one = "packet whose interned data was lost",
     .many = "packets whose interned data was lost");
KIND(dropped, "packet", .one = "gap where the recorder dropped packets",
     .many = "gaps where the recorder dropped packets");
KIND(many, "argument", .one = "argument beyond the limit of a row",
     .many = "arguments beyond the limit of a row");
KIND(iid, "string", .one = "interned value missing from the file",
     .many = "interned values missing from the file");
KIND(clock, "packet", .one = "packet in a clock without a clock snapshot",
     .many = "packets in a clock without a clock snapshot");
KIND(snapshot, "clock_sync", .one = "clock reading that goes backwards",
     .many = "clock readings that go backwards");
KIND(snapshot_alone, "clock_sync", .one = "clock snapshot without a link to trace time",
     .many = "clock snapshots without a link to trace time");
KIND(time, "packet", .one = "packet with a time beyond 64-bit ns",
     .many = "packets with a time beyond 64-bit ns");
KIND(end, "slice", .one = "slice end without a begin", .many = "slice ends without a begin");
KIND(backwards, "slice", .one = "slice that ends before it starts (kept with duration 0)",
     .many = "slices that end before they start (kept with duration 0)");
KIND(phase, "event", .one = "legacy event of unknown phase",
     .many = "legacy events of unknown phases");
KIND(typed, "argument", .one = "argument of a Chrome-specific type",
     .many = "arguments of Chrome-specific types");
KIND(extension, "argument", .one = "argument in an extension field",
     .many = "arguments in extension fields");
KIND(proto, "argument", .one = "argument that is a program-defined message",
     .many = "arguments that are program-defined messages");
KIND(deep, "argument", .one = "argument nested too deeply", .many = "arguments nested too deeply");
KIND(counter, "counter", .one = "counter event without a value or a track",
     .many = "counter events without a value or a track");
KIND(event, "event", .one = "event without a type", .many = "events without a type");
KIND(skipped, "sample", .one = "sample skipped by the profiler",
     .many = "samples skipped by the profiler");
KIND(kernel, "sample", .one = "record lost by the kernel", .many = "records lost by the kernel");
KIND(row, "row", .one = "invalid row", .many = "invalid rows");
KIND(state_event, "event", .one = "event of a state track", .many = "events of state tracks");

#define PACKETS(name)                                                                        \
	{                                                                                    \
		.what = name, .one = "packet of kind " name, .many = "packets of kind " name \
	}

static const struct {
	uint32_t number;
	struct ts_loss_kind kind;
} packets[] = {
	{ 4, PACKETS("inode_file_map") },
	{ 5, PACKETS("chrome_events") },
	{ 7, PACKETS("sys_stats") },
	{ 33, PACKETS("trace_config") },
	{ 34, PACKETS("ftrace_stats") },
	{ 35, PACKETS("trace_stats") },
	{ 37, PACKETS("profile_packet") },
	{ 38, PACKETS("battery") },
	{ 39, PACKETS("android_log") },
	{ 40, PACKETS("power_rails") },
	{ 45, PACKETS("system_info") },
	{ 46, PACKETS("trigger") },
	{ 47, PACKETS("packages_list") },
	{ 48, PACKETS("chrome_benchmark_metadata") },
	{ 49, PACKETS("perfetto_metatrace") },
	{ 51, PACKETS("chrome_metadata") },
	{ 57, PACKETS("graphics_frame_event") },
	{ 61, PACKETS("module_symbols") },
	{ 62, PACKETS("vulkan_memory_event") },
	{ 63, PACKETS("gpu_log") },
	{ 64, PACKETS("deobfuscation_mapping") },
	{ 65, PACKETS("vulkan_api_event") },
	{ 67, PACKETS("cpu_info") },
	{ 68, PACKETS("smaps_packet") },
	{ 69, PACKETS("service_event") },
	{ 70, PACKETS("initial_display_state") },
	{ 71, PACKETS("gpu_mem_total_event") },
	{ 72, PACKETS("extension_descriptor") },
	{ 73, PACKETS("memory_tracker_snapshot") },
	{ 74, PACKETS("streaming_allocation") },
	{ 75, PACKETS("streaming_free") },
	{ 77, PACKETS("android_energy_estimation_breakdown") },
	{ 78, PACKETS("ui_state") },
	{ 82, PACKETS("translation_table") },
	{ 84, PACKETS("statsd_atom") },
	{ 86, PACKETS("android_system_property") },
	{ 90, PACKETS("track_event_range_of_interest") },
	{ 91, PACKETS("entity_state_residency") },
	{ 95, PACKETS("etw_events") },
	{ 99, PACKETS("v8_js_code") },
	{ 107, PACKETS("remote_clock_sync") },
	{ 117, PACKETS("generic_kernel_task_state_event") },
	{ 118, PACKETS("generic_kernel_cpu_freq_event") },
	{ 129, PACKETS("generic_gpu_frequency_event") },
	{ 132, PACKETS("journald_event") },
	{ 135, PACKETS("stack_sample") },
	{ 900, PACKETS("for_testing") },
};

static const struct ts_loss_kind other = { .what = "packet",
					   .one = "packet of unknown kind",
					   .many = "packets of unknown kinds" };

const struct ts_loss_kind *ts_perfetto_kind(uint32_t number)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(packets); i++)
		if (packets[i].number == number)
			return &packets[i].kind;
	return &other;
}
