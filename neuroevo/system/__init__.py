"""What the operating system and the terminal need: files, signals, console output, statistics of returns."""
