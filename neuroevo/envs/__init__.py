"""The environments by name: one family each for Atari, MuJoCo, the mazes and Gymnasium."""
