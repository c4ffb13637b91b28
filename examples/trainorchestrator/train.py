"""Starts the trainer. It needs agentlightning 1.0.2, verl 0.8.0, vLLM and GPUs.

python train.py [tasks.jsonl] [verl option=value ...]
"""

import importlib.resources
import json
import os
import pathlib
import sys

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

here = pathlib.Path(__file__).parent


def build_config(overrides):
    package = str(importlib.resources.files("agentlightning") / "verl")
    with initialize_config_dir(config_dir=package, version_base=None):
        base = compose(config_name="config")
    # A name that neither verl nor Agent Lightning knows is an error here.
    OmegaConf.set_struct(base, True)
    key = OmegaConf.create({"agentlightning": {"agl_key": os.environ.get("AGL_KEY", "")}})
    return OmegaConf.merge(base, OmegaConf.load(here / "verl.yaml"), key, OmegaConf.from_dotlist(overrides))


def main():
    rows, overrides = here / "tasks.jsonl", sys.argv[1:]
    if overrides and "=" not in overrides[0]:
        rows = pathlib.Path(overrides.pop(0))
    config = build_config(overrides)
    tasks = [json.loads(line) for line in rows.read_text().splitlines()]

    from agentlightning.verl.entrypoint import run_ppo

    run_ppo(config, train_dataset=tasks, val_dataset=tasks)


if __name__ == "__main__":
    main()
