"""Dead letters: records that nobody could take. Browse them with their provenance, edit them, send them back."""
