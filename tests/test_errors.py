"""Errors: what a client is told, and where the details come from."""

import pytest

from iproto_server.errors import BoxError, ErrorCode


@pytest.mark.parametrize(
    ("error", "number", "text"),
    [
        (BoxError(ErrorCode.NO_SUCH_PROC, "queue.put"), 33, "Procedure 'queue.put' is not defined"),
        (
            BoxError(ErrorCode.TUPLE_FOUND, "pk", "t"),
            3,
            "Duplicate key exists in unique index 'pk' in space 't'",
        ),
        (BoxError(ErrorCode.NO_SUCH_SPACE, "7"), 36, "Space '7' does not exist"),
        (BoxError(ErrorCode.INVALID_MSGPACK, "packet header"), 20, "Invalid MsgPack - packet header"),
        (
            BoxError(ErrorCode.MISSING_REQUEST_FIELD, "space id"),
            69,
            "Missing mandatory field 'space id' in request",
        ),
        (
            BoxError(ErrorCode.WRONG_SCHEMA_VERSION, 1, 81),
            109,
            "Wrong schema version, current: 1, in request: 81",
        ),
        (BoxError(ErrorCode.UNKNOWN_REQUEST_TYPE, 44), 48, "Unknown request type 44"),
        (BoxError(ErrorCode.CREDS_MISMATCH), 47, "User not found or supplied credentials are invalid"),
        (BoxError(ErrorCode.PASSWORD_MISMATCH), 47, "User not found or supplied credentials are invalid"),
        (BoxError(ErrorCode.READONLY), 7, "Can't modify data because this instance is in read-only mode."),
        (
            BoxError(ErrorCode.UPDATE_ARG_TYPE, "+", 2, "a number"),
            26,
            "Argument type in operation '+' on field 2 does not match field type: expected a number",
        ),
        (
            BoxError(ErrorCode.UNKNOWN_AUTH_METHOD, "pap-sha256"),
            249,
            "Unknown authentication method 'pap-sha256'",
        ),
    ],
)
def test_an_error_has_tarantools_number_and_wording(error: BoxError, number: int, text: str) -> None:
    assert (error.code, error.message, str(error)) == (number, text, text)
    assert error.type == "ClientError"


def test_no_wording_is_cut_or_has_a_gap_of_a_kind_python_does_not_fill() -> None:
    for code in ErrorCode:
        gaps = code.template.count("%s") + code.template.count("%d")
        assert code.template.count("%") == gaps, code
        assert BoxError(code, *[1] * gaps).message, code


def test_arguments_that_do_not_fit_the_wording_are_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError):
        BoxError(ErrorCode.NO_SUCH_SPACE)
    with pytest.raises(TypeError):
        BoxError(ErrorCode.NO_SUCH_SPACE, "a", "b")


def test_a_text_with_percent_signs_is_taken_literally() -> None:
    assert BoxError.with_message(5, "100% %s").message == "100% %s"
    assert BoxError(ErrorCode.NO_SUCH_SPACE, "%s").message == "Space '%s' does not exist"


def test_what_goes_into_a_wording_ends_at_a_zero_byte() -> None:
    error = BoxError(ErrorCode.ACCESS_DENIED, "Read", "space", "a\0b", "guest")
    assert error.message == "Read access to space 'a' is denied for user 'guest'"
    assert error.fields["object_name"] == "a"


def test_a_wording_with_a_long_name_ends_after_511_bytes_even_within_a_letter() -> None:
    error = BoxError(ErrorCode.SPACE_EXISTS, "ы" * 300)
    assert error.message.encode("utf-8", "surrogateescape") == ("Space '" + "ы" * 300).encode()[:511]
    odd = BoxError(ErrorCode.SPACE_EXISTS, "y" + "ы" * 300)
    assert odd.message.encode("utf-8", "surrogateescape") == ("Space 'y" + "ы" * 300).encode()[:511]


def test_a_denied_access_names_what_was_denied() -> None:
    error = BoxError(ErrorCode.ACCESS_DENIED, "Read", "space", "tasks", "guest")
    assert error.message == "Read access to space 'tasks' is denied for user 'guest'"
    assert error.type == "AccessDeniedError"
    assert error.fields == {"object_type": "space", "object_name": "tasks", "access_type": "Read"}


def test_a_raising_procedure_becomes_error_32_with_its_own_text() -> None:
    error = BoxError.procedure("Task 5 not taken: 100%")
    assert (error.code, error.message, error.type) == (32, "Task 5 not taken: 100%", "LuajitError")


def test_an_application_may_use_numbers_and_types_of_its_own() -> None:
    error = BoxError.with_message(100_000, "no", type="CustomError", fields={"custom_type": "Mine"})
    assert (error.code, error.message, error.type) == (100_000, "no", "CustomError")
    assert repr(error) == "BoxError(100000, 'no')"


def test_a_number_without_wording_still_makes_an_error() -> None:
    assert BoxError(99_999, "ignored").message == "Unknown error"


def test_the_stack_goes_from_the_error_to_its_first_cause_and_ends_even_in_a_circle() -> None:
    first = BoxError(ErrorCode.NO_SUCH_SPACE, "a")
    second = BoxError(ErrorCode.NO_SUCH_PROC, "b", previous=first)
    assert list(second.stack()) == [second, first]
    first.previous = second
    assert list(second.stack()) == [second, first]


def test_repr_names_the_error() -> None:
    assert (
        repr(BoxError(ErrorCode.NO_SUCH_SPACE, "a"))
        == "BoxError(NO_SUCH_SPACE, \"Space 'a' does not exist\")"
    )
