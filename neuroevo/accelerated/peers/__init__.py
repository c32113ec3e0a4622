"""What neuroevo is compared with on the accelerator: other libraries' evolution strategies, and a simulator alone."""
