"""Record batches (magic 2): headers, records, codecs, control batches."""
