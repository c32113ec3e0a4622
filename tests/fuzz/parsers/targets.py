"""All fuzz targets of parsers in Python, by name."""

from tests.fuzz.parsers import configurations, run_files

TARGETS = {**run_files.TARGETS, **configurations.TARGETS}
