"""The metrics of a node: what they are collected from, and the endpoint that tells them."""
