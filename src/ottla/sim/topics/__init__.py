"""Topics whose settings change while they are used: compacted and not, shortened, deleted and made anew."""
