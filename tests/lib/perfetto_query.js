// SPDX-License-Identifier: Apache-2.0
//
// node perfetto_query.js UI TRACE <<<'["select ...", ...]'
//
// Loads a trace into the real trace_processor of the Perfetto UI (its WebAssembly build, as the folder UI of a built UI has it: engine_bundle.js and
// trace_processor.wasm) and answers SQL. Prints a JSON list: one result a query, {"columns": [...], "rows": [[...], ...]} or {"error": "..."}.
// The bundle is meant for a web worker: what it expects of one is put in its way here.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.TraceProcessorMethod
const CHUNK_BYTES = 8 << 20;

// ---- protocol buffers ----

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

function field(number, content) {
  if (!Buffer.isBuffer(content)) return Buffer.concat([varint(number << 3), varint(content)]);
  return Buffer.concat([varint((number << 3) | 2), varint(content.length), content]);
}

function* fields(bytes) {
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(next());
    const number = tag >> 3;
    if ((tag & 7) === 0) yield [number, next()];
    else if ((tag & 7) === 1) { yield [number, bytes.subarray(at, at + 8)]; at += 8; }
    else if ((tag & 7) === 2) { const length = Number(next()); yield [number, bytes.subarray(at, at + length)]; at += length; }
    else throw new Error(`wire type ${tag & 7}`);
  }
}

function* packed(bytes) {
  let value = 0n, shift = 0n;
  for (const byte of bytes) {
    value |= BigInt(byte & 0x7f) << shift;
    shift += 7n;
    if (byte < 0x80) { yield BigInt.asIntN(64, value); value = 0n; shift = 0n; }
  }
}

// QueryResult.CellsBatch: types of the cells in order, values by type.
function cellsOf(batch) {
  let types = [], integers = [], doubles = [], strings = [], blobs = [], isLast = false;
  for (const [number, value] of fields(batch)) {
    if (number === 1) types = types.concat([...packed(value)].map(Number));
    else if (number === 2) integers = integers.concat([...packed(value)]);
    else if (number === 3) for (let i = 0; i + 8 <= value.length; i += 8) doubles.push(value.readDoubleLE(i));
    else if (number === 4) blobs.push(value.toString('hex'));
    else if (number === 5) { const texts = value.toString('utf8').split('\0'); texts.pop(); strings = texts; }
    else if (number === 6) isLast = value !== 0n;
  }
  const integer = (value) => (value >= -(2n ** 53n) && value <= 2n ** 53n ? Number(value) : value.toString());
  const cells = types.map((type) => type === 1 ? null : type === 2 ? integer(integers.shift()) :
    type === 3 ? doubles.shift() : type === 4 ? strings.shift() : blobs.shift());
  return { cells, isLast };
}

// ---- the engine ----

async function startEngine(ui) {
  let onReply = null;
  const port = { postMessage: (bytes) => onReply(Buffer.from(bytes)) };
  const wasm = (name) => fs.readFileSync(path.join(ui, path.basename(name)));
  class FileRequest {
    open(method, url) { this.url = url; }
    send() { const bytes = wasm(this.url); this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length); }
  }
  const quiet = () => {};
  const worker = {
    console: { ...console, log: quiet, warn: process.env.PERFETTO_STDERR ? console.warn : quiet },
    XMLHttpRequest: FileRequest, TextDecoder, TextEncoder, URL, WebAssembly, Uint8Array, Error, TypeError, RangeError, performance, crypto: globalThis.crypto,
    setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask,
    fetch: async (url) => ({ ok: true, status: 200, arrayBuffer: async () => { const r = new FileRequest(); r.open('GET', String(url)); r.send(); return r.response; } }),
    location: { href: 'http://localhost/engine_bundle.js' }, importScripts: quiet,
  };
  worker.self = worker;
  worker.globalThis = worker;
  worker.WorkerGlobalScope = function WorkerGlobalScope() {};
  vm.createContext(worker);
  vm.runInContext(fs.readFileSync(path.join(ui, 'engine_bundle.js'), 'utf8'), worker, { filename: 'engine_bundle.js' });
  worker.onmessage({ data: port });
  // It compiles itself in the background and takes requests then.
  for (let i = 0; i < 600; i++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    try {
      const replies = [];
      onReply = (bytes) => replies.push(bytes);
      port.onmessage({ data: request(QUERY, field(103, field(1, Buffer.from('select 1')))) });
      if (replies.length) break;
    } catch (error) {
      if (i === 599 || /crashed/.test(String(error))) throw error;
    }
  }
  return (bytes) => {
    const replies = [];
    onReply = (reply) => replies.push(reply);
    port.onmessage({ data: bytes });
    return replies;
  };
}

let sequence = 1n;

function request(method, content) {
  return new Uint8Array(field(1, Buffer.concat([field(1, sequence++), field(2, method), content || Buffer.alloc(0)])));
}

function query(call, sql) {
  const columns = [], rows = [];
  let cells = [], error = null;
  for (const reply of call(request(QUERY, field(103, field(1, Buffer.from(sql))))))
    for (const [, message] of fields(reply))
      for (const [number, result] of fields(message)) {
        if (number === 5) error = result.toString();
        if (number !== 203) continue;
        for (const [part, value] of fields(result)) {
          if (part === 1) columns.push(value.toString());
          if (part === 2) error = value.toString();
          if (part === 3) cells = cells.concat(cellsOf(value).cells);
        }
      }
  if (error) return { error };
  for (let i = 0; columns.length && i < cells.length; i += columns.length) rows.push(cells.slice(i, i + columns.length));
  return { columns, rows };
}

async function main() {
  const [ui, trace] = process.argv.slice(2);
  const queries = JSON.parse(fs.readFileSync(0, 'utf8'));
  const call = await startEngine(ui);
  const file = fs.openSync(trace, 'r');
  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (let bytes; (bytes = fs.readSync(file, buffer, 0, CHUNK_BYTES, null)) > 0;)
    for (const reply of call(request(APPEND, field(101, buffer.subarray(0, bytes)))))
      for (const [, message] of fields(reply))
        for (const [number, result] of fields(message))
          for (const [part, value] of number === 201 ? fields(result) : [])
            if (part === 2 && value.length) throw new Error(`trace_processor: ${value}`);
  call(request(FINALIZE));
  process.stdout.write(JSON.stringify(queries.map((sql) => query(call, sql))) + '\n');
  process.exit(0);
}

main().catch((error) => { console.error(String(error && error.stack || error)); process.exit(1); });
