"""A database that grows while it moves between the two servers."""

from __future__ import annotations

import random

import pytest

from tests.interchange.database.contents import assert_same
from tests.interchange.database.home import DIRECTIONS, Home, Server
from tests.interchange.database.random_client import RandomClient
from tests.interchange.database.statements import snapshot

STAYS = 6
CHANGES = 300
SEEDS = range(1, 4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("who", DIRECTIONS, ids=lambda who: f"from-{who}")
def test_whatever_is_done_to_it_is_there(home: Home, who: Server, seed: int) -> None:
    """Each server finds the contents of the one before; it is stopped, killed, or takes a snapshot."""
    client = RandomClient(seed)
    chance = random.Random(seed)
    with home.of(who) as inhabitant:
        left = inhabitant.contents()
    for _ in range(STAYS):
        size = chance.choice([2**10, 2**13, 2**20])
        with home.of(who, wal_max_size=size, checkpoint_count=chance.choice([1, 2, 5])) as inhabitant:
            assert_same(inhabitant.contents(), left)
            client.work(inhabitant, CHANGES)
            left = inhabitant.contents()
            match chance.randrange(3):
                case 0:
                    inhabitant.kill()
                case 1:
                    inhabitant.do([snapshot()])
        who = who.other
    with home.of(who) as inhabitant:
        assert_same(inhabitant.contents(), left)
    assert client.accepted > STAYS * CHANGES / 3
