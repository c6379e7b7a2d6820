"""The balancer: which replicas should live elsewhere, so that no broker has much more to do than another.

Pure and deterministic: what brokers and partitions are like goes in (`loads`), a `Plan` comes out (`plan.make_plan`).
"""
