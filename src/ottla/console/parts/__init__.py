"""What pages are made of: words and notices, tables, forms, charts."""
