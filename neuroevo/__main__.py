"""`python -m neuroevo` is the command `neuroevo`."""

from neuroevo.cli import main

main()
