"""Two threads are kept to one processor while they are busy and nobody else needs it."""

from penstock.runtime.engine.cpu_affinity import REST_LOOKS, AffinityChoice, Sample

SECOND_NS = 1_000_000_000


class Machine:
    """Threads that run and wait, a second at a time."""

    def __init__(self) -> None:
        self.placement = AffinityChoice()
        self.sample = Sample(0, 0, 0, 0, 3)
        self.placement.look(self.sample)

    def second(
        self, *, ran: float = 0.0, waited: float = 0.0, partners: float = 0.0, processor: int = 3
    ) -> bool:
        last = self.sample
        self.sample = Sample(
            last.at_ns + SECOND_NS,
            last.loop_ran_ns + int(ran * SECOND_NS),
            last.loop_waited_ns + int(waited * SECOND_NS),
            last.partners_ran_ns + int(partners * SECOND_NS),
            processor,
        )
        return self.placement.look(self.sample)


def test_an_idle_server_is_left_alone() -> None:
    machine = Machine()
    assert not any(machine.second(ran=0.05) for _ in range(50))
    assert machine.placement.kept_on is None


def test_a_busy_server_is_kept_where_the_kernel_has_put_it() -> None:
    machine = Machine()
    assert machine.second(ran=0.8, processor=5)
    assert machine.placement.kept_on == 5
    assert not machine.second(ran=0.8, processor=5)


def test_it_stays_when_it_gets_idle_because_that_harms_nobody() -> None:
    machine = Machine()
    machine.second(ran=0.8)
    assert not any(machine.second() for _ in range(50))
    assert machine.placement.kept_on == 3


def test_waiting_for_each_other_is_no_reason_to_part() -> None:
    machine = Machine()
    machine.second(ran=0.7)
    assert not any(machine.second(ran=0.6, waited=0.35, partners=0.35) for _ in range(50))
    assert machine.placement.kept_on == 3


def test_when_others_take_the_processor_it_is_let_go_for_a_while_and_then_kept_again() -> None:
    machine = Machine()
    machine.second(ran=0.8)
    assert machine.second(ran=0.4, waited=0.5, partners=0.1)
    assert machine.placement.kept_on is None
    assert not any(machine.second(ran=0.8, processor=1) for _ in range(REST_LOOKS))
    assert machine.second(ran=0.8, processor=1)
    assert machine.placement.kept_on == 1


def test_a_look_at_the_same_moment_says_nothing() -> None:
    machine = Machine()
    assert not machine.placement.look(machine.sample)
