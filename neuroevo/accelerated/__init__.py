"""Episodes of simulators that run on an accelerator themselves (Brax, MJX): the only room that imports JAX."""

import os

from neuroevo.system.safe_path import glfw_variables

os.environ.update(glfw_variables())  # before MuJoCo is imported
