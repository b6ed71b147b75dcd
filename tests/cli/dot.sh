# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests of graphs: a trace with all common kinds of dependencies, and a small Graphviz parser.

# Two streams; the second waits for an event of the first; the host waits for it; a blocking copy; a
# name that must be escaped.
dependencies_json() {
	cat <<'JSON'
{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU \"X\""}], "traceEvents": [
 {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main \\ \"thread\""}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 10, "dur": 2, "args": {"correlation": 1}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 13, "dur": 2, "args": {"correlation": 2}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaEventRecord", "pid": 1, "tid": 2, "ts": 16, "dur": 1, "args": {"correlation": 3}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 1, "tid": 2, "ts": 18, "dur": 1, "args": {"correlation": 4}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 20, "dur": 2, "args": {"correlation": 5}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 1, "tid": 2, "ts": 23, "dur": 60, "args": {"correlation": 6}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpy", "pid": 1, "tid": 2, "ts": 84, "dur": 12, "args": {"correlation": 7}},
 {"ph": "X", "cat": "kernel", "name": "void at::native::gemm<float, at::detail::Array<char*, 3>, 4>(int, float const*, at::detail::Array<char*, 3>)", "pid": 0, "tid": 7, "ts": 15, "dur": 20,
  "args": {"device": 0, "context": 1, "stream": 7, "correlation": 1}},
 {"ph": "X", "cat": "kernel", "name": "odd \"name\" \\ {x|y}", "pid": 0, "tid": 7, "ts": 36, "dur": 20, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 2}},
 {"ph": "X", "cat": "kernel", "name": "third", "pid": 0, "tid": 20, "ts": 58, "dur": 20, "args": {"device": 0, "context": 1, "stream": 20, "correlation": 5}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)", "pid": 0, "tid": 7, "ts": 88, "dur": 6,
  "args": {"device": 0, "context": 1, "stream": 7, "correlation": 7, "bytes": 64}},
 {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 20, "ts": 18, "dur": 0,
  "args": {"device": 0, "context": 1, "stream": 20, "correlation": 4, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 3, "wait_on_cuda_event_id": 1}},
 {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 20, "ts": 23, "dur": 60,
  "args": {"device": 0, "context": 1, "stream": 20, "correlation": 6}}
]}
JSON
}

# check_dot FILE: braces and quotes are balanced, statements are valid, every edge joins existing
# nodes. Prints counts.
check_dot() {
	python3 - "$1" <<'PY'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
token = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|->|[A-Za-z_][A-Za-z_0-9]*|-?[0-9.]+|[{}\[\];,=]', re.S)
tokens, at = [], 0
while at < len(text):
    match = token.match(text, at)
    assert match, text[at:at + 40]
    if not match[0].isspace():
        tokens.append(match[0])
    at = match.end()
place = 0
def take(expected=None):
    global place
    word = tokens[place]
    assert expected is None or word == expected, (word, expected)
    place += 1
    return word
def attributes():
    found = {}
    take("[")
    while tokens[place] != "]":
        key = take()
        take("=")
        found[key] = take()
        if tokens[place] == ",":
            take()
    take("]")
    return found
nodes, edges, clusters = {}, [], []
def statements():
    take("{")
    while tokens[place] != "}":
        word = take()
        if word == "subgraph":
            clusters.append(take())
            statements()
            continue
        if word in ("node", "edge"):
            attributes()
        elif tokens[place] == "=":
            take()
            take()
        elif tokens[place] == "->":
            take()
            edges.append((word, take(), attributes()))
        else:
            nodes[word] = attributes()
        take(";")
    take("}")
take("digraph")
take()
statements()
assert place == len(tokens)
for source, target, _ in edges:
    assert source.startswith('"legend') or (source in nodes and target in nodes), (source, target)
assert len(set(clusters)) == len(clusters)
print(f"{len(nodes)} nodes, {sum(not edge[0].startswith(chr(34) + 'legend') for edge in edges)} edges, {len(clusters)} clusters")
PY
}
