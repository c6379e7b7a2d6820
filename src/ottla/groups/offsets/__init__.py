"""Offsets: how far each group has come, and what makes them come and go."""
