"""Tests interrupt themselves and their children, also where that is ignored, as in background jobs and under nohup."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
