"""The files of a partition directory, and the disk port below them."""
