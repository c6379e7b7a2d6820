"""Opening a partition directory after a crash, and the check that a clean stop really was one."""
