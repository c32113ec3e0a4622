"""Any environment of Gymnasium, run in Python processes."""
