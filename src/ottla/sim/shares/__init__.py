"""Share groups in the simulator."""
