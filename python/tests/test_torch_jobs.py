# SPDX-License-Identifier: Apache-2.0
"""Several processes: DistributedDataParallel, fully sharded models, a Trainer with its workers."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import torch
from torch_support import TorchCase, read_table, tool

import tracesmith.torch  # noqa: F401

DDP = """
    import sys
    import torch
    import torch.distributed as distributed
    from torch.nn.parallel import DistributedDataParallel
    import tracesmith.torch
    from torch_support import Net, tokens

    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    tracesmith.torch.enable()
    model = DistributedDataParallel(Net(layers=1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        model(tokens(step + distributed.get_rank())).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    total = sum(parameter.double().sum() for parameter in model.parameters())
    sys.stdout.write(f"total {distributed.get_rank()} {total.item().hex()}\\n")
    distributed.destroy_process_group()
"""

SHARDED = """
    import torch
    import torch.distributed as distributed
    import tracesmith.torch
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    from torch_support import Net, tokens

    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    tracesmith.torch.enable()

    def train(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            model(tokens(step)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    model = Net(layers=1)
    fully_shard(model.layers[0], mesh=torch.distributed.init_device_mesh("cpu", (2,)))
    fully_shard(model, mesh=torch.distributed.init_device_mesh("cpu", (2,)))
    train(model)
    tracesmith.step(100)
    model = Net(layers=1)
    model.layers[0] = FullyShardedDataParallel(model.layers[0], device_id=torch.device("cpu"))
    train(FullyShardedDataParallel(model, device_id=torch.device("cpu")))
    distributed.destroy_process_group()
"""

TRAINER = """
    import os
    import subprocess
    import sys
    import torch
    import tracesmith
    import tracesmith.torch
    from transformers import BertConfig, BertForSequenceClassification
    from transformers import Trainer, TrainerCallback, TrainingArguments

    tracesmith.torch.enable()
    torch.manual_seed(0)
    config = BertConfig(vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=32, max_position_embeddings=32)
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 16
        def __getitem__(self, at):
            with tracesmith.span("load"):
                ids = torch.arange(8) + at
            return {"input_ids": ids, "labels": torch.tensor(at % 2)}
    arguments = TrainingArguments(output_dir=sys.argv[1], max_steps=2, report_to=[], use_cpu=True,
                                  per_device_train_batch_size=2, dataloader_num_workers=2,
                                  save_strategy="no", disable_tqdm=True, logging_strategy="no",
                                  remove_unused_columns=True)
    class UntilSampled(TrainerCallback):
        # Training goes on when the recorder has seen a stack of it.
        def on_step_end(self, *arguments, **named):
            command = [os.environ["TRACESMITH_RECORDER"], "export", "-f", "folded", "-o", "-"]
            me = f"({os.getpid()});"
            while True:
                stacks = subprocess.run([*command, "-p", str(os.getpid())], check=True,
                                        capture_output=True, text=True).stdout
                if any(me in stack and ".on_step_end (" in stack for stack in stacks.splitlines()):
                    return
    model = BertForSequenceClassification(config)
    Trainer(model=model, args=arguments, train_dataset=Data(), callbacks=[UntilSampled()]).train()
"""

RUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


class JobsTest(TorchCase):
    def run_ranks(self, source: str, trace: str = "", *arguments: str) -> str:
        path = Path(tempfile.mkdtemp(dir=os.getcwd())) / "program.py"
        path.write_text(textwrap.dedent(source))
        command = [sys.executable, *RUN, str(path), *arguments]
        if trace:
            command = [
                os.environ["TRACESMITH_RECORDER"],
                "record",
                "-q",
                "-o",
                trace,
                "--",
                *command,
            ]
        return subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, timeout=900
        ).stdout

    @unittest.skipUnless(torch.distributed.is_available(), "torch without distributed")
    def test_ddp(self) -> None:
        recorded = self.run_ranks(DDP, "ddp.sbt")
        without = self.run_ranks(DDP.replace("tracesmith.torch.enable()", "pass"))
        self.assertEqual(sorted(recorded.splitlines()), sorted(without.splitlines()))
        rows = read_table("ddp.sbt")
        for rank in (0, 1):
            of_rank = [row for row in rows if row["rank"] == rank]
            self.assertEqual(len({row["pid"] for row in of_rank}), 1)
            for step in range(3):
                names = [
                    row["module"]
                    for row in of_rank
                    if row["step"] == step and row["stage"] == "forward"
                ]
                self.assertEqual(len(names), 15)
                self.assertIn("DistributedDataParallel(Net)", names)
                self.assertIn("Net.layers.0.attention.q", names)
                for stage, count in (("backward", 15), ("step", 1)):
                    self.assertEqual(
                        sum(row["stage"] == stage and row["step"] == step for row in of_rank), count
                    )

    @unittest.skipUnless(torch.distributed.is_available(), "torch without distributed")
    @unittest.skipUnless(
        tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 6),
        "fully_shard() is private",
    )
    def test_sharded(self) -> None:
        self.run_ranks(SHARDED, "sharded.sbt")
        rows = read_table("sharded.sbt")
        for rank in (0, 1):
            for first, wrappers in ((True, set()), (False, {"Net", "Net.layers.0"})):
                # The first model may still be there.
                names = {
                    (row["stage"], row["module"].replace("#2", ""))
                    for row in rows
                    if row["rank"] == rank and (row["step"] < 100) == first
                }
                for stage in ("forward", "backward"):
                    self.assertIn((stage, "Net.layers.0.attention.q"), names)
                    self.assertIn((stage, "Net.layers.0"), names)
                    for wrapper in wrappers:
                        self.assertIn((stage, f"FullyShardedDataParallel({wrapper})"), names)
                self.assertIn(("step", "SGD"), names)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "no transformers")
    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "no accelerate")
    def test_trainer(self) -> None:
        """Ranks, modules, stacks and steps in one job."""
        self.run_ranks(TRAINER, "job/%r.sbt", os.getcwd())
        traces = ["job/0.sbt", "job/1.sbt"]
        for rank, trace in enumerate(traces):
            rows = read_table(trace)
            self.assertEqual({row["rank"] for row in rows}, {rank})
            self.assertEqual({row["step"] for row in rows}, {0, 1})
            names = {row["module"] for row in rows if row["stage"] == "forward"}
            self.assertIn(
                "BertForSequenceClassification.bert.encoder.layer.1.attention.self.query", names
            )
            self.assertEqual(
                [row["module"] for row in rows if row["stage"] == "step"], ["AdamW"] * 2
            )
            # Workers load, and have none of the rows.
            (pid,) = {row["pid"] for row in rows}
            workers = {row["pid"] for row in read_table(trace, "slice") if row["name"] == "load"}
            self.assertEqual(len(workers - {pid}), 2)
            self.assertTrue(workers <= {row["pid"] for row in read_table(trace, "process")})
            # A stack from the program down into the library.
            stacks = tool("export", "-f", "folded", "-o", "-", trace).splitlines()
            trained = [stack for stack in stacks if f"({pid});" in stack and "on_step_end" in stack]
            self.assertTrue(any("Trainer.train (" in stack for stack in trained), stacks)
        steps = json.loads(tool("analyze", *traces, "steps", "--json"))["steps"]
        self.assertEqual(
            [(row["rank"], row["step"]) for row in steps], [(0, 0), (0, 1), (1, 0), (1, 1)]
        )
        functions = json.loads(tool("analyze", *traces, "functions", "--all", "--json"))
        self.assertEqual({row["rank"] for row in functions["threads"]}, {0, 1})


if __name__ == "__main__":
    unittest.main()
