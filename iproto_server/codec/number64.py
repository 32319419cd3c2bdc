"""Numbers that Tarantool 1.5's protocol sends in eight bytes, however small they are."""


class Number64(int):
    """A whole number that a client of Tarantool 1.5's protocol gets in eight bytes: 1.5's NUM64.

    In everything else it is a plain number. A procedure returns it where such a client counts on eight bytes,
    as it did where 1.5's procedures returned a number of 64 bits; other numbers have four bytes if they fit.
    """

    __slots__ = ()


class Float64(float):
    """A number of which a client of Tarantool 1.5's protocol gets the whole part, in eight bytes.

    In everything else it is a plain number.
    """

    __slots__ = ()
