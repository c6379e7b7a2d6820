"""How a run of the tests goes: which tests, in which order, by which worker, and what it leaves behind."""
