"""The guard: checks the rights of clients between dispatch and handlers, as the handlers' declarations say."""
