#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""perfetto_export.py BUILD [ROWS]: measures the export to Perfetto protobuf in rows per second, to
/dev/null and to a file. Peers: our Chrome export, and trace_builder of the Python package perfetto
(scripts/perfetto-peer), which writes begin and end of a sample of the spans, without arguments.

Prints one JSON line each: rows per second of wall time and of CPU time.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

PEER = """
import sys, time
from perfetto.trace_builder.proto_builder import TraceProtoBuilder
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
spans = int(sys.argv[1])
began, cpu = time.perf_counter(), time.process_time()
builder = TraceProtoBuilder()
packet = builder.add_packet()
packet.track_descriptor.uuid = 1
packet.track_descriptor.name = "thread"
for i in range(spans):
    for kind, at in ((TrackEvent.TYPE_SLICE_BEGIN, i * 10), (TrackEvent.TYPE_SLICE_END, i * 10 + 5)):
        packet = builder.add_packet()
        packet.timestamp = at
        packet.trusted_packet_sequence_id = 1
        packet.track_event.type = kind
        packet.track_event.track_uuid = 1
        if kind == TrackEvent.TYPE_SLICE_BEGIN:
            packet.track_event.name = "operator"
open(sys.argv[2], "wb").write(builder.serialize())
print(time.perf_counter() - began, time.process_time() - cpu)
"""


def say(name, rows, wall, cpu):
    print(json.dumps({"bench": name, "rows": rows, "rows_per_second": round(rows / wall), "rows_per_cpu_second": round(rows / cpu)}), flush=True)


def measure(name, rows, *command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    say(name, rows, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main():
    build, rows = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000
    tool = os.path.join(build, "tracesmith")
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory() as folder:
        trace, out = os.path.join(folder, "t.sbt"), os.path.join(folder, "out")
        subprocess.run([os.path.join(build, "bench", "write"), trace, "--rows", str(rows)], check=True, stdout=subprocess.DEVNULL)
        measure("perfetto to nowhere", rows, tool, "export", trace, "-f", "perfetto", "-o", "/dev/null")
        measure("perfetto to a file", rows, tool, "export", trace, "-f", "perfetto", "-o", out)
        measure("chrome to nowhere", rows, tool, "export", trace, "-f", "chrome", "-o", "/dev/null")
        peer = subprocess.run([os.path.join(source, "scripts", "perfetto-peer"), build], capture_output=True, text=True, check=False)
        if peer.returncode:
            print(peer.stdout.strip())
            return 0
        spans = max(1, rows // 50)
        done = subprocess.run([peer.stdout.strip(), "-c", PEER, str(spans), out], capture_output=True, text=True, check=True)
        say("trace_builder", spans, *map(float, done.stdout.split()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
