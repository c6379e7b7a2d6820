"""Java programs: those that answer, those that run until they are killed, and archives of their classes."""
