"""KRaft consensus, pure: events in, effects out."""
