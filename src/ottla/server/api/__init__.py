"""The parts that all handlers use: the context of a request, dispatch, and code that several APIs share."""
