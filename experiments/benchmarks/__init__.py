"""Speed, measured: against the limits of this machine and against peers, in one run."""
