"""Records as people look at them: what keys and values say, pages of them, searches, and what is typed as a record."""
