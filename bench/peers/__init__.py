"""The servers that are measured: ours, Tarantool, beanstalkd and Redis."""
