#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Our own recorded traces, compared with what the recorded programs measured themselves: steps,
# bytes copied, PyTorch's memory peak and table of device time, ranks (tests/data/real/facts.json,
# check_facts.py).
set -euo pipefail

python3 "$TS_SOURCE/tests/real/check_facts.py" "$TS_SOURCE/tests/data/real"

# The memory snapshot, entry by entry.
gzip -dc "$TS_SOURCE/tests/data/real/memory/mlp_snapshot.pickle.gz" >snapshot.pickle
python3 "$TS_SOURCE/tests/lib/check_torch_memory.py" "$TRACESMITH" snapshot.pickle
