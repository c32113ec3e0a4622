"""Networks as lists of layers: the architectures by name, the layout of their weights, and quantization."""
