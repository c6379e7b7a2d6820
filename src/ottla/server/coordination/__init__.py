"""The runtime of coordinators: machines on the partitions of an internal topic, whatever they coordinate."""
