"""All fuzz targets of parsers in Python, by name."""

from tests.fuzz.parsers import configurations, members, run_files

TARGETS = {**run_files.TARGETS, **members.TARGETS, **configurations.TARGETS}
