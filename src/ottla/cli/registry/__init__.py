"""`ottla registry` and `ottla schema`: the schema registry and its schemas."""
