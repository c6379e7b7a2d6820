"""Groups: members that join, leave, commit and share, each on a bare connection, and the workloads made of them."""
