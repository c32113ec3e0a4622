"""The measurements behind `neuroevo bench`."""
