"""`ottla group explain`, `ottla group lag` and `ottla topic hot`: what `client/explain` finds, in the terminal."""
