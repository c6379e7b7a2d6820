"""Dead letters: records that nobody could use, kept in a topic with the reason."""
