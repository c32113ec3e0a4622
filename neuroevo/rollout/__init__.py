"""Evaluation of genomes on this machine: lanes of slots that play episodes, in the native core or TensorFlow."""
