"""Neuroevolution of deep networks on one desktop, through TensorFlow custom ops."""

__version__ = "0.1.0"
