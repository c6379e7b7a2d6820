"""The server process: sockets, files, clocks, threads, and one handler per API."""
