"""What a machine with a GPU is asked: see run.sh."""
