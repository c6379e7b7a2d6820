"""What a node tells about itself: log set-up."""
