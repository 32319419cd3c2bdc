"""Measurements. Speed claims come from here; tests assert none.

`python -m bench` puts our server beside others: `database`, `beanstalkd` and `redis` say how they are started
and what they speak, `load` and `delivery` make the load, `comparison` has the order of the measurements,
`results` what came of them, `report`, `goals` and `picture` show it. The other modules with a `main` measure
one thing each.
"""
