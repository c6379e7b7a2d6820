"""Log compaction: which log, how far, what is kept, and how the result takes its place."""
