"""Who is served next: by the time that was spent on each, within the budget of a turn."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from penstock.wire.fair_turns import QUANTUM_US, TURN_US, FairTurns


class World:
    """A clock that requests move on, and the calls for the next turn."""

    def __init__(self) -> None:
        self.us = 0
        self.is_held = False
        self.asked: list[Callable[[], None]] = []
        self.turns: FairTurns[Client] = FairTurns(lambda: self.us, self.asked.append, lambda: self.is_held)

    def turn(self) -> int:
        """The next turn of the event loop; how long it took."""
        asked, self.asked[:] = list(self.asked), []
        began_us = self.us
        for call in asked:
            call()
        return self.us - began_us


class Client:
    """Requests of one client, each with its cost."""

    def __init__(self, world: World, costs_us: list[int]) -> None:
        self.used_us = 0
        self.is_in_line = False
        self.costs_us = costs_us
        self.done_at_us: list[int] = []
        self._world = world
        world.turns.enter(self)

    def serve(self, count: int) -> bool:
        for _ in range(min(count, len(self.costs_us))):
            self._world.us += self.costs_us.pop(0)
            self.done_at_us.append(self._world.us)
        return bool(self.costs_us)


def test_clients_get_the_same_time_whatever_their_requests_cost() -> None:
    world = World()
    heavy = Client(world, [10_000] * 100)
    light = Client(world, [100] * 2_000)
    while light.costs_us:
        world.turn()
    # 200 ms of the light one: the heavy one got as much, and one request more at most
    assert 18 <= len(heavy.done_at_us) <= 22


def test_a_turn_ends_after_its_budget_and_one_request_more() -> None:
    world = World()
    clients = [Client(world, [900] * 50) for _ in range(20)]
    turns = 0
    while any(client.costs_us for client in clients):
        assert world.turn() <= TURN_US + 900
        turns += 1
    assert turns < 20 * 50


def test_a_new_client_waits_for_no_more_than_a_quantum_of_each_other() -> None:
    world = World()
    others = [Client(world, [200] * 1_000) for _ in range(10)]
    for _ in range(20):
        world.turn()
    came_us = world.us
    late = Client(world, [200])
    while not late.done_at_us:
        world.turn()
    assert late.done_at_us[0] - came_us <= len(others) * (QUANTUM_US + 800)


def test_what_was_used_while_nothing_waited_is_not_held_against_a_client() -> None:
    world = World()
    first = Client(world, [3_000] * 100)
    while first.costs_us:
        world.turn()
    world.turn()
    first.costs_us, second = [1_000] * 10, Client(world, [1_000] * 10)
    world.turns.enter(first)
    while first.costs_us or second.costs_us:
        world.turn()
    # The second one had a turn for itself.
    assert first.done_at_us[-1] - second.done_at_us[-1] <= TURN_US + 1_000


def test_nothing_is_begun_while_it_is_held_and_all_goes_on_afterwards() -> None:
    world = World()
    world.is_held = True
    client = Client(world, [10] * 5)
    world.turn()
    assert not client.done_at_us
    world.is_held = False
    world.turns.go_on()
    world.turn()
    assert len(client.done_at_us) == 5


def test_everything_is_served_once_whatever_comes_when() -> None:
    for seed in range(200):
        dice = Random(seed)
        world = World()
        clients: list[Client] = []
        asked = 0
        for _ in range(60):
            match dice.randrange(5):
                case 0 | 1:
                    costs = [dice.choice([1, 50, 2_000, 9_000]) for _ in range(dice.randrange(1, 9))]
                    asked += len(costs)
                    clients.append(Client(world, costs))
                case 2 if clients:
                    client = dice.choice(clients)
                    client.costs_us.append(30)
                    asked += 1
                    world.turns.enter(client)
                case 3:
                    world.is_held = not world.is_held
                    if not world.is_held:
                        world.turns.go_on()
                case _:
                    world.turn()
        world.is_held = False
        world.turns.go_on()
        for _ in range(10_000):
            if not world.asked:
                break
            world.turn()
        assert sum(len(client.done_at_us) for client in clients) == asked
