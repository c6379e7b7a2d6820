"""SQL over topics: the form, the result as it comes, a chart of it, and its rows as a file."""
