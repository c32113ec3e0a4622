"""All fuzz targets of parsers in Python, by name."""

from tests.fuzz.parsers import configurations, databases, signatures

TARGETS = {**databases.TARGETS, **signatures.TARGETS, **configurations.TARGETS}
