"""The names of what a run folder holds, written once."""

from __future__ import annotations

CONFIG = "config.toml"  # the configuration with every default filled in; with it the folder is a run
REFERENCE = "reference.npy"  # the reference batch of a network with virtual batch normalization
INFO = "info.json"  # command, seed, versions, git commit, machine, and the same of every time the run was resumed
METRICS = "metrics.jsonl"  # a line per finished generation
CSV = "metrics.csv"  # the same numbers for spreadsheets
ELITES = "elites.jsonl"  # the elite of every generation
CHECKPOINTS = "checkpoints"  # the folder of what the run can go on from
TENSORBOARD = "tensorboard"  # the folder of event files
LOG = "log.txt"  # what happened when
