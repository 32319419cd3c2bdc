"""Collations: rows of `_collation`, and sort keys of texts."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from typing import Any

import pytest

from iproto_server import Box
from iproto_server.box.key import icu
from iproto_server.box.key.collation import Collation, built_in_collations
from iproto_server.errors import BoxError, ErrorCode
from tests.box.boxes import new_box, refused
from tests.box.index.test_index import Rows, index

UNICODE, UNICODE_CI, BINARY = 1, 2, 3


def row(**options: str) -> list[Any]:
    return [500, "mine", 1, "ICU", "ru_RU", options]


class TestRows:
    def test_those_of_tarantool(self) -> None:
        collations = built_in_collations()
        assert list(collations) == list(range(277))
        assert collations[UNICODE] == Collation("unicode", False, "", (("strength", "TERTIARY"),))
        assert collations[UNICODE_CI].options == (("strength", "PRIMARY"),)
        assert collations[BINARY].is_binary
        assert collations[276].name == "unicode_zh__zhuyin_s3"

    def test_options_in_any_order_and_case(self) -> None:
        one = Collation.parse(row(strength="primary", numeric_collation="ON"))
        other = Collation.parse(
            [501, "other", 1, "icu", "ru_RU", {"numeric_collation": "on", "strength": "Primary"}]
        )
        assert one.compares_like(other)
        assert not one.compares_like(Collation.parse(row(strength="primary")))
        assert not one.compares_like(built_in_collations()[BINARY])

    @pytest.mark.parametrize(
        ("wrong", "code", "text"),
        [
            ([500, "x", 1, "zz", "", {}], 150, "Failed to initialize collation: unknown collation type."),
            (
                [500, "x", 1, "ICU", "a" * 31, {}],
                150,
                "Failed to initialize collation: collation locale is too long.",
            ),
            (
                [500, "x" * 65_001, 1, "ICU", "", {}],
                150,
                "Failed to initialize collation: collation name is too long.",
            ),
            (
                row(strength="great"),
                150,
                "Failed to initialize collation: ICU wrong strength option setting, expected "
                "PRIMARY | SECONDARY | TERTIARY | QUATERNARY | IDENTICAL.",
            ),
            (row(other="on"), 151, "Wrong collation options (field 5): unexpected option 'other'"),
            ([500, "", 1, "ICU", "", {}], 70, None),
        ],
    )
    def test_that_are_wrong(self, wrong: list[Any], code: int, text: str | None) -> None:
        with pytest.raises(BoxError) as caught:
            Collation.parse(wrong)
        assert caught.value.code == code
        assert text is None or caught.value.message == text


class TestKeys:
    def test_no_key_is_the_beginning_of_another(self) -> None:
        encode = built_in_collations()[UNICODE].encode
        for text in ("", "\0", "a", "ab", "日本", "x" * 5000, "\udcff"):
            assert encode(text).index(0) == len(encode(text)) - 1

    def test_equal_texts_have_equal_keys(self) -> None:
        encode = built_in_collations()[UNICODE_CI].encode
        assert encode("a") == encode("A") == encode("á") == encode("a\u0301") != encode("b")
        assert encode("") == encode("\u00ad")
        assert encode("x" * 5000) == encode("X" * 5000)

    def test_bytes_that_are_no_utf_8_count_as_the_replacement_character(self) -> None:
        encode = built_in_collations()[UNICODE].encode
        assert encode("a\udcffb") == encode("a\ufffdb")

    def test_languages_differ(self) -> None:
        by_name = {each.name: each.encode for each in built_in_collations().values()}
        german, swedish = by_name["unicode_de__phonebook_s3"], by_name["unicode_sv_s3"]
        assert german("ä") < german("b")
        assert swedish("ä") > swedish("z")

    def test_an_index_of_both_texts_and_numbers(self) -> None:
        part = {"field": 0, "type": "scalar", "collation": UNICODE_CI}
        rows = Rows(index([part]))
        for value in ("b", "A", 5, True, b"a", "c"):
            rows.add([value])
        assert rows.select(2, []) == [[True], [5], ["A"], ["b"], ["c"], [b"a"]]
        assert rows.select(0, ["B"]) == [["b"]]

    def test_without_icu_there_are_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(icu, "_library", lambda: None)
        with pytest.raises(BoxError) as caught:
            icu.sort_key_of("", {})
        assert caught.value.message == "A server without the package icu4py does not support collations"

    def test_icu_is_loaded_when_it_is_needed(self) -> None:
        program = (
            "import json, sys; from iproto_server import Box; box = Box();"
            "print(json.dumps([line for line in open('/proc/self/maps') if 'icu' in line]))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
        assert json.loads(done.stdout) == []

    def test_either_library_will_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The system's library and that of icu4py, which the tests require."""
        monkeypatch.setattr(icu, "_VERSIONS", ())
        libraries = list(icu._candidates())
        assert libraries
        monkeypatch.setattr(icu, "_library", lambda: libraries[0])
        encode = icu.sort_key_of("", {"strength": "PRIMARY"})
        assert encode("A") == encode("a") < encode("b")

    def test_a_library_with_other_names_for_its_functions_is_passed_over(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, none_of_icu = ctypes.CDLL, ctypes.CDLL(None)
        monkeypatch.setattr(
            ctypes, "CDLL", lambda name: none_of_icu if str(name).startswith("libicu") else real(name)
        )
        [library] = icu._candidates()
        monkeypatch.setattr(icu, "_library", lambda: library)
        assert icu.sort_key_of("", {})("a")


class TestInTheBox:
    @pytest.fixture
    def box(self) -> Box:
        box = new_box()[0]
        box.schema.create_space("texts", format=[{"name": "t", "type": "string", "collation": "unicode_ci"}])
        box.space.texts.create_index("pk", parts=[{"field": "t", "collation": "unicode_ci"}])
        return box

    def test_a_unique_index_refuses_what_it_holds_equal(self, box: Box) -> None:
        box.space.texts.insert(["a"])
        assert refused(box.space.texts.insert, ["Á"])[0] == ErrorCode.TUPLE_FOUND
        assert box.space.texts.replace(["Á"]) == ["Á"]
        assert box.space.texts.get("a") == ["Á"]
        assert list(box.space.texts.select()) == [["Á"]]

    def test_a_collation_of_ones_own(self, box: Box) -> None:
        collations = box.space._collation
        collations.insert([500, "numbers", 1, "ICU", "", {"numeric_collation": "on"}])
        numbered = box.schema.create_space("numbered")
        numbered.create_index("pk", parts=[{"field": 0, "type": "string", "collation": "numbers"}])
        for text in ("a10", "a9", "b"):
            numbered.insert([text])
        assert list(numbered.select()) == [["a9"], ["a10"], ["b"]]
        assert refused(collations.delete, 500) == (
            ErrorCode.DROP_COLLATION,
            "Can't drop collation numbers : collation is referenced by index",
        )
        numbered.drop()
        collations.delete(500)
        assert 500 not in box.catalog.collations

    def test_a_used_collation_is_not_dropped(self, box: Box) -> None:
        assert refused(box.space._collation.delete, UNICODE_CI)[1] == (
            "Can't drop collation unicode_ci : collation is referenced by space format"
        )
        assert refused(box.space._collation.delete, 0)[1] == "Can't drop collation none : system collation"

    def test_a_collation_does_not_change(self, box: Box) -> None:
        assert refused(box.space._collation.update, UNICODE, [("=", 1, "other")]) == (
            ErrorCode.UNSUPPORTED,
            "collation does not support alter",
        )

    def test_a_rollback_removes_a_new_collation(self, box: Box) -> None:
        def fail() -> None:
            box.space._collation.insert([500, "mine", 1, "ICU", "", {}])
            box.space._collation.delete(276)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            box.atomic(fail)
        assert 500 not in box.catalog.collations
        assert 276 in box.catalog.collations
