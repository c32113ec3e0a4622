"""Evaluation of networks in simulators that run on the accelerator (Brax, MJX). Only this package imports JAX."""

import os

from neuroevo.system.safe_path import glfw_variables

os.environ.update(glfw_variables())  # before MuJoCo is imported
