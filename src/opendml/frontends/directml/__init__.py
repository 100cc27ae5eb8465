"""`directml`, the fork of PyDirectML that goes on, as it is now: graphs, buffers and every operator."""
