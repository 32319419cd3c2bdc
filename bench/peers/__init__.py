"""The measured servers: ours, Tarantool, beanstalkd and Redis."""
