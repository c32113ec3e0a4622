"""Turn frames into a video: the tiles of a picture, the palette of a .gif, and the file itself."""
