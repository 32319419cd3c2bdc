"""Symmetric ciphers of OpenSSL for `crypto.lua`, through `ctypes`.

The library is the one that Python's own `_hashlib` uses. Lua code has the addresses of contexts.

Source: OpenSSL's C API, `openssl/evp.h`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from iproto_server.lua.errors import HostError

_ERROR_SIZE: Final = 256
_BLOCK_MAX: Final = 32


def _candidates() -> Iterator[str]:
    """Paths of libraries that have or load libcrypto."""
    path = getattr(importlib.import_module("_hashlib"), "__file__", None)
    if path:
        yield path
    found = ctypes.util.find_library("crypto")
    if found:
        yield found


@cache
def _crypto() -> ctypes.CDLL:
    for path in _candidates():
        library = ctypes.CDLL(path)
        if hasattr(library, "EVP_CIPHER_CTX_new"):
            break
    else:
        raise HostError("ciphers need OpenSSL's library libcrypto, which was not found")
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    size = ctypes.POINTER(number)
    library.EVP_get_cipherbyname.restype = pointer
    library.EVP_get_cipherbyname.argtypes = [text]
    library.EVP_CIPHER_CTX_new.restype = pointer
    library.EVP_CIPHER_CTX_free.argtypes = [pointer]
    library.EVP_CipherInit_ex.argtypes = [pointer, pointer, pointer, text, text, number]
    library.EVP_CipherUpdate.argtypes = [pointer, text, size, text, number]
    library.EVP_CipherFinal_ex.argtypes = [pointer, text, size]
    library.ERR_get_error.restype = ctypes.c_ulong
    library.ERR_error_string_n.argtypes = [ctypes.c_ulong, text, ctypes.c_size_t]
    return library


def _error() -> bytes:
    """The text of the first error of OpenSSL since the last one; the others are forgotten."""
    crypto = _crypto()
    text = ctypes.create_string_buffer(_ERROR_SIZE)
    crypto.ERR_error_string_n(crypto.ERR_get_error(), text, _ERROR_SIZE)
    crypto.ERR_clear_error()
    return b"OpenSSL error: " + text.value


def cipher_begin(name: bytes, key: bytes, iv: bytes, encrypts: bool) -> tuple[int | None, bytes | None]:
    """Begin to encrypt or decrypt.

    Parameters:
        name: OpenSSL's name of the cipher and its mode, as `AES-128-CBC`.
        key: the key, of the cipher's size.
        iv: the initialization vector, of the cipher's size.
        encrypts: whether to encrypt.

    Returns:
        The address of a context, which the caller frees; or None and the error's message.
    """
    crypto = _crypto()
    context: int | None = crypto.EVP_CIPHER_CTX_new()
    cipher = crypto.EVP_get_cipherbyname(name)
    if not cipher or crypto.EVP_CipherInit_ex(context, cipher, None, key, iv, int(encrypts)) != 1:
        crypto.EVP_CIPHER_CTX_free(context)
        return None, _error()
    return context, None


def cipher_update(context: int, text: bytes) -> bytes:
    """Give more of the text to the context with this address. Returns what is ready of the result."""
    result, size = ctypes.create_string_buffer(len(text) + _BLOCK_MAX), ctypes.c_int()
    if _crypto().EVP_CipherUpdate(int(context), result, ctypes.byref(size), text, len(text)) != 1:
        raise HostError(_error().decode())
    return result.raw[: size.value]


def cipher_end(context: int) -> tuple[bytes | None, bytes | None]:
    """End. Returns the rest of the result, or None and the error's message."""
    result, size = ctypes.create_string_buffer(_BLOCK_MAX), ctypes.c_int()
    if _crypto().EVP_CipherFinal_ex(int(context), result, ctypes.byref(size)) != 1:
        return None, _error()
    return result.raw[: size.value], None


def cipher_free_address() -> int:
    """The address of OpenSSL's function that frees a context."""
    address = ctypes.cast(_crypto().EVP_CIPHER_CTX_free, ctypes.c_void_p).value
    assert address is not None
    return address


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "cipher_begin": cipher_begin,
    "cipher_end": cipher_end,
    "cipher_free_address": cipher_free_address,
    "cipher_update": cipher_update,
}
