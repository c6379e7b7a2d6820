"""A schema registry, who registers with it, and consumers that decode with it: a part of a run (`company`)."""
