"""Security rules without I/O: principals, access rules, SASL exchanges, names in certificates and tickets."""
