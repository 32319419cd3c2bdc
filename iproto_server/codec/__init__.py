"""MessagePack encoding and decoding, with Tarantool's extension types."""
