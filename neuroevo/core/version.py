"""The version of this package, written once."""

VERSION = "0.1.0"
