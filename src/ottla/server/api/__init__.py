"""What all handlers use: the context of a request, dispatch, and the pieces that several APIs share."""
