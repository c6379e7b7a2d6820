"""Topics whose settings change while they are used: compacted or not, shortened, deleted and created again."""
