"""Many checkouts, checked on many machines: the list, the jobs that a cluster does, and the folder that they fill."""
