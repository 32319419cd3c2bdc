"""Effective privileges of users, and the privileges of procedures."""

from __future__ import annotations

import pytest

from iproto_server import Box, ErrorCode, Space
from iproto_server.box.access.access_control import ADMIN, SUPER, Privilege
from iproto_server.password import fits_salted, salted_hash
from tests.box.refusal import refusal
from tests.differential.ddl.system_rows import a_function


@pytest.fixture
def box() -> Box:
    box = Box()
    for user in ("ann", "bob"):
        box.schema.user.create(user)
    for role in ("readers", "team"):
        box.schema.role.create(role)
    return box


@pytest.fixture
def space(box: Box) -> Space:
    space = box.schema.create_space("t")
    space.create_index("primary")
    space.insert([1])
    return space


def rights(box: Box, user: str, space: Space) -> int:
    return box.access.by_name(user).granted("space", space.id) & (Privilege.READ | Privilege.WRITE)


def test_rights_come_from_everywhere_at_once(box: Box, space: Space) -> None:
    assert rights(box, "ann", space) == 0
    box.schema.role.grant("readers", "read", "space", "t")
    box.schema.role.grant("team", "readers")
    box.schema.user.grant("ann", "team")
    assert rights(box, "ann", space) == Privilege.READ
    box.schema.user.grant("ann", "write", "space")
    assert rights(box, "ann", space) == Privilege.READ | Privilege.WRITE
    box.schema.role.revoke("team", "readers")
    assert rights(box, "ann", space) == Privilege.WRITE
    box.schema.user.revoke("ann", "write", "space")
    assert rights(box, "ann", space) == 0
    box.schema.user.grant("ann", "read", "universe")
    assert rights(box, "ann", space) == Privilege.READ
    assert rights(box, "bob", space) == 0


def is_guest_unauthenticated(box: Box) -> bool:
    return box.access.is_unauthenticated(box.access.by_name("guest"))


def test_guest_is_unauthenticated_while_it_has_no_grant(box: Box, space: Space) -> None:
    assert is_guest_unauthenticated(box)
    box.schema.user.grant("guest", "read", "space", "t")
    assert not is_guest_unauthenticated(box)
    box.schema.role.grant("public", "read", "space", "t")
    assert is_guest_unauthenticated(box)
    box.schema.role.revoke("public", "read", "space", "t")
    box.schema.user.revoke("guest", "read", "space", "t")
    box.schema.user.grant("guest", "team")
    assert not is_guest_unauthenticated(box)
    box.schema.user.revoke("guest", "team")
    assert is_guest_unauthenticated(box)
    box.schema.user.grant("guest", "execute", "universe")
    assert not is_guest_unauthenticated(box)
    box.schema.user.revoke("guest", "execute", "universe")
    box.access.open_to_guest()
    assert not is_guest_unauthenticated(box)


def test_no_other_user_is_unauthenticated(box: Box) -> None:
    assert not box.access.is_unauthenticated(box.access.by_name("admin"))
    assert not box.access.is_unauthenticated(box.access.by_name("ann"))


def test_a_dropped_role_takes_its_rights_along(box: Box, space: Space) -> None:
    box.schema.role.grant("readers", "read", "space", "t")
    box.schema.user.grant("ann", "readers")
    box.schema.role.drop("readers")
    assert rights(box, "ann", space) == 0
    box.schema.role.create("readers")
    assert rights(box, "ann", space) == 0


def test_roles_go_no_rounds(box: Box) -> None:
    box.schema.role.grant("team", "readers")
    with refusal(ErrorCode.ROLE_LOOP, "Granting role 'team' to role 'readers' would create a loop"):
        box.schema.role.grant("readers", "team")
    with refusal(ErrorCode.ROLE_LOOP):
        box.schema.role.grant("team", "team")


def test_a_block_may_act_as_somebody_else(box: Box, space: Space) -> None:
    assert box.session.euid() == ADMIN
    with box.session.su("ann"):
        assert box.session.euid() == box.access.by_name("ann").user_id
        with refusal(ErrorCode.ACCESS_DENIED, "Read access to space 't' is denied for user 'ann'"):
            space.select()
        with refusal(ErrorCode.ACCESS_DENIED, "Write access to space 't' is denied for user 'ann'"):
            space.insert([2])
        with refusal(ErrorCode.ACCESS_DENIED):
            box.schema.create_space("u")
        with refusal(ErrorCode.ACCESS_DENIED):
            space.drop()
    assert box.session.euid() == ADMIN
    assert space.select() == [[1]]


def test_a_block_that_raises_gives_the_rights_back(box: Box, space: Space) -> None:
    with pytest.raises(ValueError, match="enough"), box.session.su("ann"):
        raise ValueError("enough")
    assert box.session.euid() == ADMIN
    with refusal(ErrorCode.NO_SUCH_USER, "nobody"), box.session.su("nobody"):
        pass
    with refusal(ErrorCode.NO_SUCH_USER, "team"), box.session.su("team"):
        pass


def test_an_owner_may_everything_with_what_is_its_own(box: Box) -> None:
    own = box.schema.create_space("own", user="ann")
    with box.session.su("ann"):
        box.access.check_space(box.session.current.credentials, Privilege.WRITE, own.core())
    own.create_index("primary")
    with box.session.su("ann"):
        own.insert([1])
        assert own.select() == [[1]]
    with box.session.su("bob"), refusal(ErrorCode.ACCESS_DENIED):
        own.select()


def test_an_open_session_follows_its_user(box: Box, space: Space) -> None:
    session = box.session.open("binary", None, "ann")
    box.schema.user.grant("ann", "read", "space", "t")
    assert box.run(session, space.select) == [[1]]
    box.schema.user.drop("ann")
    with refusal(ErrorCode.ACCESS_DENIED):
        box.run(session, space.select)


def test_grants_are_taken_back_with_their_transaction(box: Box, space: Space) -> None:
    def grant() -> None:
        box.schema.user.grant("ann", "read,write", "space", "t")
        assert rights(box, "ann", space) == Privilege.READ | Privilege.WRITE
        raise ValueError

    with pytest.raises(ValueError):
        box.atomic(grant)
    assert rights(box, "ann", space) == 0


@pytest.mark.parametrize(
    ("arguments", "info"),
    [
        (("read", "space", "t"), ["read", "space", "t"]),
        (("write,read", "space", "t"), ["read,write", "space", "t"]),
        (("read", "space"), ["read", "space", ""]),
        (("read", "universe"), ["read,session,usage", "universe", ""]),
        (("execute", "role", "readers"), ["execute", "role", "readers"]),
        (("readers",), ["execute", "role", "readers"]),
    ],
)
def test_the_words_of_a_grant(box: Box, space: Space, arguments: tuple[str, ...], info: list[str]) -> None:
    box.schema.user.grant("ann", *arguments)
    assert info in [list(row) for row in box.schema.user.info("ann")]


def test_system_users_are_not_dropped(box: Box) -> None:
    for user in ("guest", "admin"):
        with refusal(ErrorCode.DROP_USER, "is a system"):
            box.schema.user.drop(user)
    for role in ("public", "super"):
        with refusal(ErrorCode.DROP_USER):
            box.schema.role.drop(role)
    assert box.access.by_id(SUPER).name == "super"
    assert box.access.by_id(ADMIN).universe == Privilege.ALL


def test_passwords_are_hashed_for_the_method_of_the_server(box: Box) -> None:
    box.access.auth_type = "pap-sha256"
    box.schema.user.create("cid", password="one")
    assert fits_salted(box.access.by_name("cid").auth["pap-sha256"], "one")
    box.schema.user.passwd("cid", "two")
    assert fits_salted(box.access.by_name("cid").auth["pap-sha256"], "two")
    assert fits_salted(box.schema.user.password("three"), "three")


@pytest.mark.parametrize("stored", ["", "text", [], ["", ""], ["x", "y"], [1, 2], None, {}])
def test_a_malformed_salted_hash_is_refused(box: Box, stored: object) -> None:
    row = [99, ADMIN, "cid", "user", {"pap-sha256": stored}]
    with refusal(ErrorCode.CREATE_USER, "invalid user password"):
        box.space["_user"].insert(row)


def test_guest_cannot_have_a_password_of_any_method(box: Box) -> None:
    users = box.space["_user"]
    users.update([0], [("=", 4, {"pap-sha256": salted_hash("")})])
    with refusal(ErrorCode.GUEST_USER_PASSWORD):
        users.update([0], [("=", 4, {"pap-sha256": salted_hash("x")})])


def test_a_right_on_a_role_is_not_the_role(box: Box, space: Space) -> None:
    box.schema.role.grant("team", "read", "space", "t")
    box.schema.user.grant("ann", "drop", "role", "team")
    assert rights(box, "ann", space) == 0
    box.schema.user.grant("ann", "execute", "role", "team")
    assert rights(box, "ann", space) == Privilege.READ
    box.schema.user.revoke("ann", "execute", "role", "team")
    assert rights(box, "ann", space) == 0


def test_grants_and_owners_are_found_by_numbers_of_system_spaces(box: Box) -> None:
    """Indexes may have other names."""
    box.space["_user"].insert([900, 1, "owner", "user", {}])
    box.space["_priv"].insert([1, 900, "role", 2, 4])
    for name in ("_priv", "_func", "_sequence"):
        box.space["_space"].update(box.space[name].id, [("=", 2, f"{name} renamed")])
    with refusal(ErrorCode.DROP_USER, "the user has objects"):
        box.space["_user"].delete(900)
    box.space["_priv renamed"].delete([900, "role", 2])
    box.space["_user"].delete(900)


@pytest.mark.parametrize("what", ["_space", "_func", "_sequence", "_priv"])
def test_grants_and_owners_are_found_without_an_index(box: Box, what: str) -> None:
    """The index of owners, the first secondary one of a system space, may be dropped."""
    box.space["_user"].insert([900, 1, "owner", "user", {}])
    box.space["_user"].insert([901, 900, "its role", "role", {}])
    row = {
        "_space": [700, 900, "new", "memtx", 0, {}, []],
        "_func": a_function(700, 900),
        "_sequence": [700, 900, "new", 1, 1, 100, 1, 0, False],
        "_priv": [900, 2, "role", 901, 4],
    }[what]
    box.space["_index"].delete([box.space[what].id, 1])
    box.space[what].insert(row)
    with refusal(ErrorCode.DROP_USER, "the user has objects"):
        box.space["_user"].delete(900)
