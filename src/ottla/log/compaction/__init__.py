"""Log compaction: which log is compacted, how far, which records are kept, and how segments are replaced."""
