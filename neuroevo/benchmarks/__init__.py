"""What `neuroevo bench` measures."""
