"""Programs of a user: each logs through an unchanged client and prints what the client then reads back."""

from __future__ import annotations

FLUENT = """
import json, math, mlflow
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
mlflow.set_experiment("my experiment / one")
with mlflow.start_run(run_name="first", tags={"a": "b"}) as run:
    mlflow.log_param("lr", 0.1)
    mlflow.log_params({"n": 3, "long": "x" * 5000})
    for step in range(30):
        mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
    mlflow.log_metrics({"odd": math.nan, "up": math.inf, "down": -math.inf}, step=1)
    mlflow.set_tags({"k": "v", "gone": "1"})
    mlflow.delete_tag("gone")
    mlflow.log_text("hello", "notes/a.txt")
    mlflow.log_dict({"score": 1}, "val_step1.json")
    mlflow.log_input(mlflow.data.from_numpy(__import__("numpy").zeros((2, 2)), name="grid"), context="training")
client = MlflowClient()
name = run.info.run_id
late = [Metric("batch", float(i), 1000 + i, i) for i in (1, 0, 2)]
client.log_batch(name, late, [Param("p", "q")], [RunTag("t", "u")])
with mlflow.start_run(run_id=name):  # taken up again
    mlflow.log_metric("loss", 9.0, step=100)
found = client.get_run(name)
history = client.get_metric_history(name, "loss")
assert found.info.status == "FINISHED" and found.info.run_name == "first"
assert math.isnan(found.data.metrics["odd"]) and found.data.metrics["up"] == math.inf
assert found.data.metrics["down"] == -math.inf
assert [item.path for item in client.list_artifacts(name)] == ["notes", "val_step1.json"]
local = mlflow.artifacts.download_artifacts(run_id=name, artifact_path="notes/a.txt", dst_path=".")
assert open(local).read() == "hello"
assert mlflow.artifacts.load_dict(f"runs:/{name}/val_step1.json") == {"score": 1}
assert found.inputs.dataset_inputs[0].dataset.name == "grid"
table = mlflow.search_runs(experiment_names=["my experiment / one"], order_by=["metrics.loss DESC"],
                           filter_string="metrics.loss > 5 and params.lr = '0.1'")
assert list(table["run_id"]) == [name] and table["tags.k"][0] == "v"
other = client.create_run(found.info.experiment_id, run_name="second")
client.delete_run(other.info.run_id)
assert [item.info.run_id for item in client.search_runs([found.info.experiment_id])] == [name]
client.restore_run(other.info.run_id)
client.set_terminated(other.info.run_id, "KILLED")
client.update_run(other.info.run_id, name="renamed")
assert client.get_run(other.info.run_id).info.run_name == "renamed"
try:
    client.log_param(name, "lr", "0.2")
    raise SystemExit("a changed parameter was taken")
except mlflow.exceptions.MlflowException as error:
    assert "lr" in str(error)
print(json.dumps({"run": name, "params": found.data.params, "tags": found.data.tags,
                  "loss": [[item.step, item.timestamp, item.value] for item in history],
                  "batch": [[m.step, m.timestamp, m.value] for m in client.get_metric_history(name, "batch")]}))
"""

ASYNCHRONOUS = """
import json, mlflow
mlflow.set_experiment("async")
mlflow.config.enable_async_logging(True)
with mlflow.start_run() as run:
    for step in range(200):
        mlflow.log_metrics({"a": float(step), "b": float(-step)}, step=step)
    mlflow.log_params({f"p{i}": i for i in range(250)})
mlflow.flush_async_logging()
client = mlflow.MlflowClient()
print(json.dumps({"run": run.info.run_id, "params": len(client.get_run(run.info.run_id).data.params),
                  "a": [[m.step, m.value] for m in client.get_metric_history(run.info.run_id, "a")]}))
"""

TWO_WRITERS = """
import json, sys, mlflow
client = mlflow.MlflowClient()
run, who = sys.argv[1], sys.argv[2]
from mlflow.entities import Metric
for step in range(40):
    client.log_batch(run, [Metric("shared", float(step), step, step), Metric(who, float(step), step, step)])
    client.log_metric(run, "both", float(who), 1000 + step, step)
print(json.dumps(None))
"""

BEGIN = """
import json, mlflow
mlflow.set_experiment("race")
client = mlflow.MlflowClient()
print(json.dumps(client.create_run(mlflow.get_experiment_by_name("race").experiment_id).info.run_id))
"""

TRAINER = """
import json, sys, torch, warnings
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                     num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=32))
rows = [{"input_ids": torch.arange(8) % 32, "labels": torch.arange(8) % 32} for _ in range(16)]
arguments = TrainingArguments("out", max_steps=4, per_device_train_batch_size=2, logging_steps=1, report_to=["mlflow"],
                              save_strategy="no", use_cpu=True, disable_tqdm=True, run_name="tiny")
trainer = Trainer(model, arguments, train_dataset=rows)
trainer.train()
import mlflow
client = mlflow.MlflowClient()
run = mlflow.last_active_run().info.run_id
logged = [[item["step"], item["loss"]] for item in trainer.state.log_history if "loss" in item]
print(json.dumps({"run": run, "logged": logged, "params": len(client.get_run(run).data.params),
                  "loss": [[m.step, m.value] for m in client.get_metric_history(run, "loss")]}))
"""

GRPO = """
import json, torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer
torch.manual_seed(0)
words = {word: number for number, word in enumerate(["<pad>", "<eos>", "<unk>", "a", "b", "c", "d"])}
plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>",
                                    padding_side="left")
model = LlamaForCausalLM(LlamaConfig(vocab_size=len(words), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                     num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64,
                                     pad_token_id=0, eos_token_id=1, bos_token_id=1))
def reward(completions, **_):
    return [float(text.count("a")) for text in completions]
settings = GRPOConfig("out", max_steps=3, per_device_train_batch_size=4, num_generations=4, max_completion_length=6,
                      logging_steps=1, report_to=["mlflow"], save_strategy="no", use_cpu=True, disable_tqdm=True,
                      bf16=False)
trainer = GRPOTrainer(model, reward, args=settings, train_dataset=Dataset.from_dict({"prompt": ["a b", "c d"] * 4}),
                      processing_class=tokenizer)
trainer.train()
import mlflow
client = mlflow.MlflowClient()
run = mlflow.last_active_run().info.run_id
names = ["reward", "completions/mean_length", "rewards/reward/mean", "entropy"]
logged = {name: [[item["step"], item[name]] for item in trainer.state.log_history if name in item] for name in names}
print(json.dumps({"run": run, "logged": logged,
                  "read": {n: [[m.step, m.value] for m in client.get_metric_history(run, n)] for n in names}}))
"""
