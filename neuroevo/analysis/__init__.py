"""What is done with a finished or going run: evaluate, replay, render, export."""
