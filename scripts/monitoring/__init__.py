"""The Grafana dashboard and the alert rules of deploy/monitoring, declared with the metrics of the catalogue."""
