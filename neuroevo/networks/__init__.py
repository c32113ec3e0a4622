"""Networks as lists of layers: named architectures, the layout of their weights, and quantization."""
