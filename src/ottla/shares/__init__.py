"""Share groups' records: who has which record in hand, and what became of it. Pure."""
