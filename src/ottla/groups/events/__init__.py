"""What happens to groups (who joined, left or timed out, when rebalances began and ended), for explanations."""
