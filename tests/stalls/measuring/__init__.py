"""What the tests of stalls measure, and on which nodes."""
