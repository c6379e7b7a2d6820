"""Dead letters: records that were given up or refused, kept in a topic with the reason."""
