"""`ottla registry` and `ottla schema`: the schema registry and what is registered there."""
