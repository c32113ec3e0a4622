"""Tests interrupt themselves and their children, also where SIGINT is ignored, as in a shell's background jobs."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
