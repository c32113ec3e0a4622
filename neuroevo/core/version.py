"""The version of this package; all other places read it from here."""

VERSION = "0.1.0"
