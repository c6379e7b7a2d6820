"""Output, prompts and errors of commands."""
