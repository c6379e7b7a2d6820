"""Who may do what at the console: sessions, the gate that each request passes, the headers of each answer."""
