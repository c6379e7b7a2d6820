"""The balancer: plans which replicas should move so that the brokers carry similar loads.

Pure and deterministic: the loads of brokers and partitions go in (`loads`), a `Plan` comes out (`plan.make_plan`).
"""
