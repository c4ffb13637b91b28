"""Makes orchestra/train/testdata/advantages.json.gz: group advantages of random
groups, as the real verl and TRL packages compute them.

Run it by hand (see requirements.txt beside it); CI only reads what it made.

verl: verl.trainer.ppo.core_algos.compute_grpo_outcome_advantage, called as its
trainer calls it, with float64 rewards on the last token of each response.

TRL: a real GRPOTrainer with a random two-layer model on the CPU. Its own
_generate_and_score_completions generates one token a completion, asks the
reward function and computes the advantages. TRL rounds rewards to float32 in
_calculate_rewards; for the fixture that one method is replaced by one that
returns the same rewards in float64. The unchanged trainer runs too, and how far
float32 takes it away, by shape of the rewards, is written into the fixture, as
it is for verl.
"""

import gzip
import importlib.metadata
import json
import os
import random
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

GROUPS = 1000
SEED = 20


def shapes(rng, n):
    """One list of n rewards for each shape that groups come in."""
    return {
        "binary": lambda: [float(rng.random() < 0.5) for _ in range(n)],
        "one right": lambda: [1.0 if i == 0 else 0.0 for i in range(n)],
        "paper": lambda: [rng.uniform(1, 3) if rng.random() < 0.6 else 0.0 for _ in range(n)],
        "uniform": lambda: [rng.random() for _ in range(n)],
        "negative": lambda: [rng.gauss(-2, 1) for _ in range(n)],
        "large": lambda: [rng.gauss(0, 300) for _ in range(n)],
        "close": lambda: [1 + rng.choice([0, 0.0001, 0.0002]) for _ in range(n)],
        "equal": lambda: [rng.choice([0.0, 0.1, 1.0, 2.7])] * n,
        "outlier": lambda: [100.0 if i == n - 1 else rng.random() for i in range(n)],
    }


def draw():
    rng = random.Random(SEED)
    groups = []
    for i in range(GROUPS):
        n = 1 if i % 50 == 0 else rng.randint(2, 16)
        makers = shapes(rng, n)
        shape = sorted(makers)[i % len(makers)]
        groups.append({"shape": shape, "rewards": [round(x, 4) for x in makers[shape]()]})
    return groups


def verl(groups, normalised, dtype):
    """All groups as one shuffled batch."""
    rows = [(i, r) for i, g in enumerate(groups) for r in g["rewards"]]
    order = list(range(len(rows)))
    random.Random(SEED + 1).shuffle(order)
    length = 3
    rewards = torch.zeros(len(rows), length, dtype=dtype)
    mask = torch.ones(len(rows), length, dtype=dtype)
    index = np.array([str(rows[k][0]) for k in order], dtype=object)
    for at, k in enumerate(order):
        rewards[at, length - 1] = rows[k][1]
    advantages, _ = compute_grpo_outcome_advantage(rewards, mask, index, norm_adv_by_std_in_grpo=normalised)
    out = [0.0] * len(rows)
    for at, k in enumerate(order):
        assert (advantages[at] == advantages[at, 0]).all(), "tokens of one response differ"
        out[k] = advantages[at, 0].item()
    return split(groups, out)


def split(groups, flat):
    out, at = [], 0
    for g in groups:
        out.append(flat[at : at + len(g["rewards"])])
        at += len(g["rewards"])
    return out


class Float64(GRPOTrainer):
    """The trainer, but its rewards are not rounded to float32."""

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        return torch.tensor([[x["value"]] for x in inputs], dtype=torch.float64)


def given(completions, value, **_):
    """The reward function: what the row says."""
    return value


def trainer(kind, scale, where):
    tokens = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "task": 2, "yes": 3}, unk_token="<pad>"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokens, pad_token="<pad>", eos_token="<eos>")
    torch.manual_seed(SEED)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=4, hidden_size=8, intermediate_size=8, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=16,
            pad_token_id=0, eos_token_id=1, bos_token_id=None,
        )
    )
    config = GRPOConfig(
        output_dir=where, use_cpu=True, bf16=False, report_to=[], scale_rewards=scale,
        max_completion_length=1, per_device_train_batch_size=2, num_generations=2,
        logging_strategy="no", save_strategy="no",
    )
    rows = Dataset.from_list([{"prompt": "task", "value": 0.0}] * 2)
    t = kind(model=model, reward_funcs=given, args=config, train_dataset=rows, processing_class=tokenizer)
    t.model.train()
    return t


def trl(groups, kind, scale):
    """The groups of each size as one batch."""
    out = [None] * len(groups)
    with tempfile.TemporaryDirectory() as where:
        t = trainer(kind, scale, where)
        for n in sorted({len(g["rewards"]) for g in groups}):
            which = [i for i, g in enumerate(groups) if len(g["rewards"]) == n]
            t.num_generations = n
            rows = [{"prompt": "task", "value": r} for i in which for r in groups[i]["rewards"]]
            a = t._generate_and_score_completions(rows)["advantages"].tolist()
            for k, i in enumerate(which):
                out[i] = a[k * n : (k + 1) * n]
    return out


def furthest(groups, a, b):
    """The greatest difference, by shape."""
    far = {}
    for g, p, q in zip(groups, a, b, strict=True):
        d = max(abs(x - y) for x, y in zip(p, q, strict=True))
        far[g["shape"]] = max(far.get(g["shape"], 0.0), float(f"{d:.2g}"))
    return far


def main(path):
    groups = draw()
    exact, single = torch.float64, torch.float32
    results = {
        "verl": verl(groups, True, exact),
        "verl_centred": verl(groups, False, exact),
        "trl": trl(groups, Float64, "group"),
        "trl_centred": trl(groups, Float64, "none"),
    }
    rounded = {
        "verl": furthest(groups, results["verl"], verl(groups, True, single)),
        "trl": furthest(groups, results["trl"], trl(groups, GRPOTrainer, "group")),
    }
    for i, g in enumerate(groups):
        for name, all_of in results.items():
            g[name] = [round(x, 9) + 0.0 for x in all_of[i]]
    fixture = {
        "about": "group advantages by the real packages, in float64, rounded to 9 decimals; made by .ci/advantages/make.py",
        "versions": {p: importlib.metadata.version(p) for p in ("verl", "trl", "torch", "transformers")},
        "float32_deviation": rounded,
        "groups": groups,
    }
    data = json.dumps(fixture, separators=(",", ":")).encode()
    with open(path, "wb") as f, gzip.GzipFile(filename="", mode="wb", fileobj=f, compresslevel=9, mtime=0) as z:
        z.write(data)
    print(os.path.getsize(path), "bytes;", fixture["versions"], "float32:", rounded)


if __name__ == "__main__":
    main(sys.argv[1])
