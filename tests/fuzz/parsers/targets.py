"""All fuzz targets of parsers in Python, by name."""

from tests.fuzz.parsers import configurations, databases

TARGETS = {**databases.TARGETS, **configurations.TARGETS}
