"""The shell: sockets, files, clocks, threads; one handler per API."""
