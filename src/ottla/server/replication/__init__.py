"""What a broker does as a follower, and as a leader for its followers."""
