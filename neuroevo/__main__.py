"""Make `python -m neuroevo` run the command `neuroevo`."""

from neuroevo.cli import main

main()
